// SPDX-License-Identifier: BSD-3-Clause
// Geometry of a chunk of samples on the device: sorted by place, found by ranges of keys, dealt out
// in jobs. Sizes depend on the number of samples alone, not on where they lie. Private to the
// engine.
#pragma once
#include <cstdint>

#include "ryle/engine/grid/cuda/tiles.hpp"

namespace ryle::grid::detail {

/// Most candidates of a job; its sums go into double every kFlushBatches batches of kWarp samples
/// (grid.md 4).
inline constexpr std::uint32_t kJobSamples = 2048;
inline constexpr int kFlushBatches = 8;

/// Keys that some tile looks at: samples elsewhere share the key `span`, which nobody asks for.
struct KeySpan {
  int order = 0;
  std::uint32_t first = 0, span = 0;
};

/// Samples [first, first + n) of the sorted chunk; `before` of the tile's candidates precede them.
struct SampleRange {
  std::uint32_t first, n, before;
};

/// Candidates [first, first + n) of a tile.
struct Job {
  std::uint32_t tile, first, n;
};

/// A sorted chunk, in memory of whoever asks.
struct ChunkView {
  std::int64_t n = 0;
  const double *x = nullptr, *y = nullptr, *z = nullptr;  ///< by key, equal keys by time
  const std::uint32_t* row = nullptr;                     ///< which sample of the chunk this is
  const SampleRange* ranges = nullptr;
  const std::uint32_t* range_begin = nullptr;  ///< [tile + 1]
  const Job* jobs = nullptr;
  std::uint32_t n_jobs = 0;
};

/// Unit vector of a place in degrees, NaN where there is none.
RYLE_HD inline void direction_of(double longitude_deg, double latitude_deg, double* to) {
  const bool good =
      latitude_deg >= -90 && latitude_deg <= 90 && longitude_deg < 1e12 && longitude_deg > -1e12;
  if (!good) {
    to[0] = to[1] = to[2] = nan("");
    return;
  }
  double sl, cl, sb, cb;
#ifdef __CUDA_ARCH__
  sincospi(longitude_deg / 180, &sl, &cl);
  sincospi(latitude_deg / 180, &sb, &cb);
#else
  constexpr double kRadian = 0.017453292519943295;
  sl = sin(fmod(longitude_deg, 360) * kRadian);
  cl = cos(fmod(longitude_deg, 360) * kRadian);
  sb = sin(latitude_deg * kRadian);
  cb = cos(latitude_deg * kRadian);
#endif
  to[0] = cb * cl;
  to[1] = cb * sl;
  to[2] = sb;
}

RYLE_HD inline std::uint32_t key_in(const KeySpan& keys, double x, double y, double z) {
  if (!(x == x)) return keys.span;
  const std::uint32_t key = sky_key(x, y, z, keys.order) - keys.first;  // wraps around below
  return key < keys.span ? key : keys.span;
}

/// The first of n ascending keys that is not below `key`.
RYLE_HD inline std::uint32_t first_at(const std::uint32_t* keys, std::uint32_t n,
                                      std::uint32_t key) {
  std::uint32_t low = 0, high = n;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (keys[middle] < key)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

RYLE_HD inline SampleRange samples_of(const std::uint32_t* keys, std::uint32_t n,
                                      const KeySpan& span, const KeyRange& range) {
  const std::uint32_t first = first_at(keys, n, range.begin - span.first);
  return {first, first_at(keys, n, range.end - span.first) - first, 0};
}

/// Numbers the candidates of a tile through; returns how many there are.
RYLE_HD inline std::uint32_t number_candidates(SampleRange* ranges, std::uint32_t begin,
                                               std::uint32_t end) {
  std::uint32_t n = 0;
  for (std::uint32_t r = begin; r < end; ++r) {
    ranges[r].before = n;
    n += ranges[r].n;
  }
  return n;
}

RYLE_HD inline std::uint32_t n_jobs_of(std::uint32_t n_candidates) {
  return (n_candidates + kJobSamples - 1) / kJobSamples;
}

RYLE_HD inline void write_jobs(std::uint32_t tile, std::uint32_t n_candidates, Job* jobs) {
  for (std::uint32_t first = 0; first < n_candidates; first += kJobSamples) {
    const std::uint32_t left = n_candidates - first;
    *jobs++ = {tile, first, left < kJobSamples ? left : kJobSamples};
  }
}

/// Where candidate `number` of a tile stands in the sorted chunk; `cursor` is the range of an
/// earlier candidate and becomes that of this one.
RYLE_HD inline std::uint32_t place_of(const SampleRange* ranges, std::uint32_t end,
                                      std::uint32_t number, std::uint32_t& cursor) {
  while (cursor + 1 < end && ranges[cursor + 1].before <= number) ++cursor;
  return ranges[cursor].first + (number - ranges[cursor].before);
}

}  // namespace ryle::grid::detail
