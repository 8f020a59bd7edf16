// SPDX-License-Identifier: BSD-3-Clause
// Every CUDA correlator against the reference: integers bit for bit, floats within fp32 rounding.
#include "tests/cuda/correlate_case.hpp"

namespace ryle::correlate {
namespace {

TEST_F(CudaCorrelate, TensorCoresEqualReferenceAtAnyShape) {
  for (const auto format : {SampleFormat::ci8, SampleFormat::ci4}) {
    for (const auto& name : kernels(queue(), format)) {
      if (name == "simt") continue;
      for (const auto& shape : kShapes) check(name, format, shape, shape.n_inputs % 2 == 1);
    }
  }
}

TEST_F(CudaCorrelate, KernelsOfTheDeviceAreListed) {
  const std::vector<std::string> bytes = kernels(queue(), SampleFormat::ci8);
  EXPECT_EQ(bytes.back(), "simt");
  const bool hopper = list_devices().at(1).description.find("sm_90") != std::string::npos;
  EXPECT_EQ(bytes.front(), hopper ? "sm90_s8_wgmma" : "mma_s8");
  EXPECT_EQ(bytes.size(), hopper ? 3u : 2u);
  const std::vector<std::string> nibbles = kernels(queue(), SampleFormat::ci4);
  EXPECT_EQ(nibbles.front(), hopper ? "sm90_ci4_wgmma" : "mma_s8");
  EXPECT_EQ(nibbles.size(), hopper ? 3u : 2u);
  EXPECT_EQ(kernels(queue(), SampleFormat::cf32), (std::vector<std::string>{"simt"}));
  const std::vector<std::string> halves = kernels(queue(), SampleFormat::cf16);
  EXPECT_EQ(halves.front(), hopper ? "sm90_f16_wgmma" : "mma_f16");
  EXPECT_EQ(halves.size(), hopper ? 3u : 2u);
}

// More tiles than multiprocessors: whole rounds, and a rest that is cut along time.
TEST_F(CudaCorrelate, RoundsAndARestCutAlongTime) {
  for (const auto& name : kernels(queue(), SampleFormat::ci8)) {
    check(name, SampleFormat::ci8, {257, 30, 130}, false);
    check(name, SampleFormat::ci8, {20, 301, 129}, true);
    check(name, SampleFormat::ci8, {20, 264, 65}, false);  // no rest on 132 multiprocessors
    check(name, SampleFormat::ci8, {100, 7, 1100}, false);
  }
  for (const auto& name : kernels(queue(), SampleFormat::ci4)) {
    check(name, SampleFormat::ci4, {257, 30, 260}, false);
    check(name, SampleFormat::ci4, {20, 301, 129}, true);
    check(name, SampleFormat::ci4, {100, 7, 2100}, false);
  }
}

TEST_F(CudaCorrelate, SimtMatchesReferenceAtAnyShape) {
  for (const auto format : {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                            SampleFormat::cf16, SampleFormat::cf32}) {
    for (const auto& shape : kShapes) check("simt", format, shape, shape.n_inputs % 2 == 0);
  }
}

TEST_F(CudaCorrelate, ManyChannelsAndLongGulps) {
  check("mma_s8", SampleFormat::ci8, {5, 131, 100}, false);
  check("mma_s8", SampleFormat::ci4, {7, 131, 100}, true);
  check("mma_s8", SampleFormat::ci8, {16, 1, 4096}, true);  // time split over thread blocks
  check("mma_s8", SampleFormat::ci4, {16, 2, 5000}, false);
  for (const auto& name : kernels(queue(), SampleFormat::ci8)) {
    check(name, SampleFormat::ci8, {5, 131, 100}, true);
    check(name, SampleFormat::ci8, {130, 1, 1100}, false);
  }
  for (const auto& name : kernels(queue(), SampleFormat::ci4)) {
    check(name, SampleFormat::ci4, {7, 131, 100}, true);
    check(name, SampleFormat::ci4, {130, 1, 2100}, false);
  }
  check("simt", SampleFormat::cf32, {9, 2, 5000}, false);  // several folds into double
}

// T-XE-01: all 65 536 pairs of ci8 codes meet, real with real, real with imaginary and imaginary
// with imaginary; the length also crosses the fold from int32 to int64.
TEST_F(CudaCorrelate, AllPairsOfCi8Codes) {
  const Shape shape{2, 1, 65536};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci8, shape, false, 1));
  for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
    const auto a = static_cast<double>(t % 256 - 128);
    const auto b = static_cast<double>(t / 256 - 128);
    set_sample(gulps[0].view, 0, t, 0, {a, -1 - a});
    set_sample(gulps[0].view, 0, t, 1, {b, t % 3 == 0 ? b : -1 - b});
  }
  const Sums wanted = reference(gulps, shape);
  for (const auto& name : kernels(queue(), SampleFormat::ci8))
    expect_equal(cuda(name, gulps, shape), wanted, name);
}

// T-XE-02: the largest sums there are, over more spectra than an int32 holds.
TEST_F(CudaCorrelate, MostNegativeCodesBeyondInt32) {
  for (const auto format : {SampleFormat::ci8, SampleFormat::ci4, SampleFormat::ci16}) {
    const Shape shape{3, 1, 131'200};
    const double minimum = format == SampleFormat::ci8   ? -128
                           : format == SampleFormat::ci4 ? -8
                                                         : -32768;
    std::vector<Gulp> gulps;
    gulps.push_back(make_gulp(format, {3, 1, 1}, false, 1));
    gulps[0] = make_gulp(format, shape, false, 1);
    for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
      set_sample(gulps[0].view, 0, t, 0, {minimum, minimum});
      set_sample(gulps[0].view, 0, t, 1, {minimum, -1 - minimum});
      set_sample(gulps[0].view, 0, t, 2, {-1 - minimum, -1 - minimum});
    }
    const Sums wanted = reference(gulps, shape);
    ASSERT_EQ(wanted.integer[0].re,
              shape.n_spectra * static_cast<std::int64_t>(2 * minimum * minimum));
    for (const auto& name : kernels(queue(), format))
      expect_equal(cuda(name, gulps, shape), wanted, name);
  }
}

TEST_F(CudaCorrelate, ManyGulpsThenASecondDump) {
  const Shape shape{33, 2, 600};
  std::vector<Gulp> gulps;
  for (std::int64_t k = 0; k < 5; ++k) {
    gulps.push_back(make_gulp(SampleFormat::ci8, {33, 2, 64 * (k + 1) - k}, k % 2 == 1, 99 + k));
  }
  const Sums wanted = reference(gulps, shape);
  for (const std::string& name : kernels(queue(), SampleFormat::ci8)) {
    Config config{.n_inputs = 33,
                  .n_channels = 2,
                  .format = SampleFormat::ci8,
                  .max_spectra = 600,
                  .implementation = "cuda:" + name};
    auto correlator = make_correlator(queue(), config);
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " first dump");
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " second dump");
    const Buffer<std::byte> blocks = upload(gulps[0].bytes);
    Input input{.blocks = gulps[0].view, .n_spectra = gulps[0].n_spectra};
    input.blocks.data = blocks.data();
    correlator->execute(queue(), input);
    correlator->reset(queue());
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " after reset");
#ifdef RYLE_HAVE_CUDA
    correlator->execute(queue(), input);
    finish_in_order(queue(), *correlator);  // int64 sums are left where they lie
    correlator->reset(queue());
    expect_equal(run(queue(), *correlator, gulps, this, {}), wanted, name + " after a fold");
#endif
  }
}

TEST_F(CudaCorrelate, CountsFollowTheMasks) {
  const Shape shape{20, 2, 300};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci8, shape, false, 5));
  const std::int64_t words = words_for_bits(shape.n_spectra);
  std::vector<std::uint64_t> valid(static_cast<std::size_t>(shape.n_inputs * words));
  for (std::int64_t i = 0; i < shape.n_inputs; ++i) {
    for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
      if (mix64(combine(i / 4, t / 10)) % 5 != 0) {
        set_bit(valid.data() + i * words, t);
        continue;
      }
      for (std::int64_t c = 0; c < shape.n_channels; ++c)
        set_sample(gulps[0].view, c, t, i, {0, 0});
    }
  }
  const Sums wanted = reference(gulps, shape, valid);
  ASSERT_LT(wanted.counts[1], 300u);
  for (const auto& name : kernels(queue(), SampleFormat::ci8))
    expect_equal(cuda(name, gulps, shape, valid), wanted, name);
}

#ifdef RYLE_HAVE_CUDA
// The imager takes sums where they lie: from this kernel folded, from mma_s8 as tiles.
TEST_F(CudaCorrelate, SumsStayOnTheDevice) {
  const Shape shape{70, 2, 200};
  std::vector<Gulp> gulps;
  gulps.push_back(make_gulp(SampleFormat::ci8, shape, false, 3));
  const Sums wanted = reference(gulps, shape);
  const Buffer<std::byte> blocks = upload(gulps[0].bytes);
  Input input{.blocks = gulps[0].view, .n_spectra = shape.n_spectra};
  input.blocks.data = blocks.data();
  for (const auto& name : kernels(queue(), SampleFormat::ci8)) {
    auto correlator = make_correlator(queue(), {70, 2, SampleFormat::ci8, 200, "cuda:" + name});
    for (int dump = 0; dump < 3; ++dump) {
      correlator->execute(queue(), input);
      const DeviceSums sums = finish_on_device(queue(), *correlator);
      EXPECT_EQ(sums.n_spectra, shape.n_spectra);
      if (sums.sums == nullptr) continue;  // tiles: tested with the imager
      std::vector<ci64> found(wanted.integer.size());
      copy_bytes(queue(), found.data(), sums.sums, static_cast<std::int64_t>(16 * found.size()));
      queue().synchronize();
      for (std::size_t p = 0; p < found.size(); ++p)
        ASSERT_EQ(found[p], wanted.integer[p]) << name << " dump " << dump << " product " << p;
    }
  }
}
#endif

TEST_F(CudaCorrelate, RejectsWhatItCannotDo) {
  Config config{.n_inputs = 4,
                .n_channels = 1,
                .format = SampleFormat::ci16,
                .max_spectra = 64,
                .implementation = "cuda:mma_s8"};
  try {
    make_correlator(queue(), config);
    FAIL() << "mma_s8 took ci16";
  } catch (const UnsupportedError& error) {
    EXPECT_NE(std::string(error.what()).find("cuda:simt"), std::string::npos) << error.what();
  }
  config.implementation = "cuda:nonsense";
  EXPECT_THROW(make_correlator(queue(), config), UnsupportedError);
  config.implementation = "auto";
  EXPECT_EQ(make_correlator(queue(), config)->implementation(), "correlate/cuda/simt");
  config.format = SampleFormat::cf16;
  EXPECT_EQ(make_correlator(queue(), config)->implementation(),
            "correlate/cuda/" + kernels(queue(), SampleFormat::cf16).front());
  config.format = SampleFormat::ci8;
  auto correlator = make_correlator(queue(), config);
  EXPECT_EQ(correlator->implementation(),
            "correlate/cuda/" + kernels(queue(), SampleFormat::ci8).front());
  Gulp gulp = make_gulp(SampleFormat::ci8, {4, 1, 64}, false, 1);
  EXPECT_THROW(correlator->execute(queue(), {.blocks = gulp.view, .n_spectra = 64}), ConfigError);
  auto host = Queue::cpu(1);
  config.implementation = "cuda:mma_s8";
  EXPECT_THROW(make_correlator(host, config), UnsupportedError);
}

}  // namespace
}  // namespace ryle::correlate
