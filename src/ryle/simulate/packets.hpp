// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ryle/core/time.hpp"
#include "ryle/simulate/voltages.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle::simulate {

/// One receiver's share of a record as 17-word groups, ready to send: group k of lap after lap is
/// the same bytes, because the marker counter returns to its value when the record does.
/// @shape bytes [time][17] u16 little endian
/// Throws ConfigError when the record's length is no multiple of the marker's period.
std::vector<std::byte> pack_groups(const VoltageRecord& record, std::int64_t receiver,
                                   const wire::Mwa32tMarker& marker = {});

/// One receiver's share as mwa32t-udp packets of n_instants samples; the first-sample field is that
/// of the first lap.
/// @shape bytes [packet][16 + 32 n_instants]. Throws ConfigError when n_instants does not divide
/// the record.
std::vector<std::byte> pack_udp(const VoltageRecord& record, std::int64_t receiver,
                                std::int64_t n_instants);

/// Receivers of 16 inputs; throws ConfigError unless n_inputs is a multiple of 16.
std::int64_t n_receivers(const VoltageRecord& record);

/// Writes n_samples (0 = one lap) from tick `start` on as the interleaved file [time][64] u16,
/// without markers. The file appears under its name only when whole. Throws IoError.
void write_interleaved_file(const VoltageRecord& record, const std::string& path,
                            std::int64_t n_samples = 0, Tick start = 0);

/// The same of samples without a period, from tick 0 on.
void write_interleaved_file(const VoltageStream& stream, const std::string& path,
                            std::int64_t n_samples);

/// Writes one receiver's groups, marker counter = tick. Same rules.
void write_group_file(const VoltageRecord& record, std::int64_t receiver, const std::string& path,
                      std::int64_t n_samples = 0, Tick start = 0,
                      const wire::Mwa32tMarker& marker = {});

}  // namespace ryle::simulate
