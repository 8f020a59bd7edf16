// SPDX-License-Identifier: BSD-3-Clause
// The levels on a GPU, wgmma among them, against the reference bit for bit. Their arithmetic and
// barriers are tested without one in tests/engine/correlate/levels_test.cpp.
#include "tests/cuda/cuda_test.hpp"

#ifdef RYLE_HAVE_CUDA

#include "bench/levels/levels.hpp"
#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/correlate/correlate.hpp"

namespace ryle::correlate::levels {
namespace {

struct Shape {
  std::int64_t n_inputs, n_channels, n_spectra;
};

class CudaLevels : public test::CudaTest {
 protected:
  struct Gulp {
    std::vector<std::byte> bytes;
    BlockView view;
  };

  // Full-range codes, every sixteenth part -128; gaps of garbage between the cells.
  static Gulp make_gulp(const Shape& s, std::uint64_t seed) {
    const std::int64_t blocks = n_blocks(SampleFormat::ci8, s.n_spectra);
    const std::int64_t cell = kBlockBytes + 16;
    const std::int64_t block = s.n_inputs * cell + 48;
    const std::int64_t channel = blocks * block + 80;
    Gulp gulp{test::garbage(s.n_channels * channel), {}};
    gulp.view = {gulp.bytes.data(), SampleFormat::ci8, s.n_channels, blocks,
                 s.n_inputs,        channel,           block,        cell};
    const auto code = [](std::uint64_t key) {
      const std::uint64_t bits = mix64(key);
      return bits >> 60 == 0 ? -128.0 : static_cast<double>(bits & 255) - 128.0;
    };
    for (std::int64_t c = 0; c < s.n_channels; ++c) {
      for (std::int64_t i = 0; i < s.n_inputs; ++i) {
        for (std::int64_t b = 0; b < blocks; ++b)
          std::memset(gulp.view.cell(c, b, i), 0, kBlockBytes);
        for (std::int64_t t = 0; t < s.n_spectra; ++t) {
          const std::uint64_t key = combine(seed, combine(c, i), 2 * t);
          set_sample(gulp.view, c, t, i, {code(key), code(key + 1)});
        }
      }
    }
    return gulp;
  }

  static Sums reference(const Gulp& gulp, std::int64_t n_spectra) {
    auto host = Queue::cpu(1);
    auto correlator = make_correlator(host, {.n_inputs = gulp.view.n_inputs,
                                             .n_channels = gulp.view.n_channels,
                                             .format = SampleFormat::ci8,
                                             .max_spectra = n_spectra,
                                             .implementation = "reference"});
    correlator->execute(host, {.blocks = gulp.view, .n_spectra = n_spectra});
    Sums sums;
    correlator->finish(host, sums);
    return sums;
  }

  std::vector<std::int32_t> run(const std::string& level, const Gulp& gulp) {
    const auto n = static_cast<std::size_t>(8 * gulp.view.n_channels * n_pairs(gulp.view.n_inputs));
    const Buffer<std::byte> samples = upload(gulp.bytes);
    const Buffer<std::byte> sums = upload(test::garbage(static_cast<std::int64_t>(n) + 64));
    ConstBlockView view = gulp.view;
    view.data = samples.data();
    auto* to = reinterpret_cast<std::int32_t*>(sums.data());
    correlate_level(queue(), level, view, to);
    const std::vector<std::byte> bytes = download(sums);
    for (std::size_t k = n; k < bytes.size(); ++k) EXPECT_EQ(bytes[k], std::byte{0xCD}) << level;
    std::vector<std::int32_t> result(n / 4);
    std::memcpy(result.data(), bytes.data(), n);
    return result;
  }

  void check(const Shape& s) {
    const Gulp gulp = make_gulp(s, 3 * s.n_inputs + s.n_spectra);
    const Sums want = reference(gulp, s.n_spectra);
    for (const std::string& level : level_names(queue())) {
      const std::vector<std::int32_t> got = run(level, gulp);
      ASSERT_EQ(got.size(), 2 * want.integer.size());
      for (std::size_t p = 0; p < want.integer.size(); ++p) {
        ASSERT_EQ((ci64{got[2 * p], got[2 * p + 1]}), want.integer[p])
            << level << " N=" << s.n_inputs << " C=" << s.n_channels << " T=" << s.n_spectra
            << " product " << p;
      }
    }
  }
};

TEST_F(CudaLevels, EqualTheReferenceAtSmallShapes) {
  for (const Shape& s : {Shape{1, 1, 1}, Shape{2, 3, 63}, Shape{3, 2, 64}, Shape{31, 1, 130},
                         Shape{33, 2, 200}, Shape{5, 67, 20}})
    check(s);
}

// Both sides of every tile, up to two of the largest; more blocks than wgmma's ring has stages.
TEST_F(CudaLevels, EqualTheReferenceAtTheEdgesOfTiles) {
  for (const Shape& s : {Shape{64, 3, 65}, Shape{65, 1, 640}, Shape{127, 1, 5}, Shape{128, 2, 400},
                         Shape{129, 1, 449}, Shape{256, 1, 20}})
    check(s);
}

TEST_F(CudaLevels, RejectWhatTheyCannotDo) {
  const Gulp gulp = make_gulp({2, 1, 64}, 1);
  const Buffer<std::byte> samples = upload(gulp.bytes);
  const Buffer<std::int32_t> sums(6, MemorySpace::device);
  std::int32_t* to = sums.data();
  ConstBlockView view = gulp.view;
  EXPECT_THROW(correlate_level(queue(), "pair", view, to), ConfigError);  // host memory
  view.data = samples.data();
  EXPECT_THROW(correlate_level(queue(), "nonsense", view, to), ConfigError);
  view.format = SampleFormat::ci4;
  EXPECT_THROW(correlate_level(queue(), "pair", view, to), UnsupportedError);
  view.format = SampleFormat::ci8;
  view.n_blocks = 1024;
  EXPECT_THROW(correlate_level(queue(), "pair", view, to), ConfigError);
}

}  // namespace
}  // namespace ryle::correlate::levels

#endif
