// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/spead_source.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <thread>
#include <tuple>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/wire/spead.hpp"
#include "tests/ingest/loopback.hpp"

namespace ryle {
namespace {

using test::Sender;
using wire::SpeadPacket;

/// Two F-engines, six channels from number 40 in heaps of three, 64 spectra a heap of 16 ticks
/// each.
SpeadSourceConfig small_spead() {
  SpeadSourceConfig c;
  c.endpoints = {"udp://127.0.0.1:0"};
  c.n_fengines = 2;
  c.first_channel = 40;
  c.n_channels = 6;
  c.channels_per_heap = 3;
  c.spectra_per_heap = 64;
  c.ticks_per_spectrum = 16;
  c.channel_width_hz = 1e6;
  c.clock = {1'000'000'000, {1'000'000, 1}};
  c.chunk_spectra = 128;
  c.n_chunks = 40;
  c.memory = MemorySpace::host;
  c.allow_small_rcvbuf = true;
  c.close_after_ns = c.idle_close_ns = std::int64_t{1} << 60;
  return c;
}

/// Byte of a sample, never 0: part 0 is re, 1 im.
std::uint8_t part_of(std::int64_t spectrum, std::int64_t channel, std::int64_t input, int part) {
  return static_cast<std::uint8_t>(
      1 + combine(static_cast<std::uint64_t>(spectrum * 1000 + channel),
                  static_cast<std::uint64_t>(input), static_cast<std::uint64_t>(part)) %
              255);
}

/// How a heap is cut and told.
struct HeapForm {
  std::size_t payload = 256;
  bool repeat_items = true;          ///< else only the first packet has them
  bool addressed_timestamp = false;  ///< in eight bytes before the samples
  std::uint32_t raw_id = wire::kSpeadFengRaw;
  std::uint64_t tick_offset = 0;
  int timestamp_bytes = 8;  ///< where it has an address: samples begin behind it
};

std::vector<std::vector<std::byte>> heap_packets(const SpeadSourceConfig& c, std::int64_t heap,
                                                 std::int64_t block, std::int64_t feng,
                                                 const HeapForm& form = {}) {
  std::vector<std::byte> bytes;
  const auto timestamp =
      static_cast<std::uint64_t>(heap * c.spectra_per_heap * c.ticks_per_spectrum) +
      form.tick_offset;
  if (form.addressed_timestamp)
    for (int k = form.timestamp_bytes - 1; k >= 0; --k)
      bytes.push_back(static_cast<std::byte>(timestamp >> 8 * k));
  const std::uint64_t raw_at = bytes.size();
  const std::int64_t first = c.first_channel + block * c.heap_channels();
  for (std::int64_t k = 0; k < c.heap_channels(); ++k)
    for (std::int64_t t = 0; t < c.spectra_per_heap; ++t)
      for (int pol = 0; pol < 2; ++pol)
        for (int part = 0; part < 2; ++part)
          bytes.push_back(static_cast<std::byte>(
              part_of(heap * c.spectra_per_heap + t, first + k, 2 * feng + pol, part)));
  std::vector<std::vector<std::byte>> packets;
  for (std::size_t at = 0; at < bytes.size(); at += form.payload) {
    SpeadPacket p;
    p.heap_counter = static_cast<std::uint64_t>(heap * 100 + block * 10 + feng);
    p.heap_bytes = bytes.size();
    p.offset = at;
    p.payload_bytes = std::min(form.payload, bytes.size() - at);
    if (form.repeat_items || at == 0) {  // in another order than MeerKAT's
      p.items[p.n_items++] = {form.raw_id, false, raw_at};
      p.items[p.n_items++] = {wire::kSpeadFrequency, true, static_cast<std::uint64_t>(first)};
      p.items[p.n_items++] = {0x77, true, 5};  // of somebody else
      p.items[p.n_items++] = {wire::kSpeadTimestamp, !form.addressed_timestamp,
                              form.addressed_timestamp ? 0 : timestamp};
      p.items[p.n_items++] = {wire::kSpeadFengId, true, static_cast<std::uint64_t>(feng)};
    }
    std::vector<std::byte> packet(wire::spead_header_bytes(p.n_items));
    wire::write_spead_header(p, packet);
    packet.insert(packet.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at),
                  bytes.begin() + static_cast<std::ptrdiff_t>(at + p.payload_bytes));
    packets.push_back(std::move(packet));
  }
  return packets;
}

/// A running source whose consumer compares every sample and mask bit with the pattern; what is
/// absent is counted by (channel, input).
class RunningSpead {
 public:
  explicit RunningSpead(const SpeadSourceConfig& config) : source_(config) {
    source_.poison(std::byte{0xA5});
    source_.start();
    consumer_ = std::thread([this] {
      SpectraBlocks spectra(source_.shape());
      while (!source_.ended()) {
        Chunk* chunk = source_.next(std::chrono::milliseconds(20));
        if (chunk == nullptr) continue;
        std::ranges::fill(spectra.bytes.span(), std::byte{0x5A});
        source_.unpack(*chunk, spectra);
        epoch_tai_ns_ = source_.clock(chunk->segment).epoch_tai_ns;
        source_.release(chunk);
        check(spectra);
      }
    });
  }
  ~RunningSpead() { stop(); }
  void stop() {
    source_.stop();
    if (consumer_.joinable()) consumer_.join();
  }
  bool wait_all(std::uint64_t n) {
    for (int i = 0; i < 20'000 && source_.counters().received < n; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return source_.counters().received >= n;
  }
  SpeadSource& source() { return source_; }
  std::int64_t wrong() const { return wrong_; }
  std::int64_t spectra() const { return spectra_; }
  std::int64_t absent() const { return absent_; }
  std::int64_t epoch_tai_ns() const { return epoch_tai_ns_; }

 private:
  void check(const SpectraBlocks& spectra) {
    const auto& c = source_.config();
    const BlockView blocks = spectra.blocks();
    spectra_ += spectra.n_spectra;
    for (std::int64_t k = 0; k < c.n_channels; ++k) {
      for (std::int64_t i = 0; i < 2 * c.n_fengines; ++i) {
        const std::uint64_t* row = spectra.mask.bits.data() +
                                   k * spectra.mask.channel_stride_words + i * spectra.mask.words;
        for (std::int64_t t = 0; t < blocks.n_blocks * 64; ++t) {
          const bool present = t < spectra.n_spectra && test_bit(row, t);
          if (t < spectra.n_spectra && !present) ++absent_;
          const cf64 got = get_sample(blocks, k, t, i);
          const std::int64_t spectrum = spectra.first_spectrum + t;
          const auto part = [&](int which) {
            const auto byte = part_of(spectrum, c.first_channel + k, i, which);
            return present ? static_cast<double>(static_cast<std::int8_t>(byte)) : 0.0;
          };
          wrong_ += got != cf64(part(0), part(1));
        }
      }
    }
    wrong_ += spectra.complete != (absent_ == absent_before_);
    absent_before_ = absent_;
  }

  SpeadSource source_;
  std::int64_t wrong_ = 0, spectra_ = 0, absent_ = 0, absent_before_ = 0, epoch_tai_ns_ = 0;
  std::thread consumer_;
};

constexpr std::int64_t kHeaps = 9, kFirstHeap = 1000;

/// Packets of all heaps in time order.
std::vector<std::vector<std::byte>> stream_of(const SpeadSourceConfig& c,
                                              const HeapForm& form = {}) {
  std::vector<std::vector<std::byte>> all;
  for (std::int64_t heap = kFirstHeap; heap < kFirstHeap + kHeaps; ++heap)
    for (std::int64_t block = 0; block < c.n_channels / c.heap_channels(); ++block)
      for (std::int64_t feng = 0; feng < c.n_fengines; ++feng)
        for (auto& packet : heap_packets(c, heap, block, feng, form))
          all.push_back(std::move(packet));
  return all;
}

TEST(SpeadSource, EverySampleLandsInItsPlaceHoweverHeapsAreCutAndTold) {
  for (const auto& form :
       {HeapForm{}, HeapForm{8192}, HeapForm{104}, HeapForm{256, false}, HeapForm{256, true, true},
        HeapForm{256, false, true}, HeapForm{104, true, true, wire::kSpeadFengRaw, 0, 5},
        HeapForm{256, true, false, wire::kSpeadFengRaw, 24}}) {
    RunningSpead running(small_spead());
    Sender sender(running.source().endpoints()[0]);
    const auto packets = stream_of(small_spead(), form);
    for (const auto& packet : packets) sender.send_datagram(packet);
    ASSERT_TRUE(running.wait_all(packets.size()))
        << form.payload << form.repeat_items << form.addressed_timestamp << " "
        << running.source().counters().received << " of " << packets.size() << " "
        << running.source().counters().kernel_drops;
    running.stop();
    const auto c = running.source().counters();
    EXPECT_EQ(c.used, packets.size());
    EXPECT_EQ(c.balance(), 0);
    EXPECT_EQ(running.wrong(), 0);
    EXPECT_EQ(running.absent(), 0);
    EXPECT_EQ(running.spectra(), kHeaps * 64);
    EXPECT_EQ(c.notes, std::vector<std::string>{});
    // Where the grid of the timestamps lies goes into the clock: 24 of 16 ticks a microsecond.
    EXPECT_EQ(running.epoch_tai_ns(), 1'000'000'000 + (form.tick_offset > 0 ? 1500 : 0));
  }
}

TEST(SpeadSource, LostPacketsCostTheirSamplesAloneInAnyOrder) {
  const auto config = small_spead();
  for (const bool repeat : {true, false}) {
    auto packets = stream_of(config, HeapForm{104, repeat});
    std::mt19937 random(3);
    std::int64_t lost_bytes = 0;
    std::vector<std::vector<std::byte>> sent;
    for (const auto& packet : packets) {
      const bool last_heap = sent.size() + 100 > packets.size();
      const bool items = packet.size() > 104 + 8 * 5;
      if (random() % 7 == 0 && !last_heap && (repeat || !items)) {
        lost_bytes +=
            static_cast<std::int64_t>(packet.size() - wire::spead_header_bytes(repeat ? 5 : 0));
      } else {
        sent.push_back(packet);
      }
    }
    // Within the window: by up to half a heap.
    for (std::size_t k = 16; k + 16 < sent.size(); k += 16)
      std::shuffle(sent.begin() + static_cast<std::ptrdiff_t>(k),
                   sent.begin() + static_cast<std::ptrdiff_t>(k + 16), random);
    RunningSpead running(config);
    Sender sender(running.source().endpoints()[0]);
    for (const auto& packet : sent) sender.send_datagram(packet);
    ASSERT_TRUE(running.wait_all(sent.size()));
    running.stop();
    const auto c = running.source().counters();
    EXPECT_EQ(c.used, sent.size());
    EXPECT_EQ(running.wrong(), 0);
    EXPECT_EQ(running.absent(), lost_bytes / 2);  // values of (channel, input, spectrum)
    EXPECT_EQ(c.lost_samples, static_cast<std::uint64_t>(lost_bytes / 2));
  }
}

// The last packets of every heap of the last time never come: the end is that of the heap all the
// same, and the rest of it is absent.
TEST(SpeadSource, AStreamThatEndsWithinHeapsEndsWithWholeOnes) {
  const auto config = small_spead();
  RunningSpead running(config);
  Sender sender(running.source().endpoints()[0]);
  std::uint64_t n = 0;
  for (std::int64_t heap = kFirstHeap; heap < kFirstHeap + 3; ++heap) {
    for (std::int64_t stream = 0; stream < config.n_streams(); ++stream) {
      auto packets = heap_packets(config, heap, stream / 2, stream % 2);
      if (heap == kFirstHeap + 2) packets.pop_back();
      for (const auto& packet : packets) sender.send_datagram(packet);
      n += packets.size();
    }
  }
  ASSERT_TRUE(running.wait_all(n));
  running.stop();
  EXPECT_EQ(running.spectra(), 3 * 64);
  EXPECT_EQ(running.absent(), 4 * 256 / 2);
  EXPECT_EQ(running.wrong(), 0);
}

TEST(SpeadSource, WhatDoesNotBelongIsCountedByItsReason) {
  const auto config = small_spead();
  RunningSpead running(config);
  Sender sender(running.source().endpoints()[0]);
  const auto packets = stream_of(config);
  for (const auto& packet : packets) sender.send_datagram(packet);
  std::uint64_t n = packets.size();
  ASSERT_TRUE(running.wait_all(n));
  const auto send = [&](const std::vector<std::byte>& bytes) {
    sender.send_datagram(bytes);
    ASSERT_TRUE(running.wait_all(++n));
  };
  auto other = config;
  other.first_channel = 41;
  send(heap_packets(other, kFirstHeap, 0, 0)[0]);   // between the blocks of channels
  send(heap_packets(config, kFirstHeap, 2, 0)[0]);  // above the band
  send(heap_packets(config, kFirstHeap, 0, 2)[0]);  // an F-engine too many
  other = config;
  other.spectra_per_heap = 32;
  send(heap_packets(other, kFirstHeap, 0, 0)[0]);
  send(heap_packets(config, kFirstHeap, 0, 0,
                    HeapForm{256, true, false, wire::kSpeadFengRaw, 7})[0]);
  SpeadPacket stop;
  stop.items[stop.n_items++] = {wire::kSpeadControl, true, wire::kSpeadStop};
  std::vector<std::byte> bytes(wire::spead_header_bytes(1));
  wire::write_spead_header(stop, bytes);
  send(bytes);
  send({bytes.begin(), bytes.begin() + 7});
  // Its heap's items never come.
  sender.send_datagram(heap_packets(config, kFirstHeap + 50, 0, 0, HeapForm{256, false})[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  running.stop();
  const auto c = running.source().counters();
  EXPECT_EQ(c.rejected.at("foreign_stream"), 3u);
  EXPECT_EQ(c.rejected.at("length"), 1u);
  EXPECT_EQ(c.rejected.at("field"), 2u);
  EXPECT_EQ(c.rejected.at("control"), 1u);
  EXPECT_EQ(c.rejected.at("too_short"), 1u);
  EXPECT_EQ(c.balance(), 0);
  EXPECT_EQ(running.wrong(), 0);
}

TEST(SpeadSource, DescriptorsTellOtherNumbersAndWrongSizes) {
  constexpr std::uint32_t kOwnRaw = 0x2222;
  for (const bool wrong_size : {false, true}) {
    const auto config = small_spead();
    const auto descriptor = wire::spead_descriptor(
        kOwnRaw, "feng_raw", "",
        wrong_size ? "{'descr': '|i1', 'fortran_order': False, 'shape': (3, 128, 2, 2)}"
                   : "{'descr': '|i1', 'fortran_order': False, 'shape': (3, 64, 2, 2)}");
    SpeadPacket p;
    p.heap_bytes = p.payload_bytes = descriptor.size();
    p.items[p.n_items++] = {wire::kSpeadDescriptor, false, 0};
    std::vector<std::byte> bytes(wire::spead_header_bytes(1));
    wire::write_spead_header(p, bytes);
    bytes.insert(bytes.end(), descriptor.begin(), descriptor.end());
    RunningSpead running(config);
    Sender sender(running.source().endpoints()[0]);
    sender.send_datagram(bytes);
    const auto packets = stream_of(config, HeapForm{256, true, false, kOwnRaw});
    for (const auto& packet : packets) sender.send_datagram(packet);
    ASSERT_TRUE(running.wait_all(packets.size() + 1));
    running.stop();
    const auto c = running.source().counters();
    EXPECT_EQ(c.used, packets.size());
    ASSERT_EQ(c.notes.size(), wrong_size ? 1u : 0u);
    if (wrong_size) {
      EXPECT_NE(c.notes[0].find("(3, 128, 2, 2)"), std::string::npos) << c.notes[0];
    }
  }
}

TEST(SpeadSource, WhatIsMissingIsNamed) {
  const auto message = [](auto change) {
    auto config = small_spead();
    change(config);
    try {
      const SpeadSource source(config);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_NE(message([](auto& c) { c.ticks_per_spectrum = 0; }).find("source.ticks_per_spectrum"),
            std::string::npos);
  EXPECT_NE(message([](auto& c) { c.channels_per_heap = 4; }).find("source.channels_per_packet"),
            std::string::npos);
  EXPECT_NE(message([](auto& c) { c.chunk_spectra = 96; }).find("96"), std::string::npos);
  EXPECT_NE(message([](auto& c) { c.endpoints = {"tcp://127.0.0.1:1"}; }).find("udp://"),
            std::string::npos);
}

}  // namespace
}  // namespace ryle
