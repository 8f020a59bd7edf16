// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// Kernels that turn the sums of a correlator, in whatever order they lie, into calibrated products of baselines, and
// kernels that make the weights of footprints (once for each plan).
//   XX, YY, (XY + YX)/2, -i (XY - YX)/2  of  c_a conj(c_b) V_ab;   w(u) = exp(beta (sqrt(1 - (2u/k)^2) - 1))
//
//   array        axes                                     type                  unit
//   sums         [channel][pair], or tiles                int32 .. double       LSB^2; SumsView says which
//   factor       [channel][antenna][pol]                  float2                gain times phase of the height
//   counts       [channel][pair]                          uint32                spectra behind each sum
//   products     [channel][baseline][2]                   float4                calibrated; counts of 0 give 0
//   pair_counts  [channel][XX, YY, XY]                    uint64                pairs of valid samples, added to
//   weights      [channel][antenna or baseline][x, y][k]  float
//
// products_kernel has a thread block for a square of 32 x 32 antennas of one channel; eight b x four a a warp are whole
// sectors of a correlator's tile. Each sum is read once; no counters are on record.
// clang-format on
#include <cstdint>
#include <type_traits>

#include "ryle/core/samples.hpp"
#include "ryle/device/cuda/product_tiles.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/image/cuda/all_sky_kernels.cuh"

namespace ryle::image::detail {
namespace {

constexpr int kThreads = 256;
constexpr int kEdge = 32;  // antennas along an edge of a block's square: one tile of 64 inputs

template <class T>
struct Canonical {
  // Gains are finite and integers too: only float sums need a look at what comes out.
  static constexpr bool kChecked = std::is_same_v<T, float2> || std::is_same_v<T, double2>;
  const T* data;
  __device__ float2 operator()(int i, int j) const {
    const T v = data[static_cast<std::int64_t>(j) * (j + 1) / 2 + i];
    return {static_cast<float>(v.x), static_cast<float>(v.y)};
  }
};
struct Tiled {
  static constexpr bool kChecked = false;
  const std::int32_t* data;
  int shift;
  __device__ float2 operator()(int i, int j) const {
    const std::int32_t* at = data + cuda::ProductTiles::index(i, j);
    return {static_cast<float>(at[0] >> shift),
            static_cast<float>(at[cuda::ProductTiles::kImaginary] >> shift)};
  }
};

__device__ inline float2 conjugate(float2 a) { return {a.x, -a.y}; }
__device__ inline bool is_used(float2 factor) { return factor.x != 0 || factor.y != 0; }

// One product of two inputs, calibrated; counts[pair] == 0 or a value that is not finite: nothing.
struct Reader {
  const std::uint32_t* counts;  // of this channel
  template <class Source>
  __device__ float2 read(const Source& source, int i, float2 f, int j, float2 g,
                         unsigned& count) const {
    count = 0;
    if (i < 0 || j < 0 || !is_used(f) || !is_used(g)) return {0, 0};
    const bool ordered = i <= j;
    const int low = ordered ? i : j, high = ordered ? j : i;
    unsigned n = 1;
    if (counts != nullptr) n = counts[static_cast<std::int64_t>(high) * (high + 1) / 2 + low];
    if (n == 0) return {0, 0};
    const float2 raw = source(low, high);
    const float2 value = times(times(f, conjugate(g)), ordered ? raw : conjugate(raw));
    if constexpr (Source::kChecked) {
      if (!isfinite(value.x) || !isfinite(value.y)) return {0, 0};
    }
    count = n;
    return value;
  }
};

// Lanes 0..3 walk along a, the rest of a warp along b: eight b x four a are whole sectors of a tile
// of the correlator, and nearly so of the triangle.
template <class Source>
__device__ void products_of_square(const Source& source, const VisArray& array, int channel,
                                   const std::uint32_t* counts, unsigned long long* pair_counts,
                                   float4* products) {
  int square_row = static_cast<int>((sqrtf(8.0f * blockIdx.x + 1.0f) - 1.0f) * 0.5f);
  while (square_row * (square_row + 1) / 2 > static_cast<int>(blockIdx.x)) --square_row;
  while ((square_row + 1) * (square_row + 2) / 2 <= static_cast<int>(blockIdx.x)) ++square_row;
  const int square_column = blockIdx.x - square_row * (square_row + 1) / 2;
  const int lane = threadIdx.x % 32;
  const int a = square_column * kEdge + threadIdx.x / 32 * 4 + lane % 4;
  const float2* factor = array.factor + static_cast<std::int64_t>(channel) * array.n_antennas * 2;
  const Reader reader{counts};
  unsigned tally[3] = {};
  for (int step = 0; step < kEdge / 8; ++step) {
    const int b = square_row * kEdge + step * 8 + lane / 4;
    if (b >= array.n_antennas || a > b || (a == b && !array.autos)) continue;
    const int ia[2] = {array.input[2 * a], array.input[2 * a + 1]};
    const int ib[2] = {array.input[2 * b], array.input[2 * b + 1]};
    unsigned n[4];
    const float2 xx = reader.read(source, ia[0], factor[2 * a], ib[0], factor[2 * b], n[0]);
    const float2 yy = reader.read(source, ia[1], factor[2 * a + 1], ib[1], factor[2 * b + 1], n[1]);
    const float2 xy = reader.read(source, ia[0], factor[2 * a], ib[1], factor[2 * b + 1], n[2]);
    const float2 yx = reader.read(source, ia[1], factor[2 * a + 1], ib[0], factor[2 * b], n[3]);
    // An auto is its own mirror image, which the transform adds: half of it here.
    const float half = a == b ? 0.5f : 1.0f;
    tally[0] += a == b ? n[0] : 2 * n[0];
    tally[1] += a == b ? n[1] : 2 * n[1];
    tally[2] += a == b ? n[2] : n[2] + n[3];
    const std::int64_t baseline = (array.autos ? static_cast<std::int64_t>(b) * (b + 1) / 2
                                               : static_cast<std::int64_t>(b) * (b - 1) / 2) +
                                  a;
    const float turn = array.flip[baseline] ? -half : half;  // V_ba = conj(V_ab)
    float4* out = products + 2 * (channel * array.n_baselines + baseline);
    out[0] = {half * xx.x, turn * xx.y, half * yy.x, turn * yy.y};
    out[1] = {0.5f * half * (xy.x + yx.x), 0.5f * turn * (xy.y + yx.y), 0.5f * half * (xy.y - yx.y),
              -0.5f * turn * (xy.x - yx.x)};
  }
  if (counts == nullptr && pair_counts == nullptr) return;
#pragma unroll
  for (int k = 0; k < 3; ++k) {
    const unsigned sum = __reduce_add_sync(0xffffffffu, tally[k]);
    if (lane == 0 && sum != 0) {
      atomicAdd(pair_counts + 3 * channel + k, static_cast<unsigned long long>(sum));
    }
  }
}

/// See the head of this file.
template <SumsView::Kind Kind>
__global__ void __launch_bounds__(kThreads)
    products_kernel(SumsView sums, VisArray array, const std::uint32_t* counts,
                    std::int64_t n_pairs, unsigned long long* pair_counts, float4* products) {
  const int channel = blockIdx.y;
  const std::int64_t at = channel * sums.channel_stride;
  if (counts != nullptr) counts += channel * n_pairs;
  const auto run = [&](const auto& source) {
    products_of_square(source, array, channel, counts, pair_counts, products);
  };
  if constexpr (Kind == SumsView::Kind::tiles) {
    run(Tiled{static_cast<const std::int32_t*>(sums.data) + at, sums.tile_shift});
  } else if constexpr (Kind == SumsView::Kind::ci32) {
    run(Canonical<int2>{static_cast<const int2*>(sums.data) + at});
  } else if constexpr (Kind == SumsView::Kind::ci64) {
    run(Canonical<longlong2>{static_cast<const longlong2*>(sums.data) + at});
  } else if constexpr (Kind == SumsView::Kind::cf32) {
    run(Canonical<float2>{static_cast<const float2*>(sums.data) + at});
  } else {
    run(Canonical<double2>{static_cast<const double2*>(sums.data) + at});
  }
}

// @eq w(u) = exp(beta (sqrt(1 - (2u/k)^2) - 1)), double: it is done once per plan
__device__ double es(double u, int support, double beta) {
  const double s = 2 * u / support;
  const double z = 1 - s * s;
  return z > 0 ? exp(beta * (sqrt(z) - 1)) : 0;
}

__device__ double along(double2 p, int axis) { return axis == 0 ? p.x : p.y; }

// First of the k cells nearest to a point, as geometry.hpp cells_around() has it.
__device__ double first_cell(double point, int support) { return floor(point - 0.5 * support) + 1; }

/// Weights of the k cells about each antenna, in double: a thread makes one axis of one antenna.
__global__ void antenna_weights_kernel(WeightTables tables, float* weights) {
  const int channel = blockIdx.y;
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= std::int64_t{2} * tables.n_antennas) return;
  const int a = static_cast<int>(k / 2), axis = static_cast<int>(k % 2);
  const double point =
      along(tables.position[static_cast<std::int64_t>(channel) * tables.n_antennas + a], axis);
  const double first = first_cell(point, tables.support);
  float* to = weights + ((static_cast<std::int64_t>(channel) * tables.n_antennas + a) * 2 + axis) *
                            tables.support;
  for (int t = 0; t < tables.support; ++t) {
    to[t] = static_cast<float>(es(first + t - point, tables.support, tables.beta));
  }
}

// @eq K_ab(d) = sum_r w_a(r + d) w_b(r), d = first_a - first_b - (k - 1) + t
__device__ void correlated_weights(const WeightTables& tables, double p, double q, float* to) {
  const int k = tables.support;
  double a[9], b[9];
  const double first_a = first_cell(p, k), first_b = first_cell(q, k);
  for (int i = 0; i < k; ++i) a[i] = es(first_a + i - p, k, tables.beta);
  for (int i = 0; i < k; ++i) b[i] = es(first_b + i - q, k, tables.beta);
  for (int t = 0; t < 2 * k - 1; ++t) {
    double sum = 0;
    for (int i = 0; i < k; ++i) {
      const int j = i - (t - (k - 1));
      if (j >= 0 && j < k) sum += a[i] * b[j];
    }
    to[t] = static_cast<float>(sum);
  }
}

/// Weights of each baseline's footprint, in double: w about its (u, v), or the correlated function
/// K_ab. A thread makes one axis of one baseline.
__global__ void baseline_weights_kernel(WeightTables tables, bool correlated, float* weights) {
  const int channel = blockIdx.y;
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= 2 * tables.n_baselines) return;
  const std::int64_t baseline = k / 2;
  const int axis = static_cast<int>(k % 2);
  // b from the triangular index, exact after the two loops.
  const double guess =
      (sqrt(8.0 * static_cast<double>(baseline) + 1) + (tables.autos ? -1 : 1)) / 2;
  std::int64_t b = static_cast<std::int64_t>(guess);
  const auto first_of = [&](std::int64_t row) {
    return tables.autos ? row * (row + 1) / 2 : row * (row - 1) / 2;
  };
  while (first_of(b) > baseline) --b;
  while (first_of(b + 1) <= baseline) ++b;
  const std::int64_t a = baseline - first_of(b);
  const double2* position =
      tables.position + static_cast<std::int64_t>(channel) * tables.n_antennas;
  const bool flip = tables.flip[baseline] != 0;
  const double p = along(position[flip ? b : a], axis), q = along(position[flip ? a : b], axis);
  const int taps = correlated ? 2 * tables.support - 1 : tables.support;
  float* to = weights + ((channel * tables.n_baselines + baseline) * 2 + axis) * taps;
  if (correlated) return correlated_weights(tables, p, q, to);
  const double u = p - q;
  const double first = first_cell(u, tables.support);
  for (int t = 0; t < taps; ++t) {
    to[t] = static_cast<float>(es(first + t - u, tables.support, tables.beta));
  }
}

}  // namespace

void launch_products(const SumsView& sums, const VisArray& array, int n_channels,
                     const std::uint32_t* counts, unsigned long long* pair_counts, float4* products,
                     cudaStream_t stream) {
  const unsigned rows = (array.n_antennas + kEdge - 1) / kEdge;
  const dim3 grid(rows * (rows + 1) / 2, static_cast<unsigned>(n_channels));
  const std::int64_t n_pairs = static_cast<std::int64_t>(sums.n_inputs) * (sums.n_inputs + 1) / 2;
  const auto run = [&](auto kernel) {
    kernel<<<grid, kThreads, 0, stream>>>(sums, array, counts, n_pairs, pair_counts, products);
  };
  using Kind = SumsView::Kind;
  switch (sums.kind) {
    case Kind::tiles:
      run(products_kernel<Kind::tiles>);
      break;
    case Kind::ci32:
      run(products_kernel<Kind::ci32>);
      break;
    case Kind::ci64:
      run(products_kernel<Kind::ci64>);
      break;
    case Kind::cf32:
      run(products_kernel<Kind::cf32>);
      break;
    case Kind::cf64:
      run(products_kernel<Kind::cf64>);
      break;
  }
  RYLE_CUDA_LAUNCHED("products_kernel");
}

void launch_antenna_weights(const WeightTables& tables, int n_channels, float* weights,
                            cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((2 * tables.n_antennas + kThreads - 1) / kThreads),
                  static_cast<unsigned>(n_channels));
  antenna_weights_kernel<<<grid, kThreads, 0, stream>>>(tables, weights);
  RYLE_CUDA_LAUNCHED("antenna_weights_kernel");
}

void launch_baseline_weights(const WeightTables& tables, int n_channels, bool correlated,
                             float* weights, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>((2 * tables.n_baselines + kThreads - 1) / kThreads),
                  static_cast<unsigned>(n_channels));
  baseline_weights_kernel<<<grid, kThreads, 0, stream>>>(tables, correlated, weights);
  RYLE_CUDA_LAUNCHED("baseline_weights_kernel");
}

}  // namespace ryle::image::detail
