// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/grid/grid_products.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/plot/picture.hpp"

namespace ryle::pipeline {
namespace {

constexpr float kNoMean = std::numeric_limits<float>::quiet_NaN();

std::string path_beside(const std::string& output, const std::string& what) {
  std::filesystem::path path(output);
  const std::string suffix = path.extension().string();
  return path.replace_extension("." + what + (suffix.empty() ? ".fits" : suffix)).string();
}

}  // namespace

namespace {

template <class Options>
void require_files(const Options& o) {
  require_picture(o.picture, "--png");
  require_ending(o.output, "-o", {".fits", ".fit", ".fts"});
  std::vector<std::string> names{o.output, o.picture};
  if (!o.output.empty() && !o.one_file) {
    if (o.weights) names.push_back(path_beside(o.output, "weight"));
    if (o.weights) names.push_back(path_beside(o.output, "count"));
    if (o.noise) names.push_back(path_beside(o.output, "noise"));
  }
  require_all_creatable(names, o.overwrite);
}

}  // namespace

void require_map_outputs(const GridOptions& options) {
  require_files(options);
  require_all_creatable({options.accumulate, options.checkpoint}, true);  // sums are added to
}

void require_map_outputs(const GridMergeOptions& options) {
  require_files(options);
  require_all_creatable({options.accumulate}, options.overwrite);
}

void require_map_room(const std::string& output, std::int64_t n_cells, std::int64_t n_channels,
                      bool f64) {
  if (output.empty()) return;
  const auto folder = std::filesystem::path(output).parent_path().string();
  require_room(folder.empty() ? "." : folder,
               static_cast<double>(n_cells) * static_cast<double>(n_channels) * (f64 ? 8 : 4),
               fmt::format("{} cells of {} channels", n_cells, n_channels));
}

class SharedPlanes {
 public:
  SharedPlanes(const SkyCells& cells, const std::string& path, std::int64_t n_channels,
               CubeValues values, MapMetadata metadata, bool overwrite)
      : path(path),
        cells_(cells),
        n_channels_(n_channels),
        values_(values),
        metadata_(std::move(metadata)),
        overwrite_(overwrite) {}
  template <class T>
  void append(const std::vector<T>& plane) {
    const auto* bytes = reinterpret_cast<const char*>(plane.data());
    const std::size_t n_bytes = plane.size() * sizeof(T);
    if (file_) {
      first_.assign(bytes, bytes + n_bytes);
      return file_->append(plane.data());
    }
    if (n_same_ == 0) first_.assign(bytes, bytes + n_bytes);
    if (std::memcmp(first_.data(), bytes, n_bytes) == 0) {
      ++n_same_;
      return;
    }
    open(n_channels_);
    for (; n_same_ > 0; --n_same_) append_first();
    first_.assign(bytes, bytes + n_bytes);
    file_->append(plane.data());
  }
  /// That of before.
  void append_again() {
    if (file_)
      append_first();
    else
      ++n_same_;
  }
  /// The file, with all its planes.
  CubeWriter& complete() {
    if (!file_) {
      open(1);
      append_first();
    }
    return *file_;
  }
  const std::string path;

 private:
  void open(std::int64_t n) { file_ = cells_.create(path, n, values_, metadata_, overwrite_); }
  void append_first() {
    if (values_ == CubeValues::int32)
      file_->append(reinterpret_cast<const std::int32_t*>(first_.data()));
    else if (values_ == CubeValues::float64)
      file_->append(reinterpret_cast<const double*>(first_.data()));
    else
      file_->append(reinterpret_cast<const float*>(first_.data()));
  }
  const SkyCells& cells_;
  std::int64_t n_channels_;
  CubeValues values_;
  MapMetadata metadata_;
  bool overwrite_;
  std::vector<char> first_;  ///< that all are like, or the last
  std::int64_t n_same_ = 0;
  std::unique_ptr<CubeWriter> file_;
};

GridProducts::GridProducts(GridProductOptions options, const SkyCells& cells, MapMetadata metadata,
                           std::int64_t n_channels)
    : options_(std::move(options)),
      queue_(Queue::cpu(options_.n_workers)),
      cells_(cells),
      metadata_(std::move(metadata)),
      mean_(cells.n_cells()),
      mean_of_(mean_.size()),
      waiting_(1) {
  const std::string& output = options_.output;
  const CubeValues real = options_.f64 ? CubeValues::float64 : CubeValues::float32;
  if (!output.empty()) {
    metadata_.quantity = "value";
    value_ = cells.create(output, n_channels, real, metadata_, options_.overwrite);
    const auto beside = [&](const std::string& quantity, CubeValues values,
                            const std::string& unit) {
      MapMetadata own = metadata_;
      own.quantity = quantity;
      own.unit = unit;
      return std::make_unique<SharedPlanes>(cells, path_beside(output, quantity), n_channels,
                                            values, own, options_.overwrite || options_.one_file);
    };
    if (options_.weights) {
      weight_ = beside("weight", real, "");
      count_ = beside("count", CubeValues::int32, "");
    }
    if (options_.noise) noise_ = beside("noise", real, metadata_.unit);
  }
  thread_ = std::make_unique<StageThread>(
      "grid-write",
      [this](const std::stop_token&) {
        try {
          while (const auto planes = waiting_.pop())
            std::visit([this](const auto& some) { write(some); }, *planes);
        } catch (...) {
          waiting_.close();  // append() must not wait for room that nobody makes
          throw;
        }
      },
      [this] { waiting_.close(); });
}

GridProducts::~GridProducts() { waiting_.close(); }

void GridProducts::append(std::vector<grid::Plane> planes) {
  if (options_.f64) {
    std::vector<grid::PlaneOf<double>> wide;
    for (const grid::Plane& p : planes)
      wide.push_back({{p.value.begin(), p.value.end()},
                      {p.weight.begin(), p.weight.end()},
                      {p.noise.begin(), p.noise.end()},
                      p.count});
    return append(std::move(wide));
  }
  if (waiting_.offer(std::move(planes)) == QueueResult::closed) thread_->join();
}
void GridProducts::append(std::vector<grid::PlaneOf<double>> planes) {
  if (waiting_.offer(std::move(planes)) == QueueResult::closed) thread_->join();
}

template <class Real>
void GridProducts::write(const std::vector<grid::PlaneOf<Real>>& planes) {
  const Stopwatch watch(write_s_);
  if (value_) {
    std::vector<const Real*> values;
    for (const auto& plane : planes) values.push_back(plane.value.data());
    value_->append_all(values,
                       [this](std::int64_t n, const auto& body) { queue_.parallel_for(n, body); });
  }
  for (const auto& plane : planes) write_beside(plane);
  add_to_mean(planes);
}

template <class Real>
void GridProducts::write_beside(const grid::PlaneOf<Real>& plane) {
  const bool again = plane.weight.empty();
  for (auto* shared : {&weight_, &count_, &noise_})
    if (*shared && again) (*shared)->append_again();
  if (weight_ && !again) weight_->append(plane.weight);
  if (count_ && !again) count_->append(plane.count);
  if (noise_ && !again) noise_->append(plane.noise);
}

// Every cell has its values in the order of the channels, whoever adds them.
template <class Real>
void GridProducts::add_to_mean(const std::vector<grid::PlaneOf<Real>>& planes) {
  constexpr std::int64_t kPart = 8192;
  const auto n_cells = static_cast<std::int64_t>(mean_.size());
  queue_.parallel_for((n_cells + kPart - 1) / kPart, [&](std::int64_t part) {
    const std::int64_t first = part * kPart, n = std::min(kPart, n_cells - first);
    float* const mean = mean_.data() + first;
    std::int32_t* const mean_of = mean_of_.data() + first;
    for (const auto& plane : planes) {
      const Real* const value = plane.value.data() + first;
      for (std::int64_t i = 0; i < n; ++i) {
        const bool there = !std::isnan(value[i]);
        mean[i] += there ? static_cast<float>(value[i]) : 0.0F;
        mean_of[i] += there ? 1 : 0;
      }
    }
  });
}

void GridProducts::finish(const std::vector<std::string>& history, GridSummary& summary) {
  waiting_.close();
  thread_->join();
  {
    const Stopwatch watch(write_s_);
    // All complete before the first gets its name.
    for (auto* shared : {&weight_, &count_, &noise_})
      if (*shared) (*shared)->complete();
    if (options_.one_file && value_) join(history);
    const auto publish_one = [&](CubeWriter& writer, const std::string& path) {
      if (!options_.one_file) writer.add_history(history);
      writer.publish();
      summary.products.push_back(path);
      summary.bytes_written += static_cast<std::int64_t>(std::filesystem::file_size(path));
    };
    if (value_) publish_one(*value_, options_.output);
    for (auto* shared : {&weight_, &count_, &noise_})
      if (*shared) publish_one((*shared)->complete(), (*shared)->path);
    for (std::size_t i = 0; i < mean_.size(); ++i)
      mean_[i] = mean_of_[i] > 0 ? mean_[i] / static_cast<float>(mean_of_[i]) : kNoMean;
    describe(summary);
    if (!options_.picture.empty()) {
      draw(summary);
      summary.products.push_back(options_.picture);
    }
  }
  summary.write_s += write_s_;
}

// A file beside is made first, as nobody knows how many planes it will have, and becomes an
// extension then.
void GridProducts::join(const std::vector<std::string>& history) {
  value_->add_history(history);
  const std::pair<std::unique_ptr<SharedPlanes>*, const char*> kinds[] = {
      {&weight_, "WEIGHT"}, {&count_, "COUNT"}, {&noise_, "NOISE"}};
  for (const auto& [shared, name] : kinds) {
    if (!*shared) continue;
    value_->adopt((*shared)->complete(), name);
    shared->reset();
  }
}

void GridProducts::describe(GridSummary& summary) const {
  std::size_t peak = mean_.size();
  for (std::size_t i = 0; i < mean_.size(); ++i) {
    if (mean_of_[i] == 0) continue;
    ++summary.covered_cells;
    if (peak == mean_.size() || mean_[i] > mean_[peak]) peak = i;
  }
  if (peak == mean_.size()) return;
  summary.peak_value = mean_[peak];
  cells_.directions(static_cast<std::int64_t>(peak), 1, &summary.peak_longitude_deg,
                    &summary.peak_latitude_deg);
}

namespace {

std::string color_label(const MapMetadata& metadata, std::int64_t n_channels) {
  std::string label = metadata.unit.find("/beam") != std::string::npos || metadata.unit == "Jy"
                          ? "intensity"
                      : metadata.unit == "K" ? "brightness temperature"
                                             : "value";
  label += metadata.unit.empty() ? " (unit not known)" : " (" + metadata.unit + ")";
  return n_channels == 1 ? label : fmt::format("mean of {} channels, {}", n_channels, label);
}

std::string beam_text(const MapMetadata& metadata) {
  if (!(metadata.beam_fwhm_deg > 0)) return "beam not known";
  const double minor_deg =
      metadata.beam_minor_deg > 0 ? metadata.beam_minor_deg : metadata.beam_fwhm_deg;
  const double unit = metadata.beam_fwhm_deg < 0.05 ? 3600 : metadata.beam_fwhm_deg < 2 ? 60 : 1;
  const char* sign = unit == 3600 ? "\"" : unit == 60 ? "'" : "\u00b0";
  return fmt::format("beam {:.3g}{} \u00d7 {:.3g}{}", metadata.beam_fwhm_deg * unit, sign,
                     minor_deg * unit, sign);
}

}  // namespace

void GridProducts::draw(const GridSummary& s) const {
  Panel panel = cells_.picture(mean_, metadata_);
  panel.title = metadata_.object.empty() ? options_.source : metadata_.object;
  panel.color_label = color_label(metadata_, s.n_channels);
  panel.color_map = ColorMap::inferno;
  std::string caption = metadata_.telescope.empty() ? "" : metadata_.telescope + "  \u00b7  ";
  if (metadata_.frequency.channel_width_hz != 0)
    caption += fmt::format("{:.6g} MHz  \u00b7  ", metadata_.frequency.band_center_hz() / 1e6);
  caption +=
      fmt::format("{} samples, {} channel{}  \u00b7  {}  \u00b7  {}  \u00b7  {}  \u00b7  Ryle {}",
                  s.n_samples, s.n_channels, s.n_channels == 1 ? "" : "s", beam_text(metadata_),
                  cells_.description(), s.kernel, version());
  write_picture(options_.picture, {panel}, caption, options_.overwrite);
}

std::int64_t planes_at_a_time(const Queue& queue) { return queue.n_workers(); }

namespace {

template <class Real>
void scale_plane(grid::PlaneOf<Real>& plane, double factor) {
  if (factor == 1) return;
  for (auto* values : {&plane.value, &plane.noise})
    for (Real& v : *values) v = static_cast<Real>(v * factor);
}

template <class Real>
void divide_by_response(const grid::Sums& sums, const grid::Sums& response, std::int64_t channel,
                        grid::PlaneOf<Real>& plane) {
  for (std::size_t i = 0; i < plane.value.size(); ++i) {
    if (std::isnan(plane.value[i])) continue;
    const auto cell = static_cast<std::int64_t>(i);
    const double seen = response.moments(channel, cell).weight;
    // Under negative lobes what a source leaves may vanish.
    const double factor = seen > 0 ? sums.moments(channel, cell).weight / seen
                                   : std::numeric_limits<double>::quiet_NaN();
    for (auto* values : {&plane.value, &plane.noise})
      (*values)[i] = static_cast<Real>((*values)[i] * factor);
    if (std::isnan(plane.value[i])) {
      plane.weight[i] = 0;
      plane.count[i] = 0;
    }
  }
}

template <class Real>
void append_planes_of(Queue& queue, const grid::Sums& sums, const grid::Sums* response,
                      const grid::Finish& finish, double factor, std::int64_t n_channels,
                      GridProducts& products) {
  const std::int64_t maximum = planes_at_a_time(queue), n_cells = sums.n_cells();
  const bool alike = sums.uniform() && response == nullptr;  // weights in all channels
  grid::LargeVector<Real> values(
      alike ? static_cast<std::size_t>(std::min(maximum, n_channels) * n_cells) : 0);
  for (std::int64_t c = 0; c < n_channels; c += maximum) {
    std::vector<grid::PlaneOf<Real>> planes(std::min(maximum, n_channels - c));
    const auto n = static_cast<std::int64_t>(planes.size());
    if (alike) grid::finish_values(queue, sums, finish, c, n, values.data());
    queue.parallel_for(n, [&](std::int64_t k) {
      grid::PlaneOf<Real>& plane = planes[k];
      if (alike && c + k > 0) {
        plane.value.assign(values.data() + k * n_cells, values.data() + (k + 1) * n_cells);
      } else {
        plane = grid::finish<Real>(sums, finish, c + k);
      }
      scale_plane(plane, factor);
      if (response != nullptr) divide_by_response(sums, *response, c + k, plane);
    });
    products.append(std::move(planes));
  }
}

}  // namespace

void append_planes(Queue& queue, const grid::Sums& sums, const grid::Sums* response,
                   const grid::Finish& finish, double factor, std::int64_t n_channels,
                   GridProducts& products) {
  const auto append = products.f64() ? append_planes_of<double> : append_planes_of<float>;
  append(queue, sums, response, finish, factor, n_channels, products);
}

}  // namespace ryle::pipeline
