// SPDX-License-Identifier: BSD-3-Clause
// Host side of the drift filter on the device: its reference is DriftFilter (drift.cpp).
#include "ryle/engine/search/cuda/drift.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/search/cuda/drift.cuh"
#include "ryle/engine/search/cuda/normalize.cuh"
#include "ryle/engine/search/device_memory.hpp"

namespace ryle::search {
namespace {

using namespace detail;

unsigned drift_blocks(std::int64_t jobs, int threads) {
  return static_cast<unsigned>((jobs + threads - 1) / threads);
}
static_assert(sizeof(CellLevel) == kCellLevel_bytes);

}  // namespace

struct CudaDriftFilter::Impl {
  DriftConfig config;
  DriftShape shape;
  std::int64_t n_beams, n_rows, taken = 0, given = 0, n_out = 0;
  Buffer<std::uint8_t> masked, absent;
  Buffer<float> ring, before, planes, targets, responses, common, calm, steps, middles, left,
      shared, scatters;
  Buffer<float> own, own_middles, own_left, corrections, out;
  Buffer<CellLevel> levels;
  Buffer<CellRange> there, segments;

  Impl(Queue& queue, const DriftConfig& c, std::int64_t beams, std::int64_t block)
      : config(c),
        shape(drift_shape(c.window_samples, block)),
        n_beams(beams),
        n_rows(checked_product({beams, c.n_channels}, "channels of beams")) {
    const OnDevice scope(queue);
    const auto device = MemorySpace::device;
    const std::int64_t plane = n_rows * shape.plane, n_own = plane / kDriftJoined;
    masked = Buffer<std::uint8_t>(c.n_channels, device);
    absent = Buffer<std::uint8_t>(n_beams * block, device);
    ring = Buffer<float>(checked_product({n_rows, shape.ring()}, "power held back"), device);
    out = Buffer<float>(checked_product({n_rows, block}, "block of power"), device);
    for (auto* buffer : {&before, &planes}) *buffer = Buffer<float>(plane, device);
    for (auto* buffer : {&targets, &responses}) *buffer = Buffer<float>(n_rows, device);
    for (auto* buffer : {&common, &calm, &steps, &middles, &left, &shared})
      *buffer = Buffer<float>(n_beams * shape.plane, device);
    scatters = Buffer<float>(n_beams, device);
    segments = Buffer<CellRange>(n_beams * shape.plane, device);
    for (auto* buffer : {&own, &own_middles, &own_left}) *buffer = Buffer<float>(n_own, device);
    corrections = Buffer<float>(n_rows * (block / shape.cell), device);
    levels = Buffer<CellLevel>(n_rows, device);
    there = Buffer<CellRange>(n_beams, device);
    if (!c.masked.empty()) copy_bytes(queue, masked.data(), c.masked.data(), masked.bytes());
    // All bits set: no number.
    for (auto* buffer : {&ring, &before, &planes, &targets})
      RYLE_CUDA(cudaMemsetAsync(buffer->data(), 0xff, static_cast<std::size_t>(buffer->bytes()),
                                cuda::stream_of(queue)));
    queue.synchronize();
  }

  DriftWork work_of(const DevicePower& power) const {
    DriftWork w{};
    w.in = power;
    w.shape = shape;
    w.n_beams = static_cast<int>(n_beams);
    w.n_channels = static_cast<int>(config.n_channels);
    w.multiply = config.multiply;
    w.taken = taken;
    w.given = given;
    w.masked = masked.data();
    w.absent = absent.data();
    w.ring = ring.data();
    w.before = before.data();
    w.planes = planes.data();
    w.levels = levels.data();
    w.targets = targets.data();
    w.responses = responses.data();
    w.common = common.data();
    w.middles = middles.data();
    w.left = left.data();
    w.shared = shared.data();
    w.scatters = scatters.data();
    w.calm = calm.data();
    w.steps = steps.data();
    w.segments = segments.data();
    w.there = there.data();
    w.own = own.data();
    w.own_middles = own_middles.data();
    w.own_left = own_left.data();
    w.corrections = corrections.data();
    w.out = out.data();
    return w;
  }

  void take(const DriftWork& w, cudaStream_t stream) {
    if (w.in.n > 0) {
      NormalizeWork a{};  // for the spectra that never came
      a.in = w.in;
      a.n_beams = w.n_beams;
      a.n_channels = w.n_channels;
      a.absent = absent.data();
      a.absent_stride = shape.block;
      launch_absent(a, stream);
    }
    const std::int64_t n_stay = n_rows * (shape.plane - w.n_new());
    move_cells_kernel<<<drift_blocks(n_stay, kDriftThreads), kDriftThreads, 0, stream>>>(w, n_rows);
    RYLE_CUDA_LAUNCHED("cells that stay");
    const std::int64_t jobs = n_rows * (shape.block / kTakeSamples);
    take_samples_kernel<<<drift_blocks(jobs, kTakeWarps), 32 * kTakeWarps, 0, stream>>>(w, jobs);
    RYLE_CUDA_LAUNCHED("cells of power");
  }

  void find_levels(const DriftWork& w, cudaStream_t stream) {
    const auto beams = static_cast<unsigned>(n_beams);
    const unsigned rows = drift_blocks(n_rows, kDriftThreads);
    const CellRange all = averaged(w.go(), shape.half);
    levels_kernel<<<rows, kDriftThreads, 0, stream>>>(w, n_rows);
    RYLE_CUDA_LAUNCHED("levels of channels");
    common_level_kernel<<<dim3(drift_blocks(shape.plane, kDriftThreads), beams), kDriftThreads, 0,
                          stream>>>(w);
    RYLE_CUDA_LAUNCHED("common level");
    const unsigned few = drift_blocks(n_beams, kDriftThreads);
    common_scatter_kernel<<<few, kDriftThreads, 0, stream>>>(w);
    RYLE_CUDA_LAUNCHED("scatter of the common level");
    common_steps_kernel<<<dim3(drift_blocks(shape.plane, kDriftThreads), beams), kDriftThreads, 0,
                          stream>>>(w);
    RYLE_CUDA_LAUNCHED("steps of the common level");
    common_segments_kernel<<<few, kDriftThreads, 0, stream>>>(w);
    RYLE_CUDA_LAUNCHED("segments of the common level");
    common_middles_kernel<<<dim3(drift_blocks(all.end - all.first, kDriftThreads), beams),
                            kDriftThreads, 0, stream>>>(w);
    RYLE_CUDA_LAUNCHED("first means of the common level");
    common_shared_kernel<<<dim3(drift_blocks(w.end_out - w.first_out, kDriftThreads), beams),
                           kDriftThreads, 0, stream>>>(w);
    RYLE_CUDA_LAUNCHED("second means of the common level");
    channel_responses_kernel<<<rows, kDriftThreads, 0, stream>>>(w, n_rows);
    RYLE_CUDA_LAUNCHED("responses of channels");
  }

  void give(const DriftWork& w, cudaStream_t stream) {
    const CellRange go = w.go_own(), all = averaged(go, shape.own_half);
    own_levels_kernel<<<drift_blocks(n_rows * w.n_own(), kDriftThreads), kDriftThreads, 0,
                        stream>>>(w, n_rows);
    RYLE_CUDA_LAUNCHED("own levels of channels");
    own_middles_kernel<<<drift_blocks(n_rows * (all.end - all.first), kDriftThreads), kDriftThreads,
                         0, stream>>>(w, n_rows);
    RYLE_CUDA_LAUNCHED("medians of channels");
    corrections_kernel<<<drift_blocks(n_rows * (go.end - go.first), kDriftThreads), kDriftThreads,
                         0, stream>>>(w, n_rows);
    RYLE_CUDA_LAUNCHED("corrections of channels");
    const std::int64_t n = static_cast<std::int64_t>(w.end_out - w.first_out) * shape.cell;
    const auto rows = static_cast<unsigned>(std::min<std::int64_t>(n_rows, 65535));
    give_samples_kernel<<<dim3(drift_blocks(n, 256), rows), 256, 0, stream>>>(w, n_rows);
    RYLE_CUDA_LAUNCHED("levelled power");
  }
};

CudaDriftFilter::CudaDriftFilter(Queue& queue, const DriftConfig& config, std::int64_t n_beams,
                                 std::int64_t block) {
  const DriftFilter checked(DriftConfig{1, config.window_samples, {}, false}, block);
  if (n_beams < 1 || n_beams > 65535)
    throw ConfigError("baselines on CUDA: " + std::to_string(n_beams) + " beams; 1 to 65535");
  impl_ = std::make_unique<Impl>(queue, config, n_beams, block);
}
CudaDriftFilter::~CudaDriftFilter() = default;

std::int64_t CudaDriftFilter::lag() const { return impl_->shape.lag; }

std::int64_t CudaDriftFilter::execute(Queue& queue, const DevicePower& power) {
  Impl& me = *impl_;
  RYLE_ASSERT(power.n >= 0 && power.n <= me.shape.block);
  const cuda::DeviceScope scope(cuda::device_of(queue));
  if (power.n > 0) cuda::require_device_memory(power.values, "power of beams");
  const auto stream = cuda::stream_of(queue);
  std::swap(me.before, me.planes);
  DriftWork work = me.work_of(power);
  me.take(work, stream);
  me.taken += me.shape.block;
  me.n_out = std::max<std::int64_t>(0, me.taken - me.shape.lag - me.given);
  if (me.n_out == 0) return 0;
  work.first_out = me.shape.plane - static_cast<int>((me.taken - me.given) / me.shape.cell);
  work.end_out = work.first_out + static_cast<int>(me.n_out / me.shape.cell);
  me.find_levels(work, stream);
  me.give(work, stream);
  me.given += me.n_out;
  return me.n_out;
}

DevicePower CudaDriftFilter::output() const {
  const Impl& me = *impl_;
  return {me.out.data(), me.config.n_channels * me.shape.block, me.shape.block, me.n_out};
}

std::int64_t CudaDriftFilter::memory_bytes() const {
  const auto of = [](const auto&... buffers) { return (buffers.bytes() + ...); };
  const Impl& me = *impl_;
  return of(me.masked, me.absent, me.ring, me.before, me.planes, me.targets, me.responses,
            me.common, me.calm, me.steps, me.segments, me.middles, me.left, me.shared, me.scatters,
            me.own, me.own_middles, me.own_left, me.corrections, me.out, me.levels, me.there);
}

}  // namespace ryle::search
