// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/product_set.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "ryle/core/error.hpp"

namespace ryle::stage {

ProductSet::ProductSet(const ObservationConfig& config, std::vector<SourceMark> marks)
    : config_(config), marks_(std::move(marks)) {}

std::vector<std::string> ProductSet::names(std::int64_t segment) const {
  const auto& out = config_.output;
  // A segment is a stretch of one clock; the first keeps the plain name, later ones are numbered.
  const std::string suffix = segment == 0 ? "" : fmt::format("_s{:04d}", segment + 1);
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

void ProductSet::open(const Observation& observation, std::int64_t segment) {
  std::error_code ignored;
  std::filesystem::create_directories(config_.output.directory, ignored);
  for (const auto& name : names(files_opened_)) {
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
  if (segment != segment_) {
    if (segment_ >= 0) publish(observation);
    open(observation, segment);
  }
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
    });
  }
  writers_.clear();
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
