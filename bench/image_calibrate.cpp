// SPDX-License-Identifier: BSD-3-Clause
// Rates of the cost model from few timed runs. Operations are counted by the planner itself: its
// prediction with one rate (or cost) at 1 and the others out of the way.
#include <algorithm>
#include <chrono>
#include <functional>

#include "bench/image_case.hpp"
#include "ryle/engine/image/cost_fit.hpp"
#include "ryle/pipeline/image/image_calibration.hpp"

namespace ryle::bench {
namespace {

using image::AllSkyConfig;
using image::CostModel;
using image::Path;
using Field = double CostModel::*;

constexpr double kNever = 1e30;
// A neighbour on the machine disturbs for seconds: everything is measured in so many rounds, each
// run at the speed that the cores had, and the middle one of the rounds counts.
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

// What takes longer at `now` than at the speed of the calibration, by rate.
double slower(Field field, const image::CoreSpeed& reference, const image::CoreSpeed& now) {
  CostModel model;
  model.*field = 1;
  model.measured_at = reference;
  const double changed = image::at_core_speed(model, now).*field;
  return is_cost(field) ? changed : 1 / changed;
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

/// One run of every round.
class Rounds {
 public:
  void add(const TimedAtSpeed& timed) {
    if (!timed.empty()) runs_.push_back(timed.typical());
  }
  /// The middle one by seconds at equal speed; of 0 s when the speed never stood still.
  RunAtSpeed run() const {
    const auto sorted = steady_runs(runs_).kept;
    return sorted.empty() ? RunAtSpeed{} : sorted[(sorted.size() - 1) / 2];
  }

 private:
  std::vector<RunAtSpeed> runs_;
};

/// A measurement of a path.
struct Measured {
  AllSkyConfig config;
  std::function<TimedAtSpeed(double)> time;  ///< seconds to spend
  bool setup = false;
  Rounds rounds;
};

/// Where runs are timed.
struct Timer {
  Queue& queue;
  CoreSpeedProbe& probe;
};

Measured images(const Timer& on, std::int64_t n_antennas, std::int64_t n_channels,
                std::int64_t n_spectra, Path path, std::int64_t n_pixels = 128) {
  Measured m;
  m.config = scattered_array(n_antennas, n_channels, n_spectra, path);
  m.config.n_pixels = n_pixels;
  m.time = [on, config = m.config](double seconds) {
    const ImageData data(config, config.n_spectra_per_image, false);
    return time_image(on.queue, on.probe, config, data, seconds);
  };
  return m;
}

Measured setup(const Timer& on, std::int64_t n_antennas, std::int64_t n_channels, Path path) {
  Measured m;
  m.config = scattered_array(n_antennas, n_channels, 1, path);
  m.setup = true;
  m.time = [on, config = m.config](double seconds) {
    const auto make = [&] {
      if (image::takes_voltages(config.path)) {
        image::make_field_imager(on.queue, config);
      } else {
        image::make_vis_imager(on.queue, config);
      }
    };
    return time_at_speed(on.probe, seconds, {{make}});
  };
  return m;
}

// Fits the fields to what is left of the measured times after `known` fields. An operation counts
// for as much more as it took longer at the speed of its run than it would at the model's.
void fit(CostModel& model, const std::vector<const Measured*>& measured,
         const std::vector<Field>& fields, const std::vector<Field>& known = {}) {
  const auto cost_s = [&](Field field) {
    return is_cost(field) ? model.*field : 1 / (model.*field);
  };
  std::vector<image::TimedRun> runs;
  for (const Measured* m : measured) {
    const RunAtSpeed timed = m->rounds.run();
    const auto counted = [&](Field field) {
      return operations(m->config, field, m->setup) * slower(field, model.measured_at, timed.speed);
    };
    image::TimedRun run;
    run.seconds = timed.seconds;
    for (const Field field : known) run.seconds -= counted(field) * cost_s(field);
    run.seconds = std::max(run.seconds, 0.1 * timed.seconds);
    for (const Field field : fields) run.operations.push_back(counted(field));
    runs.push_back(std::move(run));
  }
  std::vector<double> expected_s;
  for (const Field field : fields) expected_s.push_back(cost_s(field));
  const auto fitted_s = image::fit_costs(runs, expected_s);
  for (std::size_t j = 0; j < fields.size(); ++j) {
    model.*fields[j] = is_cost(fields[j]) ? fitted_s[j] : 1 / fitted_s[j];
  }
}

/// The X-engine of one size.
struct CorrelatorTimes {
  std::int64_t n_antennas = 0;
  Rounds execute{}, finish{};
  double ops = 0, pairs = 0;
};

// Samples and sums lie beyond the caches, as they do in a band.
void time_correlator(const Timer& on, double seconds, CorrelatorTimes& times) {
  constexpr std::int64_t kSpectra = 1000, kGulpBytes = std::int64_t{16} << 20;
  const std::int64_t n_channels = kGulpBytes / (2 * times.n_antennas * 1024);
  const auto config = scattered_array(times.n_antennas, n_channels, kSpectra, Path::vis_grid);
  const ImageData data(config, kSpectra, true);
  const correlate::Config c{2 * times.n_antennas, n_channels, SampleFormat::ci4, kSpectra, "auto"};
  auto correlator = correlate::make_correlator(on.queue, c);
  std::int64_t gulp = 0;
  const auto execute = [&] { correlator->execute(on.queue, data.correlator(++gulp)); };
  times.execute.add(time_at_speed(on.probe, seconds, {{execute, true}}));
  correlate::Sums sums;
  const auto finish = [&] { correlator->finish(on.queue, sums); };
  times.finish.add(time_at_speed(on.probe, seconds / 2, {{finish}}));
  times.ops = correlate::cost(c).useful_ops_per_spectrum * kSpectra;
  times.pairs = static_cast<double>(n_pairs(c.n_inputs) * n_channels);
}

void set_correlator(const std::vector<CorrelatorTimes>& times, CostModel& model) {
  const auto seconds = [&](const Rounds& rounds, Field field) {
    const RunAtSpeed run = rounds.run();
    return run.seconds / slower(field, model.measured_at, run.speed);
  };
  const auto execute_ops = [&](const CorrelatorTimes& t) {
    return t.ops / seconds(t.execute, &CostModel::correlate_ops);
  };
  model.correlate_shares.clear();
  model.correlate_ops = execute_ops(times.back());
  model.correlate_output_bytes =
      8 * times.back().pairs / seconds(times.back().finish, &CostModel::correlate_output_bytes);
  for (const auto& t : times) {
    model.correlate_shares.push_back(
        {2.0 * static_cast<double>(t.n_antennas), execute_ops(t) / model.correlate_ops});
  }
}

// What the rates are stated for: the middle of what the cores ran at.
image::CoreSpeed middle_speed(const std::vector<const Rounds*>& all) {
  const auto middle_of = [&](double image::CoreSpeed::*speed) {
    std::vector<double> values;
    for (const Rounds* rounds : all) {
      const double value = rounds->run().speed.*speed;
      if (value > 0) values.push_back(value);
    }
    std::sort(values.begin(), values.end());
    return values.empty() ? 0 : values[values.size() / 2];
  };
  return {middle_of(&image::CoreSpeed::ops), middle_of(&image::CoreSpeed::bytes_per_s),
          middle_of(&image::CoreSpeed::product_ops)};
}

}  // namespace

CostModel calibrate_image(Queue& queue, CoreSpeedProbe& probe, double seconds) {
  const Timer on{queue, probe};
  const std::int64_t w = queue.n_workers();
  std::vector<CorrelatorTimes> correlators;
  for (const std::int64_t n : {16, 32, 64, 128, 256}) correlators.push_back({.n_antennas = n});
  // Few antennas leave the transforms, many add gridding, few spectra the end of an image.
  std::vector<Measured> efield{images(on, 32, 2 * w, 1000, Path::efield),
                               images(on, 256, 2 * w, 1000, Path::efield),
                               images(on, 64, 32 * w, 16, Path::efield)};
  std::vector<Measured> vis_grid{
      images(on, 16, 128, 128, Path::vis_grid), images(on, 32, 128, 128, Path::vis_grid),
      images(on, 96, 64, 128, Path::vis_grid), images(on, 256, 16, 128, Path::vis_grid)};
  std::vector<Measured> sums{
      images(on, 192, 2, 128, Path::vis_dft, 64), images(on, 24, 8, 128, Path::vis_dft),
      images(on, 192, 2, 96, Path::efield_dft, 64), images(on, 64, 4, 3, Path::efield_dft)};
  std::vector<Measured> setups{setup(on, 128, 8 * w, Path::vis_grid),
                               setup(on, 32, 16 * w, Path::efield)};
  for (int round = 0; round < kRounds; ++round) {
    const double each_s = seconds / kRounds;
    for (auto& times : correlators) time_correlator(on, each_s, times);
    for (auto* group : {&efield, &vis_grid, &sums, &setups}) {
      for (auto& m : *group) m.rounds.add(m.time(each_s));
    }
  }
  const auto all = [](const std::vector<Measured>& group) {
    std::vector<const Measured*> list;
    for (const auto& m : group) list.push_back(&m);
    return list;
  };
  CostModel model = image::default_cost_model(BackEnd::cpu, queue.n_workers());
  model.machine = pipeline::image_machine(BackEnd::cpu, queue.n_workers());
  std::vector<const Rounds*> rounds;
  for (const auto& times : correlators) rounds.push_back(&times.execute);
  for (const auto* group : {&efield, &vis_grid, &sums, &setups}) {
    for (const auto& m : *group) rounds.push_back(&m.rounds);
  }
  // Expected costs are those of now; the proportions are what counts.
  model = image::at_core_speed(model, middle_speed(rounds));
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
