// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/ingest/source.hpp"
#include "ryle/runtime/metrics.hpp"

namespace ryle {

/// Defines the metrics of ingest (products.md 11) and keeps them at what a source says.
/// @metric ryle_ingest_datagrams_total, ryle_ingest_used_total, ryle_ingest_rejected_total{reason},
/// ryle_ingest_present_slots_total, ryle_ingest_missing_slots_total,
/// ryle_ingest_lost_samples_total, ryle_ingest_undelivered_samples_total,
/// ryle_ingest_refused_connections_total, ryle_ingest_rebound_total, ryle_ingest_chunks_total,
/// ryle_ingest_dropped_chunks_total, ryle_ingest_segments_total, ryle_kernel_drops_total,
/// ryle_ingest_balance (must be 0)
class IngestMetrics {
 public:
  explicit IngestMetrics(MetricsRegistry& registry);
  void update(const IngestCounters& counters);

 private:
  MetricsRegistry& registry_;
};

}  // namespace ryle
