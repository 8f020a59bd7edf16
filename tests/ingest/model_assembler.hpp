// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ryle::test {

/// The assembler as src/ryle/ingest/README.md words it: maps and sets, one slot at a time, no code
/// shared with the product. A packet is n consecutive slots of one stream, slot k holding value[k].
/// Times in ns.
class ModelAssembler {
 public:
  struct Config {
    int n_streams;
    std::int64_t chunk_slots;
    int window_chunks;
    std::int64_t packet_slots = 1;
    std::size_t held_packets = 256;
    std::function<bool(std::int64_t slot)> possible_time = {};  // none: any
  };
  struct Packet {
    int stream;
    std::uint64_t raw;
    int bits;
    std::vector<std::uint64_t> values;
    std::uint64_t sender = 0;  // 0: never bound
  };
  struct Chunk {
    std::int64_t first_slot, n_slots, sequence, segment;
    std::map<std::pair<int, std::int64_t>, std::uint64_t> values;  // (stream, slot)
  };

  explicit ModelAssembler(const Config& config) : c(config) {}

  void offer(const Packet& p, std::int64_t now) {
    if (locked) {
      judge(p, now);
      return;
    }
    if (c.possible_time && !c.possible_time(static_cast<std::int64_t>(p.raw))) {
      ++received;
      ++counters["time"];
      return;
    }
    if (held.size() == c.held_packets) {
      // The oldest that does not agree with the time most agree on, else the oldest.
      auto out = held.begin();
      if (const Time* maximum = leading(); maximum != nullptr) {
        const auto other = std::find_if(held.begin(), held.end(),
                                        [&](const Packet& h) { return !agrees(*maximum, h); });
        if (other != held.end()) out = other;
      }
      held.erase(out);
      ++received;
      ++counters["prelock"];
    }
    held.push_back(p);
    vote(p, now);
  }

  void lock(std::int64_t origin) { begin_segment(origin); }

  void finish() {
    for (; !held.empty(); held.pop_front()) {
      ++received;
      ++counters["prelock"];
    }
    if (locked) close_short();
  }

  std::vector<Chunk> closed;
  std::map<std::string, std::uint64_t> counters;
  std::uint64_t received = 0;
  std::int64_t segments = 0;

 private:
  static std::int64_t extend(std::uint64_t raw, int bits, std::int64_t reference) {
    // Step by step: the congruent numbers below and above the reference, whichever is nearer; a tie
    // is the past.
    if (bits == 64) return static_cast<std::int64_t>(raw);
    const auto turn = static_cast<__int128>(1) << bits;
    __int128 above = static_cast<__int128>(raw) % turn;
    const __int128 ref = reference;
    above += (ref - above) / turn * turn;
    while (above < ref) above += turn;
    while (above - turn >= ref) above -= turn;
    const __int128 below = above - turn;
    return static_cast<std::int64_t>(above - ref < ref - below ? above : below);
  }

  void judge(const Packet& p, std::int64_t now) {
    ++received;
    if (p.sender != 0 && bound[p.stream] != 0 && bound[p.stream] != p.sender) {
      ++counters["foreign_sender"];
      return;
    }
    const std::int64_t slot = extend(p.raw, p.bits, head);
    std::string first;
    bool used = false;
    const std::int64_t segment = segments;
    for (std::size_t done = 0; done < p.values.size() && segments == segment;) {
      const __int128 at = static_cast<__int128>(slot) + static_cast<__int128>(done);
      __int128 distance = at - head;
      // Positions are 64-bit numbers on a circle.
      const __int128 circle = static_cast<__int128>(1) << 64;
      while (distance >= circle / 2) distance -= circle;
      while (distance < -circle / 2) distance += circle;
      __int128 k = distance / c.chunk_slots;
      if (distance % c.chunk_slots < 0) --k;
      const auto n =
          std::min<std::int64_t>(static_cast<std::int64_t>(p.values.size() - done),
                                 static_cast<std::int64_t>((k + 1) * c.chunk_slots - distance));
      const std::string reason = judge_piece(p, static_cast<std::int64_t>(at), k, done, n, now);
      if (first.empty()) first = reason;
      used |= reason == "used";
      done += static_cast<std::size_t>(n);
    }
    ++counters[used ? "used" : first];
    if (used) bound[p.stream] = p.sender;
    shares.emplace_back(now / 5'000'000, used);
  }

  std::string judge_piece(const Packet& p, std::int64_t slot, __int128 k, std::size_t from,
                          std::int64_t n, std::int64_t now) {
    if (k == c.window_chunks && leads(p.stream)) {
      do close(c.chunk_slots);
      while (closes());
      k = (slot - head) / c.chunk_slots;
    }
    if (k < 0 || k >= c.window_chunks) {
      if (k >= c.window_chunks || k < -c.window_chunks)
        vote({p.stream, static_cast<std::uint64_t>(slot), 64, {}, 0}, now);
      return k < 0 ? "late" : "future";
    }
    auto& chunk = open[head + static_cast<std::int64_t>(k) * c.chunk_slots];
    bool taken = false, differs = false;
    for (std::int64_t i = 0; i < n; ++i) {
      const auto found = chunk.find({p.stream, slot + i});
      if (found == chunk.end()) continue;
      taken = true;
      differs |= found->second != p.values[from + static_cast<std::size_t>(i)];
    }
    if (taken) return differs ? "conflict" : "duplicate";
    const std::int64_t first = head + static_cast<std::int64_t>(k) * c.chunk_slots;
    if (chunk.empty()) began[first] = ++order;
    placed[p.stream] = ++order;
    end_of[p.stream] = std::max(end_of[p.stream], slot + n);
    for (std::int64_t i = 0; i < n; ++i) {
      chunk[{p.stream, slot + i}] = p.values[from + static_cast<std::size_t>(i)];
    }
    while (closes()) close(c.chunk_slots);
    return "used";
  }

  bool closes() {
    if (static_cast<std::int64_t>(open[head].size()) == c.n_streams * c.chunk_slots) return true;
    const auto& last = open[head + (c.window_chunks - 1) * c.chunk_slots];
    std::set<int> streams;
    for (const auto& [key, value] : last) streams.insert(key.first);
    const std::int64_t slots = c.n_streams * c.chunk_slots;
    return static_cast<int>(streams.size()) >= std::min(3, c.n_streams) &&
           static_cast<std::int64_t>(last.size()) >= std::min(16 * c.packet_slots, (slots + 7) / 8);
  }

  // A stream at the end of the window closes the head when it has half of the last chunk and most
  // of those placed since that chunk began are past the head.
  bool leads(int stream) {
    const std::int64_t first = head + (c.window_chunks - 1) * c.chunk_slots;
    std::int64_t n = 0;
    for (const auto& [key, value] : open[first]) n += key.first == stream ? 1 : 0;
    if (n == 0 || n * 2 < c.chunk_slots) return false;
    int past = 0, in_head = 0;
    for (int s = 0; s < c.n_streams; ++s) {
      if (placed[s] <= began[first]) continue;
      ++(end_of[s] > head + c.chunk_slots ? past : in_head);
    }
    return past > in_head;
  }

  void close(std::int64_t n_slots) {
    closed.push_back(
        {head, n_slots, static_cast<std::int64_t>(closed.size()), segments - 1, open[head]});
    open.erase(head);
    head += n_slots;
  }

  void close_short() {
    std::int64_t last_used = -1, end = 0;
    for (const auto& [first, chunk] : open) {
      if (chunk.empty()) continue;
      last_used = first;
      end = 0;
      for (const auto& [key, value] : chunk) end = std::max(end, key.second - first + 1);
    }
    if (last_used < 0) return;
    while (head < last_used) close(c.chunk_slots);
    close(end);
    open.clear();
  }

  // A time that was voted for: those that agree are within a window of its newest.
  struct Time {
    std::int64_t votes = 0, first = 0, latest = 0;
    std::set<int> voters;
  };
  static constexpr std::size_t kTimes = 8;

  bool agrees(const Time& t, const Packet& p) const {
    const std::int64_t slot = extend(p.raw, p.bits, t.latest);
    const std::int64_t reach = c.window_chunks * c.chunk_slots;
    return slot <= t.latest + reach && slot >= t.latest - reach;
  }

  const Time* leading() const {
    const Time* maximum = nullptr;
    for (const auto& [place, t] : times)
      if (maximum == nullptr || t.votes > maximum->votes) maximum = &t;
    return maximum;
  }

  // Misra and Gries: a vote for none of eight times takes a free place, or one vote from each.
  void vote(const Packet& p, std::int64_t now) {
    const auto as_is = static_cast<std::int64_t>(p.raw);
    if (as_is >= (std::int64_t{1} << 62) || as_is <= -(std::int64_t{1} << 62)) return;
    if (locked && c.possible_time && !c.possible_time(as_is)) return;
    auto found = std::find_if(times.begin(), times.end(),
                              [&](const auto& entry) { return agrees(entry.second, p); });
    if (found == times.end()) {
      std::size_t place = 0;
      while (times.count(place) != 0) ++place;
      if (place == kTimes) {
        for (auto it = times.begin(); it != times.end();) {
          it = --it->second.votes == 0 ? times.erase(it) : std::next(it);
        }
        return;
      }
      found = times.insert({place, Time{0, as_is, as_is, {}}}).first;
    }
    Time& t = found->second;
    const std::int64_t slot = extend(p.raw, p.bits, t.latest);
    ++t.votes;
    t.voters.insert(p.stream);
    t.first = std::min(t.first, slot);
    t.latest = std::max(t.latest, slot);
    if (t.votes < 16 || static_cast<int>(t.voters.size()) < std::min(3, c.n_streams)) return;
    if (locked) {
      std::int64_t all = 0, used = 0;
      for (const auto& [bucket, placed] : shares) {
        if (bucket <= now / 5'000'000 - 10) continue;
        ++all;
        used += placed ? 1 : 0;
      }
      if (used * 10 >= all && all > 0) return;
    }
    begin_segment(std::max(t.first, t.latest - (c.window_chunks - 1) * c.chunk_slots));
    while (!held.empty()) {
      const Packet p = held.front();
      held.pop_front();
      judge(p, now);
    }
  }

  void begin_segment(std::int64_t origin) {
    if (locked) close_short();
    open.clear();
    locked = true;
    ++segments;
    head = origin;
    for (int s = 0; s < c.n_streams; ++s) end_of[s] = origin;
    times.clear();
    shares.clear();
  }

  Config c;
  bool locked = false;
  std::int64_t head = 0;
  std::map<std::int64_t, std::map<std::pair<int, std::int64_t>, std::uint64_t>>
      open;  // by first slot
  std::deque<Packet> held;
  std::map<std::size_t, Time> times;  // by place; there are eight
  std::int64_t order = 0;
  std::map<int, std::int64_t> end_of;          // by stream: of its newest slot
  std::map<int, std::int64_t> placed;          // by stream: when it was last placed
  std::map<std::int64_t, std::int64_t> began;  // by first slot: when the chunk was begun
  std::map<int, std::uint64_t> bound;          // the time-out of a silent sender is not modeled
  std::vector<std::pair<std::int64_t, bool>> shares;
};

}  // namespace ryle::test
