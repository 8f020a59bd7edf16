// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/fx_chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <set>
#include <string>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kInputs = 3;
constexpr std::int64_t kChannels = 16;
constexpr std::int64_t kTaps = 4;
constexpr std::int64_t kLength = kTaps * kChannels;

FxChain::Setup small_setup(std::int64_t spectra_per_dump, std::int64_t max_delay = 0) {
  FxChain::Setup setup;
  auto& f = setup.channelize;
  f.n_inputs = kInputs;
  f.n_channels = kChannels;
  f.n_taps = kTaps;
  f.layout.format = SampleFormat::ci8;
  f.layout.input_stride_bits = 16;
  f.layout.sample_stride_bits = 16 * kInputs;
  f.sample_rate_hz = 1e6;
  f.reference_hz = 1e8;
  setup.spectra_per_dump = spectra_per_dump;
  setup.spectra_per_gulp = 8;
  setup.max_delay_samples = max_delay;
  setup.max_feed_ticks = 256;
  return setup;
}

std::vector<ci8> noise(std::int64_t n_ticks) {
  std::vector<ci8> samples(static_cast<std::size_t>(n_ticks * kInputs));
  for (std::size_t k = 0; k < samples.size(); ++k) {
    samples[k] = {static_cast<std::int8_t>(20 * gaussian(2 * k)),
                  static_cast<std::int8_t>(20 * gaussian(2 * k + 1))};
  }
  return samples;
}

std::vector<Queue> cpu_queues(int n) {
  std::vector<Queue> queues;
  for (int k = 0; k < n; ++k) queues.push_back(Queue::cpu(1));
  return queues;
}

struct ChainRun {
  std::vector<RawDump> dumps;
  FxChain chain;
  explicit ChainRun(const FxChain::Setup& setup, int n_queues = 1)
      : chain(
            cpu_queues(n_queues), setup,
            [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
            [this](RawDump&& dump) { dumps.push_back(std::move(dump)); }) {}
  void feed(const std::vector<ci8>& samples, Tick first, std::int64_t n,
            std::vector<AbsentSpan> absent = {}, std::int64_t segment = 0) {
    chain.feed(samples.data() + first * kInputs, first, n, absent, segment, {0, {1000000, 1}});
  }
};

TEST(FxChain, DumpsDoNotDependOnHowTheSamplesCome) {
  const auto samples = noise(4096);
  ChainRun whole(small_setup(50));
  whole.feed(samples, 0, 4096);
  whole.chain.flush();
  ChainRun pieces(small_setup(50));
  // Same first piece, as the requantiser's level is set by it.
  for (Tick t = 0; t < 4096;) {
    const std::int64_t n = t == 0 ? 256 : std::min<std::int64_t>(4096 - t, 64 + 37 * (t % 5));
    pieces.feed(samples, t, n);
    t += n;
  }
  pieces.chain.flush();
  ASSERT_EQ(whole.dumps.size(), pieces.dumps.size());
  // (4096 - L) / K + 1 = 253 spectra: five dumps of 50 and one of 3.
  ASSERT_EQ(whole.dumps.size(), 6u);
  EXPECT_EQ(whole.dumps.back().n_spectra, 3);
  for (std::size_t d = 0; d < whole.dumps.size(); ++d) {
    EXPECT_EQ(whole.dumps[d].sums.integer, pieces.dumps[d].sums.integer) << d;
    EXPECT_EQ(whole.dumps[d].sums.counts, pieces.dumps[d].sums.counts) << d;
    EXPECT_EQ(whole.dumps[d].first_spectrum, static_cast<std::int64_t>(50 * d));
  }
}

// Queues of the CPU stand for devices: each has its share of the channels, whatever the number, and
// every dump, short ones and those after a gap too, has the bits that one queue gives.
TEST(FxChain, ChannelsSplitOverQueuesGiveTheSameDumps) {
  const auto samples = noise(6000);
  const auto fed = [&](int n_queues) {
    auto run = std::make_unique<ChainRun>(small_setup(50, 5), n_queues);
    run->feed(samples, 0, 2048, {{1, 300, 420}});
    run->feed(samples, 2304, 1500);
    run->chain.flush();
    return run;
  };
  const auto one = fed(1);
  EXPECT_EQ(one->chain.n_parts(), 1);
  ASSERT_GE(one->dumps.size(), 4u);
  for (const int n_queues : {2, 3, 7, 20}) {
    const auto several = fed(n_queues);
    EXPECT_EQ(several->chain.n_parts(), std::min<int>(n_queues, kChannels));
    ASSERT_EQ(several->dumps.size(), one->dumps.size());
    for (std::size_t d = 0; d < one->dumps.size(); ++d) {
      const RawDump &a = several->dumps[d], &b = one->dumps[d];
      EXPECT_EQ(a.sums.integer, b.sums.integer) << n_queues << " queues, dump " << d;
      EXPECT_EQ(a.sums.counts, b.sums.counts) << n_queues << " queues, dump " << d;
      EXPECT_EQ(a.sums.n_spectra, b.sums.n_spectra);
      EXPECT_EQ(a.first_spectrum, b.first_spectrum);
      ASSERT_EQ(a.statistics.size(), b.statistics.size());
      for (std::size_t k = 0; k < a.statistics.size(); ++k) {
        ASSERT_EQ(a.statistics[k].n_samples, b.statistics[k].n_samples);
        ASSERT_EQ(a.statistics[k].sum_of_squares, b.statistics[k].sum_of_squares);
      }
    }
  }
  EXPECT_THROW(ChainRun(small_setup(50), 0), ConfigError);
}

/// Everything a live run may bring: pieces of any length, lost samples, gaps short and long, a
/// dump that a segment cuts short.
std::vector<RawDump> fed_with_trouble(const FxChain::Setup& setup, int n_queues) {
  const std::int64_t bits = setup.channelize.layout.sample_stride_bits;
  std::vector<std::uint8_t> samples(static_cast<std::size_t>(12'000 * bits / 8));
  for (std::size_t k = 0; k < samples.size(); ++k) samples[k] = static_cast<std::uint8_t>(mix64(k));
  ChainRun run(setup, n_queues);
  Tick tick = 0;
  const auto feed = [&](std::int64_t n, std::int64_t segment, std::vector<AbsentSpan> absent = {}) {
    run.chain.feed(samples.data() + tick * bits / 8, tick, n, absent, segment, {0, {1000000, 1}});
    tick += n;
  };
  feed(256, 0, {{0, 100, 110}});
  for (int k = 0; k < 20; ++k)
    feed(64 + 8 * (k % 5), 0, {{k % 3, tick + 10 * k % 64, tick + 10 * k % 64 + 30}});
  tick += 96;  // bridged
  feed(1000, 0);
  feed(24, 0);
  feed(640, 0, {{0, tick + 400, tick + 500}, {1, tick + 600, tick + 640}});  // straight
  feed(128, 0);
  tick += 2400;  // counted
  feed(1504, 0, {{2, tick, tick + 700}});
  tick += 40;
  feed(200, 1);
  feed(1600, 1, {{1, tick + 1550, tick + 1600}});
  feed(56, 1);
  feed(96, 1);
  run.chain.flush();
  return std::move(run.dumps);
}

// Samples that stream to a device, each once, with the history kept there and turned, give every
// dump the bits of samples that are staged.
TEST(FxChain, StreamedSamplesGiveTheSameDumps) {
  for (const std::int64_t delay : {0, 5}) {
    for (const auto& [format, bits] : {std::pair{SampleFormat::ci8, 16}, {SampleFormat::i1, 1}}) {
      FxChain::Setup setup = small_setup(50, delay);
      setup.channelize.layout.format = format;
      setup.channelize.layout.input_stride_bits = bits;
      setup.channelize.layout.sample_stride_bits = bits * kInputs;
      const auto want = fed_with_trouble(setup, 1);
      ASSERT_GE(want.size(), 6u);
      setup.always_streamed = true;
      for (const int n_queues : {1, 3}) {
        const auto found = fed_with_trouble(setup, n_queues);
        ASSERT_EQ(found.size(), want.size());
        std::int64_t looked_at = 0, wanted = 0;  // samples, for the level of dumps
        for (std::size_t d = 0; d < want.size(); ++d) {
          EXPECT_EQ(found[d].first_spectrum, want[d].first_spectrum) << d;
          EXPECT_EQ(found[d].n_spectra, want[d].n_spectra) << d;
          EXPECT_EQ(found[d].sums.counts, want[d].sums.counts) << d;
          EXPECT_EQ(found[d].sums.integer, want[d].sums.integer) << d;
          for (std::size_t k = 0; k < want[d].statistics.size(); ++k)
            ASSERT_EQ(found[d].statistics[k].n_samples, want[d].statistics[k].n_samples) << d;
          looked_at += found[d].levels[0].n_samples;
          wanted += want[d].levels[0].n_samples;
        }
        // What came with the chunk before is not looked at again.
        EXPECT_GE(looked_at, 3 * wanted / 4);
      }
    }
  }
}

// A dump leaves beside the work on the next one: feed() does not wait for whoever takes it.
TEST(FxChain, FeedDoesNotWaitForTheDumpThatLeaves) {
  FxChain::Setup setup = small_setup(50);
  setup.always_streamed = true;
  std::promise<void> fed;
  std::shared_future<void> all_fed = fed.get_future().share();
  std::vector<std::int64_t> taken;
  bool in_time = true;
  FxChain chain(
      cpu_queues(2), setup, [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
      [&](RawDump&& dump) {
        // A chain that waits for its sink would be here forever.
        if (taken.empty())
          in_time = all_fed.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
        taken.push_back(dump.first_spectrum);
      });
  const auto samples = noise(2048);
  chain.feed(samples.data(), 0, 1024, {}, 0, {0, {1000000, 1}});
  chain.feed(samples.data() + 1024 * kInputs, 1024, 512, {}, 0, {0, {1000000, 1}});
  fed.set_value();
  chain.feed(samples.data() + 1536 * kInputs, 1536, 512, {}, 0, {0, {1000000, 1}});
  chain.flush();  // waits
  EXPECT_TRUE(in_time);
  EXPECT_EQ(taken, (std::vector<std::int64_t>{0, 50, 100}));
}

// What the taker of a dump throws reaches the one who feeds, and no dump follows it.
TEST(FxChain, AnErrorOfTheSinkIsSaidOnce) {
  for (const bool streamed : {false, true}) {
    FxChain::Setup setup = small_setup(50);
    setup.always_streamed = streamed;
    FxChain chain(
        cpu_queues(1), setup, [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
        [](RawDump&&) { throw ConfigError("planted"); });
    const auto samples = noise(2048);
    EXPECT_THROW(
        {
          chain.feed(samples.data(), 0, 2048, {}, 0, {0, {1000000, 1}});
          chain.flush();
        },
        ConfigError);
  }
}

// Of what waits for a device there is a feed, and the one that comes on top: three such in host
// memory, four on the device, turned once there, and the codes of one.
TEST(FxChain, ChunksOnTheirWayHoldTwoFeeds) {
  constexpr std::int64_t kTicks = 1 << 16;
  const auto bytes_for = [](std::int64_t max_feed_ticks) {
    FxChain::Setup setup = small_setup(1 << 20);
    setup.always_streamed = true;
    setup.max_feed_ticks = max_feed_ticks;
    return ChainRun(setup).chain.memory_bytes();
  };
  const std::int64_t more = bytes_for(2 * kTicks) - bytes_for(kTicks);
  EXPECT_LE(more, (7 * 2 + 2 + 1 + 1) * kTicks * 2 * kInputs);
}

/// Copies that are done only when somebody waits for them; the second part's device is lost.
class WaitedForQueues final : public RingQueues {
 public:
  explicit WaitedForQueues(bool lost, std::set<const void*>& being_read)
      : lost_(lost), being_read_(being_read) {}
  void copy(std::byte* to, const std::byte* from, std::int64_t n_bytes) override {
    std::memcpy(to, from, static_cast<std::size_t>(n_bytes));
    being_read_.insert(this);
  }
  void record_copied(int) override {}
  void record_worked(int) override {}
  void work_after_copied(int) override {}
  void copy_after_worked(int) override {}
  void wait_copied(int) override {
    being_read_.erase(this);
    if (lost_) throw DeviceError("planted", true);
  }

 private:
  bool lost_;
  std::set<const void*>& being_read_;
};

// Whatever fails, and on whichever device: when feed() is left nobody reads the caller's memory.
TEST(FxChain, NobodyReadsWhatWasFedAfterAnError) {
  for (const int lost : {-1, 0, 1}) {
    for (const bool delays_fail : {false, true}) {
      if (lost < 0 && !delays_fail) continue;
      std::set<const void*> being_read;
      FxChain::Setup setup = small_setup(50);
      setup.always_streamed = true;
      int n_made = 0;
      setup.ring_queues = [&](const Queue&, int) {
        return std::make_unique<WaitedForQueues>(n_made++ == lost, being_read);
      };
      FxChain chain(
          cpu_queues(2), setup,
          [&](channelize::Channelizer&, const SampleClock&, Tick first, Tick) {
            if (delays_fail && first > 0) throw ConfigError("planted");
          },
          [](RawDump&&) {});
      const auto samples = noise(1024);
      const auto feed = [&] { chain.feed(samples.data(), 0, 1024, {}, 0, {0, {1000000, 1}}); };
      if (delays_fail) {
        EXPECT_THROW(feed(), ConfigError) << "not what failed first";
      } else {
        EXPECT_THROW(feed(), DeviceError);
      }
      EXPECT_EQ(n_made, 2);
      EXPECT_TRUE(being_read.empty()) << "lost " << lost << ", delays fail " << delays_fail;
    }
  }
}

// A dump on its way when a device is lost is whole, and reaches the one who takes it.
TEST(FxChain, TheDumpOnItsWayOutlivesTheDevice) {
  std::set<const void*> being_read;
  FxChain::Setup setup = small_setup(50);
  setup.always_streamed = true;
  setup.ring_queues = [&](const Queue&, int) {
    return std::make_unique<WaitedForQueues>(true, being_read);
  };
  std::promise<void> lost;
  std::future<void> is_lost = lost.get_future();
  std::vector<std::int64_t> taken;
  FxChain chain(
      cpu_queues(1), setup, [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
      [&](RawDump&& dump) {
        is_lost.wait_for(std::chrono::seconds(20));
        taken.push_back(dump.first_spectrum);
      });
  const auto samples = noise(1024);
  EXPECT_THROW(chain.feed(samples.data(), 0, 1024, {}, 0, {0, {1000000, 1}}), DeviceError);
  lost.set_value();
  chain.wait_readback();
  EXPECT_EQ(taken, std::vector<std::int64_t>{0});
}

TEST(FxChain, DevicesOfTheConfigurationAreQueues) {
  RuntimeConfig config;
  config.device = "cpu";
  config.threads = 1;
  ASSERT_EQ(make_queues(config).size(), 1u);
  EXPECT_EQ(make_queues(config)[0].back_end(), BackEnd::cpu);
  config.devices = {0, 1};
  EXPECT_THROW(make_queues(config), ConfigError);  // one or the other
  EXPECT_EQ(sample_memory(cpu_queues(1)), MemorySpace::host);
  config.device = "auto";
  if (!cuda_unavailable_reason().empty()) {
    EXPECT_THROW(make_queues(config), DeviceError);
  }
}

TEST(FxChain, ALostPacketCostsExactlyQPlusTapsMinusOneSpectra) {
  const auto samples = noise(2048);
  ChainRun run(small_setup(120));
  const std::int64_t q = 5;  // spectra lost
  run.feed(samples, 0, 2048, {{1, 20 * kChannels, (20 + q) * kChannels}});
  run.chain.flush();
  ASSERT_EQ(run.dumps.size(), 2u);
  const auto& counts = run.dumps[0].sums.counts;
  EXPECT_EQ(counts[static_cast<std::size_t>(pair_index(0, 0))], 120u);
  EXPECT_EQ(counts[static_cast<std::size_t>(pair_index(1, 1))], 120u - (q + kTaps - 1));
  EXPECT_EQ(counts[static_cast<std::size_t>(pair_index(0, 1))], 120u - (q + kTaps - 1));
  EXPECT_EQ(counts[static_cast<std::size_t>(pair_index(0, 2))], 120u);
}

// Feeds `before` ticks, skips `gap` and feeds `after`, once skipped and once marked absent: the
// dumps must be the same.
void expect_gap_like_absent(const FxChain::Setup& setup, std::int64_t before, std::int64_t gap,
                            std::int64_t after) {
  SCOPED_TRACE("gulp " + std::to_string(setup.spectra_per_gulp) + " gap " + std::to_string(gap) +
               " after " + std::to_string(before));
  const std::int64_t total = before + gap + after;
  const auto samples = noise(total);
  ChainRun skipped(setup);
  skipped.feed(samples, 0, before);
  skipped.feed(samples, before + gap, after);
  skipped.chain.flush();
  ChainRun marked(setup);
  std::vector<AbsentSpan> absent;
  for (std::int64_t p = 0; p < kInputs; ++p) absent.push_back({p, before, before + gap});
  // The first feed sets the level: it must be the same piece.
  marked.feed(samples, 0, before);
  marked.feed(samples, before, total - before, absent);
  marked.chain.flush();
  std::vector<const RawDump*> expected;
  for (const auto& d : marked.dumps) {
    if (d.sums.counts[0] > 0) expected.push_back(&d);
  }
  ASSERT_EQ(skipped.dumps.size(), expected.size());
  for (std::size_t d = 0; d < expected.size(); ++d) {
    EXPECT_EQ(skipped.dumps[d].first_spectrum, expected[d]->first_spectrum) << "dump " << d;
    EXPECT_EQ(skipped.dumps[d].sums.counts, expected[d]->sums.counts) << "dump " << d;
    EXPECT_EQ(skipped.dumps[d].sums.integer, expected[d]->sums.integer) << "dump " << d;
  }
}

// Dropped whole chunks: short gaps are bridged, long ones skipped; either way the dumps stay on the
// grid of the clock and the counts are those of one run in which the same samples are marked
// absent.
TEST(FxChain, GapsKeepTheGridAndTheCounts) {
  for (const std::int64_t gap : {256, 1024, 6400, 65536}) {
    for (const std::int64_t gulp : {8, 512}) {
      for (const std::int64_t dump : {40, 5000}) {
        auto setup = small_setup(dump);
        setup.spectra_per_gulp = gulp;
        expect_gap_like_absent(setup, 2048, gap, 2048);
      }
    }
  }
}

// Spectra that wait for half a gulp to be worth their overhead were received: a gap that follows
// must not lose them. 3200 ticks are 197 spectra, less than half of 512; 4224 and 8000 are one more
// block and more than half.
TEST(FxChain, SpectraThatWaitForHalfAGulpSurviveALongGap) {
  for (const std::int64_t before : {3200, 4224, 8000}) {
    auto setup = small_setup(100'000, before == 4224 ? 7 : 0);
    setup.spectra_per_gulp = 512;
    expect_gap_like_absent(setup, before, 65536, 3200);
    ChainRun run(setup);
    const auto samples = noise(before + 65536 + 3200);
    run.feed(samples, 0, before);
    run.feed(samples, before + 65536, 3200);
    run.chain.flush();
    // Whole windows on each side: (n - L - 2 D) / K + 1, with the first on the grid.
    const auto whole = [&](Tick first, Tick end) {
      const Tick d = setup.max_delay_samples;
      const std::int64_t from = (first + d + kChannels - 1) / kChannels;
      return (end - kLength - d) / kChannels - from + 1;
    };
    ASSERT_EQ(run.dumps.size(), 1u);
    EXPECT_GE(run.dumps[0].sums.counts[0],
              whole(0, before) + whole(before + 65536, before + 65536 + 3200));
  }
}

TEST(FxChain, ANewSegmentClosesTheDumpShort) {
  const auto samples = noise(2048);
  ChainRun run(small_setup(1000));
  run.feed(samples, 0, 1024, {}, 0);
  run.feed(samples, 0, 1024, {}, 1);
  run.chain.flush();
  ASSERT_EQ(run.dumps.size(), 2u);
  EXPECT_EQ(run.dumps[0].segment, 0);
  EXPECT_EQ(run.dumps[1].segment, 1);
  EXPECT_EQ(run.dumps[0].n_spectra, (1024 - kLength) / kChannels + 1);
  EXPECT_EQ(run.dumps[1].n_spectra, run.dumps[0].n_spectra);
}

TEST(FxChain, MidStreamStartBeginsAtTheFirstWholeWindow) {
  const auto samples = noise(4096);
  ChainRun run(small_setup(10, 7));
  run.chain.feed(samples.data(), 1000, 2048, {}, 0, {0, {1000000, 1}});
  run.chain.flush();
  ASSERT_FALSE(run.dumps.empty());
  EXPECT_EQ(run.dumps[0].first_spectrum, (1000 + 7 + kChannels - 1) / kChannels);
  EXPECT_EQ(run.dumps[0].sums.counts[0], 10u);
}

// A part x rounded to a half is off by at most |x| / 2048, a product of two parts by twice that. A
// product of samples is two products of parts, so a sum is off by at most 4 / 2048 of the root of
// its two autocorrelations (Cauchy and Schwarz).
TEST(FxChain, HalvesGiveTheSumsOfFloats) {
  const auto samples = noise(2048);
  const auto sums = [&](SampleFormat output) {
    FxChain::Setup setup = small_setup(100);
    setup.channelize.output = output;
    ChainRun run(setup);
    run.feed(samples, 0, 2048);
    run.chain.flush();
    return run.dumps.at(0).sums.real;
  };
  const auto floats = sums(SampleFormat::cf32), halves = sums(SampleFormat::cf16);
  ASSERT_EQ(halves.size(), static_cast<std::size_t>(kChannels * n_pairs(kInputs)));
  ASSERT_EQ(floats.size(), halves.size());
  EXPECT_NE(floats, halves);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return static_cast<std::size_t>(c * n_pairs(kInputs) + pair_index(i, j));
    };
    for (std::int64_t j = 0; j < kInputs; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const double scale = std::sqrt(floats[at(i, i)].real() * floats[at(j, j)].real());
        EXPECT_LE(std::abs(halves[at(i, j)] - floats[at(i, j)]), 4.0 / 2048 * scale);
      }
    }
  }
}

TEST(FxChain, BitsOfTheConfigurationAreFormats) {
  ObservationConfig config;
  config.source.listen.assign(2, "udp://127.0.0.1:4000");
  config.correlate.fringe_stopping = "x";  // delays of antennas do not matter
  ArrayLayout array;
  array.inputs.resize(static_cast<std::size_t>(live_sample_metadata(config).n_inputs));
  for (const auto& [bits, format] : {std::pair{4, SampleFormat::ci4},
                                     {8, SampleFormat::ci8},
                                     {16, SampleFormat::cf16},
                                     {32, SampleFormat::cf32}}) {
    config.channelize.bits = bits;
    EXPECT_EQ(make_chain_setup(config, live_sample_metadata(config), array).channelize.output,
              format);
  }
  config.channelize.bits = 7;
  EXPECT_THROW(make_chain_setup(config, live_sample_metadata(config), array), ConfigError);
}

TEST(FxChain, RequantiserLevelReachesItsTarget) {
  const auto samples = noise(8192);
  ChainRun run(small_setup(400));
  run.feed(samples, 0, 8192);
  run.chain.flush();
  double power = 0;
  for (std::int64_t c = 0; c < kChannels; ++c)
    power += static_cast<double>(
        run.dumps[0].sums.integer[static_cast<std::size_t>(c * n_pairs(kInputs))].re);
  // Two parts of 16^2 each; 400 x 16 estimates of a chi-square with 2 degrees: 1/sqrt(6400) = 1.3
  // %, 5 sigma; the level itself comes from 256 samples x 2 parts: 1/sqrt(512) = 4.4 % of power, 5
  // sigma.
  EXPECT_NEAR(power / (400 * kChannels), 512, 512 * 5 * 0.046);
}

}  // namespace
}  // namespace ryle::pipeline
