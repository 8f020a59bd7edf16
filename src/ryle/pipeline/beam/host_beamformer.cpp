// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/host_beamformer.hpp"

#include <cstring>
#include <utility>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"

namespace ryle::pipeline {
namespace {

std::int64_t spectrum_bytes(const beamform::Config& c) {
  return c.n_inputs() * (c.table.empty() ? bits_per_sample(c.format) / 8 : 1);
}

}  // namespace

HostBeamformer::HostBeamformer(Queue queue, const beamform::Config& config)
    : queue_(std::move(queue)) {
  RYLE_ASSERT(config.order == beamform::InputOrder::spectra);
  const OnDevice scope(queue_);
  engine_ = beamform::make_beamformer(queue_, config);
  const bool device = queue_.back_end() == BackEnd::cuda;
  const MemorySpace space = device ? MemorySpace::device : MemorySpace::host;
  cells_ =
      checked_product({config.n_rows(), config.n_products(), config.n_channels}, "counts of beams");
  beam_cells_ = config.n_beams * config.n_channels;
  samples_ = Buffer<std::byte>(
      checked_product({config.n_channels, config.max_spectra, spectrum_bytes(config)},
                      "samples of a gulp"),
      space);
  const std::int64_t bytes = beamform::dense_output_bytes(config, config.max_windows());
  values_ = Buffer<std::byte>(bytes, space);
  staging_ = Buffer<std::byte>(bytes, device ? MemorySpace::pinned : MemorySpace::host);
  low_ = Buffer<std::uint32_t>(cells_, space);
  high_ = Buffer<std::uint32_t>(cells_, space);
  used_ = Buffer<std::uint32_t>(beam_cells_, space);
  power_ = Buffer<float>(beam_cells_, space);
}

void HostBeamformer::set_weights(Queue&, View<const cf32, 3> weights) {
  const OnDevice scope(queue_);
  engine_->set_weights(queue_, weights);
}

void HostBeamformer::set_requantization(Queue&, View<const float, 3> scale,
                                        View<const float, 3> offset) {
  const OnDevice scope(queue_);
  engine_->set_requantization(queue_, scale, offset);
}

/// Dense on the queue, whatever they were.
beamform::Input HostBeamformer::upload(const beamform::Input& input) {
  const beamform::Config& c = config();
  const std::int64_t width = spectrum_bytes(c), row = input.n_spectra * width;
  const std::int64_t step = input.step_stride_bytes != 0 ? input.step_stride_bytes : width;
  const std::int64_t stride =
      input.channel_stride_bytes != 0 ? input.channel_stride_bytes : input.n_spectra * step;
  RYLE_ASSERT(step == width && input.n_spectra <= c.max_spectra);
  const auto* from = static_cast<const std::byte*>(input.samples);
  if (stride == row) {
    copy_bytes(queue_, samples_.data(), from, c.n_channels * row);
  } else {
    for (std::int64_t k = 0; k < c.n_channels; ++k)
      copy_bytes(queue_, samples_.data() + k * row, from + k * stride, row);
  }
  beamform::Input dense = input;
  dense.samples = samples_.data();
  dense.step_stride_bytes = width;
  dense.channel_stride_bytes = row;
  return dense;
}

/// From the dense copy to where the caller wants the values.
void HostBeamformer::store(const beamform::Output& output, std::int64_t n_windows) const {
  const beamform::Config& c = config();
  const std::int64_t bytes = n_windows * c.bytes_per_value();
  const beamform::Output dense = beamform::dense_output(c, nullptr, n_windows);
  const std::byte* from = staging_.data();
  auto* to = static_cast<std::byte*>(output.values);
  for (std::int64_t row = 0; row < c.n_rows(); ++row)
    for (std::int64_t p = 0; p < c.n_products(); ++p)
      for (std::int64_t k = 0; k < c.n_channels; ++k)
        std::memcpy(to + row * output.row_stride_bytes + p * output.product_stride_bytes +
                        k * output.channel_stride_bytes,
                    from + row * dense.row_stride_bytes + p * dense.product_stride_bytes +
                        k * dense.channel_stride_bytes,
                    static_cast<std::size_t>(bytes));
}

std::int64_t HostBeamformer::execute(Queue&, const beamform::Input& input,
                                     const beamform::Output& output) {
  const OnDevice scope(queue_);
  const beamform::Config& c = config();
  const beamform::Input in = upload(input);
  const std::int64_t expected = c.n_windows(input.first_tick, input.n_spectra);
  beamform::Output out = beamform::dense_output(c, values_.data(), expected);
  if (output.saturated_low != nullptr) out.saturated_low = low_.data();
  if (output.saturated_high != nullptr) out.saturated_high = high_.data();
  if (output.n_used != nullptr) out.n_used = used_.data();
  if (output.weight_power != nullptr) out.weight_power = power_.data();
  const std::int64_t made = engine_->execute(queue_, in, out);
  RYLE_ASSERT(made == expected);
  if (made > 0)
    copy_bytes(queue_, staging_.data(), values_.data(), beamform::dense_output_bytes(c, made));
  const auto fetch = [&](auto* to, const auto& from, std::int64_t n) {
    if (to != nullptr) copy_bytes(queue_, to, from.data(), n * 4);
  };
  fetch(output.saturated_low, low_, cells_);
  fetch(output.saturated_high, high_, cells_);
  fetch(output.n_used, used_, beam_cells_);
  fetch(output.weight_power, power_, beam_cells_);
  queue_.synchronize();
  if (made > 0) store(output, made);
  return made;
}

}  // namespace ryle::pipeline
