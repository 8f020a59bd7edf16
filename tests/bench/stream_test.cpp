// SPDX-License-Identifier: BSD-3-Clause
#include "bench/chain/stream.hpp"

#include <gtest/gtest.h>

#include "ryle/core/error.hpp"
#include "ryle/device/queue.hpp"

namespace ryle::bench {
namespace {

// The benchmark of the stream on the CPU: verified, and of a ceiling of its own run.
TEST(BenchStream, QuickCaseIsVerified) {
  Options options;
  options.implementation = "cpu";
  options.quick = true;
  int n = 0;
  bench_stream(options, [&](const Result& r) {
    ++n;
    EXPECT_TRUE(r.verified);
    EXPECT_EQ(r.engine, "stream");
    EXPECT_EQ(r.bytes, 1 << 18);
    EXPECT_GT(r.rate, 0);
    EXPECT_GT(r.roofline_fraction, 0);
    EXPECT_NE(r.roofline.find("host to device"), std::string::npos);
  });
  EXPECT_EQ(n, 2);  // from page-locked and from pageable memory
}

TEST(BenchStream, SaysWhatIsMissing) {
  if (cuda_unavailable_reason().empty()) GTEST_SKIP() << "skipped: there is a CUDA device";
  Options options;
  int n = 0;
  bench_stream(options, [&](const Result&) { ++n; });
  EXPECT_EQ(n, 0);
  options.implementation = "cuda";
  EXPECT_THROW(bench_stream(options, [](const Result&) {}), DeviceError);
}

}  // namespace
}  // namespace ryle::bench
