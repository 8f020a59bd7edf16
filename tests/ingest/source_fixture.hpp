// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "ryle/ingest/mwa32t_source.hpp"
#include "tests/ingest/loopback.hpp"
#include "tests/ingest/pattern.hpp"

namespace ryle::test {

/// What a consumer saw of one chunk, and whether every sample was right.
struct SeenChunk {
  Tick first_tick = 0;
  std::int64_t n_ticks = 0, sequence = 0, segment = 0;
  std::vector<AbsentSpan> absent;
  std::int64_t wrong = 0;  ///< words that are neither the pattern (present) nor 0 (absent)
};

/// Checks a chunk of [tick][16 * n_receivers] words against the pattern of tick + `pattern_offset`.
inline SeenChunk check_chunk(const Chunk& chunk, int n_receivers, std::int64_t pattern_offset = 0) {
  SeenChunk seen{chunk.first_tick, chunk.n_ticks, chunk.sequence, chunk.segment, chunk.absent, 0};
  const std::int64_t n_inputs = 16 * n_receivers;
  std::vector<std::uint8_t> absent(static_cast<std::size_t>(chunk.n_ticks * n_inputs), 0);
  for (const auto& span : chunk.absent) {
    for (Tick t = span.begin; t < span.end; ++t) {
      absent[static_cast<std::size_t>((t - chunk.first_tick) * n_inputs + span.input)] = 1;
    }
  }
  for (std::int64_t t = 0; t < chunk.n_ticks; ++t) {
    for (std::int64_t i = 0; i < n_inputs; ++i) {
      std::uint16_t word;
      std::memcpy(&word, chunk.payload.data() + (t * n_inputs + i) * 2, 2);
      const std::uint16_t expected =
          absent[static_cast<std::size_t>(t * n_inputs + i)] != 0
              ? 0
              : pattern_word(static_cast<std::uint32_t>(i / 16),
                             chunk.first_tick + t + pattern_offset, static_cast<int>(i % 16));
      seen.wrong += word != expected ? 1 : 0;
    }
  }
  return seen;
}

inline std::int64_t absent_samples(const SeenChunk& chunk) {
  std::int64_t n = 0;
  for (const auto& span : chunk.absent) n += span.end - span.begin;
  return n;
}

/// A running source with a consumer thread that checks and keeps account of every chunk.
class RunningSource {
 public:
  explicit RunningSource(const Mwa32tSourceConfig& config, std::int64_t pattern_offset = 0)
      : n_receivers_(static_cast<int>(config.endpoints.size())),
        source_(std::make_unique<Mwa32tSource>(config)) {
    source_->poison(std::byte{0xA5});
    endpoints_ = source_->endpoints();
    source_->start();
    consumer_ = std::thread([this, pattern_offset] {
      while (!source_->ended()) {
        Chunk* chunk = source_->next(std::chrono::milliseconds(20));
        if (chunk == nullptr) continue;
        seen_.push_back(check_chunk(*chunk, n_receivers_, pattern_offset));
        n_seen_ = static_cast<int>(seen_.size());
        std::memset(chunk->payload.data(), 0xA5, static_cast<std::size_t>(chunk->payload.bytes()));
        source_->release(chunk);
      }
    });
  }
  ~RunningSource() { stop(); }
  void stop() {
    source_->stop();
    if (consumer_.joinable()) consumer_.join();
  }
  /// Waits for the source to end by itself.
  void join() {
    if (consumer_.joinable()) consumer_.join();
  }
  Mwa32tSource& source() { return *source_; }
  const std::string& endpoint(int receiver) const {
    return endpoints_[static_cast<std::size_t>(receiver)];
  }
  /// @pre stopped
  const std::vector<SeenChunk>& seen() const { return seen_; }
  int n_seen() const { return n_seen_; }

  /// Polls until `condition` holds, at most a minute (this machine may be busy).
  static bool wait_until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return condition();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  int n_receivers_;
  std::unique_ptr<Mwa32tSource> source_;
  std::vector<std::string> endpoints_;
  std::vector<SeenChunk> seen_;
  std::atomic<int> n_seen_{0};
  std::thread consumer_;
};

/// Small chunks; four receivers on free ports: two TCP, two UDP. Nothing is given up by the clock:
/// a sender that waits long for a core is not dead.
inline Mwa32tSourceConfig mixed_config() {
  Mwa32tSourceConfig config;
  config.endpoints = {"tcp://127.0.0.1:0", "tcp://127.0.0.1:0", "udp://127.0.0.1:0",
                      "udp://127.0.0.1:0"};
  config.chunk_ticks = 4096;
  config.n_chunks = 32;  // all a test sends: a slow consumer on a busy machine must not matter
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  config.close_after_ns = config.idle_close_ns = config.patience_ns = std::int64_t{1} << 60;
  return config;
}

}  // namespace ryle::test
