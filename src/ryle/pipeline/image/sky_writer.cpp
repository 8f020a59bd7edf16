// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/sky_writer.hpp"

namespace ryle::pipeline {

SkyWriter::SkyWriter(const ObservationConfig& config, Observation observation, SkyMetadata metadata,
                     bool live, std::function<void(const ImageEvent&)> on_event, ImageHook on_image)
    : products_(config, std::move(observation), std::move(metadata), std::move(on_event),
                std::move(on_image)),
      queue_(static_cast<std::size_t>(config.image.queue),
             live ? DropPolicy::drop_newest : DropPolicy::block) {
  thread_ = std::make_unique<StageThread>(
      "ryle-images", [this](const std::stop_token&) { run(); }, [this] { queue_.close(); });
}

SkyWriter::~SkyWriter() { queue_.close(); }

void SkyWriter::run() {
  try {
    while (auto raw = queue_.pop()) {
      products_.write(*raw);
      images_written_ = products_.images_written();
    }
  } catch (...) {
    failed_ = true;
    queue_.close();
    throw;
  }
}

void SkyWriter::finish() {
  queue_.close();
  thread_->join();
  products_.finish();
  images_written_ = products_.images_written();
}

}  // namespace ryle::pipeline
