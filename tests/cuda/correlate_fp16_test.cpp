// SPDX-License-Identifier: BSD-3-Clause
// CUDA correlators of halves: small integers exactly, others within what cut sums lose, equal bits
// from equal samples.
#include <iostream>

#include "tests/cuda/correlate_case.hpp"

namespace ryle::correlate {
namespace {

/// Normal halves of rms 1, in steps of 2^-8, and the same steps as integers.
struct Fp16 {
  Gulp halves, steps;
};

Fp16 gaussian_halves(const Shape& shape, std::uint64_t seed) {
  Fp16 both{make_gulp(SampleFormat::cf16, shape, false, seed),
            make_gulp(SampleFormat::ci16, shape, false, seed)};
  for (std::int64_t c = 0; c < shape.n_channels; ++c) {
    for (std::int64_t t = 0; t < shape.n_spectra; ++t) {
      for (std::int64_t i = 0; i < shape.n_inputs; ++i) {
        const std::uint64_t key = combine(seed, combine(c, i), t);
        const auto step_of = [](double v) {
          return static_cast<int>(std::lround(std::clamp(v, -7.9, 7.9) * 256));
        };
        const int steps[2] = {step_of(gaussian(key)), step_of(gaussian(key ^ 1u))};
        auto* to = both.halves.view.cell(c, t / 32, i) + t % 32 / 16 * 64 + 2 * (t % 16);
        for (int part = 0; part < 2; ++part) {
          const auto bits =
              static_cast<std::uint16_t>(half_bits(steps[part]) - (steps[part] == 0 ? 0 : 8 << 10));
          std::memcpy(to + 32 * part, &bits, 2);
        }
        set_sample(both.steps.view, c, t, i,
                   {static_cast<double>(steps[0]), static_cast<double>(steps[1])});
      }
    }
  }
  return both;
}

/// Tensor-core kernels of this device for halves.
std::vector<std::string> kernels_of_halves(Queue& queue) {
  auto names = kernels(queue, SampleFormat::cf16);
  names.erase(std::remove(names.begin(), names.end(), "simt"), names.end());
  return names;
}

// Integers whose sums stay below 2^24 are exact in fp32 however they are added up and cut: the
// arithmetic at any shape, whole tiles and cut ones, in one launch and on top of others.
TEST_F(CudaCorrelate, HalvesThatAreSmallIntegersAreExact) {
  std::vector<Shape> shapes(std::begin(kShapes), std::end(kShapes));
  shapes.insert(shapes.end(), {{257, 30, 130}, {20, 301, 129}, {20, 264, 65}, {100, 7, 700}});
  for (const Shape& shape : shapes) check_halves(kernels_of_halves(queue()), shape);
}

// T-XE-06. An addition that cuts takes away less than 2^-23 of the sum. With one at every product
// of real parts the sum of n spectra loses, of sqrt(P_i P_j), up to sum_k (k / 2n) 2^-23 over 2n
// steps = n 2^-23, n <= 4096 to a launch; the sums of launches are rounded, 2^-24 each time. Autos
// lose on every addition, all in one direction; that bias is printed.
TEST_F(CudaCorrelate, HalvesAreWithinWhatCutSumsLose) {
  const Shape shape{130, 1, 9000};  // three launches
  Fp16 both = gaussian_halves(shape, 11);
  std::vector<Gulp> gulps, steps;
  gulps.push_back(std::move(both.halves));
  steps.push_back(std::move(both.steps));
  const Sums wanted = on_cpu(steps, shape);
  const auto power = [&](std::int64_t i) {
    return 0x1p-16 *
           static_cast<double>(wanted.integer[static_cast<std::size_t>(pair_index(i, i))].re);
  };
  for (const auto& name : kernels_of_halves(queue())) {
    const Sums found = cuda(name, gulps, shape);
    double worst = 0, bias = 0;
    for (std::size_t p = 0; p < found.real.size(); ++p) {
      const auto [i, j] = pair_of(static_cast<std::int64_t>(p));
      const cf64 off = (found.real[p] - 0x1p-16 * cf64(static_cast<double>(wanted.integer[p].re),
                                                       static_cast<double>(wanted.integer[p].im))) /
                       std::sqrt(power(i) * power(j));
      ASSERT_LE(std::abs(off), 4096 * 0x1p-23 + 3 * 0x1p-24) << name << " product " << p;
      if (i == j) {
        bias += off.real() / static_cast<double>(shape.n_inputs);
        ASSERT_EQ(found.real[p].imag(), 0) << name << " product " << p;
      } else {
        worst = std::max(worst, std::abs(off));
      }
    }
    std::cout << name << ": autos " << bias << ", worst cross product " << worst << '\n';
  }
}

#ifdef RYLE_HAVE_CUDA
// Float sums depend on their order, and thread blocks end in any: it must not matter. Items that
// are cut finely are added up by whoever ends last.
TEST_F(CudaCorrelate, EqualHalvesGiveEqualBits) {
  for (const Shape& shape : {Shape{130, 2, 5000}, Shape{64, 7, 2000}, Shape{300, 30, 200}}) {
    std::vector<Gulp> gulps;
    gulps.push_back(gaussian_halves(shape, 12).halves);
    gulps.push_back(gaussian_halves(shape, 13).halves);
    const auto repeat = [&](const std::string& name, int runs) {
      const Sums first = cuda(name, gulps, shape);
      for (int again = 0; again < runs; ++again)
        ASSERT_EQ(cuda(name, gulps, shape).real, first.real) << name << " N=" << shape.n_inputs;
    };
    for (const auto& name : kernels_of_halves(queue())) repeat(name, 3);
    for (const CudaTuning tuning : {CudaTuning{12, 1}, CudaTuning{4, 2}}) {
      const TuningScope scope(tuning);
      for (const auto& name : kernels_of_halves(queue())) repeat(name, 3);
    }
  }
}
#endif

TEST_F(CudaCorrelate, HalvesOfASecondDumpAndAfterReset) {
  const Shape shape{33, 2, 300};
  std::vector<Gulp> gulps;
  for (std::int64_t k = 0; k < 3; ++k)
    gulps.push_back(make_gulp(SampleFormat::cf16, {33, 2, 64 * (k + 1) - k}, k % 2 == 1, 99 + k));
  const Sums wanted = reference(gulps, shape);
  for (const std::string& name : kernels_of_halves(queue())) {
    auto correlator = make_correlator(queue(), {33, 2, SampleFormat::cf16, 300, "cuda:" + name});
    for (const char* dump : {"first", "second", "after reset"}) {
      ASSERT_EQ(run(queue(), *correlator, gulps, this, {}).real, wanted.real)
          << name << ' ' << dump;
      const Buffer<std::byte> blocks = upload(gulps[0].bytes);
      Input input{.blocks = gulps[0].view, .n_spectra = gulps[0].n_spectra};
      input.blocks.data = blocks.data();
      correlator->execute(queue(), input);
      correlator->reset(queue());
    }
  }
}

}  // namespace
}  // namespace ryle::correlate
