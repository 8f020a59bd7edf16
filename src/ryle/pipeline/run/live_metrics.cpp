// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/live_metrics.hpp"

#include <cstdio>
#include <fstream>

namespace ryle::pipeline {

LiveMetrics::LiveMetrics(std::string file) : file_(std::move(file)), ingest_(registry_) {
  registry_.define_counter("ryle_integrations_total", "integrations written");
  registry_.define_gauge("ryle_realtime_margin_ratio",
                         "data time over engine time; above 1 keeps up");
  registry_.define_gauge("ryle_data_seconds", "data processed");
  registry_.define_gauge(
      "ryle_up", "1 while the run goes on and its state is OK, 0 otherwise and after its end");
}

void LiveMetrics::update(const IngestCounters& ingest, const Progress& progress) {
  ingest_.update(ingest);
  registry_.counter("ryle_integrations_total")
      .set_total(static_cast<std::uint64_t>(progress.integrations));
  registry_.gauge("ryle_realtime_margin_ratio").set(progress.margin);
  registry_.gauge("ryle_data_seconds").set(progress.data_s);
  registry_.gauge("ryle_up").set(progress.state == "OK" ? 1 : 0);
  write();
}

void LiveMetrics::end() {
  if (ended_) return;
  ended_ = true;
  registry_.gauge("ryle_up").set(0);
  write();
}

void LiveMetrics::write() const {
  if (file_.empty()) return;
  const std::string part = file_ + ".part";
  std::ofstream(part) << text();
  std::rename(part.c_str(), file_.c_str());  // a scraper sees the old file or the new one
}

}  // namespace ryle::pipeline
