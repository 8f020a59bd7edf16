// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/spectra_reader.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/correlate/import.hpp"
#include "ryle/pipeline/base/level_correction.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

// A gulp is bounded by memory: spectra x channels x inputs x 2 bytes.
constexpr std::int64_t kGulpBytes = 16 << 20;
constexpr std::int64_t kLongestGulp = 1024;

std::int64_t gulp_for(std::int64_t n_channels, std::int64_t n_inputs, std::int64_t n_spectra) {
  return std::clamp<std::int64_t>(kGulpBytes / (2 * n_channels * n_inputs), 1,
                                  std::clamp<std::int64_t>(n_spectra, 1, kLongestGulp));
}

/// Spectra of an external F-engine.
class RecordedSpectra final : public SpectraReader {
 public:
  explicit RecordedSpectra(Recording& recording) : recording_(recording), host_(Queue::cpu()) {
    const RecordingInfo& info = recording.info();
    frequency = info.frequency;
    clock = info.clock;
    n_inputs = info.n_inputs;
    n_spectra = info.n_ticks;
    four_bits = has_four_bits(info.format);
    max_gulp = gulp_for(frequency.n_channels, n_inputs, n_spectra);
    const std::int64_t cells = frequency.n_channels * n_inputs;
    spectra_.resize(max_gulp * cells);
    blocks_ = Buffer<std::byte>(
        dense_blocks_bytes(SampleFormat::ci8, frequency.n_channels, max_gulp, n_inputs));
    absent_channels_.resize(cells);
    valid_.resize(cells * words_for_bits(max_gulp));
  }

  void read(std::int64_t first, std::int64_t n, SpectraGulp& gulp) override {
    absent_.clear();
    gaps_.clear();
    std::fill(absent_channels_.begin(), absent_channels_.end(), std::uint8_t{0});
    recording_.read_spectra(first, n, spectra_, absent_, &absent_channels_, &gaps_);
    mark_valid(first, n);
    const BlockView blocks =
        dense_blocks(blocks_.data(), SampleFormat::ci8, frequency.n_channels, n, n_inputs);
    correlate::import_voltages(
        host_, spectra_.data(),
        correlate::spectrum_channel_input(SampleFormat::ci8, frequency.n_channels, n_inputs), n,
        blocks);
    const std::int64_t words = words_for_bits(n);
    gulp = {blocks, n, valid_.data(), words, n_inputs * words};
  }

 private:
  void mark_valid(std::int64_t first, std::int64_t n) {
    const std::int64_t words = words_for_bits(n);
    std::fill(valid_.begin(), valid_.end(), std::uint64_t{0});
    for (std::int64_t c = 0; c < frequency.n_channels; ++c) {
      for (std::int64_t p = 0; p < n_inputs; ++p) {
        if (absent_channels_[c * n_inputs + p] != 0) continue;
        set_bits(valid_.data() + (c * n_inputs + p) * words, 0, n);
      }
    }
    for (const auto& a : absent_)
      lose(a.input, {0, frequency.n_channels, a.begin, a.end}, first, n);
    for (const auto& g : gaps_) {
      for (std::int64_t p = 0; p < n_inputs; ++p) lose(p, g, first, n);
    }
  }

  void lose(std::int64_t input, const ChannelGap& gap, std::int64_t first, std::int64_t n) {
    const std::int64_t words = words_for_bits(n);
    const std::int64_t begin = std::max(gap.begin, first) - first;
    const std::int64_t end = std::min(gap.end, first + n) - first;
    if (begin >= end) return;
    for (std::int64_t c = gap.channel_begin; c < gap.channel_end; ++c) {
      if (absent_channels_[c * n_inputs + input] != 0) continue;
      lost_samples += static_cast<std::uint64_t>(end - begin);
      clear_bits(valid_.data() + (c * n_inputs + input) * words, begin, end);
    }
  }

  Recording& recording_;
  Queue host_;
  std::vector<ci8> spectra_;  // [spectrum][channel][input]
  std::vector<AbsentSpan> absent_;
  std::vector<ChannelGap> gaps_;
  std::vector<std::uint8_t> absent_channels_;  // [channel][input]
  Buffer<std::byte> blocks_;
  std::vector<std::uint64_t> valid_;  // [channel][input][words]
};

/// Time samples of a recording through the channelizer. A spectrum is a pure function of its
/// samples, so every gulp reads the ticks it needs and nothing is carried over.
class ChannelizedSamples final : public SpectraReader {
 public:
  ChannelizedSamples(const ObservationConfig& observation, Recording& recording)
      : recording_(recording), host_(Queue::cpu(static_cast<int>(observation.runtime.threads))) {
    const RecordingInfo& info = recording.info();
    ObservationConfig config = observation;
    config.correlate.fringe_stopping = "none";  // images hold still over the ground
    if (config.channelize.bits == 0) config.channelize.bits = 8;
    if (config.channelize.bits > 8)
      throw ConfigError(std::to_string(config.channelize.bits) +
                        " bits (channelize.bits): images and beams of a recording are made of "
                        "spectra of 4 or 8 bits; leave it out, or make visibilities in a run of "
                        "their own");
    SampleMetadata metadata{info.n_inputs,      info.layout, info.clock,      info.reference_hz,
                            info.inverted_band, 0,           info.time_source};
    if (metadata.reference_hz == 0) metadata.reference_hz = config.source.center_mhz * 1e6;
    if (metadata.reference_hz == 0 && !info.from_zero_hz) {
      throw ConfigError(source_name(config) +
                        ": sky frequency unknown; give source.center_mhz (--center-mhz)");
    }
    // No tracking, hence no delays to make room for: the layout does not matter here.
    const FxChain::Setup chain = make_chain_setup(config, metadata, {});
    config_ = chain.channelize;
    format = config_.output;
    target_rms_lsb_ = chain.target_rms_lsb;
    step_ = channelize::step_length(config_);
    length_ = channelize::filter_length(config_);
    if (info.n_ticks < length_) {
      throw FormatError(source_name(config) + ": too short for one spectrum of " +
                        std::to_string(length_) + " samples; fewer channels or taps would fit");
    }
    frequency = frequency_axis(config_);
    clock = info.clock;
    clock.rate_hz = Rational{info.clock.rate_hz.num, info.clock.rate_hz.den * step_}.reduced();
    n_inputs = info.n_inputs;
    n_spectra = (info.n_ticks - length_) / step_ + 1;
    window_s = info.clock.seconds(length_ - 1);
    max_gulp = gulp_for(frequency.n_channels, n_inputs, n_spectra);
    config_.max_spectra = max_gulp;
    channelizer_ = channelize::make_channelizer(host_, config_);
    implementation = std::string(channelizer_->implementation());
    const std::int64_t bytes =
        dense_blocks_bytes(config_.output, frequency.n_channels, max_gulp, n_inputs);
    blocks_ = Buffer<std::byte>(bytes);
    valid_.resize(n_inputs * words_for_bits(max_gulp));
    samples_.resize(recording.samples_bytes((max_gulp - 1) * step_ + length_) + kPadding_bytes);
    set_levels();
  }

  void read(std::int64_t first, std::int64_t n, SpectraGulp& gulp) override {
    const Tick begin = first * step_;
    const std::int64_t ticks = (n - 1) * step_ + length_;
    absent_.clear();
    recording_.read_samples(begin, ticks, samples_, absent_);
    const BlockView blocks =
        dense_blocks(blocks_.data(), config_.output, frequency.n_channels, n, n_inputs);
    const std::int64_t words = words_for_bits(n);
    const channelize::Output output{blocks, valid_.data(), words, nullptr};
    channelizer_->execute(host_, {samples_.data(), begin, ticks, absent_}, first, n, output);
    for (const auto& a : absent_) lost_samples += static_cast<std::uint64_t>(a.end - a.begin);
    gulp = {blocks, n, valid_.data(), words, 0};
  }

 private:
  static constexpr std::int64_t kPadding_bytes = 64;

  // As the live chain does: the level is set once, from the first samples.
  void set_levels() {
    const std::int64_t ticks =
        std::min(recording_.info().n_ticks, (max_gulp - 1) * step_ + length_);
    recording_.read_samples(0, ticks, samples_, absent_);
    std::vector<channelize::LevelStatistics> levels(n_inputs);
    channelize::add_level_statistics(config_, {samples_.data(), 0, ticks, absent_}, 0, ticks,
                                     levels);
    samplers = sampler_gains(levels, config_.layout);
    std::vector<cf32> gains;
    for (const auto& s : levels) {
      const double variance =
          s.n_samples > 0 ? s.sum_of_squares / static_cast<double>(s.n_samples) : 0;
      scale.push_back(variance > 0 ? target_rms_lsb_ / std::sqrt(variance / 2) : 1);
      gains.insert(gains.end(), static_cast<std::size_t>(frequency.n_channels),
                   cf32(static_cast<float>(scale.back()), 0));
    }
    channelizer_->set_gains(View<const cf32, 2>(gains.data(), {n_inputs, frequency.n_channels}));
  }

  Recording& recording_;
  Queue host_;
  channelize::Config config_;
  std::unique_ptr<channelize::Channelizer> channelizer_;
  double target_rms_lsb_ = 0;
  std::int64_t step_ = 0, length_ = 0;
  std::vector<std::byte> samples_;
  std::vector<AbsentSpan> absent_;
  Buffer<std::byte> blocks_;
  std::vector<std::uint64_t> valid_;  // [input][words]
};

}  // namespace

std::unique_ptr<SpectraReader> make_spectra_reader(const ObservationConfig& config,
                                                   Recording& recording) {
  if (!recording.info().rate_known) {
    throw ConfigError(source_name(config) +
                      ": neither the file nor its format says the sample rate; give "
                      "source.sample_rate_hz (--rate)");
  }
  if (recording.info().channelized) return std::make_unique<RecordedSpectra>(recording);
  return std::make_unique<ChannelizedSamples>(config, recording);
}

SpectraMetadata spectra_metadata(const SpectraReader& reader, const RecordingInfo& info,
                                 std::int64_t n_spectra) {
  SpectraMetadata metadata;
  metadata.frequency = reader.frequency;
  metadata.clock = reader.clock;
  metadata.n_spectra = n_spectra;
  metadata.max_gulp = reader.max_gulp;
  metadata.window_s = reader.window_s;
  metadata.scale = reader.scale;
  metadata.samplers = reader.samplers;
  metadata.format = reader.format;
  metadata.four_bits = reader.four_bits;
  metadata.time_source = info.time_source;
  return metadata;
}

std::int64_t wanted_spectra(const ObservationConfig& config, const SpectraReader& reader) {
  if (!(config.source.duration_s > 0)) return reader.n_spectra;
  const std::int64_t wanted = std::llround(config.source.duration_s / reader.clock.seconds(1));
  return std::min(reader.n_spectra, std::max<std::int64_t>(1, wanted));
}

SpectraGulp SpectraSlice::operator()(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n) {
  if (begin == 0 && n == gulp.n_spectra) return gulp;
  RYLE_ASSERT(gulp.blocks.format != SampleFormat::ci16);
  RYLE_ASSERT(begin >= 0 && n > 0 && begin + n <= gulp.n_spectra);
  copy_blocks(gulp, begin, n);
  SpectraGulp slice;
  slice.blocks = blocks_;
  slice.n_spectra = n;
  if (gulp.valid != nullptr) {
    copy_mask(gulp, begin, n);
    slice.valid = valid_.data();
    slice.valid_words = words_;
    slice.valid_channel_stride_words =
        gulp.valid_channel_stride_words == 0 ? 0 : gulp.blocks.n_inputs * words_;
  }
  return slice;
}

void SpectraSlice::copy_blocks(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n) {
  const auto& from = gulp.blocks;
  const std::int64_t bytes = dense_blocks_bytes(from.format, from.n_channels, n, from.n_inputs);
  if (bytes_.size() < bytes) bytes_ = Buffer<std::byte>(bytes);
  blocks_ = dense_blocks(bytes_.data(), from.format, from.n_channels, n, from.n_inputs);
  if (from.format != SampleFormat::ci4) return copy_runs(gulp, begin, n);
  const std::int64_t shift = begin % kBlockBytes;
  for (std::int64_t c = 0; c < from.n_channels; ++c) {
    for (std::int64_t b = 0; b < blocks_.n_blocks; ++b) {
      const std::int64_t source = (begin + b * kBlockBytes) / kBlockBytes;
      const std::int64_t wanted = std::min(kBlockBytes, n - b * kBlockBytes);
      const std::int64_t head = std::min(wanted, kBlockBytes - shift);
      for (std::int64_t p = 0; p < from.n_inputs; ++p) {
        std::byte* to = blocks_.cell(c, b, p);
        std::memcpy(to, from.cell(c, source, p) + shift, static_cast<std::size_t>(head));
        if (wanted > head) {
          std::memcpy(to + head, from.cell(c, source + 1, p),
                      static_cast<std::size_t>(wanted - head));
        }
        std::memset(to + wanted, 0, static_cast<std::size_t>(kBlockBytes - wanted));
      }
    }
  }
}

// Parts lie in runs, real ones before imaginary ones: those of the result are put together from two
// of the gulp.
void SpectraSlice::copy_runs(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n) {
  const auto& from = gulp.blocks;
  const std::int64_t part_bytes = bits_per_sample(from.format) / 16;
  const std::int64_t run = from.format == SampleFormat::ci8 ? 32 : 16;  // spectra
  const std::int64_t runs_per_block = spectra_per_block(from.format) / run;
  const std::int64_t run_bytes = run * part_bytes;
  const std::int64_t shift = begin % run, n_runs = blocks_.n_blocks * runs_per_block;
  const auto at = [&](const auto& view, std::int64_t c, std::int64_t r, std::int64_t p) {
    return view.cell(c, r / runs_per_block, p) + r % runs_per_block * 2 * run_bytes;
  };
  for (std::int64_t c = 0; c < from.n_channels; ++c) {
    for (std::int64_t r = 0; r < n_runs; ++r) {
      const std::int64_t source = begin / run + r;
      const std::int64_t wanted = std::clamp<std::int64_t>(n - r * run, 0, run);
      const std::int64_t head = std::min(wanted, run - shift);
      for (std::int64_t p = 0; p < from.n_inputs; ++p) {
        for (const std::int64_t part : {std::int64_t{0}, run_bytes}) {  // real, imaginary
          std::byte* to = at(blocks_, c, r, p) + part;
          if (head > 0)
            std::memcpy(to, at(from, c, source, p) + part + shift * part_bytes,
                        static_cast<std::size_t>(head * part_bytes));
          if (wanted > head)
            std::memcpy(to + head * part_bytes, at(from, c, source + 1, p) + part,
                        static_cast<std::size_t>((wanted - head) * part_bytes));
          std::memset(to + wanted * part_bytes, 0,
                      static_cast<std::size_t>((run - wanted) * part_bytes));
        }
      }
    }
  }
}

void SpectraSlice::copy_mask(const SpectraGulp& gulp, std::int64_t begin, std::int64_t n) {
  words_ = words_for_bits(n);
  const bool shared = gulp.valid_channel_stride_words == 0;
  const std::int64_t n_masks = shared ? 1 : gulp.blocks.n_channels;
  const std::int64_t n_inputs = gulp.blocks.n_inputs;
  valid_.assign(n_masks * n_inputs * words_, 0);
  const std::int64_t first_word = begin / 64;
  const std::int64_t shift = begin % 64;
  for (std::int64_t c = 0; c < n_masks; ++c) {
    for (std::int64_t p = 0; p < n_inputs; ++p) {
      const std::uint64_t* from =
          gulp.valid + c * gulp.valid_channel_stride_words + p * gulp.valid_words;
      std::uint64_t* to = valid_.data() + (c * n_inputs + p) * words_;
      for (std::int64_t w = 0; w < words_; ++w) {
        const std::int64_t at = first_word + w;
        std::uint64_t bits = from[at] >> shift;
        if (shift != 0 && at + 1 < gulp.valid_words) bits |= from[at + 1] << (64 - shift);
        to[w] = bits;
      }
      if (words_ * 64 > n) clear_bits(to, n, words_ * 64);
    }
  }
}

}  // namespace ryle::pipeline
