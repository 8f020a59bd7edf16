// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_power.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numbers>

#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::pipeline {
namespace {

constexpr int kParameters = 4;  // baseline, height, middle, width
using Parameters = std::array<double, kParameters>;
using Normal = std::array<std::array<double, kParameters>, kParameters>;

constexpr std::size_t kMaxLines = 8;  // of a picture: as many colors are told apart

/// Ticks at round times of day, in seconds since `start_tai_ns`.
std::vector<Panel::Tick> clock_ticks(std::int64_t start_tai_ns, double length_s) {
  constexpr double kMaxTicks = 7;
  double step_s = 86400;
  for (const double s :
       {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200}) {
    if (length_s / s > kMaxTicks) continue;
    step_s = s;
    break;
  }
  const std::string utc = utc_iso(start_tai_ns, 3);  // 2025-03-01T12:00:00.000
  const double of_day_s = 3600 * std::stod(utc.substr(11, 2)) + 60 * std::stod(utc.substr(14, 2)) +
                          std::stod(utc.substr(17));
  std::vector<Panel::Tick> ticks;
  for (double at = std::ceil(of_day_s / step_s) * step_s; at - of_day_s <= length_s; at += step_s) {
    const auto s = static_cast<std::int64_t>(at) % 86400;
    std::string label = fmt::format("{:02}:{:02}", s / 3600, s / 60 % 60);
    if (step_s < 60) label += fmt::format(":{:02}", s % 60);
    ticks.push_back({at - of_day_s, std::move(label)});
  }
  return ticks;
}

double transit_model(const Parameters& p, double t, Parameters& slope) {
  const double x = (t - p[2]) / p[3];
  const double shape = std::exp(-4 * std::numbers::ln2 * x * x);
  slope = {1, shape, p[1] * shape * 8 * std::numbers::ln2 * x / p[3],
           p[1] * shape * 8 * std::numbers::ln2 * x * x / p[3]};
  return p[0] + p[1] * shape;
}

/// Solves m x = v by elimination with pivots; false when singular. Leaves the inverse in m.
bool invert(Normal& m) {
  Normal inverse{};
  for (int k = 0; k < kParameters; ++k) inverse[k][k] = 1;
  for (int k = 0; k < kParameters; ++k) {
    int pivot = k;
    for (int r = k + 1; r < kParameters; ++r)
      if (std::abs(m[r][k]) > std::abs(m[pivot][k])) pivot = r;
    if (!(std::abs(m[pivot][k]) > 0)) return false;
    std::swap(m[k], m[pivot]);
    std::swap(inverse[k], inverse[pivot]);
    const double scale = 1 / m[k][k];
    for (int c = 0; c < kParameters; ++c) m[k][c] *= scale, inverse[k][c] *= scale;
    for (int r = 0; r < kParameters; ++r) {
      if (r == k) continue;
      const double f = m[r][k];
      for (int c = 0; c < kParameters; ++c)
        m[r][c] -= f * m[k][c], inverse[r][c] -= f * inverse[k][c];
    }
  }
  m = inverse;
  return true;
}

struct LeastSquares {
  std::vector<double> t, y;
  double chi2(const Parameters& p) const {
    Parameters slope;
    double sum = 0;
    for (std::size_t k = 0; k < t.size(); ++k) {
      const double d = y[k] - transit_model(p, t[k], slope);
      sum += d * d;
    }
    return sum;
  }
  /// J^T J and J^T r.
  void normal(const Parameters& p, Normal& a, Parameters& b) const {
    a = {};
    b = {};
    Parameters slope;
    for (std::size_t k = 0; k < t.size(); ++k) {
      const double d = y[k] - transit_model(p, t[k], slope);
      for (int i = 0; i < kParameters; ++i) {
        b[i] += slope[i] * d;
        for (int j = 0; j < kParameters; ++j) a[i][j] += slope[i] * slope[j];
      }
    }
  }
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Levenberg-Marquardt from a first guess; false when it does not converge.
bool minimise(const LeastSquares& data, Parameters& p) {
  double damping = 1e-3, chi2 = data.chi2(p);
  for (int round = 0; round < 100; ++round) {
    Normal a;
    Parameters b;
    data.normal(p, a, b);
    for (int i = 0; i < kParameters; ++i) a[i][i] *= 1 + damping;
    if (!invert(a)) return false;
    Parameters next = p;
    for (int i = 0; i < kParameters; ++i)
      for (int j = 0; j < kParameters; ++j) next[i] += a[i][j] * b[j];
    next[3] = std::abs(next[3]);
    const double tried = next[3] > 0 ? data.chi2(next) : chi2 + 1;
    if (!(tried <= chi2)) {
      damping *= 10;
      if (damping > 1e12) return true;  // no smaller step helps: the minimum
      continue;
    }
    const bool done = chi2 - tried <= 1e-12 * chi2;
    p = next;
    chi2 = tried;
    damping = std::max(damping / 10, 1e-12);
    if (done) return true;
  }
  return false;
}

}  // namespace

std::optional<Transit> fit_transit(std::span<const double> time_s, std::span<const double> power) {
  constexpr std::size_t kMinSamples = 8;
  constexpr double kMinSignificance = 5;
  LeastSquares data;
  for (std::size_t k = 0; k < power.size(); ++k) {
    if (!std::isfinite(power[k])) continue;
    data.t.push_back(time_s[k]);
    data.y.push_back(power[k]);
  }
  if (data.t.size() < kMinSamples) return std::nullopt;
  const double first = data.t.front(), last = data.t.back();
  const auto top =
      static_cast<std::size_t>(std::max_element(data.y.begin(), data.y.end()) - data.y.begin());
  Parameters best{};
  double best_chi2 = std::numeric_limits<double>::infinity();
  for (const double part : {0.05, 0.15, 0.4}) {  // of the data: first guesses of the width
    Parameters p{median_of(data.y), 0, data.t[top], part * (last - first)};
    p[1] = data.y[top] - p[0];
    if (!minimise(data, p)) continue;
    const double chi2 = data.chi2(p);
    if (chi2 < best_chi2) best_chi2 = chi2, best = p;
  }
  if (!std::isfinite(best_chi2) || best[2] < first || best[2] > last) return std::nullopt;
  Normal covariance;
  Parameters unused;
  data.normal(best, covariance, unused);
  if (!invert(covariance)) return std::nullopt;
  const double variance = best_chi2 / static_cast<double>(data.t.size() - kParameters);
  const auto error = [&](int k) { return std::sqrt(std::max(0.0, covariance[k][k] * variance)); };
  if (!(best[1] > kMinSignificance * error(1))) return std::nullopt;
  return Transit{best[2], error(2), best[3], error(3),
                 best[1], error(1), best[0], std::sqrt(variance)};
}

BeamPower::BeamPower(const ObservationConfig& config, const BeamStream& stream)
    : config_(config),
      stream_(stream),
      per_sample_(std::max<std::int64_t>(
          1, std::llround(config.beams.power_s * stream.clock.rate_hz.value()))),
      power_(stream.n_beams()) {
  sums_.assign(stream.n_beams() * stream.frequency.n_channels, 0);
  means_.assign(sums_.size(), std::numeric_limits<double>::quiet_NaN());
  counts_.assign(stream.frequency.n_channels, 0);
  for (const char* ending : {"_power.csv", "_transits.csv", "_power.png"})
    require_creatable(name(ending), config.output.overwrite);
}

std::string BeamPower::name(const char* ending) const {
  return (std::filesystem::path(config_.output.directory) / (config_.output.name + ending))
      .string();
}

std::int64_t BeamPower::memory_bytes() const {
  return static_cast<std::int64_t>(sums_.size() + means_.size() + counts_.size()) * 8;
}

void BeamPower::take(const BeamChunk& chunk) {
  if (segment_ < 0) {
    segment_ = chunk.segment;
    first_sample_ = chunk.first_sample;
    clock_ = chunk.clock;
  }
  if (chunk.segment != segment_ || chunk.first_sample < first_sample_) {
    other_segments_ += chunk.n_samples;
    return;
  }
  const std::int64_t end = chunk.first_sample + chunk.n_samples;
  for (std::int64_t at = chunk.first_sample; at < end;) {
    const std::int64_t sample = (at - first_sample_) / per_sample_;
    while (open_ < sample) close_sample();
    const std::int64_t next = std::min(end, first_sample_ + (sample + 1) * per_sample_);
    add(chunk, at, next);
    at = next;
    if (at == first_sample_ + (sample + 1) * per_sample_) close_sample();
  }
}

/// Samples [begin, end) of the chunk, all within the open sample of this product.
void BeamPower::add(const BeamChunk& chunk, std::int64_t begin, std::int64_t end) {
  const std::int64_t n_channels = stream_.frequency.n_channels;
  for (auto& count : counts_) count += end - begin;
  for (const auto& gap : chunk.absent) {  // their values are 0: only the count is wrong
    const std::int64_t n = std::min(gap.end, end) - std::max(gap.begin, begin);
    for (std::int64_t c = gap.channel_begin; n > 0 && c < gap.channel_end; ++c) counts_[c] -= n;
  }
  for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const float* row = chunk.row(beam, c) - chunk.first_sample;
      float sum = 0;
      for (std::int64_t t = begin; t < end; ++t) sum += row[t];
      sums_[beam * n_channels + c] += static_cast<double>(sum);
    }
  }
}

void BeamPower::close_sample() {
  const std::int64_t n_channels = stream_.frequency.n_channels;
  std::int64_t present = 0;
  for (const auto count : counts_) present += count;
  for (std::int64_t beam = 0; beam < stream_.n_beams(); ++beam) {
    double sum = 0, known = 0;
    for (std::int64_t c = 0; c < n_channels; ++c) {
      const auto at = static_cast<std::size_t>(beam * n_channels + c);
      const auto count = counts_[c];
      if (count > 0) means_[at] = sums_[at] / static_cast<double>(count);
      sums_[at] = 0;
      if (!std::isfinite(means_[at])) continue;
      sum += means_[at];
      ++known;
    }
    power_[beam].push_back(present > 0 && known > 0 ? sum / known
                                                    : std::numeric_limits<double>::quiet_NaN());
  }
  present_.push_back(static_cast<double>(present) / static_cast<double>(per_sample_ * n_channels));
  times_s_.push_back((static_cast<double>(open_) + 0.5) * static_cast<double>(per_sample_) *
                     stream_.sample_interval_s());
  std::fill(counts_.begin(), counts_.end(), 0);
  ++open_;
}

std::string BeamPower::power_text() const {
  std::string text = "utc,present";
  for (const auto& beam : stream_.beams) text += "," + beam.name;
  text += "\n";
  const std::int64_t start = clock_.tai_ns(first_sample_);
  for (std::size_t k = 0; k < times_s_.size(); ++k) {
    text +=
        fmt::format("{},{:.6g}", utc_iso(start + std::llround(times_s_[k] * 1e9), 6), present_[k]);
    for (const auto& row : power_)
      text += std::isfinite(row[k]) ? fmt::format(",{:.8g}", row[k]) : ",";
    text += "\n";
  }
  return text;
}

std::string BeamPower::transit_text(const std::vector<std::optional<Transit>>& fits) const {
  std::string text =
      "beam,middle_utc,middle_error_s,width_s,width_error_s,height,height_error,baseline,rms\n";
  const std::int64_t start = clock_.tai_ns(first_sample_);
  for (std::size_t beam = 0; beam < power_.size(); ++beam) {
    const auto& fit = fits[beam];
    text += stream_.beams[beam].name;
    if (!fit) {
      text += ",,,,,,,,\n";  // no transit of 5 sigma
      continue;
    }
    text += fmt::format(",{},{:.4g},{:.6g},{:.4g},{:.6g},{:.4g},{:.8g},{:.4g}\n",
                        utc_iso(start + std::llround(fit->middle_s * 1e9), 3), fit->middle_error_s,
                        fit->width_s, fit->width_error_s, fit->height, fit->height_error,
                        fit->baseline, fit->rms);
  }
  return text;
}

void BeamPower::draw(const std::vector<std::optional<Transit>>& fits) const {
  const std::size_t n_beams =
      std::min({power_.size(), kMaxLines, static_cast<std::size_t>(config_.beams.pictures)});
  const double sample_s = static_cast<double>(per_sample_) * stream_.sample_interval_s();
  const std::int64_t start = clock_.tai_ns(first_sample_);
  Panel panel;
  panel.title = "Power of beams against time";
  panel.x_label = "UTC";
  panel.y_label = "mean power";
  panel.n_columns = std::ssize(times_s_);
  panel.x_max = static_cast<double>(times_s_.size()) * sample_s;
  panel.y_max = panel.y_min;  // the range of the lines
  panel.own_ticks = true;
  panel.x_ticks = clock_ticks(start, panel.x_max);
  for (std::size_t beam = 0; beam < n_beams; ++beam) {
    auto& line = panel.series.emplace_back();
    line.name = stream_.beams[beam].name;
    line.values.assign(power_[beam].begin(), power_[beam].end());
    const auto& fit = fits[beam];
    if (!fit) continue;
    line.name += fmt::format(": transit {} \u00b1 {:.2g} s",
                             utc_iso(start + std::llround(fit->middle_s * 1e9), 0).substr(11, 8),
                             fit->middle_error_s);
    // The fit with the scatter about it, as far as it differs from the baseline.
    for (const double t : times_s_) {
      const bool near = std::abs(t - fit->middle_s) < 1.5 * fit->width_s;
      Parameters unused;
      const double model =
          transit_model({fit->baseline, fit->height, fit->middle_s, fit->width_s}, t, unused);
      const double nan = std::numeric_limits<double>::quiet_NaN();
      line.low.push_back(static_cast<float>(near ? model - fit->rms : nan));
      line.high.push_back(static_cast<float>(near ? model + fit->rms : nan));
    }
    panel.marks.push_back({fit->middle_s, fit->baseline + fit->height, ""});
  }
  write_picture(
      name("_power.png"), {panel},
      fmt::format("from {} UTC  \u00b7  {} of {} beams  \u00b7  samples of {:g} s  \u00b7  "
                  "bands and circles: fitted transits  \u00b7  Ryle {}",
                  utc_iso(start, 0), n_beams, power_.size(), sample_s, version()),
      config_.output.overwrite);
}

void BeamPower::finish(RunSummary& summary) {
  if (segment_ < 0) return;
  if (other_segments_ > 0)
    summary.warnings.push_back(
        fmt::format("power against time: {} samples after a restart of the sender were left out",
                    other_segments_));
  const bool overwrite = config_.output.overwrite;
  std::vector<std::optional<Transit>> fits;
  for (const auto& row : power_) fits.push_back(fit_transit(times_s_, row));
  try {
    publish_bytes(name("_power.csv"), power_text(), overwrite);
    summary.products.push_back(name("_power.csv"));
    publish_bytes(name("_transits.csv"), transit_text(fits), overwrite);
    summary.products.push_back(name("_transits.csv"));
    if (config_.beams.pictures > 0 && !times_s_.empty()) {
      draw(fits);
      summary.products.push_back(name("_power.png"));
    }
  } catch (const Error& e) {
    summary.errors.emplace_back(e.what());
  }
}

}  // namespace ryle::pipeline
