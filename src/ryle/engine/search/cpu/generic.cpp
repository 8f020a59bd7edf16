// SPDX-License-Identifier: BSD-3-Clause
// The search on any CPU, 16 bytes in the compilers' own vectors; the loops with their equations are
// in cpu/*.inc.hpp.
#include <cstring>

#include "ryle/engine/search/cpu/make.inc.hpp"

namespace ryle::search::detail {
namespace {

struct Generic {
  using Type = std::uint16_t __attribute__((vector_size(16)));
  using Bytes = std::uint8_t __attribute__((vector_size(16)));
  static constexpr std::int64_t kBytes = 16;
  static constexpr int kTrials = 2;
  static Type load(const void* from) {
    Type x;
    std::memcpy(&x, from, sizeof x);
    return x;
  }
  static void store(void* to, Type x) { std::memcpy(to, &x, sizeof x); }
  static void pin(Type&) {}
  static Type zero() { return Type{}; }
  static Type all16(std::uint16_t x) { return Type{x, x, x, x, x, x, x, x}; }
  static Type add8(Type a, Type b) {
    return reinterpret_cast<Type>(reinterpret_cast<Bytes>(a) + reinterpret_cast<Bytes>(b));
  }
  static Type add16(Type a, Type b) { return a + b; }
  static Type sub16(Type a, Type b) { return a - b; }
  static Type high_bytes(Type x) { return x >> 8; }
  static Type bytes_up(Type x) { return x << 8; }
  static Type all8(std::uint8_t x) { return all16(static_cast<std::uint16_t>(x * 257)); }
  static Type add_saturated8(Type a, Type b) {
    const Bytes x = reinterpret_cast<Bytes>(a), sum = x + reinterpret_cast<Bytes>(b);
    return reinterpret_cast<Type>(sum | reinterpret_cast<Bytes>(sum < x));
  }
  static Type subtract_saturated8(Type a, Type b) {
    const Bytes x = reinterpret_cast<Bytes>(a), y = reinterpret_cast<Bytes>(b);
    return reinterpret_cast<Type>((x - y) & reinterpret_cast<Bytes>(x > y));
  }
  static Type max8(Type a, Type b) {
    const Bytes x = reinterpret_cast<Bytes>(a), y = reinterpret_cast<Bytes>(b);
    const Bytes first = reinterpret_cast<Bytes>(x > y);
    return reinterpret_cast<Type>((x & first) | (y & ~first));
  }
  static Type either(Type a, Type b) { return a | b; }
  static Type both(Type a, Type b) { return a & b; }
  static bool any(Type x) {
    std::uint64_t halves[2];
    std::memcpy(halves, &x, sizeof halves);
    return (halves[0] | halves[1]) != 0;
  }
  /// Even and odd samples back in order.
  static void in_order(Type even, Type odd, Type& low, Type& high) {
    low = __builtin_shufflevector(even, odd, 0, 8, 1, 9, 2, 10, 3, 11);
    high = __builtin_shufflevector(even, odd, 4, 12, 5, 13, 6, 14, 7, 15);
  }
};

constexpr CpuKernel kKernel = make_kernel<Generic>("generic");

}  // namespace

const CpuKernel* cpu_kernel_generic() { return &kKernel; }

}  // namespace ryle::search::detail
