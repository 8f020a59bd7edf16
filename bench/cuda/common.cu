// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <type_traits>
#include <vector>

#include "bench/bench_cuda.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup_products.cuh"

namespace ryle::bench {
namespace {

__device__ std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

__global__ void fill(std::uint64_t* words, std::int64_t n_words, bool gaussian,
                     std::uint64_t seed) {
  for (std::int64_t w = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       w < n_words; w += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    std::uint64_t word = mix(seed ^ mix(w));
    if (gaussian) {  // sum of 12 uniform nibbles less 90: rms 16 (12 (256 - 1)/12), scaled to 30
      std::uint64_t out = 0;
      for (int b = 0; b < 8; ++b) {
        const std::uint64_t bits = mix(word + b);
        int sum = -90;
        for (int k = 0; k < 12; ++k) sum += static_cast<int>(bits >> (4 * k) & 15);
        const int code = max(-128, min(127, sum * 15 / 8));
        out |= static_cast<std::uint64_t>(static_cast<unsigned char>(code)) << (8 * b);
      }
      word = out;
    }
    words[w] = word;
  }
}

constexpr int kRounds = 4096;

// 16 independent sums a warp keep the tensor unit busy; the result is stored so that nothing is
// removed.
__global__ void __launch_bounds__(256) multiply_s8(unsigned seed, int* out) {
  unsigned a[4], b[2];
  int c[16][4] = {};
  for (int k = 0; k < 4; ++k) a[k] = static_cast<unsigned>(mix(seed + threadIdx.x * 8 + k));
  for (int k = 0; k < 2; ++k) b[k] = static_cast<unsigned>(mix(seed + threadIdx.x * 8 + 4 + k));
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
          "{%0,%1,%2,%3};\n"
          : "+r"(c[k][0]), "+r"(c[k][1]), "+r"(c[k][2]), "+r"(c[k][3])
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
  }
  int sum = 0;
  for (auto& row : c) sum += row[0] + row[1] + row[2] + row[3];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(256) multiply_f32(float seed, float* out) {
  float c[16];
  for (int k = 0; k < 16; ++k) c[k] = seed + static_cast<float>(k + threadIdx.x);
  const float a = 0.999f + seed * 1e-9f;
  const float b = 1e-3f + seed;
  for (int round = 0; round < kRounds; ++round) {
#pragma unroll
    for (int k = 0; k < 16; ++k) c[k] = fmaf(c[k], a, b);
  }
  float sum = 0;
  for (const float v : c) sum += v;
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// Two warpgroups, 64 x 128 sums twice each, as the correlator has them; operand B: 16 KiB of
/// random bytes (Sum = int) or halves of +-[1, 2) (float) in shared memory, swizzled by 128 bytes.
template <class Sum>
__global__ void __launch_bounds__(256, 1) multiply_wgmma(unsigned seed, Sum* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ __align__(1024) unsigned columns[4096];
  const auto random = [](unsigned x) {
    x = (x ^ (x >> 15)) * 2246822519u;
    x = (x ^ (x >> 13)) * 3266489917u;
    return std::is_same_v<Sum, float> ? (x & 0x83ff83ffu) | 0x3c003c00u : x;
  };
  for (unsigned k = threadIdx.x; k < 4096; k += 256) columns[k] = random(seed + k);
  asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
  __syncthreads();
  unsigned rows[2][4];
#pragma unroll
  for (unsigned k = 0; k < 8; ++k) rows[k / 4][k % 4] = random(seed + 8 * threadIdx.x + k);
  Sum re[64], im[64];
#pragma unroll
  for (int k = 0; k < 64; ++k) re[k] = im[k] = 0;
  const std::uint64_t b = (cuda::shared_address(columns) & 0x3ffffu) >> 4 | std::uint64_t{1} << 16 |
                          std::uint64_t{64} << 32 | std::uint64_t{1} << 62;
#pragma unroll 1
  for (int round = 0; round < kRounds; ++round) {
    cuda::begin_products();
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      cuda::multiply_128(re, rows[0], b + 2 * part);
      cuda::multiply_128(im, rows[1], b + 2 * part);
    }
    cuda::end_products();
    cuda::wait_products<1>();
  }
  cuda::wait_products<0>();
  cuda::fence_registers(re);
  cuda::fence_registers(im);
  Sum sum = 0;
#pragma unroll
  for (int k = 0; k < 64; ++k) sum += re[k] + im[k];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#else
  __trap();
#endif
}

int multiprocessors() {
  int n = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0));
  return n;
}

}  // namespace

double ceiling_cuda_mma_s8_ops() {
  Queue queue = Queue::cuda();
  const int blocks = multiprocessors() * 8;
  const Buffer<int> out(blocks * 256, MemorySpace::device);
  const auto [median_s, min_s] = detail::time_queue(queue, 0.2, [&] {
    multiply_s8<<<blocks, 256, 0, cuda::stream_of(queue)>>>(1u, out.data());
    RYLE_CUDA_LAUNCHED("multiply_s8");
  });
  return 2.0 * 16 * 8 * 32 * 16 * kRounds * 8 * blocks / median_s;
}

namespace {

/// Operations a second of products of 64 x 128 sums over `depth` values each.
template <class Sum>
double wgmma_ops(int depth) {
  Queue queue = Queue::cuda();
  const int blocks = multiprocessors();
  const Buffer<Sum> out(blocks * 256, MemorySpace::device);
  const auto [median_s, min_s] = detail::time_queue(queue, 0.2, [&] {
    multiply_wgmma<<<blocks, 256, 0, cuda::stream_of(queue)>>>(1u, out.data());
    RYLE_CUDA_LAUNCHED("multiply_wgmma");
  });
  return 2.0 * 64 * 128 * depth * 8 * kRounds * 2 * blocks / median_s;
}

}  // namespace

double ceiling_cuda_wgmma_s8_ops() { return wgmma_ops<int>(32); }
double ceiling_cuda_wgmma_f16_ops() { return wgmma_ops<float>(16); }

double ceiling_cuda_fma_f32_ops() {
  Queue queue = Queue::cuda();
  const int blocks = multiprocessors() * 8;
  const Buffer<float> out(blocks * 256, MemorySpace::device);
  const auto [median_s, min_s] = detail::time_queue(queue, 0.2, [&] {
    multiply_f32<<<blocks, 256, 0, cuda::stream_of(queue)>>>(1.0f, out.data());
    RYLE_CUDA_LAUNCHED("multiply_f32");
  });
  return 2.0 * 16 * kRounds * 256.0 * blocks / median_s;
}

double ceiling_cuda_copy_bytes_per_s() {
  Queue queue = Queue::cuda();
  constexpr std::int64_t kBytes = std::int64_t{2} << 30;
  const Buffer<std::byte> from(kBytes, MemorySpace::device);
  const Buffer<std::byte> to(kBytes, MemorySpace::device);
  detail::fill_random(from.data(), kBytes, false, 5, queue);
  const auto [median_s, min_s] =
      detail::time_queue(queue, 0.2, [&] { copy_bytes(queue, to.data(), from.data(), kBytes); });
  return 2.0 * kBytes / median_s;
}

namespace detail {

bool wants_cuda(const Options& options) {
  const std::string& name = options.implementation;
  const std::string reason = cuda_unavailable_reason();
  if (name.rfind("cuda", 0) == 0 && !reason.empty()) {
    throw DeviceError("benchmark of \"" + name + "\": " + reason);
  }
  return (name == "auto" || name == "all" || name.rfind("cuda", 0) == 0) && reason.empty();
}

void fill_random(void* device_memory, std::int64_t n_bytes, bool gaussian, std::uint64_t seed,
                 Queue& queue) {
  fill<<<multiprocessors() * 8, 256, 0, cuda::stream_of(queue)>>>(
      static_cast<std::uint64_t*>(device_memory), n_bytes / 8, gaussian, mix64(seed));
  RYLE_CUDA_LAUNCHED("fill");
  queue.synchronize();
}

std::pair<double, double> time_queue(Queue& queue, double seconds,
                                     const std::function<void()>& body) {
  const auto stream = cuda::stream_of(queue);
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  RYLE_CUDA(cudaEventCreate(&begin));
  RYLE_CUDA(cudaEventCreate(&end));
  const auto run = [&](int n) {
    RYLE_CUDA(cudaEventRecord(begin, stream));
    for (int k = 0; k < n; ++k) body();
    RYLE_CUDA(cudaEventRecord(end, stream));
    RYLE_CUDA(cudaEventSynchronize(end));
    float milliseconds = 0;
    RYLE_CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
    return 1e-3 * milliseconds;
  };
  run(2);  // module load, first touch
  const int per_group = std::max(1, static_cast<int>(0.02 / std::max(run(3) / 3, 1e-7)) + 1);
  std::vector<double> times;
  double total_s = 0;
  while (times.size() < 5 || total_s < seconds) {
    const double group_s = run(per_group);
    total_s += group_s;
    times.push_back(group_s / per_group);
  }
  RYLE_CUDA(cudaEventDestroy(begin));
  RYLE_CUDA(cudaEventDestroy(end));
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

}  // namespace detail
}  // namespace ryle::bench
