// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>

#include "ryle/stage/run.hpp"

namespace ryle::stage {

std::string to_json(const RunSummary& s) {
  std::uint64_t rejected = 0;
  for (const auto& [reason, count] : s.packets_rejected) rejected += count;
  nlohmann::ordered_json json{{"packets_received", s.packets_received},
                              {"packets_used", s.packets_used},
                              {"packets_rejected_total", rejected},
                              {"packets_rejected", s.packets_rejected},
                              {"kernel_drops", s.kernel_drops},
                              {"lost_samples", s.lost_samples},
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
                              {"state", s.state},
                              {"stopped_by_signal", s.stopped_by_signal},
                              {"warnings", s.warnings},
                              {"errors", s.errors}};
  if (s.image) json["image"] = nlohmann::ordered_json::parse(to_json(*s.image));
  return json.dump();
}

}  // namespace ryle::stage
