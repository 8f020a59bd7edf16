// SPDX-License-Identifier: BSD-3-Clause
// The correlator in portable C++, for any architecture: cpu/tile.hpp has equation and layout. The
// compiler makes its own vectors; a tile is 2 rows x 8 columns.
#include "ryle/engine/correlate/cpu/tile.hpp"

namespace ryle::correlate::detail {
namespace {

struct ShortVector {
  std::int16_t lane[16];
};

// Pairs of 16-bit products, 8 columns; wrap-around in unsigned arithmetic is defined.
struct Shorts : ShortCell {
  struct Vec {
    std::uint32_t lane[8];
  };
  static constexpr std::int64_t kColumns = 8;
  static constexpr int kMaxRows = 2;
  static Vec zero() { return {}; }
  static Vec load(const std::uint8_t* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static Vec broadcast(const std::uint8_t* p) {
    std::uint32_t word;
    std::memcpy(&word, p, 4);
    Vec v;
    for (auto& lane : v.lane) lane = word;
    return v;
  }
  static Vec dot(Vec acc, const Vec& b, const Vec& a) {
    ShortVector x;
    ShortVector y;
    std::memcpy(&x, &b, sizeof x);
    std::memcpy(&y, &a, sizeof y);
    for (int k = 0; k < 8; ++k) {
      acc.lane[k] += static_cast<std::uint32_t>(x.lane[2 * k] * y.lane[2 * k] +
                                                x.lane[2 * k + 1] * y.lane[2 * k + 1]);
    }
    return acc;
  }
  static void add(std::int32_t* to, const Vec& re, const Vec& im) {
    for (int k = 0; k < 8; ++k) {
      to[k] = static_cast<std::int32_t>(static_cast<std::uint32_t>(to[k]) + re.lane[k]);
      to[8 + k] = static_cast<std::int32_t>(static_cast<std::uint32_t>(to[8 + k]) + im.lane[k]);
    }
  }
};

struct Floats : FloatCell {
  struct Vec {
    float lane[8];
  };
  static constexpr std::int64_t kColumns = 8;
  static constexpr int kMaxRows = 2;
  static Vec zero() { return {}; }
  static Vec load(const std::uint8_t* p) {
    Vec v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static Vec broadcast(const std::uint8_t* p) {
    float value;
    std::memcpy(&value, p, 4);
    Vec v;
    for (auto& lane : v.lane) lane = value;
    return v;
  }
  static Vec dot(Vec acc, const Vec& b, const Vec& a) {
    for (int k = 0; k < 8; ++k) acc.lane[k] += b.lane[k] * a.lane[k];
    return acc;
  }
  static void add(double* to, const Vec& re, const Vec& im) {
    for (int k = 0; k < 8; ++k) {
      to[k] += static_cast<double>(re.lane[k]);
      to[8 + k] += static_cast<double>(im.lane[k]);
    }
  }
};

constexpr CpuKernel kShorts = make_kernel<Shorts>("generic", 8, pack_words<Shorts>);
constexpr CpuKernel kFloats = make_kernel<Floats>("generic", 16, pack_words<Floats>);

}  // namespace

const CpuKernel* cpu_kernel_generic() { return &kShorts; }
const CpuKernel* cpu_kernel_generic_f32() { return &kFloats; }

}  // namespace ryle::correlate::detail
