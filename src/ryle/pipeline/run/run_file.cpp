// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/pipeline/base/device_loss.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/config/config_effect.hpp"
#include "ryle/pipeline/image/sky_products.hpp"
#include "ryle/pipeline/image/voltage_imaging.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/run/outputs.hpp"
#include "ryle/pipeline/run/run.hpp"
#include "ryle/pipeline/run/sample_path.hpp"
#include "ryle/pipeline/visibility/horizon.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/product_set.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"

/// Recordings: time samples go through F and X, spectra of an F-engine straight to X.
namespace ryle::pipeline {
namespace {

constexpr std::int64_t kFeedBytes = 8 << 20;

/// The recordings that products were made of.
std::map<std::string, std::string> input_note(const ObservationConfig& config) {
  const auto& source = config.source;
  return {{"input",
           source.files.empty() ? source.file : fmt::format("{}", fmt::join(source.files, ", "))}};
}

class FileRun {
 public:
  FileRun(const ObservationConfig& config, const RunOptions& options)
      : config_(config),
        options_(options),
        recording_(open_source(config)),
        info_(recording_->info()),
        array_(load_array(config, info_.n_inputs)) {
    if (!info_.rate_known) {
      throw ConfigError(source_name(config) +
                        ": neither the file nor its format says the sample rate; give "
                        "source.sample_rate_hz (--rate)");
    }
  }

  /// All products are made in one reading, not visibilities alone.
  bool makes_all() const { return info_.channelized || !reads_samples(); }

  RunSummary run() {
    reads_samples() ? run_samples() : run_nodes(Wanted{info_.channelized, false});
    return finished();
  }

  /// Images and nothing else, whatever the observation asks for.
  RunSummary run_images() {
    run_nodes(Wanted{false, true});
    return finished();
  }

  /// Images and beams of time samples, in one reading of their own: they hold still over the
  /// ground, the visibilities may have followed the sky in the channelizer. @pre !makes_all()
  RunSummary run_others() {
    run_nodes(Wanted{});
    summary_.elapsed_s = seconds_since(start_);
    return summary_;
  }

 private:
  struct Wanted {
    bool visibilities = false, images_alone = false;
  };
  RunSummary finished() {
    summary_.elapsed_s = seconds_since(start_);
    summary_.real_time_factor = summary_.data_s / std::max(summary_.elapsed_s, 1e-9);
    summary_.warnings.insert(summary_.warnings.end(), info_.warnings.begin(), info_.warnings.end());
    note_frames();
    summary_.state = "OK";
    note_peak_memory(summary_);
    return summary_;
  }
  bool reads_samples() const {
    const bool others = wants_images(config_) || wants_beams(config_);
    return !info_.channelized && (makes_visibilities(config_) || !others);
  }
  bool stopped() const { return options_.stop != nullptr && *options_.stop > 0; }

  std::int64_t n_ticks() const {
    const double wanted = config_.source.duration_s * info_.clock.rate_hz.value();
    return wanted > 0 ? std::min(info_.n_ticks, static_cast<std::int64_t>(std::llround(wanted)))
                      : info_.n_ticks;
  }

  // Frames of a recording are its packets: accepted ones under "frames", refused ones by reason.
  void note_frames() {
    for (const auto& [name, count] : info_.counters) {
      const auto n = static_cast<std::uint64_t>(count);
      if (name == "frames") summary_.packets_used += n;
      if (name.rfind("rejected.", 0) == 0) summary_.packets_rejected[name.substr(9)] += n;
    }
    summary_.packets_received = summary_.packets_used;
    for (const auto& [reason, count] : summary_.packets_rejected)
      summary_.packets_received += count;
  }

  void report(double data_s, double total_s, double busy_s, const Nodes* nodes = nullptr) {
    if (!options_.on_progress) return;
    Progress p;
    p.data_s = data_s;
    p.total_s = total_s;
    p.elapsed_s = seconds_since(start_);
    p.margin = busy_s > 0 ? data_s / busy_s : 0;
    if (nodes != nullptr)
      for (const auto& node : nodes->all) node->count(p);
    p.state = "OK";
    options_.on_progress(p);
  }

  void run_samples() {
    SampleMetadata metadata{info_.n_inputs,     info_.layout,        info_.clock,
                            info_.reference_hz, info_.inverted_band, 0,
                            info_.time_source};
    if (metadata.reference_hz == 0) metadata.reference_hz = config_.source.center_mhz * 1e6;
    if (metadata.reference_hz == 0 && !info_.from_zero_hz)
      summary_.warnings.emplace_back("sky frequency unknown: set source.center_mhz");
    const std::int64_t bits = info_.layout.sample_stride_bits;
    const std::int64_t group = SampleStaging::kGroupTicks;
    metadata.max_feed_ticks = std::max<std::int64_t>(group, kFeedBytes * 8 / bits / group * group);
    const std::int64_t total = n_ticks();
    const std::string low =
        require_phase_center(config_, array_, info_.clock.epoch_tai_ns, info_.clock.seconds(total));
    if (!low.empty()) summary_.warnings.push_back(low);
    SamplePath path(config_, metadata, array_, false, options_.command_line);
    path.set_on_dump(options_.hooks.on_dump);
    const Buffer<std::byte> buffer(recording_->samples_bytes(metadata.max_feed_ticks),
                                   path.memory());
    std::vector<AbsentSpan> absent;
    for (Tick first = 0; first < total && !stopped() && !path.failed();
         first += metadata.max_feed_ticks) {
      const std::int64_t n = std::min(metadata.max_feed_ticks, total - first);
      absent.clear();
      recording_->read_samples(first, n, buffer.span(), absent);
      for (const auto& a : absent)
        summary_.lost_samples += static_cast<std::uint64_t>(a.end - a.begin);
      path.feed(buffer.data(), first, n, absent, 0, info_.clock);
      summary_.data_s = info_.clock.seconds(first + n);
      report(summary_.data_s, info_.clock.seconds(total), path.busy_s());
    }
    summary_.stopped_by_signal = stopped();
    path.finish(summary_, input_note(config_));
  }

  // One reading for all products of spectra.
  void run_nodes(const Wanted& wanted) {
    const auto reader = make_spectra_reader(config_, *recording_);
    if (!reader->implementation.empty()) summary_.implementations.push_back(reader->implementation);
    const std::int64_t total = wanted_spectra(config_, *reader);
    const Nodes nodes = make_file_nodes(*reader, spectra_metadata(*reader, info_, total), wanted);
    const auto any_failed = [&] {
      return std::any_of(nodes.all.begin(), nodes.all.end(),
                         [](const auto& node) { return node->failed(); });
    };
    const auto busy_s = [&] {
      double sum = 0;
      for (const auto& node : nodes.all) sum += node->busy_s();
      return sum;
    };
    SpectraGulp gulp;
    for (std::int64_t first = 0; first < total && !stopped() && !any_failed();) {
      const std::int64_t n = std::min(room(nodes, first, *reader), total - first);
      reader->read(first, n, gulp);
      for (const auto& node : nodes.all) node->feed(gulp, first, 0, reader->clock);
      first += n;
      summary_.data_s = reader->clock.seconds(first);
      report(summary_.data_s, reader->clock.seconds(total), busy_s(), &nodes);
    }
    summary_.lost_samples = reader->lost_samples;
    summary_.stopped_by_signal = stopped();
    DeviceLoss lost;  // all are published first
    for (const auto& node : nodes.all)
      lost.guard_end([&] { node->finish(input_note(config_), summary_); });
    summary_.engine_margin = busy_s() > 0 ? summary_.data_s / busy_s() : 0;
    lost.report(summary_);
  }

  Nodes make_file_nodes(SpectraReader& reader, const SpectraMetadata& metadata,
                        const Wanted& wanted) {
    if (wanted.images_alone) {
      auto images = std::make_unique<SkyPath>(config_, array_, metadata, options_.command_line);
      images->set_on_image(options_.hooks.on_image);
      measure_levels(reader, *images);
      Nodes alone;
      alone.all.push_back(std::move(images));
      return alone;
    }
    std::optional<StreamBeams> beams;
    if (wants_beams(config_)) beams = stream_beams(config_, array_, metadata);
    Nodes nodes = make_nodes(config_, array_, metadata, beams ? &*beams : nullptr, nullptr,
                             wanted.visibilities, options_);
    if (wanted.visibilities && nodes.visibilities == nullptr &&
        makes_visibilities(config_)) {  // for their pictures
      auto node = std::make_unique<SpectraDumps>(config_, array_, metadata, options_.command_line);
      node->set_on_dump(options_.hooks.on_dump);
      nodes.visibilities = node.get();
      nodes.all.push_back(std::move(node));
    }
    if (nodes.all.empty()) require_products(config_);
    if (SkyPath* images = images_of(nodes)) measure_levels(reader, *images);
    return nodes;
  }

  static SkyPath* images_of(const Nodes& nodes) {
    for (const auto& node : nodes.all)
      if (auto* images = dynamic_cast<SkyPath*>(node.get())) return images;
    return nullptr;
  }

  // Gulps that end where images do, else where dumps do, need no cutting there.
  static std::int64_t room(const Nodes& nodes, std::int64_t first, const SpectraReader& reader) {
    if (SkyPath* images = images_of(nodes)) return images->room(first);
    return nodes.visibilities != nullptr ? nodes.visibilities->room(first) : reader.max_gulp;
  }

  const ObservationConfig& config_;
  const RunOptions& options_;
  std::unique_ptr<Recording> recording_;
  RecordingInfo info_;
  ArrayLayout array_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  RunSummary summary_;
};

/// What a further pass over a recording made.
void add_pass(RunSummary&& pass, RunSummary& summary) {
  if (pass.image) summary.image = std::move(pass.image);
  if (pass.beams) summary.beams = pass.beams;
  summary.elapsed_s += pass.elapsed_s;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  append(summary.products, pass.products);
  append(summary.implementations, pass.implementations);
  append(summary.errors, pass.errors);
  append(summary.warnings, pass.warnings);
  summary.stopped_by_signal = pass.stopped_by_signal;
}

/// The observation of one band of several, whose products have its lowest frequency in their names.
ObservationConfig of_band(const ObservationConfig& config, double low_hz, double high_hz) {
  const std::string suffix = fmt::format("_{:.9g}MHz", low_hz * 1e-6);
  const auto rename = [&](std::string& path) {
    const std::filesystem::path from(path);
    if (!path.empty())
      path = (from.parent_path() / (from.stem().string() + suffix + from.extension().string()))
                 .string();
  };
  ObservationConfig band = config;
  band.source.center_mhz = 0.5e-6 * (low_hz + high_hz);
  band.output.name += suffix;
  for (auto& path : band.output.files) rename(path);
  for (auto* path : {&band.image.output, &band.image.hdf5, &band.image.movie, &band.image.picture,
                     &band.image.light_curves})
    rename(*path);
  return band;
}

/// What a further band made.
void add_band(RunSummary&& band, RunSummary& summary) {
  summary.integrations += band.integrations;
  summary.lost_samples += band.lost_samples;
  summary.dropped_dumps += band.dropped_dumps;
  add_pass(std::move(band), summary);
}

RunSummary run_one_band(const ObservationConfig& config, const RunOptions& options) {
  require_visibility_names(config);
  if (wants_images(config)) require_sky_outputs(config);
  FileRun run(config, options);
  RunSummary summary = run.run();
  if (run.makes_all()) return summary;
  if ((wants_images(config) || wants_beams(config)) && !summary.stopped_by_signal)
    add_pass(FileRun(config, options).run_others(), summary);
  return summary;
}

}  // namespace

RunSummary run_file(const ObservationConfig& config, const RunOptions& options) {
  // Bands of a channel map that nobody chose from are observations side by side.
  std::vector<std::pair<double, double>> bands;
  if (!config.source.channel_map.empty() && config.source.center_mhz == 0)
    bands = open_source(config)->info().bands_hz;
  if (bands.size() < 2) return run_one_band(config, options);
  std::optional<RunSummary> summary;
  for (const auto& [low_hz, high_hz] : bands) {
    const ObservationConfig band = of_band(config, low_hz, high_hz);
    RunSummary made = run_one_band(band, options);
    if (summary)
      add_band(std::move(made), *summary);
    else
      summary = std::move(made);
    if (summary->stopped_by_signal) break;
  }
  return *summary;
}

RunSummary image_file(const ObservationConfig& config, const RunOptions& options) {
  require_sky_outputs(config);
  return FileRun(config, options).run_images();
}

RunSummary run_observation(const ObservationConfig& config, const RunOptions& options) {
  reject_keys_without_effect(config);
  require_distinct_outputs(config);
  RunSummary summary =
      config.source.kind == "file" ? run_file(config, options) : run_live(config, options);
  note_what_is_missing(config, summary);
  return summary;
}

}  // namespace ryle::pipeline
