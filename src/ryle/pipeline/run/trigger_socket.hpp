// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "ryle/ingest/line_server.hpp"
#include "ryle/pipeline/beam/voltage_ring.hpp"

/// Dumps of voltages that someone else asks for: a person, another telescope, a broker of alerts.
namespace ryle::pipeline {

/// One JSON object on one line; unknown keys, other types and values out of range are refused.
/// A pulse: {"utc": "2025-03-01T16:10:00.5", "dm_pc_cm3": 348.8, "reference_mhz": 1400, "dm_error":
/// 0.5, "width_s": 0.003, "name": "..."}; reference_mhz is where `utc` holds ("inf": infinite
/// frequency), the center of the highest channel by default; all but utc may be left out.
/// A time span, the same for all channels: {"begin_utc": "...", "end_utc": "...", "name": "..."}.
/// @eq t_top = t + k_DM DM (nu_top^-2 - nu_ref^-2)
/// Throws ConfigError that says what would work.
DumpTrigger parse_trigger(std::string_view line, const VoltageShape& shape);

/// What the socket answers: {"result": "accepted", "dump": 3} or {"result": "refused", "message":
/// "..."}; results are those of TriggerResult, and "error" for what is no request.
std::string answer_trigger(std::string_view line, const VoltageShape& shape, VoltageRing& ring);

/// The socket of voltages.socket.
class TriggerSocket {
 public:
  /// `ring` must live longer.
  TriggerSocket(const std::string& path, const VoltageShape& shape, VoltageRing& ring);

 private:
  VoltageShape shape_;
  std::unique_ptr<LineServer> server_;
};

}  // namespace ryle::pipeline
