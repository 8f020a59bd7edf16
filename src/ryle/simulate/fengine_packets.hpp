// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/simulate/fengine.hpp"

namespace ryle::simulate::detail {

/// Which packets carry a record: a link sends one (channel block, board) of it.
struct FenginePackets {
  std::string format = "chips";  ///< chips | tbx | tbf
  std::int64_t first_channel = 0;
  std::int64_t channels_per_packet = 0;
  std::int64_t n_blocks = 0;
  std::int64_t n_boards = 0;
  std::int64_t inputs_per_packet = 0;
  std::int64_t packet_bytes = 0;
  std::int64_t counter_offset = 0;  ///< of the 64-bit counter
  std::uint64_t counter_bias = 0;   ///< of spectrum 0
  std::uint64_t counter_scale = 1;  ///< counts a spectrum
};

/// Checks that the record fits; 0 channels_per_packet = all (TBF: 12), time tag -1 = from the
/// record's time. Throws ConfigError, UnsupportedError for another format.
FenginePackets fengine_packets(const SpectraRecord& record, const std::string& format,
                               std::int64_t first_channel, std::int64_t channels_per_packet,
                               std::int64_t first_time_tag);

/// Packets of one block and board, one a spectrum, counters of the first lap.
/// @shape bytes [spectrum][packet_bytes]
std::vector<std::byte> pack(const SpectraRecord& record, const FenginePackets& packets,
                            std::int64_t block, std::int64_t board);

/// One packet. @shape out [packet_bytes]
void pack_one(const SpectraRecord& record, const FenginePackets& packets, std::int64_t block,
              std::int64_t board, Tick spectrum, std::vector<std::byte>& payload, std::byte* out);

}  // namespace ryle::simulate::detail
