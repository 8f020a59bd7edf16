// SPDX-License-Identifier: BSD-3-Clause
// T-DD-25: which packets a trigger asks for, what of them is written, what a slow or full disk
// costs, and that the pulse is found again in the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/ingest/line_server.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/beam/recorded_beams.hpp"
#include "ryle/pipeline/beam/voltage_ring.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/search/search_run.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/own_host.hpp"
#include "tests/support/search_database.hpp"

namespace ryle::pipeline {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kChannels = 16, kChunk = 1024, kPacket = 128, kPackets = kChunk / kPacket;
constexpr double kRate_hz = 19531.25;
constexpr std::int64_t kEpoch_tai_ns = 1'740'845'437'000'000'000;

VoltageShape shape(bool per_channel) {
  VoltageShape s;
  // The lowest band that keeps windows apart: 16 channels of 1 MHz at 401 to 416 MHz.
  s.frequency = {401e6, 1e6, kChannels};
  s.clock = {kEpoch_tai_ns, {78125, 4}};
  s.margin_s = 0.02;
  s.per_channel = per_channel;
  s.unit_ticks = kPacket;
  return s;
}

/// A pulse whose center is in the highest channel at `tick`, between samples.
DumpTrigger pulse_at(double tick, double dm = 100) {
  DumpTrigger t;
  t.tai_ns = kEpoch_tai_ns + std::llround(tick / kRate_hz * 1e9);
  t.dm_pc_cm3 = dm;
  t.dm_error = 0.5;
  t.width_s = 0.004;
  t.snr = 20;
  t.beam = "b";
  return t;
}

std::uint8_t sample(std::int64_t channel, Tick tick, std::int64_t antenna) {
  std::uint64_t x = static_cast<std::uint64_t>((channel * 100'000'000 + tick) * 32 + antenna);
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15u;
  return static_cast<std::uint8_t>(x >> 56);
}

bool lost(std::int64_t channel, Tick packet) { return (channel * 7 + packet * 13) % 10 == 0; }

/// A receiver without packets: its chunks, and those it has back.
class Feed {
 public:
  Feed(const VoltageRingConfig& config, std::int64_t n_chunks) : ring(config), chunks_(n_chunks) {
    for (auto& c : chunks_) {
      c.payload = Buffer<std::byte>(kChannels * kChunk * 32);
      free.push_back(&c);
    }
  }
  /// False when the receiver has no memory left: packets would be lost.
  bool next(bool fill, std::int64_t segment = 0) {
    if (free.empty()) return false;
    Chunk* c = free.front();
    free.erase(free.begin());
    c->first_tick = tick;
    c->n_ticks = kChunk;
    c->segment = segment;
    c->absent.clear();
    for (std::int64_t k = 0; k < kChannels; ++k) {
      for (std::int64_t p = 0; p < kPackets; ++p) {
        const Tick at = tick + p * kPacket;
        std::byte* packet = c->payload.data() + (k * kPackets + p) * kPacket * 32;
        if (lost(k, at / kPacket)) {
          std::fill_n(packet, kPacket * 32, std::byte{0});
          c->absent.push_back({k, at, at + kPacket});
        } else if (fill) {
          for (std::int64_t t = 0; t < kPacket; ++t)
            for (std::int64_t a = 0; a < 32; ++a)
              packet[a / 2 * 256 + 2 * t + a % 2] = std::byte{sample(k, at + t, a)};
        }
      }
    }
    tick += kChunk;
    std::vector<Chunk*> back;
    ring.take(c, shape(false).clock, back);
    for (Chunk* b : back) {
      std::ranges::fill(b->payload.span(), std::byte{0xA5});
      free.push_back(b);
    }
    return true;
  }
  RunSummary finish() {
    RunSummary summary;
    ring.finish(summary);
    return summary;
  }

  VoltageRing ring;
  std::vector<Chunk*> free;
  Tick tick = 0;

 private:
  std::vector<Chunk> chunks_;
};

VoltageRingConfig ring_config(const test::Scratch& scratch, bool per_channel,
                              std::int64_t n_chunks = 12) {
  VoltageRingConfig c;
  c.shape = shape(per_channel);
  c.n_chunks = n_chunks;
  c.chunks.form.n_rows = kChannels;
  c.chunks.form.n_inputs = 32;
  c.chunks.chunk_ticks = kChunk;
  for (std::int64_t a = 0; a < 32; ++a) c.input_line.push_back((a * 5 + 3) % 32);
  c.path_stem = scratch / "t_voltages";
  return c;
}

// Every packet that overlaps t_c -+ h_c and, in the shortest of the windows, no other.
TEST(VoltageWindow, IsThatOfTheFormula) {
  for (const double tick : {5000.0, 4999.75, 128.5, -3000.3, 4'000'000'123.4}) {
    const DumpTrigger t = pulse_at(tick, 300);
    const VoltageWindow by_channel = voltage_window(shape(true), t);
    const VoltageWindow band = voltage_window(shape(false), t);
    const double exact = static_cast<double>(t.tai_ns - kEpoch_tai_ns) * 1e-9 * kRate_hz;
    std::int64_t longest = 0;
    Tick begin = INT64_MAX, end = INT64_MIN;
    for (std::int64_t c = 0; c < kChannels; ++c) {
      const double mhz = 401.0 + static_cast<double>(c);
      const double x = 1 / (mhz * mhz) - 1 / (416.0 * 416.0);
      const double center = exact + 4148.8064 * 300 * x * kRate_hz;
      const double half = (0.002 + 0.02 + 4148.8064 * 0.5 * x) * kRate_hz;
      const auto first = static_cast<Tick>(std::floor((center - half) / 128)) * 128;
      EXPECT_EQ(by_channel.first[static_cast<std::size_t>(c)], first) << tick << " " << c;
      const auto last = static_cast<Tick>(std::ceil((center + half) / 128)) * 128;
      longest = std::max(longest, (last - first) / 128);
      begin = std::min(begin, first);
      end = std::max(end, last);
      EXPECT_EQ(band.first[static_cast<std::size_t>(c)], band.begin());
    }
    EXPECT_EQ(by_channel.n_ticks, longest * kPacket);
    EXPECT_EQ(band.begin(), begin);
    EXPECT_EQ(band.end(), end);
    EXPECT_LT(by_channel.n_ticks * 3, band.n_ticks);
  }
}

// Two dumps of one stream whose samples have their parts in another order.
TEST(VoltageDump, FilesOfOtherCodesAreNoRecordingTogether) {
  const test::Scratch scratch;
  std::vector<std::string> paths;
  for (const bool imag_first : {false, true}) {
    VoltageDumpInfo info;
    info.telescope = "t";
    info.form.content = VoltageForm::Content::samples;
    info.form.n_rows = 1;
    info.form.n_inputs = 2;
    info.form.layout.format = SampleFormat::ci4;
    info.form.layout.imag_first = imag_first;
    info.form.layout.input_stride_bits = 8;
    info.form.layout.sample_stride_bits = 16;
    info.frequency = {100e6, 1e6, 4};
    info.clock = shape(false).clock;
    info.first_tick = {imag_first ? 16 : 0};
    info.n_units = 16;
    info.input_line = {0, 1};
    paths.push_back(scratch / (imag_first ? "b.h5" : "a.h5"));
    VoltageDumpWriter writer(paths.back(), info, false);
    const std::vector<std::byte> bytes(16 * 2);
    writer.write(0, 1, 0, 16, bytes.data(), 16);
    writer.finish({}, {});
  }
  try {
    open_recordings(paths, "auto");
    FAIL();
  } catch (const FormatError& e) {
    EXPECT_THAT(e.what(), HasSubstr("real part first"));
    EXPECT_THAT(e.what(), HasSubstr("imaginary part first"));
  }
}

// A channel at 0 Hz has no delay of its own; of those above the lowest tells how long a window is.
TEST(VoltageWindow, OfABandFromZeroIsFinite) {
  VoltageShape from_zero = shape(false);
  from_zero.frequency = {0, 25e6, kChannels};
  EXPECT_NEAR(voltage_window_s(from_zero, 0, 0, 0.004), 0.044, 1e-12);
  const double x = 1 / (25.0 * 25.0) - 1 / (375.0 * 375.0);
  EXPECT_NEAR(voltage_window_s(from_zero, 2, 0.5, 0.004), 0.044 + 3 * 4148.8064 * x, 1e-9);
  const VoltageWindow window = voltage_window(from_zero, pulse_at(50'000, 2));
  EXPECT_GT(window.end() - window.begin(), 2 * 4148 * x * kRate_hz);
  EXPECT_LT(window.end() - window.begin(), 3.1 * 4148 * x * kRate_hz + 0.1 * kRate_hz);
}

// The search of finer channels tells times at the highest of those, above the highest received.
TEST(VoltageWindow, FollowsTheFrequencyOfTheTrigger) {
  VoltageShape fine = shape(true);
  fine.reference_hz = 416.5e6;
  const DumpTrigger there = pulse_at(5000, 300);
  DumpTrigger here = there;  // the same pulse, told at the highest received channel
  here.tai_ns += std::llround(4148.8064e9 * 300 * (1 / (416.0 * 416.0) - 1 / (416.5 * 416.5)));
  here.dm_error = 0;
  DumpTrigger exact = there;
  exact.dm_error = 0;
  EXPECT_EQ(voltage_window(fine, exact).first, voltage_window(shape(true), here).first);
}

/// Reads a dump as any recording and compares it with what was sent.
void expect_dump(const std::string& path, const VoltageWindow& window, Tick first_kept) {
  const auto recording = open_recording(path, "auto");
  const auto& info = recording->info();
  ASSERT_EQ(info.format, "voltages");
  ASSERT_EQ(info.n_inputs, 32);
  ASSERT_EQ(info.n_ticks, window.end() - window.begin());
  EXPECT_EQ(info.clock.epoch_tai_ns, shape(false).clock.tai_ns(window.begin()));
  std::vector<ci8> spectra(static_cast<std::size_t>(kChannels * 32 * 200));
  std::vector<AbsentSpan> absent;
  std::vector<ChannelGap> gaps;
  std::int64_t wrong = 0, marked_wrong = 0;
  for (Tick first = 0; first < info.n_ticks; first += 200) {  // across packets
    const std::int64_t n = std::min<std::int64_t>(200, info.n_ticks - first);
    absent.clear();
    gaps.clear();
    recording->read_spectra(first, n, spectra, absent, nullptr, &gaps);
    std::vector<std::uint8_t> gone(static_cast<std::size_t>(n * kChannels));
    for (const auto& g : gaps)
      for (Tick t = g.begin; t < g.end; ++t)
        for (std::int64_t c = g.channel_begin; c < g.channel_end; ++c)
          gone[static_cast<std::size_t>((t - first) * kChannels + c)] = 1;
    for (const auto& a : absent)
      for (Tick t = a.begin; t < a.end; ++t)
        for (std::int64_t c = 0; c < kChannels; ++c)
          gone[static_cast<std::size_t>((t - first) * kChannels + c)] = 1;
    for (Tick t = 0; t < n; ++t) {
      const Tick tick = window.begin() + first + t;
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const Tick from = window.first[static_cast<std::size_t>(c)];
        const bool there = tick >= from && tick < from + window.n_ticks && tick >= first_kept &&
                           !lost(c, tick / kPacket);
        marked_wrong += gone[static_cast<std::size_t>(t * kChannels + c)] == (there ? 1 : 0);
        for (std::int64_t a = 0; a < 32; ++a) {
          const std::uint8_t byte = there ? sample(c, tick, a) : 0;
          const ci8 got =
              spectra[static_cast<std::size_t>((t * kChannels + c) * 32 + (a * 5 + 3) % 32)];
          wrong += got.re != ((byte >> 4) ^ 8) - 8 || got.im != ((byte & 15) ^ 8) - 8;
        }
      }
    }
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(marked_wrong, 0);
}

// Memory is used again lap after lap, every tenth packet is missing.
TEST(VoltageRing, WritesExactlyWhatWasThere) {
  for (const bool per_channel : {false, true}) {
    const test::Scratch scratch;
    const auto config = ring_config(scratch, per_channel);
    Feed feed(config, 16);
    for (int k = 0; k < 40; ++k) ASSERT_TRUE(feed.next(k >= 28)) << k;
    const DumpTrigger late = pulse_at(static_cast<double>(feed.tick) - 4000.3, 60);
    ASSERT_EQ(feed.ring.trigger(late), TriggerResult::accepted);
    // Not all of it is there yet.
    const DumpTrigger waits = pulse_at(static_cast<double>(feed.tick) - 20.7, 60);
    ASSERT_EQ(feed.ring.trigger(waits), TriggerResult::accepted);
    for (int k = 0; k < 10; ++k) {
      while (feed.free.empty()) std::this_thread::yield();
      ASSERT_TRUE(feed.next(true));
    }
    const RunSummary summary = feed.finish();
    EXPECT_EQ(summary.products.size(), 2U);
    EXPECT_TRUE(summary.warnings.empty()) << summary.warnings.front();
    EXPECT_THAT(scratch.names(),
                testing::ElementsAre("t_voltages_00001.h5", "t_voltages_00002.h5"));
    EXPECT_EQ(summary.voltages->dumps, 2);
    expect_dump(scratch / "t_voltages_00001.h5", voltage_window(config.shape, late), 0);
    expect_dump(scratch / "t_voltages_00002.h5", voltage_window(config.shape, waits), 0);
  }
}

TEST(VoltageRing, WhatHasLeftItIsSaid) {
  const test::Scratch scratch;
  const auto config = ring_config(scratch, false);
  Feed feed(config, 16);
  EXPECT_EQ(feed.ring.trigger(pulse_at(0)), TriggerResult::rejected);  // nothing came yet
  for (int k = 0; k < 40; ++k) ASSERT_TRUE(feed.next(k >= 28));
  const auto rejected = [&](const DumpTrigger& t) {
    EXPECT_EQ(feed.ring.trigger(t), TriggerResult::rejected);
  };
  DumpTrigger wrong = pulse_at(30000);
  wrong.tai_ns = 0;  // 1970
  rejected(wrong);
  wrong.tai_ns = std::int64_t{4'000'000'000} * 1'000'000'000;  // 2096
  rejected(wrong);
  rejected(pulse_at(static_cast<double>(feed.tick) + 2));  // 0.1 ms ahead
  rejected(pulse_at(30000, 1e9));
  rejected(pulse_at(30000, std::nan("")));
  rejected(pulse_at(30000, -1));
  const Tick first_kept = feed.tick - 12 * kChunk;
  rejected(pulse_at(static_cast<double>(first_kept) - 3000, 10));
  EXPECT_THAT(feed.ring.messages(), testing::ElementsAre(HasSubstr("(8 times)")));
  // The pulse is there, its beginning is not.
  const DumpTrigger partial = pulse_at(static_cast<double>(first_kept) + 100.5, 60);
  ASSERT_EQ(feed.ring.trigger(partial), TriggerResult::accepted);
  const RunSummary summary = feed.finish();
  EXPECT_EQ(summary.voltages->partial, 1);
  const VoltageRecords records = feed.ring.take_records();
  ASSERT_EQ(records.dumps.size(), 1U);
  EXPECT_EQ(records.dumps.front().left_s,
            config.shape.clock.seconds(first_kept - voltage_window(config.shape, partial).begin()));
  EXPECT_THAT(summary.warnings.back(), HasSubstr("had left the ring"));
  EXPECT_THAT(summary.warnings.back(), HasSubstr("voltages.ring_s = 0.8"));
  expect_dump(scratch / "t_voltages_00001.h5", voltage_window(config.shape, partial), first_kept);
}

// Another telescope sees a pulse before it sweeps down to this band.
TEST(VoltageRing, OthersMayAskForWhatIsStillToCome) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false);
  config.ahead_s = 0.2;
  Feed feed(config, 16);
  for (int k = 0; k < 4; ++k) ASSERT_TRUE(feed.next(true));
  const DumpTrigger ahead = pulse_at(static_cast<double>(feed.tick) + 2500.3, 20);  // 0.128 s
  TriggerReply reply;
  DumpTrigger own = ahead;
  own.event = 5;  // of the search: what it found lies in the past
  EXPECT_EQ(feed.ring.trigger(own, &reply), TriggerResult::rejected);
  EXPECT_THAT(reply.message, HasSubstr("in the future"));
  EXPECT_EQ(reply.dump, 0);
  EXPECT_EQ(feed.ring.trigger(pulse_at(static_cast<double>(feed.tick) + 4000, 20)),
            TriggerResult::rejected);
  ASSERT_EQ(feed.ring.trigger(ahead, &reply), TriggerResult::accepted);
  EXPECT_EQ(reply.dump, 1);
  EXPECT_EQ(feed.ring.trigger(pulse_at(static_cast<double>(feed.tick) + 2500.3, 20), &reply),
            TriggerResult::merged);
  EXPECT_EQ(reply.dump, 1);
  for (int k = 0; k < 6; ++k) ASSERT_TRUE(feed.next(true));
  // The data end before this one.
  const DumpTrigger never = pulse_at(static_cast<double>(feed.tick) + 3000, 0);
  ASSERT_EQ(feed.ring.trigger(never, &reply), TriggerResult::accepted);
  EXPECT_EQ(reply.dump, 2);
  const RunSummary summary = feed.finish();
  EXPECT_EQ(summary.voltages->dumps, 1);
  EXPECT_EQ(summary.voltages->failed, 1);
  EXPECT_THAT(summary.warnings, testing::Contains(HasSubstr("the data ended before")));
  expect_dump(scratch / "t_voltages_00001.h5", voltage_window(config.shape, ahead), 0);
  EXPECT_EQ(scratch.names().size(), 1U);

  const VoltageRecords records = feed.ring.take_records();
  std::vector<std::string> results;
  for (const auto& t : records.triggers) results.push_back(t.result);
  EXPECT_THAT(results,
              testing::ElementsAre("refused", "refused", "accepted", "merged", "accepted"));
  EXPECT_EQ(records.triggers[0].trigger.event, 5);
  EXPECT_EQ(records.triggers[3].dump, 1);
  ASSERT_EQ(records.dumps.size(), 2U);
  const VoltageWindow window = voltage_window(config.shape, ahead);
  const DumpRecord& d = records.dumps.front();
  EXPECT_EQ(d.number, 1);
  EXPECT_EQ(d.file, "t_voltages_00001.h5");
  EXPECT_EQ(d.begin_tai_ns, config.shape.clock.tai_ns(window.begin()));
  EXPECT_EQ(d.end_tai_ns, config.shape.clock.tai_ns(window.end()));
  EXPECT_EQ(d.packets, kChannels * window.n_ticks / kPacket);
  EXPECT_EQ(d.bytes, kChannels * window.n_ticks * 32);
  std::int64_t gone = 0;
  for (std::int64_t c = 0; c < kChannels; ++c)
    for (std::int64_t p = 0; p < window.n_ticks / kPacket; ++p)
      gone += lost(c, window.begin() / kPacket + p);
  EXPECT_EQ(d.absent_packets, gone);
  EXPECT_EQ(d.left_s, 0);
  EXPECT_DOUBLE_EQ(d.low_hz, 400.5e6);
  EXPECT_DOUBLE_EQ(d.high_hz, 416.5e6);
  EXPECT_EQ(records.dumps[1].number, 2);
  EXPECT_EQ(records.dumps[1].file, "");
  EXPECT_THAT(records.dumps[1].message, HasSubstr("the data ended before"));
}

// The sender starts again: what lies after its new beginning comes whole, what lies in the gap is
// said to be lost.
TEST(VoltageRing, WhatIsStillToComeOutlivesANewBeginning) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false);
  config.ahead_s = 10;
  Feed feed(config, 16);
  for (int k = 0; k < 4; ++k) ASSERT_TRUE(feed.next(true));
  const double head = static_cast<double>(feed.tick);
  const DumpTrigger in_gap = pulse_at(head + 1000.3, 0), after = pulse_at(head + 12000.3, 20);
  TriggerReply reply;
  ASSERT_EQ(feed.ring.trigger(in_gap, &reply), TriggerResult::accepted);
  ASSERT_EQ(feed.ring.trigger(after, &reply), TriggerResult::accepted);
  const Tick anew = feed.tick + 6 * kChunk;
  const DumpTrigger across = pulse_at(static_cast<double>(anew) + 100, 0);
  ASSERT_EQ(feed.ring.trigger(across, &reply), TriggerResult::accepted);
  feed.tick = anew;
  for (int k = 0; k < 10; ++k) ASSERT_TRUE(feed.next(true, 1));
  EXPECT_EQ(feed.ring.trigger(after, &reply), TriggerResult::merged);
  EXPECT_EQ(reply.dump, 2);
  const RunSummary summary = feed.finish();
  EXPECT_EQ(summary.voltages->dumps, 2);
  EXPECT_EQ(summary.voltages->failed, 1);
  EXPECT_EQ(summary.voltages->partial, 0);
  std::map<std::int64_t, DumpRecord> dumps;
  for (const auto& d : feed.ring.take_records().dumps) dumps[d.number] = d;
  ASSERT_EQ(dumps.size(), 3U);
  EXPECT_THAT(dumps[1].message, HasSubstr("began anew after it"));
  EXPECT_EQ(dumps[1].absent_packets, dumps[1].packets);
  for (const auto& [number, trigger] : {std::pair{2, after}, {3, across}}) {
    EXPECT_EQ(dumps[number].message, "");
    EXPECT_EQ(dumps[number].left_s, 0);  // of what the sender has sent
    expect_dump(scratch / dumps[number].file, voltage_window(config.shape, trigger), anew);
  }
}

// A sender that starts again with every chunk: the chunks kept are of more segments than dumps that
// are remembered.
TEST(VoltageRing, ManyRestartsLeaveOldChunksTheirClock) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false, 80);
  Feed feed(config, 84);
  for (int k = 0; k < 80; ++k) ASSERT_TRUE(feed.next(k == 3, k));
  EXPECT_EQ(feed.ring.trigger(pulse_at(3.5 * kChunk, 0)), TriggerResult::accepted);
  EXPECT_EQ(feed.finish().voltages->dumps, 1);
}

// A dump of what is still to come waits for data: it is no reason to reject one of half the ring.
TEST(VoltageRing, DumpsAskedAheadAreNoSlowDisk) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false);
  config.ahead_s = 10;
  Feed feed(config, 16);
  for (int k = 0; k < 12; ++k) ASSERT_TRUE(feed.next(true));
  const DumpTrigger ahead = pulse_at(static_cast<double>(feed.tick) + 2000.3, 0);
  const DumpTrigger wide = pulse_at(3000, 200);
  const VoltageWindow window = voltage_window(config.shape, wide);
  ASSERT_GT(window.end() - window.begin(), 7 * kChunk);
  ASSERT_LT(window.end(), feed.tick);
  ASSERT_EQ(feed.ring.trigger(ahead), TriggerResult::accepted);
  EXPECT_EQ(feed.ring.trigger(wide), TriggerResult::accepted);
  for (int k = 0; k < 4; ++k) ASSERT_TRUE(feed.next(true));
  const RunSummary summary = feed.finish();
  EXPECT_EQ(summary.voltages->dumps, 2);
  EXPECT_EQ(summary.voltages->dropped, 0);
  EXPECT_TRUE(summary.warnings.empty());
}

TEST(VoltageRing, OverlapsMergeAndLimitsHold) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false, 40);
  config.dumps_per_minute = 3;
  Feed feed(config, 44);
  for (int k = 0; k < 40; ++k) ASSERT_TRUE(feed.next(k >= 37));
  // Complete only later, so both are still to be written.
  const DumpTrigger a = pulse_at(static_cast<double>(feed.tick) - 900, 60);
  const DumpTrigger b = pulse_at(static_cast<double>(feed.tick) - 500, 80);
  ASSERT_EQ(feed.ring.trigger(a), TriggerResult::accepted);
  ASSERT_EQ(feed.ring.trigger(b), TriggerResult::merged);
  // A dump that waits for its data lists 1,000 triggers and counts the rest.
  for (int k = 0; k < 1'500; ++k) ASSERT_EQ(feed.ring.trigger(b), TriggerResult::merged);
  EXPECT_EQ(feed.ring.counts().unlisted, 502);
  // 1e4 triggers: nothing grows, nothing waits.
  std::int64_t merged = 0, limited = 0;
  for (int k = 0; k < 10'000; ++k) {
    const auto r = feed.ring.trigger(pulse_at(20000 - static_cast<double>(k % 2) * 8000, 20));
    merged += r == TriggerResult::merged;
    limited += r == TriggerResult::limited;
  }
  EXPECT_EQ(merged, 10'000 - 2);
  EXPECT_EQ(limited, 0);
  EXPECT_EQ(feed.ring.trigger(pulse_at(4000, 20)), TriggerResult::limited);
  for (int k = 0; k < 4; ++k) ASSERT_TRUE(feed.next(true));
  const RunSummary summary = feed.finish();
  EXPECT_EQ(summary.voltages->dumps, 3);
  EXPECT_EQ(summary.voltages->triggers, 11'503);
  EXPECT_EQ(feed.ring.take_records().triggers.size(), VoltageRing::kMaxRecords);
  EXPECT_GE(summary.voltages->unlisted, 502 + 10'000 - 2'000);
  EXPECT_THAT(summary.warnings, testing::ElementsAre(HasSubstr("voltages.per_minute"),
                                                     HasSubstr("lists 1000 of its triggers")));
  VoltageWindow both = voltage_window(config.shape, a);
  both.merge(voltage_window(config.shape, b));
  bool found = false;
  for (const auto& path : summary.products) {
    if (open_recording(path, "voltages")->info().n_ticks != both.end() - both.begin()) continue;
    found = true;
    expect_dump(path, both, 0);
  }
  EXPECT_TRUE(found);
}

// voltages.max_gib: one dump fits, a second does not, nor does one that would grow the first.
TEST(VoltageRing, KeepsWithinTheBytesOfARun) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false, 40);
  Feed feed(config, 44);
  for (int k = 0; k < 40; ++k) ASSERT_TRUE(feed.next(k >= 37));
  const DumpTrigger first = pulse_at(20000, 20);
  const VoltageWindow window = voltage_window(config.shape, first);
  config.path_stem = scratch / "limited";
  config.max_bytes = 1.5 * static_cast<double>(kChannels * window.n_ticks * 32);
  Feed limited(config, 44);
  for (int k = 0; k < 40; ++k) ASSERT_TRUE(limited.next(k >= 37));
  EXPECT_EQ(limited.ring.trigger(first), TriggerResult::accepted);
  EXPECT_EQ(limited.ring.trigger(pulse_at(12000, 20)), TriggerResult::limited);
  const RunSummary summary = limited.finish();
  EXPECT_EQ(summary.voltages->dumps, 1);
  EXPECT_THAT(summary.warnings, testing::ElementsAre(HasSubstr("voltages.max_gib")));
  // Without a limit both are written.
  EXPECT_EQ(feed.ring.trigger(first), TriggerResult::accepted);
  EXPECT_EQ(feed.ring.trigger(pulse_at(12000, 20)), TriggerResult::accepted);
  EXPECT_EQ(feed.finish().voltages->dumps, 2);
}

// Dumps end in another order than they were asked for, and names may be taken: who asks is told the
// number of the file.
TEST(VoltageRing, TheNumberThatIsToldIsThatOfTheFile) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false, 40);
  config.ahead_s = 2;
  std::ofstream(scratch / "t_voltages_00002.h5") << "of another run";
  Feed feed(config, 44);
  for (int k = 0; k < 8; ++k) ASSERT_TRUE(feed.next(true));
  const DumpTrigger late = pulse_at(static_cast<double>(feed.tick) + 20000.3, 20);
  const DumpTrigger soon = pulse_at(static_cast<double>(feed.tick) - 3000.3, 20);
  TriggerReply of_late, of_soon;
  ASSERT_EQ(feed.ring.trigger(late, &of_late), TriggerResult::accepted);
  ASSERT_EQ(feed.ring.trigger(soon, &of_soon), TriggerResult::accepted);
  EXPECT_EQ(of_late.dump, 1);
  EXPECT_EQ(of_soon.dump, 3);
  for (int k = 0; k < 28; ++k) {
    while (feed.free.empty()) std::this_thread::yield();
    ASSERT_TRUE(feed.next(true));
  }
  const RunSummary summary = feed.finish();
  EXPECT_EQ(summary.voltages->dumps, 2);
  expect_dump(scratch / "t_voltages_00001.h5", voltage_window(config.shape, late), 0);
  expect_dump(scratch / "t_voltages_00003.h5", voltage_window(config.shape, soon), 0);
  for (const auto& d : feed.ring.take_records().dumps)
    EXPECT_EQ(d.file, d.number == 1 ? "t_voltages_00001.h5" : "t_voltages_00003.h5");
}

// A disk that hangs: whole dumps are lost, the receiver always has memory. A disk that is full: the
// dump is lost without a trace, the next one is written.
TEST(VoltageRing, SlowAndFullDisksCostDumpsOnly) {
  const test::Scratch scratch;
  auto config = ring_config(scratch, false);
  config.dumps_per_minute = 1000;
  std::atomic<bool> hang{true}, full{false};
  set_publish_fault_hook([&](std::string_view operation, const std::string&) {
    while (hang && operation == "write") std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return full && operation == "write" ? ENOSPC : 0;
  });
  Feed feed(config, 16);
  std::int64_t dropped = 0;
  for (int k = 0; k < 60; ++k) {
    ASSERT_TRUE(feed.next(false)) << "the receiver has no chunk left after " << k;
    const auto r = feed.ring.trigger(pulse_at(static_cast<double>(feed.tick) - 2000, 20));
    dropped += r == TriggerResult::dropped;
  }
  EXPECT_GT(dropped, 20);
  EXPECT_THAT(feed.ring.messages(), testing::Contains(HasSubstr("the disk did not keep up")));
  full = true;
  hang = false;
  for (int k = 0; k < 5000 && feed.ring.counts().failed == 0; ++k)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  full = false;
  RunSummary summary = feed.finish();
  set_publish_fault_hook({});
  const auto& v = *summary.voltages;
  EXPECT_GE(v.failed, 1);
  EXPECT_EQ(v.triggers, v.dumps + v.failed + v.merged + v.rejected + v.limited + v.dropped);
  EXPECT_EQ(static_cast<std::int64_t>(summary.products.size()), v.dumps);
  EXPECT_THAT(summary.warnings, testing::Contains(HasSubstr("a dump of voltages was lost")));
  EXPECT_EQ(scratch.names().size(), summary.products.size());  // no .part either
}

constexpr const char* kStart = "2025-03-01T16:10:00";

ObservationConfig burst_observation(const test::Scratch& scratch) {
  std::ifstream layout(RYLE_SOURCE_DIR "/examples/best2.csv");
  std::ofstream(scratch / "best2.csv") << layout.rdbuf();
  std::ofstream(scratch / "beams.toml")
      << "[telescope]\nlayout = \"best2.csv\"\nlatitude_deg = 44.52358\nlongitude_deg = "
         "11.64599\nheight_m = 28.0\n[band]\nfirst_center_mhz = 417.990234375\nchannel_step_khz = "
         "-19.53125\nn_channels = 1024\n[[beam]]\nname = \"zenith\"\nframe = \"azel\"\naz_deg = "
         "0.0\nel_deg = 90.0\n";
  return parse_observation(
      "schema = 1\n[[simulator.source]]\nname = \"burst\"\nl = 0.0\nm = 0.0\nflux_jy = "
      "300.0\nstart_s = 0.5\nduration_s = 0.004\ndm_pc_cm3 = 300.0\n",
      scratch / "obs.toml",
      {"source.kind=simulator", "source.format=best2",
       "source.listen=[\"udp://" + test::own_host() + ":" + std::to_string(test::own_port()) +
           "\"]",
       "source.start_utc=\"" + std::string(kStart) + "\"", "source.first_channel=0",
       "source.n_channels=64", "source.chunk_ms=52.4288", "source.allow_small_rcvbuf=true",
       "source.stall_budget_s=1",  // all that is sent: a receiver that waits for a core loses
                                   // nothing
       "source.antenna_map=[3,2,1,0,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,"
       "26,27,28,29,31,30]",
       "simulator.duration_s=1.3", "simulator.speed=2", "simulator.sefd_jy=20000",
       "simulator.rms_lsb=2.3", "simulator.period_samples=2048", "beams.file=beams.toml",
       "beams.integration_spectra=8", "beams.filterbank=false", "beams.pictures=0",
       "search.dm_max=600", "search.dm_min=50", "search.block_samples=1024",
       "search.width_max_s=0.02", "voltages.ring_s=1.2", "voltages.margin_s=0.1",
       "runtime.device=cpu", "runtime.threads=1", "output.directory=" + scratch.path(),
       "output.name=t", "output.pictures=false"});
}

// The whole path: packets, beam, search, dump; dump, beam, search: the same pulse.
TEST(VoltageRing, APulseIsFoundAgainInItsDump) {
  const test::Scratch scratch;
  ObservationConfig config = burst_observation(scratch);
  config.voltages.socket = "ask.sock";
  // Someone asks for a span before the burst as soon as there are data, from the run's own thread:
  // however slow the machine is, it is not over.
  RunOptions options;
  options.progress_interval_s = 0;
  std::string answer;
  options.on_progress = [&](const Progress& p) {
    if (p.data_s > 0 && answer.empty())
      answer = ask_line_server(scratch / "ask.sock",
                               R"({"begin_utc": "2025-03-01T16:10:00.1", "end_utc": )"
                               R"("2025-03-01T16:10:00.15", "name": "someone"})",
                               60);
  };
  const RunSummary live = run_observation(config, options);
  ASSERT_TRUE(live.errors.empty()) << live.errors.front();
  EXPECT_EQ(answer, R"({"result":"accepted","dump":1})");
  EXPECT_FALSE(std::filesystem::exists(scratch / "ask.sock"));
  ASSERT_TRUE(live.beams && live.voltages);
  ASSERT_EQ(live.voltages->dumps, 2)
      << (live.warnings.empty() ? "no warning" : live.warnings.front());
  const auto events = test::read_search_database(scratch / "t.sqlite");
  const auto seen = std::find_if(events.begin(), events.end(),
                                 [](const auto& e) { return e.flags.empty() && e.snr > 10; });
  ASSERT_NE(seen, events.end());
  EXPECT_NEAR(seen->dm_pc_cm3, 300, 5 * seen->dm_error + 1);

  const VoltageRecords records = test::read_voltage_records(scratch / "t.sqlite");
  ASSERT_GE(records.triggers.size(), 2U);
  EXPECT_EQ(records.triggers.front().trigger.beam, "someone");
  EXPECT_EQ(records.triggers.front().trigger.event, 0);
  const auto asked = std::find_if(records.triggers.begin(), records.triggers.end(), [&](auto& t) {
    return t.trigger.event == seen->number && t.result == "accepted";
  });
  ASSERT_NE(asked, records.triggers.end());
  EXPECT_EQ(asked->trigger.beam, "zenith");
  ASSERT_EQ(records.dumps.size(), 2U);
  const DumpRecord& written = records.dumps[static_cast<std::size_t>(asked->dump - 1)];
  ASSERT_EQ(written.number, asked->dump);
  const std::string voltages = scratch / written.file;
  EXPECT_LE(written.begin_tai_ns, seen->tai_ns);
  EXPECT_GE(written.end_tai_ns, seen->tai_ns);
  EXPECT_EQ(records.dumps[0].bytes + records.dumps[1].bytes, live.voltages->bytes);

  const auto dump = parse_observation(
      "schema = 1\n", "test",
      {"source.kind=file", "source.format=auto", "source.file=" + voltages, "runtime.threads=1"});
  RecordedBeamsOptions beams;
  beams.beams = scratch / "beams.toml";
  beams.outputs = {scratch / "again.fil"};
  beams.integration = 8;
  const auto made = beamform_recording(dump, beams, {});
  EXPECT_EQ(made.n_channels, 64);
  SearchOptions again;
  again.file = scratch / "again.fil";
  again.dm_min = 50;
  again.dm_max = 600;
  again.width_max_s = 0.02;
  again.block_samples = 1024;
  again.n_workers = 1;
  const auto found = search_file(again);
  ASSERT_EQ(found.n_candidates, 1);
  const auto& e = found.events.front();
  // The same samples through the same weights; statistics are of half a second instead of 1.3 s.
  EXPECT_NEAR(e.dm_pc_cm3, seen->dm_pc_cm3, 2 * (seen->dm_error + e.dm_error));
  EXPECT_NEAR(e.snr, seen->snr, 0.15 * seen->snr);
  EXPECT_NEAR(static_cast<double>(e.tai_ns - seen->tai_ns), 0, 0.3e6);
}

// A database of another run lies there under the name: the search rejects, and what others asked
// for must not go into it.
TEST(VoltageRing, RecordsDoNotGoIntoTheDatabaseOfAnotherRun) {
  const test::Scratch scratch;
  const std::string path = scratch / "t.sqlite";
  SearchDatabase(path, {}, false).finish({});
  ObservationConfig config = burst_observation(scratch);
  config.simulator.duration_s = 0.4;
  config.simulator.sources.clear();
  config.voltages.socket = "ask.sock";
  RunOptions options;
  options.progress_interval_s = 0;
  bool asked = false;
  options.on_progress = [&](const Progress& p) {
    if (p.data_s > 0 && !std::exchange(asked, true))
      ask_line_server(scratch / "ask.sock", R"({"utc": "2025-03-01T16:00:00"})", 60);
  };
  const RunSummary live = run_observation(config, options);
  ASSERT_TRUE(asked);
  EXPECT_THAT(live.errors, testing::Contains(HasSubstr("exists")));
  EXPECT_THAT(live.errors, testing::Contains(HasSubstr("1 records (events 0, triggers 1, dumps")));
  EXPECT_TRUE(test::read_voltage_records(path).empty());
  const std::string lines = test::contents(scratch / "t_unwritten.jsonl");
  EXPECT_THAT(lines, HasSubstr(R"({"table":"trigger","id":1,)"));
  EXPECT_THAT(lines, HasSubstr(R"("result":"refused")"));
}

TEST(VoltageRing, RejectsARingThatIsTooShort) {
  const test::Scratch scratch;
  ObservationConfig config = burst_observation(scratch);
  config.voltages.ring_s = 0.25;
  try {
    spectra_input(config);
    ADD_FAILURE();
  } catch (const ConfigError& e) {
    EXPECT_THAT(e.what(), HasSubstr("voltages.ring_s = 0.25"));
  }
  config.voltages.ring_s = 1.2;
  std::int64_t ring = 0, all = 0;
  for (const auto& [what, bytes] : graph_memory(config, spectra_input(config), std::nullopt)) {
    if (what == "ring of voltages") ring = bytes;
    if (what == "ring of chunks") all = bytes;
  }
  // 1.2 s of 64 channels x 32 antennas in chunks of 1024 spectra, and the one that is leaving.
  EXPECT_EQ(ring, (23 + 1) * 1024 * 64 * 32);
  EXPECT_GT(all, 0);
  config.search.dm_max = 0;
  EXPECT_THROW(spectra_input(config), ConfigError);
  config.voltages.socket = "ask.sock";  // others may ask for what nothing searches
  EXPECT_NO_THROW(spectra_input(config));
  config.voltages.ring_s = 0;
  EXPECT_THROW(spectra_input(config), ConfigError);
}

}  // namespace
}  // namespace ryle::pipeline
