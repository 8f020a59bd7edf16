// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include "tests/engine/channelize/harness.hpp"

namespace ryle::channelize::test {
namespace {

// Words of all inputs together at every instant, as arrays send them: the wide unpacking kernels
// take 32, 16 and 8 inputs at a time, the rest goes one by one. All encodings and bit places, all
// remainders, against the equation.
TEST(Interleaved, words_of_every_width_and_encoding_agree_with_the_equation) {
  for (const std::int64_t n_inputs : {1, 8, 17, 43, 64}) {
    for (const auto encoding : {Encoding::twos_complement, Encoding::offset_binary}) {
      for (const int re_shift : {0, 5, 11}) {
        Config config;
        config.n_inputs = n_inputs;
        config.n_channels = 32;
        config.n_taps = 4;
        config.output = SampleFormat::cf32;
        config.layout.format = SampleFormat::ci5;
        config.layout.encoding = encoding;
        config.layout.re_shift = re_shift;
        config.layout.im_shift = re_shift == 0 ? 5 : 0;
        config.layout.input_stride_bits = 16;
        config.layout.sample_stride_bits = 16 * n_inputs;
        Case c = make_case(config, 3, 21);
        Result want = run(c, "reference");
        for (const auto& each : cpu_names()) {
          Result got = run(c, each);
          const Difference d = compare(got, want);
          // Single precision, as in reference_test: 5e-7 expected.
          EXPECT_LT(d.rms, 1e-6) << each << ", " << n_inputs << " inputs, shift " << re_shift;
          EXPECT_EQ(got.valid, want.valid) << each;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ryle::channelize::test
