// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/ingest_metrics.hpp"

namespace ryle {

IngestMetrics::IngestMetrics(MetricsRegistry& registry) : registry_(registry) {
  registry.define_counter("ryle_ingest_datagrams_total",
                          "datagrams (TCP: groups) received; equals used plus all rejected");
  registry.define_counter("ryle_ingest_used_total", "datagrams of which a slot was placed");
  registry.define_counter("ryle_ingest_rejected_total", "datagrams refused, by reason");
  registry.define_counter("ryle_ingest_present_slots_total", "slots present in closed chunks");
  registry.define_counter("ryle_ingest_missing_slots_total",
                          "slots absent in closed chunks, dropped chunks included");
  registry.define_counter("ryle_ingest_lost_samples_total",
                          "input samples absent in closed chunks");
  registry.define_counter("ryle_ingest_undelivered_samples_total",
                          "input samples of streams that never delivered: not lost");
  registry.define_counter("ryle_ingest_refused_connections_total",
                          "TCP connections closed at once");
  registry.define_counter("ryle_ingest_rebound_total",
                          "streams that a steady rival won from their sender");
  registry.define_counter("ryle_ingest_chunks_total", "chunks closed, dropped ones included");
  registry.define_counter("ryle_ingest_dropped_chunks_total",
                          "chunks dropped whole for want of a free one");
  registry.define_counter("ryle_ingest_segments_total",
                          "times the window was set: start and sender restarts");
  registry.define_counter("ryle_kernel_drops_total",
                          "datagrams the kernel dropped for want of socket buffer");
  registry.define_gauge("ryle_ingest_balance", "received minus used minus rejected; must be 0");
  update({});
}

void IngestMetrics::update(const IngestCounters& c) {
  const auto set = [this](const char* name, std::uint64_t total) {
    registry_.counter(name).set_total(total);
  };
  set("ryle_ingest_datagrams_total", c.received);
  set("ryle_ingest_used_total", c.used);
  for (const auto& [reason, n] : c.rejected) {
    registry_.counter("ryle_ingest_rejected_total", {{"reason", reason}}).set_total(n);
  }
  set("ryle_ingest_present_slots_total", c.present_slots);
  set("ryle_ingest_missing_slots_total", c.missing_slots);
  set("ryle_ingest_lost_samples_total", c.lost_samples);
  set("ryle_ingest_undelivered_samples_total", c.undelivered_samples);
  set("ryle_ingest_refused_connections_total", c.rejected_connections);
  set("ryle_ingest_rebound_total", c.rebound);
  set("ryle_ingest_chunks_total", c.chunks);
  set("ryle_ingest_dropped_chunks_total", c.dropped_chunks);
  set("ryle_ingest_segments_total", c.segments);
  set("ryle_kernel_drops_total", c.kernel_drops);
  registry_.gauge("ryle_ingest_balance").set(static_cast<double>(c.balance()));
}

}  // namespace ryle
