// SPDX-License-Identifier: BSD-3-Clause
// Rates of the cost model from few timed runs. Operations are counted by the planner itself: its
// prediction with one rate (or cost) at 1 and the others out of the way.
#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include "bench/image_case.hpp"
#include "ryle/engine/image/cost_fit.hpp"
#include "ryle/stage/image_calibration.hpp"

namespace ryle::bench {
namespace {

using image::AllSkyConfig;
using image::CostModel;
using image::Path;
using Field = double CostModel::*;

constexpr double kNever = 1e30;
// A neighbour on the machine disturbs for seconds: everything is measured in so many rounds and the
// shortest time counts.
constexpr int kRounds = 3;

bool is_cost(Field field) {
  return field == &CostModel::vis_pixel_s || field == &CostModel::efield_pixel_s ||
         field == &CostModel::phasor_s || field == &CostModel::vis_place_s ||
         field == &CostModel::setup_pair_s || field == &CostModel::setup_pixel_s;
}

CostModel nothing_costs() {
  CostModel model;
  model.correlate_ops = model.correlate_output_bytes = kNever;
  model.efield_fft_ops = model.efield_grid_ops = kNever;
  model.vis_grid_ops = model.vis_dft_ops = model.efield_dft_ops = kNever;
  return model;
}

// Operations (or pixels, phasors, pairs) that a path spends at one rate.
double operations(const AllSkyConfig& config, Field field, bool setup) {
  CostModel model = nothing_costs();
  model.*field = 1;
  for (const auto& p : image::plan(config, model, true).paths) {
    if (p.path == config.path) return setup ? p.setup_s : p.seconds;
  }
  return 0;
}

/// A measurement: its shortest time of all rounds.
struct Measured {
  AllSkyConfig config;
  std::function<double(double)> time;  ///< seconds to spend -> shortest seconds of a run
  bool setup = false;
  double seconds = std::numeric_limits<double>::infinity();
};

Measured images(Queue& queue, std::int64_t n_antennas, std::int64_t n_channels,
                std::int64_t n_spectra, Path path, std::int64_t n_pixels = 128) {
  Measured m;
  m.config = scattered_array(n_antennas, n_channels, n_spectra, path);
  m.config.n_pixels = n_pixels;
  m.time = [&queue, config = m.config](double seconds) {
    const ImageData data(config, config.n_spectra_per_image, false);
    return time_image(queue, config, data, seconds).second;
  };
  return m;
}

Measured setup(Queue& queue, std::int64_t n_antennas, std::int64_t n_channels, Path path) {
  Measured m;
  m.config = scattered_array(n_antennas, n_channels, 1, path);
  m.setup = true;
  m.time = [&queue, config = m.config](double seconds) {
    return time_runs(seconds,
                     [&] {
                       if (image::takes_voltages(config.path)) {
                         image::make_field_imager(queue, config);
                       } else {
                         image::make_vis_imager(queue, config);
                       }
                     })
        .second;
  };
  return m;
}

// Fits the fields to what is left of the measured times after `known` fields.
void fit(CostModel& model, const std::vector<const Measured*>& measured,
         const std::vector<Field>& fields, const std::vector<Field>& known = {}) {
  const auto cost_s = [&](Field field) {
    return is_cost(field) ? model.*field : 1 / (model.*field);
  };
  std::vector<image::TimedRun> runs;
  for (const Measured* m : measured) {
    image::TimedRun run;
    run.seconds = m->seconds;
    for (const Field field : known) {
      run.seconds -= operations(m->config, field, m->setup) * cost_s(field);
    }
    run.seconds = std::max(run.seconds, 0.1 * m->seconds);
    for (const Field field : fields) {
      run.operations.push_back(operations(m->config, field, m->setup));
    }
    runs.push_back(std::move(run));
  }
  std::vector<double> expected_s;
  for (const Field field : fields) expected_s.push_back(cost_s(field));
  const auto fitted_s = image::fit_costs(runs, expected_s);
  for (std::size_t j = 0; j < fields.size(); ++j) {
    model.*fields[j] = is_cost(fields[j]) ? fitted_s[j] : 1 / fitted_s[j];
  }
}

/// Shortest times of the X-engine of one size.
struct CorrelatorTimes {
  std::int64_t n_antennas = 0;
  double execute_s = std::numeric_limits<double>::infinity();
  double finish_s = std::numeric_limits<double>::infinity();
  double ops = 0, pairs = 0;
};

// Samples and sums lie beyond the caches, as they do in a band.
void time_correlator(Queue& queue, double seconds, CorrelatorTimes& times) {
  constexpr std::int64_t kSpectra = 1000, kGulpBytes = std::int64_t{16} << 20;
  const std::int64_t n_channels = kGulpBytes / (2 * times.n_antennas * 1024);
  const auto config = scattered_array(times.n_antennas, n_channels, kSpectra, Path::vis_grid);
  const ImageData data(config, kSpectra, true);
  const correlate::Config c{2 * times.n_antennas, n_channels, SampleFormat::ci4, kSpectra, "auto"};
  auto correlator = correlate::make_correlator(queue, c);
  std::int64_t gulp = 0;
  const auto run = [&] { correlator->execute(queue, data.correlator(++gulp)); };
  times.execute_s = std::min(times.execute_s, time_runs(seconds, run).second);
  correlate::Sums sums;
  const auto finish = [&] { correlator->finish(queue, sums); };
  times.finish_s = std::min(times.finish_s, time_runs(seconds / 2, finish).second);
  times.ops = correlate::cost(c).useful_ops_per_spectrum * kSpectra;
  times.pairs = static_cast<double>(n_pairs(c.n_inputs) * n_channels);
}

void set_correlator(const std::vector<CorrelatorTimes>& times, CostModel& model) {
  model.correlate_shares.clear();
  model.correlate_ops = times.back().ops / times.back().execute_s;
  model.correlate_output_bytes = 8 * times.back().pairs / times.back().finish_s;
  for (const auto& t : times) {
    model.correlate_shares.push_back(
        {2.0 * static_cast<double>(t.n_antennas), t.ops / t.execute_s / model.correlate_ops});
  }
}

}  // namespace

CostModel calibrate_image(Queue& queue, double seconds) {
  const std::int64_t w = queue.n_workers();
  std::vector<CorrelatorTimes> correlators;
  for (const std::int64_t n : {16, 32, 64, 128, 256}) correlators.push_back({.n_antennas = n});
  // Few antennas leave the transforms, many add gridding, few spectra the end of an image.
  std::vector<Measured> efield{images(queue, 32, 2 * w, 1000, Path::efield),
                               images(queue, 256, 2 * w, 1000, Path::efield),
                               images(queue, 64, 32 * w, 16, Path::efield)};
  std::vector<Measured> vis_grid{
      images(queue, 16, 128, 128, Path::vis_grid), images(queue, 32, 128, 128, Path::vis_grid),
      images(queue, 96, 64, 128, Path::vis_grid), images(queue, 256, 16, 128, Path::vis_grid)};
  std::vector<Measured> sums{
      images(queue, 192, 2, 128, Path::vis_dft, 64), images(queue, 24, 8, 128, Path::vis_dft),
      images(queue, 192, 2, 96, Path::efield_dft, 64), images(queue, 64, 4, 3, Path::efield_dft)};
  std::vector<Measured> setups{setup(queue, 128, 8 * w, Path::vis_grid),
                               setup(queue, 32, 16 * w, Path::efield)};
  for (int round = 0; round < kRounds; ++round) {
    const double each_s = seconds / kRounds;
    for (auto& times : correlators) time_correlator(queue, each_s, times);
    for (auto* group : {&efield, &vis_grid, &sums, &setups}) {
      for (auto& m : *group) m.seconds = std::min(m.seconds, m.time(each_s));
    }
  }
  const auto all = [](const std::vector<Measured>& group) {
    std::vector<const Measured*> list;
    for (const auto& m : group) list.push_back(&m);
    return list;
  };
  CostModel model = image::default_cost_model(BackEnd::cpu, queue.n_workers());
  model.machine = stage::image_machine(BackEnd::cpu, queue.n_workers());
  set_correlator(correlators, model);
  fit(model, all(efield),
      {&CostModel::efield_fft_ops, &CostModel::efield_grid_ops, &CostModel::efield_pixel_s});
  fit(model, all(vis_grid),
      {&CostModel::vis_grid_ops, &CostModel::vis_place_s, &CostModel::vis_pixel_s},
      {&CostModel::efield_fft_ops});
  fit(model, all(sums),
      {&CostModel::vis_dft_ops, &CostModel::efield_dft_ops, &CostModel::phasor_s});
  fit(model, {&setups[1]}, {&CostModel::setup_pixel_s});
  fit(model, {&setups[0]}, {&CostModel::setup_pair_s}, {&CostModel::setup_pixel_s});
  return model;
}

}  // namespace ryle::bench
