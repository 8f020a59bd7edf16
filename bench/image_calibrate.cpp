// SPDX-License-Identifier: BSD-3-Clause
// Rates of the cost model from few timed runs. Operations are counted by the planner itself: its
// prediction with one rate at 1 and the others out of the way.
#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/image_case.hpp"
#include "ryle/stage/image_calibration.hpp"

namespace ryle::bench {
namespace {

using image::CostModel;
using image::Path;

constexpr double kNever = 1e30;

// Operations (or images times channels, for the overhead) that a path spends at one rate.
double operations(const image::AllSkyConfig& config, double CostModel::*rate) {
  CostModel model;
  model.correlate_ops = model.correlate_output_bytes = kNever;
  model.efield_fft_ops = model.efield_grid_ops = model.efield_half_ops = kNever;
  model.vis_grid_ops = model.vis_dft_ops = model.efield_dft_ops = kNever;
  model.*rate = 1;
  for (const auto& p : image::plan(config, model, true).paths) {
    if (p.path == config.path) return p.seconds;
  }
  return 0;
}

struct Timed {
  image::AllSkyConfig config;
  double seconds;
};
Timed timed(Queue& queue, std::int64_t n_antennas, std::int64_t n_channels, std::int64_t n_spectra,
            Path path, double seconds, std::int64_t n_pixels = 128) {
  Timed t{scattered_array(n_antennas, n_channels, n_spectra, path), 0};
  t.config.n_pixels = n_pixels;
  const ImageData data(t.config, n_spectra, false);
  t.seconds = time_image(queue, t.config, data, seconds).second;
  return t;
}

// Useful operations per second; the last correlator also writes its sums.
double correlator_rate(Queue& queue, double seconds, std::int64_t n_antennas, CostModel& model) {
  const auto config = scattered_array(n_antennas, 2 * queue.n_workers(), 1000, Path::vis_grid);
  const ImageData data(config, 1000, false);
  const correlate::Config c{static_cast<std::int64_t>(config.inputs.size()),
                            config.channels.n_channels, SampleFormat::ci4, 1000, "auto"};
  auto correlator = correlate::make_correlator(queue, c);
  const double execute_s =
      time_runs(seconds, [&] { correlator->execute(queue, data.correlator(0)); }).second;
  correlate::Sums sums;
  const double finish_s = time_runs(seconds, [&] { correlator->finish(queue, sums); }).second;
  model.correlate_output_bytes =
      8.0 * static_cast<double>(n_pairs(c.n_inputs) * c.n_channels) / finish_s;
  return correlate::cost(c).useful_ops_per_spectrum * 1000 / execute_s;
}

void measure_correlator(Queue& queue, double seconds, CostModel& model) {
  model.correlate_shares.clear();
  for (const std::int64_t n_antennas : {16, 32, 64, 128, 256}) {
    const double rate = correlator_rate(queue, seconds, n_antennas, model);
    model.correlate_shares.push_back({2.0 * static_cast<double>(n_antennas), rate});
  }
  model.correlate_ops = model.correlate_shares.back()[1];
  for (auto& share : model.correlate_shares) share[1] /= model.correlate_ops;
}

// Few antennas leave the transforms, many add gridding; the outermost antennas are about the same.
void measure_efield(Queue& queue, double seconds, CostModel& model) {
  const std::int64_t channels = 2 * queue.n_workers();
  const Timed few = timed(queue, 32, channels, 1000, Path::efield, seconds);
  const Timed many = timed(queue, 256, channels, 1000, Path::efield, seconds);
  // t = F / f + R / r for both
  const double f1 = operations(few.config, &CostModel::efield_fft_ops);
  const double f2 = operations(many.config, &CostModel::efield_fft_ops);
  const double r1 = operations(few.config, &CostModel::efield_grid_ops);
  const double r2 = operations(many.config, &CostModel::efield_grid_ops);
  const double determinant = f1 * r2 - f2 * r1;
  const double per_fft = (few.seconds * r2 - many.seconds * r1) / determinant;
  const double per_rest = (f1 * many.seconds - f2 * few.seconds) / determinant;
  model.efield_fft_ops = 1 / std::max(per_fft, 1e-15);
  model.efield_grid_ops = 1 / std::max(per_rest, 1e-15);
}

void measure_vis_grid(Queue& queue, double seconds, CostModel& model) {
  const std::int64_t channels = 8 * queue.n_workers();
  const Timed few = timed(queue, 16, channels, 128, Path::vis_grid, seconds);
  const Timed many = timed(queue, 256, channels, 128, Path::vis_grid, seconds);
  const double grid = operations(many.config, &CostModel::vis_grid_ops) -
                      operations(few.config, &CostModel::vis_grid_ops);
  model.vis_grid_ops = grid / std::max(many.seconds - few.seconds, 1e-9);
  // What is left of the small case: pixels, folding, tasks.
  const double known = operations(few.config, &CostModel::vis_grid_ops) / model.vis_grid_ops +
                       operations(few.config, &CostModel::efield_fft_ops) / model.efield_fft_ops;
  model.overhead_s = std::max(0.0, few.seconds - known) / static_cast<double>(channels);
}

double rate_of(Queue& queue, std::int64_t n_antennas, std::int64_t n_spectra, Path path,
               double CostModel::*rate, double seconds) {
  const Timed t = timed(queue, n_antennas, 2, n_spectra, path, seconds, 64);
  return operations(t.config, rate) / t.seconds;
}

}  // namespace

CostModel calibrate_image(Queue& queue, double seconds) {
  CostModel model = image::default_cost_model(BackEnd::cpu);
  model.machine = stage::image_machine(BackEnd::cpu, queue.n_workers());
  measure_correlator(queue, seconds, model);
  measure_efield(queue, seconds, model);
  measure_vis_grid(queue, seconds, model);
  model.vis_dft_ops = rate_of(queue, 192, 128, Path::vis_dft, &CostModel::vis_dft_ops, seconds);
  model.efield_dft_ops =
      rate_of(queue, 192, 96, Path::efield_dft, &CostModel::efield_dft_ops, seconds);
  return model;
}

}  // namespace ryle::bench
