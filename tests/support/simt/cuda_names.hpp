// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cmath>
#include <functional>
#include <utility>

#include "tests/support/half.hpp"
#include "tests/support/simt/simt.hpp"

/// The words of CUDA, for kernels that tests compile as C++ (simt.hpp). Only what kernels of Ryle
/// use: an unknown word is a compile error and belongs here. CMake: ryle_simt_sources() of
/// simt.cmake, for the pragmas of the device compiler.

#ifdef __clang__
#pragma GCC diagnostic ignored "-Wpass-failed"  // loops that were not unrolled
#endif

// Internal linkage: a build with CUDA has a function of the same name, the stub that launches the
// kernel, and the linker would take one of the two for both (the compiler may have inlined it, or
// not).
#define __global__ [[maybe_unused]] static
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __shared__ static __attribute__((used, section("ryle_simt_shared")))
#define threadIdx (::ryle::simt::Machine::here().thread().index)
#define blockIdx (::ryle::simt::Machine::here().block())
#define blockDim (::ryle::simt::Machine::here().grid().threads)
#define gridDim (::ryle::simt::Machine::here().grid().blocks)

using dim3 = ryle::simt::Dim3;
struct int2 {
  int x, y;
};
struct float2 {
  float x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};

// Barriers and warp operations. The line of the call tells barriers apart.
inline void __syncthreads(int line = __builtin_LINE()) {
  ryle::simt::Machine::here().barrier(line);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
  ryle::simt::Machine::here().meet("__syncwarp", line, mask, {});
}

namespace ryle::simt {

template <class T>
Words to_words(T value) {
  static_assert(sizeof(T) <= sizeof(Words));
  Words words{};
  std::memcpy(words.data(), &value, sizeof value);
  return words;
}
template <class T>
T from_words(const Words& words) {
  T value;
  std::memcpy(&value, words.data(), sizeof value);
  return value;
}

/// The value of lane source(lane), or one's own where that lies outside the segment of `width`.
template <class T, class Source>
T shuffle(const char* name, int line, unsigned mask, T value, int width, const Source& source) {
  Machine& machine = Machine::here();
  const int lane = static_cast<int>(machine.thread().lane);
  const auto& all = machine.meet(name, line, mask, to_words(value));
  const int first = lane / width * width;
  const int from = source(lane);
  if (from < first || from >= first + width) return value;
  if ((mask >> from & 1u) == 0)
    throw KernelError(std::string(name) + " at line " + std::to_string(line) + ": lane " +
                      std::to_string(lane) + " reads lane " + std::to_string(from) +
                      ", which is not in the mask");
  return from_words<T>(all[static_cast<std::size_t>(from)]);
}

inline unsigned ballot(const char* name, int line, unsigned mask, bool vote) {
  const auto& all = Machine::here().meet(name, line, mask, to_words(vote));
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1u) != 0 && from_words<bool>(all[lane])) votes |= 1u << lane;
  }
  return votes;
}

}  // namespace ryle::simt

template <class T>
T __shfl_sync(unsigned mask, T value, int from, int width = 32, int line = __builtin_LINE()) {
  return ryle::simt::shuffle("__shfl_sync", line, mask, value, width,
                             [&](int lane) { return lane / width * width + from % width; });
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, int line = __builtin_LINE()) {
  return ryle::simt::shuffle("__shfl_xor_sync", line, mask, value, width,
                             [&](int lane) { return lane ^ with; });
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32,
                   int line = __builtin_LINE()) {
  return ryle::simt::shuffle("__shfl_down_sync", line, mask, value, width,
                             [&](int lane) { return lane + static_cast<int>(by); });
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, int line = __builtin_LINE()) {
  return ryle::simt::shuffle("__shfl_up_sync", line, mask, value, width,
                             [&](int lane) { return lane - static_cast<int>(by); });
}
inline unsigned __ballot_sync(unsigned mask, bool vote, int line = __builtin_LINE()) {
  return ryle::simt::ballot("__ballot_sync", line, mask, vote);
}
inline int __any_sync(unsigned mask, bool vote, int line = __builtin_LINE()) {
  return ryle::simt::ballot("__any_sync", line, mask, vote) != 0;
}
inline int __all_sync(unsigned mask, bool vote, int line = __builtin_LINE()) {
  return ryle::simt::ballot("__all_sync", line, mask, !vote) == 0;
}

namespace ryle::simt {
template <class T, class Of>
T reduce(const char* name, int line, unsigned mask, T value, const Of& of) {
  const auto& all = Machine::here().meet(name, line, mask, to_words(value));
  T result = value;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1u) != 0 && lane != Machine::here().thread().lane)
      result = of(result, from_words<T>(all[lane]));
  return result;
}
}  // namespace ryle::simt

template <class T>
T __reduce_add_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  return ryle::simt::reduce("__reduce_add_sync", line, mask, value, std::plus<T>());
}
template <class T>
T __reduce_min_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  return ryle::simt::reduce("__reduce_min_sync", line, mask, value,
                            [](T a, T b) { return std::min(a, b); });
}
template <class T>
T __reduce_max_sync(unsigned mask, T value, int line = __builtin_LINE()) {
  return ryle::simt::reduce("__reduce_max_sync", line, mask, value,
                            [](T a, T b) { return std::max(a, b); });
}

// Atomics: fibres give way only at barriers, so plain reads and writes do.
template <class T, class U>
T atomicAdd(T* to, U value) {
  const T before = *to;
  if constexpr (std::is_integral_v<T>) {  // wraps
    *to = static_cast<T>(static_cast<std::make_unsigned_t<T>>(before) +
                         static_cast<std::make_unsigned_t<T>>(value));
  } else {
    *to = before + static_cast<T>(value);
  }
  return before;
}
template <class T, class U>
T atomicMax(T* to, U value) {
  return std::exchange(*to, std::max(*to, static_cast<T>(value)));
}
template <class T, class U>
T atomicMin(T* to, U value) {
  return std::exchange(*to, std::min(*to, static_cast<T>(value)));
}
template <class T, class U>
T atomicOr(T* to, U value) {
  return std::exchange(*to, *to | static_cast<T>(value));
}
template <class T, class U>
T atomicAnd(T* to, U value) {
  return std::exchange(*to, *to & static_cast<T>(value));
}
template <class T, class U>
T atomicExch(T* to, U value) {
  return std::exchange(*to, static_cast<T>(value));
}
template <class T>
T atomicCAS(T* to, T compare, T value) {
  const T before = *to;
  if (before == compare) *to = value;
  return before;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

// Arithmetic.
template <class T>
T __ldg(const T* from) {
  return *from;
}
inline int __dp4a(int a, int b, int c) {  // wraps, as the instruction does
  auto sum = static_cast<unsigned>(c);
  for (int k = 0; k < 4; ++k)
    sum += static_cast<unsigned>(static_cast<std::int8_t>(static_cast<unsigned>(a) >> (8 * k)) *
                                 static_cast<std::int8_t>(static_cast<unsigned>(b) >> (8 * k)));
  return static_cast<int>(sum);
}
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int k = 0; k < 4; ++k) c += (a >> (8 * k) & 255u) * (b >> (8 * k) & 255u);
  return c;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  unsigned result = 0;
  for (int k = 0; k < 4; ++k) {
    const unsigned from = selector >> (4 * k) & 7u;
    result |= ((from < 4 ? x >> (8 * from) : y >> (8 * (from - 4))) & 255u) << (8 * k);
  }
  return result;
}
/// The low word of (high, low) shifted right, by 0 .. 31 bits.
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
/// Of the halves of words, each modulo 2^16.
template <class Half>
unsigned of_fp16(unsigned a, unsigned b, unsigned c, const Half& half) {
  const auto of = [&](unsigned at) {
    return half(a >> at & 0xffffu, b >> at & 0xffffu, c >> at & 0xffffu) & 0xffffu;
  };
  return of(0) | of(16) << 16;
}
inline unsigned __vmaxu2(unsigned a, unsigned b) {
  return of_fp16(a, b, 0, [](unsigned x, unsigned y, unsigned) { return std::max(x, y); });
}
inline unsigned __vminu2(unsigned a, unsigned b) {
  return of_fp16(a, b, 0, [](unsigned x, unsigned y, unsigned) { return std::min(x, y); });
}
inline unsigned __viaddmin_u16x2(unsigned a, unsigned b, unsigned c) {
  return of_fp16(a, b, c,
                 [](unsigned x, unsigned y, unsigned z) { return std::min((x + y) & 0xffffu, z); });
}
inline unsigned __viaddmax_u16x2(unsigned a, unsigned b, unsigned c) {
  return of_fp16(a, b, c,
                 [](unsigned x, unsigned y, unsigned z) { return std::max((x + y) & 0xffffu, z); });
}
inline unsigned __viaddmax_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return of_fp16(a, b, c, [](unsigned x, unsigned y, unsigned z) {
    const int sum = static_cast<short>(x + y), other = static_cast<short>(z);
    return static_cast<unsigned>(std::max(0, std::max(sum, other)));
  });
}
inline unsigned __viaddmin_s16x2_relu(unsigned a, unsigned b, unsigned c) {
  return of_fp16(a, b, c, [](unsigned x, unsigned y, unsigned z) {
    const int sum = static_cast<short>(x + y), other = static_cast<short>(z);
    return static_cast<unsigned>(std::max(0, std::min(sum, other)));
  });
}
/// c + the halves of a times the lower, the upper two bytes of b.
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) {
  return c + (a & 0xffffu) * (b & 0xffu) + (a >> 16) * (b >> 8 & 0xffu);
}
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return __dp2a_lo(a, b >> 16, c); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __popcll(unsigned long long x) { return std::popcount(x); }
inline int __clz(unsigned x) { return std::countl_zero(x); }
inline int __clzll(unsigned long long x) { return std::countl_zero(x); }
inline int __ffs(unsigned x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __float2int_rn(float x) {
  return static_cast<int>(std::clamp(std::nearbyint(double{x}), -2147483648.0, 2147483647.0));
}
/// The next float not below x.
inline float __double2float_ru(double x) {
  const auto near = static_cast<float>(x);
  return double{near} < x ? std::nextafter(near, INFINITY) : near;
}
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
template <class T>
T min(T a, T b) {
  return std::min(a, b);
}
template <class T>
T max(T a, T b) {
  return std::max(a, b);
}

/// As device/cuda/kernel.cuh declares them for the device.
namespace ryle::cuda {

template <class T>
T& shared() {
  return *static_cast<T*>(simt::Machine::here().shared(typeid(T), sizeof(T)));
}
inline void* dynamic_shared() { return simt::Machine::here().dynamic_shared(); }

inline void multiply_add_s8(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                            int line = __builtin_LINE()) {
  simt::Machine& machine = simt::Machine::here();
  const auto& all = machine.meet("mma", line, 0xffffffffu, {a[0], a[1], a[2], a[3], b[0], b[1]});
  const unsigned lane = machine.thread().lane;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned row = lane / 4 + 8 * (k / 2);
    const unsigned column = 2 * (lane % 4) + k % 2;
    for (unsigned quarter = 0; quarter < 4; ++quarter) {
      const simt::Words& of_row = all[row % 8 * 4 + quarter];
      const simt::Words& of_column = all[column * 4 + quarter];
      for (unsigned half = 0; half < 2; ++half)
        c[k] = __dp4a(static_cast<int>(of_row[row / 8 + 2 * half]),
                      static_cast<int>(of_column[4 + half]), c[k]);
    }
  }
}

/// Sums of 16 products are rounded once here; the tensor unit cuts them.
inline void multiply_add_f16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2],
                             int line = __builtin_LINE()) {
  simt::Machine& machine = simt::Machine::here();
  const auto& all =
      machine.meet("mma f16", line, 0xffffffffu, {a[0], a[1], a[2], a[3], b[0], b[1]});
  const unsigned lane = machine.thread().lane;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned row = lane / 4 + 8 * (k / 2);
    const unsigned column = 2 * (lane % 4) + k % 2;
    double sum = c[k];
    for (unsigned value = 0; value < 16; ++value) {
      const unsigned quarter = value % 8 / 2, half = value / 8, shift = value % 2 * 16;
      const unsigned of_row = all[row % 8 * 4 + quarter][row / 8 + 2 * half] >> shift;
      const unsigned of_column = all[column * 4 + quarter][4 + half] >> shift;
      sum += static_cast<double>(test::of_half(static_cast<std::uint16_t>(of_row))) *
             test::of_half(static_cast<std::uint16_t>(of_column));
    }
    c[k] = static_cast<float>(sum);
  }
}

inline void load_matrices(unsigned (&r)[4], unsigned address, int line = __builtin_LINE()) {
  simt::Machine& machine = simt::Machine::here();
  const auto& all = machine.meet("ldmatrix", line, 0xffffffffu, {address});
  const unsigned lane = machine.thread().lane;
  for (unsigned m = 0; m < 4; ++m)
    std::memcpy(&r[m], machine.at_address(all[8 * m + lane / 4][0] + 4 * (lane % 4), 4), 4);
}

inline unsigned shared_address(const void* p) { return simt::Machine::here().address_of(p); }
inline unsigned load_shared(unsigned address) {
  unsigned word = 0;
  std::memcpy(&word, simt::Machine::here().at_address(address, 4), 4);
  return word;
}
inline uint4 load_shared_16(unsigned address) {
  uint4 v{};
  std::memcpy(&v, simt::Machine::here().at_address(address, 16), 16);
  return v;
}
inline void copy_16(unsigned to, const void* from, int n_bytes) {
  simt::Machine& machine = simt::Machine::here();
  machine.thread().copies.add([&machine, to, from, n_bytes] {
    std::byte* memory = machine.at_address(to, 16);
    std::memset(memory, 0, 16);
    std::memcpy(memory, from, static_cast<std::size_t>(n_bytes));
  });
}
inline void commit_copies() { simt::Machine::here().thread().copies.commit(); }
template <int kPending>
void wait_copies() {
  simt::Machine::here().thread().copies.wait(kPending);
}
inline void show_to_products() {}

inline void begin_barrier(std::uint64_t* b, unsigned arrivals) {
  const auto n = static_cast<std::uint16_t>(arrivals);
  *reinterpret_cast<simt::Phases*>(b) = {n, n, 0};
}
inline void barriers_begun() {}
inline void arrive(std::uint64_t* b) { reinterpret_cast<simt::Phases*>(b)->arrive(); }
inline void await(std::uint64_t* b, unsigned parity, int line = __builtin_LINE()) {
  simt::Machine::here().await(*reinterpret_cast<const simt::Phases*>(b), parity, line);
  simt::Machine::here().meet("await", line, 0xffffffffu, {});
}

inline void begin_products() {}
inline void end_products() { simt::Machine::here().thread().products.commit(); }
template <int kPending>
void wait_products() {
  simt::Machine::here().thread().products.wait(kPending);
}
inline void fence_registers(int (&)[64]) {}

/// The sums of one thread. Bits 4 to 6 of an address are exchanged by bits 7 to 9.
inline void multiply_swizzled(int (&d)[64], unsigned rows, unsigned columns) {
  simt::Machine& machine = simt::Machine::here();
  int* sums = d;
  const unsigned lane = machine.thread().lane;
  const unsigned warp = machine.thread().warp % 4;
  const auto piece = [&machine](unsigned tile, unsigned row, unsigned p) {
    const unsigned address = tile + row * 128 + 16 * p;
    return reinterpret_cast<const std::int8_t*>(
        machine.at_address(address ^ (address >> 7 & 7u) << 4, 16));
  };
  machine.thread().products.add([=] {
    for (unsigned p = 0; p < 2; ++p) {
      for (unsigned c = 0; c < 32; ++c) {
        const std::int8_t* b = piece(columns, c / 2 * 8 + lane % 4 * 2 + c % 2, p);
        for (unsigned h = 0; h < 2; ++h) {
          const std::int8_t* a = piece(rows, 16 * warp + lane / 4 + 8 * h, p);
          int& sum = sums[c / 2 * 4 + 2 * h + c % 2];
          for (int v = 0; v < 16; ++v) sum += a[v] * b[v];
        }
      }
    }
  });
}

}  // namespace ryle::cuda
