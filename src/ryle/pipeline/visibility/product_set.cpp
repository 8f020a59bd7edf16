// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/product_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <map>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle::pipeline {
namespace {

constexpr const char* kPictures[] = {"visibilities", "bandpass", "sky"};

std::string picture_name(const ObservationConfig& config, const std::string& what) {
  return (std::filesystem::path(config.output.directory) /
          (config.output.name + "_" + what + ".png"))
      .string();
}

/// Length of the data, where the observation says it; else 0.
double announced_s(const ObservationConfig& config) {
  const double asked_s = config.source.duration_s;
  if (config.source.kind != "simulator") return asked_s;
  return asked_s > 0 ? std::min(asked_s, config.simulator.duration_s) : config.simulator.duration_s;
}

/// Data without fringe stopping have no phase centre: only UVH5 can say so.
void require_container_of_phases(const ObservationConfig& config,
                                 const std::vector<std::string>& names) {
  if (config.correlate.fringe_stopping != "none") return;
  const std::string none = "correlate.fringe_stopping = \"none\" leaves all delays in the data";
  for (const auto& name : names) {
    const auto suffix = std::filesystem::path(name).extension().string();
    if (suffix == ".ms" || suffix == ".uvfits")
      throw ConfigError(none + ", which " + name +
                        " cannot say: .uvh5 can (output.ms = false, output.uvfits = false), "
                        "\"f\" and \"x\" take them out");
  }
  if (config.correlate.phase_center != "zenith")
    throw ConfigError(none + ": correlate.phase_center = \"" + config.correlate.phase_center +
                      "\" has no effect; leave it out, or stop fringes with \"f\" or \"x\"");
}

}  // namespace

std::vector<std::string> visibility_names(const ObservationConfig& config,
                                          const std::string& suffix) {
  const auto& out = config.output;
  std::vector<std::string> result;
  for (const auto& file : out.files) {
    const std::filesystem::path path(file);
    result.push_back(
        (path.parent_path() / (path.stem().string() + suffix + path.extension().string()))
            .string());
  }
  if (!result.empty()) return result;
  const std::filesystem::path directory(out.directory);
  const auto add = [&](bool wanted, const char* extension) {
    if (wanted) result.push_back((directory / (out.name + suffix + extension)).string());
  };
  add(out.ms, ".ms");
  add(out.uvfits, ".uvfits");
  add(out.uvh5, ".uvh5");
  return result;
}

void require_visibility_names(const ObservationConfig& config) {
  const auto& out = config.output;
  const auto names = visibility_names(config, "");
  if (names.empty() && !out.pictures) return;
  require_container_of_phases(config, names);
  std::vector<std::string> made, elsewhere;  // in the directory, which is made; in others
  for (const auto& name : names) {
    require_visibility_suffix(name);
    // With rotation names carry the time of their first integration.
    if (out.segment_s > 0 || out.segment_mib > 0) continue;
    const auto parent = std::filesystem::path(name).parent_path();
    const bool in_directory = parent == std::filesystem::path(out.directory);
    (in_directory ? made : elsewhere).push_back(name);
  }
  for (const char* what : kPictures)
    if (out.pictures) made.push_back(picture_name(config, what));
  require_creatable_in(out.directory, made, out.overwrite);
  require_all_creatable(elsewhere, out.overwrite);
}

void require_visibility_outputs(const ObservationConfig& config, std::int64_t n_antennas,
                                std::int64_t n_pols, std::int64_t n_channels) {
  const auto& out = config.output;
  std::error_code error;
  if (out.pictures || !visibility_names(config, "").empty())
    std::filesystem::create_directories(out.directory, error);
  if (error) throw IoError::from_errno("create", out.directory, error.value(), true);
  require_visibility_names(config);
  require_spead_output(out);
  std::map<std::string, int> n_files;
  for (const auto& name : visibility_names(config, "")) {
    const auto parent = std::filesystem::path(name).parent_path();
    ++n_files[parent.empty() ? "." : parent.string()];
  }
  const auto dump_bytes =
      static_cast<double>(Rotation::dump_bytes(n_pairs(n_antennas), n_pols * n_pols, n_channels));
  const double n_dumps =
      std::max(2.0, std::ceil(announced_s(config) / config.correlate.integration_s));
  for (const auto& [directory, n] : n_files)
    require_room(directory, n * n_dumps * dump_bytes,
                 fmt::format("the visibilities of {} integrations in {} formats", n_dumps, n));
}

ProductSet::ProductSet(const ObservationConfig& config, std::vector<SourceMark> marks)
    : config_(config),
      rotation_(config.output.segment_s, config.output.segment_mib),
      marks_(std::move(marks)) {
  if (!config.output.spead.empty()) spead_ = std::make_unique<SpeadOutput>(config.output);
}

std::vector<std::string> ProductSet::names(const VisibilityDump& first) const {
  // Without rotation a segment is a stretch of one clock; the first keeps the plain name.
  const std::int64_t number = files_opened_ + 1;
  return visibility_names(config_, rotation_.on() ? segment_suffix(first.start_tai_ns, number)
                                   : number == 1  ? ""
                                                  : fmt::format("_s{:04d}", number));
}

std::string ProductSet::manifest_name() const {
  const auto& out = config_.output;
  const std::filesystem::path base = out.files.empty()
                                         ? std::filesystem::path(out.directory) / out.name
                                         : std::filesystem::path(out.files.front());
  return (base.parent_path() / (out.files.empty() ? base.filename() : base.stem())).string() +
         ".manifest.jsonl";
}

// A run that cannot write two segments would stop before anybody looks (reliability.md 5).
void ProductSet::require_space(const std::vector<std::string>& files,
                               const VisibilityDump& first) const {
  const auto segment = static_cast<std::uintmax_t>(rotation_.segment_bytes(first));
  if (segment == 0) return;
  std::map<std::string, std::uintmax_t> n_files;
  for (const auto& file : files) {
    const auto parent = std::filesystem::path(file).parent_path();
    ++n_files[parent.empty() ? "." : parent.string()];
  }
  const auto& out = config_.output;
  for (const auto& [directory, n] : n_files) {
    std::error_code error;
    const auto space = std::filesystem::space(directory, error);
    if (error || space.available / 2 / n >= segment) continue;
    throw IoError(
        ExitCode::io,
        fmt::format("cannot begin to write in {}: {} bytes are free on its disk, two "
                    "segments (output.segment_s = {:g}, segment_mib = {:g}) of {} bytes "
                    "in {} formats do not fit; free space, write elsewhere or make "
                    "segments smaller",
                    directory, space.available, out.segment_s, out.segment_mib, segment, n));
  }
}

void ProductSet::open(const Observation& observation, const VisibilityDump& first,
                      std::int64_t segment) {
  std::error_code ignored;
  std::filesystem::create_directories(config_.output.directory, ignored);
  const auto files = names(first);
  if (files_opened_ == 0) require_space(files, first);
  rotation_.begin(first, segment != segment_);
  n_wanted_ = files.size();
  for (const auto& name : files) {
    run_or_abandon([&] {
      writers_.push_back(open_visibility_writer(name, observation, config_.output.overwrite));
    });
  }
  ++files_opened_;
  segment_ = segment;
  open_ = true;
}

template <class Action>
void ProductSet::run_or_abandon(Action action) {
  try {
    action();
  } catch (const Error& e) {
    // A first failure at the start of a run is the user's to see at once; later ones must not stop
    // the data path.
    if (dumps_written_ == 0 || config_.output.on_disk_full == "stop") throw;
    errors_.emplace_back(e.what());
  }
}

void ProductSet::write_format(const std::string& format, bool on) {
  auto& out = config_.output;
  (format == "ms" ? out.ms : format == "uvfits" ? out.uvfits : out.uvh5) = on;
}

bool ProductSet::due(const VisibilityDump& dump, std::int64_t segment) const {
  return open_ && (segment != segment_ || rotation_.due(dump));
}

void ProductSet::write(const VisibilityDump& dump, const Observation& observation,
                       std::int64_t segment) {
  if (due(dump, segment)) publish(observation);
  if (!open_) open(observation, dump, segment);
  rotation_.add(dump);
  for (auto& writer : writers_) {
    run_or_abandon([&] {
      try {
        writer->write(dump);
      } catch (...) {
        writer.reset();  // its .part stays where something whole is in it
        throw;
      }
    });
  }
  std::erase(writers_, nullptr);
  if (writers_.size() < n_wanted_) ++dumps_lost_;
  if (spead_) spead_->send(dump, observation);
  quick_look_.add(dump);
  ++dumps_written_;
}

void ProductSet::publish(const Observation& observation) {
  std::exception_ptr first_error;
  for (auto& writer : writers_) {
    try {
      run_or_abandon([&] {
        writer->publish(observation);
        published_.push_back(writer->path());
        note_published(writer->path());
      });
    } catch (...) {  // the others are whole all the same
      if (!first_error) first_error = std::current_exception();
    }
  }
  writers_.clear();
  open_ = false;
  if (first_error) std::rethrow_exception(first_error);
}

std::string ProductSet::publish_rest(const Observation& observation) {
  std::string text;
  std::erase(writers_, nullptr);  // of the one that failed
  for (auto& writer : writers_) {
    try {
      writer->publish(observation);
      published_.push_back(writer->path());
      note_published(writer->path());
      text += "; published " + writer->path();
    } catch (const std::exception& error) {
      text += std::string("; ") + error.what();
    }
  }
  writers_.clear();
  open_ = false;
  try {
    finish_manifest();
  } catch (const std::exception& error) {
    text += std::string("; ") + error.what();
  }
  return text;
}

void ProductSet::note_published(const std::string& path) {
  if (!rotation_.on()) return;
  if (!manifest_) manifest_ = std::make_unique<ManifestThread>(manifest_name());
  manifest_->add(
      {path, files_opened_, rotation_.start_tai_ns(), rotation_.end_tai_ns(), rotation_.dumps()});
}

void ProductSet::finish_manifest() {
  if (spead_) {
    if (std::string trouble = spead_->trouble(); !trouble.empty())
      warnings_.push_back("output.spead: " + trouble);
    spead_.reset();
  }
  if (!manifest_) return;
  for (auto& failure : manifest_->finish()) warnings_.push_back(std::move(failure));
  manifest_.reset();
}

void ProductSet::draw(Queue& queue, const Observation& observation) {
  if (!config_.output.pictures || dumps_written_ == 0) return;
  run_or_abandon([&] {
    const std::string matrix = picture_name(config_, kPictures[0]);
    const std::string bandpass = picture_name(config_, kPictures[1]);
    const std::string sky = picture_name(config_, kPictures[2]);
    quick_look_.draw_matrix(matrix, observation, config_.output.overwrite);
    published_.push_back(matrix);
    quick_look_.draw_bandpass(bandpass, observation, config_.output.overwrite);
    published_.push_back(bandpass);
    imager_ = quick_look_.draw_sky(sky, queue, observation, config_.image, marks_,
                                   config_.output.overwrite);
    published_.push_back(sky);
  });
}

}  // namespace ryle::pipeline
