// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ryle/core/blocks.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/buffer.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/correlate/correlate.hpp"

namespace ryle::correlate::test {

/// Planar blocks with gaps of garbage between channels, blocks and inputs, so that a wrong stride
/// shows.
struct Voltages {
  Voltages(SampleFormat format, std::int64_t n_channels, std::int64_t n_spectra,
           std::int64_t n_inputs, bool strided = false)
      : n_spectra(n_spectra) {
    const std::int64_t cell = bytes_per_cell(format);
    const std::int64_t blocks = n_blocks(format, n_spectra);
    const std::int64_t gap = strided ? 48 : 0;
    view = {nullptr, format, n_channels, blocks, n_inputs, 0, 0, cell + gap};
    view.block_stride_bytes = n_inputs * view.input_stride_bytes + 3 * gap;
    view.channel_stride_bytes = blocks * view.block_stride_bytes + 5 * gap;
    memory = Buffer<std::byte>(n_channels * view.channel_stride_bytes);
    view.data = memory.data();
    std::memset(memory.data(), 0xCD, static_cast<std::size_t>(memory.bytes()));
    for (std::int64_t c = 0; c < n_channels; ++c) {
      for (std::int64_t b = 0; b < blocks; ++b) {
        for (std::int64_t p = 0; p < n_inputs; ++p)
          std::memset(view.cell(c, b, p), 0, static_cast<std::size_t>(cell));
      }
    }
  }

  /// Every sample = value(channel, spectrum, input).
  template <class Value>
  void fill(const Value& value) {
    for (std::int64_t c = 0; c < view.n_channels; ++c) {
      for (std::int64_t t = 0; t < n_spectra; ++t) {
        for (std::int64_t p = 0; p < view.n_inputs; ++p) set_sample(view, c, t, p, value(c, t, p));
      }
    }
  }

  /// Random codes over the full range of the format, the most negative included.
  void fill_random(std::uint64_t seed) {
    fill([&](std::int64_t c, std::int64_t t, std::int64_t p) {
      const std::uint64_t bits =
          combine(seed, static_cast<std::uint64_t>(c * 4096 + p), static_cast<std::uint64_t>(t));
      return code(view.format, bits);
    });
  }

  static cf64 code(SampleFormat format, std::uint64_t bits) {
    const auto part = [&](int shift, int width) {
      return static_cast<double>(static_cast<std::int64_t>(bits >> shift << (64 - width)) >>
                                 (64 - width));
    };
    switch (format) {
      case SampleFormat::ci4:
        return {part(0, 4), part(8, 4)};
      case SampleFormat::ci8:
        return {part(0, 8), part(8, 8)};
      case SampleFormat::ci16:
        return {part(0, 16), part(16, 16)};
      default:
        return {gaussian(bits), gaussian(bits ^ 1u)};
    }
  }

  Input input() const {
    Input in;
    in.blocks = view;
    in.n_spectra = n_spectra;
    return in;
  }

  std::int64_t n_spectra;
  BlockView view;
  Buffer<std::byte> memory;
};

inline Config config_of(const Voltages& v, const std::string& implementation) {
  return {v.view.n_inputs, v.view.n_channels, v.view.format, v.n_spectra, implementation};
}

/// Textbook sums, independent of the engine: int64 from get_sample.
inline Sums expected(const Voltages& v) {
  Queue queue = Queue::cpu(1);
  auto reference = make_correlator(queue, config_of(v, "reference"));
  reference->execute(queue, v.input());
  Sums sums;
  reference->finish(queue, sums);
  return sums;
}

/// Fresh Sums full of garbage.
inline Sums garbage() {
  Sums sums;
  sums.integer.assign(7, {0x0DCDCDCDCDCDCDCD, 0x0DCDCDCDCDCDCDCD});
  sums.real.assign(7, {-1e300, 1e300});
  sums.counts.assign(7, 0xCDCDCDCDu);
  return sums;
}

/// Implementations of this machine that take the format, without "reference" and CUDA.
inline std::vector<std::string> cpu_names(SampleFormat format) {
  std::vector<std::string> names;
  Queue queue = Queue::cpu(1);
  for (const auto& name : available_implementations()) {
    if (name.rfind("cpu:", 0) != 0) continue;
    try {
      make_correlator(queue, {2, 1, format, 64, name});
      names.push_back(name);
    } catch (const UnsupportedError&) {
    }
  }
  return names;
}

inline std::string reported_name(const std::string& name) {
  return "correlate/cpu/" + name.substr(4);
}

}  // namespace ryle::correlate::test
