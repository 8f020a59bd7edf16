// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/impair.hpp"

#include <algorithm>
#include <array>

#include "ryle/core/random.hpp"

namespace ryle::simulate {
namespace {

std::uint64_t load_be(std::span<const std::byte> bytes, std::size_t offset, std::size_t size) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size && offset + i < bytes.size(); ++i) {
    value = (value << 8) | std::to_integer<std::uint64_t>(bytes[offset + i]);
  }
  return value;
}

void store_be(std::span<std::byte> bytes, std::size_t offset, std::size_t size,
              std::uint64_t value) {
  for (std::size_t i = size; i-- > 0; value >>= 8) {
    if (offset + i < bytes.size()) bytes[offset + i] = static_cast<std::byte>(value & 0xff);
  }
}

// Which decision a chance belongs to: every one has its own stream of random numbers.
enum What : int { kBurst, kLoss, kDuplicate, kReorder, kDepth, kChange, kPlace, kForeignSender };

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t n = 0; n < 256; ++n) {
    std::uint32_t c = n;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0x82F63B78u : 0u);
    table[n] = c;
  }
  return table;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  static constexpr auto kTable = crc_table();
  std::uint32_t crc = ~0u;
  for (const auto b : bytes)
    crc = kTable[(crc ^ std::to_integer<std::uint32_t>(b)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

Impairer::Impairer(const ImpairConfig& config, Output output)
    : config_(config), output_(std::move(output)) {}

double Impairer::chance(int what) const {
  return uniform(combine(config_.seed, order_, static_cast<std::uint64_t>(what)));
}

void Impairer::offer(std::span<const std::byte> datagram) {
  const auto& format = config_.format;
  LedgerRecord record;
  record.order = order_;
  std::vector<std::byte> bytes(datagram.begin(), datagram.end());
  std::uint64_t tick = load_be(bytes, format.counter_offset, format.counter_bytes);
  if (config_.reset_at > 0 && order_ >= config_.reset_at) {
    if (!reset_) reset_base_ = tick;
    reset_ = true;
    tick -= reset_base_;
    store_be(bytes, format.counter_offset, format.counter_bytes, tick);
  }
  record.stream = static_cast<std::uint32_t>(load_be(bytes, format.stream_offset, 1));
  record.tick = tick;
  bad_ = chance(kBurst) < (bad_ ? 1 - config_.burst_end : config_.burst_begin);
  if (bad_ || chance(kLoss) < config_.loss) {
    record.action = bad_ ? ImpairAction::lost_in_burst : ImpairAction::lost;
    note(record);
  } else {
    if (chance(kForeignSender) < config_.foreign_sender) {
      LedgerRecord foreign = record;
      foreign.action = ImpairAction::foreign_sender;
      put_out(bytes, foreign);
    }
    const std::vector<std::byte> original = bytes;
    change(bytes, record);
    if (chance(kReorder) < config_.reorder) {
      const auto depth = 1 + static_cast<std::uint64_t>(chance(kDepth) * config_.reorder_depth);
      held_.push_back({order_ + depth, bytes, record});
    } else {
      put_out(bytes, record);
    }
    if (chance(kDuplicate) < config_.duplicate) {
      LedgerRecord copy = record;
      copy.action = ImpairAction::duplicated;
      copy.tick = tick;
      put_out(original, copy);
    }
  }
  release(order_);
  ++order_;
}

// At most one change per datagram: one draw, and the chances stand side by side.
void Impairer::change(std::vector<std::byte>& bytes, LedgerRecord& record) const {
  const auto& format = config_.format;
  const double place = chance(kPlace);
  double draw = chance(kChange);
  const auto hit = [&draw](double probability) {
    const bool yes = draw >= 0 && draw < probability;
    draw -= probability;
    return yes;
  };
  const auto flip = [&](std::size_t begin, std::size_t end, ImpairAction action) {
    if (end <= begin) return;
    const std::size_t bit =
        begin * 8 + static_cast<std::size_t>(place * static_cast<double>((end - begin) * 8));
    bytes[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    record.action = action;
    record.detail = static_cast<std::uint16_t>(bit);
  };
  const auto move_tick = [&](bool up) {
    const int power = 20 + static_cast<int>(place * 43);
    const std::uint64_t distance = std::uint64_t{1} << power;
    record.action = up ? ImpairAction::future : ImpairAction::past;
    record.detail = static_cast<std::uint16_t>(power);
    record.tick += up ? distance : ~distance + 1;
    store_be(bytes, format.counter_offset, format.counter_bytes, record.tick);
  };
  const std::size_t header = std::min(format.header_bytes, bytes.size());
  if (hit(config_.corrupt_header)) {
    flip(0, header, ImpairAction::corrupt_header);
  } else if (hit(config_.corrupt_payload)) {
    flip(header, bytes.size(), ImpairAction::corrupt_payload);
  } else if (hit(config_.truncate)) {
    bytes.resize(static_cast<std::size_t>(place * static_cast<double>(bytes.size())));
    record.action = ImpairAction::truncated;
    record.detail = static_cast<std::uint16_t>(bytes.size());
  } else if (hit(config_.extend)) {
    record.action = ImpairAction::extended;
    record.detail = static_cast<std::uint16_t>(1 + place * 100);
    bytes.resize(bytes.size() + record.detail, std::byte{0x5A});
  } else if (hit(config_.future)) {
    move_tick(true);
  } else if (hit(config_.past)) {
    move_tick(false);
  } else if (hit(config_.foreign_stream)) {
    store_be(bytes, format.stream_offset, 1, 255);
    record.action = ImpairAction::foreign_stream;
  }
}

void Impairer::note(const LedgerRecord& record) {
  if (!keep_ledger_) ledger_.clear();
  ledger_.push_back(record);
}

void Impairer::put_out(std::span<const std::byte> bytes, LedgerRecord record) {
  record.crc32c = crc32c(bytes);
  note(record);
  output_(bytes, record);
}

void Impairer::release(std::uint64_t up_to) {
  std::vector<Held> later;
  for (auto& held : held_) {
    if (held.due <= up_to) {
      put_out(held.bytes, held.record);
    } else {
      later.push_back(std::move(held));
    }
  }
  held_ = std::move(later);
}

void Impairer::flush() { release(~std::uint64_t{0}); }

}  // namespace ryle::simulate
