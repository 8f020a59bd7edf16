// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstdlib>

#include "ryle/core/error.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "tests/cuda/cuda_test.hpp"

namespace ryle {
namespace {

using test::CudaTest;

TEST(CudaAbsent, SaysWhyAndStaysUsable) {
  const std::string reason = cuda_unavailable_reason();
  if (reason.empty()) GTEST_SKIP() << "skipped: CUDA works here";
  EXPECT_EQ(list_devices().size(), 1u);
  try {
    Queue::cuda();
    FAIL() << "a CUDA queue was made without CUDA";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("CUDA"), std::string::npos);
    EXPECT_EQ(error.exit_code(), ExitCode::unavailable);
  }
  EXPECT_THROW(Buffer<int>(4, MemorySpace::device), DeviceError);
  const Buffer<int> pinned(4, MemorySpace::pinned);  // plain host memory instead
  EXPECT_EQ(pinned[3], 0);
}

TEST_F(CudaTest, DeviceListNamesTheGpu) {
  const auto devices = list_devices();
  ASSERT_GE(devices.size(), 2u);
  EXPECT_EQ(devices[1].name, "cuda:0");
  EXPECT_GT(devices[1].memory_bytes, std::int64_t{1} << 30);
  EXPECT_NE(devices[1].description.find("sm_"), std::string::npos);
}

TEST_F(CudaTest, CopiesBetweenAllSpaces) {
  constexpr std::int64_t kSize = 100'003;
  std::vector<std::uint8_t> source(kSize);
  for (std::int64_t i = 0; i < kSize; ++i) source[i] = static_cast<std::uint8_t>(mix64(i));
  const Buffer<std::uint8_t> pinned(kSize, MemorySpace::pinned);
  const Buffer<std::uint8_t> a(kSize, MemorySpace::device);
  const Buffer<std::uint8_t> b(kSize, MemorySpace::device);
  std::vector<std::uint8_t> back(kSize, 0xCD);
  copy_bytes(queue(), a.data(), source.data(), kSize);
  copy_bytes(queue(), b.data(), a.data(), kSize);
  copy_bytes(queue(), pinned.data(), b.data(), kSize);
  queue().synchronize();
  EXPECT_EQ(std::memcmp(pinned.data(), source.data(), kSize), 0);
  copy_bytes(queue(), back.data(), pinned.data(), kSize);
  queue().synchronize();
  EXPECT_EQ(back, source);
  EXPECT_NO_THROW(queue().check());
}

TEST_F(CudaTest, DeviceMemoryStartsAsZero) {
  const Buffer<std::byte> buffer(1 << 20, MemorySpace::device);
  for (const auto byte : download(buffer)) ASSERT_EQ(byte, std::byte{0});
}

TEST_F(CudaTest, TooMuchMemoryIsOneErrorAndHarmless) {
  try {
    Buffer<std::byte>(std::int64_t{1} << 50, MemorySpace::device);
    FAIL() << "a pebibyte was allocated";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("wanted"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(queue().synchronize());
}

/// Correlates channels that are nowhere, and ends the process as the error asks.
[[noreturn]] void fault_in_flight(Queue& queue) {
  auto correlator = correlate::make_correlator(queue, {4, 2, SampleFormat::ci8, 64, "cuda:simt"});
  const Buffer<std::byte> memory(dense_blocks_bytes(SampleFormat::ci8, 2, 64, 4),
                                 MemorySpace::device);
  BlockView blocks = dense_blocks(memory.data(), SampleFormat::ci8, 2, 64, 4);
  blocks.channel_stride_bytes = std::int64_t{1} << 44;
  try {
    correlator->execute(queue, {.blocks = blocks, .n_spectra = 64});
    queue.synchronize();
  } catch (const DeviceError& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(static_cast<int>(error.exit_code()));
  }
  std::_Exit(0);
}

// A device that fails in flight is one clear error. In a process of its own: it takes the whole
// context of the device with it.
TEST_F(CudaTest, AFaultInFlightIsOneErrorDeathTest) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(fault_in_flight(queue()),
              ::testing::ExitedWithCode(static_cast<int>(ExitCode::try_again)),
              "work in flight is lost, start the process again");
}

TEST_F(CudaTest, WrongDeviceIndexListsTheRightOnes) {
  EXPECT_THROW(Queue::cuda(-1), DeviceError);
  EXPECT_THROW(Queue::cuda(4096), DeviceError);
  EXPECT_THROW(queue().parallel_for(1, [](std::int64_t) {}), UnsupportedError);
  EXPECT_EQ(queue().back_end(), BackEnd::cuda);
  EXPECT_NE(queue().native_handle(), nullptr);
}

}  // namespace
}  // namespace ryle
