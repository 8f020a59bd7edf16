// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/cpu/cost.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/image/cpu/plan.hpp"
#include "ryle/engine/image/geometry.hpp"

namespace ryle::image::detail {
namespace {

// Spectra share vectors (E-field) or registers (Fourier sums): the last ones are filled up.
constexpr double kSpectraPerVector = 16, kSpectraPerTriple = 3, kSpectraPerChunk = 192;

double filled(double n, double unit) { return unit * std::ceil(n / unit); }

double fft_ops(double g) { return 5 * g * g * std::log2(g * g); }

}  // namespace

double places_of_baselines(const AllSkyConfig& config) {
  constexpr std::int64_t kCellsPerPlace = 2;
  if (config.n_pixels < 1) return 0;  // a list of directions
  const auto at = antenna_positions_cells(config, config.channels.n_channels / 2);
  const std::int64_t g = config.n_pixels;
  std::vector<bool> taken(g * g, false);
  const auto cell = [g](double x) {
    const auto nearest = static_cast<std::int64_t>(std::floor(x)) % g;
    return nearest < 0 ? nearest + g : nearest;
  };
  double n = 0;
  for (std::size_t b = 1; b < at.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      double x = at[a][0] - at[b][0], y = at[a][1] - at[b][1];
      if (y < 0) x = -x, y = -y;  // the half plane that is made
      auto place = taken[cell(y) * g + cell(x) / kCellsPerPlace];
      n += place ? 0 : 1;
      place = true;
    }
  }
  return n;
}

double cpu_images_s(const CpuSizes& s, const CostModel& m, Path path) {
  const double planes_pixels = s.planes * s.pixels;
  const double phasors_s = s.pixels * s.antennas * m.phasor_s;
  switch (path) {
    case Path::efield: {
      const double transforms_s = s.pols * fft_ops(s.grid) * s.fft_share / m.efield_fft_ops;
      const double rest =
          8 * s.pols * s.antennas * s.support * s.support + 4 * s.pols * s.pols * s.pixels;
      return s.channels *
             (filled(s.spectra, kSpectraPerVector) * (transforms_s + rest / m.efield_grid_ops) +
              planes_pixels * m.efield_pixel_s);
    }
    case Path::vis_grid: {
      const double cells =
          8 * s.planes * s.antennas * (s.antennas - 1) / 2 * s.footprint * s.footprint;
      const double transforms_s =
          std::ceil(s.planes / 2) * fft_ops(s.grid) * s.fft_share / m.efield_fft_ops;
      const double places_s = s.places * m.vis_place_s;
      return s.channels * (cells / m.vis_grid_ops + places_s) +
             s.transforms * (transforms_s + planes_pixels * m.vis_pixel_s);
    }
    case Path::vis_dft:
      return s.channels *
             (8 * s.products * s.pixels * s.antennas * s.antennas / m.vis_dft_ops + phasors_s);
    case Path::efield_dft:
      return s.channels * (filled(s.spectra, kSpectraPerTriple) * 8 * s.pols * s.pixels *
                               s.antennas / m.efield_dft_ops +
                           std::ceil(s.spectra / kSpectraPerChunk) * phasors_s);
    default:
      return 0;
  }
}

double cpu_setup_s(const CpuSizes& s, const CostModel& m, Path path) {
  if (path == Path::efield) return s.channels * s.grid * s.grid * m.setup_pixel_s;
  if (path != Path::vis_grid) return 0;
  return s.channels * s.antennas * (s.antennas - 1) / 2 * m.setup_pair_s +
         s.grid * s.grid * m.setup_pixel_s;
}

namespace {

/// A Fourier sum over the pairs of few antennas: everything in the first cache.
class QuickSum {
  static constexpr std::int64_t kAntennas = 24;

 public:
  void run() { kernels_.vis_sum(products_.data(), kAntennas, phasors_.data(), 4, sums_.data()); }
  // 4 planes, 8 per complex multiply-add and pair.
  static constexpr double kOps = 4.0 * 8 * kAntennas * (kAntennas - 1) / 2 * kDirectionsPerBlock;

 private:
  static std::string_view widest() {
    for (const auto& set : cpu_instruction_sets()) {
      if (set == "avx512") return "avx512";
      if (set == "avx2") return "avx2";
    }
    return "generic";
  }
  const CpuKernels& kernels_ = cpu_kernels(widest());
  std::vector<float> products_ = std::vector<float>(kAntennas * kAntennas / 2 * kCellFloats, 0.5f);
  std::vector<float> phasors_ = std::vector<float>(kAntennas * 2 * kDirectionsPerBlock, 0.5f);
  std::vector<double> sums_ = std::vector<double>(4 * kDirectionsPerBlock);
};

}  // namespace

double cpu_ops_now(int n_bursts) {
  constexpr int kRuns = 5;
  static thread_local QuickSum sum;
  double best_s = 1e9;
  for (int burst = 0; burst < n_bursts; ++burst) {
    const auto begin = std::chrono::steady_clock::now();
    for (int run = 0; run < kRuns; ++run) sum.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    best_s = std::min(best_s, took.count());
  }
  return kRuns * QuickSum::kOps / std::max(best_s, 1e-9);
}

double cpu_quick_ops() {
  static const double rate = cpu_ops_now(100);
  return rate;
}

}  // namespace ryle::image::detail
