// SPDX-License-Identifier: BSD-3-Clause
// The emulator of CUDA threads, on small kernels: right ones work, each kind of mistake shows.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "tests/support/simt/cuda_names.hpp"

namespace ryle::simt {

/// launch_stub.cpp has one of the same name.
__global__ void linked_twice(int* to) { *to = 1; }

namespace {

constexpr unsigned kThreads = 96;
constexpr std::uint64_t kSeeds = 8;

enum class Mistake : std::uint8_t { none, no_barrier_after_writing, no_barrier_after_reading };

struct Values {
  int at[kThreads];
};

// Twice, each thread writes its value and reads its right neighbour's.
template <Mistake kMistake>
__global__ void pass_left(int* values) {
  auto& shared = cuda::shared<Values>();
  const unsigned t = threadIdx.x;
  int* value = values + blockIdx.x * blockDim.x + t;
  for (int round = 0; round < 2; ++round) {
    shared.at[t] = *value;
    if (kMistake != Mistake::no_barrier_after_writing) __syncthreads();
    *value = shared.at[(t + 1) % blockDim.x];
    if (kMistake != Mistake::no_barrier_after_reading) __syncthreads();
  }
}

template <Mistake kMistake>
bool passes_left(std::uint64_t seed) {
  std::vector<int> values(3 * kThreads);
  std::iota(values.begin(), values.end(), 100);
  launch({{3}, {kThreads}}, seed, [&] { pass_left<kMistake>(values.data()); });
  for (unsigned k = 0; k < values.size(); ++k) {
    const unsigned block = k / kThreads;
    if (values[k] != static_cast<int>(100 + block * kThreads + (k % kThreads + 2) % kThreads))
      return false;
  }
  return true;
}

std::string error_of(const Grid& grid, const std::function<void()>& kernel) {
  try {
    launch(grid, 1, kernel);
  } catch (const KernelError& error) {
    return error.what();
  }
  return "";
}

struct RingOfValues {
  std::uint64_t full[2], empty[2];
  int at[2];
};

// Warp 0 hands the values to warps 1 and 2 through two places; warp 2 reads every second one and,
// where it does not wait for the others, takes an old phase for its own.
template <bool kSeesEachPhase>
__global__ void hand_over(const int* values, int n, int* got) {
  auto& ring = cuda::shared<RingOfValues>();
  const unsigned warp = threadIdx.x / 32;
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int k = 0; k < 2; ++k) {
      cuda::begin_barrier(&ring.full[k], 1);
      cuda::begin_barrier(&ring.empty[k], kSeesEachPhase ? 2 : 1);
    }
    cuda::barriers_begun();
  }
  __syncthreads();
  for (int k = 0; k < n; ++k) {
    const int place = k % 2;
    const unsigned parity = k / 2 % 2;
    if (warp == 0) {
      cuda::await(&ring.empty[place], parity ^ 1);
      if (lane == 0) ring.at[place] = values[k];
      if (lane == 0) cuda::arrive(&ring.full[place]);
    } else if (kSeesEachPhase || k / 2 % 2 == static_cast<int>(warp - 1)) {
      cuda::await(&ring.full[place], parity);
      if (k / 2 % 2 == static_cast<int>(warp - 1) && lane == 5) got[k] = ring.at[place];
      __syncwarp();
      if (lane == 0) cuda::arrive(&ring.empty[place]);
    }
  }
}

template <bool kSeesEachPhase>
bool hands_over(std::uint64_t seed) {
  std::vector<int> values(16), got(16);
  std::iota(values.begin(), values.end(), 100);
  try {
    launch({{1}, {kThreads}}, seed,
           [&] { hand_over<kSeesEachPhase>(values.data(), 16, got.data()); });
  } catch (const KernelError&) {  // thrown off by what it missed, it may also wait for ever
    return false;
  }
  return values == got;
}

__global__ void wait_for_nobody() {
  auto& ring = cuda::shared<RingOfValues>();
  if (threadIdx.x == 0) cuda::begin_barrier(&ring.full[0], 2);
  __syncthreads();
  if (threadIdx.x == 0) cuda::arrive(&ring.full[0]);
  cuda::await(&ring.full[0], 0);
}

TEST(Simt, PhasesOfBarriersInSharedMemory) {
  int unseen = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_TRUE(hands_over<true>(seed)) << seed;
    unseen += hands_over<false>(seed) ? 1 : 0;
  }
  EXPECT_LT(unseen, static_cast<int>(kSeeds));
  EXPECT_NE(error_of({{1}, {kThreads}}, wait_for_nobody).find("nobody completes"),
            std::string::npos);
}

TEST(Simt, BarriersKeepThreadsTogether) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    EXPECT_TRUE(passes_left<Mistake::none>(seed)) << seed;
}

TEST(Simt, ABarrierLeftOutGivesAWrongResult) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_FALSE(passes_left<Mistake::no_barrier_after_writing>(seed)) << seed;
    EXPECT_FALSE(passes_left<Mistake::no_barrier_after_reading>(seed)) << seed;
  }
}

TEST(Simt, ABarrierThatSomeThreadsDoNotMeetIsAnError) {
  const auto some_leave = [] {
    if (threadIdx.x < 60) __syncthreads();
  };
  EXPECT_NE(error_of({{1}, {64}}, some_leave).find("4 threads ended while thread"),
            std::string::npos);
  const auto two_barriers = [] {  // outside a macro, where every line has one number
    if (threadIdx.x < 32) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  };
  EXPECT_NE(error_of({{1}, {64}}, two_barriers).find("wait at different barriers"),
            std::string::npos);
}

TEST(Simt, AWarpOperationWithoutAllItsLanesIsAnError) {
  const auto half_a_warp = [](unsigned mask) {
    return [mask] {
      if (threadIdx.x % 32 < 16) __shfl_xor_sync(mask, 1, 1);
    };
  };
  EXPECT_NE(error_of({{1}, {64}}, half_a_warp(0xffffffffu)).find("that do not come"),
            std::string::npos);
  EXPECT_EQ(error_of({{1}, {64}}, half_a_warp(0xffffu)), "");
  EXPECT_NE(error_of({{1}, {64}}, half_a_warp(0xffu)).find("is not in its own mask"),
            std::string::npos);
  EXPECT_NE(error_of({{1}, {32}},
                     [] {
                       if (threadIdx.x < 16) __shfl_xor_sync(0xffffu, 1, 16);
                     })
                .find("which is not in the mask"),
            std::string::npos);
}

// Shared memory holds other bytes in every block and launch until it is written.
TEST(Simt, SharedMemoryIsNotZero) {
  std::vector<int> found(6);
  const auto read = [&] {
    __shared__ int plain;  // of no template: g++ puts it where it can be filled
    const unsigned b = blockIdx.x * 3;
    found[b] = cuda::shared<int>();
    found[b + 1] = *static_cast<int*>(cuda::dynamic_shared());
    found[b + 2] = plain;
    plain = static_cast<int>(b);
  };
  launch({{2}, {1}, 4}, 7, read);
  std::vector<int> unique = found;
  std::sort(unique.begin(), unique.end());
  EXPECT_EQ(std::unique(unique.begin(), unique.end()), unique.end()) << "zeros, or kept bytes";
}

TEST(Simt, IndicesCountXThenYThenZ) {
  std::vector<int> seen(2 * 3 * 2 * 4 * 3 * 2);
  launch({{2, 3, 2}, {4, 3, 2}}, 3, [&] {
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    ++seen[block * 24 + thread];
    const int first_of_warp = __shfl_sync(0xffffffffu, static_cast<int>(thread), 0);
    if (first_of_warp != 0) ++seen[0];  // 24 threads are one warp, in this order
  });
  EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
}

TEST(Simt, WarpOperations) {
  launch({{1}, {64}}, 5, [] {
    const int lane = static_cast<int>(threadIdx.x % 32);
    const unsigned all = 0xffffffffu;
    double sum = lane + 0.5;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(all, sum, step);
    EXPECT_EQ(sum, 31 * 16 + 16);
    EXPECT_EQ(__shfl_up_sync(all, lane, 3), lane < 3 ? lane : lane - 3);
    EXPECT_EQ(__shfl_down_sync(all, lane, 3), lane > 28 ? lane : lane + 3);
    EXPECT_EQ(__shfl_down_sync(all, lane, 1, 8), lane % 8 == 7 ? lane : lane + 1);
    EXPECT_EQ(__shfl_sync(all, lane, 2, 8), lane / 8 * 8 + 2);
    EXPECT_EQ(__ballot_sync(all, lane % 4 == 1), 0x22222222u);
    EXPECT_EQ(__any_sync(all, lane == 31), 1);
    EXPECT_EQ(__all_sync(all, lane != 31), 0);
    EXPECT_EQ(__all_sync(all, true), 1);
  });
}

TEST(Simt, AtomicsAndBits) {
  int sum = 0;
  int largest = -5;
  unsigned bits = 0;
  launch({{4}, {50}}, 2, [&] {
    const int value = static_cast<int>(blockIdx.x * 50 + threadIdx.x);
    atomicAdd(&sum, value);
    atomicMax(&largest, value);
    atomicOr(&bits, 1u << (value % 32));
  });
  EXPECT_EQ(sum, 199 * 100);
  EXPECT_EQ(largest, 199);
  EXPECT_EQ(bits, ~0u);
  EXPECT_EQ(__dp4a(static_cast<int>(0x80FF0102u), static_cast<int>(0x80027F01u), 7),
            7 + 16384 - 2 + 127 + 2);
  EXPECT_EQ(__dp4a(0x80FF0102u, 0x80027F01u, 7u), 7u + 16384 + 510 + 127 + 2);
  EXPECT_EQ(__clz(1u), 31);
  EXPECT_EQ(__ffs(8u), 4);
}

// The layout of the fragments, against the definition of a matrix product of full-range bytes.
TEST(Simt, MultiplyAddIsAMatrixProduct) {
  std::int8_t a[16][32];
  std::int8_t b[8][32];
  for (unsigned k = 0; k < 32; ++k) {
    for (unsigned r = 0; r < 16; ++r) a[r][k] = static_cast<std::int8_t>(mix64(r * 32 + k));
    for (unsigned n = 0; n < 8; ++n) b[n][k] = static_cast<std::int8_t>(mix64(~(n * 32 + k)));
  }
  a[3][5] = b[2][5] = -128;
  int found[16][8];
  launch({{1}, {32}}, 9, [&] {
    const unsigned g = threadIdx.x / 4;
    const unsigned q = threadIdx.x % 4;
    const auto word = [](const std::int8_t* from) {
      unsigned w;
      std::memcpy(&w, from, 4);
      return w;
    };
    const unsigned of_a[4] = {word(&a[g][4 * q]), word(&a[g + 8][4 * q]), word(&a[g][16 + 4 * q]),
                              word(&a[g + 8][16 + 4 * q])};
    const unsigned of_b[2] = {word(&b[g][4 * q]), word(&b[g][16 + 4 * q])};
    int c[4] = {1, 2, 3, 4};
    cuda::multiply_add_s8(c, of_a, of_b);
    found[g][2 * q] = c[0] - 1;
    found[g][2 * q + 1] = c[1] - 2;
    found[g + 8][2 * q] = c[2] - 3;
    found[g + 8][2 * q + 1] = c[3] - 4;
  });
  for (unsigned r = 0; r < 16; ++r) {
    for (unsigned n = 0; n < 8; ++n) {
      int want = 0;
      for (unsigned k = 0; k < 32; ++k) want += a[r][k] * b[n][k];
      EXPECT_EQ(found[r][n], want) << r << "," << n;
    }
  }
}

// Two groups of copies a thread; the neighbour's first one is read.
template <int kPending>
bool copies_arrive(std::uint64_t seed) {
  std::vector<int> from(2 * 4 * kThreads);
  std::iota(from.begin(), from.end(), 5);
  std::vector<int> to(kThreads);
  launch({{1}, {kThreads}, 2 * 16 * kThreads}, seed, [&] {
    const unsigned t = threadIdx.x;
    const unsigned memory = cuda::shared_address(cuda::dynamic_shared());
    for (unsigned group = 0; group < 2; ++group) {
      const unsigned place = group * kThreads + t;
      cuda::copy_16(memory + 16 * place, from.data() + 4 * place, 12);
      cuda::commit_copies();
    }
    cuda::wait_copies<kPending>();
    __syncthreads();
    const int* read = static_cast<const int*>(cuda::dynamic_shared()) + (t + 1) % kThreads * 4;
    to[t] = read[2] + read[3];
  });
  for (unsigned t = 0; t < kThreads; ++t) {
    if (to[t] != static_cast<int>((t + 1) % kThreads * 4 + 2 + 5)) return false;
  }
  return true;
}

TEST(Simt, CopiesArriveWhenTheyAreWaitedFor) {
  int in_time = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_TRUE(copies_arrive<0>(seed)) << seed;
    EXPECT_TRUE(copies_arrive<1>(seed)) << seed;
    in_time += copies_arrive<2>(seed);
  }
  EXPECT_EQ(in_time, kSeeds / 2) << "every other launch lets copies be late";
  EXPECT_NE(error_of({{1}, {1}, 32}, [] { cuda::copy_16(128 + 24, nullptr, 0); })
                .find("not in shared memory"),
            std::string::npos);
}

TEST(Simt, OneSeedIsOneOrder) {
  const auto order = [](std::uint64_t seed) {
    std::vector<unsigned> ran;
    launch({{1}, {40}}, seed, [&] { ran.push_back(threadIdx.x); });
    return ran;
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1), order(2));
}

// A build with CUDA links the functions that launch kernels under the names of the kernels.
TEST(Simt, AKernelIsThatOfItsOwnFile) {
  void (*volatile kernel)(int*) = linked_twice;
  int found = 0;
  launch({{1}, {1}}, 1, [&] { kernel(&found); });
  EXPECT_EQ(found, 1);
}

}  // namespace
}  // namespace ryle::simt
