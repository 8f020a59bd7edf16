// SPDX-License-Identifier: BSD-3-Clause
// T-XE-01..04, T-FX-01, 02, 18, 19: integers, exact on every implementation.
#include "tests/engine/correlate/voltages.hpp"

namespace ryle::correlate::test {
namespace {

Sums run(const std::string& name, const Voltages& v, int n_workers = 1) {
  Queue queue = Queue::cpu(n_workers);
  auto correlator = make_correlator(queue, config_of(v, name));
  EXPECT_EQ(correlator->implementation(), reported_name(name));
  correlator->execute(queue, v.input());
  Sums sums = garbage();
  correlator->finish(queue, sums);
  return sums;
}

void expect_equal(const Sums& got, const Sums& want, const std::string& what) {
  ASSERT_EQ(got.integer.size(), want.integer.size()) << what;
  std::size_t wrong = 0;
  for (std::size_t k = 0; k < want.integer.size(); ++k) {
    if (got.integer[k] == want.integer[k]) continue;
    if (wrong++ == 0) {
      ADD_FAILURE() << what << ": sum " << k << " is " << got.integer[k].re << "," << got.integer[k].im
                    << ", should be " << want.integer[k].re << "," << want.integer[k].im;
    }
  }
  EXPECT_EQ(wrong, 0u) << what;
  EXPECT_EQ(got.counts, want.counts) << what;
  EXPECT_EQ(got.n_spectra, want.n_spectra) << what;
}

// T-XE-03: sizes around every tile edge, 3 formats, strided, outputs pre-filled with garbage.
TEST(Exact, SizesFormatsStrides) {
  struct Case {
    std::int64_t n, c, t;
  };
  std::vector<Case> cases;
  for (const std::int64_t n : {1, 2, 3, 16, 17, 31, 33, 48, 64, 65}) {
    for (const std::int64_t t : {1, 63, 64, 65, 200}) cases.push_back({n, 3, t});
  }
  for (const std::int64_t n : {127, 128, 129, 192, 256}) cases.push_back({n, 1, 65});
  for (const auto format : {SampleFormat::ci8, SampleFormat::ci4, SampleFormat::ci16}) {
    for (const auto& k : cases) {
      if (format != SampleFormat::ci8 && (k.n > 129 || k.t == 63)) continue;
      Voltages v(format, k.c, k.t, k.n, (k.n + k.t) % 2 == 1);
      v.fill_random(static_cast<std::uint64_t>(k.n * 1000 + k.t));
      const Sums want = expected(v);
      for (const auto& implementation : cpu_names(format)) {
        const std::string what = implementation + " " + std::string(name(format)) + " N=" + std::to_string(k.n) +
                                 " C=" + std::to_string(k.c) + " T=" + std::to_string(k.t);
        expect_equal(run(implementation, v), want, what);
      }
    }
  }
}

}  // namespace
}  // namespace ryle::correlate::test
