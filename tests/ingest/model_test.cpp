// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "tests/ingest/assembler_fixture.hpp"

namespace ryle {
namespace {

using test::ModelAssembler;
using test::small_config;
using test::Workbench;

// A day in the life of a stream, drawn from a seed: sizes, loss, disorder, repeats, forged stamps,
// strangers, restarts.
struct Scenario {
  explicit Scenario(std::uint64_t seed_value) : seed(seed_value) {
    n_streams = 1 + static_cast<int>(draw(0) % 5);
    chunk_slots = 1 + static_cast<std::int64_t>(draw(1) % 40);
    window_chunks = 2 + static_cast<int>(draw(2) % 4);
    packet_slots = std::min<std::int64_t>(chunk_slots, 1 + static_cast<std::int64_t>(draw(3) % 4));
    constexpr int kBits[] = {10, 16, 32, 48, 64};
    bits = kBits[draw(4) % 5];
    begin = bits == 64 ? 1'000'000 : (std::int64_t{1} << bits) - 200;
    loss = 0.6 * uniform(draw(5)) * uniform(draw(6));
    disorder = static_cast<std::int64_t>(draw(7) % 30);
    locked_at_start = draw(8) % 2 == 0;
    held_packets = static_cast<std::int64_t>(6 + draw(11) % 40);
  }
  std::uint64_t draw(std::uint64_t what) const { return combine(seed, what); }
  std::uint64_t seed;
  int n_streams, window_chunks, bits;
  std::int64_t chunk_slots, packet_slots, begin, disorder, held_packets;
  double loss;
  bool locked_at_start;
};

// Adds what happened to `total`, so that the test can see that everything did.
void run_scenario(const Scenario& s, std::map<std::string, std::uint64_t>& total) {
  auto config = small_config(s.n_streams, s.chunk_slots, s.window_chunks);
  config.packet_slots = s.packet_slots;
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  config.patience_ns = config.sender_timeout_ns = config.contest_ns = std::int64_t{1} << 60;
  config.held_packets = s.held_packets;
  Workbench bench(config, 12);
  ModelAssembler model({s.n_streams, s.chunk_slots, s.window_chunks, s.packet_slots,
                        static_cast<std::size_t>(s.held_packets)});
  const std::uint64_t mask = s.bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << s.bits) - 1;
  if (s.locked_at_start) {
    bench.assembler().lock(s.begin, bench.now);
    model.lock(s.begin);
  }
  const int n_packets = 600;
  std::int64_t base = s.begin;
  for (int i = 0; i < n_packets; ++i) {
    const auto key = combine(s.seed, 1000 + static_cast<std::uint64_t>(i));
    if (uniform(key) < s.loss) continue;
    const int stream = i % s.n_streams;
    if (i == 300 && s.draw(9) % 3 == 0) {  // the sender starts again, after a moment
      base -= 150 * s.packet_slots + static_cast<std::int64_t>(s.draw(10) % 5000);
      bench.now += 60 * kMillisecond_ns;
    }
    std::int64_t slot = base + (i / s.n_streams) * s.packet_slots;
    const std::uint64_t kind = mix64(key) % 40;
    if (s.disorder > 0 && kind < 8)
      slot -= static_cast<std::int64_t>(mix64(key + 1) % static_cast<std::uint64_t>(s.disorder));
    int variant = 0;
    std::uint64_t raw = static_cast<std::uint64_t>(slot) & mask;
    if (kind == 9) variant = 1;                   // other bytes: a conflict if the slot comes again
    if (kind == 10) raw = mix64(key + 2) & mask;  // a stamp from anywhere
    if (kind == 11) raw = (raw + (std::uint64_t{1} << 62)) & mask;
    const std::int64_t n = kind == 12 ? 1 : s.packet_slots;
    const auto content = Workbench::values(stream, slot, n, variant);
    const std::uint64_t sender = 7 + (kind == 13 ? 1 : 0);
    const int copies = kind == 14 ? 2 : 1;
    for (int copy = 0; copy < copies; ++copy) {
      bench.offer_raw(stream, raw, s.bits, content, sender);
      model.offer({stream, raw, s.bits, content, sender}, bench.now);
    }
    bench.now += 200'000;
  }
  bench.finish();
  model.finish();
  bench.expect_equal(model);
  for (const auto& [reason, n] : model.counters) total[reason] += n;
  total["new segments"] +=
      static_cast<std::uint64_t>(std::max<std::int64_t>(0, model.segments - 1));
}

TEST(Model, EveryCounterAndMaskBitAgree) {
  std::map<std::string, std::uint64_t> total;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    run_scenario(Scenario(seed), total);
    if (HasFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
  for (const char* what : {"used", "late", "future", "duplicate", "conflict", "prelock",
                           "foreign_sender", "new segments"}) {
    EXPECT_GT(total[what], 100u) << what;
  }
}

}  // namespace
}  // namespace ryle
