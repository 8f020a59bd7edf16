// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/blocks.hpp"

#include <cmath>
#include <cstring>
#include <string>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"

namespace ryle {
namespace {

struct Offsets {
  std::int64_t block;
  std::int64_t re_byte;
  std::int64_t im_byte;
};

Offsets offsets_of(SampleFormat format, std::int64_t spectrum) {
  const std::int64_t per_block = spectra_per_block(format);
  const std::int64_t block = spectrum / per_block;
  const std::int64_t s = spectrum % per_block;
  switch (format) {
    case SampleFormat::ci8:
    case SampleFormat::ci16:
      return {block, (s / 32) * 64 + s % 32, (s / 32) * 64 + 32 + s % 32};
    case SampleFormat::cf16:
      return {block, (s / 16) * 64 + 2 * (s % 16), (s / 16) * 64 + 32 + 2 * (s % 16)};
    case SampleFormat::cf32:
      return {block, 4 * s, 64 + 4 * s};
    default:
      return {block, s, s};
  }
}

}  // namespace

std::int64_t spectra_per_block(SampleFormat format) {
  switch (format) {
    case SampleFormat::ci8:
    case SampleFormat::ci16:
      return 64;
    case SampleFormat::cf16:
      return 32;
    case SampleFormat::cf32:
      return 16;
    case SampleFormat::ci4:
      return 128;
    default:
      throw UnsupportedError("no planar block for sample format " + std::string(name(format)) +
                             "; known: ci4, ci8, ci16, cf16, cf32");
  }
}

std::int64_t bytes_per_cell(SampleFormat format) {
  return format == SampleFormat::ci16 ? 2 * kBlockBytes : kBlockBytes;
}

std::int64_t n_blocks(SampleFormat format, std::int64_t n_spectra) {
  const std::int64_t per_block = spectra_per_block(format);
  return (n_spectra + per_block - 1) / per_block;
}

std::int64_t dense_blocks_bytes(SampleFormat format, std::int64_t n_channels,
                                std::int64_t n_spectra, std::int64_t n_inputs) {
  return checked_product(
      {n_channels, n_blocks(format, n_spectra), n_inputs, bytes_per_cell(format)}, "planar blocks");
}

BlockView dense_blocks(std::byte* data, SampleFormat format, std::int64_t n_channels,
                       std::int64_t n_spectra, std::int64_t n_inputs) {
  const std::int64_t cell = bytes_per_cell(format);
  const std::int64_t blocks = n_blocks(format, n_spectra);
  return {data, format, n_channels, blocks, n_inputs, blocks * n_inputs * cell, n_inputs * cell,
          cell};
}

cf64 get_sample(const ConstBlockView& view, std::int64_t channel, std::int64_t spectrum,
                std::int64_t input) {
  const Offsets p = offsets_of(view.format, spectrum);
  const auto* cell = reinterpret_cast<const unsigned char*>(view.cell(channel, p.block, input));
  const auto s8 = [&](std::int64_t at) {
    return static_cast<double>(static_cast<signed char>(cell[at]));
  };
  switch (view.format) {
    case SampleFormat::ci8:
      return {s8(p.re_byte), s8(p.im_byte)};
    case SampleFormat::ci16:
      return {256 * s8(p.re_byte) + cell[kBlockBytes + p.re_byte],
              256 * s8(p.im_byte) + cell[kBlockBytes + p.im_byte]};
    case SampleFormat::ci4: {
      const SampleLayout nibbles{.format = SampleFormat::ci4, .sample_stride_bits = 8};
      return decode_sample(nibbles, cell, 0, p.re_byte);
    }
    case SampleFormat::cf16: {
      std::uint16_t parts[2];
      std::memcpy(&parts[0], cell + p.re_byte, 2);
      std::memcpy(&parts[1], cell + p.im_byte, 2);
      const SampleLayout halves{.format = SampleFormat::cf16, .sample_stride_bits = 32};
      return decode_sample(halves, parts, 0, 0);
    }
    default: {
      float re;
      float im;
      std::memcpy(&re, cell + p.re_byte, 4);
      std::memcpy(&im, cell + p.im_byte, 4);
      return {re, im};
    }
  }
}

void set_sample(const BlockView& view, std::int64_t channel, std::int64_t spectrum,
                std::int64_t input, cf64 value) {
  const Offsets p = offsets_of(view.format, spectrum);
  auto* cell = reinterpret_cast<unsigned char*>(view.cell(channel, p.block, input));
  const auto re = static_cast<int>(value.real());
  const auto im = static_cast<int>(value.imag());
  switch (view.format) {
    case SampleFormat::ci8:
      cell[p.re_byte] = static_cast<unsigned char>(re);
      cell[p.im_byte] = static_cast<unsigned char>(im);
      return;
    case SampleFormat::ci16:
      cell[p.re_byte] = static_cast<unsigned char>(re >> 8);
      cell[p.im_byte] = static_cast<unsigned char>(im >> 8);
      cell[kBlockBytes + p.re_byte] = static_cast<unsigned char>(re & 255);
      cell[kBlockBytes + p.im_byte] = static_cast<unsigned char>(im & 255);
      return;
    case SampleFormat::ci4:
      cell[p.re_byte] = static_cast<unsigned char>((re << 4) | (im & 15));
      return;
    case SampleFormat::cf32: {
      const float parts[2] = {static_cast<float>(value.real()), static_cast<float>(value.imag())};
      std::memcpy(cell + p.re_byte, &parts[0], 4);
      std::memcpy(cell + p.im_byte, &parts[1], 4);
      return;
    }
    default:
      throw UnsupportedError("set_sample: no writer for " + std::string(name(view.format)));
  }
}

}  // namespace ryle
