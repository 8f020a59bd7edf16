// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/simulate/impair.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ryle/simulate/impair_relay.hpp"
#include "tests/ingest/model_assembler.hpp"
#include "tests/ingest/source_fixture.hpp"

namespace ryle {
namespace {

using simulate::ImpairAction;
using simulate::ImpairConfig;
using simulate::Impairer;
using simulate::LedgerRecord;
using test::pattern_datagram;

ImpairConfig everything(std::uint64_t seed) {
  ImpairConfig config;
  config.seed = seed;
  config.loss = 0.03;
  config.burst_begin = 0.002;
  config.duplicate = 0.02;
  config.reorder = 0.1;
  config.reorder_depth = 12;
  config.corrupt_header = 0.02;
  config.corrupt_payload = 0.02;
  config.truncate = 0.01;
  config.extend = 0.01;
  config.future = 0.02;
  config.past = 0.02;
  config.foreign_stream = 0.01;
  config.foreign_sender = 0.02;
  return config;
}

TEST(Impair, CrcIsTheCastagnoliOne) {
  // The check value of the algorithm's definition.
  const std::string text = "123456789";
  EXPECT_EQ(simulate::crc32c(std::as_bytes(std::span(text))), 0xE3069283u);
}

TEST(Impair, TheLedgerAccountsForEveryDatagram) {
  std::vector<std::vector<std::byte>> out;
  std::vector<LedgerRecord> of_out;
  Impairer impairer(everything(5),
                    [&](std::span<const std::byte> bytes, const LedgerRecord& record) {
                      out.emplace_back(bytes.begin(), bytes.end());
                      of_out.push_back(record);
                    });
  constexpr std::uint64_t kDatagrams = 4000;
  std::map<std::uint64_t, std::vector<std::byte>> in;
  for (std::uint64_t i = 0; i < kDatagrams; ++i) {
    in[i] = pattern_datagram(i % 4, static_cast<Tick>(i / 4 * 8), 8);
    impairer.offer(in[i]);
  }
  impairer.flush();
  std::map<ImpairAction, int> count;
  std::set<std::uint64_t> originals;
  std::size_t next = 0;
  std::uint64_t displaced = 0, highest = 0;
  for (const auto& record : impairer.ledger()) {
    ++count[record.action];
    const bool copy =
        record.action == ImpairAction::duplicated || record.action == ImpairAction::foreign_sender;
    if (!copy) {
      EXPECT_TRUE(originals.insert(record.order).second);
    }
    if (record.action == ImpairAction::lost || record.action == ImpairAction::lost_in_burst)
      continue;
    ASSERT_LT(next, out.size());
    EXPECT_EQ(record.crc32c, simulate::crc32c(out[next]));
    EXPECT_EQ(of_out[next].order, record.order);
    if (record.action == ImpairAction::sent || copy) {
      EXPECT_EQ(out[next], in[record.order]);
    }
    if (!copy) {
      displaced += record.order < highest ? 1 : 0;
      highest = std::max(highest, record.order);
    }
    ++next;
  }
  EXPECT_EQ(next, out.size());
  EXPECT_EQ(originals.size(), kDatagrams);  // each once, lost ones included
  // Binomial counts within 5 sigma of their probability.
  const auto near = [&](ImpairAction action, double p) {
    EXPECT_NEAR(count[action], p * kDatagrams, 5 * std::sqrt(p * kDatagrams))
        << static_cast<int>(action);
  };
  near(ImpairAction::lost, 0.03);
  near(ImpairAction::duplicated, 0.02);
  near(ImpairAction::foreign_sender, 0.02);
  near(ImpairAction::corrupt_header, 0.02);
  near(ImpairAction::future, 0.02);
  EXPECT_GT(count[ImpairAction::lost_in_burst], 0);
  EXPECT_GT(displaced, 200u);
}

TEST(Impair, TheSameSeedGivesTheSameLedger) {
  const auto ledger = [](std::uint64_t seed) {
    Impairer impairer(everything(seed), [](std::span<const std::byte>, const LedgerRecord&) {});
    for (std::uint64_t i = 0; i < 500; ++i)
      impairer.offer(pattern_datagram(0, static_cast<Tick>(i * 8), 8));
    impairer.flush();
    std::vector<std::pair<std::uint64_t, std::uint32_t>> lines;
    for (const auto& r : impairer.ledger())
      lines.emplace_back(r.order * 16 + static_cast<int>(r.action), r.crc32c);
    return lines;
  };
  EXPECT_EQ(ledger(3), ledger(3));
  EXPECT_NE(ledger(3), ledger(4));
}

TEST(Impair, ACounterResetStartsAgainAtZero) {
  ImpairConfig config;
  config.reset_at = 3;
  std::vector<std::uint64_t> ticks;
  Impairer impairer(
      config, [&](std::span<const std::byte>, const LedgerRecord& r) { ticks.push_back(r.tick); });
  for (Tick i = 0; i < 6; ++i) impairer.offer(pattern_datagram(0, 1000 + i * 8, 8));
  EXPECT_EQ(ticks, (std::vector<std::uint64_t>{1000, 1008, 1016, 0, 8, 16}));
}

std::uint64_t row_key(const std::byte* row) {
  std::uint64_t key = 0;
  for (int i = 0; i < 4; ++i) {
    std::uint64_t word;
    std::memcpy(&word, row + 8 * i, 8);
    key = combine(key, word);
  }
  return key;
}

// What a mwa32t-udp datagram is, by the table of ingest.md 2.1 alone. Returns the reason when it is
// refused.
std::string model_decode(std::span<const std::byte> bytes, std::uint32_t n, int n_streams,
                         test::ModelAssembler::Packet& packet) {
  const auto be = [&](std::size_t at, std::size_t size) {
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < size; ++i)
      v = v * 256 + std::to_integer<std::uint64_t>(bytes[at + i]);
    return v;
  };
  if (bytes.size() < 16) return "too_short";
  if (be(0, 4) != 0x4D573332) return "magic";
  if (be(4, 1) != 1) return "version";
  if (be(6, 2) != n) return "length";
  if (bytes.size() < 16 + 32 * std::size_t{n}) return "too_short";
  if (bytes.size() > 16 + 32 * std::size_t{n}) return "too_long";
  if (be(5, 1) >= static_cast<std::uint64_t>(n_streams)) return "foreign_stream";
  packet.stream = static_cast<int>(be(5, 1));
  packet.raw = be(8, 8);
  packet.bits = 64;
  packet.values.clear();
  for (std::uint32_t t = 0; t < n; ++t)
    packet.values.push_back(row_key(bytes.data() + 16 + 32 * t));
  return "";
}

// The whole way over real sockets: relay -> kernel -> source; the relay's output also goes to the
// model. Every counter and every bit of every mask must agree, and every row that is present must
// be the one that was sent.
TEST(Impair, SourceBehindTheRelayAgreesWithTheModelOnEveryCounterAndBit) {
  constexpr std::uint32_t kInstants = 16;
  constexpr int kStreams = 3;
  Mwa32tSourceConfig config;
  // All receivers on one port: the order of the relay is then the order of arrival.
  const std::string endpoint = test::own_endpoint("udp");
  config.endpoints = {endpoint, endpoint, endpoint};
  config.geometry.n_instants = kInstants;
  config.chunk_ticks = 256;
  config.n_chunks = 400;  // all of the run: the consumer comes afterwards
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  config.close_after_ns = config.idle_close_ns = config.patience_ns = std::int64_t{1} << 60;
  Mwa32tSource source(config);
  source.poison(std::byte{0xA5});
  source.start();

  // The model hears the same, in the order of the ledger: an impairer with the same seed and input.
  const auto a_date = [](std::int64_t slot) {  // from 1961 to 2200
    const double unix_s = static_cast<double>(slot) / 1.28e6;
    return unix_s > -9 * 365.25 * 86400 && unix_s < 230 * 365.25 * 86400;
  };
  test::ModelAssembler model(
      {kStreams, config.chunk_ticks, config.window_chunks, kInstants, 256, a_date});
  std::uint64_t n_out = 0;
  Impairer twin(everything(99), [&](std::span<const std::byte> bytes, const LedgerRecord& record) {
    ++n_out;
    test::ModelAssembler::Packet packet;
    const std::string reason = model_decode(bytes, kInstants, kStreams, packet);
    if (!reason.empty()) {
      ++model.received;
      ++model.counters[reason];
      return;
    }
    packet.sender = record.action == ImpairAction::foreign_sender ? 2 : 1;
    model.offer(packet, 0);
  });
  {
    simulate::ImpairRelay relay(everything(99), test::own_host(), parse_endpoint(endpoint).port);
    test::Sender sender("udp://127.0.0.1:" + std::to_string(relay.in_port()));
    for (Tick tick = 5000; tick < 5000 + 256 * 90; tick += kInstants) {
      for (std::uint32_t r = 0; r < kStreams; ++r) {
        const auto datagram = pattern_datagram(r, tick, kInstants);
        sender.send_datagram(datagram);
        twin.offer(datagram);
      }
      if (tick % 1024 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    twin.flush();
    relay.stop();
    ASSERT_EQ(relay.ledger().size(), twin.ledger().size());
  }
  ASSERT_TRUE(test::RunningSource::wait_until([&] { return source.counters().received >= n_out; }));
  source.stop();
  model.finish();

  std::size_t i = 0;
  while (!source.ended()) {
    Chunk* chunk = source.next(std::chrono::milliseconds(100));
    if (chunk == nullptr) continue;
    ASSERT_LT(i, model.closed.size());
    const auto& m = model.closed[i++];
    ASSERT_EQ(chunk->first_tick, m.first_slot);
    ASSERT_EQ(chunk->n_ticks, m.n_slots);
    std::set<std::pair<int, Tick>> absent;
    for (const auto& span : chunk->absent) {
      for (Tick t = span.begin; t < span.end; ++t) {
        if (span.input % 16 == 0) absent.insert({static_cast<int>(span.input / 16), t});
      }
    }
    ASSERT_EQ(absent.size() + m.values.size(), static_cast<std::size_t>(m.n_slots * kStreams));
    const std::uint64_t zero = row_key(std::vector<std::byte>(32).data());
    for (Tick t = 0; t < m.n_slots; ++t) {
      for (int s = 0; s < kStreams; ++s) {
        const auto found = m.values.find({s, m.first_slot + t});
        const auto got = row_key(chunk->payload.data() + (t * kStreams + s) * 32);
        ASSERT_EQ(got, found == m.values.end() ? zero : found->second)
            << "stream " << s << " tick " << t;
      }
    }
    source.release(chunk);
  }
  EXPECT_EQ(i, model.closed.size());
  const auto counters = source.counters();
  EXPECT_EQ(counters.kernel_drops, 0u);
  EXPECT_EQ(counters.received, model.received);
  EXPECT_EQ(counters.used, model.counters["used"]);
  for (const auto& [reason, n] : counters.rejected) EXPECT_EQ(n, model.counters[reason]) << reason;
  EXPECT_EQ(counters.balance(), 0);
  // The run had everything in it.
  for (const char* reason : {"late", "future", "duplicate", "magic", "version", "length",
                             "too_short", "too_long", "foreign_stream", "foreign_sender"}) {
    EXPECT_GT(model.counters[reason], 0u) << reason;
  }
}

}  // namespace
}  // namespace ryle
