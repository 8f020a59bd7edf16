// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/packets.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/simulate/whole_file.hpp"

namespace ryle::simulate {
namespace {

constexpr std::int64_t kInputs = wire::kMwa32tInputsPerReceiver;

const std::uint16_t* words_of(const VoltageRecord& record, std::int64_t t, std::int64_t receiver) {
  return record.samples.data() + t * record.n_inputs + receiver * kInputs;
}

Tick position_in_lap(Tick tick, std::int64_t period) {
  const Tick remainder = tick % period;
  return remainder < 0 ? remainder + period : remainder;
}

/// Writes instants [start, start + n) of a periodic image of `instant_bytes` per instant.
void write_laps(const std::string& path, const std::byte* image, std::int64_t instant_bytes,
                std::int64_t period, std::int64_t n_samples, Tick start) {
  detail::WholeFile file(path);
  std::int64_t position = position_in_lap(start, period);
  for (std::int64_t left = n_samples > 0 ? n_samples : period; left > 0;) {
    const std::int64_t n = std::min(left, period - position);
    file.write(image + position * instant_bytes, static_cast<std::size_t>(n * instant_bytes));
    position = (position + n) % period;
    left -= n;
  }
  file.publish();
}

}  // namespace

std::int64_t n_receivers(const VoltageRecord& record) {
  if (record.n_inputs == 0 || record.n_inputs % kInputs != 0) {
    throw ConfigError("a layout of " + std::to_string(record.n_inputs) +
                      " inputs does not fill mwa32t receivers; a multiple of 16 inputs does");
  }
  return record.n_inputs / kInputs;
}

std::vector<std::byte> pack_groups(const VoltageRecord& record, std::int64_t receiver,
                                   const wire::Mwa32tMarker& marker) {
  RYLE_ASSERT(receiver >= 0 && receiver < n_receivers(record));
  if (wire::mwa32t_marker_word(marker, record.n_samples) != wire::mwa32t_marker_word(marker, 0)) {
    throw ConfigError("a record of " + std::to_string(record.n_samples) +
                      " samples is no multiple of the period of the " +
                      std::to_string(marker.bits) + "-bit marker; use a multiple of " +
                      std::to_string(std::int64_t{1} << marker.bits));
  }
  std::vector<std::byte> bytes(static_cast<std::size_t>(record.n_samples) *
                               wire::kMwa32tGroupBytes);
  for (std::int64_t t = 0; t < record.n_samples; ++t) {
    wire::encode_mwa32t_group(
        marker, t, std::span<const std::uint16_t, kInputs>(words_of(record, t, receiver), kInputs),
        std::span<std::byte, wire::kMwa32tGroupBytes>(bytes.data() + t * wire::kMwa32tGroupBytes,
                                                      wire::kMwa32tGroupBytes));
  }
  return bytes;
}

std::vector<std::byte> pack_udp(const VoltageRecord& record, std::int64_t receiver,
                                std::int64_t n_instants) {
  RYLE_ASSERT(receiver >= 0 && receiver < n_receivers(record));
  if (n_instants < 1 || n_instants > 2046 || record.n_samples % n_instants != 0) {
    throw ConfigError("packets of " + std::to_string(n_instants) +
                      " samples do not divide the record of " + std::to_string(record.n_samples) +
                      "; 256 (or 1 to 2046 that divide it) work");
  }
  wire::Mwa32tGeometry geometry;
  geometry.n_receivers = static_cast<std::uint32_t>(n_receivers(record));
  geometry.n_instants = static_cast<std::uint32_t>(n_instants);
  const std::size_t packet_bytes = geometry.udp_packet_bytes();
  const std::int64_t n_packets = record.n_samples / n_instants;
  std::vector<std::byte> bytes(static_cast<std::size_t>(n_packets) * packet_bytes);
  std::vector<std::byte> payload(static_cast<std::size_t>(n_instants) * 32);
  for (std::int64_t k = 0; k < n_packets; ++k) {
    for (std::int64_t t = 0; t < n_instants; ++t) {
      std::memcpy(payload.data() + t * 32, words_of(record, k * n_instants + t, receiver), 32);
    }
    wire::Packet packet;
    packet.stream = static_cast<std::uint32_t>(receiver);
    packet.tick_raw = static_cast<std::uint64_t>(k * n_instants);
    packet.n_ticks = geometry.n_instants;
    const std::size_t written = wire::encode(
        geometry, packet, payload,
        std::span(bytes.data() + static_cast<std::size_t>(k) * packet_bytes, packet_bytes));
    RYLE_ASSERT(written == packet_bytes);
  }
  return bytes;
}

void write_interleaved_file(const VoltageRecord& record, const std::string& path,
                            std::int64_t n_samples, Tick start) {
  write_laps(path, reinterpret_cast<const std::byte*>(record.samples.data()), record.n_inputs * 2,
             record.n_samples, n_samples, start);
}

void write_interleaved_file(const VoltageStream& stream, const std::string& path,
                            std::int64_t n_samples) {
  detail::WholeFile file(path);
  VoltageRecord record = stream.make_record();
  for (Tick first = 0; first < n_samples; first += record.n_samples) {
    stream.draw(first, record);
    const std::int64_t n = std::min(record.n_samples, n_samples - first);
    file.write(record.samples.data(), static_cast<std::size_t>(n * record.n_inputs * 2));
  }
  file.publish();
}

void write_group_file(const VoltageRecord& record, std::int64_t receiver, const std::string& path,
                      std::int64_t n_samples, Tick start, const wire::Mwa32tMarker& marker) {
  const auto image = pack_groups(record, receiver, marker);
  write_laps(path, image.data(), wire::kMwa32tGroupBytes, record.n_samples, n_samples, start);
}

}  // namespace ryle::simulate
