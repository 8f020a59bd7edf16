// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Kernels that turn sums in memory into stored products, of any kind and format, and kernels that count what lost
// inputs cost. finish and finish_long compute, for one (row, channel) and one window of T spectra,
//   <p> = sum of p(t) / count over [n T, (n+1) T),  p = |b|^2 or a Stokes parameter,   code = rne(<p> scale + offset)
//
//   array            axes                                type        unit
//   a.sums           [pol][channel][beam][pitch]         float2      before the scale of the weights
//   a.powers         [pol][channel][row][pitch]          float       instead; each of inner_spectra spectra
//   a.windows_in,    [row][product][channel]             CudaWindow  windows that began in the last gulp, or go on
//     a.windows_out                                                  in the next
//   a.scale, offset  [row][product][channel]             float       requantisation
//   a.values         [row][product][channel][window]     f32, u8, cf32, ci4, ...
//   a.low, a.high    [row][product][channel]             uint32      values cut
//
// A thread owns one window; windows longer than 64 spectra have up to 32 neighbouring lanes. Spectra are added in the
// order of the CPU engine, in runs of 64, so that the bits are the same for any gulps. Reads of neighbouring
// windows are T spectra apart: that is why long windows are shared (docs/decisions/0009: T = 1,000,
// 16 beams, 0.98 ms became 0.38).
// clang-format on
#include <algorithm>
#include <bit>

#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/beamform/cuda/samples.cuh"

namespace ryle::beamform::detail {
namespace {

constexpr int kFoldSpectra = 64;
/// Counts of spectra up to this are the same floats in any order.
constexpr std::int64_t kMaxCounted = 1 << 24;

__host__ __device__ std::int64_t floored(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// core/random.hpp and dither.hpp on the device.
__device__ std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
__device__ std::uint64_t chain(std::uint64_t a, std::uint64_t b) {
  return mix_bits(mix_bits(a) ^ b);
}

__device__ double dither_of(const FinishArgs& a, std::int64_t row, std::int64_t channel, int pol,
                            Tick tick, int part) {
  const std::uint64_t key = chain(chain(a.seed, static_cast<std::uint64_t>(row)),
                                  static_cast<std::uint64_t>(2 * channel + pol));
  const std::uint64_t bits = chain(key, static_cast<std::uint64_t>(tick)) >> (32 * part);
  const int first = static_cast<std::int16_t>(bits);
  const int second = static_cast<std::int16_t>(bits >> 16);
  return (first + second + 1) * 0x1p-16;
}

__device__ int code_of(double value, int low, int high, bool& cut_low, bool& cut_high) {
  const double code = rint(value);
  cut_low = code < low;
  cut_high = code > high;
  return static_cast<int>(fmin(fmax(code, static_cast<double>(low)), static_cast<double>(high)));
}

struct Where {
  std::int64_t row, channel;  // of all
  std::int64_t local;         // channel of the launch
};

__device__ std::int64_t table_at(const FinishArgs& a, const Where& w, int product) {
  return (w.row * a.n_products + product) * a.all_channels + w.channel;
}

__device__ void count_cuts(const FinishArgs& a, std::int64_t at, bool low, bool high) {
  if (low && a.low != nullptr) atomicAdd(a.low + at, 1u);
  if (high && a.high != nullptr) atomicAdd(a.high + at, 1u);
}

__device__ void store_power(const FinishArgs& a, const Where& w, int product, std::int64_t index,
                            float value) {
  std::byte* to = a.values + w.row * a.row_stride_bytes + product * a.product_stride_bytes +
                  w.channel * a.channel_stride_bytes;
  const std::int64_t at = table_at(a, w, product);
  bool low = false, high = false;
  if (a.format == OutputFormat::f32) {
    reinterpret_cast<float*>(to)[index] = value;
    return;
  }
  if (a.format == OutputFormat::f16) {
    high = value >= 65520.0f;  // what rounds beyond 65504
    low = value <= -65520.0f;
    reinterpret_cast<__half*>(to)[index] =
        __float2half_rn(fminf(fmaxf(value, -65504.0f), 65504.0f));
  } else {
    const int maximum = a.format == OutputFormat::u8 ? 255 : 65535;
    const int code =
        code_of(static_cast<double>(fmaf(value, a.scale[at], a.offset[at])), 0, maximum, low, high);
    if (a.format == OutputFormat::u8)
      reinterpret_cast<std::uint8_t*>(to)[index] = static_cast<std::uint8_t>(code);
    else
      reinterpret_cast<std::uint16_t*>(to)[index] = static_cast<std::uint16_t>(code);
  }
  count_cuts(a, at, low, high);
}

__device__ void store_voltage(const FinishArgs& a, const Where& w, std::int64_t t, int pol,
                              float2 value) {
  std::byte* to = a.values + w.row * a.row_stride_bytes + w.channel * a.channel_stride_bytes;
  const std::int64_t index = (a.first_spectrum + t) * a.n_pols + pol;
  if (a.format == OutputFormat::cf32) {
    reinterpret_cast<float2*>(to)[index] = value;
    return;
  }
  if (a.format == OutputFormat::cf16) {
    reinterpret_cast<__half2*>(to)[index] = __floats2half2_rn(value.x, value.y);
    return;
  }
  const std::int64_t at = table_at(a, w, 0);
  const int maximum = a.format == OutputFormat::ci8 ? 127 : 7;
  int codes[2];
  for (int part = 0; part < 2; ++part) {
    const float v = part == 0 ? value.x : value.y;
    double scaled = static_cast<double>(v * a.scale[at]);
    if (a.dither) {
      scaled = static_cast<double>(static_cast<float>(
          static_cast<double>(v) * static_cast<double>(a.scale[at]) +
          dither_of(a, w.row, w.channel, pol, a.gulp_tick + a.first_spectrum + t, part)));
    }
    bool low = false, high = false;
    codes[part] = code_of(scaled, -maximum, maximum, low, high);
    count_cuts(a, at, low, high);
  }
  if (a.format == OutputFormat::ci8) {
    reinterpret_cast<char2*>(to)[index] = {static_cast<signed char>(codes[0]),
                                           static_cast<signed char>(codes[1])};
  } else {
    reinterpret_cast<std::uint8_t*>(to)[index] =
        static_cast<std::uint8_t>((codes[0] & 15) << 4 | (codes[1] & 15));
  }
}

struct Lost {
  float factor[2];
  bool any;
};

__device__ Lost loss_at(const FinishArgs& a, const Where& w, std::int64_t t) {
  Lost lost{{1, 1}, true};
  if (a.loss.factor == nullptr) return lost;
  const std::int64_t slot = (a.first_spectrum + t) / a.loss.slot_spectra;
#pragma unroll
  for (int pol = 0; pol < 2; ++pol) {
    if (pol >= a.n_pols) break;
    lost.factor[pol] =
        a.loss.factor[((pol * a.loss.n_rows + w.row) * a.loss.n_channels + w.channel) *
                          a.loss.n_slots +
                      slot];
    lost.any = lost.any && lost.factor[pol] != 0;
  }
  return lost;
}

// Products of one spectrum (or inner sum), scale and losses included.
__device__ void products_of(const FinishArgs& a, const Where& w, std::int64_t t, const Lost& lost,
                            float (&products)[4]) {
  float power[2] = {0, 0};
  float2 beam[2] = {};
  float scale[2] = {1, 1};
#pragma unroll
  for (int pol = 0; pol < 2; ++pol) {
    if (pol >= a.n_pols) break;
    const std::int64_t plane = static_cast<std::int64_t>(pol) * a.n_channels + w.local;
    if (a.powers != nullptr) {
      power[pol] = a.powers[(plane * a.n_rows + w.row - a.first_row) * a.pitch + t] *
                   (a.scaled ? 1.0f : lost.factor[pol]) * a.power_scale;
      continue;
    }
    beam[pol] = a.sums[(plane * a.n_rows + w.row - a.first_row) * a.pitch + t];
    scale[pol] = a.weight_scale[(w.row * a.n_pols + pol) * a.all_channels + w.channel] *
                 (lost.any ? lost.factor[pol] : 0.0f);
    power[pol] =
        (beam[pol].x * beam[pol].x + beam[pol].y * beam[pol].y) * (scale[pol] * scale[pol]);
  }
  products[0] = power[0];
  products[1] = power[1];
  if (a.kind == OutputKind::power) return;
  products[0] = (power[0] + power[1]) * 0.5f;
  products[1] = (power[0] - power[1]) * 0.5f;
  const float cross = scale[0] * scale[1];
  products[2] = (beam[0].x * beam[1].x + beam[0].y * beam[1].y) * cross;
  products[3] = (beam[0].y * beam[1].x - beam[0].x * beam[1].y) * cross;
}

__device__ void voltages(const FinishArgs& a, const Where& w, std::int64_t t) {
  const Lost lost = loss_at(a, w, t);
  for (int pol = 0; pol < a.n_pols; ++pol) {
    const std::int64_t plane = static_cast<std::int64_t>(pol) * a.n_channels + w.local;
    const float2 beam = a.sums[(plane * a.n_rows + w.row - a.first_row) * a.pitch + t];
    const float scale =
        a.weight_scale[(w.row * a.n_pols + pol) * a.all_channels + w.channel] * lost.factor[pol];
    store_voltage(a, w, t, pol, {beam.x * scale, beam.y * scale});
  }
}

/// Spectra [begin, end) of window `number` that are in this launch; the first is the window's
/// spectrum `position`.
struct Span {
  std::int64_t number, begin, end, position;
  __device__ Span(const FinishArgs& a, std::int64_t number_) : number(number_) {
    const Tick first_tick = a.gulp_tick + a.first_spectrum;
    begin = max(std::int64_t{0}, number * a.integration - first_tick);
    end = min(a.n_spectra, (number + 1) * a.integration - first_tick);
    position = first_tick + begin - number * a.integration;
  }
  __device__ std::int64_t last_position() const { return position + end - begin; }
};

__host__ __device__ int products_in(const FinishArgs& a) { return a.scaled ? 1 : a.n_products; }

/// body(p) for each product, kMax or fewer: unrolled, so that what they index stays in registers.
template <int kMax, class Body>
__device__ void for_products(const FinishArgs& a, const Body& body) {
  const int n = products_in(a);
#pragma unroll
  for (int p = 0; p < kMax; ++p) {
    if (p < n) body(p);
  }
}

/// What was summed of the window before this launch.
template <int kMax>
__device__ void resume(const FinishArgs& a, const Where& w, const Span& span,
                       CudaWindow (&sum)[kMax]) {
  if (span.position == 0 || a.integration == 1) return;
  for_products<kMax>(a, [&](int p) { sum[p] = a.windows_in[table_at(a, w, p + a.first_product)]; });
}

/// Spectra at [from, to) of a window, all of one run of kFoldSpectra, onto `inner` and `count`.
template <int kMax>
__device__ void add_run(const FinishArgs& a, const Where& w, const Span& span, std::int64_t from,
                        std::int64_t to, CudaWindow (&sum)[kMax]) {
  std::int64_t t = span.begin + from - span.position;
  std::int64_t index = t >> (63 - __clzll(a.inner_spectra));  // 1 or a power of 2
  const std::int64_t end = t + to - from;
  for (; t < end; t += a.inner_spectra, ++index) {
    const Lost lost = loss_at(a, w, t);
    float products[4];
    products_of(a, w, index, lost, products);
    for_products<kMax>(a, [&](int p) {
      sum[p].inner += products[p];
      sum[p].count += lost.any ? static_cast<float>(a.inner_spectra) : 0.0f;
    });
  }
}
__device__ bool ends_run(const FinishArgs& a, std::int64_t position) {
  return position % kFoldSpectra == 0 || position == a.integration;
}

/// A whole window goes to its place, an unfinished one to the next launch.
template <int kMax>
__device__ void leave(const FinishArgs& a, const Where& w, const Span& span,
                      const CudaWindow (&sum)[kMax]) {
  const std::int64_t index = span.number - floored(a.gulp_tick, a.integration);
  for_products<kMax>(a, [&](int p) {
    if (span.last_position() < a.integration) {
      a.windows_out[table_at(a, w, p + a.first_product)] = sum[p];
      return;
    }
    const float n = a.divide_by_all ? static_cast<float>(a.integration) : sum[p].count;
    store_power(a, w, p + a.first_product, index, sum[p].outer / (n == 0 ? 1.0f : n));
  });
}

template <int kMax>
__device__ void window_of(const FinishArgs& a, const Where& w, const Span& span) {
  CudaWindow sum[kMax] = {};
  resume(a, w, span, sum);
  for (std::int64_t at = span.position; at < span.last_position();) {
    const std::int64_t run_end = (at / kFoldSpectra + 1) * kFoldSpectra;
    const std::int64_t end = min(run_end, span.last_position());
    add_run(a, w, span, at, end, sum);
    at = end;
    if (!ends_run(a, end)) continue;
    for_products<kMax>(a, [&](int p) {
      sum[p].outer += sum[p].inner;
      sum[p].inner = 0;
    });
  }
  leave(a, w, span, sum);
}

__device__ float sum_of(float mine, int lanes) {
  for (int k = 1; k < lanes; k *= 2) mine += __shfl_xor_sync(~0u, mine, k);
  return mine;
}

/// The same by `lanes` neighbours, a power of 2: each adds runs of its own, all add the sums of
/// runs in order. Lanes of a warp go around as often, whichever their windows.
template <int kMax>
__device__ void window_of(const FinishArgs& a, const Where& w, const Span& span, int lanes,
                          bool exists) {
  const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  CudaWindow sum[kMax] = {}, part[kMax] = {};  // of the window; of this lane
  float rest[kMax] = {};
  if (exists) resume(a, w, span, sum);
  for_products<kMax>(a, [&](int p) { part[p].inner = lane == 0 ? sum[p].inner : 0; });
  const std::int64_t last = exists ? span.last_position() : 0;
  const std::int64_t maximum =
      min((a.integration + kFoldSpectra - 1) / kFoldSpectra, a.n_spectra / kFoldSpectra + 2);
  std::int64_t run = span.position / kFoldSpectra + lane;
  for (std::int64_t left = maximum; left > 0; left -= lanes, run += lanes) {
    const std::int64_t begin = max(run * kFoldSpectra, span.position);
    const std::int64_t end = min((run + 1) * kFoldSpectra, last);
    if (begin < end) add_run(a, w, span, begin, end, part);
    const bool whole = begin < end && ends_run(a, end);
    const int others = static_cast<int>(min(std::int64_t{lanes}, left));
    for_products<kMax>(a, [&](int p) {
      const float added = whole ? part[p].inner : 0;  // 0 changes no sum
      for (int k = 0; k < others; ++k) sum[p].outer += __shfl_sync(~0u, added, k, lanes);
      if (!whole) rest[p] += part[p].inner;
      part[p].inner = 0;
    });
  }
  for_products<kMax>(a, [&](int p) {
    sum[p].count += sum_of(part[p].count, lanes);
    sum[p].inner = sum_of(rest[p], lanes);  // of one lane at most
  });
  if (exists && lane == 0) leave(a, w, span, sum);
}

__device__ Where where_of(const FinishArgs& a, int cell) {
  return {a.first_row + cell % a.n_rows, a.first_channel + cell / a.n_rows, cell / a.n_rows};
}

/// A thread a window (voltages: a spectrum). kMax: products of a row that are kept at a time.
template <int kMax>
__global__ void finish(const FinishArgs a, std::int64_t per_row, std::int64_t first_window) {
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t cells = static_cast<std::int64_t>(a.n_channels) * a.n_rows;
  if (id >= per_row * cells) return;
  const std::int64_t cell = id / per_row;
  const std::int64_t k = id - cell * per_row;
  const Where w = where_of(a, static_cast<int>(cell));
  if (a.kind == OutputKind::voltage) return voltages(a, w, k);
  window_of<kMax>(a, w, Span(a, first_window + k));
}

/// Blocks: a (row, channel) each, and pieces of its windows.
template <int kMax>
__global__ void finish_long(const FinishArgs a, std::int64_t per_row, std::int64_t first_window,
                            int lanes) {
  const unsigned k = (blockIdx.y * blockDim.x + threadIdx.x) / static_cast<unsigned>(lanes);
  window_of<kMax>(a, where_of(a, static_cast<int>(blockIdx.x)), Span(a, first_window + k), lanes,
                  k < per_row);
}

/// Computes what lost inputs cost: factor[pol][row][channel][slot] = sum of |w| over all inputs /
/// over those that were there, and n_used and weight_power [beam][channel]. One thread takes one
/// (row, channel) and goes through its slots and inputs in order.
__global__ void losses(const LossArgs a) {
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const std::int64_t rows = a.n_beams + a.n_incoherent;
  if (id >= rows * a.n_channels) return;
  const std::int64_t row = id / a.n_channels, channel = id % a.n_channels;
  const int words = (a.n_inputs + 63) / 64;
  const bool coherent = row < a.n_beams;
  std::uint32_t used = 0;
  double power = 0;
  for (std::int64_t slot = 0; slot < a.n_slots; ++slot) {
    const std::int64_t spectra = min(a.slot_spectra, a.n_spectra - slot * a.slot_spectra);
    const std::uint64_t* bits =
        a.present == nullptr
            ? nullptr
            : a.present + ((a.present_per_channel ? channel * a.n_slots : 0) + slot) * words;
    double all[2] = {}, there[2] = {};
    std::uint32_t slot_used = 0;
    double slot_power = 0;
    for (int input = 0; input < a.n_inputs; ++input) {
      const int pol = input % a.n_pols;
      double size = 0;
      if (coherent) {
        const std::int64_t at = (row * a.n_channels + channel) * a.n_inputs + input;
        const float2 w = a.codes != nullptr ? float2{static_cast<float>(a.codes[at].x),
                                                     static_cast<float>(a.codes[at].y)}
                                            : a.floats[at];
        size = hypot(static_cast<double>(w.x), static_cast<double>(w.y)) *
               static_cast<double>(a.weight_scale[(row * a.n_pols + pol) * a.n_channels + channel]);
      } else {
        size = a.mask[(row - a.n_beams) * (a.n_inputs / a.n_pols) + input / a.n_pols] != 0;
      }
      all[pol] += size;
      const bool here = bits == nullptr || (bits[input >> 6] >> (input & 63) & 1u) != 0;
      if (!here || size == 0) continue;
      there[pol] += size;
      ++slot_used;
      slot_power += size * size;
    }
    used += slot_used * static_cast<std::uint32_t>(spectra);
    power += slot_power * static_cast<double>(spectra);
    if (a.factor == nullptr) continue;
    float factor[2] = {1, 1};
    bool any = true;
    for (int pol = 0; pol < a.n_pols; ++pol) {
      const bool nothing = !(there[pol] > 0);
      const bool whole = there[pol] == all[pol];
      factor[pol] =
          nothing ? 0.0f : (whole || a.raw ? 1.0f : static_cast<float>(all[pol] / there[pol]));
      any = any && !nothing;
    }
    for (int pol = 0; pol < a.n_pols; ++pol) {
      a.factor[((pol * rows + row) * a.n_channels + channel) * a.n_slots + slot] =
          any || !a.needs_all_pols ? factor[pol] : 0.0f;
    }
  }
  if (!coherent) return;
  const std::int64_t at = row * a.n_channels + channel;
  if (a.n_used != nullptr) a.n_used[at] = used;
  if (a.weight_power != nullptr)
    a.weight_power[at] = static_cast<float>(power / static_cast<double>(a.n_spectra));
}

/// The counts of a gulp without losses, from those of one spectrum. A thread takes one (beam,
/// channel).
__global__ void whole_counts(const LossArgs a) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= static_cast<std::int64_t>(a.n_beams) * a.n_channels) return;
  if (a.n_used != nullptr) a.n_used[at] = a.full_used[at] * static_cast<std::uint32_t>(a.n_spectra);
  if (a.weight_power != nullptr) a.weight_power[at] = a.n_spectra > 0 ? a.full_power[at] : 0;
}

int blocks_for(std::int64_t threads, int per_block) {
  return static_cast<int>((threads + per_block - 1) / per_block);
}

}  // namespace

void launch_finish(const FinishArgs& a, cudaStream_t stream) {
  if (a.n_spectra == 0 || a.n_rows == 0 || a.n_channels == 0) return;
  std::int64_t per_row = a.n_spectra, first_window = 0;
  if (a.kind != OutputKind::voltage) {
    const Tick first = a.gulp_tick + a.first_spectrum;
    first_window = floored(first, a.integration);
    per_row = floored(first + a.n_spectra - 1, a.integration) - first_window + 1;
  }
  const bool one = products_in(a) == 1;
  constexpr int kThreads = 128;
  const std::int64_t cells = std::int64_t{a.n_rows} * a.n_channels;
  const std::int64_t runs =
      (std::min(a.integration, a.n_spectra) + kFoldSpectra - 1) / kFoldSpectra;
  if (a.kind != OutputKind::voltage && runs > 1 && a.integration <= kMaxCounted) {
    const int lanes = static_cast<int>(std::bit_ceil(std::min<std::uint64_t>(32, runs)));
    const dim3 blocks(static_cast<unsigned>(cells), blocks_for(per_row * lanes, kThreads));
    auto* kernel = one ? finish_long<1> : finish_long<4>;
    kernel<<<blocks, kThreads, 0, stream>>>(a, per_row, first_window, lanes);
    RYLE_CUDA_LAUNCHED("beamform finish, long windows");
    return;
  }
  auto* kernel = one ? finish<1> : finish<4>;
  kernel<<<blocks_for(per_row * cells, kThreads), kThreads, 0, stream>>>(a, per_row, first_window);
  RYLE_CUDA_LAUNCHED("beamform finish");
}

void launch_loss(const LossArgs& a, cudaStream_t stream) {
  if (a.present == nullptr || a.n_spectra == 0) {
    if (a.n_beams == 0 || (a.n_used == nullptr && a.weight_power == nullptr)) return;
    whole_counts<<<blocks_for(std::int64_t{a.n_beams} * a.n_channels, 128), 128, 0, stream>>>(a);
    RYLE_CUDA_LAUNCHED("beamform whole_counts");
    return;
  }
  const std::int64_t threads = std::int64_t{a.n_beams + a.n_incoherent} * a.n_channels;
  losses<<<blocks_for(threads, 128), 128, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("beamform losses");
}

void launch_full_counts(const LossArgs& a, cudaStream_t stream) {
  if (a.n_beams == 0) return;
  losses<<<blocks_for(std::int64_t{a.n_beams} * a.n_channels, 128), 128, 0, stream>>>(a);
  RYLE_CUDA_LAUNCHED("beamform full counts");
}

}  // namespace ryle::beamform::detail
