// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <utility>

#include "bench/bench.hpp"
#include "ryle/device/queue.hpp"

/// GPU side of `ryle bench`; in builds with CUDA only. Each emits nothing when this machine has no
/// CUDA device, unless one was asked for by name: then DeviceError.
namespace ryle::bench {

/// options.implementation: auto, all, cuda, or a name ("cuda:simt"); others emit nothing.
/// options.calibrate: every tuning of the Hopper kernel's search instead of the table's.
void bench_correlate_cuda(const Options& options, const Emit& emit);
void bench_channelize_cuda(const Options& options, const Emit& emit);
void bench_image_cuda(const Options& options, const Emit& emit);
/// Gates G1 to G4 of the beamformer; options.calibrate: every tuning of the search instead of the
/// table's.
void bench_beamform_cuda(const Options& options, const Emit& emit);
/// Cases A, B and H of the gridder, page-locked memory to page-locked memory; options.calibrate:
/// every cut of the work in turn, with begin and end of each stage of the default on stderr.
void bench_grid_cuda(const Options& options, const Emit& emit);
/// The block of Magro 2014: exact sums, boxcars and peaks, tree.
void bench_search_cuda(const Options& options, const Emit& emit);
/// The published correlator kernels (bench/levels): their table, a second of MWA-32T,
/// rates over stations and channels.
void bench_levels_cuda(const Options& options, const Emit& emit);

/// Ceilings of device 0 measured now, 2 operations per multiply-add.
double ceiling_cuda_mma_s8_ops();        ///< mma.sync m16n8k32 s8 on random registers
double ceiling_cuda_wgmma_s8_ops();      ///< wgmma s8, one operand in registers; needs sm_90
double ceiling_cuda_wgmma_f16_ops();     ///< the same of halves, fp32 sums
double ceiling_cuda_fma_f32_ops();       ///< fused multiply-adds
double ceiling_cuda_copy_bytes_per_s();  ///< device-to-device copy, bytes read plus bytes written

namespace detail {

/// True when a CUDA benchmark is asked for and possible.
bool wants_cuda(const Options& options);
/// Random bytes in device memory; gaussian: ci8 codes of 30 LSB rms per part (ci4: any nibbles).
void fill_random(void* device_memory, std::int64_t n_bytes, bool gaussian, std::uint64_t seed,
                 Queue& queue);
/// As time_runs, by events on the queue's stream: groups of runs of at least 20 ms, {median_s,
/// min_s} of one run.
std::pair<double, double> time_queue(Queue& queue, double seconds,
                                     const std::function<void()>& body);

}  // namespace detail
}  // namespace ryle::bench
