// SPDX-License-Identifier: BSD-3-Clause
// The Hopper correlators: every tuning, samples that come as fast as memory gives them, and the
// least of work for compute-sanitizer.
#include "tests/cuda/correlate_case.hpp"

namespace ryle::correlate {
namespace {

// Rows and columns of one block come by copies of their own, in either order: whoever widens ci4
// once took rows on their way for rows that had come. Seen in one run of some at 1,024 inputs.
TEST_F(CudaCorrelate, NibblesOfManyTilesAreTheSameEveryTime) {
  const std::vector<std::string> names = kernels(queue(), SampleFormat::ci4);
  if (std::count(names.begin(), names.end(), "sm90_ci4_wgmma") == 0) GTEST_SKIP() << "no wgmma";
  const Shape shape{520, 40, 2100};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci4, shape, false, 9));
  const Sums wanted = cuda("mma_s8", gulps, shape);
  for (int run = 0; run < 12 && !HasFatalFailure(); ++run)
    expect_equal(cuda("sm90_ci4_wgmma", gulps, shape), wanted, "run " + std::to_string(run));
}

// Samples that come from memory at the machine's rate, which no slot waits for: all sums, again and
// again, against those of other products. A copy that overtakes loads spoils rows of some tiles.
TEST_F(CudaCorrelate, InputsBeyondTheCache) {
  const auto check_sums = [&](SampleFormat format, const std::string& name, const Shape& shape,
                              int n_runs) {
    const std::vector<std::string> names = kernels(queue(), format);
    if (std::count(names.begin(), names.end(), name) == 0) return;
    const std::int64_t blocks = n_blocks(format, shape.n_spectra), cell = bytes_per_cell(format);
    const std::int64_t block = cell * shape.n_inputs;
    std::vector<Gulp> gulps(1);
    gulps[0].bytes.resize(static_cast<std::size_t>(block * blocks * shape.n_channels));
    for (std::size_t at = 0; at < gulps[0].bytes.size(); at += 8) {
      std::uint64_t word = mix64(at);
      if (format == SampleFormat::cf16)  // from 0.5 to 1, of either sign
        word = (word & 0x83ff83ff83ff83ffu) | 0x3800380038003800u;
      std::memcpy(gulps[0].bytes.data() + at, &word, 8);
    }
    gulps[0].view = {gulps[0].bytes.data(),
                     format,
                     shape.n_channels,
                     blocks,
                     shape.n_inputs,
                     block * blocks,
                     block,
                     cell};
    gulps[0].n_spectra = shape.n_spectra;
    // Fp16 are added in another order by each kernel, in the same by each launch.
    const Sums wanted = cuda(is_integer(format) ? "mma_s8" : name, gulps, shape);
    for (int run = 0; run < n_runs && !HasFatalFailure(); ++run) {
      const Sums found = cuda(name, gulps, shape);
      expect_equal(found, wanted, name + ", run " + std::to_string(run));
      ASSERT_TRUE(found.real == wanted.real) << name << ", run " << run;
    }
  };
  check_sums(SampleFormat::ci4, "sm90_ci4_wgmma", {512, 64, 4096}, 10);  // 134 MB
  check_sums(SampleFormat::ci4, "sm90_ci4_wgmma", {128, 256, 4096}, 4);
  check_sums(SampleFormat::ci8, "sm90_s8_wgmma", {512, 32, 4096}, 5);
  check_sums(SampleFormat::ci8, "sm90_s8_wgmma", {256, 64, 4096}, 5);
  check_sums(SampleFormat::cf16, "sm90_f16_wgmma", {512, 16, 4096}, 5);
}

#ifdef RYLE_HAVE_CUDA
// The Hopper kernel with rings that are always full or empty, and cut as finely as can be.
TEST_F(CudaCorrelate, AnyTuningGivesTheSameSums) {
  const auto names = kernels(queue(), SampleFormat::ci8);
  const std::string name = "sm90_s8_wgmma";
  if (std::find(names.begin(), names.end(), name) == names.end())
    GTEST_SKIP() << "no products of warpgroups on this device";
  for (const CudaTuning tuning :
       {CudaTuning{3, 1}, CudaTuning{4, 2}, CudaTuning{12, 1}, CudaTuning{6, 1024, false, true},
        CudaTuning{4, 1, true}, CudaTuning{12, 16, true, true, true}, CudaTuning{8, 1024, true},
        CudaTuning{6, 1024, false, false, true, 4}}) {
    const TuningScope scope(tuning);
    check(name, SampleFormat::ci8, {500, 1, 130}, true);   // 4 rows of tiles
    check(name, SampleFormat::ci8, {700, 3, 66}, false);   // 6, one tile meets no other
    check(name, SampleFormat::ci8, {300, 5, 200}, false);  // 3, and the last channel is alone
    check(name, SampleFormat::ci8, {200, 3, 130}, false);  // 2
    check("sm90_ci4_wgmma", SampleFormat::ci4, {130, 2, 1400}, false);
    check("sm90_ci4_wgmma", SampleFormat::ci4, {64, 3, 1400}, true);
    check(name, SampleFormat::ci8, {130, 2, 700}, false);
    check(name, SampleFormat::ci8, {64, 3, 700}, true);
    check_halves({"sm90_f16_wgmma"}, {130, 2, 700});
    check_halves({"sm90_f16_wgmma"}, {64, 3, 700});
    check_halves({"sm90_f16_wgmma"}, {700, 4, 66});
    check_halves({"sm90_f16_wgmma"}, {300, 5, 100});
  }
}

// Three warpgroups, two items a channel: whole rounds, a rest as it is or cut, on top of other
// gulps; the second group of inputs full, half full and nearly empty.
TEST_F(CudaCorrelate, ThreeWarpgroupsGiveTheSameSums) {
  const auto names = kernels(queue(), SampleFormat::ci8);
  const std::string name = "sm90_s8_wgmma";
  if (std::find(names.begin(), names.end(), name) == names.end())
    GTEST_SKIP() << "no products of warpgroups on this device";
  for (const CudaTuning tuning : {CudaTuning{12, 1024, false, false, true, 1, true},
                                  CudaTuning{12, 2, false, false, false, 1, true},
                                  CudaTuning{12, 1, false, false, false, 1, true}}) {
    const TuningScope scope(tuning);
    check(name, SampleFormat::ci8, {256, 66, 130}, false);  // one round of 132 multiprocessors
    check(name, SampleFormat::ci8, {200, 70, 200}, true);
    check(name, SampleFormat::ci8, {130, 150, 520}, false);
    check(name, SampleFormat::ci8, {250, 101, 65}, true);
    check(name, SampleFormat::ci8, {129, 3, 130}, false);  // too few: the two of other sizes
  }
}

/// The least of work that goes through every path of one kernel: what compute-sanitizer's
/// racecheck, which takes a thousand times as long, can follow (scripts/gpu_check.sh).
class CudaCorrelateFew : public CudaCorrelate {
 protected:
  void check_if_here(const std::string& name, SampleFormat format, const Shape& shape) {
    const auto names = kernels(queue(), format);
    if (std::find(names.begin(), names.end(), name) == names.end())
      GTEST_SKIP() << name << " is not for this device";
    format == SampleFormat::cf16 ? check_halves({name}, shape) : check(name, format, shape, false);
  }
  void check_tuned(const std::string& name, SampleFormat format, const Shape& shape,
                   const CudaTuning& tuning) {
    const TuningScope scope(tuning);
    check_if_here(name, format, shape);
  }
};

TEST_F(CudaCorrelateFew, Bytes) {
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {64, 2, 129}, {3, 1});
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {130, 1, 129}, {3, 2});
}
TEST_F(CudaCorrelateFew, BytesInClusters) {
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {130, 2, 129}, {4, 1024, true});
}
TEST_F(CudaCorrelateFew, BytesByThree) {
  check_tuned("sm90_s8_wgmma", SampleFormat::ci8, {130, 67, 65},
              {12, 1, false, false, false, 1, true});
}
TEST_F(CudaCorrelateFew, Int4) {
  check_tuned("sm90_ci4_wgmma", SampleFormat::ci4, {64, 2, 257}, {3, 1});
  check_tuned("sm90_ci4_wgmma", SampleFormat::ci4, {130, 1, 257}, {3, 2});
}
TEST_F(CudaCorrelateFew, Fp16) {
  check_tuned("sm90_f16_wgmma", SampleFormat::cf16, {64, 2, 65}, {3, 1});
  check_tuned("sm90_f16_wgmma", SampleFormat::cf16, {130, 1, 65}, {3, 2});
}
TEST_F(CudaCorrelateFew, MmaOfBytesAndNibbles) {
  check_if_here("mma_s8", SampleFormat::ci8, {65, 1, 129});
  check_if_here("mma_s8", SampleFormat::ci4, {65, 1, 257});
}
TEST_F(CudaCorrelateFew, MmaOfHalves) { check_if_here("mma_f16", SampleFormat::cf16, {65, 1, 65}); }

#endif

}  // namespace
}  // namespace ryle::correlate
