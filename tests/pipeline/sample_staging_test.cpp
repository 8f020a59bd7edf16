// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/sample_staging.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "ryle/core/random.hpp"

namespace ryle::pipeline {
namespace {

// Pieces of any length begin anywhere in a line of memory, and one is longer than a worker's slice.
TEST(SampleStaging, HoldsWhatWasAppended) {
  SampleLayout layout;
  layout.format = SampleFormat::ci8;
  layout.input_stride_bits = 16;
  layout.sample_stride_bits = 48;
  constexpr std::int64_t kTicks = 250'000, kTickBytes = 6;
  std::vector<std::byte> source(kTicks * kTickBytes);
  for (std::size_t k = 0; k < source.size(); ++k) source[k] = static_cast<std::byte>(mix64(k));
  for (const MemorySpace space : {MemorySpace::host, MemorySpace::pinned}) {
    Queue queue = Queue::cpu(2);
    SampleStaging staging(layout, 3, kTicks, space);
    staging.restart(1000);
    std::int64_t at = 0;
    for (const std::int64_t n : {1, 2, 10, 11, 64, 7, 1000, 33, 200'000, 5, 640}) {
      staging.append(source.data(), at, n, {}, queue);
      at += n;
    }
    ASSERT_EQ(staging.end(), 1000 + at);
    const auto* held = static_cast<const std::byte*>(staging.samples());
    std::int64_t wrong = 0;
    for (std::int64_t k = 0; k < at * kTickBytes; ++k)
      wrong += held[k] != source[static_cast<std::size_t>(k)];
    EXPECT_EQ(wrong, 0);
  }
}

}  // namespace
}  // namespace ryle::pipeline
