// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <array>

#include "ryle/ingest/mwa32t_receiver.hpp"
#include "tests/ingest/hostile_fixture.hpp"
#include "tests/ingest/source_fixture.hpp"

// A million hostile packets against every receiver, in hostile order, while the array sends.

namespace ryle {
namespace {

using test::Battlefield;
using test::OpenReceiver;

constexpr int kHostile = 1'000'000;

/// Of 37 bits: every format can count to it, and it is a date.
std::int64_t any_slot(std::uint64_t key) { return static_cast<std::int64_t>(mix64(key) >> 27); }

/// Draws hostile packets from a seed: `serial` and the packet that the array sends now decide.
class Attacker {
 public:
  explicit Attacker(Battlefield& field) : field_(field) {}

  /// One of everything that can be sent from another address than the array's.
  void attack(std::uint64_t serial, std::int64_t slot) {
    const std::uint64_t key = mix64(serial);
    const int stream = static_cast<int>(key % static_cast<std::uint64_t>(field_.f.n_streams));
    const int sender = 1 + static_cast<int>((key >> 8) % 7);
    if (slot != slot_) remember(slot);
    const auto& now = packets_[static_cast<std::size_t>(stream)];
    const auto& before = old_[(key >> 16) % old_.size()];
    switch ((key >> 24) % 8) {
      case 0:  // noise of any length
        bytes_.resize((key >> 32) % (2 * now.size()));
        for (std::size_t k = 0; k < std::min<std::size_t>(bytes_.size(), 64); ++k)
          bytes_[k] = static_cast<std::byte>(mix64(key + k));
        break;
      case 1:  // bits of the header flipped
        bytes_ = now;
        for (std::uint64_t k = 0; k <= (key >> 32) % 8; ++k) {
          const std::uint64_t bit = mix64(key + k) % (8 * field_.f.header_bytes);
          bytes_[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
        }
        break;
      case 2:  // other samples
        bytes_ = now;
        bytes_[bytes_.size() / 2] ^= std::byte{0x55};
        break;
      case 3:  // what the array sent some time ago, or at first
        if (!before.empty()) bytes_ = before;
        break;
      case 4:  // any time
        forge(stream, any_slot(key));
        break;
      case 5:  // cut, or longer
        bytes_ = now;
        bytes_.resize((key >> 32) % (2 * now.size()));
        break;
      case 6:  // all of them agree on another time, and it goes on
        forge(stream, slot + 10'000'000);
        break;
      default:  // cut by the kernel
        bytes_ = now;
        field_.give(sender, stream, bytes_, true);
        return;
    }
    field_.give(sender, stream, bytes_);
  }

  void forge(int stream, std::int64_t slot) {
    payload_.assign(field_.f.payload_bytes, std::byte{0x66});
    bytes_.resize(field_.f.header_bytes + payload_.size());
    if (field_.f.encode(stream, slot, payload_, bytes_) == 0) bytes_.clear();
  }
  const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  void remember(std::int64_t slot) {
    if (!packets_.empty()) old_[n_old_++ % old_.size()] = packets_.front();
    packets_.clear();
    for (int s = 0; s < field_.f.n_streams; ++s) packets_.push_back(field_.packet(s, slot));
    slot_ = slot;
  }

  Battlefield& field_;
  std::int64_t slot_ = -1;
  std::vector<std::vector<std::byte>> packets_;
  std::array<std::vector<std::byte>, 64> old_;
  std::size_t n_old_ = 0;
  std::vector<std::byte> bytes_, payload_;
};

// The array first: whatever the others send, not one of its packets is lost and not one sample of
// theirs is taken.
TEST(Hostile, AMillionPacketsCostTheArrayNothing) {
  constexpr int kEach = 80;
  for (auto& format : test::hostile_formats()) {
    SCOPED_TRACE(format.name);
    Battlefield field(std::move(format));
    Attacker attacker(field);
    std::int64_t slot = field.f.first_slot;
    std::uint64_t serial = 0;
    for (int round = 0; serial < kHostile; ++round) {
      for (int s = 0; s < field.f.n_streams; ++s) field.give_good(s, slot);
      if (round >= 16) {  // bound by now
        for (int k = 0; k < kEach; ++k) attacker.attack(++serial, slot);
      }
      slot += field.f.slots_per_packet;
      field.pass(field.packet_ns());
    }
    const std::string state = field.state();
    EXPECT_EQ(state, "DEGRADED(foreign)") << "an attack is not OK";
    field.finish();
    field.expect_balanced();
    EXPECT_EQ(field.n_wrong, 0u);
    EXPECT_EQ(field.n_present, field.n_good * static_cast<std::uint64_t>(field.f.slots_per_packet));
    EXPECT_EQ(field.counters().lost_samples, 0u);
    EXPECT_EQ(field.counters().segments, 1u);
    EXPECT_EQ(field.counters().rebound, 0u);
    for (const char* reason : {"too_short", "too_long", "foreign_sender"})
      EXPECT_GT(field.counters().rejected.at(reason), 1000u) << reason;
    EXPECT_GT(field.counters().last_rejected.count("foreign_sender"), 0u);
  }
}

// The attacker first: he owns every stream before the array sends its first packet, and sends just
// enough to keep them. The array has them back within half a second and its time with them.
TEST(Hostile, WhoeverIsFirstDoesNotOwnAStreamForEver) {
  for (auto& format : test::hostile_formats()) {
    SCOPED_TRACE(format.name);
    Battlefield field(std::move(format));
    Attacker attacker(field);
    const std::int64_t far = field.f.first_slot + 5'000'000;
    std::int64_t forged = far;
    const auto forge_all = [&] {
      for (int s = 0; s < field.f.n_streams; ++s) {
        attacker.forge(s, forged);
        field.give(1, s, attacker.bytes());
      }
      forged += field.f.slots_per_packet;
    };
    for (int k = 0; k < 32; ++k) forge_all();
    ASSERT_EQ(field.counters().segments, 1u);
    std::int64_t slot = field.f.first_slot;
    const auto rounds = static_cast<int>(2e9 / static_cast<double>(field.packet_ns()));
    const int step = std::max(1, rounds / 16);  // 8 packets a second
    bool shown = false;
    int blind = 0;
    for (int round = 0; round < rounds; ++round) {
      const Reason reason = field.give_good(0, slot);
      blind = reason == Reason::used ? blind : round;
      for (int s = 1; s < field.f.n_streams; ++s) field.give_good(s, slot);
      if (round % step == 0) {
        forge_all();
        shown |= field.state() == "DEGRADED(foreign)";
      }
      slot += field.f.slots_per_packet;
      field.pass(field.packet_ns());
    }
    EXPECT_TRUE(shown) << "an attack is not OK";
    EXPECT_LT(blind * field.packet_ns(), 500 * kMillisecond_ns);
    EXPECT_GE(field.counters().rebound, 3u);
    EXPECT_EQ(field.counters().segments, 2u);
    field.finish();
    field.expect_balanced();
    EXPECT_GT(field.n_good_used * 4, field.n_good * 3);
  }
}

// The same after a pause: the attacker takes the streams over while the array is silent.
TEST(Hostile, APauseDoesNotGiveAStreamAwayForEver) {
  Battlefield field(test::fengine_format_of(FengineFormat::chips));
  Attacker attacker(field);
  std::int64_t slot = field.f.first_slot;
  const auto send = [&](int rounds, bool forged) {
    for (int round = 0; round < rounds; ++round) {
      for (int s = 0; s < field.f.n_streams; ++s) field.give_good(s, slot);
      if (forged && round % 3000 == 0) {
        for (int s = 0; s < field.f.n_streams; ++s) {
          attacker.forge(s, slot + 1);
          field.give(1, s, attacker.bytes());
        }
      }
      ++slot;
      field.pass(field.packet_ns());
    }
  };
  send(2000, false);
  field.pass(1500 * kMillisecond_ns);
  for (int s = 0; s < field.f.n_streams; ++s) {
    attacker.forge(s, slot);
    EXPECT_EQ(field.give(1, s, attacker.bytes()), Reason::used);
  }
  const std::uint64_t used = field.n_good_used;
  send(20'000, true);
  EXPECT_GT(field.n_good_used - used, 3u * 14'000);
  EXPECT_EQ(field.counters().rebound, 3u);
  field.finish();
  field.expect_balanced();
}

// A storm before the lock: five forged times for every good packet, and not one of these is lost.
TEST(Hostile, AStormBeforeTheLockCostsNoGoodPacket) {
  for (auto& format : test::hostile_formats()) {
    SCOPED_TRACE(format.name);
    Battlefield field(std::move(format));
    Attacker attacker(field);
    std::uint64_t serial = 0;
    for (int k = 0; k < 100'000; ++k) {  // long before: no good packet yet
      attacker.forge(k % 3, any_slot(++serial));
      field.give(1, k % 3, attacker.bytes());
    }
    std::int64_t slot = field.f.first_slot;
    for (int round = 0; round < 200; ++round) {
      for (int s = 0; s < field.f.n_streams; ++s) {
        field.give_good(s, slot);
        for (int k = 0; k < 5; ++k) {
          attacker.forge(s, any_slot(++serial));
          field.give(1, s, attacker.bytes());
        }
      }
      slot += field.f.slots_per_packet;
      field.pass(field.packet_ns());
    }
    field.finish();
    field.expect_balanced();
    EXPECT_EQ(field.n_present, field.n_good * static_cast<std::uint64_t>(field.f.slots_per_packet))
        << "every packet of the array";
    EXPECT_EQ(field.n_wrong, 0u);
    EXPECT_EQ(field.counters().segments, 1u);
  }
}

// A million hostile groups on the connection of one receiver: the others lose nothing by it.
TEST(Hostile, AMillionGroupsOfOneLinkCostTheOthersNothing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "skipped: links are judged by the clock, which this sanitizer slows tenfold";
#endif
  auto config = test::mixed_config();
  config.endpoints.assign(4, "tcp://127.0.0.1:0");
  Mwa32tReceiver receiver(config);
  const auto endpoints = receiver.endpoints();
  std::vector<test::Sender> senders;
  for (const auto& endpoint : endpoints) senders.emplace_back(endpoint);
  const auto counters = [&] {
    (receiver.*&OpenReceiver::publish)();
    return receiver.counters();
  };
  std::int64_t n_wrong = 0, n_absent = 0;
  const auto step = [&] {
    (receiver.*&OpenReceiver::serve)(0);
    (receiver.*&OpenReceiver::align)();
    (receiver.*&OpenReceiver::assembler_)->poll(receiver.*&OpenReceiver::now_);
    while (Chunk* chunk = receiver.pool().next(std::chrono::milliseconds(0))) {
      for (const auto& span : chunk->absent)
        n_absent += span.input >= 16 ? span.end - span.begin : 0;
      for (std::int64_t t = 0; t < chunk->n_ticks; t += 97) {
        std::uint16_t word = 0;
        std::memcpy(&word, chunk->payload.data() + (t * 64 + 17) * 2, 2);
        n_wrong += word != test::pattern_word(1, chunk->first_tick + t, 1) ? 1 : 0;
      }
      receiver.pool().release(chunk);
    }
  };
  constexpr std::int64_t kBlock = 2048;
  std::vector<std::byte> good;
  std::vector<std::byte> hostile = test::pattern_groups({}, 0, 0, 256);  // all begin together
  std::uint64_t n_hostile = 0, serial = 0;
  std::size_t sent = 0;
  Tick tick = 0;
  while (n_hostile < kHostile) {
    for (std::uint32_t r = 1; r < 4; ++r) {
      good = test::pattern_groups({}, r, tick, 256);
      ASSERT_TRUE(senders[r].send(good));
    }
    if (sent == hostile.size()) {
      std::uint64_t key = mix64(++serial);
      switch (key % 5) {
        case 0:
          hostile.resize(kBlock * 34);
          for (auto& b : hostile) b = static_cast<std::byte>(mix64(key += 1));
          break;
        case 1:  // in step, from anywhere
          hostile = test::pattern_groups({}, 0, static_cast<Tick>(key >> 40), kBlock);
          break;
        case 2:  // repeats
          break;
        case 3:  // bits flipped, bytes lost
          hostile = test::pattern_groups({}, 0, tick, kBlock);
          for (int k = 0; k < 200; ++k)
            hostile[mix64(key + static_cast<std::uint64_t>(k)) % hostile.size()] ^= std::byte{1};
          hostile.resize(hostile.size() - key % 34);
          break;
        default:  // a jump every fourth group
          hostile.clear();
          for (std::uint64_t k = 0; k < kBlock / 4; ++k) {
            const auto part =
                test::pattern_groups({}, 0, static_cast<Tick>(mix64(key + k) >> 40), 4);
            hostile.insert(hostile.end(), part.begin(), part.end());
          }
      }
      n_hostile += hostile.size() / 34;
      sent = 0;
    }
    const ssize_t n = ::send(senders[0].descriptor(), hostile.data() + sent, hostile.size() - sent,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) sent += static_cast<std::size_t>(n);
    tick += 256;
    const auto due = [&] {
      std::uint64_t placed = 0;
      for (std::uint32_t r = 1; r < 4; ++r)
        placed += (receiver.*&OpenReceiver::assembler_)->n_placed(r);
      return placed;
    };
    for (int k = 0; k < 1000 && due() < 3 * static_cast<std::uint64_t>(tick); ++k) step();
    ASSERT_EQ(due(), 3 * static_cast<std::uint64_t>(tick));
  }
  EXPECT_EQ(n_absent, 0);
  EXPECT_EQ(n_wrong, 0);
  // What is open is cut behind the last slot of any, which may be a forged one.
  (receiver.*&OpenReceiver::assembler_)->finish(receiver.*&OpenReceiver::now_);
  const auto c = counters();
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(c.rejected.at("overrun"), 0u);
  EXPECT_GT(c.rejected.at("magic"), 1000u);
}

// A start far from now: a counter that wrapped, or a clock that was never set. With the limit
// nothing begins, and who sent it is told; without (replays) it does.
TEST(Hostile, AStartFarFromNowIsRejected) {
  for (const double limit_s : {60.0, 0.0}) {
    auto config = test::hostile_config<FengineSourceConfig>();
    config.n_boards = 3;
    config.first_channel = 1200;
    config.n_channels = 4;
    config.chunk_spectra = 128;
    config.max_clock_error_s = limit_s;
    test::HostileFormat format = test::fengine_format_of(FengineFormat::chips);
    format.source = std::make_unique<FengineSource>(config);  // spectrum 0: 1970
    Battlefield field(std::move(format));
    for (std::int64_t k = 0; k < 64; ++k) {
      for (int s = 0; s < 3; ++s) field.give_good(s, field.f.first_slot + k);
    }
    EXPECT_EQ(field.state(), limit_s > 0 ? "PRELOCK" : "OK");
    const auto c = field.counters();
    EXPECT_EQ(c.rejected.at("time"), limit_s > 0 ? 3u * 64 : 0u);
    if (limit_s > 0) {
      EXPECT_NE(rejected_text(c).find("192 time (the last from 10.0.0.1:4000, 144 bytes: 03 00 04"),
                std::string::npos)
          << rejected_text(c);
    }
    field.finish();
    field.expect_balanced();
  }
}

// Boards that count since last week, and nobody said from when: their data are of now all the same.
TEST(Hostile, WithoutAStartPacketsAreOfTheirArrival) {
  auto config = test::hostile_config<FengineSourceConfig>();
  config.n_boards = 3;
  config.first_channel = 1200;
  config.n_channels = 4;
  config.chunk_spectra = 128;
  config.max_clock_error_s = 60;
  config.time_source = TimeSource::arrival;
  config.clock.epoch_tai_ns = host_tai_ns();
  test::HostileFormat format = test::fengine_format_of(FengineFormat::chips);
  auto source = std::make_unique<FengineSource>(config);
  const FengineSource& chips = *source;
  format.source = std::move(source);
  format.first_slot = 25'000LL * 7 * 86'400;
  Battlefield field(std::move(format));
  for (std::int64_t k = 0; k < 64; ++k) {
    for (int s = 0; s < 3; ++s) field.give_good(s, field.f.first_slot + k);
  }
  EXPECT_EQ(field.state(), "OK");
  const std::int64_t start_tai_ns = chips.clock(0).tai_ns(field.f.first_slot);
  EXPECT_LT(std::abs(start_tai_ns - host_tai_ns()), 60'000 * kMillisecond_ns);
}

// A counter so large that its time in nanoseconds does not fit 64 bits is no date at all, whatever
// it wraps to; and one of now is taken.
TEST(Hostile, CountersThatWrapToADateAreNoDate) {
  const SampleClock clock{0, {25'000, 1}};
  const auto any = possible_time(clock, 1, 0);
  EXPECT_TRUE(any(0));
  EXPECT_TRUE(any(25'000LL * 1'700'000'000));
  EXPECT_FALSE(any(25'000LL * 8'000'000'000));
  EXPECT_FALSE(any(std::int64_t{1} << 61));
  EXPECT_FALSE(any(-(std::int64_t{1} << 61)));
  // 2^64 ns later than a good one: the same nanoseconds in 64 bits.
  const std::int64_t turn = (std::int64_t{1} << 59) / 1'250;
  EXPECT_FALSE(any(25'000LL * 1'700'000'000 + turn));
  const std::int64_t now_s = std::chrono::duration_cast<std::chrono::seconds>(
                                 std::chrono::system_clock::now().time_since_epoch())
                                 .count();
  const auto near = possible_time({tai_minus_unix_ns(), {25'000, 1}}, 1, 60);
  EXPECT_TRUE(near(25'000 * now_s));
  EXPECT_TRUE(near(25'000 * (now_s - 30)));
  EXPECT_FALSE(near(25'000 * (now_s - 90)));
  EXPECT_FALSE(near(25'000 * (now_s + 90)));
}

}  // namespace
}  // namespace ryle
