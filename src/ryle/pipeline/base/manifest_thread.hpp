// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ryle/io/base/manifest.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {

/// Fingerprints published files and lists them in the manifest, in a thread of its own: SHA-256 of
/// a segment takes seconds, in which the writer would drop dumps. A line that fails is a warning.
class ManifestThread {
 public:
  explicit ManifestThread(std::string manifest_path);
  ~ManifestThread();  ///< finishes what was added

  void add(ManifestEntry entry);
  /// Waits for all lines; returns what went wrong.
  std::vector<std::string> finish();

 private:
  void run();

  std::string path_;
  // Fingerprints are far faster than the files come in the long run; should they not be, we wait.
  BoundedQueue<ManifestEntry> queue_{256, DropPolicy::block};
  std::vector<std::string> failures_;  // of the thread, until it has ended
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle::pipeline
