// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "bench/levels/dp4a.cuh"
#include "bench/levels/group.cuh"
#include "bench/levels/hybrid.cuh"
#include "bench/levels/mma.cuh"
#include "bench/levels/pair.cuh"
#include "bench/levels/tiled.cuh"
#include "bench/levels/wgmma.cuh"

/// How each level is launched: the same for a device and for the host (tests/support/simt).
namespace ryle::correlate::levels {

/// Sets sums[channel][pair] for the whole gulp.
using Kernel = void (*)(Gulp, int2*);

struct Launch {
  Kernel kernel;
  unsigned blocks_x;  ///< pairs, groups or tiles
  unsigned blocks_y;  ///< channels, or groups of them
  unsigned threads_x;
  unsigned threads_y;
  int dynamic_shared_bytes = 0;
};

struct Level {
  const char* name;
  Launch (*launch)(const Gulp&);
};

inline unsigned groups_of(int n, int size) { return static_cast<unsigned>((n + size - 1) / size); }
inline unsigned triangle(unsigned n) { return n * (n + 1) / 2; }

/// A triangle of square tiles for every channel.
template <int kInputs>
Launch tiles(Kernel kernel, const Gulp& gulp, unsigned threads_x, unsigned threads_y) {
  return {kernel, triangle(groups_of(gulp.n_inputs, kInputs)),
          static_cast<unsigned>(gulp.n_channels), threads_x, threads_y};
}

inline Launch launch_pair(const Gulp& gulp) {
  return {correlate_pair, triangle(static_cast<unsigned>(gulp.n_inputs)),
          groups_of(gulp.n_channels, kPairThreads), kPairThreads, 1};
}
template <int G>
Launch launch_hybrid(const Gulp& gulp) {
  return {correlate_hybrid<G>, static_cast<unsigned>(gulp.n_inputs) * groups_of(gulp.n_inputs, G),
          groups_of(gulp.n_channels, kHybridThreads), kHybridThreads, 1};
}
template <int G>
Launch launch_group(const Gulp& gulp) {
  return {correlate_group<G>, triangle(groups_of(gulp.n_inputs, G)),
          groups_of(gulp.n_channels, kGroupChannels), kGroupChannels, G};
}
inline Launch launch_tiled(const Gulp& gulp) {
  return tiles<kTiledInputs>(correlate_tiled, gulp, kTiledEdge, kTiledEdge);
}
inline Launch launch_dp4a(const Gulp& gulp) {
  return tiles<kDp4aInputs>(correlate_dp4a, gulp, kDp4aEdge, kDp4aEdge);
}
inline Launch launch_mma(const Gulp& gulp) {
  return tiles<kMmaInputs>(correlate_mma, gulp, kMmaThreads, 1);
}

inline Launch launch_wgmma(const Gulp& gulp) {
  Launch launch = tiles<kWgmmaInputs>(correlate_wgmma, gulp, kWgmmaThreads, 1);
  launch.dynamic_shared_bytes = kWgmmaSharedBytes;
  return launch;
}

/// In the order of their invention.
inline constexpr Level kLevels[] = {
    {"pair", launch_pair},       {"hybrid", launch_hybrid<4>}, {"group2", launch_group<2>},
    {"group4", launch_group<4>}, {"tiled", launch_tiled},      {"dp4a", launch_dp4a},
    {"mma", launch_mma},         {"wgmma", launch_wgmma},
};

}  // namespace ryle::correlate::levels
