// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/fine_spectra.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/bits.hpp"
#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/level_correction.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/visibility/setup.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kPadSamples = 64;   // the channelizer may read so many beyond
constexpr std::int64_t kGulpSpectra = 64;  // whole blocks of ci8
constexpr std::int64_t kSampleBytes = 2;

// Spectra [first, first + n) of an input in a channel to consecutive ci8, run by run: parts of
// spectra that follow each other lie side by side.
void copy_samples(const ConstBlockView& blocks, std::int64_t channel, std::int64_t input,
                  std::int64_t first, std::int64_t n, std::byte* out) {
  const bool four_bits = blocks.format == SampleFormat::ci4;
  const std::int64_t in_block = spectra_per_block(blocks.format);
  const std::int64_t run_max = four_bits ? in_block : in_block / 2;
  for (std::int64_t t = 0; t < n;) {
    const std::int64_t spectrum = first + t, at = spectrum % in_block;
    const std::int64_t run = std::min(run_max - at % run_max, n - t);
    const std::byte* cell = blocks.cell(channel, spectrum / in_block, input);
    if (four_bits) {
      for (std::int64_t k = 0; k < run; ++k, out += kSampleBytes) {
        const auto byte = static_cast<std::int8_t>(cell[at + k]);
        out[0] = static_cast<std::byte>(byte >> 4);
        out[1] = static_cast<std::byte>(static_cast<std::int8_t>(byte << 4) >> 4);
      }
    } else {
      const std::byte* re = cell + at / run_max * 2 * run_max + at % run_max;
      for (std::int64_t k = 0; k < run; ++k, out += kSampleBytes) {
        out[0] = re[k];
        out[1] = re[run_max + k];
      }
    }
    t += run;
  }
}

std::int64_t samples_capacity(const FineSetup& s) {
  return channelize::filter_length(s.channelize) +
         kGulpSpectra * channelize::step_length(s.channelize) + s.coarse.chunk_spectra +
         kPadSamples;
}

std::int64_t samples_bytes(const FineSetup& s) {
  return checked_product(
      {s.coarse.n_channels, s.coarse.n_inputs, samples_capacity(s), kSampleBytes},
      "samples of fine channels");
}

// Blocks of all fine channels of one coarse one, where not all are kept.
std::int64_t scratch_bytes(const FineSetup& s) {
  if (s.fine_per_coarse == s.channelize.n_channels) return 0;
  return dense_blocks_bytes(s.channelize.output, s.channelize.n_channels, kGulpSpectra,
                            s.coarse.n_inputs);
}

}  // namespace

SpectraShape FineSetup::shape() const {
  return {coarse.n_channels * fine_per_coarse, coarse.n_inputs, kGulpSpectra, channelize.output,
          true};
}

SpectraMetadata FineSetup::metadata() const {
  const std::int64_t k = channelize.n_channels;
  SpectraMetadata fine = received;
  fine.clock.rate_hz.den *= k;
  fine.clock.rate_hz = fine.clock.rate_hz.reduced();
  const double spacing_hz = received.clock.rate_hz.value() / static_cast<double>(k);
  fine.frequency.n_channels = received.frequency.n_channels * fine_per_coarse;
  fine.frequency.channel_width_hz = spacing_hz;
  fine.frequency.first_center_hz =
      received.frequency.first_center_hz - spacing_hz * static_cast<double>(fine_per_coarse / 2);
  fine.max_gulp = kGulpSpectra;
  fine.format = channelize.output;
  fine.four_bits = fine.format == SampleFormat::ci4;
  fine.window_s = received.clock.seconds(channelize::filter_length(channelize) - 1);
  return fine;
}

std::int64_t FineSetup::memory_bytes() const {
  return samples_bytes(*this) + scratch_bytes(*this) + spectra_blocks_bytes(shape());
}

FineSetup fine_setup(const ObservationConfig& config, const SpectraShape& coarse,
                     const SpectraMetadata& received) {
  const ChannelizeConfig& c = config.channelize;
  const double rate_hz = received.clock.rate_hz.value();
  const double width_hz = received.frequency.channel_width_hz;
  if (coarse.format != SampleFormat::ci4 && coarse.format != SampleFormat::ci8)
    throw UnsupportedError(
        fmt::format("channelize.fine_channels: spectra of 4 or 8 bits are cut into finer channels, "
                    "these are {}",
                    name(coarse.format)));
  if (rate_hz < width_hz * (1 - 1e-9))
    throw UnsupportedError(fmt::format(
        "channelize.fine_channels: channels are {} Hz apart and come {} times a second: too slowly "
        "to hold what lies between them",
        width_hz, rate_hz));
  const double points = static_cast<double>(c.fine_channels) * rate_hz / width_hz;
  const auto k = static_cast<std::int64_t>(std::llround(points));
  if (k % 2 != 0 || std::abs(points - static_cast<double>(k)) > 1e-6 * points)
    throw ConfigError(fmt::format(
        "channelize.fine_channels = {}: channels of {} Hz come {} times a second, so that a "
        "transform has {:.9g} points; an even number is wanted",
        c.fine_channels, width_hz, rate_hz, points));
  FineSetup setup;
  setup.coarse = coarse;
  setup.received = received;
  setup.fine_per_coarse = c.fine_channels;
  setup.memory = config.runtime.device == "cpu" ? MemorySpace::host : MemorySpace::pinned;
  channelize::Config& f = setup.channelize;
  f.n_inputs = coarse.n_inputs;
  f.n_channels = k;
  f.n_taps = c.taps;
  f.window = c.taps == 1 ? channelize::Window::rectangular : filter_window(c.window);
  f.kaiser_beta = c.kaiser_beta;
  f.layout.format = SampleFormat::ci8;
  f.layout.sample_stride_bits = 8 * kSampleBytes;
  f.sample_rate_hz = rate_hz;
  const std::int64_t bits = c.bits == 0 ? 8 : c.bits;
  f.output = spectrum_format(bits);
  if (bits > 8 && wants_images(config))
    throw ConfigError(fmt::format(
        "channelize.bits = {}: images are made of spectra of up to 8 bits; set channelize.bits = 8",
        bits));
  f.rounding = c.rounding == "truncate" ? channelize::Rounding::truncate
                                        : channelize::Rounding::nearest_even;
  f.dither = c.dither;
  f.seed = c.seed;
  f.implementation = c.implementation;
  f.max_spectra = kGulpSpectra;
  f.layout.input_stride_bits = samples_capacity(setup) * 8 * kSampleBytes;
  setup.target_rms_lsb = bits == 4 ? std::min(c.target_rms_lsb, 2.83) : c.target_rms_lsb;
  return setup;
}

FineSpectra::FineSpectra(Queue queue, const FineSetup& setup, Sink sink)
    : setup_(setup),
      queue_(std::move(queue)),
      sink_(std::move(sink)),
      length_(channelize::filter_length(setup.channelize)),
      step_(channelize::step_length(setup.channelize)),
      capacity_(samples_capacity(setup)),
      channelizer_(channelize::make_channelizer(queue_, setup.channelize)),
      samples_(samples_bytes(setup)),
      absent_(setup.coarse.n_channels),
      scratch_(scratch_bytes(setup)),
      out_(setup.shape(), setup.memory),
      valid_(setup.coarse.n_inputs * words_for_bits(kGulpSpectra)) {
  std::memset(samples_.data(), 0, static_cast<std::size_t>(samples_.bytes()));
}

void FineSpectra::restart(std::int64_t first, std::int64_t segment, const SampleClock& clock) {
  segment_ = segment;
  clock_ = clock;
  clock_.rate_hz.den *= step_;
  clock_.rate_hz = clock_.rate_hz.reduced();
  held_first_ = first;
  held_ = 0;
  next_ = first >= 0 ? (first + step_ - 1) / step_ : first / step_;
  for (auto& spans : absent_) spans.clear();
}

std::int64_t FineSpectra::ready() const {
  const Tick end = held_first_ + held_;
  return end < next_ * step_ + length_ ? 0 : (end - length_) / step_ - next_ + 1;
}

void FineSpectra::feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
                       const SampleClock& clock) {
  if (segment != segment_ || first != held_first_ + held_) {
    if (segment_ >= 0) run(ready());
    restart(first, segment, clock);
  }
  for (std::int64_t done = 0; done < gulp.n_spectra;) {
    const std::int64_t n = std::min(gulp.n_spectra - done, setup_.coarse.chunk_spectra);
    {
      const Stopwatch watch(busy_s_);
      keep(gulp, done, n);
      note_absent(gulp, done, n);
    }
    held_ += n;
    done += n;
    while (ready() >= kGulpSpectra) run(kGulpSpectra);
  }
}

void FineSpectra::flush() { run(ready()); }

void FineSpectra::keep(const SpectraGulp& gulp, std::int64_t offset, std::int64_t n) {
  RYLE_ASSERT(held_ + n + kPadSamples <= capacity_);
  const std::int64_t inputs = setup_.coarse.n_inputs;
  queue_.parallel_for(setup_.coarse.n_channels, [&](std::int64_t c) {
    for (std::int64_t p = 0; p < inputs; ++p)
      copy_samples(gulp.blocks, c, p, offset, n,
                   samples_.data() + ((c * inputs + p) * capacity_ + held_) * kSampleBytes);
  });
}

// Runs of spectra that never came, of every (channel, input).
void FineSpectra::note_absent(const SpectraGulp& gulp, std::int64_t offset, std::int64_t n) {
  if (gulp.valid == nullptr) return;
  const Tick first = held_first_ + held_;
  for (std::int64_t c = 0; c < setup_.coarse.n_channels; ++c) {
    for (std::int64_t p = 0; p < setup_.coarse.n_inputs; ++p) {
      const std::uint64_t* row =
          gulp.valid + c * gulp.valid_channel_stride_words + p * gulp.valid_words;
      for (std::int64_t t = 0; t < n; ++t) {
        if (test_bit(row, offset + t)) continue;
        const std::int64_t begin = t;
        while (t + 1 < n && !test_bit(row, offset + t + 1)) ++t;
        absent_[c].push_back({p, first + begin, first + t + 1});
      }
    }
  }
}

// @eq g_p = target / rms of a part: the filter has unit energy, so noise keeps its power
void FineSpectra::set_scale() {
  const std::int64_t inputs = setup_.coarse.n_inputs;
  const bool integer = setup_.channelize.output == SampleFormat::ci8 ||
                       setup_.channelize.output == SampleFormat::ci4;
  std::vector<double> power(inputs), n(inputs);
  for (std::int64_t c = 0; c < setup_.coarse.n_channels; ++c) {
    for (std::int64_t p = 0; p < inputs; ++p) {
      const auto* row = reinterpret_cast<const std::int8_t*>(samples_.data()) +
                        (c * inputs + p) * capacity_ * kSampleBytes;
      for (std::int64_t t = 0; t < held_; ++t)
        power[p] += static_cast<double>(row[2 * t] * row[2 * t] + row[2 * t + 1] * row[2 * t + 1]);
      n[p] += static_cast<double>(held_);
    }
    for (const AbsentSpan& span : absent_[c])
      n[span.input] -= static_cast<double>(std::min(span.end, held_first_ + held_) -
                                           std::max(span.begin, held_first_));
  }
  for (std::int64_t p = 0; p < inputs; ++p) power[p] = n[p] > 0 ? power[p] / n[p] : 0;
  if (setup_.received.four_bits)
    for (const double codes : power)
      samplers_.push_back(correlate::quantized_gain(four_bit_codes(), codes));
  if (!integer) return;
  std::vector<double> seen;
  for (const double codes : power)
    if (codes > 0) seen.push_back(setup_.target_rms_lsb / std::sqrt(codes / 2));
  std::sort(seen.begin(), seen.end());
  // Inputs that are silent so far get what the others have.
  const double usual = seen.empty() ? 1 : seen[seen.size() / 2];
  std::vector<cf32> gains;
  for (const double codes : power) {
    scale_.push_back(codes > 0 ? setup_.target_rms_lsb / std::sqrt(codes / 2) : usual);
    gains.insert(gains.end(), setup_.channelize.n_channels,
                 cf32(static_cast<float>(scale_.back())));
  }
  channelizer_->set_gains({gains.data(), {inputs, setup_.channelize.n_channels}});
}

// The next n fine spectra of all channels, to the sink. @pre n <= kGulpSpectra
void FineSpectra::run(std::int64_t n) {
  if (n <= 0) return;
  SpectraGulp gulp;
  {
    const Stopwatch watch(busy_s_);
    if (!scaled_) set_scale();
    scaled_ = true;
    gulp = channelized(n);
  }
  next_ += n;
  sink_(gulp, next_ - n, segment_, clock_);
  const Stopwatch watch(busy_s_);
  drop_used();
}

SpectraGulp FineSpectra::channelized(std::int64_t n) {
  const std::int64_t inputs = setup_.coarse.n_inputs, kept = setup_.fine_per_coarse;
  const std::int64_t k = setup_.channelize.n_channels, words = words_for_bits(n);
  const BlockView out = dense_blocks(out_.bytes.data(), setup_.channelize.output,
                                     setup_.coarse.n_channels * kept, n, inputs);
  SpectraMask& mask = out_.mask;
  for (std::int64_t c = 0; c < setup_.coarse.n_channels; ++c) {
    BlockView part = out;  // of this coarse channel
    part.data = out.cell(c * kept, 0, 0);
    part.n_channels = kept;
    channelize::Output output;
    output.blocks =
        kept == k ? part : dense_blocks(scratch_.data(), setup_.channelize.output, k, n, inputs);
    output.valid = valid_.data();
    output.valid_words = words;
    channelizer_->execute(
        queue_,
        {samples_.data() + c * inputs * capacity_ * kSampleBytes, held_first_, held_, absent_[c]},
        next_, n, output);
    if (kept < k)
      std::memcpy(part.data, output.blocks.cell(k / 2 - kept / 2, 0, 0),
                  static_cast<std::size_t>(kept * part.channel_stride_bytes));
    for (std::int64_t f = 0; f < kept; ++f)
      for (std::int64_t p = 0; p < inputs; ++p)
        std::copy_n(valid_.data() + p * words, words,
                    mask.bits.data() + (c * kept + f) * mask.channel_stride_words + p * mask.words);
  }
  SpectraGulp gulp;
  gulp.blocks = out;
  gulp.n_spectra = n;
  if (std::any_of(absent_.begin(), absent_.end(), [](auto& spans) { return !spans.empty(); })) {
    gulp.valid = mask.bits.data();
    gulp.valid_words = mask.words;
    gulp.valid_channel_stride_words = mask.channel_stride_words;
  }
  return gulp;
}

// What the next spectrum needs moves to the front.
void FineSpectra::drop_used() {
  const std::int64_t inputs = setup_.coarse.n_inputs;
  const std::int64_t drop = std::clamp<std::int64_t>(next_ * step_ - held_first_, 0, held_);
  queue_.parallel_for(setup_.coarse.n_channels, [&](std::int64_t c) {
    for (std::int64_t p = 0; p < inputs; ++p) {
      std::byte* row = samples_.data() + (c * inputs + p) * capacity_ * kSampleBytes;
      std::memmove(row, row + drop * kSampleBytes,
                   static_cast<std::size_t>((held_ - drop) * kSampleBytes));
    }
  });
  held_ -= drop;
  held_first_ += drop;
  for (auto& spans : absent_)
    std::erase_if(spans, [&](const AbsentSpan& span) { return span.end <= held_first_; });
}

}  // namespace ryle::pipeline
