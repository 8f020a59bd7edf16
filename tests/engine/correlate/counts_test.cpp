// SPDX-License-Identifier: BSD-3-Clause
// T-XE-05: exact numbers of valid spectra per pair and channel, and sums over valid samples only.
#include "ryle/core/bits.hpp"
#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

// Masks of n_classes different kinds, n_channels of them (1 = shared by all channels); bits beyond
// n_spectra are set to garbage on purpose. Invalid samples are zeroed in the blocks, as the
// contract says.
struct Masked {
  Masked(std::int64_t n_inputs, std::int64_t n_channels, std::int64_t n_spectra,
         std::int64_t n_classes, bool per_channel, std::uint64_t seed)
      : voltages(SampleFormat::ci8, n_channels, n_spectra, n_inputs),
        words(words_for_bits(n_spectra) + 1) {
    voltages.fill_random(seed);
    const std::int64_t n_masks = per_channel ? n_channels : 1;
    channel_stride = per_channel ? n_inputs * words + 3 : 0;
    bits.assign(static_cast<std::size_t>(n_masks * (n_inputs * words + 3)), ~std::uint64_t{0});
    for (std::int64_t c = 0; c < n_masks; ++c) {
      for (std::int64_t p = 0; p < n_inputs; ++p) {
        std::uint64_t* row = bits.data() + c * channel_stride + p * words;
        const auto kind = static_cast<std::uint64_t>((p * 7 + c) % n_classes);
        for (std::int64_t t = 0; t < n_spectra; ++t) {
          const std::uint64_t draw = combine(seed + kind, static_cast<std::uint64_t>(t));
          const bool all_lost = kind == 1 || (kind == 2 && t < n_spectra / 2);
          if (all_lost || (kind != 0 && draw % 4 == 0)) clear_bit(row, t);
        }
      }
    }
    for (std::int64_t c = 0; c < n_channels; ++c) {
      for (std::int64_t p = 0; p < n_inputs; ++p) {
        const std::uint64_t* row = bits.data() + (per_channel ? c : 0) * channel_stride + p * words;
        for (std::int64_t t = 0; t < n_spectra; ++t) {
          if (!test_bit(row, t)) set_sample(voltages.view, c, t, p, 0);
        }
      }
    }
  }
  Input input() const {
    Input in = voltages.input();
    in.valid = bits.data();
    in.valid_words = words;
    in.valid_channel_stride_words = channel_stride;
    return in;
  }

  Voltages voltages;
  std::int64_t words;
  std::int64_t channel_stride = 0;
  std::vector<std::uint64_t> bits;
};

void check(const std::vector<const Masked*>& gulps, const std::string& what) {
  Queue queue = Queue::cpu(2);
  Config config = config_of(gulps[0]->voltages, "reference");
  auto reference = make_correlator(queue, config);
  Sums want;
  for (const auto* gulp : gulps) reference->execute(queue, gulp->input());
  reference->finish(queue, want);
  for (const auto& implementation : cpu_names(SampleFormat::ci8)) {
    config.implementation = implementation;
    auto correlator = make_correlator(queue, config);
    for (int dump = 0; dump < 2; ++dump) {
      for (const auto* gulp : gulps) correlator->execute(queue, gulp->input());
      Sums got = garbage();
      correlator->finish(queue, got);
      ASSERT_EQ(got.counts, want.counts) << implementation << " " << what << " dump " << dump;
      ASSERT_EQ(got.integer, want.integer) << implementation << " " << what;
      ASSERT_EQ(got.n_spectra, want.n_spectra);
    }
  }
}

TEST(Counts, ClassesOfMasks) {
  for (const std::int64_t classes : {1, 2, 3, 5, 63, 64, 65, 200}) {
    const std::int64_t n = classes > 5 ? classes + 3 : 7;
    const Masked masked(n, 2, 130, classes, false, 11);
    check({&masked}, std::to_string(classes) + " classes");
  }
}

TEST(Counts, MasksPerChannel) {
  for (const std::int64_t classes : {1, 2, 5, 70}) {
    const Masked masked(classes > 5 ? 75 : 6, 3, 100, classes, true, 12);
    check({&masked}, std::to_string(classes) + " classes per channel");
  }
}

// All valid, shared masks, channel masks, word edges, one after the other into one dump.
TEST(Counts, MixedGulps) {
  for (const std::int64_t t : {1, 63, 64, 65, 127, 128}) {
    const Masked all(9, 2, t, 1, false, 1);
    const Masked shared(9, 2, t, 4, false, 2);
    const Masked own(9, 2, t, 4, true, 3);
    check({&all, &shared, &own, &shared}, "T=" + std::to_string(t));
  }
}

TEST(Counts, ResetForgets) {
  const Masked masked(5, 2, 100, 3, true, 4);
  Queue queue = Queue::cpu(1);
  auto correlator = make_correlator(queue, config_of(masked.voltages, "cpu"));
  correlator->execute(queue, masked.input());
  correlator->reset(queue);
  Sums sums;
  correlator->finish(queue, sums);
  EXPECT_EQ(sums.counts, std::vector<std::uint32_t>(2 * 15, 0u));
  EXPECT_EQ(sums.integer, std::vector<ci64>(2 * 15, ci64{0, 0}));
  EXPECT_EQ(sums.n_spectra, 0);
}

}  // namespace
}  // namespace ryle::correlate::test
