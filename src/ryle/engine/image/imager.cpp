// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/image/image.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/image/cpu/sum_kernel.hpp"
#include "ryle/engine/image/runs.hpp"
#include "ryle/engine/image/w_stack.hpp"

namespace ryle::image {
namespace {

struct Kernel {
  std::string name;      // as asked for: "cpu:avx512"
  std::string reported;  // as said: "image/cpu/avx512"
  std::string needs;     // entry of cpu_instruction_sets()
  detail::SumFunction sum;
};

// Best first.
std::vector<Kernel> usable_kernels() {
  std::vector<Kernel> usable;
  for (const auto& kernel :
       {Kernel{"cpu:avx512", "image/cpu/avx512", "avx512", detail::sum_avx512},
        Kernel{"cpu:avx2", "image/cpu/avx2", "avx2", detail::sum_avx2},
        Kernel{"cpu:generic", "image/cpu/generic", "generic", detail::sum_generic}}) {
    if (has_instruction_set(kernel.needs)) usable.push_back(kernel);
  }
  return usable;
}

/// The equation as it stands in conventions.md 5, in double.
class ReferenceImager final : public Imager {
 public:
  explicit ReferenceImager(const Config& config) : config_(config) {}
  void execute(Queue&, const std::vector<Sample>& samples, std::vector<double>& image) override {
    const std::int64_t n = config_.n_pixels;
    image.assign(n * n, kNaN);
    for (std::int64_t y = 0; y < n; ++y) {
      if (config_.go_on && !config_.go_on(static_cast<double>(y) / static_cast<double>(n))) {
        image.clear();
        return;
      }
      for (std::int64_t x = 0; x < n; ++x) {
        const auto [l, m] =
            direction_of_pixel(config_, static_cast<double>(x), static_cast<double>(y));
        if (l * l + m * m >= 1) continue;
        image[y * n + x] = value(samples, l, m, std::sqrt(1 - l * l - m * m));
      }
    }
  }
  std::string_view implementation() const override { return "image/reference"; }
  SamplePath path() const override { return SamplePath::direct; }
  const Config& config() const override { return config_; }

 private:
  static double value(const std::vector<Sample>& samples, double l, double m, double n) {
    double sum = 0, sum_of_weights = 0;
    for (const auto& s : samples) {
      if (!(s.weight > 0) || !std::isfinite(s.weight) || !std::isfinite(std::abs(s.visibility)) ||
          !std::isfinite(s.u + s.v + s.w)) {
        continue;
      }
      const double turns = s.u * l + s.v * m + s.w * (n - 1);
      const double phase_rad = 2 * kPi * (turns - std::round(turns));
      sum += s.weight * (s.visibility * std::polar(1.0, -phase_rad)).real();
      sum_of_weights += s.weight;
    }
    return sum_of_weights > 0 ? sum / sum_of_weights : kNaN;
  }
  Config config_;
};

/// Runs of channels by Horner's rule, pixels in parallel (sum_kernel.inc). Bit-identical for any
/// number of workers.
class CpuImager final : public Imager {
 public:
  CpuImager(const Config& config, Kernel kernel) : config_(config), kernel_(std::move(kernel)) {}
  void execute(Queue& queue, const std::vector<Sample>& samples,
               std::vector<double>& image) override {
    image.assign(config_.n_pixels * config_.n_pixels, kNaN);
    const detail::Plan plan = detail::plan_runs(samples);
    if (plan.runs.empty()) return;
    find_pixels();
    const auto n_pixels = static_cast<std::int64_t>(pixels_.size());
    const std::int64_t n_blocks =
        (n_pixels + detail::kPixelsPerBlock - 1) / detail::kPixelsPerBlock;
    const std::int64_t part = config_.go_on ? 4 * std::max(1, queue.n_workers()) : n_blocks;
    for (std::int64_t first = 0; first < n_blocks; first += part) {
      if (config_.go_on &&
          !config_.go_on(static_cast<double>(first) / static_cast<double>(n_blocks))) {
        image.clear();
        return;
      }
      queue.parallel_for(std::min(part, n_blocks - first), [&](std::int64_t b) {
        sum_block(plan, (first + b) * detail::kPixelsPerBlock, image);
      });
    }
  }
  std::string_view implementation() const override { return kernel_.reported; }
  SamplePath path() const override { return SamplePath::direct; }
  const Config& config() const override { return config_; }
  /// Predicted time, from one block of pixels timed on some thousands of these samples.
  double seconds(const std::vector<Sample>& samples, int n_workers) {
    constexpr std::int64_t kTimed = 32768;
    const auto n = static_cast<std::int64_t>(samples.size());
    const std::int64_t first = std::max<std::int64_t>(0, (n - kTimed) / 2);
    const std::vector<Sample> part(samples.begin() + first,
                                   samples.begin() + std::min(n, first + kTimed));
    find_pixels();
    const auto n_pixels = static_cast<double>(pixels_.size());
    const auto since = [](std::clock_t start) {  // of the processor: other programs do not count
      return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    };
    std::clock_t start = std::clock();
    const detail::Plan plan = detail::plan_runs(part);
    const double plan_s = since(start);
    if (plan.runs.empty() || pixels_.empty()) return 0;
    std::vector<double> image(config_.n_pixels * config_.n_pixels, kNaN);
    start = std::clock();
    sum_block(plan, 0, image);
    const double sum_s = since(start) * n_pixels /
                         static_cast<double>(detail::kPixelsPerBlock * std::max(1, n_workers));
    return (plan_s + sum_s) * static_cast<double>(n) / static_cast<double>(part.size());
  }

 private:
  void find_pixels() {
    if (!pixels_.empty()) return;
    const std::int64_t n = config_.n_pixels;
    for (std::int64_t y = 0; y < n; ++y) {
      for (std::int64_t x = 0; x < n; ++x) {
        const auto [l, m] =
            direction_of_pixel(config_, static_cast<double>(x), static_cast<double>(y));
        if (l * l + m * m < 1) pixels_.push_back(y * n + x);
      }
    }
  }
  void sum_block(const detail::Plan& plan, std::int64_t first, std::vector<double>& image) const {
    detail::PixelBlock block;
    const auto last = static_cast<std::int64_t>(pixels_.size()) - 1;
    for (std::int64_t p = 0; p < detail::kPixelsPerBlock; ++p) {
      const std::int64_t pixel = pixels_[std::min(first + p, last)];
      const auto [l, m] = direction_of_pixel(config_, static_cast<double>(pixel % config_.n_pixels),
                                             static_cast<double>(pixel / config_.n_pixels));
      const double r2 = l * l + m * m;
      block.l[p] = l;
      block.m[p] = m;
      block.t[p] = -r2 / (1 + std::sqrt(1 - r2));  // n - 1 without cancellation
    }
    kernel_.sum(plan.runs.data(), static_cast<std::int64_t>(plan.runs.size()),
                plan.coefficients.data(), block);
    const std::int64_t n = std::min(detail::kPixelsPerBlock, last + 1 - first);
    for (std::int64_t p = 0; p < n; ++p) {
      image[pixels_[first + p]] = plan.scale * block.sum[p];
    }
  }
  Config config_;
  Kernel kernel_;
  std::vector<std::int64_t> pixels_;  // above the horizon, y * N + x
};

/// The sum itself, or gridding where that is predicted to be done in less than half the time.
class CheapestImager final : public Imager {
 public:
  CheapestImager(const Config& config, const Kernel& kernel)
      : sum_(config, kernel),
        flat_(config, kernel.needs, SamplePath::gridded),
        stack_(config, kernel.needs, SamplePath::w_stacked),
        isa_(kernel.needs),
        chosen_(&sum_) {}
  void execute(Queue& queue, const std::vector<Sample>& samples,
               std::vector<double>& image) override {
    chosen_ = choose(queue, samples);
    chosen_->execute(queue, samples, image);
  }
  std::string_view implementation() const override { return chosen_->implementation(); }
  SamplePath path() const override { return chosen_->path(); }
  const Config& config() const override { return sum_.config(); }

 private:
  Imager* choose(Queue& queue, const std::vector<Sample>& samples) {
    // Less work than this is done before any prediction of it; no core sums faster than this.
    constexpr double kSmall = 1e9, kFastestPerSecond = 4e10;
    const auto n = static_cast<double>(config().n_pixels);
    const double terms = n * n * static_cast<double>(samples.size());
    if (!(terms > kSmall)) return &sum_;
    const detail::SampleExtent extent = detail::extent_of(queue, samples);
    const bool flat = detail::w_is_negligible(config(), extent);
    const int workers = queue.n_workers();
    const double grid_s = detail::stack_seconds(config(), isa_, extent, flat, workers);
    const bool far = terms / (kFastestPerSecond * std::max(1, workers)) > 2 * grid_s;
    if (!far && !(grid_s < 0.5 * sum_.seconds(samples, workers))) return &sum_;
    return flat ? &flat_ : &stack_;
  }
  CpuImager sum_;
  detail::StackImager flat_, stack_;
  std::string isa_;
  Imager* chosen_;
};

void validate(const Config& config) {
  if (config.n_pixels < 2 || config.n_pixels > 65536) {
    throw ConfigError("image size of " + std::to_string(config.n_pixels) +
                      " pixels: must be from 2 to 65536");
  }
  if (!(config.width_direction_cosines > 0) || config.width_direction_cosines > 4) {
    throw ConfigError(
        "image width of " + std::to_string(config.width_direction_cosines) +
        " direction cosines: must be above 0 and at most 4 (2 is the whole hemisphere)");
  }
  if (!(config.max_error >= 1e-12) || config.max_error > 0.01) {
    throw ConfigError(
        fmt::format("image accuracy of {:g}: must be from 1e-12 to 0.01", config.max_error));
  }
}

constexpr std::array kSamplePaths{SamplePath::automatic, SamplePath::direct, SamplePath::gridded,
                                  SamplePath::w_stacked};

}  // namespace

std::string_view name(SamplePath path) {
  switch (path) {
    case SamplePath::automatic:
      return "auto";
    case SamplePath::direct:
      return "direct";
    case SamplePath::gridded:
      return "gridded";
    case SamplePath::w_stacked:
      return "w-stacked";
  }
  return "";
}

std::optional<SamplePath> sample_path_named(std::string_view text) {
  for (const SamplePath path : kSamplePaths)
    if (name(path) == text) return path;
  return std::nullopt;
}

double w_phase_error_rad(const Config& config, const std::vector<Sample>& samples) {
  Queue queue = Queue::cpu();
  return detail::flat_phase_error_rad(config, detail::extent_of(queue, samples));
}

Direction direction_of_pixel(const Config& config, double x, double y) {
  const auto middle = static_cast<double>(config.n_pixels / 2);
  const double cell = config.width_direction_cosines / static_cast<double>(config.n_pixels);
  return {-(x - middle) * cell, (y - middle) * cell};
}

Pixel pixel_of_direction(const Config& config, double l, double m) {
  const auto middle = static_cast<double>(config.n_pixels / 2);
  const double cell = config.width_direction_cosines / static_cast<double>(config.n_pixels);
  return {middle - l / cell, middle + m / cell};
}

std::vector<std::string> available_implementations() {
  std::vector<std::string> names;
  for (const auto& kernel : usable_kernels()) names.push_back(kernel.name);
  names.emplace_back("reference");
  return names;
}

std::unique_ptr<Imager> make_imager(Queue& queue, const Config& config) {
  validate(config);
  if (queue.back_end() != BackEnd::cpu) {
    throw UnsupportedError("image: samples are imaged on a cpu queue only");
  }
  const std::string chosen = choose_implementation(
      BackEnd::cpu, {"image", config.implementation, "", available_implementations()});
  const bool grids = config.path == SamplePath::gridded || config.path == SamplePath::w_stacked;
  for (const auto& kernel : usable_kernels()) {
    if (chosen != kernel.name) continue;
    if (grids) return std::make_unique<detail::StackImager>(config, kernel.needs, config.path);
    // A set of instructions that is asked for by name makes the sum itself.
    if (config.path == SamplePath::automatic &&
        config.implementation.find(':') == std::string::npos)
      return std::make_unique<CheapestImager>(config, kernel);
    return std::make_unique<CpuImager>(config, kernel);
  }
  if (grids) {
    throw UnsupportedError("image: the reference is a direct sum; the path " +
                           std::string(name(config.path)) + " takes auto, cpu or cpu:...");
  }
  return std::make_unique<ReferenceImager>(config);
}

}  // namespace ryle::image
