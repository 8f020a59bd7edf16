// SPDX-License-Identifier: BSD-3-Clause
// T-XE-01..04, T-FX-01, 02, 18, 19: integers, exact on every implementation.
#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

constexpr SampleFormat kIntegers[] = {SampleFormat::ci8, SampleFormat::ci4, SampleFormat::ci16};

void expect_equal(const Sums& got, const Sums& want, const std::string& what) {
  ASSERT_EQ(got.integer.size(), want.integer.size()) << what;
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < want.integer.size(); ++k) {
    if (got.integer[k] == want.integer[k]) continue;
    if (wrong++ == 0) {
      ADD_FAILURE() << what << ": sum " << k << " is " << got.integer[k].re << ","
                    << got.integer[k].im << ", should be " << want.integer[k].re << ","
                    << want.integer[k].im;
    }
  }
  EXPECT_EQ(wrong, 0u) << what;
  EXPECT_EQ(got.counts, want.counts) << what;
  EXPECT_EQ(got.n_spectra, want.n_spectra) << what;
}

Sums run(const std::string& name, const Voltages& v, int n_workers = 1) {
  Queue queue = Queue::cpu(n_workers);
  auto correlator = make_correlator(queue, config_of(v, name));
  EXPECT_EQ(correlator->implementation(), reported_name(name));
  correlator->execute(queue, v.input());
  Sums sums = garbage();
  correlator->finish(queue, sums);
  return sums;
}

// Every implementation of the format against the int64 reference.
void check_all(const Voltages& v, const std::string& what) {
  const Sums want = expected(v);
  for (const auto& implementation : cpu_names(v.view.format)) {
    expect_equal(run(implementation, v), want,
                 implementation + " " + std::string(name(v.view.format)) + " " + what);
  }
}

// T-XE-03: sizes around every tile edge, 3 formats, strided with garbage in the gaps.
TEST(Exact, SizesFormatsStrides) {
  struct Case {
    std::int64_t n, c, t;
  };
  std::vector<Case> cases;
  for (const std::int64_t n : {1, 2, 3, 16, 17, 31, 33, 48, 64, 65}) {
    for (const std::int64_t t : {1, 7, 63, 64, 65, 128, 200})
      cases.push_back({n, t == 65 ? 3 : 1, t});
  }
  for (const std::int64_t n : {127, 128, 129, 192, 256, 352}) cases.push_back({n, 1, 65});
  for (const auto format : kIntegers) {
    for (const auto& k : cases) {
      if (format != SampleFormat::ci8 && (k.n > 129 || k.t == 63 || k.t == 7)) continue;
      Voltages v(format, k.c, k.t, k.n, (k.n + k.t) % 2 == 1);
      v.fill_random(static_cast<std::uint64_t>(k.n * 1000 + k.t));
      check_all(v, "N=" + std::to_string(k.n) + " C=" + std::to_string(k.c) +
                       " T=" + std::to_string(k.t));
    }
  }
}

// More spectra than a pass or a chunk holds; more channels than workers and fewer.
TEST(Exact, LongGulps) {
  for (const std::int64_t t : {1000, 2049, 4096}) {
    for (const auto format : kIntegers) {
      Voltages v(format, t == 1000 ? 3 : 1, t, format == SampleFormat::ci8 ? 19 : 5);
      v.fill_random(static_cast<std::uint64_t>(t));
      check_all(v, "T=" + std::to_string(t));
    }
  }
}

// Sums too many for the caches are streamed past them, and every dump starts from 0, though only
// the rows it read are zeroed.
TEST(Exact, ManySumsAndTheDumpAfter) {
  for (const auto format : {SampleFormat::ci8, SampleFormat::ci4}) {
    Voltages v(format, 35, 6, 127);
    v.fill_random(7);
    const Sums want = expected(v);
    ASSERT_GT(want.integer.size() * sizeof(ci64), std::size_t{4} << 20);
    for (const auto& implementation : cpu_names(format)) {
      Queue queue = Queue::cpu(2);
      auto correlator = make_correlator(queue, config_of(v, implementation));
      Sums sums = garbage();
      for (int dump = 0; dump < 3; ++dump) {
        correlator->execute(queue, v.input());
        correlator->finish(queue, sums);
        expect_equal(sums, want, implementation + " dump " + std::to_string(dump));
      }
    }
  }
}

// T-XE-01: all 65 536 pairs of ci8 codes, on the diagonal (one sample) and off it (re of one input,
// im of another).
TEST(Exact, AllCodePairs) {
  constexpr std::int64_t kSpectra = 256;
  Voltages v(SampleFormat::ci8, 16, kSpectra, 17);
  // Channel and input choose one code, the spectrum the other: input p < 16 has re = code(channel,
  // p), im = code(t).
  v.fill([](std::int64_t c, std::int64_t t, std::int64_t p) -> cf64 {
    if (p == 16) return {static_cast<double>(t - 128), static_cast<double>(127 - t)};
    return {static_cast<double>(16 * c + p - 128), static_cast<double>(t - 128)};
  });
  check_all(v, "all pairs of codes");
  // One spectrum at a time, so that no error can cancel in the sum.
  for (std::int64_t t = 0; t < kSpectra; t += 5) {
    Voltages one(SampleFormat::ci8, 16, 1, 17);
    one.fill([t](std::int64_t c, std::int64_t, std::int64_t p) -> cf64 {
      if (p == 16) return {static_cast<double>(t - 128), static_cast<double>(127 - t)};
      return {static_cast<double>(16 * c + p - 128), static_cast<double>(t - 128)};
    });
    check_all(one, "pairs of codes, spectrum " + std::to_string(t));
  }
}

TEST(Exact, AllCodePairsOf4Bits) {
  Voltages v(SampleFormat::ci4, 1, 256, 18);
  v.fill([](std::int64_t, std::int64_t t, std::int64_t p) -> cf64 {
    if (p < 16) return {static_cast<double>(p - 8), static_cast<double>(t % 16 - 8)};
    return {static_cast<double>(t / 16 - 8),
            static_cast<double>(p == 16 ? t % 16 - 8 : 7 - t % 16)};
  });
  check_all(v, "all pairs of codes");
}

TEST(Exact, CornersOf16Bits) {
  constexpr double kCodes[] = {-32768, -32767, -32513, -32512, -257, -256, -255, -129, -128, -127,
                               -1,     0,      1,      127,    128,  255,  256,  257,  32767};
  constexpr std::int64_t kN = std::size(kCodes);
  Voltages v(SampleFormat::ci16, 1, kN * kN, 8);
  v.fill([&](std::int64_t, std::int64_t t, std::int64_t p) -> cf64 {
    return {kCodes[(t + 3 * p) % kN], kCodes[(t / kN + 5 * p) % kN]};
  });
  check_all(v, "corners");
}

// A gulp of constant input `value`, executed n times: sums in closed form.
class Constant {
 public:
  Constant(SampleFormat format, std::int64_t spectra, std::vector<cf64> values)
      : voltages_(format, 1, spectra, 2) {
    voltages_.fill([&](std::int64_t, std::int64_t, std::int64_t p) { return values[p]; });
  }
  const Voltages& voltages() const { return voltages_; }

 private:
  Voltages voltages_;
};

// T-XE-02, T-FX-02: 65 535 x (-128,-128), the most an int32 sum holds, then one more; ci16 at its
// corners, ci4 at -8.
TEST(Exact, LongestRunAndOneMore) {
  struct Case {
    SampleFormat format;
    double low;
  };
  for (const Case k : {Case{SampleFormat::ci8, -128}, Case{SampleFormat::ci16, -32768},
                       Case{SampleFormat::ci4, -8}}) {
    const Constant half(k.format, 13107, {{k.low, k.low}, {k.low, -k.low - 1}});
    const Constant more(k.format, 1, {{k.low, k.low}, {k.low, -k.low - 1}});
    for (const auto& implementation : cpu_names(k.format)) {
      Queue queue = Queue::cpu(1);
      auto correlator = make_correlator(queue, config_of(half.voltages(), implementation));
      for (int gulp = 0; gulp < 5; ++gulp) correlator->execute(queue, half.voltages().input());
      correlator->execute(queue, more.voltages().input());
      Sums sums = garbage();
      correlator->finish(queue, sums);
      const auto t = std::int64_t{65536};
      const auto low = static_cast<std::int64_t>(k.low);
      const std::int64_t high = -low - 1;
      ASSERT_EQ(sums.integer.size(), 3u);
      EXPECT_EQ(sums.integer[0], (ci64{2 * low * low * t, 0}))
          << implementation << " " << name(k.format);
      EXPECT_EQ(sums.integer[1], (ci64{low * (low + high) * t, low * (low - high) * t}))
          << implementation;
      EXPECT_EQ(sums.integer[2], (ci64{(low * low + high * high) * t, 0})) << implementation;
      EXPECT_EQ(sums.counts, (std::vector<std::uint32_t>(3, 65536))) << implementation;
      EXPECT_EQ(sums.n_spectra, t);
    }
  }
}

// One gulp longer than int32 holds: execute() folds in between.
TEST(Exact, OneGulpBeyondInt32) {
  const Constant all(SampleFormat::ci8, 200'000, {{-128, -128}, {-128, -128}});
  for (const auto& implementation : cpu_names(SampleFormat::ci8)) {
    const Sums sums = run(implementation, all.voltages());
    for (const auto& sum : sums.integer)
      EXPECT_EQ(sum, (ci64{32768 * std::int64_t{200'000}, 0})) << implementation;
  }
}

// T-XE-02: the sum passes 2^31 on the way and comes back; no saturating instruction may be used.
// With the offset stand-ins the partial sums wrap far earlier than the true ones.
TEST(Exact, OverflowInTheMiddle) {
  constexpr std::int64_t kSpectra = 65'472;
  Voltages v(SampleFormat::ci8, 1, kSpectra, 3);
  v.fill([](std::int64_t, std::int64_t t, std::int64_t p) -> cf64 {
    if (p == 0) return {127, 127};
    if (p == 1) return {t < kSpectra / 2 ? 127.0 : -128.0, 127};
    return {t < kSpectra / 2 ? 127.0 : -127.0, t < kSpectra / 2 ? 127.0 : -127.0};
  });
  check_all(v, "overflow in the middle");
}

// T-XE-04, T-FX-18, 19: threads, gulp sizes, two dumps in a row give the same bits.
TEST(Exact, SameBitsForAnySplitAndThreads) {
  for (const auto format : kIntegers) {
    const std::int64_t per_block = spectra_per_block(format);
    Voltages v(format, 5, 17 * per_block, 21);
    v.fill_random(77);
    const Sums want = expected(v);
    for (const auto& implementation : cpu_names(format)) {
      for (const int workers : {1, 2, 4}) {
        expect_equal(run(implementation, v, workers), want,
                     implementation + " workers " + std::to_string(workers));
      }
      for (const std::int64_t blocks : {1, 3, 17}) {
        Queue queue = Queue::cpu(2);
        auto correlator = make_correlator(queue, config_of(v, implementation));
        Sums sums = garbage();
        for (int dump = 0; dump < 2; ++dump) {
          for (std::int64_t block = 0; block < 17; block += blocks) {
            Input part = v.input();
            part.blocks.data = v.view.cell(0, block, 0);
            part.blocks.n_blocks = std::min(blocks, 17 - block);
            part.n_spectra = part.blocks.n_blocks * per_block;
            correlator->execute(queue, part);
          }
          correlator->finish(queue, sums);
          expect_equal(sums, want,
                       implementation + " gulps of " + std::to_string(blocks) + " blocks");
        }
        correlator->execute(queue, v.input());
        correlator->reset(queue);
        correlator->execute(queue, v.input());
        correlator->finish(queue, sums);
        expect_equal(sums, want, implementation + " after reset");
      }
    }
  }
}

// One channel, many inputs, several workers: they share the panels of the channel.
TEST(Exact, WorkersShareAChannel) {
  for (const auto format : kIntegers) {
    Voltages v(format, 1, 130, 70);
    v.fill_random(5);
    const Sums want = expected(v);
    for (const auto& implementation : cpu_names(format)) {
      expect_equal(run(implementation, v, 3), want, implementation + " 3 workers, 1 channel");
    }
  }
}

// R5: swapping two inputs conjugates their product and moves the others.
TEST(Exact, PermutedInputsPermuteTheProducts) {
  constexpr std::int64_t kN = 37;
  Voltages v(SampleFormat::ci8, 1, 100, kN);
  v.fill_random(3);
  Voltages w(SampleFormat::ci8, 1, 100, kN);
  w.fill([&](std::int64_t c, std::int64_t t, std::int64_t p) {
    return get_sample(v.view, c, t, kN - 1 - p);
  });
  for (const auto& implementation : cpu_names(SampleFormat::ci8)) {
    const Sums a = run(implementation, v);
    const Sums b = run(implementation, w);
    for (std::int64_t j = 0; j < kN; ++j) {
      for (std::int64_t i = 0; i <= j; ++i) {
        const ci64 x = a.integer[pair_index(i, j)];
        const ci64 y = b.integer[pair_index(kN - 1 - j, kN - 1 - i)];
        ASSERT_EQ(x, (ci64{y.re, -y.im})) << implementation << " " << i << "," << j;
      }
    }
  }
}

}  // namespace
}  // namespace ryle::correlate::test
