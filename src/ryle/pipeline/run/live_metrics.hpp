// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/ingest/ingest_metrics.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/runtime/metrics.hpp"

namespace ryle::pipeline {

/// Counters of a live run (those of IngestMetrics and the engines' own) in Prometheus text format,
/// rewritten at every progress line for the node exporter's textfile collector and `ryle top`
/// (runtime.metrics_file). Writing never disturbs the run: a failure is silent here and seen by the
/// scraper as an old time stamp.
/// @metric ryle_run_info{name, format, directory}, ryle_state{state} (1 for the present one),
/// ryle_up, ryle_ended, ryle_updated_seconds (Unix time), ryle_elapsed_seconds, ryle_data_seconds,
/// ryle_planned_seconds, ryle_input_bits_per_second, ryle_lost_ratio, ryle_realtime_margin_ratio,
/// ryle_ring_chunks, ryle_ring_waiting_chunks, ryle_integrations_total, ryle_images_total,
/// ryle_beam_samples_total, ryle_candidates_total, ryle_input_level_lsb{input},
/// ryle_last_rejected_bytes{reason, sender, header}
class LiveMetrics {
 public:
  /// An empty name switches the file off; text() works all the same.
  LiveMetrics(std::string file, const ObservationConfig& config);
  ~LiveMetrics() { end(); }
  /// @param waiting_chunks of the ring, that the engines have not taken
  void update(const Progress& progress, std::int64_t waiting_chunks);
  /// The run is over, however it ended: what it says last is that nothing is up.
  void end();
  std::string text() const { return registry_.prometheus_text(); }

 private:
  void note_state(const std::string& state);
  void note_rejected(const IngestCounters& counters);
  void write();

  std::string file_;
  bool ended_ = false;
  MetricsRegistry registry_;
  IngestMetrics ingest_;
};

}  // namespace ryle::pipeline
