// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/flag/flag_visibilities.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <thread>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/calibrate/screen.hpp"
#include "ryle/engine/flag/flag.hpp"

namespace ryle::pipeline {
namespace {

std::int64_t pols_of(const VisibilityDump& dump) { return dump.n_pol_products == 1 ? 1 : 2; }

// Inputs (antenna, pol) of a baseline's product.
struct Ends {
  std::int64_t first = 0;
  std::int64_t second = 0;
};
Ends ends_of(std::int64_t baseline, std::int64_t product, std::int64_t n_pols) {
  const auto [i, j] = pair_of(baseline);
  return n_pols == 1 ? Ends{i, j} : Ends{i * 2 + product / 2, j * 2 + product % 2};
}

void clear(VisibilityDump& dump, std::size_t at) {
  dump.counts[at] = 0;
  dump.data[at] = 0;
}

// Mean |V_ab|^2 over integrations and channels of one polarization. @shape [a][b]
std::vector<double> pair_powers(const Observation& observation,
                                std::span<const VisibilityDump> dumps, std::int64_t product) {
  const std::int64_t n = observation.array.n_antennas();
  std::vector<double> powers(static_cast<std::size_t>(n * n), 0);
  for (std::int64_t b = 0; b < dumps.front().n_baselines; ++b) {
    const auto [i, j] = pair_of(b);
    double sum = 0;
    double count = 0;
    for (const VisibilityDump& dump : dumps) {
      for (std::int64_t c = 0; c < dump.n_channels && i != j; ++c) {
        const auto at = static_cast<std::size_t>(dump.index(c, b, product));
        if (dump.counts[at] == 0) continue;
        sum += std::norm(cf64(dump.data[at]));
        count += 1;
      }
    }
    powers[i * n + j] = powers[j * n + i] = count > 0 ? sum / count : 0;
  }
  return powers;
}

void flag_inputs(Observation& observation, std::span<VisibilityDump> dumps,
                 const FlagOptions& options, FlagReport& report) {
  const std::int64_t n_pols = pols_of(dumps.front());
  const std::int64_t n_antennas = observation.array.n_antennas();
  std::vector<bool> dropped(static_cast<std::size_t>(n_antennas * n_pols), false);
  for (std::int64_t pol = 0; pol < n_pols; ++pol) {
    const auto screened =
        calibrate::screen(pair_powers(observation, dumps, n_pols == 1 ? 0 : 3 * pol),
                          {options.power_below, options.power_above});
    for (std::int64_t a = 0; a < n_antennas; ++a) {
      if (screened.dropped[a] == calibrate::Dropped::no) continue;
      dropped[a * n_pols + pol] = true;
      report.inputs.push_back(
          {observation.array.antennas[a].name, static_cast<int>(pol), screened.ratio[a]});
    }
  }
  for (auto& input : observation.array.inputs) {
    const auto k = static_cast<std::size_t>(input.antenna * n_pols + (n_pols == 1 ? 0 : input.pol));
    input.bad = input.bad || dropped[k];
  }
  for (VisibilityDump& dump : dumps) {
    for (std::int64_t b = 0; b < dump.n_baselines; ++b) {
      for (std::int64_t p = 0; p < dump.n_pol_products; ++p) {
        const Ends ends = ends_of(b, p, n_pols);
        if (!dropped[ends.first] && !dropped[ends.second]) continue;
        for (std::int64_t c = 0; c < dump.n_channels; ++c) {
          const auto at = static_cast<std::size_t>(dump.index(c, b, p));
          report.n_inputs += dump.counts[at] != 0 ? 1 : 0;
          clear(dump, at);
        }
      }
    }
  }
}

void flag_interference(std::span<VisibilityDump> dumps, const FlagOptions& options,
                       FlagReport& report) {
  const VisibilityDump& shape = dumps.front();
  flag::Config config;
  config.n_times = static_cast<std::int64_t>(dumps.size());
  config.n_channels = shape.n_channels;
  config.threshold_sigmas = options.threshold_sigmas;
  config.max_window = options.max_window;
  config.implementation = options.implementation;
  if (config.n_times * config.n_channels < 8) {
    report.notes.push_back(
        fmt::format("{} integrations of {} channels are too few to tell interference from the sky: "
                    "none was looked for",
                    config.n_times, config.n_channels));
    return;
  }
  const auto n_channels = static_cast<std::size_t>(config.n_channels);
  std::vector<std::int64_t> found(n_channels, 0), there(n_channels, 0);
  std::mutex mutex;  // of found, there and the report
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> stopped{false};
  // Baselines are apart in memory: every worker has planes and an engine of its own.
  const auto work = [&](bool reports) {
    const auto engine = flag::make_sum_threshold(config);
    const auto n = static_cast<std::size_t>(config.n_times * config.n_channels);
    std::vector<float> amplitudes(n);
    std::vector<std::uint8_t> flags(n);
    std::vector<std::int64_t> my_found(n_channels, 0), my_there(n_channels, 0);
    for (std::int64_t b = next++; b < shape.n_baselines && !stopped; b = next++) {
      if (reports && options.go_on &&
          !options.go_on(static_cast<double>(b) / static_cast<double>(shape.n_baselines)))
        stopped = true;
      for (std::int64_t p = 0; p < shape.n_pol_products; ++p) {
        std::size_t k = 0;
        for (const VisibilityDump& dump : dumps) {
          for (std::int64_t c = 0; c < config.n_channels; ++c, ++k) {
            const auto at = static_cast<std::size_t>(dump.index(c, b, p));
            flags[k] = dump.counts[at] == 0 ? 1 : 0;
            amplitudes[k] = std::abs(dump.data[at]);
            my_there[c] += flags[k] == 0 ? 1 : 0;
          }
        }
        engine->flag(amplitudes, flags);
        k = 0;
        for (VisibilityDump& dump : dumps) {
          for (std::int64_t c = 0; c < config.n_channels; ++c, ++k) {
            const auto at = static_cast<std::size_t>(dump.index(c, b, p));
            if (flags[k] == 0 || dump.counts[at] == 0) continue;
            clear(dump, at);
            ++my_found[c];
          }
        }
      }
    }
    const std::lock_guard lock(mutex);
    report.implementation = engine->implementation();
    for (std::size_t c = 0; c < n_channels; ++c) {
      found[c] += my_found[c];
      there[c] += my_there[c];
      report.n_interference += my_found[c];
    }
  };
  flag::validate(config);  // here, not in a worker
  {
    const unsigned n_workers = options.n_workers > 0
                                   ? static_cast<unsigned>(options.n_workers)
                                   : std::max(1U, std::thread::hardware_concurrency());
    std::vector<std::jthread> workers;
    for (unsigned k = 1; k < n_workers; ++k) workers.emplace_back(work, false);
    work(true);
  }
  if (stopped) throw Error(ExitCode::try_again, "stopped; no file was written");
  for (std::size_t c = 0; c < n_channels; ++c) {
    report.channel_fraction.push_back(
        there[c] > 0 ? static_cast<double>(found[c]) / static_cast<double>(there[c]) : 0);
  }
}

}  // namespace

FlagReport flag_visibilities(Observation& observation, std::span<VisibilityDump> dumps,
                             const FlagOptions& options) {
  FlagReport report;
  for (const VisibilityDump& dump : dumps) {
    if (dump.n_channels != dumps.front().n_channels ||
        dump.n_baselines != dumps.front().n_baselines ||
        dump.n_pol_products != dumps.front().n_pol_products)
      throw FormatError("the integrations of this file have different shapes");
    report.n_values += static_cast<std::int64_t>(dump.counts.size());
    report.n_before += std::count(dump.counts.begin(), dump.counts.end(), 0U);
  }
  if (report.n_values == report.n_before)
    throw FormatError("every value of this file is flagged or absent: there is nothing to flag");
  if (options.row_power) flag_inputs(observation, dumps, options, report);
  if (options.sum_threshold) flag_interference(dumps, options, report);
  return report;
}

}  // namespace ryle::pipeline
