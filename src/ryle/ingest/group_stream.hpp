// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ryle/ingest/placement.hpp"
#include "ryle/ingest/quorum_gate.hpp"
#include "ryle/ingest/reason.hpp"
#include "ryle/wire/mwa32t.hpp"

namespace ryle {

/// Takes what a GroupStream finds.
class GroupSink {
 public:
  virtual ~GroupSink() = default;
  virtual void on_run(const Run& run) = 0;
  /// `bytes`: what was refused, for whoever looks for the cause.
  virtual void on_reject(Reason reason, std::uint64_t n_groups,
                         std::span<const std::byte> bytes) = 0;
};

/// Median position of the other receivers, when there are any that deliver.
struct StreamReference {
  bool known = false;
  std::int64_t position = 0;
};

/// The 34-byte groups of one MWA-32T receiver out of a byte stream read in pieces of any size:
/// checks and strips the marker, turns its jumps into positions, finds the step again after damage
/// (ingest.md 2.1).
///  * A marker as expected continues the run.
///  * A jump, confirmed by the next three markers, goes to the position congruent to the marker
///  that is nearest to the
///    median of the other receivers; without any, forward.
///  * Anything else is damage: bytes are skipped until four markers in a row agree; what was
///  skipped counts as `magic`.
///  * A gap of a whole turn of the counter leaves no jump. It is taken when, right after a pause,
///  the stream lies a whole
///    number of turns behind the others and stays there while more data come (a stream that only
///    stalled catches up).
class GroupStream {
 public:
  GroupStream(const wire::Mwa32tMarker& marker, std::uint32_t stream,
              std::size_t buffer_bytes = std::size_t{256} << 10);

  /// A new connection: forgets bytes and position. finish() first.
  void reset();
  /// Room for the next read; may be empty while the position is not known.
  std::span<std::byte> space();
  void commit(std::size_t n_bytes) { end_ += n_bytes; }
  /// True once four groups in step are there (skips damage before them).
  bool ready(GroupSink& sink);
  /// Marker of the first group. @pre ready()
  std::uint16_t first_marker() const { return marker_at(0); }
  /// Position of the first group, and what is added to a position to get the instant its marker
  /// stands for.
  void align(std::int64_t position, std::int64_t instant_offset = 0);
  bool aligned() const { return aligned_; }
  /// Hands over what can be decided. `drained`: the last read emptied the socket.
  void parse(const StreamReference& others, bool drained, MonotonicNs now, GroupSink& sink);
  /// The connection ended: accounts for every byte left.
  void finish(GroupSink& sink);
  /// Of the next group.
  std::int64_t position() const { return position_; }
  std::size_t buffered_groups() const { return (end_ - begin_) / wire::kMwa32tGroupBytes; }
  std::size_t memory_bytes() const { return buffer_.size(); }

 private:
  static constexpr std::size_t kConfirm = 4;  ///< markers in a row that make a step believable
  std::uint16_t marker_at(std::size_t byte) const;
  bool in_step(std::size_t byte) const;
  void consume(std::size_t n_bytes) { begin_ += n_bytes; }
  void emit_expected(GroupSink& sink);
  bool resolve_jump(const StreamReference& others);
  bool resync(const StreamReference& others, GroupSink& sink);
  std::int64_t nearest(std::uint16_t word, std::int64_t position) const;
  std::int64_t jump_target(std::uint16_t word, const StreamReference& others) const;
  bool slipping(const StreamReference& others, bool drained, MonotonicNs now);

  wire::Mwa32tMarker marker_;
  std::uint32_t stream_;
  std::uint32_t mask_;
  std::int64_t modulus_ = 0;  ///< groups of one turn of the counter; 0 = no counter
  std::vector<std::byte> buffer_;
  std::size_t begin_ = 0, end_ = 0;
  bool aligned_ = false;
  std::int64_t position_ = 0, instant_offset_ = 0;
  bool level_ = false;  ///< at the last parse the stream was not far from the others
  bool slip_ = false;   ///< a whole turn may be missing: data are held back
  std::int64_t slip_distance_ = 0;
  std::size_t slip_groups_ = 0;
  MonotonicNs slip_since_ = 0;
};

}  // namespace ryle
