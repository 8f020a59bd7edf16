// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/fine_channels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kPad = 64;  // samples the channelizer may read beyond

channelize::Config fine_config(const FineConfig& f, std::int64_t capacity, std::int64_t max_fine) {
  channelize::Config c;
  c.n_inputs = f.beams.n_rows() * f.beams.n_channels;
  c.n_channels = f.n_fine;
  c.n_taps = f.n_taps;
  c.layout.format = SampleFormat::cf32;
  c.layout.sample_stride_bits = 64 * f.beams.n_pols;
  c.layout.input_stride_bits = capacity * c.layout.sample_stride_bits;
  c.sample_rate_hz = f.rate_hz;
  c.output = SampleFormat::cf32;
  c.dither = false;
  c.max_spectra = max_fine;
  return c;
}

}  // namespace

FineChannels::FineChannels(Queue& queue, const FineConfig& config)
    : config_(config), queue_(queue) {
  const auto& b = config.beams;
  if (config.n_fine < 2 || config.n_fine % 2 != 0 || config.n_fine > 1 << 16)
    throw ConfigError("fine channels: " + std::to_string(config.n_fine) +
                      " of each channel; an even number from 2 to 65536 is wanted");
  if (std::fabs(config.coarse.channel_width_hz - config.rate_hz) > 1e-6 * config.rate_hz)
    throw UnsupportedError("fine channels: channels are " +
                           std::to_string(config.coarse.channel_width_hz) +
                           " Hz apart and sampled at " + std::to_string(config.rate_hz) +
                           " Hz; only critically sampled channels give an even axis");
  RYLE_ASSERT(b.output == beamform::OutputKind::voltage &&
              b.output_format == beamform::OutputFormat::cf32);
  length_ = config.n_fine * config.n_taps;
  capacity_ = length_ + b.max_spectra + kPad;
  max_fine_ = (length_ + b.max_spectra) / config.n_fine + 1;
  max_values_ = max_fine_ / config.integration + 1;
  n_products_ = config.kind == beamform::OutputKind::stokes_iquv ? 4
                : config.kind == beamform::OutputKind::power     ? b.n_pols
                                                                 : 1;
  channelizer_ = channelize::make_channelizer(queue, fine_config(config, capacity_, max_fine_));
  const std::int64_t inputs = b.n_rows() * b.n_channels;
  voltages_.assign(inputs * capacity_ * b.n_pols, cf32(0));
  for (std::int64_t pol = 0; pol < b.n_pols; ++pol)
    blocks_[pol] =
        Buffer<std::byte>(dense_blocks_bytes(SampleFormat::cf32, config.n_fine, max_fine_, inputs));
  valid_.resize(inputs * words_for_bits(max_fine_));
  sums_.assign(inputs * config.n_fine * n_products_, 0.0);
  counts_.assign(inputs, 0);
  values_.resize(inputs * config.n_fine * n_products_ * max_values_);
}

FrequencyAxis FineChannels::frequency() const {
  const auto& c = channelizer_->config();
  FrequencyAxis axis;
  axis.channel_width_hz = config_.rate_hz / static_cast<double>(config_.n_fine);
  axis.first_center_hz = config_.coarse.first_center_hz + channelize::channel_center_hz(c, 0);
  axis.n_channels = config_.coarse.n_channels * config_.n_fine;
  return axis;
}

beamform::Output FineChannels::target(std::int64_t n) {
  RYLE_ASSERT(held_ + n + kPad <= capacity_);
  beamform::Output out;
  const std::int64_t value = config_.beams.bytes_per_value();
  out.values = reinterpret_cast<std::byte*>(voltages_.data()) + held_ * value;
  out.channel_stride_bytes = capacity_ * value;
  out.product_stride_bytes = out.row_stride_bytes =
      config_.beams.n_channels * out.channel_stride_bytes;
  return out;
}

beamform::Output FineChannels::values() const {
  beamform::Output out;
  out.values = const_cast<float*>(values_.data());
  out.channel_stride_bytes = max_values_ * 4;
  out.product_stride_bytes = config_.beams.n_channels * config_.n_fine * out.channel_stride_bytes;
  out.row_stride_bytes = n_products_ * out.product_stride_bytes;
  return out;
}

std::int64_t FineChannels::take(Tick first, std::int64_t n,
                                const std::vector<std::pair<std::int64_t, std::int64_t>>& absent) {
  const std::int64_t k = config_.n_fine, inputs = config_.beams.n_rows() * config_.beams.n_channels;
  if (!started_) {
    started_ = true;
    held_first_ = first;
    next_ = (first + k - 1) / k;
  }
  RYLE_ASSERT(first == held_first_ + held_);
  for (std::int64_t input = 0; input < inputs; ++input) {
    for (const auto& [begin, end] : absent) absent_.push_back({input, begin, end});
  }
  held_ += n;
  n_values_ = 0;
  first_value_ = next_ / config_.integration;
  const Tick end = held_first_ + held_;
  const std::int64_t n_fine = end < next_ * k + length_ ? 0 : (end - length_) / k - next_ + 1;
  if (n_fine > 0) {
    for (std::int64_t pol = 0; pol < config_.beams.n_pols; ++pol) {
      channelize::Output out;
      out.blocks = dense_blocks(blocks_[pol].data(), SampleFormat::cf32, k, n_fine, inputs);
      out.valid = valid_.data();
      out.valid_words = words_for_bits(n_fine);
      channelizer_->execute(queue_, {voltages_.data() + pol, held_first_, held_, absent_}, next_,
                            n_fine, out);
    }
    detect(next_, n_fine);
    next_ += n_fine;
  }
  // What the next spectrum needs moves to the front.
  const std::int64_t drop = std::clamp<std::int64_t>(next_ * k - held_first_, 0, held_);
  const std::int64_t pols = config_.beams.n_pols;
  for (std::int64_t input = 0; input < inputs; ++input) {
    cf32* row = voltages_.data() + input * capacity_ * pols;
    std::copy(row + drop * pols, row + held_ * pols, row);
  }
  held_ -= drop;
  held_first_ += drop;
  std::erase_if(absent_, [&](const AbsentSpan& span) { return span.end <= held_first_; });
  return n_values_;
}

// @eq value = mean over fine spectra [w T, (w+1) T) that were there; products as in the beamformer
void FineChannels::detect(std::int64_t first, std::int64_t n) {
  const std::int64_t k = config_.n_fine, channels = config_.beams.n_channels;
  const std::int64_t rows = config_.beams.n_rows(), pols = config_.beams.n_pols;
  const std::int64_t inputs = rows * channels, words = words_for_bits(n);
  const std::int64_t t_values = config_.integration;
  BlockView blocks[2];
  for (std::int64_t pol = 0; pol < pols; ++pol)
    blocks[pol] = dense_blocks(blocks_[pol].data(), SampleFormat::cf32, k, n, inputs);
  for (std::int64_t t = 0; t < n; ++t) {
    const bool ends = (first + t + 1) % t_values == 0;
    for (std::int64_t input = 0; input < inputs; ++input) {
      const std::int64_t row = input / channels, channel = input % channels;
      const bool there = test_bit(valid_.data() + input * words, t);
      auto& count = counts_[input];
      count += there ? 1 : 0;
      for (std::int64_t fine = 0; fine < k; ++fine) {
        cf32 beam[2] = {};
        for (std::int64_t pol = 0; pol < pols && there; ++pol) {
          // 16 spectra: real parts, then imaginary ones.
          const auto* cell = reinterpret_cast<const float*>(blocks[pol].cell(fine, t / 16, input));
          beam[pol] = {cell[t % 16], cell[16 + t % 16]};
        }
        const double xx = std::norm(beam[0]), yy = std::norm(beam[1]);
        const cf32 xy = beam[0] * std::conj(beam[1]);
        double products[4] = {xx, yy, 0, 0};
        if (config_.kind != beamform::OutputKind::power) {
          products[0] = (xx + yy) / 2;
          products[1] = (xx - yy) / 2;
          products[2] = xy.real();
          products[3] = xy.imag();
        }
        for (std::int64_t product = 0; product < n_products_; ++product) {
          const auto at = static_cast<std::size_t>(
              ((row * n_products_ + product) * channels + channel) * k + fine);
          sums_[at] += products[product];
          if (!ends) continue;
          values_[at * static_cast<std::size_t>(max_values_) +
                  static_cast<std::size_t>(n_values_)] =
              count > 0 ? static_cast<float>(sums_[at] / static_cast<double>(count)) : 0.0f;
          sums_[at] = 0;
        }
      }
      if (ends) count = 0;
    }
    if (ends) ++n_values_;
  }
}

}  // namespace ryle::pipeline
