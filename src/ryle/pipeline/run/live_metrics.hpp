// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>

#include "ryle/ingest/ingest_metrics.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/runtime/metrics.hpp"

namespace ryle::pipeline {

/// Counters of a live run (those of IngestMetrics and the engines' own) in Prometheus text format,
/// rewritten at every progress line for the node exporter's textfile collector
/// (runtime.metrics_file). Writing never disturbs the run: a failure is silent here and seen by the
/// scraper as an old time stamp.
class LiveMetrics {
 public:
  /// An empty name switches the file off; text() works all the same.
  explicit LiveMetrics(std::string file);
  ~LiveMetrics() { end(); }
  void update(const IngestCounters& ingest, const Progress& progress);
  /// The run is over, however it ended: what it says last is that nothing is up.
  void end();
  std::string text() const { return registry_.prometheus_text(); }

 private:
  void write() const;

  std::string file_;
  bool ended_ = false;
  MetricsRegistry registry_;
  IngestMetrics ingest_;
};

}  // namespace ryle::pipeline
