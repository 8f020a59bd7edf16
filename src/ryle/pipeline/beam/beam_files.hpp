// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ryle/io/beam/sigproc.hpp"
#include "ryle/pipeline/base/beam_chunk.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/stage_thread.hpp"

namespace ryle::pipeline {

/// NAME_BEAM.fil of each row; another segment has ..._s1.fil, ...
std::string beam_file(const ObservationConfig& config, const std::string& beam,
                      std::int64_t segment = 0);
/// NAME_beams.json: which file is which beam, scales, and what was absent.
std::string beam_notes_file(const ObservationConfig& config);
/// Throws IoError when a product of these beams exists and may not be replaced.
void require_new_beam_files(const ObservationConfig& config, const std::vector<std::string>& beams);

/// Codes of an 8-bit filterbank, per channel.
/// @eq code = clamp(rne((p - mean) 8 / rms + 64), 0, 255)
struct BeamScale {
  static constexpr float kMeanCode = 64, kRmsCodes = 8;
  std::vector<float> mean, rms;  ///< [channel]; rms 0: nothing was there, all codes are the mean
};

/// Filterbanks of all rows.
/// - Thread: take() copies the chunk on the engine's thread; the writer's own thread ("ryle-beams")
///   makes codes and writes.
/// - Reads a bounded queue of blocks: a slow disk drops whole blocks (counted, written as the
/// mean),
///   never data of the engine. Scales come from the first scale_s, robustly (mean and rms of what
///   lies within 5 sigma of the median), and stay.
/// - Ends when finish() has drained the queue, or when writing throws: failed() then.
/// - A short gap is written as the mean of each channel and listed in the notes; a new segment, or
/// a
///   gap longer than kLongestGap_s, ends the files and begins new ones.
class BeamFiles final : public BeamConsumer {
 public:
  BeamFiles(const ObservationConfig& config, const BeamStream& stream);
  ~BeamFiles() override;

  void take(const BeamChunk& chunk) override;
  void finish(RunSummary& summary) override;
  bool failed() const override { return failed_; }
  std::int64_t memory_bytes() const override;

 private:
  struct Block {
    std::vector<float> values;  ///< [row][channel][n]
    std::int64_t n = 0, first_sample = 0, segment = 0;
    SampleClock clock;
    std::vector<ChannelGap> absent;
    const float* row(std::int64_t beam, std::int64_t channel, std::int64_t n_channels) const {
      return values.data() + (beam * n_channels + channel) * n;
    }
  };
  void run();
  void process(Block&& block);
  void measure();
  void write(Block& block);
  void write_gap(std::int64_t n);
  void codes_of(const Block& block, std::int64_t beam);
  void fill_absent(Block& block) const;
  void close_segment();
  void publish_notes();
  void publish_whole();
  FilterbankInfo header(std::int64_t beam, const Block& first) const;
  std::string notes() const;

  const ObservationConfig& config_;
  BeamStream stream_;
  std::int64_t scale_samples_;
  BoundedQueue<Block> queue_;
  BoundedQueue<std::vector<float>> free_;
  std::atomic<bool> failed_{false};
  std::string error_;

  // Of the writer's thread.
  std::int64_t segment_ = -1, next_sample_ = 0, held_samples_ = 0;
  std::int64_t block_samples_ = 0;  ///< of the block in work
  bool measured_ = false;
  std::vector<Block> held_;  ///< until the scale is known
  std::vector<BeamScale> scales_;
  std::vector<std::unique_ptr<SigprocWriter>> writers_;
  std::vector<std::uint8_t> codes_;
  std::vector<float> floats_;
  std::vector<std::string> published_;
  struct Gap {
    std::int64_t segment;
    ChannelGap gap;
  };
  std::vector<Gap> gaps_;
  std::int64_t n_gaps_ = 0, filled_ = 0, low_ = 0, high_ = 0, segments_ = 0;
  std::atomic<std::int64_t> dropped_samples_{0};
  std::unique_ptr<StageThread> thread_;
};

}  // namespace ryle::pipeline
