// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "ryle/pipeline/image/sky_products.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {

/// The last stage of imaging: products, so that a slow disk never holds up the engines.
/// - Thread: the engine's thread calls offer(); the writer's own thread ("ryle-images") makes the
///   products.
/// - Reads a bounded queue (image.queue). Live, the newest image is dropped when it is full, and
///   counted; offline, offer() waits.
/// - Ends when finish() has drained the queue, or when writing throws: failed() then.
class SkyWriter {
 public:
  /// @param on_event, on_image as of SkyProducts
  SkyWriter(const ObservationConfig& config, Observation observation, SkyMetadata metadata,
            bool live, std::function<void(const ImageEvent&)> on_event = {},
            ImageHook on_image = {});
  ~SkyWriter();

  void offer(RawImages&& raw) { queue_.offer(std::move(raw)); }
  /// Drains and publishes. Rethrows what stopped the writer.
  void finish();

  std::int64_t images_written() const { return images_written_; }
  std::int64_t images_dropped() const { return static_cast<std::int64_t>(queue_.dropped()); }
  bool failed() const { return failed_; }
  const SkyProducts& products() const { return products_; }

 private:
  void run();

  SkyProducts products_;
  BoundedQueue<RawImages> queue_;
  std::atomic<std::int64_t> images_written_{0};
  std::atomic<bool> failed_{false};
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle::pipeline
