// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/product/visibility_file.hpp"
#include "ryle/stage/config.hpp"
#include "ryle/stage/quick_look.hpp"
#include "ryle/stage/rotation.hpp"

namespace ryle::stage {

/// The files of a run: opens a writer per format at the first dump of a segment, publishes all of
/// them when the segment ends: at a restart of the sender, and by time or size (Rotation), when
/// each published file also gets a line in NAME.manifest.jsonl. A writer that fails is discarded
/// and reported; the others and the data path go on (products.md 5: on_disk_full).
class ProductSet {
 public:
  ProductSet(const ObservationConfig& config, std::vector<SourceMark> marks);

  void write(const VisibilityDump& dump, const Observation& observation, std::int64_t segment);
  /// Publishes the open segment.
  void publish(const Observation& observation);
  /// Pictures of everything written; returns their paths through published().
  void draw(Queue& queue, const Observation& observation);

  const std::vector<std::string>& published() const { return published_; }
  const std::vector<std::string>& errors() const { return errors_; }
  std::int64_t dumps_written() const { return dumps_written_; }
  /// Every writer has failed: a run with on_disk_full = "stop" ends.
  bool all_failed() const { return writers_.empty() && !errors_.empty(); }
  const std::string& imager() const { return imager_; }

 private:
  void open(const Observation& observation, const VisibilityDump& first, std::int64_t segment);
  std::vector<std::string> names(const VisibilityDump& first) const;
  std::string manifest_name() const;
  void require_space(const std::string& name, std::size_t n_files) const;
  void note_published(const std::string& path);
  std::string picture_name(const std::string& what) const;
  template <class Action>
  void guarded(Action action);

  ObservationConfig config_;
  std::vector<std::unique_ptr<VisibilityWriter>> writers_;
  Rotation rotation_;
  std::int64_t segment_ = -1;
  std::int64_t files_opened_ = 0;
  QuickLook quick_look_;
  std::vector<SourceMark> marks_;
  std::vector<std::string> published_;
  std::vector<std::string> errors_;
  std::int64_t dumps_written_ = 0;
  std::string imager_;
};

}  // namespace ryle::stage
