// SPDX-License-Identifier: BSD-3-Clause
// What all instruction sets of the beamformer share: vectors of kWide 32-bit words, sums in floats,
// and everything that follows the sums: detection (|b|^2, Stokes), integration over windows,
// requantisation. cpu/kernel.hpp has the equations and the layout of every array; a lane is a row
// (beam). Included once per instruction-set file, inside an unnamed namespace; kWide is 4, 8 or 16.
// The files are compiled with -ffp-contract=fast: a multiply and an add become one rounding,
// nothing is reassociated.

#include "ryle/simd/vector.inc.hpp"

using V4 = float __attribute__((vector_size(16)));
inline constexpr int kParts = static_cast<int>(kLanes) / kWide;  // vectors of a block

// One vector of raw sums as float.
template <bool Integer>
RYLE_INLINE V raw_at(const void* raw, std::int64_t at) {
  if constexpr (Integer) {
    return __builtin_convertvector(load_as<I>(static_cast<const std::int32_t*>(raw) + at), V);
  } else {
    return load_as<V>(static_cast<const float*>(raw) + at);
  }
}

template <bool Integer, Detection Kind>
RYLE_INLINE void detect_kind(const Detect& d) {
  for (int part = 0; part < kParts; ++part) {
    const std::int64_t lane = part * kWide;
    const V scale_x = load_as<V>(d.scale[0] + lane);
    const V scale_y = load_as<V>(d.scale[d.n_pols - 1] + lane);
    const V power_x = scale_x * scale_x;
    for (std::int64_t t = 0; t < d.n_spectra; ++t) {
      float* to = d.planes + t * kLanes + lane;
      const V xr = raw_at<Integer>(d.raw[0], (2 * t) * kLanes + lane);
      const V xi = raw_at<Integer>(d.raw[0], (2 * t + 1) * kLanes + lane);
      if constexpr (Kind == Detection::voltage) {
        store_as(to, xr * scale_x);
        store_as(to + kPlane, xi * scale_x);
      }
      // Mutation point of T-BF-17: amplitudes averaged instead of powers lose 4.35 % of S/N.
      if constexpr (Kind == Detection::power) store_as(to, (xr * xr + xi * xi) * power_x);
      if (d.n_pols == 1) continue;
      const V yr = raw_at<Integer>(d.raw[1], (2 * t) * kLanes + lane);
      const V yi = raw_at<Integer>(d.raw[1], (2 * t + 1) * kLanes + lane);
      if constexpr (Kind == Detection::voltage) {
        store_as(to + 2 * kPlane, yr * scale_y);
        store_as(to + 3 * kPlane, yi * scale_y);
      } else if constexpr (Kind == Detection::power) {
        store_as(to + kPlane, (yr * yr + yi * yi) * (scale_y * scale_y));
      } else {
        const V half = broadcast(0.5f);
        const V xx = (xr * xr + xi * xi) * power_x;
        const V yy = (yr * yr + yi * yi) * (scale_y * scale_y);
        store_as(to, (xx + yy) * half);
        if constexpr (Kind == Detection::stokes_iquv) {
          const V cross_scale = scale_x * scale_y;
          store_as(to + kPlane, (xx - yy) * half);
          store_as(to + 2 * kPlane, (xr * yr + xi * yi) * cross_scale);
          store_as(to + 3 * kPlane, (xi * yr - xr * yi) * cross_scale);
        }
      }
    }
  }
}

template <bool Integer>
void detect(const Detect& d) {
  switch (d.detection) {
    case Detection::voltage:
      return detect_kind<Integer, Detection::voltage>(d);
    case Detection::power:
      return detect_kind<Integer, Detection::power>(d);
    case Detection::stokes_i:
      return detect_kind<Integer, Detection::stokes_i>(d);
    case Detection::stokes_iquv:
      return detect_kind<Integer, Detection::stokes_iquv>(d);
  }
}

// Adds spectra one after the other (the order of time, so that gulps and tiles change no bit).
inline std::int64_t integrate(const Integrate& i) {
  std::int64_t windows = 0;
  for (int part = 0; part < kParts; ++part) {
    const std::int64_t lane = part * kWide;
    V inner = load_as<V>(i.window->inner + lane), outer = load_as<V>(i.window->outer + lane);
    V count = load_as<V>(i.window->count + lane);
    const V any = load_as<V>(i.any + lane);
    std::int64_t position = i.position;
    windows = 0;
    for (std::int64_t t = 0; t < i.n_spectra;) {
      std::int64_t run = i.n_spectra - t;
      const std::int64_t to_end = i.integration - position, to_fold = kFold - position % kFold;
      if (to_end < run) run = to_end;
      if (to_fold < run) run = to_fold;
      for (std::int64_t k = 0; k < run; ++k) inner += load_as<V>(i.plane + (t + k) * kLanes + lane);
      count += any * broadcast(static_cast<float>(run));
      t += run;
      position += run;
      if (position % kFold == 0 || position == i.integration) {
        outer += inner;
        inner = V{};
      }
      if (position < i.integration) continue;
      const V n = i.raw ? broadcast(static_cast<float>(i.integration)) : count;
      // count 0: the sum is 0 and 0 / 1 is 0.
      const V divisor = n + (n == V{} ? broadcast(1.0f) : V{});
      store_as(i.plane + windows++ * kLanes + lane, outer / divisor);
      position = 0;
      outer = count = V{};
    }
    store_as(i.window->inner + lane, inner);
    store_as(i.window->outer + lane, outer);
    store_as(i.window->count + lane, count);
  }
  return windows;
}

inline void quantize(const Quantize& q) {
  for (int part = 0; part < kParts; ++part) {
    const std::int64_t lane = part * kWide;
    const V scale = load_as<V>(q.scale + lane), offset = load_as<V>(q.offset + lane);
    // One unit past the limits is enough to be counted, and keeps the rounding below exact.
    const V floor_value = broadcast(static_cast<float>(q.low - 1));
    const V ceiling_value = broadcast(static_cast<float>(q.high + 1));
    const V magic = broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to nearest even
    const I low = q.low - I{}, high = q.high - I{};
    I n_low = load_as<I>(q.n_low + lane), n_high = load_as<I>(q.n_high + lane);
    for (std::int64_t k = 0; k < q.n; ++k) {
      V value = load_as<V>(q.plane + k * kLanes + lane) * scale + offset;
      value = value > floor_value ? value : floor_value;
      value = value < ceiling_value ? value : ceiling_value;
      I code = __builtin_convertvector((value + magic) - magic, I);
      n_low -= code < low;
      n_high -= code > high;
      code = code < low ? low : code;
      code = code > high ? high : code;
      store_as(q.codes + k * kLanes + lane, code);
    }
    store_as(q.n_low + lane, n_low);
    store_as(q.n_high + lane, n_high);
  }
}

// 4 x 4 transposes: 4 successive times of 4 lanes.
inline void store_f32(const float* plane, std::int64_t n, const Rows& out) {
  const auto row = [&](std::int64_t lane) {
    return reinterpret_cast<float*>(out.first + lane * out.stride_bytes);
  };
  std::int64_t lane = 0;
  for (; lane + 4 <= out.n_lanes; lane += 4) {
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
      const float* from = plane + k * kLanes + lane;
      const V4 a = load_as<V4>(from), b = load_as<V4>(from + kLanes);
      const V4 c = load_as<V4>(from + 2 * kLanes), d = load_as<V4>(from + 3 * kLanes);
      const V4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const V4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const V4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const V4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      store_as(row(lane) + k, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
      store_as(row(lane + 1) + k, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
      store_as(row(lane + 2) + k, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
      store_as(row(lane + 3) + k, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }
    for (; k < n; ++k) {
      for (std::int64_t l = lane; l < lane + 4; ++l) row(l)[k] = plane[k * kLanes + l];
    }
  }
  for (; lane < out.n_lanes; ++lane) {
    for (std::int64_t k = 0; k < n; ++k) row(lane)[k] = plane[k * kLanes + lane];
  }
}

// @eq raw = sum_a (wr + i wi)(xr + i xi), kSpectra spectra at a time; antennas in order
inline void multiply_f32(const Multiply& m) {
  const auto* samples = static_cast<const std::uint8_t*>(m.samples);
  for (int part = 0; part < kParts / kPartsAtOnce; ++part) {
    const std::int64_t lane = part * kWide * kPartsAtOnce;
    for (std::int64_t t = 0; t < m.n_spectra; t += kSpectra) {
      V re[kSpectra][kPartsAtOnce], im[kSpectra][kPartsAtOnce];
      static_for<0, kSpectra>([&](auto s) RYLE_ALWAYS {
        static_for<0, kPartsAtOnce>([&](auto p) RYLE_ALWAYS { re[s][p] = im[s][p] = V{}; });
      });
      const float* weight = static_cast<const float*>(m.weights) + lane;
      const std::uint8_t* at = samples + t * m.spectrum_stride_bytes;
      for (std::int64_t step = 0; step < m.n_steps; ++step) {
        V wr[kPartsAtOnce], wi[kPartsAtOnce];
        static_for<0, kPartsAtOnce>([&](auto p) RYLE_ALWAYS {
          wr[p] = load_as<V>(weight + p * kWide);
          wi[p] = load_as<V>(weight + kLanes + p * kWide);
        });
        static_for<0, kSpectra>([&](auto s) RYLE_ALWAYS {
          const auto* x = at + s * m.spectrum_stride_bytes;
          const V xr = broadcast(load_as<float>(x)), xi = broadcast(load_as<float>(x + 4));
          static_for<0, kPartsAtOnce>([&](auto p) RYLE_ALWAYS {
            re[s][p] += wr[p] * xr;
            im[s][p] += wi[p] * xr;
            re[s][p] -= wi[p] * xi;
            im[s][p] += wr[p] * xi;
          });
        });
        weight += 2 * kLanes;
        at += m.step_stride_bytes;
      }
      float* raw = static_cast<float*>(m.raw) + 2 * t * kLanes + lane;
      static_for<0, kSpectra>([&](auto s) RYLE_ALWAYS {
        static_for<0, kPartsAtOnce>([&](auto p) RYLE_ALWAYS {
          store_as(raw + 2 * s * kLanes + p * kWide, re[s][p]);
          store_as(raw + (2 * s + 1) * kLanes + p * kWide, im[s][p]);
        });
      });
    }
  }
}
