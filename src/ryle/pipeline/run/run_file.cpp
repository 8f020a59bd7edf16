// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
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
  bool makes_all() const { return info_.channelized; }

  RunSummary run() {
    info_.channelized ? run_spectra() : run_samples();
    summary_.elapsed_s = seconds_since(start_);
    summary_.real_time_factor = summary_.data_s / std::max(summary_.elapsed_s, 1e-9);
    summary_.warnings.insert(summary_.warnings.end(), info_.warnings.begin(), info_.warnings.end());
    note_frames();
    summary_.state = "OK";
    note_peak_memory(summary_);
    return summary_;
  }

 private:
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

  // One reading for all products.
  void run_spectra() {
    const auto reader = make_spectra_reader(config_, *recording_);
    const std::int64_t total = n_ticks();
    const Nodes nodes = make_spectra_nodes(*reader, spectra_metadata(*reader, info_, total));
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
      summary_.data_s = info_.clock.seconds(first);
      report(summary_.data_s, info_.clock.seconds(total), busy_s(), &nodes);
    }
    summary_.lost_samples = reader->lost_samples;
    summary_.stopped_by_signal = stopped();
    DeviceLoss lost;  // all are published first
    for (const auto& node : nodes.all)
      lost.guard_end([&] { node->finish(input_note(config_), summary_); });
    summary_.engine_margin = busy_s() > 0 ? summary_.data_s / busy_s() : 0;
    lost.report(summary_);
  }

  Nodes make_spectra_nodes(SpectraReader& reader, const SpectraMetadata& metadata) {
    std::optional<StreamBeams> beams;
    if (wants_beams(config_)) beams = stream_beams(config_, array_, metadata);
    Nodes nodes =
        make_nodes(config_, array_, metadata, beams ? &*beams : nullptr, nullptr, true, options_);
    if (nodes.visibilities == nullptr && makes_visibilities(config_)) {  // for their pictures
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

/// Beams of time samples, channelized, and what is made of them.
RunSummary beams_of_file(const ObservationConfig& config, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto recording = open_source(config);
  const ArrayLayout array = load_array(config, recording->info().n_inputs);
  const auto reader = make_spectra_reader(config, *recording);
  const std::int64_t total = wanted_spectra(config, *reader);
  const SpectraMetadata metadata = spectra_metadata(*reader, recording->info(), total);
  BeamNode beams(config, stream_beams(config, array, metadata), nullptr, options);
  const auto stopped = [&] { return options.stop != nullptr && *options.stop > 0; };
  SpectraGulp gulp;
  for (std::int64_t first = 0; first < total && !stopped() && !beams.failed();) {
    const std::int64_t n = std::min(reader->max_gulp, total - first);
    reader->read(first, n, gulp);
    beams.feed(gulp, first, 0, reader->clock);
    first += n;
    if (!options.on_progress) continue;
    Progress p;
    p.data_s = reader->clock.seconds(first);
    p.elapsed_s = seconds_since(start);
    p.total_s = reader->clock.seconds(total);
    p.margin = beams.busy_s() > 0 ? p.data_s / beams.busy_s() : 0;
    p.state = "OK";
    beams.count(p);
    options.on_progress(p);
  }
  RunSummary summary;
  summary.stopped_by_signal = stopped();
  beams.finish({}, summary);
  summary.elapsed_s = seconds_since(start);
  return summary;
}

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

}  // namespace

RunSummary run_file(const ObservationConfig& config, const RunOptions& options) {
  require_visibility_names(config);
  if (wants_images(config)) require_sky_outputs(config);
  FileRun run(config, options);
  RunSummary summary = run.run();
  if (run.makes_all()) return summary;
  // Further passes: images and beams hold still over the ground, the visibilities of time samples
  // may have followed the sky in the channelizer.
  if (wants_images(config) && !summary.stopped_by_signal)
    add_pass(image_file(config, options), summary);
  if (wants_beams(config) && !summary.stopped_by_signal)
    add_pass(beams_of_file(config, options), summary);
  return summary;
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
