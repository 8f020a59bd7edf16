// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/beamform/cuda/mma.cuh"

/// Private to the CUDA beamformer: 16 beams or fewer of 32 antennas or fewer, whose weights stay in
/// registers. 8 beams or fewer (kRows = 1): the upper rows of an operand are real sums, the lower
/// ones imaginary sums of the same beams.
namespace ryle::beamform::detail {

/// Weights of a channel and a lane on their way: nothing is made of them before they are needed.
struct SmallBeamsFetched {
  uint4 w[3];
  RowParts rows[2];
  __device__ void load(const FusedArgs& a, int channel, int lane) {
    const std::int64_t cell = static_cast<std::int64_t>(a.pol) * a.n_channels + channel;
    const uint4* from = a.fragments + cell * 96 + lane;
#pragma unroll
    for (int p = 0; p < 3; ++p) w[p] = __ldg(from + 32 * p);
    rows[0] = row_parts(a, lane >> 2, channel);
    rows[1] = row_parts(a, (lane >> 2) + 8, channel);
  }
};

template <int kRows>
struct SmallBeamsWeights {
  uint4 real, minus_imaginary, imaginary;
  RowTable table;
  __device__ void take(const FusedArgs& a, const SmallBeamsFetched& f, float unit) {
    const auto& w = f.w;
    const float2 upper = row_entry(a, f.rows[0], unit);
    const float2 lower = kRows == 1 ? float2{} : row_entry(a, f.rows[1], unit);
    table = {{upper.x, lower.x}, {upper.y, lower.y}};
    if constexpr (kRows == 2) {
      real = w[0];
      minus_imaginary = w[1];
      imaginary = w[2];
    } else {
      real = {w[0].x, w[2].x, w[0].z, w[2].z};  // rows Wr, then Wi
      minus_imaginary = {w[1].x, w[0].x, w[1].z, w[0].z};
    }
  }
  __device__ void load(const FusedArgs& a, int channel, int lane, float unit) {
    SmallBeamsFetched fetched;
    fetched.load(a, channel, lane);
    take(a, fetched, unit);
  }
};

/// A group of 64 spectra: unpacked when it is multiplied, so that more warps share a
/// multiprocessor.
template <int kRows, class E, class Loader, class Output>
__device__ void multiply_small_beams(const E& e, const SmallBeamsWeights<kRows>& w,
                                     const Loader& now, Output& out, std::byte* memory) {
  const auto half = [&]<int H>() {
    int re[4][4], im[4][4];
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Columns columns = now.tile(4 * H + k);
      multiply_biased(re[k], w.real, columns.re);
      if constexpr (kRows == 2) multiply_biased(im[k], w.imaginary, columns.re);
      multiply(re[k], w.minus_imaginary, columns.im);
      if constexpr (kRows == 2) multiply(im[k], w.real, columns.im);
    }
    if constexpr (kRows == 1) {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        im[k][0] = re[k][2];
        im[k][1] = re[k][3];
      }
    }
    out.template half<H>(e, re, im, memory);
  };
  half.template operator()<0>();
  half.template operator()<1>();
}
template <int kRows, bool kPlain, class Loader, class Output>
__device__ void work_on(const FusedArgs& a, const SmallBeamsWeights<kRows>& w, const Loader& now,
                        const Destination& to, int group, int lane, std::byte* memory) {
  const Epilogue<kRows, kPlain, true> e(a, w.table, to, group, lane);
  Output out;
  multiply_small_beams<kRows>(e, w, now, out, memory);
  out.finish(e, memory);
}

/// Calls body.operator()<Output, kRows, kPlain>() for a launch.
template <class Body>
void for_small_beams(const FusedArgs& a, const Body& body) {
  // Half a slab leaves rows of a staged one unused: those are tested one by one.
  const bool staged = a.output == FusedOutput::cf16 || a.output == FusedOutput::ci8 ||
                      a.output == FusedOutput::power_f32;
  const bool plain = is_plain(a) && a.n_values == std::int64_t{a.n_groups} * values_of_group(a);
  const auto call = [&]<int kRows, bool kPlain>() {
    for_output<kPlain>(a,
                       [&]<class Output>() { body.template operator()<Output, kRows, kPlain>(); });
  };
  if (a.n_beams > kSlabRows / 2) {
    if (plain && a.n_beams == kSlabRows) return call.template operator()<2, true>();
    return call.template operator()<2, false>();
  }
  if (plain && !staged && a.n_beams == kSlabRows / 2) return call.template operator()<1, true>();
  call.template operator()<1, false>();
}

}  // namespace ryle::beamform::detail
