// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/base/manifest_thread.hpp"
#include "ryle/pipeline/base/rotation.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/quick_look.hpp"
#include "ryle/pipeline/visibility/spead_output.hpp"

namespace ryle::pipeline {

/// Names of the visibility files that [output] asks for; `suffix` comes before the extension.
std::vector<std::string> visibility_names(const ObservationConfig& config,
                                          const std::string& suffix);

/// Before the input is opened: throws what a writer would throw after the first integration:
/// ConfigError for a suffix of no format, IoError for a name that is taken or cannot be made.
void require_visibility_names(const ObservationConfig& config);
/// The same when the sizes are known: makes output.directory, and throws IoError where the disk has
/// no room for the visibilities of the data that are announced (source.duration_s,
/// simulator.duration_s), at least for two integrations.
void require_visibility_outputs(const ObservationConfig& config, std::int64_t n_antennas,
                                std::int64_t n_pols, std::int64_t n_channels);

/// The files of a run: opens a writer per format at the first dump of a segment, publishes all of
/// them when the segment ends: at a restart of the sender, and by time or size (Rotation), when
/// each published file also gets a line in NAME.manifest.jsonl. A writer that fails is reported,
/// its whole integrations stay for `ryle recover`; the others and the data path go on
/// (docs/design/products.md 5: on_disk_full). Only the thread of DumpWriter calls it; lines of the
/// manifest are made by ManifestThread.
class ProductSet {
 public:
  ProductSet(const ObservationConfig& config, std::vector<SourceMark> marks);

  /// Files that are opened from now on have this format (ms, uvfits, uvh5), or not.
  void write_format(const std::string& format, bool on);
  /// This dump opens new files: whoever knows more of the ones it ends publishes them first.
  bool due(const VisibilityDump& dump, std::int64_t segment) const;
  void write(const VisibilityDump& dump, const Observation& observation, std::int64_t segment);
  /// Publishes the open files, all that can be; then throws the first error with "stop".
  void publish(const Observation& observation);
  /// After an error that ends the run: publishes what can be, and says what was ("; published
  /// a.uvh5"), also of what could not be.
  std::string publish_rest(const Observation& observation);
  /// Waits for the lines of the manifest, ends the stream of SPEAD. @pre nothing is written or
  /// published after it
  void finish_manifest();
  /// Pictures of everything written; returns their paths through published().
  void draw(Queue& queue, const Observation& observation);

  const std::vector<std::string>& published() const { return published_; }
  const std::vector<std::string>& errors() const { return errors_; }
  /// Trouble with the manifest: the products are there.
  const std::vector<std::string>& warnings() const { return warnings_; }
  std::int64_t dumps_written() const { return dumps_written_; }
  /// Integrations that at least one of the files they were meant for does not have.
  std::int64_t dumps_lost() const { return dumps_lost_; }
  const std::string& imager() const { return imager_; }

 private:
  void open(const Observation& observation, const VisibilityDump& first, std::int64_t segment);
  std::vector<std::string> names(const VisibilityDump& first) const;
  std::string manifest_name() const;
  void require_space(const std::vector<std::string>& files, const VisibilityDump& first) const;
  void note_published(const std::string& path);
  template <class Action>
  void run_or_abandon(Action action);

  ObservationConfig config_;
  std::vector<std::unique_ptr<VisibilityWriter>> writers_;
  Rotation rotation_;
  std::int64_t segment_ = -1;
  bool open_ = false;  // files of a segment, be it that all of them have failed
  std::int64_t files_opened_ = 0;
  QuickLook quick_look_;
  std::vector<SourceMark> marks_;
  std::vector<std::string> published_;
  std::vector<std::string> errors_;
  std::vector<std::string> warnings_;
  std::int64_t dumps_written_ = 0;
  std::int64_t dumps_lost_ = 0;
  std::size_t n_wanted_ = 0;  // files of the open segment, be it that some have failed
  std::string imager_;
  std::unique_ptr<ManifestThread> manifest_;
  std::unique_ptr<SpeadOutput> spead_;
};

}  // namespace ryle::pipeline
