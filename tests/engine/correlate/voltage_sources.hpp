// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstring>
#include <string>
#include <vector>

#include "ryle/engine/correlate/import.hpp"
#include "tests/engine/correlate/voltages.hpp"

/// Voltages in the orders of other systems, with codes that say where they belong.
namespace ryle::correlate::test {

// Bytes of one code in the source, the textbook way.
inline void write_source(std::uint8_t* at, SampleFormat format, cf64 value) {
  const auto re = static_cast<int>(value.real());
  const auto im = static_cast<int>(value.imag());
  if (format == SampleFormat::ci4) {
    at[0] = static_cast<std::uint8_t>((re << 4) | (im & 15));
  } else if (format == SampleFormat::ci8) {
    at[0] = static_cast<std::uint8_t>(re);
    at[1] = static_cast<std::uint8_t>(im);
  } else if (format == SampleFormat::ci16) {
    const std::int16_t parts[2] = {static_cast<std::int16_t>(re), static_cast<std::int16_t>(im)};
    std::memcpy(at, parts, 4);
  } else {
    const float parts[2] = {static_cast<float>(value.real()), static_cast<float>(value.imag())};
    std::memcpy(at, parts, 8);
  }
}

inline cf64 code_at(SampleFormat format, std::int64_t c, std::int64_t t, std::int64_t p) {
  const cf64 value =
      Voltages::code(format, combine(static_cast<std::uint64_t>(c), static_cast<std::uint64_t>(t),
                                     static_cast<std::uint64_t>(p)));
  return format == SampleFormat::cf32
             ? cf64{static_cast<float>(value.real()), static_cast<float>(value.imag())}
             : value;
}

struct VoltageSource {
  std::string name;
  VoltageLayout layout;
  std::int64_t bytes;
};

inline std::vector<VoltageSource> voltage_sources(SampleFormat format, std::int64_t c,
                                                  std::int64_t t, std::int64_t p) {
  const std::int64_t sample = voltage_bytes(format);
  std::vector<VoltageSource> all = {
      {"spectrum-channel-input", spectrum_channel_input(format, c, p), t * c * p * sample},
      {"channel-input-spectrum", channel_input_spectrum(format, p, t), t * c * p * sample}};
  // Heaps that divide a block of spectra, that do not, and that are longer than one.
  for (const std::int64_t in_heap : {1, 7, 16, 100}) {
    const std::int64_t heaps = (t + in_heap - 1) / in_heap;
    all.push_back({"heap-input-channel-spectrum of " + std::to_string(in_heap),
                   heap_input_channel_spectrum(format, p, c, in_heap),
                   heaps * in_heap * c * p * sample});
  }
  return all;
}

/// Bytes of all samples, code_at() everywhere; 0xCD between them.
inline std::vector<std::uint8_t> source_bytes(const VoltageSource& s, std::int64_t c,
                                              std::int64_t t, std::int64_t p) {
  const VoltageLayout& layout = s.layout;
  std::vector<std::uint8_t> source(static_cast<std::size_t>(s.bytes), 0xCD);
  for (std::int64_t k = 0; k < c; ++k) {
    for (std::int64_t m = 0; m < t; ++m) {
      for (std::int64_t i = 0; i < p; ++i) {
        std::int64_t at = k * layout.channel_stride_bytes + i * layout.input_stride_bytes;
        at += layout.spectra_per_heap == 0
                  ? m * layout.spectrum_stride_bytes
                  : m / layout.spectra_per_heap * layout.heap_stride_bytes +
                        m % layout.spectra_per_heap * layout.spectrum_stride_bytes;
        EXPECT_LE(at + voltage_bytes(layout.format), s.bytes);
        write_source(source.data() + at, layout.format, code_at(layout.format, k, m, i));
      }
    }
  }
  return source;
}

/// A plane for each (channel, input) with holes of one sample, of a word, and of all.
inline std::vector<std::uint64_t> planes_with_holes(std::int64_t c, std::int64_t t,
                                                    std::int64_t p) {
  const std::int64_t words = (t + 63) / 64;
  std::vector<std::uint64_t> planes(static_cast<std::size_t>(c * p * words), ~std::uint64_t{0});
  for (std::size_t k = 0; k < planes.size(); ++k) {
    if (k % 3 == 1) planes[k] = mix64(k) | mix64(~k);
    if (k % 7 == 5) planes[k] = 0;
  }
  return planes;
}

/// The blocks that import_voltages() should make, gaps of garbage included.
inline Voltages imported(SampleFormat from, SampleFormat to, std::int64_t c, std::int64_t t,
                         std::int64_t p, const std::vector<std::uint64_t>& planes) {
  Voltages want(to, c, t, p, true);
  const std::int64_t words = (t + 63) / 64;
  want.fill([&](std::int64_t k, std::int64_t m, std::int64_t i) {
    const auto word = static_cast<std::size_t>((k * p + i) * words + m / 64);
    const bool is_valid = planes.empty() || (planes[word] >> (m % 64) & 1u) != 0;
    return is_valid ? code_at(from, k, m, i) : cf64{};
  });
  return want;
}

}  // namespace ryle::correlate::test
