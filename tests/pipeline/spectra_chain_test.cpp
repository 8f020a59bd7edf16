// SPDX-License-Identifier: BSD-3-Clause
// Loss in recordings of spectra: exact counts per channel (reliability: "what did not arrive is
// counted exactly").
#include "ryle/pipeline/visibility/spectra_chain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "ryle/pipeline/visibility/spectra_reader.hpp"
#include "tests/ingest/recording/support.hpp"
#include "tests/support/data_path.hpp"

namespace ryle::pipeline {
namespace {

struct ChainRun {
  std::vector<RawDump> dumps;
  std::uint64_t lost_samples = 0;
};

ChainRun run_chain(const std::string& file, std::int64_t spectra_per_dump) {
  const auto recording = open_recording(file, "tbx");
  ChainRun result;
  ObservationConfig config;
  const auto reader = make_spectra_reader(config, *recording);
  SpectraChain::Setup setup;
  setup.n_inputs = reader->n_inputs;
  setup.n_channels = reader->frequency.n_channels;
  setup.format = reader->format;
  setup.max_gulp = reader->max_gulp;
  setup.spectra_per_dump = spectra_per_dump;
  SpectraChain chain(Queue::cpu(1), setup,
                     [&](RawDump&& dump) { result.dumps.push_back(std::move(dump)); });
  SpectraGulp gulp;
  for (std::int64_t first = 0; first < reader->n_spectra;) {
    const std::int64_t room = chain.advance(first, 0, reader->clock);
    const std::int64_t n = std::min({reader->max_gulp, room, reader->n_spectra - first});
    reader->read(first, n, gulp);
    chain.feed(gulp);
    first += n;
  }
  chain.flush();
  result.lost_samples = reader->lost_samples;
  return result;
}

// One frame of ten spectra is cut out: its 12 channels lose one spectrum, the others nothing, and
// the sums are those of what is left.
TEST(SpectraChain, ALostFrameCostsItsOwnChannelsOnly) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  const auto none = [](int, int) { return false; };
  const auto one = [](int spectrum, int frame) { return spectrum == 6 && frame == 7; };
  const ChainRun whole =
      run_chain(test::write_file("whole.tbx", test::tbx_spectra(path, 10, none)), 5);
  const ChainRun cut = run_chain(test::write_file("cut.tbx", test::tbx_spectra(path, 10, one)), 5);
  ASSERT_EQ(whole.dumps.size(), 2u);
  ASSERT_EQ(cut.dumps.size(), 2u);
  EXPECT_EQ(whole.lost_samples, 0u);
  EXPECT_EQ(cut.lost_samples, 12u * 128u);
  EXPECT_EQ(cut.dumps[0].sums.counts, whole.dumps[0].sums.counts);
  EXPECT_EQ(cut.dumps[0].sums.integer, whole.dumps[0].sums.integer);
  const auto& sums = cut.dumps[1].sums;
  const auto& all = whole.dumps[1].sums;
  const auto pairs = static_cast<std::size_t>(n_pairs(128));
  ASSERT_EQ(sums.counts.size(), 312 * pairs);
  for (std::size_t c = 0; c < 312; ++c) {
    const bool hit = c >= 84 && c < 96;
    for (std::size_t k = c * pairs; k < (c + 1) * pairs; ++k) {
      ASSERT_EQ(sums.counts[k], hit ? 4u : 5u) << "channel " << c;
      // Every spectrum is the same: four of five.
      const ci64 want =
          hit ? ci64{all.integer[k].re / 5 * 4, all.integer[k].im / 5 * 4} : all.integer[k];
      ASSERT_EQ(sums.integer[k], want) << "channel " << c;
    }
  }
}

// A channel in no frame at all has no weight and is no loss.
TEST(SpectraChain, AWholeLostSpectrumIsCountedPerChannel) {
  RYLE_REQUIRE_DATA(path, "lwa/tbx-test.dat");
  const auto lost = [](int spectrum, int frame) { return spectrum == 1 || frame == 3; };
  const ChainRun cut = run_chain(test::write_file("lost.tbx", test::tbx_spectra(path, 3, lost)), 3);
  ASSERT_EQ(cut.dumps.size(), 1u);
  EXPECT_EQ(cut.lost_samples, 300u * 128u);
  const auto pairs = static_cast<std::size_t>(n_pairs(128));
  const auto& counts = cut.dumps[0].sums.counts;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const std::size_t c = k / pairs;
    ASSERT_EQ(counts[k], c >= 36 && c < 48 ? 0u : 2u) << "channel " << c;
  }
}

}  // namespace
}  // namespace ryle::pipeline
