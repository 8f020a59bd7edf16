// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/live_metrics.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>

namespace ryle::pipeline {

LiveMetrics::LiveMetrics(std::string file, const ObservationConfig& config)
    : file_(std::move(file)), ingest_(registry_) {
  registry_.define_counter("ryle_integrations_total", "integrations written");
  registry_.define_counter("ryle_images_total", "all-sky images made");
  registry_.define_counter("ryle_beam_samples_total", "samples of power, per beam and channel");
  registry_.define_counter("ryle_candidates_total", "candidates of the search");
  registry_.define_gauge("ryle_realtime_margin_ratio",
                         "data time over engine time of the last ten seconds; above 1 keeps up");
  registry_.define_gauge("ryle_data_seconds", "data processed");
  registry_.define_gauge("ryle_elapsed_seconds", "since the first data");
  registry_.define_gauge("ryle_planned_seconds", "data after which the run ends; 0 = never");
  registry_.define_gauge("ryle_input_bits_per_second", "packets received, at their nominal size");
  registry_.define_gauge("ryle_lost_ratio", "samples absent so far, of inputs that delivered any");
  registry_.define_gauge("ryle_ring_chunks", "chunks of the ring between receiver and engines");
  registry_.define_gauge("ryle_ring_waiting_chunks", "chunks that the engines have not taken yet");
  registry_.define_gauge("ryle_input_level_lsb", "rms of a part of the samples of an input");
  registry_.define_gauge(
      "ryle_last_rejected_bytes",
      "length of the last packet refused for a reason, with its sender and first "
      "bytes");
  registry_.define_gauge("ryle_state", "1 for the present state of the run, 0 for earlier ones");
  registry_.define_gauge("ryle_up",
                         "1 while the run goes on and nothing is wrong, 0 otherwise and after its "
                         "end");
  registry_.define_gauge("ryle_ended", "1 after the end of the run");
  registry_.define_gauge("ryle_updated_seconds", "Unix time at which this was written");
  registry_.define_gauge("ryle_run_info", "1; what runs");
  registry_
      .gauge("ryle_run_info", {{"name", config.output.name},
                               {"format", config.source.format},
                               {"directory", config.output.directory}})
      .set(1);
  registry_.gauge("ryle_ring_chunks").set(static_cast<double>(config.source.n_chunks));
  registry_.gauge("ryle_ended").set(0);
}

void LiveMetrics::note_state(const std::string& state) {
  registry_.clear("ryle_state");
  registry_.gauge("ryle_state", {{"state", state}}).set(1);
  // SLOW: the sender waits, nothing is lost.
  const bool well = state == "OK" || state == "STARTING" || state == "SLOW";
  registry_.gauge("ryle_up").set(well && !ended_ ? 1 : 0);
}

void LiveMetrics::note_rejected(const IngestCounters& counters) {
  registry_.clear("ryle_last_rejected_bytes");
  for (const auto& [reason, packet] : counters.last_rejected) {
    registry_
        .gauge("ryle_last_rejected_bytes",
               {{"reason", reason}, {"sender", packet.sender}, {"header", packet.header}})
        .set(static_cast<double>(packet.bytes));
  }
}

void LiveMetrics::update(const Progress& p, std::int64_t waiting_chunks) {
  ingest_.update(p.ingest);
  const auto total = [&](const char* name, std::int64_t n) {
    registry_.counter(name).set_total(static_cast<std::uint64_t>(n));
  };
  const auto gauge = [&](const char* name, double value) { registry_.gauge(name).set(value); };
  total("ryle_integrations_total", p.integrations);
  total("ryle_images_total", p.images);
  total("ryle_beam_samples_total", p.beam_samples);
  total("ryle_candidates_total", p.candidates);
  gauge("ryle_realtime_margin_ratio", p.margin);
  gauge("ryle_data_seconds", p.data_s);
  gauge("ryle_elapsed_seconds", p.elapsed_s);
  gauge("ryle_planned_seconds", p.total_s);
  gauge("ryle_input_bits_per_second", 1e9 * p.input_gbps);
  gauge("ryle_lost_ratio", p.lost_fraction);
  gauge("ryle_ring_waiting_chunks", static_cast<double>(std::max<std::int64_t>(0, waiting_chunks)));
  for (std::size_t k = 0; k < p.input_rms_lsb.size(); ++k)
    registry_.gauge("ryle_input_level_lsb", {{"input", std::to_string(k)}}).set(p.input_rms_lsb[k]);
  note_state(p.state);
  note_rejected(p.ingest);
  write();
}

void LiveMetrics::end() {
  if (ended_) return;
  ended_ = true;
  registry_.gauge("ryle_up").set(0);
  registry_.gauge("ryle_ended").set(1);
  write();
}

void LiveMetrics::write() {
  if (file_.empty()) return;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  registry_.gauge("ryle_updated_seconds").set(now.count());
  const std::string part = file_ + ".part";
  std::ofstream(part) << text();
  std::rename(part.c_str(), file_.c_str());  // a scraper sees the old file or the new one
}

}  // namespace ryle::pipeline
