// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/manifest_thread.hpp"

#include <exception>

namespace ryle::pipeline {

ManifestThread::ManifestThread(std::string manifest_path) : path_(std::move(manifest_path)) {
  thread_ =
      std::make_unique<StageThread>("ryle-manifest", [this](const std::stop_token&) { run(); });
}

ManifestThread::~ManifestThread() { queue_.close(); }

void ManifestThread::add(ManifestEntry entry) { queue_.offer(std::move(entry)); }

std::vector<std::string> ManifestThread::finish() {
  queue_.close();
  thread_->join();
  return std::move(failures_);
}

void ManifestThread::run() {
  while (const auto entry = queue_.pop()) {
    try {
      append_manifest(path_, *entry);
    } catch (const std::exception& error) {
      failures_.push_back("the manifest lacks " + entry->path + ": " + error.what());
    }
  }
}

}  // namespace ryle::pipeline
