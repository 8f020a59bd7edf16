// SPDX-License-Identifier: BSD-3-Clause
// Order of copies and work in the ring of device chunks, with queues that do things in any order
// that their waits allow: whatever is written before its last reader is done shows as wrong bytes.
#include "ryle/pipeline/base/device_ring.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"

namespace ryle::pipeline {
namespace {

/// Two queues that run when told to; an event is the number of a record.
class LateQueues {
 public:
  /// @param copies_first share of the turns in 256 that the copying queue gets
  LateQueues(int n_slots, unsigned copies_first, std::uint64_t seed)
      : copied_(static_cast<std::size_t>(n_slots), -1),
        worked_(static_cast<std::size_t>(n_slots), -1),
        copies_first_(copies_first),
        seed_(seed) {}

  void give(bool work, std::function<void()> run) { queue(work).push_back({std::move(run), -1}); }
  void record(bool work, int slot) {
    const int event = static_cast<int>(reached_.size());
    reached_.push_back(false);
    (work ? worked_ : copied_)[static_cast<std::size_t>(slot)] = event;
    give(work, [this, event] { reached_[static_cast<std::size_t>(event)] = true; });
  }
  void wait_event(bool work, bool until_worked, int slot) {
    const int event = (until_worked ? worked_ : copied_)[static_cast<std::size_t>(slot)];
    queue(work).push_back({[] {}, event});
  }
  void wait_copied(int slot) {
    const int event = copied_[static_cast<std::size_t>(slot)];
    while (event >= 0 && !reached_[static_cast<std::size_t>(event)]) ASSERT_TRUE(step()) << "stuck";
  }
  /// One thing of one queue; false when neither can go on.
  bool step() {
    const bool work_first = mix64(seed_ ^ ++n_steps_) % 256 >= copies_first_;
    return run_one(work_first) || run_one(!work_first);
  }
  bool chance(unsigned of_256) { return mix64(~seed_ ^ ++n_steps_) % 256 < of_256; }
  bool idle() { return queues_[0].empty() && queues_[1].empty(); }

 private:
  struct Entry {
    std::function<void()> run;
    int after;  // event, -1 = at once
  };
  std::deque<Entry>& queue(bool work) { return queues_[work ? 1 : 0]; }
  bool run_one(bool work) {
    auto& q = queue(work);
    if (q.empty()) return false;
    if (q.front().after >= 0 && !reached_[static_cast<std::size_t>(q.front().after)]) return false;
    q.front().run();
    q.pop_front();
    return true;
  }
  std::deque<Entry> queues_[2];
  std::vector<bool> reached_;
  std::vector<int> copied_, worked_;
  unsigned copies_first_;
  std::uint64_t seed_;
  std::uint64_t n_steps_ = 0;
};

/// The ring's view of them; the test keeps them.
class LateRingQueues final : public RingQueues {
 public:
  explicit LateRingQueues(LateQueues& queues) : queues_(queues) {}
  void copy(std::byte* to, const std::byte* from, std::int64_t n_bytes) override {
    queues_.give(false, [=] { std::memcpy(to, from, static_cast<std::size_t>(n_bytes)); });
  }
  void record_copied(int slot) override { queues_.record(false, slot); }
  void record_worked(int slot) override { queues_.record(true, slot); }
  void work_after_copied(int slot) override { queues_.wait_event(true, false, slot); }
  void copy_after_worked(int slot) override { queues_.wait_event(false, true, slot); }
  void wait_copied(int slot) override { queues_.wait_copied(slot); }

 private:
  LateQueues& queues_;
};

std::byte sample(std::int64_t k) {
  return static_cast<std::byte>(mix64(static_cast<std::uint64_t>(k)) & 0xff);
}

struct Stream {
  int n_slots;
  std::int64_t chunk_bytes, carry_bytes;
  std::int64_t restart_at;  ///< chunk that does not follow the one before; -1 = none
};

/// Pushes 40 chunks of changing length from host buffers that are filled again and again, works
/// on them some time later, and looks at what the work finds.
void run_stream(const Stream& s, unsigned copies_first, std::uint64_t seed) {
  LateQueues queues(s.n_slots, copies_first, seed);
  DeviceRing ring(std::make_unique<LateRingQueues>(queues), s.n_slots, s.chunk_bytes, s.carry_bytes,
                  MemorySpace::host);
  constexpr std::int64_t kChunks = 40;
  const std::int64_t max_carried = (s.carry_bytes + 127) / 128 * 128;
  // One host buffer less than slots at most: as many copies are under way at once.
  const auto n_host = static_cast<int>(1 + seed % static_cast<std::uint64_t>(s.n_slots - 1));
  std::vector<std::vector<std::byte>> buffers(
      static_cast<std::size_t>(n_host),
      std::vector<std::byte>(static_cast<std::size_t>(s.chunk_bytes)));
  std::int64_t sent = 0, first = 0, worked = 0, wrong = 0, found = 0;
  struct Sent {
    std::int64_t begin, n, first;  // of the stream; `first` of what was sent since a restart
  };
  std::deque<Sent> waiting;
  const auto work = [&] {
    const Sent chunk = waiting.front();
    waiting.pop_front();
    const DeviceRing::Chunk c = ring.front();
    ASSERT_EQ(c.chunk_bytes, chunk.n);
    ASSERT_EQ(c.carried_bytes, std::min(max_carried, chunk.begin - chunk.first));
    queues.give(true, [&, c, chunk] {
      for (std::int64_t k = 0; k < c.carried_bytes + c.chunk_bytes; ++k)
        wrong += c.data[k] != sample(chunk.begin - c.carried_bytes + k);
      ++found;
    });
    ring.release();
    ++worked;
  };
  for (std::int64_t k = 0; k < kChunks; ++k) {
    while (ring.full() || (!ring.empty() && queues.chance(80))) work();
    if (k == s.restart_at) {
      ring.restart();
      first = sent;
    }
    const std::int64_t n = k % 5 == 3 ? s.chunk_bytes / 3 : s.chunk_bytes;
    ring.wait_copied(n_host - 1);  // the host buffer is about to be filled again
    auto& host = buffers[static_cast<std::size_t>(k % n_host)];
    for (std::int64_t b = 0; b < n; ++b) host[static_cast<std::size_t>(b)] = sample(sent + b);
    ring.push(host.data(), n);
    waiting.push_back({sent, n, first});
    sent += n;
    while (queues.chance(128)) queues.step();
  }
  while (!ring.empty()) work();
  while (queues.step()) {
  }
  EXPECT_TRUE(queues.idle()) << "stuck";
  EXPECT_EQ(worked, kChunks);
  EXPECT_EQ(found, kChunks);
  EXPECT_EQ(wrong, 0) << s.n_slots << " slots, carry " << s.carry_bytes << ", copies first "
                      << copies_first << ", seed " << seed;
}

TEST(DeviceRing, NothingIsWrittenBeforeItsLastReader) {
  for (const Stream& s : {Stream{2, 600, 0, -1}, Stream{2, 600, 128, -1}, Stream{3, 300, 256, 7},
                          Stream{4, 96, 500, -1}, Stream{5, 1000, 384, 20}}) {
    for (const unsigned copies_first : {0u, 60u, 128u, 200u, 256u}) {
      for (std::uint64_t seed = 0; seed < 6; ++seed) run_stream(s, copies_first, seed);
    }
  }
}

TEST(DeviceRing, WorksAtOnceOnTheCpuAndIsBounded) {
  Queue queue = Queue::cpu(1);
  DeviceRing ring(make_ring_queues(queue, 2), 2, 256, 128, MemorySpace::host);
  EXPECT_TRUE(ring.empty());
  std::vector<std::byte> host(256);
  for (int k = 0; k < 3; ++k) {
    for (std::size_t b = 0; b < host.size(); ++b) host[b] = sample(256 * k + std::int64_t(b));
    ring.push(host.data(), 256);
    ring.wait_copied();
    std::memset(host.data(), 0xCD, host.size());
    const auto chunk = ring.front();
    EXPECT_EQ(chunk.carried_bytes, k == 0 ? 0 : 128);
    for (std::int64_t b = 0; b < chunk.carried_bytes + 256; ++b)
      ASSERT_EQ(chunk.data[b], sample(256 * k - chunk.carried_bytes + b));
    ring.release();
  }
  ring.push(host.data(), 256);
  EXPECT_FALSE(ring.full());
  ring.push(host.data(), 256);
  EXPECT_TRUE(ring.full());
  EXPECT_THROW(DeviceRing(make_ring_queues(queue, 1), 1, 256, 0, MemorySpace::host), ConfigError);
}

}  // namespace
}  // namespace ryle::pipeline
