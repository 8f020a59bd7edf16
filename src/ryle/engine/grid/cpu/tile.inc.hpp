// SPDX-License-Identifier: BSD-3-Clause
// clang-format off
// The gridder on a CPU, one tile of 16 x 16 cells (docs/design/grid.md 6):
//   value(cell, channel) = sum_s w(s, cell) u_s x_s / sum_s w(s, cell) u_s
//
//   array      axes                              type    content
//   s.values   [sample][channel], strides        float   what came; flags and weights beside it
//   b.x, y, z  [sample], in the order of bins    Real    offsets from the tile's center
//   b.data     [sample][channel]                 Real    values of a segment of up to 8,192 samples times weights
//   b.kept     [sample near the block]           uint32  the list of a block of four cells
//   b.pair     [4 cells][sample near the block]  Real    squared chords, then weights; below 0: out of reach
//
// A segment goes through three steps: samples into bins; for each block of four cells a list of the samples
// within reach with their weights; the list over 64 channels at a time, a lane a channel, short sums in
// registers. For what was tried, and its price, see docs/decisions/0014.
// clang-format on
// Included once per instruction-set file, inside an unnamed namespace, after the file of lanes.
//
// Every sum is short: after kFlush samples it goes into double. Plain float32 sums are biased by
// 2e-5 at 20,000 samples a cell, because small terms fall below half a unit of the sum.

constexpr std::int64_t kFlush = 256;
constexpr std::int64_t kVectors = 4;  // of channels at a time

// --- samples of a segment in the tile, sorted by bin ---

// The same arithmetic for samples and for what asks for them: where one is beyond another, so is
// its bin.
template <class Real>
RYLE_INLINE int bin_of(Real v, Real origin, Real per_unit, int n) {
  const int b = static_cast<int>((v - origin) * per_unit);
  return b < 0 ? 0 : b >= n ? n - 1 : b;
}

// East, north and outward of the tile's center, in fours: from the plan, or made here in double.
template <class Real>
const Real* offsets_of(const TileGeometry& p, const TileSamples& s, TileScratch<Real>& b) {
  if constexpr (sizeof(Real) == 4) {
    if (s.offsets != nullptr) {
      for (std::int64_t k = 0; k < s.n; ++k) b.list[k] = s.offsets[k].sample;
      return &s.offsets->east;
    }
  }
  Real* const to = b.data;  // free until the channels are loaded
  for (std::int64_t k = 0; k < s.n; ++k) {
    const std::int64_t i = s.list[k];
    const double d[3] = {s.x[i] - p.center[0], s.y[i] - p.center[1], s.z[i] - p.center[2]};
    const double* const axes[3] = {p.east, p.north, p.center};
    for (int a = 0; a < 3; ++a)
      to[4 * k + a] = static_cast<Real>(d[0] * axes[a][0] + d[1] * axes[a][1] + d[2] * axes[a][2]);
  }
  return to;
}

template <class Real>
void locate(const TileGeometry& p, const TileFunction& f, const TileSamples& s,
            TileScratch<Real>& b) {
  TileBins& bins = *b.bins;
  const double margin = f.chord * (1 + 1e-6);
  const double width = p.x_max - p.x_min + 2 * margin, height = p.y_max - p.y_min + 2 * margin;
  const double longest = width > height ? width : height;
  double side = f.chord / 3;
  if (longest > side * (kMaxBins - 1)) side = longest / (kMaxBins - 1);
  bins.x0 = p.x_min - margin;
  bins.y0 = p.y_min - margin;
  bins.per_unit = 1 / side;
  bins.nx = static_cast<int>(width / side) + 1;
  bins.ny = static_cast<int>(height / side) + 1;
  const int n_bins = bins.nx * bins.ny;
  for (int i = 0; i <= n_bins + 1; ++i) bins.start[i] = 0;
  const Real* const offsets = offsets_of(p, s, b);
  const auto x0 = static_cast<Real>(bins.x0), y0 = static_cast<Real>(bins.y0),
             per_unit = static_cast<Real>(bins.per_unit);
  const int nx = bins.nx, ny = bins.ny;
  const bool weighted = s.weights != nullptr && s.weight_channel_stride == 0;
  for (std::int64_t k = 0; k < s.n; ++k) {
    int bin = bin_of(offsets[4 * k + 1], y0, per_unit, ny) * nx +
              bin_of(offsets[4 * k], x0, per_unit, nx);
    if (weighted) {
      // A sample without a weight goes into a bin that nobody asks for.
      const float u = s.weights[s.list[k] * s.weight_sample_stride];
      if (!(u > 0 && u <= 3.402823466e38F)) bin = n_bins;
    }
    b.bin[k] = static_cast<std::uint32_t>(bin);
    ++bins.start[bin + 1];
  }
  for (int i = 0; i <= n_bins; ++i) bins.start[i + 1] += bins.start[i];
  std::uint32_t at[kMaxBins * kMaxBins + 1];
  for (int i = 0; i <= n_bins; ++i) at[i] = bins.start[i];
  for (std::int64_t k = 0; k < s.n; ++k) {
    const std::uint32_t to = at[b.bin[k]]++;
    b.x[to] = offsets[4 * k];
    b.y[to] = offsets[4 * k + 1];
    b.z[to] = offsets[4 * k + 2];
    b.row[to] = static_cast<std::uint32_t>(k);
  }
  if (weighted)
    for (std::int64_t k = 0; k < s.n; ++k)
      b.u[k] = static_cast<Real>(s.weights[s.list[b.row[k]] * s.weight_sample_stride]);
  const std::int64_t n = s.n;
  for (std::int64_t k = n; k < n + kPad; ++k) b.x[k] = b.y[k] = b.z[k] = b.u[k] = 0, b.row[k] = 0;
}

// --- channels ---

RYLE_INLINE bool finite(float x) { return x - x == 0; }

template <class Real>
void load_rows(const TileSamples& s, std::int64_t first, std::int64_t n, std::int64_t padded,
               Real* data) {
  constexpr std::int64_t kRows = 64;  // with 64 channels the cache next to the core
  for (std::int64_t k0 = 0; k0 < s.n; k0 += kRows) {
    const std::int64_t k1 = k0 + kRows < s.n ? k0 + kRows : s.n;
    if (s.channel_stride == 1) {
      for (std::int64_t k = k0; k < k1; ++k) {
        const float* from = s.values + s.list[k] * s.sample_stride + first;
        for (std::int64_t c = 0; c < n; ++c) data[k * padded + c] = from[c];
      }
    } else {
      for (std::int64_t c = 0; c < n; ++c) {
        const float* from = s.values + (first + c) * s.channel_stride;
        Real* to = data + c;
        for (std::int64_t k = k0; k < k1; ++k) to[k * padded] = from[s.list[k] * s.sample_stride];
      }
    }
    if (n < padded)
      for (std::int64_t k = k0; k < k1; ++k)
        for (std::int64_t c = n; c < padded; ++c) data[k * padded + c] = 0;
  }
}

// A stretch of rows that are loaded together: neighbours in memory, or picked one by one.
struct RowRun {
  std::int64_t row;
  int n;
  bool together;
};
RYLE_INLINE int runs_of(const std::uint32_t* list, std::int64_t k0, std::int64_t k1, RowRun* runs) {
  constexpr int kLanes = kLanesOf<float>;
  int n = 0;
  for (std::int64_t k = k0; k < k1;) {
    const int left = k1 - k < kLanes ? static_cast<int>(k1 - k) : kLanes;
    int run = 1;
    if (list[k + left - 1] - list[k] == static_cast<unsigned>(left - 1)) {
      run = left;  // lists ascend
    } else {
      while (run < left && list[k + run] == list[k] + static_cast<unsigned>(run)) ++run;
    }
    const bool together = run == left || 2 * run >= kLanes;
    runs[n] = {k, together ? run : left, together};
    k += runs[n++].n;
  }
  return n;
}

// Channels that stand far apart: squares of samples and channels, turned in registers. True where
// all is finite.
bool load_turned(const TileSamples& s, std::int64_t first, std::int64_t n, std::int64_t padded,
                 float* data) {
  constexpr int kLanes = kLanesOf<float>;
  constexpr std::int64_t kRows = 64;  // of one channel: four lines of memory
  VecF bad[4] = {};                   // 0 or NaN
  for (std::int64_t k0 = 0; k0 < s.n; k0 += kRows) {
    const std::int64_t k1 = k0 + kRows < s.n ? k0 + kRows : s.n;
    RowRun runs[kRows];
    const int n_runs = runs_of(s.list, k0, k1, runs);
    for (std::int64_t c0 = 0; c0 < padded; c0 += kLanes) {
      const int here = n - c0 < kLanes ? static_cast<int>(n - c0) : kLanes;
      const float* const from = s.values + (first + c0) * s.channel_stride;
      for (const RowRun* run = runs; run != runs + n_runs; ++run) {
        const std::uint32_t* list = s.list + run->row;
        VecF v[kLanes];
        if (run->together) {
#pragma GCC unroll 16
          for (int c = 0; c < kLanes; ++c)
            v[c] = c < here ? load_some(from + c * s.channel_stride + list[0], run->n) : VecF{};
        } else {
#pragma GCC unroll 16
          for (int c = 0; c < kLanes; ++c)
            v[c] = c < here ? gather(from + c * s.channel_stride, list, run->n) : VecF{};
        }
#pragma GCC unroll 16
        for (int c = 0; c < kLanes; ++c) bad[c % 4] += v[c] * 0.0F;
        turn(v);
        // Rows beyond the run are those of the next one, or of nobody.
        float* to = data + run->row * padded + c0;
        for (int r = 0; r < kLanes; ++r) store(to + r * padded, v[r]);
      }
    }
  }
  const VecF any = bad[0] + bad[1] + (bad[2] + bad[3]);
  for (int l = 0; l < kLanes; ++l)
    if (!(any[l] == 0)) return false;
  return true;
}

template <class Real>
bool all_finite(const Real* data, std::int64_t n) {
  // x - x is 0 or NaN, and NaN stays in a sum.
  Vec<Real> sum{};
  for (std::int64_t i = 0; i < n; i += kLanesOf<Real>) {
    const Vec<Real> v = load(data + i);
    sum += v - v;
  }
  for (int l = 0; l < kLanesOf<Real>; ++l)
    if (!(sum[l] == 0)) return false;
  return true;
}

template <class Real>
bool load_channels(const TileSamples& s, std::int64_t first, std::int64_t n, std::int64_t padded,
                   TileScratch<Real>& b) {
  bool here_all = false;
  if constexpr (sizeof(Real) == 4) {
    if (s.sample_stride == 1 && s.channel_stride != 1) {
      here_all = load_turned(s, first, n, padded, b.data);
    } else {
      load_rows(s, first, n, padded, b.data);
      here_all = all_finite(b.data, s.n * padded);
    }
  } else {
    load_rows(s, first, n, padded, b.data);
    here_all = all_finite(b.data, s.n * padded);
  }
  const bool own_weights = s.weights != nullptr && s.weight_channel_stride != 0;
  if (!own_weights && s.flags == nullptr && here_all) return false;
  if (b.present == nullptr) return true;
  for (std::int64_t c = 0; c < padded; ++c) b.complete[c] = 1;
  for (std::int64_t k = 0; k < s.n; ++k) {
    for (std::int64_t c = 0; c < padded; ++c) {
      const std::int64_t at = k * padded + c;
      bool here = c < n && finite(static_cast<float>(b.data[at]));
      float u = 1;
      if (here && own_weights) {
        u = s.weights[s.list[k] * s.weight_sample_stride + (first + c) * s.weight_channel_stride];
        here = u > 0 && finite(u);
      }
      if (here && s.flags != nullptr)
        here = s.flags[s.list[k] * s.sample_stride + (first + c) * s.channel_stride] == 0;
      if (!here || u != 1) b.complete[c] = 0;
      b.valid[at] = here ? 1 : 0;
      b.present[at] = here ? static_cast<Real>(u) : 0;
      b.data[at] = here ? static_cast<Real>(u) * b.data[at] : 0;
    }
  }
  return true;
}

// --- one block of cells ---

template <class Real>
struct Block {
  const double* cells;  // [4][3]
  Real x[4], y[4], z[4];
  const std::uint8_t* live;
};

RYLE_INLINE float root(float v) { return __builtin_sqrtf(v); }
RYLE_INLINE double root(double v) { return __builtin_sqrt(v); }

// Those of `near` that double finds within reach.
template <class Real>
unsigned inside_of(const TileSamples& s, const TileScratch<Real>& b, const double* cell,
                   std::int64_t k, unsigned near, double chord2) {
  unsigned in = 0;
  for (; near != 0; near &= near - 1) {
    const int l = __builtin_ctz(near);
    const std::int64_t i = s.list[b.row[k + l]];
    const double x = s.x[i] - cell[0], y = s.y[i] - cell[1], z = s.z[i] - cell[2];
    if (x * x + y * y + z * z < chord2) in |= 1U << l;
  }
  return in;
}

// Samples any cell of the block is in reach of: rows and squared chords. Returns their number.
template <class Real>
std::int64_t reach(const TileGeometry& p, const TileFunction& f, const TileSamples& s,
                   const Block<Real>& block, TileScratch<Real>& b, std::int64_t (&counts)[4]) {
  constexpr int kLanes = kLanesOf<Real>;
  const TileBins& bins = *b.bins;
  const std::int64_t pitch = kSegment + kPad;
  Real x0 = 4, x1 = -4, y0 = 4, y1 = -4;
  for (int q = 0; q < 4; ++q) {
    x0 = block.x[q] < x0 ? block.x[q] : x0;
    x1 = block.x[q] > x1 ? block.x[q] : x1;
    y0 = block.y[q] < y0 ? block.y[q] : y0;
    y1 = block.y[q] > y1 ? block.y[q] : y1;
  }
  const auto margin = static_cast<Real>(f.chord * (1 + 1e-5));
  const auto ox = static_cast<Real>(bins.x0), oy = static_cast<Real>(bins.y0),
             per_unit = static_cast<Real>(bins.per_unit);
  const int by0 = bin_of(y0 - margin, oy, per_unit, bins.ny);
  const int by1 = bin_of(y1 + margin, oy, per_unit, bins.ny);
  const double chord2 = f.chord * f.chord;
  // Where float32 cannot tell in from out (grid.md 4): offsets are rounded to the tile's size.
  double far = f.chord;
  const double edges[4] = {p.x_min, p.x_max, p.y_min, p.y_max};
  for (const double edge : edges) {
    const double reach_of = (edge < 0 ? -edge : edge) + f.chord;
    far = reach_of > far ? reach_of : far;
  }
  const double share = sizeof(Real) == 8 ? 0 : 2e-6 * far / f.chord;
  const double band = sizeof(Real) == 8 ? 0 : (share > 8e-6 ? share : 8e-6) * chord2;
  const Vec<Real> inner = broadcast(static_cast<Real>(chord2 - band)),
                  outer = broadcast(static_cast<Real>(chord2 + band));
  const bool weighted = s.weights != nullptr && s.weight_channel_stride == 0;
  unsigned live[4];
  for (int q = 0; q < 4; ++q) live[q] = block.live[q] != 0 ? ~0U : 0;
  std::int64_t m = 0;
  const Real high = 1 / per_unit;
  for (int by = by0; by <= by1; ++by) {
    // How far east and west the support reaches in this row of bins.
    const Real below = y0 - (oy + static_cast<Real>(by + 1) * high),
               above = oy + static_cast<Real>(by) * high - y1;
    const Real gap = (below > above ? below : above) - margin * static_cast<Real>(1e-4);
    const Real half2 = margin * margin - gap * gap;
    const Real half = gap <= 0 ? margin : half2 > 0 ? root(half2) : 0;
    const int bx0 = bin_of(x0 - half, ox, per_unit, bins.nx);
    const int bx1 = bin_of(x1 + half, ox, per_unit, bins.nx);
    const std::int64_t first = bins.start[by * bins.nx + bx0],
                       last = bins.start[by * bins.nx + bx1 + 1];
    for (std::int64_t k = first; k < last; k += kLanes) {
      const unsigned exist = last - k >= kLanes ? ~0U : (1U << (last - k)) - 1;
      const Vec<Real> x = load(b.x + k), y = load(b.y + k), z = load(b.z + k);
      Vec<Real> c2[4];
      unsigned in[4], near[4], any = 0, any_near = 0;
      for (int q = 0; q < 4; ++q) {
        const Vec<Real> dx = x - block.x[q], dy = y - block.y[q], dz = z - block.z[q];
        c2[q] = dx * dx + (dy * dy + dz * dz);
        in[q] = less(c2[q], inner) & exist & live[q];
        any |= in[q];
        if (sizeof(Real) == 4) {
          near[q] = less(c2[q], outer) & exist & live[q] & ~in[q];
          any_near |= near[q];
        }
      }
      if (sizeof(Real) == 4 && any_near != 0) {
        for (int q = 0; q < 4; ++q) {
          in[q] |= inside_of<Real>(s, b, block.cells + 3 * q, k, near[q], chord2);
          any |= in[q];
        }
      }
      if (any == 0) continue;
      compress_rows<Real>(b.kept + m, any, b.row + k);
      if (weighted) compress<Real>(b.kept_u + m, any, load(b.u + k));
      for (int q = 0; q < 4; ++q) {
        compress<Real>(b.pair + q * pitch + m, any, keep_or_minus_one<Real>(in[q], c2[q]));
        counts[q] += __builtin_popcount(in[q]);
      }
      m += __builtin_popcount(any);
    }
  }
  for (std::int64_t k = m; k < m + kPad; ++k) {
    b.kept[k] = 0;
    b.kept_u[k] = 0;
    for (int q = 0; q < 4; ++q) b.pair[q * pitch + k] = -1;
  }
  return m;
}

// theta^2 from the squared chord: 4 asin^2(c / 2) in powers of c^2.
template <class Real>
RYLE_INLINE Vec<Real> angle2(Vec<Real> c2, bool wide) {
  const Vec<Real> base = c2 + c2 * c2 * static_cast<Real>(1.0 / 12);
  if (!wide) return base;
  const Vec<Real> c6 = c2 * c2 * c2;
  return base + c6 * (static_cast<Real>(1.0 / 90) +
                      c2 * (static_cast<Real>(1.0 / 560) + c2 * static_cast<Real>(1.0 / 3150)));
}

// 2^y, y <= 0, error about 1e-7; 0 below the smallest normal number.
RYLE_INLINE Vec<float> exp2_of(Vec<float> y) {
  using Bits = std::int32_t __attribute__((vector_size(kVectorBytes)));
  const Vec<float> lowest = broadcast(-126.0F);
  y = y < lowest ? lowest : y;
  const Vec<float> magic = broadcast(12582912.0F);
  const Vec<float> n = (y + magic) - magic;
  const Vec<float> r = y - n;
  Vec<float> p = broadcast(1.5403530e-4F);
  p = p * r + 1.3333558e-3F;
  p = p * r + 9.6181291e-3F;
  p = p * r + 5.5504109e-2F;
  p = p * r + 2.4022651e-1F;
  p = p * r + 6.9314718e-1F;
  p = p * r + 1.0F;
  Bits bits;
  __builtin_memcpy(&bits, &p, sizeof bits);
  bits += __builtin_convertvector(n, Bits) << 23;
  __builtin_memcpy(&p, &bits, sizeof bits);
  return p;
}

template <class Real>
Real table_value(const RadialTable& t, Real theta2) {
  const double at = static_cast<double>(theta2) * t.per_rad2;
  std::int64_t k = static_cast<std::int64_t>(at);
  k = k >= t.n ? t.n - 1 : k;
  const auto r = static_cast<Real>(at - static_cast<double>(k));
  const float* a = t.cubic + 4 * k;
  return a[0] + r * (a[1] + r * (a[2] + r * a[3]));
}

// Squared chords of a list become the function's values; out of reach 0. `in` is how many are
// within.
template <class Real>
void weigh(const TileFunction& f, const TileSamples& s, const TileScratch<Real>& b,
           const double* cell, std::int64_t m, Real* pair) {
  if (f.exact != nullptr) {
    for (std::int64_t k = 0; k < m; ++k) {
      if (pair[k] < 0) continue;
      const std::int64_t i = s.list[b.kept[k]];
      const double sample[3] = {s.x[i], s.y[i], s.z[i]};
      const double dx = sample[0] - cell[0], dy = sample[1] - cell[1], dz = sample[2] - cell[2];
      pair[k] = static_cast<Real>(
          f.exact(f.function, cell, sample, __builtin_sqrt(dx * dx + dy * dy + dz * dz)));
    }
  } else if constexpr (sizeof(Real) == 4) {
    for (std::int64_t k = 0; k < m; k += kLanesOf<float>) {
      const Vec<float> t2 = angle2<float>(load(pair + k), f.wide);
      for (int l = 0; l < kLanesOf<float> && k + l < m; ++l)
        if (pair[k + l] >= 0) pair[k + l] = table_value<float>(f.table, t2[l]);
    }
  }
}

// sums[4][group] += sum_k weight[q][k] data[row k][channel], `NB` vectors of channels from `c` on.
template <class Real, int NB>
void accumulate(const Real* weights, std::int64_t pitch, const std::uint32_t* kept, std::int64_t m,
                const Real* data, std::int64_t padded, std::int64_t c, double* sums) {
  constexpr int kLanes = kLanesOf<Real>;
  for (std::int64_t k0 = 0; k0 < m; k0 += kFlush) {
    const std::int64_t k1 = k0 + kFlush < m ? k0 + kFlush : m;
    Vec<Real> a[4][NB] = {};
    for (std::int64_t k = k0; k < k1; ++k) {
      const Real* x = data + static_cast<std::int64_t>(kept[k]) * padded + c;
      const Vec<Real> w0 = broadcast(weights[k]), w1 = broadcast(weights[pitch + k]),
                      w2 = broadcast(weights[2 * pitch + k]),
                      w3 = broadcast(weights[3 * pitch + k]);
#pragma GCC unroll 4
      for (int v = 0; v < NB; ++v) {
        const Vec<Real> d = load(x + v * kLanes);
        a[0][v] += d * w0;
        a[1][v] += d * w1;
        a[2][v] += d * w2;
        a[3][v] += d * w3;
      }
    }
    for (int q = 0; q < 4; ++q)
      for (int v = 0; v < NB; ++v)
        for (int l = 0; l < kLanes; ++l) sums[q * padded + c + v * kLanes + l] += a[q][v][l];
  }
}

template <class Real>
void accumulate_all(const Real* weights, const TileScratch<Real>& b, std::int64_t m,
                    const Real* data, std::int64_t padded, double* sums) {
  constexpr std::int64_t kLanes = kLanesOf<Real>;
  constexpr std::int64_t kPitch = kSegment + kPad;
  for (std::int64_t c = 0; c < padded; c += kVectors * kLanes) {
    const std::int64_t rest = (padded - c) / kLanes;
    if (rest >= 4)
      accumulate<Real, 4>(weights, kPitch, b.kept, m, data, padded, c, sums);
    else if (rest == 3)
      accumulate<Real, 3>(weights, kPitch, b.kept, m, data, padded, c, sums);
    else if (rest == 2)
      accumulate<Real, 2>(weights, kPitch, b.kept, m, data, padded, c, sums);
    else
      accumulate<Real, 1>(weights, kPitch, b.kept, m, data, padded, c, sums);
  }
}

// Moments as if every value were there, and the weights of the sums: w u. `pair` holds weights, or
// squared chords of a Gaussian that are weighed on the way.
template <class Real, bool kGauss>
void moments(const TileFunction& f, const TileSamples& s, std::int64_t m, std::int64_t at,
             Real* pair, const Real* u, const TileSums& sums) {
  const bool weighted = s.weights != nullptr && s.weight_channel_stride == 0;
  const auto scale = static_cast<Real>(f.log2_per_rad2);
  VecD weight[2] = {}, square[2] = {}, magnitude[2] = {};
  for (std::int64_t k0 = 0; k0 < m; k0 += kFlush) {
    const std::int64_t k1 = k0 + kFlush < m ? k0 + kFlush : m;
    Vec<Real> a{}, b{}, c{};
    for (std::int64_t k = k0; k < k1; k += kLanesOf<Real>) {
      Vec<Real> w = load(pair + k);
      if constexpr (kGauss) {
        const Vec<Real> inside = exp2_of(angle2<Real>(w, f.wide) * scale);
        w = w < Vec<Real>{} ? Vec<Real>{} : inside;
      }
      const Vec<Real> wu = weighted ? w * load(u + k) : w;
      store(pair + k, wu);
      a += wu;
      b += wu * w;
      if constexpr (!kGauss) c += wu < Vec<Real>{} ? -wu : wu;
    }
    add_wide(weight, a);
    add_wide(square, b);
    if constexpr (!kGauss) add_wide(magnitude, c);
  }
  sums.weight[at] += total(weight);
  sums.square[at] += total(square);
  sums.magnitude[at] += total(kGauss ? weight : magnitude);
}

// Moments of each channel by what is present in it.
template <class Real>
void own_moments(const TileSamples& s, const TileScratch<Real>& b, std::int64_t m, std::int64_t at,
                 std::int64_t padded, const TileSums& sums) {
  constexpr std::int64_t kPitch = kSegment + kPad;
  accumulate_all<Real>(b.pair, b, m, b.present, padded, sums.own_weight + at * padded);
  Real* const inside = b.second;
  accumulate_all<Real>(inside, b, m, b.valid, padded, sums.own_count + at * padded);
  const bool weighted = s.weights != nullptr && s.weight_channel_stride == 0;
  for (int q = 0; q < 4; ++q)
    for (std::int64_t k = 0; k < m; ++k) {
      const Real w = b.pair[q * kPitch + k];
      inside[q * kPitch + k] = w < 0 ? -w : w;
    }
  accumulate_all<Real>(inside, b, m, b.present, padded, sums.own_magnitude + at * padded);
  for (int q = 0; q < 4; ++q)
    for (std::int64_t k = 0; k < m; ++k) {
      const Real w = b.pair[q * kPitch + k];
      inside[q * kPitch + k] = weighted ? (b.kept_u[k] > 0 ? w * w / b.kept_u[k] : 0) : w * w;
    }
  accumulate_all<Real>(inside, b, m, b.present, padded, sums.own_square + at * padded);
}

template <class Real>
void sum_tile(const TileGeometry& p, const TileFunction& f, const TileSamples& s,
              std::int64_t padded, TileScratch<Real>& b, const TileSums& sums) {
  constexpr std::int64_t kPitch = kSegment + kPad;
  for (std::int64_t n = 0; n < p.n_blocks; ++n) {
    Block<Real> block{};
    block.cells = p.cells + 12 * n;
    block.live = p.live + 4 * n;
    for (int q = 0; q < 4; ++q) {
      const double* c = block.cells + 3 * q;
      const double d[3] = {c[0] - p.center[0], c[1] - p.center[1], c[2] - p.center[2]};
      const auto along = [&](const double* axis) {
        return static_cast<Real>(d[0] * axis[0] + d[1] * axis[1] + d[2] * axis[2]);
      };
      block.x[q] = along(p.east);
      block.y[q] = along(p.north);
      block.z[q] = along(p.center);
    }
    std::int64_t counts[4] = {};
    const std::int64_t m = reach(p, f, s, block, b, counts);
    if (m == 0) continue;
    for (int q = 0; q < 4; ++q) {
      Real* pair = b.pair + q * kPitch;
      Real* inside = b.second + q * kPitch;
      const bool gauss = sizeof(Real) == 4 && f.gauss;
      if (!gauss || sums.own_weight != nullptr)
        for (std::int64_t k = 0; k < m + kPad; ++k) inside[k] = pair[k] < 0 ? 0 : 1;
      sums.count[4 * n + q] += static_cast<double>(counts[q]);
      if constexpr (sizeof(Real) == 4) {
        if (gauss) {
          moments<Real, true>(f, s, m, 4 * n + q, pair, b.kept_u, sums);
          continue;
        }
      }
      weigh<Real>(f, s, b, block.cells + 3 * q, m, pair);
      for (std::int64_t k = 0; k < m + kPad; ++k) pair[k] = inside[k] > 0 ? pair[k] : 0;
      moments<Real, false>(f, s, m, 4 * n + q, pair, b.kept_u, sums);
    }
    accumulate_all<Real>(b.pair, b, m, b.data, padded, sums.weighted + 4 * n * padded);
    if (sums.own_weight != nullptr) own_moments<Real>(s, b, m, 4 * n, padded, sums);
  }
}

template <class Real>
constexpr TileKernel<Real> make_tile_kernel(const char* name) {
  TileKernel<Real> k{};
  k.name = name;
  k.search = search;
  k.lanes = kLanesOf<Real>;
  k.group = kVectors * kLanesOf<Real>;
  k.locate = locate<Real>;
  k.load = load_channels<Real>;
  k.sum = sum_tile<Real>;
  return k;
}

// --- directions ---

// sin and cos of degrees in double: reduced to the nearest multiple of 90 exactly, then polynomials
// (errors below 1e-16 of 1).
struct SineCosine {
  Vec<double> sine, cosine;
};
RYLE_INLINE SineCosine sine_cosine(Vec<double> degrees) {
  using Long = std::int64_t __attribute__((vector_size(kVectorBytes)));
  const Vec<double> magic = broadcast(6755399441055744.0);
  const Vec<double> n = (degrees * (1.0 / 90) + magic) - magic;
  const Vec<double> r = (degrees - n * 90.0) * 0.017453292519943295;
  const Vec<double> r2 = r * r;
  Vec<double> s = broadcast(-7.6471637318198164e-13);
  s = s * r2 + 1.6059043836821613e-10;
  s = s * r2 - 2.5052108385441720e-08;
  s = s * r2 + 2.7557319223985893e-06;
  s = s * r2 - 1.9841269841269841e-04;
  s = s * r2 + 8.3333333333333332e-03;
  s = s * r2 - 1.6666666666666666e-01;
  s = r + r * r2 * s;
  Vec<double> c = broadcast(4.7794773323873853e-14);
  c = c * r2 - 1.1470745597729725e-11;
  c = c * r2 + 2.0876756987868099e-09;
  c = c * r2 - 2.7557319223985891e-07;
  c = c * r2 + 2.4801587301587302e-05;
  c = c * r2 - 1.3888888888888889e-03;
  c = c * r2 + 4.1666666666666664e-02;
  c = 1.0 - 0.5 * r2 + r2 * r2 * c;
  Long quarter;
  const Vec<double> shifted = n + magic;
  __builtin_memcpy(&quarter, &shifted, sizeof quarter);  // the low bits of n
  const Long odd = -(quarter & 1);                       // all bits where odd
  Long sb, cb;
  __builtin_memcpy(&sb, &s, sizeof sb);
  __builtin_memcpy(&cb, &c, sizeof cb);
  Long sine = (sb & ~odd) | (cb & odd), cosine = (cb & ~odd) | (sb & odd);
  sine ^= (quarter & 2) << 62;          // 180 and 270
  cosine ^= ((quarter + 1) & 2) << 62;  // 90 and 180
  SineCosine result;
  __builtin_memcpy(&result.sine, &sine, sizeof sine);
  __builtin_memcpy(&result.cosine, &cosine, sizeof cosine);
  return result;
}

void directions(const double* longitude_deg, const double* latitude_deg, std::int64_t n, double* x,
                double* y, double* z) {
  constexpr std::int64_t kLanes = kLanesOf<double>;
  for (std::int64_t k = 0; k < n; k += kLanes) {
    const std::int64_t here = n - k < kLanes ? n - k : kLanes;
    double in[2][kLanes] = {}, out[3][kLanes];
    for (std::int64_t l = 0; l < here; ++l) {
      in[0][l] = longitude_deg[k + l];
      in[1][l] = latitude_deg[k + l];
    }
    const SineCosine lon = sine_cosine(load(in[0])), lat = sine_cosine(load(in[1]));
    store(out[0], lat.cosine * lon.cosine);
    store(out[1], lat.cosine * lon.sine);
    store(out[2], lat.sine);
    for (std::int64_t l = 0; l < here; ++l) {
      // Longitudes of a hundred turns lose digits; of more than 2^40 degrees nothing is left.
      const bool good = in[1][l] >= -90 && in[1][l] <= 90 && in[0][l] < 1e12 && in[0][l] > -1e12;
      x[k + l] = good ? out[0][l] : __builtin_nan("");
      y[k + l] = good ? out[1][l] : __builtin_nan("");
      z[k + l] = good ? out[2][l] : __builtin_nan("");
    }
  }
}
