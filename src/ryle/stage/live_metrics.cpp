// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/live_metrics.hpp"

#include <cstdio>
#include <fstream>

namespace ryle::stage {

LiveMetrics::LiveMetrics(std::string file) : file_(std::move(file)) {
  registry_.define_counter("ryle_ingest_received_total",
                           "packets received (groups on a stream transport)");
  registry_.define_counter("ryle_ingest_used_total", "packets placed into a chunk");
  registry_.define_counter("ryle_ingest_rejected_total", "packets refused, by reason");
  registry_.define_counter("ryle_ingest_missing_slots_total",
                           "slots of closed chunks that never arrived");
  registry_.define_counter("ryle_ingest_lost_samples_total",
                           "input samples absent in closed chunks");
  registry_.define_counter("ryle_kernel_drops_total",
                           "datagrams the kernel dropped for want of buffer");
  registry_.define_counter("ryle_dropped_chunks_total",
                           "whole chunks dropped because the engines were behind");
  registry_.define_counter("ryle_integrations_total", "integrations written");
  registry_.define_gauge("ryle_ingest_balance",
                         "received - used - rejected; anything but 0 is a defect");
  registry_.define_gauge("ryle_realtime_margin_ratio",
                         "data time over engine time; above 1 keeps up");
  registry_.define_gauge("ryle_data_seconds", "data processed");
  registry_.define_gauge("ryle_up", "1 when the state is OK, 0 otherwise");
}

void LiveMetrics::update(const IngestCounters& ingest, const Progress& progress) {
  registry_.counter("ryle_ingest_received_total").set_total(ingest.received);
  registry_.counter("ryle_ingest_used_total").set_total(ingest.used);
  for (const auto& [reason, count] : ingest.rejected) {
    registry_.counter("ryle_ingest_rejected_total", {{"reason", reason}}).set_total(count);
  }
  registry_.counter("ryle_ingest_missing_slots_total").set_total(ingest.missing_slots);
  registry_.counter("ryle_ingest_lost_samples_total").set_total(ingest.lost_samples);
  registry_.counter("ryle_kernel_drops_total").set_total(ingest.kernel_drops);
  registry_.counter("ryle_dropped_chunks_total").set_total(ingest.dropped_chunks);
  registry_.counter("ryle_integrations_total")
      .set_total(static_cast<std::uint64_t>(progress.integrations));
  registry_.gauge("ryle_ingest_balance").set(static_cast<double>(ingest.balance()));
  registry_.gauge("ryle_realtime_margin_ratio").set(progress.margin);
  registry_.gauge("ryle_data_seconds").set(progress.data_s);
  registry_.gauge("ryle_up").set(progress.state == "OK" ? 1 : 0);
  if (file_.empty()) return;
  const std::string part = file_ + ".part";
  std::ofstream(part) << text();
  std::rename(part.c_str(), file_.c_str());  // a scraper sees the old file or the new one
}

}  // namespace ryle::stage
