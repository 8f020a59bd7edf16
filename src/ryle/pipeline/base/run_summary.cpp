// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {

std::string to_json(const VoltageSummary& v) {
  return nlohmann::ordered_json{{"ring_s", v.ring_s},
                                {"triggers", v.triggers},
                                {"dumps", v.dumps},
                                {"merged", v.merged},
                                {"unlisted", v.unlisted},
                                {"refused", v.rejected},
                                {"limited", v.limited},
                                {"dropped", v.dropped},
                                {"failed", v.failed},
                                {"partial", v.partial},
                                {"absent_packets", v.absent_packets},
                                {"chunks_given_up", v.chunks_given_up},
                                {"bytes", v.bytes}}
      .dump();
}

std::string to_text(const VoltageSummary& v) {
  return fmt::format("voltages: {} dumps, {:.6g} MB, for {} triggers; ring of {:.3f} s\n", v.dumps,
                     1e-6 * static_cast<double>(v.bytes), v.triggers, v.ring_s);
}

std::string to_json(const BeamSummary& b) {
  nlohmann::ordered_json json{{"beams", b.beams},
                              {"incoherent", b.incoherent},
                              {"samples", b.samples},
                              {"sample_interval_s", b.sample_interval_s},
                              {"weight_updates", b.weight_updates},
                              {"masked_inputs", b.masked_inputs},
                              {"absent_fraction", b.absent_fraction},
                              {"filled_samples", b.filled_samples},
                              {"dropped_samples", b.dropped_samples},
                              {"heaps_sent", b.heaps_sent},
                              {"heaps_dropped", b.heaps_dropped},
                              {"datagrams_rejected", b.datagrams_rejected},
                              {"clamped_low", b.clamped_low},
                              {"clamped_high", b.clamped_high}};
  return json.dump();
}

std::string to_text(const BeamSummary& b) {
  std::string text = fmt::format(
      "beams: {} coherent, {} incoherent, {} samples of {:.4g} ms; weights set {} times\n", b.beams,
      b.incoherent, b.samples, 1e3 * b.sample_interval_s, b.weight_updates);
  if (b.absent_fraction > 0)
    text += fmt::format("  {:.4f} % of the samples had no data\n", 100 * b.absent_fraction);
  if (b.filled_samples > 0)
    text +=
        fmt::format("  {} samples were filled with the mean of their channel\n", b.filled_samples);
  if (b.heaps_sent + b.heaps_dropped > 0)
    text += fmt::format("  {} heaps of voltages sent, {} dropped\n", b.heaps_sent, b.heaps_dropped);
  if (b.clamped_low + b.clamped_high > 0)
    text += fmt::format("  {} codes were cut at 0 and {} at 255\n", b.clamped_low, b.clamped_high);
  return text;
}

std::string to_text(const Progress& p, const IngestCounters& shown) {
  std::string line = fmt::format("{:7.1f} s", p.data_s);
  if (p.total_s > 0) line += fmt::format(" of {:.1f}", p.total_s);
  if (p.input_gbps > 0) line += fmt::format("  in {:5.2f} Gb/s", p.input_gbps);
  line += fmt::format("  lost {:.3f} %", 100 * p.lost_fraction);
  if (p.margin > 0)
    line += fmt::format("  real-time margin {:.{}f}x", p.margin, p.margin < 1 ? 2 : 1);
  if (p.images > 0) line += fmt::format("  images {}", p.images);
  if (p.beam_samples > 0) line += fmt::format("  samples {}", p.beam_samples);
  if (p.candidates > 0) line += fmt::format("  candidates {}", p.candidates);
  if ((p.images == 0 && p.beam_samples == 0) || p.integrations > 0)
    line += fmt::format("  integrations {}", p.integrations);
  line += "  " + p.state;
  std::string rejected = rejected_text(p.ingest, &shown);
  if (rejected.empty() && p.state != "OK") rejected = rejected_text(p.ingest);
  return rejected.empty() ? line : line + "  " + rejected;
}

std::string to_json(const Progress& p) {
  nlohmann::ordered_json rejected = nlohmann::ordered_json::object();
  for (const auto& [reason, n] : p.ingest.rejected) {
    if (n == 0) continue;
    rejected[reason] = {{"packets", n}};
    const auto last = p.ingest.last_rejected.find(reason);
    if (last == p.ingest.last_rejected.end()) continue;
    rejected[reason]["sender"] = last->second.sender;
    rejected[reason]["bytes"] = last->second.bytes;
    rejected[reason]["header"] = last->second.header;
  }
  nlohmann::ordered_json json{{"data_s", p.data_s},
                              {"elapsed_s", p.elapsed_s},
                              {"total_s", p.total_s},
                              {"input_bits_per_s", 1e9 * p.input_gbps},
                              {"lost_fraction", p.lost_fraction},
                              {"realtime_margin_ratio", p.margin},
                              {"integrations", p.integrations},
                              {"images", p.images},
                              {"beam_samples", p.beam_samples},
                              {"candidates", p.candidates},
                              {"state", p.state},
                              {"packets_received", p.ingest.received},
                              {"packets_used", p.ingest.used},
                              {"kernel_drops", p.ingest.kernel_drops},
                              {"lost_samples", p.ingest.lost_samples},
                              {"dropped_chunks", p.ingest.dropped_chunks},
                              {"rejected", rejected}};
  if (p.ingest.rejected_connections > 0) {
    json["refused_connections"] = p.ingest.rejected_connections;
    json["last_refused_connection"] = p.ingest.last_rejected_connection;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string to_json(const RunSummary& s) {
  std::uint64_t rejected = 0;
  for (const auto& [reason, count] : s.packets_rejected) rejected += count;
  nlohmann::ordered_json last_rejected = nlohmann::ordered_json::object();
  for (const auto& [reason, p] : s.last_rejected) {
    last_rejected[reason] = {{"sender", p.sender}, {"bytes", p.bytes}, {"header", p.header}};
  }
  nlohmann::ordered_json json{{"packets_received", s.packets_received},
                              {"packets_used", s.packets_used},
                              {"packets_rejected_total", rejected},
                              {"packets_rejected", s.packets_rejected},
                              {"last_rejected", last_rejected},
                              {"refused_connections", s.rejected_connections},
                              {"last_refused_connection", s.last_rejected_connection},
                              {"senders_replaced", s.senders_replaced},
                              {"kernel_drops", s.kernel_drops},
                              {"lost_samples", s.lost_samples},
                              {"undelivered_samples", s.undelivered_samples},
                              {"dropped_chunks", s.dropped_chunks},
                              {"dropped_dumps", s.dropped_dumps},
                              {"integrations", s.integrations},
                              {"data_s", s.data_s},
                              {"elapsed_s", s.elapsed_s},
                              {"real_time_factor", s.real_time_factor},
                              {"engine_margin", s.engine_margin},
                              {"peak_memory_bytes", s.peak_memory_bytes},
                              {"planned_memory_bytes", s.planned_memory_bytes},
                              {"products", s.products},
                              {"implementations", s.implementations},
                              {"saturated_fraction", s.saturated_fraction},
                              {"state", s.state},
                              {"stopped_by_signal", s.stopped_by_signal},
                              {"not_made", s.not_made},
                              {"warnings", s.warnings},
                              {"errors", s.errors}};
  if (!s.marks.empty()) {
    json["marks"] = nlohmann::ordered_json::array();
    for (const auto& mark : s.marks)
      json["marks"].push_back({{"utc", utc_iso(mark.tai_ns, 6)}, {"text", mark.text}});
  }
  if (s.image) json["image"] = nlohmann::ordered_json::parse(to_json(*s.image));
  if (s.beams) json["beams"] = nlohmann::ordered_json::parse(to_json(*s.beams));
  if (s.voltages) json["voltages"] = nlohmann::ordered_json::parse(to_json(*s.voltages));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace ryle::pipeline
