// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/correlate/import.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "ryle/core/error.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace ryle::correlate {
namespace {

// Up to kTime spectra of one (channel, input) go through re[] and im[] in the source's own type.
constexpr std::int64_t kTime = 128;

struct Job {
  const std::uint8_t* source;
  VoltageLayout layout;
  std::int64_t n_spectra;
  BlockView blocks;
  ValidPlanes planes;

  std::int64_t offset(std::int64_t spectrum) const {
    if (layout.spectra_per_heap == 0) return spectrum * layout.spectrum_stride_bytes;
    return spectrum / layout.spectra_per_heap * layout.heap_stride_bytes +
           spectrum % layout.spectra_per_heap * layout.spectrum_stride_bytes;
  }
};

template <class T>
struct Parts {
  T re[kTime];
  T im[kTime];
};

// Consecutive pairs (re, im) -> two runs.
template <class T>
void deinterleave(const std::uint8_t* from, T* re, T* im, std::int64_t n) {
  for (std::int64_t t = 0; t < n; ++t) {
    T pair[2];
    std::memcpy(pair, from + t * static_cast<std::int64_t>(sizeof pair), sizeof pair);
    re[t] = pair[0];
    im[t] = pair[1];
  }
}

#if defined(__SSE2__)
template <>
void deinterleave<std::int8_t>(const std::uint8_t* from, std::int8_t* re, std::int8_t* im,
                               std::int64_t n) {
  std::int64_t t = 0;
  const __m128i low = _mm_set1_epi16(0xff);
  for (; t + 16 <= n; t += 16) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * t));
    const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + 2 * t + 16));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(re + t),
                     _mm_packus_epi16(_mm_and_si128(a, low), _mm_and_si128(b, low)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(im + t),
                     _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8)));
  }
  for (; t < n; ++t) {
    re[t] = static_cast<std::int8_t>(from[2 * t]);
    im[t] = static_cast<std::int8_t>(from[2 * t + 1]);
  }
}
#endif

// Spectra [first, first + n) of one (channel, input); the rest of `parts` is zero.
template <class T>
void gather(const Job& job, const std::uint8_t* cell, std::int64_t first, std::int64_t n,
            Parts<T>& parts) {
  constexpr std::int64_t kSample = 2 * sizeof(T);
  std::int64_t t = 0;
  while (t < n) {
    const std::uint8_t* from = cell + job.offset(first + t);
    const std::int64_t before =
        job.layout.spectra_per_heap == 0 ? 0 : (first + t) % job.layout.spectra_per_heap;
    const std::int64_t in_heap = job.layout.spectra_per_heap == 0
                                     ? n - t
                                     : std::min(n - t, job.layout.spectra_per_heap - before);
    if (job.layout.spectrum_stride_bytes == kSample) {
      deinterleave(from, parts.re + t, parts.im + t, in_heap);
    } else {
      for (std::int64_t k = 0; k < in_heap; ++k) {
        deinterleave(from + k * job.layout.spectrum_stride_bytes, parts.re + t + k,
                     parts.im + t + k, 1);
      }
    }
    t += in_heap;
  }
  std::fill(parts.re + n, parts.re + kTime, T{});
  std::fill(parts.im + n, parts.im + kTime, T{});
}

// ci4: one byte a sample, as the block wants it.
void gather_nibbles(const Job& job, const std::uint8_t* cell, std::int64_t first, std::int64_t n,
                    std::uint8_t* bytes) {
  for (std::int64_t t = 0; t < n; ++t) bytes[t] = cell[job.offset(first + t)];
  std::memset(bytes + n, 0, static_cast<std::size_t>(kTime - n));
}

void put(const Parts<std::int8_t>& parts, std::byte* to) {
  for (int half = 0; half < 2; ++half) {
    std::memcpy(to + 64 * half, parts.re + 32 * half, 32);
    std::memcpy(to + 64 * half + 32, parts.im + 32 * half, 32);
  }
}

void put(const Parts<std::int16_t>& parts, std::byte* to) {
  for (int t = 0; t < 64; ++t) {
    const int at = t / 32 * 64 + t % 32;
    to[at] = static_cast<std::byte>(parts.re[t] >> 8);
    to[at + 32] = static_cast<std::byte>(parts.im[t] >> 8);
    to[kBlockBytes + at] = static_cast<std::byte>(parts.re[t] & 255);
    to[kBlockBytes + at + 32] = static_cast<std::byte>(parts.im[t] & 255);
  }
}

template <class T>
void put_floats(const T* re, const T* im, std::byte* to) {
  float values[32];
  for (int t = 0; t < 16; ++t) {
    values[t] = static_cast<float>(re[t]);
    values[16 + t] = static_cast<float>(im[t]);
  }
  std::memcpy(to, values, sizeof values);
}

template <class T>
void import_cell(const Job& job, std::int64_t channel, std::int64_t input, std::int64_t block) {
  const std::uint8_t* cell = job.source + channel * job.layout.channel_stride_bytes +
                             input * job.layout.input_stride_bytes;
  const std::int64_t per_block = spectra_per_block(job.blocks.format);
  const std::int64_t first = block * per_block;
  const std::int64_t n = std::min(per_block, job.n_spectra - first);
  std::byte* to = job.blocks.cell(channel, block, input);
  Parts<T> parts;
  gather(job, cell, first, n, parts);
  if constexpr (!std::is_same_v<T, float>) {
    if (job.blocks.format != SampleFormat::cf32) {
      put(parts, to);
      return;
    }
  }
  put_floats(parts.re, parts.im, to);
}

void import_nibble_cell(const Job& job, std::int64_t channel, std::int64_t input,
                        std::int64_t block) {
  const std::uint8_t* cell = job.source + channel * job.layout.channel_stride_bytes +
                             input * job.layout.input_stride_bytes;
  const std::int64_t per_block = spectra_per_block(job.blocks.format);
  const std::int64_t n = std::min(per_block, job.n_spectra - block * per_block);
  std::byte* to = job.blocks.cell(channel, block, input);
  std::uint8_t bytes[kTime];
  gather_nibbles(job, cell, block * per_block, n, bytes);
  if (job.blocks.format == SampleFormat::ci4) {
    std::memcpy(to, bytes, kBlockBytes);
    return;
  }
  std::int8_t re[16];
  std::int8_t im[16];
  for (int t = 0; t < 16; ++t) {
    re[t] = static_cast<std::int8_t>(static_cast<std::int8_t>(bytes[t]) >> 4);
    im[t] = static_cast<std::int8_t>(static_cast<std::int8_t>(bytes[t] << 4) >> 4);
  }
  put_floats(re, im, to);
}

#if defined(__SSE2__)
// 8 inputs x 32 spectra of two bytes: [spectrum][input] rows of 16 bytes -> re and im runs of 32
// bytes. Four rounds of interleaving transpose 16 rows of 16 bytes.
inline void transpose_bytes(__m128i (&v)[16]) {
  for (int round = 0; round < 4; ++round) {
    __m128i w[16];
    for (int k = 0; k < 8; ++k) {
      w[2 * k] = _mm_unpacklo_epi8(v[k], v[k + 8]);
      w[2 * k + 1] = _mm_unpackhi_epi8(v[k], v[k + 8]);
    }
    std::copy(w, w + 16, v);
  }
}

// [spectrum][input] ci8 -> ci8 blocks, eight inputs at a time; n spectra (<= 64) of block `block`.
void import_eight_inputs(const Job& job, std::int64_t channel, std::int64_t input,
                         std::int64_t block) {
  const std::uint8_t* cell = job.source + channel * job.layout.channel_stride_bytes +
                             input * job.layout.input_stride_bytes;
  const std::int64_t first = block * 64;
  const std::int64_t n = std::min<std::int64_t>(64, job.n_spectra - first);
  for (std::int64_t group = 0; group < 4; ++group) {
    __m128i v[16];
    for (std::int64_t k = 0; k < 16; ++k) {
      const std::int64_t t = group * 16 + k;
      v[k] = t < n ? _mm_loadu_si128(reinterpret_cast<const __m128i*>(cell + job.offset(first + t)))
                   : _mm_setzero_si128();
    }
    transpose_bytes(v);
    for (std::int64_t k = 0; k < 8; ++k) {
      std::byte* to = job.blocks.cell(channel, block, input + k) + group / 2 * 64 + group % 2 * 16;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v[2 * k]);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 32), v[2 * k + 1]);
    }
  }
}
#endif

void import_one(const Job& job, std::int64_t channel, std::int64_t input, std::int64_t block) {
  switch (job.layout.format) {
    case SampleFormat::ci4:
      return import_nibble_cell(job, channel, input, block);
    case SampleFormat::ci8:
      return import_cell<std::int8_t>(job, channel, input, block);
    case SampleFormat::ci16:
      return import_cell<std::int16_t>(job, channel, input, block);
    default:
      return import_cell<float>(job, channel, input, block);
  }
}

// Sample t of a cell becomes 0.
void clear_sample(std::byte* cell, SampleFormat format, std::int64_t t) {
  const auto clear = [cell](std::int64_t at, std::size_t n) { std::memset(cell + at, 0, n); };
  if (format == SampleFormat::ci4) return clear(t, 1);
  if (format == SampleFormat::cf32) {
    clear(4 * t, 4);
    return clear(64 + 4 * t, 4);
  }
  for (std::int64_t at = t / 32 * 64 + t % 32; at < bytes_per_cell(format); at += kBlockBytes) {
    clear(at, 1);
    clear(at + 32, 1);
  }
}

void clear_invalid(const Job& job, std::int64_t channel, std::int64_t block) {
  const std::int64_t per_block = spectra_per_block(job.blocks.format);
  const std::int64_t begin = block * per_block;
  const std::int64_t end = std::min(begin + per_block, job.n_spectra);
  for (std::int64_t input = 0; input < job.blocks.n_inputs; ++input) {
    const std::uint64_t* plane =
        job.planes.valid + channel * job.planes.channel_stride_words + input * job.planes.words;
    for (std::int64_t t = begin; t < end; ++t) {
      if (t % 64 == 0 && t + 64 <= end && plane[t / 64] == ~std::uint64_t{0}) {
        t += 63;
      } else if ((plane[t / 64] >> (t % 64) & 1u) == 0) {
        clear_sample(job.blocks.cell(channel, block, input), job.blocks.format, t - begin);
      }
    }
  }
}

// One (channel, block): all inputs, so that the source is read in the order it lies.
void import_block(const Job& job, std::int64_t channel, std::int64_t block) {
  std::int64_t input = 0;
#if defined(__SSE2__)
  if (job.layout.format == SampleFormat::ci8 && job.blocks.format == SampleFormat::ci8 &&
      job.layout.input_stride_bytes == 2) {
    for (; input + 8 <= job.blocks.n_inputs; input += 8)
      import_eight_inputs(job, channel, input, block);
  }
#endif
  for (; input < job.blocks.n_inputs; ++input) import_one(job, channel, input, block);
  if (job.planes.valid != nullptr) clear_invalid(job, channel, block);
}

void validate(const VoltageLayout& layout, std::int64_t n_spectra, const BlockView& blocks,
              const ValidPlanes& planes) {
  const bool to_floats = blocks.format == SampleFormat::cf32;
  if (blocks.format != layout.format && !to_floats) {
    throw UnsupportedError("import of voltages from " + std::string(name(layout.format)) + " to " +
                           std::string(name(blocks.format)) +
                           " blocks; the same format or cf32 would work");
  }
  voltage_bytes(layout.format);
  if (n_spectra < 0 || n_blocks(blocks.format, n_spectra) > blocks.n_blocks) {
    throw ConfigError("import of voltages: " + std::to_string(n_spectra) + " spectra do not fit " +
                      std::to_string(blocks.n_blocks) + " blocks");
  }
  if (planes.valid != nullptr && 64 * planes.words < n_spectra) {
    throw ConfigError("import of voltages: " + std::to_string(planes.words) + " words of 64 for " +
                      std::to_string(n_spectra) + " spectra");
  }
}

}  // namespace

std::int64_t voltage_bytes(SampleFormat format) {
  switch (format) {
    case SampleFormat::ci4:
      return 1;
    case SampleFormat::ci8:
      return 2;
    case SampleFormat::ci16:
      return 4;
    case SampleFormat::cf32:
      return 8;
    default:
      throw UnsupportedError("import of voltages from " + std::string(name(format)) +
                             "; known: ci4, ci8, ci16, cf32");
  }
}

VoltageLayout spectrum_channel_input(SampleFormat format, std::int64_t n_channels,
                                     std::int64_t n_inputs) {
  const std::int64_t sample = voltage_bytes(format);
  return {format, n_inputs * sample, sample, n_channels * n_inputs * sample, 0, 0};
}

VoltageLayout channel_input_spectrum(SampleFormat format, std::int64_t n_inputs,
                                     std::int64_t n_spectra) {
  const std::int64_t sample = voltage_bytes(format);
  return {format, n_inputs * n_spectra * sample, n_spectra * sample, sample, 0, 0};
}

VoltageLayout heap_input_channel_spectrum(SampleFormat format, std::int64_t n_inputs,
                                          std::int64_t n_channels, std::int64_t spectra_per_heap) {
  const std::int64_t sample = voltage_bytes(format);
  const std::int64_t channel = spectra_per_heap * sample;
  return {format, channel,          n_channels * channel,
          sample, spectra_per_heap, n_inputs * n_channels * channel};
}

void import_voltages(Queue& queue, const void* source, const VoltageLayout& layout,
                     std::int64_t n_spectra, const BlockView& blocks, const ValidPlanes& planes) {
  validate(layout, n_spectra, blocks, planes);
  if (queue.back_end() != BackEnd::cpu)
    throw UnsupportedError("import of voltages on a GPU; a queue of the CPU would work");
  const Job job{static_cast<const std::uint8_t*>(source), layout, n_spectra, blocks, planes};
  const std::int64_t n = n_blocks(blocks.format, n_spectra);
  // Tasks of a few channels of one block: neighbours in the source share its cache lines.
  const std::int64_t channels_per_task =
      std::max<std::int64_t>(1, 64 / std::max<std::int64_t>(1, blocks.n_inputs));
  const std::int64_t groups = (blocks.n_channels + channels_per_task - 1) / channels_per_task;
  struct Work {
    const Job& job;
    std::int64_t groups, per_task;
  } const work{job, groups, channels_per_task};
  queue.parallel_for(n * groups, [&work](std::int64_t task) {
    const std::int64_t block = task / work.groups;
    const std::int64_t begin = task % work.groups * work.per_task;
    const std::int64_t end = std::min(begin + work.per_task, work.job.blocks.n_channels);
    for (std::int64_t channel = begin; channel < end; ++channel)
      import_block(work.job, channel, block);
  });
}

}  // namespace ryle::correlate
