// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/group_stream.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>

#include "ryle/wire/bytes.hpp"

namespace ryle {
namespace {

constexpr std::size_t kGroup = wire::kMwa32tGroupBytes;
constexpr std::size_t kMarkerBytes = 2;
// How exactly a stream must lie whole turns behind the others (0.8 ms at 1.28 MHz), and how many
// groups must confirm it. A stream that catches up after a stall leaves the tolerance within that
// many groups, because they come at once.
constexpr std::int64_t kSlipTolerance = 1024;
constexpr std::size_t kSlipGroups = 2048;
constexpr MonotonicNs kSlipHold_ns = 20 * kMillisecond_ns;

}  // namespace

GroupStream::GroupStream(const wire::Mwa32tMarker& marker, std::uint32_t stream,
                         std::size_t buffer_bytes)
    : marker_(marker),
      stream_(stream),
      mask_((std::uint32_t{1} << marker.bits) - 1),
      buffer_(buffer_bytes) {
  const std::uint32_t increment = marker.increment & mask_;
  if (marker.mode == wire::MarkerMode::counter && increment != 0) {
    modulus_ = std::int64_t{1} << (marker.bits - std::countr_zero(increment));
  }
}

void GroupStream::reset() {
  begin_ = end_ = 0;
  aligned_ = level_ = slip_ = false;
}

std::span<std::byte> GroupStream::space() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return {buffer_.data() + end_, buffer_.size() - end_};
}

std::uint16_t GroupStream::marker_at(std::size_t byte) const {
  return wire::load_le<std::uint16_t>(buffer_.data() + begin_ + byte);
}

// Four groups from `byte` on whose markers follow each other. @pre they are in the buffer
bool GroupStream::in_step(std::size_t byte) const {
  if (marker_.mode == wire::MarkerMode::ignore) return true;
  const bool counter = marker_.mode == wire::MarkerMode::counter;
  std::uint32_t expected = counter ? marker_at(byte) : marker_.value;
  for (std::size_t k = 0; k < kConfirm; ++k) {
    if (((marker_at(byte + k * kGroup) ^ expected) & mask_) != 0) return false;
    if (counter) expected += marker_.increment;
  }
  return true;
}

bool GroupStream::ready(GroupSink& sink) {
  for (;;) {
    if (end_ - begin_ < kConfirm * kGroup) return false;
    if (in_step(0)) return true;
    if (!resync({}, sink)) return false;
  }
}

void GroupStream::align(std::int64_t position, std::int64_t instant_offset) {
  position_ = position;
  instant_offset_ = instant_offset;
  aligned_ = level_ = true;
}

void GroupStream::parse(const StreamReference& others, bool drained, MonotonicNs now,
                        GroupSink& sink) {
  if (!aligned_ || slipping(others, drained, now)) return;
  for (;;) {
    emit_expected(sink);
    if (end_ - begin_ < kConfirm * kGroup) break;
    if (!resolve_jump(others) && !resync(others, sink)) break;
  }
  level_ = !others.known || std::abs(others.position - position_) <= kSlipTolerance;
}

// The groups whose markers are as expected, as one run. A marker that is not stops it.
void GroupStream::emit_expected(GroupSink& sink) {
  const std::size_t available = buffered_groups();
  std::size_t n = 0;
  if (marker_.mode == wire::MarkerMode::ignore) {
    n = available;
  } else {
    const bool counter = marker_.mode == wire::MarkerMode::counter;
    std::uint32_t expected = wire::mwa32t_marker_word(marker_, position_ + instant_offset_);
    while (n < available && ((marker_at(n * kGroup) ^ expected) & mask_) == 0) {
      if (counter) expected += marker_.increment;
      ++n;
    }
  }
  if (n == 0) return;
  sink.on_run({stream_, position_, static_cast<std::int64_t>(n),
               buffer_.data() + begin_ + kMarkerBytes, static_cast<std::int64_t>(kGroup)});
  position_ += static_cast<std::int64_t>(n);
  consume(n * kGroup);
}

// The position congruent to a marker that is nearest to `position`.
std::int64_t GroupStream::nearest(std::uint16_t word, std::int64_t position) const {
  const auto check = wire::check_mwa32t_marker(marker_, word, position + instant_offset_);
  return check.instant - instant_offset_;
}

std::int64_t GroupStream::jump_target(std::uint16_t word, const StreamReference& others) const {
  if (modulus_ == 0) return position_;
  // Without another receiver to go by, forward: data can be lost, not repeated.
  const std::int64_t reference = others.known ? others.position : position_ + modulus_ / 2;
  return nearest(word, reference);
}

// True when the markers from here on follow each other: a jump of the counter.
bool GroupStream::resolve_jump(const StreamReference& others) {
  if (modulus_ == 0 || !in_step(0)) return false;
  position_ = jump_target(marker_at(0), others);
  return true;
}

// Skips damage up to the next four groups in step; false when more bytes are needed.
bool GroupStream::resync(const StreamReference& others, GroupSink& sink) {
  const std::size_t available = end_ - begin_;
  std::size_t skip = 1;
  while (skip + kConfirm * kGroup <= available && !in_step(skip)) ++skip;
  const bool found = skip + kConfirm * kGroup <= available;
  if (!found) skip = skip / kGroup * kGroup;  // whole groups, so that nothing is counted twice
  const std::size_t n_groups = (skip + kGroup - 1) / kGroup;
  if (n_groups > 0) sink.on_reject(Reason::magic, n_groups, {buffer_.data() + begin_, skip});
  position_ += static_cast<std::int64_t>(n_groups);
  consume(skip);
  if (!found) return false;
  if (aligned_ && modulus_ != 0) {
    // A group or two overwritten: the count goes on where it should. Otherwise it is a jump as
    // well.
    const auto near = nearest(marker_at(0), position_);
    position_ = std::abs(near - position_) <= 16 ? near : jump_target(marker_at(0), others);
  }
  return true;
}

bool GroupStream::slipping(const StreamReference& others, bool drained, MonotonicNs now) {
  if (modulus_ == 0 || !others.known) {
    slip_ = false;
    return false;
  }
  const std::int64_t buffered = static_cast<std::int64_t>(buffered_groups());
  const std::int64_t lag = others.position - (position_ + buffered);
  if (!slip_) {
    const std::int64_t turns = (lag + modulus_ / 2) / modulus_;
    if (!drained || !level_ || turns < 1 || std::abs(lag - turns * modulus_) > kSlipTolerance ||
        modulus_ <= 4 * kSlipTolerance) {
      return false;
    }
    slip_ = true;
    slip_distance_ = turns * modulus_;
    slip_groups_ = static_cast<std::size_t>(buffered);
    slip_since_ = now;
    return true;
  }
  const bool stays = std::abs(lag - slip_distance_) <= kSlipTolerance;
  const bool enough = buffered_groups() >= slip_groups_ + kSlipGroups;
  if (stays && !enough && now - slip_since_ < kSlipHold_ns && buffered_groups() > 0 &&
      end_ - begin_ < buffer_.size() / 2) {
    return true;
  }
  slip_ = level_ = false;
  if (stays && enough) position_ += slip_distance_;
  return false;
}

void GroupStream::finish(GroupSink& sink) {
  slip_ = false;
  if (aligned_) emit_expected(sink);
  const std::size_t left = buffered_groups();
  const std::span<const std::byte> bytes(buffer_.data() + begin_, end_ - begin_);
  if (left > 0) {
    sink.on_reject(aligned_ ? Reason::magic : Reason::prelock, left, bytes.first(left * kGroup));
  }
  if (bytes.size() % kGroup != 0) {
    sink.on_reject(Reason::too_short, 1, bytes.subspan(left * kGroup));
  }
  begin_ = end_ = 0;
}

}  // namespace ryle
