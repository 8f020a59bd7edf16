// SPDX-License-Identifier: BSD-3-Clause
// Samples turned on the device lie where the CPU puts them.
#include "ryle/engine/channelize/transpose.hpp"

#include "ryle/core/error.hpp"
#include "tests/cuda/cuda_test.hpp"

namespace ryle::channelize {
namespace {

using CudaTurn = test::CudaTest;

TEST_F(CudaTurn, GivesTheRowsOfTheCpu) {
  constexpr std::int64_t kTicks = 1000;
  for (const SampleFormat format : {SampleFormat::i8, SampleFormat::ci8, SampleFormat::ci16}) {
    for (const std::int64_t n_inputs : {5, 64, 200}) {
      SampleLayout from;
      from.format = format;
      from.input_stride_bits = bits_per_sample(format);
      from.sample_stride_bits = n_inputs * from.input_stride_bits;
      const SampleLayout to = transposed_layout(from, n_inputs, kTicks).value();
      std::vector<std::byte> samples(
          static_cast<std::size_t>(kTicks * from.sample_stride_bits / 8));
      for (std::size_t k = 0; k < samples.size(); ++k)
        samples[k] = static_cast<std::byte>(mix64(k));
      std::vector<std::byte> want(static_cast<std::size_t>(transposed_bytes(to, n_inputs)));
      Queue cpu = Queue::cpu(1);
      transpose_samples(cpu, samples.data(), from, n_inputs, kTicks, to, want.data());
      const Buffer<std::byte> source = upload(samples);
      const Buffer<std::byte> rows = upload(test::garbage(transposed_bytes(to, n_inputs)));
      transpose_samples(queue(), source.data(), from, n_inputs, kTicks, to, rows.data());
      const auto found = download(rows);
      const std::int64_t stride = to.input_stride_bits / 8;
      const auto used = static_cast<std::size_t>(kTicks * to.sample_stride_bits / 8);
      for (std::int64_t p = 0; p < n_inputs; ++p) {
        ASSERT_EQ(std::memcmp(found.data() + p * stride, want.data() + p * stride, used), 0)
            << name(format) << " N=" << n_inputs << " input " << p;
      }
    }
  }
}

}  // namespace
}  // namespace ryle::channelize
