// SPDX-License-Identifier: BSD-3-Clause
// Samples with all inputs of an instant together -> each input's together: on the CPU, and by the
// kernels thread by thread.
#include "ryle/engine/channelize/transpose.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "ryle/core/random.hpp"
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include "ryle/engine/channelize/cuda/transpose.cuh"

namespace ryle::channelize {
namespace {

SampleLayout instants_of(SampleFormat format, std::int64_t n_inputs) {
  SampleLayout layout;
  layout.format = format;
  layout.input_stride_bits = bits_per_sample(format);
  layout.sample_stride_bits = n_inputs * layout.input_stride_bits;
  return layout;
}

struct Turned {
  SampleLayout from, to;
  std::int64_t n_inputs, n_ticks;
  Buffer<std::byte> samples, rows;

  Turned(SampleFormat format, std::int64_t inputs, std::int64_t ticks, std::int64_t capacity)
      : from(instants_of(format, inputs)),
        to(transposed_layout(from, inputs, capacity).value()),
        n_inputs(inputs),
        n_ticks(ticks),
        samples(ticks * from.sample_stride_bits / 8),
        rows(transposed_bytes(to, inputs)) {
    for (std::int64_t k = 0; k < samples.size(); ++k)
      samples[k] = static_cast<std::byte>(mix64(static_cast<std::uint64_t>(k)));
    std::memset(rows.data(), 0xCD, static_cast<std::size_t>(rows.size()));
  }
  std::int64_t wrong() const {
    const std::int64_t bytes = to.sample_stride_bits / 8;
    std::int64_t n = 0;
    for (std::int64_t p = 0; p < n_inputs; ++p) {
      for (std::int64_t t = 0; t < n_ticks; ++t) {
        for (std::int64_t b = 0; b < bytes; ++b)
          n += rows[p * to.input_stride_bits / 8 + t * bytes + b] !=
               samples[(t * n_inputs + p) * bytes + b];
      }
    }
    return n;
  }
  detail::TransposeArguments arguments() const {
    return {samples.data(),
            rows.data(),
            from.sample_stride_bits / 8,
            to.input_stride_bits / 8,
            static_cast<int>(n_inputs),
            static_cast<int>(n_ticks),
            static_cast<int>((n_inputs + detail::kTransposeInputs - 1) / detail::kTransposeInputs)};
  }
};

// Pieces of 16 bytes and single samples, whole and broken tiles of inputs and of ticks.
TEST(Turn, EveryInputsSamplesComeTogether) {
  std::uint64_t seed = 0;
  for (const SampleFormat format : {SampleFormat::i8, SampleFormat::ci8, SampleFormat::ci16}) {
    for (const std::int64_t n_inputs : {1, 16, 70, 128}) {
      for (const std::int64_t n_ticks : {1, 64, 130}) {
        Turned t(format, n_inputs, n_ticks, 192);
        Queue cpu = Queue::cpu(2);
        transpose_samples(cpu, t.samples.data(), t.from, n_inputs, n_ticks, t.to, t.rows.data());
        EXPECT_EQ(t.wrong(), 0) << name(format) << " N=" << n_inputs << " T=" << n_ticks;
        Turned k(format, n_inputs, n_ticks, 192);
        const detail::TransposeArguments a = k.arguments();
        const auto bytes = static_cast<int>(k.to.sample_stride_bits / 8);
        const auto lines = static_cast<unsigned>((n_ticks * bytes + 127) / 128);
        const detail::TransposeKernel kernel = detail::transpose_kernel(a, bytes);
        simt::launch({{static_cast<unsigned>(a.n_tiles) * lines}, {detail::kTransposeThreads}},
                     seed++, [&] { kernel(a); });
        EXPECT_EQ(k.wrong(), 0) << name(format) << " N=" << n_inputs << " T=" << n_ticks;
      }
    }
  }
}

TEST(Turn, SaysWhereItCannot) {
  SampleLayout packed = instants_of(SampleFormat::ci4, 8);
  EXPECT_TRUE(transposed_layout(packed, 8, 64).has_value());  // a byte a sample
  packed.format = SampleFormat::ci2;
  EXPECT_FALSE(transposed_layout(packed, 8, 64).has_value());
  SampleLayout with_header = instants_of(SampleFormat::ci8, 8);
  with_header.sample_stride_bits += 16;
  EXPECT_FALSE(transposed_layout(with_header, 8, 64).has_value());
  SampleLayout rows = instants_of(SampleFormat::ci8, 8);
  rows.sample_stride_bits = 16;
  EXPECT_FALSE(transposed_layout(rows, 8, 64).has_value());
}

}  // namespace
}  // namespace ryle::channelize
