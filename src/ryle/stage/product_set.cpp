// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/product_set.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "ryle/core/error.hpp"
#include "ryle/product/manifest.hpp"

namespace ryle::stage {

ProductSet::ProductSet(const ObservationConfig& config, std::vector<SourceMark> marks)
    : config_(config),
      rotation_(config.output.segment_s, config.output.segment_mib),
      marks_(std::move(marks)) {}

std::vector<std::string> ProductSet::names(const VisibilityDump& first) const {
  const auto& out = config_.output;
  // Without rotation a segment is a stretch of one clock; the first keeps the plain name.
  const std::int64_t number = files_opened_ + 1;
  const std::string suffix = rotation_.on() ? segment_suffix(first.start_tai_ns, number)
                             : number == 1  ? ""
                                            : fmt::format("_s{:04d}", number);
  std::vector<std::string> result;
  if (!out.files.empty()) {
    for (const auto& file : out.files) {
      const std::filesystem::path path(file);
      result.push_back(
          (path.parent_path() / (path.stem().string() + suffix + path.extension().string()))
              .string());
    }
    return result;
  }
  const std::filesystem::path directory(out.directory);
  const auto add = [&](bool wanted, const char* extension) {
    if (wanted) result.push_back((directory / (out.name + suffix + extension)).string());
  };
  add(out.ms, ".ms");
  add(out.uvfits, ".uvfits");
  add(out.uvh5, ".uvh5");
  return result;
}

std::string ProductSet::picture_name(const std::string& what) const {
  return (std::filesystem::path(config_.output.directory) /
          (config_.output.name + "_" + what + ".png"))
      .string();
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
void ProductSet::require_space(const std::string& name, std::size_t n_files) const {
  if (rotation_.segment_bytes() == 0) return;
  const auto wanted = 2 * static_cast<std::uintmax_t>(rotation_.segment_bytes()) * n_files;
  std::error_code error;
  const auto parent = std::filesystem::path(name).parent_path();
  const auto space = std::filesystem::space(parent.empty() ? "." : parent, error);
  if (error || space.available >= wanted) return;
  throw IoError(ExitCode::io,
                fmt::format("cannot begin {}: {} bytes are free on its disk, two "
                            "segments of output.segment_mib = {:g} in {} formats "
                            "take {}; free space, write elsewhere or make segments "
                            "smaller",
                            name, space.available, config_.output.segment_mib, n_files, wanted));
}

void ProductSet::open(const Observation& observation, const VisibilityDump& first,
                      std::int64_t segment) {
  std::error_code ignored;
  std::filesystem::create_directories(config_.output.directory, ignored);
  const auto files = names(first);
  if (files_opened_ == 0 && !files.empty()) require_space(files.front(), files.size());
  rotation_.begin(first);
  for (const auto& name : files) {
    guarded([&] {
      writers_.push_back(open_visibility_writer(name, observation, config_.output.overwrite));
    });
  }
  ++files_opened_;
  segment_ = segment;
}

template <class Action>
void ProductSet::guarded(Action action) {
  try {
    action();
  } catch (const Error& e) {
    // A first failure at the start of a run is the user's to see at once; later ones must not stop
    // the data path.
    if (dumps_written_ == 0 || config_.output.on_disk_full == "stop") throw;
    errors_.emplace_back(e.what());
  }
}

void ProductSet::write(const VisibilityDump& dump, const Observation& observation,
                       std::int64_t segment) {
  if (segment != segment_ || rotation_.due(dump)) {
    if (segment_ >= 0) publish(observation);
    open(observation, dump, segment);
  }
  rotation_.add(dump);
  for (auto& writer : writers_) {
    guarded([&] {
      try {
        writer->write(dump);
      } catch (...) {
        writer.reset();  // its .part goes with it
        throw;
      }
    });
  }
  std::erase(writers_, nullptr);
  quick_look_.add(dump);
  ++dumps_written_;
}

void ProductSet::publish(const Observation& observation) {
  for (auto& writer : writers_) {
    guarded([&] {
      writer->publish(observation);
      published_.push_back(writer->path());
      note_published(writer->path());
    });
  }
  writers_.clear();
}

void ProductSet::note_published(const std::string& path) {
  if (!rotation_.on()) return;
  append_manifest(manifest_name(), {path, files_opened_, rotation_.start_tai_ns(),
                                    rotation_.end_tai_ns(), rotation_.dumps()});
}

void ProductSet::draw(Queue& queue, const Observation& observation) {
  if (!config_.output.pictures || dumps_written_ == 0) return;
  guarded([&] {
    const std::string matrix = picture_name("visibilities");
    const std::string bandpass = picture_name("bandpass");
    const std::string sky = picture_name("sky");
    quick_look_.draw_matrix(matrix, observation, config_.output.overwrite);
    published_.push_back(matrix);
    quick_look_.draw_bandpass(bandpass, observation, config_.output.overwrite);
    published_.push_back(bandpass);
    imager_ = quick_look_.draw_sky(sky, queue, observation, config_.image, marks_,
                                   config_.output.overwrite);
    published_.push_back(sky);
  });
}

}  // namespace ryle::stage
