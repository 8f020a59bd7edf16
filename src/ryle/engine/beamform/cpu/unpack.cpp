// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/beamform/cpu/unpack.hpp"

#include <cstring>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "ryle/engine/beamform/implementations.hpp"
#include "ryle/engine/beamform/weight_bank.hpp"

namespace ryle::beamform::detail {
namespace {

// The arithmetic path is taken when a table says what the nibbles say anyway.
bool is_nibbles(const Config& config) {
  if (config.format != SampleFormat::ci4) return false;
  for (std::size_t byte = 0; byte < config.table.size(); ++byte) {
    const auto value = [](std::size_t nibble) {
      return static_cast<std::int8_t>(static_cast<int>(nibble ^ 8) - 8);
    };
    if (config.table[byte] != ci8{value(byte >> 4), value(byte & 15)}) return false;
  }
  return true;
}

cf32 value_of(const Config& config, int byte) {
  const auto code = static_cast<std::uint8_t>(byte);
  if (!config.table.empty())
    return {static_cast<float>(config.table[code].re), static_cast<float>(config.table[code].im)};
  return {static_cast<float>((code >> 4 ^ 8) - 8), static_cast<float>(((code & 15) ^ 8) - 8)};
}

}  // namespace

Unpacker::Unpacker(const Config& config, const CpuKernel& kernel)
    : config_(config),
      kernel_(kernel),
      nibbles_(is_nibbles(config)),
      sample_bytes_(bits_per_sample(config.format) / 8) {
  const std::int64_t antennas = config.n_antennas;
  n_steps_ = kernel.integer ? (antennas + 1) / 2 : antennas;
  const std::int64_t step_bytes = kernel.integer ? 4 : 8;
  // Behind the tile: one expanded row of a run of samples, where pols must be separated.
  const std::int64_t run = config.order == InputOrder::pairs ? 2 * kTile : config.n_inputs();
  spare_bytes_ = kernel.integer ? 2 * run + 64 : 0;
  tile_bytes_ = config.n_pols * kTile * n_steps_ * step_bytes + spare_bytes_;
  if (kernel.integer) offset_ = nibbles_ ? 8 : -value_range(config).min;
  if (sample_bytes_ != 1) return;
  for (int byte = 0; byte < 256; ++byte) {
    const cf32 value = value_of(config, byte);
    values_.push_back(value);
    codes_.push_back(static_cast<std::uint16_t>((static_cast<int>(value.real()) + offset_) |
                                                (static_cast<int>(value.imag()) + offset_) << 8));
  }
}

const std::uint8_t* Unpacker::row(const Input& input, std::int64_t channel, std::int64_t t,
                                  std::int64_t pair) const {
  const auto* data =
      static_cast<const std::uint8_t*>(input.samples) + channel * input.channel_stride_bytes;
  if (config_.order == InputOrder::spectra) return data + t * input.step_stride_bytes;
  const std::int64_t in_block = t % config_.block_spectra;
  return data + t / config_.block_spectra * input.step_stride_bytes +
         (pair * config_.block_spectra + in_block) * 2 * sample_bytes_;
}

// Runs of samples (n_bytes is a number of bytes of the input) to codes.
void Unpacker::expand(const Expand& e) const {
  if (nibbles_) return kernel_.expand4(e);
  for (std::int64_t row = 0; row < e.n_rows; ++row) {
    const std::uint8_t* from = e.from + row * e.from_stride_bytes;
    std::uint8_t* to = e.to + row * e.to_stride_bytes;
    for (std::int64_t k = 0; k < e.n_bytes; ++k) {
      if (sample_bytes_ == 1) {
        std::memcpy(to + 2 * k, &codes_[from[k]], 2);
      } else {
        to[k] = static_cast<std::uint8_t>(from[k] ^ 0x80);
      }
    }
  }
}

void Unpacker::to_codes(const Input& input, std::int64_t channel, std::int64_t t, std::int64_t n,
                        const TileView& view, std::uint8_t* memory) const {
  const std::int64_t inputs = config_.n_inputs();
  const bool pairs = config_.order == InputOrder::pairs;
  const std::uint8_t* first = row(input, channel, t, 0);
  const std::int64_t pair_stride = config_.block_spectra * 2 * sample_bytes_;
  if (config_.n_pols == 1) {
    if (pairs) {
      expand(
          {first, memory, 2 * n * sample_bytes_, inputs / 2, pair_stride, view.step_stride_bytes});
    } else {
      expand({first, memory, inputs * sample_bytes_, n, input.step_stride_bytes,
              view.spectrum_stride_bytes});
    }
    return;
  }
  // Two pols alternate, along inputs or along time: separated by way of a spare row.
  std::uint8_t* spare = memory + tile_bytes_ - spare_bytes_;
  const std::int64_t rows = pairs ? inputs / 2 : n, samples = pairs ? 2 * n : inputs;
  for (std::int64_t r = 0; r < rows; ++r) {
    expand({first + r * (pairs ? pair_stride : input.step_stride_bytes), spare,
            samples * sample_bytes_, 1, 0, 0});
    std::uint8_t* to = memory + r * (pairs ? 2 : view.spectrum_stride_bytes);
    const std::int64_t step = pairs ? view.spectrum_stride_bytes : 2;
    for (std::int64_t k = 0; k < samples; ++k)
      std::memcpy(to + k % 2 * view.pol_stride_bytes + k / 2 * step, spare + 2 * k, 2);
  }
}

void Unpacker::to_floats(const Input& input, std::int64_t channel, std::int64_t t, std::int64_t n,
                         const TileView& view, std::uint8_t* memory) const {
  const std::int64_t inputs = config_.n_inputs(), pols = config_.n_pols;
  const bool pairs = config_.order == InputOrder::pairs;
  for (std::int64_t i = 0; i < inputs; ++i) {
    const std::uint8_t* from = pairs ? row(input, channel, t, i / 2) + i % 2 * sample_bytes_
                                     : row(input, channel, t, 0) + i * sample_bytes_;
    const std::int64_t step = pairs ? 2 * sample_bytes_ : input.step_stride_bytes;
    std::uint8_t* to = memory + i % pols * view.pol_stride_bytes + i / pols * 8;
    for (std::int64_t s = 0; s < n; ++s) {
      cf32 value;
      const std::uint8_t* at = from + s * step;
      if (sample_bytes_ == 1) {
        value = values_[*at];
      } else if (config_.format == SampleFormat::ci8) {
        value = {static_cast<float>(static_cast<std::int8_t>(at[0])),
                 static_cast<float>(static_cast<std::int8_t>(at[1]))};
      } else if (config_.format == SampleFormat::ci16) {
        ci16 code;
        std::memcpy(&code, at, 4);
        value = {static_cast<float>(code.re), static_cast<float>(code.im)};
      } else if (config_.format == SampleFormat::cf16) {
        std::uint16_t halves[2];
        std::memcpy(halves, at, 4);
        value = {half_value(halves[0]), half_value(halves[1])};
      } else {
        std::memcpy(&value, at, 8);
      }
      std::memcpy(to + s * view.spectrum_stride_bytes, &value, 8);
    }
  }
}

TileView Unpacker::unpack(const Input& input, std::int64_t channel, std::int64_t t, std::int64_t n,
                          std::uint8_t* memory) const {
  TileView view{memory, 0, 0, 0};
  if (kernel_.integer) {
    // A pair of antennas of one pol lies together already: its run in time is copied as it is.
    const bool by_time = config_.order == InputOrder::pairs && config_.n_pols == 1;
    view.step_stride_bytes = by_time ? 4 * kTile : 4;
    view.spectrum_stride_bytes = by_time ? 4 : 4 * n_steps_;
    view.pol_stride_bytes = kTile * n_steps_ * 4;
    to_codes(input, channel, t, n, view, memory);
  } else {
    view.step_stride_bytes = 8;
    view.spectrum_stride_bytes = 8 * n_steps_;
    view.pol_stride_bytes = kTile * n_steps_ * 8;
    to_floats(input, channel, t, n, view, memory);
  }
  return view;
}

#ifdef __SSE2__
namespace {

// Two antennas of four spectra lie in sixteen bytes: re and im of each are squared and added in
// pairs of 16 bits. Returns how many spectra were done.
std::int64_t sum_squares(const TileView& tile, const std::uint8_t* data,
                         const std::vector<std::uint8_t>& mask, std::int32_t offset, std::int64_t n,
                         float* power) {
  if (tile.spectrum_stride_bytes != 4) return 0;
  const auto n_antennas = static_cast<std::int64_t>(mask.size());
  const __m128i zero = _mm_setzero_si128();
  const __m128i offsets = _mm_set1_epi16(static_cast<std::int16_t>(offset));
  for (std::int64_t s = 0; s + 4 <= n; s += 4) {
    __m128i low = zero, high = zero;  // [spectrum][antenna of the pair]
    for (std::int64_t a = 0; a < n_antennas; a += 2) {
      const bool second = a + 1 < n_antennas && mask[a + 1] != 0;
      const int first_used = mask[a] != 0 ? -1 : 0;
      const __m128i used = _mm_set_epi32(-int{second}, first_used, -int{second}, first_used);
      const __m128i codes = _mm_loadu_si128(
          reinterpret_cast<const __m128i*>(data + a / 2 * tile.step_stride_bytes + 4 * s));
      const __m128i one = _mm_sub_epi16(_mm_unpacklo_epi8(codes, zero), offsets);
      const __m128i two = _mm_sub_epi16(_mm_unpackhi_epi8(codes, zero), offsets);
      low = _mm_add_epi32(low, _mm_and_si128(used, _mm_madd_epi16(one, one)));
      high = _mm_add_epi32(high, _mm_and_si128(used, _mm_madd_epi16(two, two)));
    }
    const __m128i even = _mm_castps_si128(
        _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i odd = _mm_castps_si128(
        _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), _MM_SHUFFLE(3, 1, 3, 1)));
    _mm_storeu_ps(power + s, _mm_cvtepi32_ps(_mm_add_epi32(even, odd)));
  }
  return n / 4 * 4;
}

}  // namespace
#endif

void Unpacker::incoherent(const TileView& tile, std::int64_t pol,
                          const std::vector<std::uint8_t>& mask, std::int64_t n,
                          float* power) const {
  const std::uint8_t* data = tile.data + pol * tile.pol_stride_bytes;
  std::int32_t sums[kTile] = {};
  std::int64_t done = 0;
#ifdef __SSE2__
  if (kernel_.integer) done = sum_squares(tile, data, mask, offset_, n, power);
#endif
  for (std::int64_t s = done; s < n; ++s) power[s] = 0;
  for (std::int64_t antenna = 0; antenna < config_.n_antennas; ++antenna) {
    if (mask[antenna] == 0) continue;
    if (!kernel_.integer) {
      for (std::int64_t s = 0; s < n; ++s) {
        float v[2];
        std::memcpy(v, data + antenna * tile.step_stride_bytes + s * tile.spectrum_stride_bytes, 8);
        power[s] += v[0] * v[0] + v[1] * v[1];
      }
      continue;
    }
    const std::uint8_t* from = data + antenna / 2 * tile.step_stride_bytes + antenna % 2 * 2;
    for (std::int64_t s = done; s < n; ++s) {
      const std::int32_t re = from[s * tile.spectrum_stride_bytes] - offset_;
      const std::int32_t im = from[s * tile.spectrum_stride_bytes + 1] - offset_;
      sums[s] += re * re + im * im;
    }
  }
  if (!kernel_.integer) return;
  for (std::int64_t s = done; s < n; ++s) power[s] = static_cast<float>(sums[s]);
}

}  // namespace ryle::beamform::detail
