// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "ryle/core/bits.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/fengine_source.hpp"
#include "ryle/wire/chips.hpp"
#include "ryle/wire/lwa.hpp"
#include "tests/ingest/loopback.hpp"

namespace ryle::test {

/// Sample byte of (spectrum, channel number, input), never 0, so that a filled sample is told from
/// a sent one.
inline std::uint8_t pattern_byte(std::int64_t spectrum, std::int64_t channel, std::int64_t input) {
  return static_cast<std::uint8_t>(1 + combine(static_cast<std::uint64_t>(spectrum),
                                               static_cast<std::uint64_t>(channel),
                                               static_cast<std::uint64_t>(input)) %
                                           255);
}

/// [channel][input] of a packet.
inline std::vector<std::byte> pattern_spectrum(std::int64_t spectrum, std::int64_t first_channel,
                                               std::int64_t n_channels, std::int64_t first_input,
                                               std::int64_t n_inputs) {
  std::vector<std::byte> bytes;
  for (std::int64_t c = 0; c < n_channels; ++c) {
    for (std::int64_t i = 0; i < n_inputs; ++i) {
      bytes.push_back(std::byte{pattern_byte(spectrum, first_channel + c, first_input + i)});
    }
  }
  return bytes;
}

inline std::vector<std::byte> chips_datagram(std::int64_t board, std::int64_t spectrum,
                                             std::int64_t first_channel, std::int64_t n_channels) {
  wire::Packet packet;
  packet.stream = static_cast<std::uint32_t>(board);
  packet.tick_raw = static_cast<std::uint64_t>(spectrum);
  packet.channel = static_cast<std::uint32_t>(first_channel);
  packet.n_channels = static_cast<std::uint32_t>(n_channels);
  const auto payload = pattern_spectrum(spectrum, first_channel, n_channels, 32 * board, 32);
  std::vector<std::byte> bytes(wire::kChipsHeaderBytes + payload.size());
  EXPECT_EQ(wire::encode(wire::ChipsGeometry{255, 0}, packet, payload, bytes), bytes.size());
  return bytes;
}

/// A running source with a consumer that unpacks every chunk into poisoned blocks and checks every
/// sample and mask bit against the pattern.
class RunningFengine {
 public:
  struct Seen {
    Tick first = 0;
    std::int64_t n = 0, segment = 0;
    std::vector<std::uint8_t> present;  ///< [stream][spectrum]
    std::int64_t n_absent = 0;          ///< of present
  };

  explicit RunningFengine(const FengineSourceConfig& config, std::int64_t pattern_offset = 0)
      : config_(config), source_(std::make_unique<FengineSource>(config)) {
    source_->poison(std::byte{0xA5});
    source_->start();
    consumer_ = std::thread([this, pattern_offset] {
      SpectraBlocks spectra(source_->shape());
      while (!source_->ended()) {
        Chunk* chunk = source_->next(std::chrono::milliseconds(20));
        if (chunk == nullptr) continue;
        std::ranges::fill(spectra.bytes.span(), std::byte{0x5A});
        unpack(source_->layout(), *chunk, spectra);
        seen_.push_back(check(*chunk, spectra, pattern_offset));
        std::memset(chunk->payload.data(), 0xA5, static_cast<std::size_t>(chunk->payload.bytes()));
        source_->release(chunk);
      }
    });
  }
  ~RunningFengine() { stop(); }
  void stop() {
    source_->stop();
    if (consumer_.joinable()) consumer_.join();
  }
  FengineSource& source() { return *source_; }
  std::string endpoint(std::size_t i = 0) const { return source_->endpoints()[i]; }
  /// @pre stopped
  const std::vector<Seen>& seen() const { return seen_; }
  std::int64_t wrong() const { return wrong_; }
  std::int64_t absent(std::int64_t stream) const {
    std::int64_t n = 0;
    for (const auto& s : seen_) {
      for (std::int64_t t = 0; t < s.n; ++t) n += s.present[stream * s.n + t] == 0 ? 1 : 0;
    }
    return n;
  }
  /// Waits until this many datagrams were counted.
  bool wait_all(std::uint64_t n) {
    for (int i = 0; i < 60'000 && source_->counters().received < n; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return source_->counters().received >= n;
  }

 private:
  Seen check(const Chunk& chunk, const SpectraBlocks& spectra, std::int64_t pattern_offset) {
    const FengineLayout& layout = source_->layout();
    Seen seen{chunk.first_tick, chunk.n_ticks, chunk.segment, {}, 0};
    seen.present.assign(static_cast<std::size_t>(layout.n_streams() * chunk.n_ticks), 1);
    for (const auto& span : chunk.absent) {
      for (Tick t = span.begin; t < span.end; ++t) {
        seen.present[span.input * chunk.n_ticks + t - chunk.first_tick] = 0;
        ++seen.n_absent;
      }
    }
    const BlockView blocks = spectra.blocks();
    wrong_ += spectra.n_spectra != chunk.n_ticks || spectra.complete != chunk.absent.empty();
    for (std::int64_t c = 0; c < layout.n_channels; ++c) {
      for (std::int64_t i = 0; i < layout.n_inputs; ++i) {
        const std::int64_t stream =
            c / layout.channels_per_packet * layout.n_boards() + i / layout.inputs_per_packet;
        const std::uint64_t* row = spectra.mask.bits.data() +
                                   c * spectra.mask.channel_stride_words + i * spectra.mask.words;
        for (std::int64_t t = 0; t < blocks.n_blocks * kBlockBytes; ++t) {
          const bool present = t < chunk.n_ticks && seen.present[stream * chunk.n_ticks + t] != 0;
          const auto expected = present ? pattern_byte(chunk.first_tick + t + pattern_offset,
                                                       config_.first_channel + c, i)
                                        : 0;
          const auto got =
              static_cast<std::uint8_t>(blocks.cell(c, t / kBlockBytes, i)[t % kBlockBytes]);
          wrong_ += got != expected;
          if (t < 64 * spectra.mask.words) wrong_ += test_bit(row, t) != present;
        }
      }
    }
    return seen;
  }

  FengineSourceConfig config_;
  std::unique_ptr<FengineSource> source_;
  std::vector<Seen> seen_;
  std::atomic<std::int64_t> wrong_{0};
  std::thread consumer_;
};

/// Three boards, 5 channels from number 1600, small chunks, all of a test in the ring.
inline FengineSourceConfig small_chips() {
  FengineSourceConfig config;
  config.endpoints = {"udp://127.0.0.1:0"};
  config.n_boards = 3;
  config.first_channel = 1600;
  config.n_channels = 5;
  config.chunk_spectra = 128;
  config.n_chunks = 40;
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  config.close_after_ns = config.idle_close_ns = std::int64_t{1} << 60;
  return config;
}

}  // namespace ryle::test
