// SPDX-License-Identifier: BSD-3-Clause
// One device of the CUDA gridder: its copy of the map, sorted samples, and the path of values from
// the host through the kernels and back. Private to the engine.
#pragma once
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/page_lock.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/grid/cuda/collect.hpp"
#include "ryle/engine/grid/cuda/kernels.cuh"
#include "ryle/engine/grid/cuda/make.hpp"
#include "ryle/engine/grid/cuda/timeline.hpp"

namespace ryle::grid::detail {

/// Marks a place in a stream's work.
class CudaEvent {
 public:
  CudaEvent() { RYLE_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~CudaEvent() { static_cast<void>(cudaEventDestroy(event_)); }
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  void record(const Queue& queue) { RYLE_CUDA(cudaEventRecord(event_, cuda::stream_of(queue))); }
  /// What follows on the queue waits; nothing where the event was never recorded.
  void hold(const Queue& queue) const {
    RYLE_CUDA(cudaStreamWaitEvent(cuda::stream_of(queue), event_, 0));
  }
  void wait() const { cuda::check(cudaEventSynchronize(event_), "gridding", true); }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Samples [first, first + n) of a plan, sorted by place.
struct DeviceChunk {
  std::int64_t first = 0, n = 0;
  std::uint32_t n_jobs = 0;
  Buffer<double> x, y, z;
  Buffer<std::uint32_t> row, job_begin;
  Buffer<SampleRange> ranges;
  Buffer<Job> jobs;
};
struct DevicePlan {
  int device = 0;
  std::vector<DeviceChunk> chunks;
  PlanMetadata metadata;
};

/// Tiles, cells, ranges of keys and tables in device memory.
class DeviceMap {
 public:
  /// @param all of which `tiling` is a share: samples out of reach are those of all its tiles
  DeviceMap(Queue& queue, const WarpTiling& tiling, const WarpTiling& all, const PairTables& tables,
            std::int64_t n_cells);
  const MapView& view() const { return view_; }
  const KeySpan& keys() const { return keys_; }
  const PairFunction& function() const { return function_; }
  const Buffer<KeyRange>& ranges() const { return ranges_; }
  const Buffer<KeyRange>& all_ranges() const { return all_ranges_; }
  std::int64_t n_all_ranges() const { return n_all_ranges_; }
  const std::uint32_t* range_begin() const { return range_begin_.data(); }

 private:
  std::vector<KeyRange> find_ranges(Queue& queue, const WarpTile* tiles, std::int64_t n_tiles,
                                    double chord);

  MapView view_;
  KeySpan keys_;
  PairFunction function_;
  Buffer<WarpTile> tiles_;
  Buffer<std::int64_t> cells_;
  Buffer<double> x_, y_, z_;
  Buffer<std::uint32_t> range_begin_;
  Buffer<KeyRange> ranges_, all_ranges_;
  std::int64_t n_all_ranges_ = 0;
  Buffer<float> cubic_;
  Buffer<TableRow> rows_;
};

/// Sorts chunks; keeps its scratch memory.
class ChunkSorter {
 public:
  explicit ChunkSorter(int device);
  Queue& queue() { return queue_; }
  /// From unit vectors on the device, in the order they were given; returns when chunk.jobs are
  /// known. @pre they are there for work on queue()
  void sort(const DeviceMap& map, const double* x, const double* y, const double* z,
            DeviceChunk& chunk);
  void forget_counts();
  void read_counts(PlanMetadata& metadata);
  CudaEvent sorted;  ///< of the last chunk

 private:
  Queue queue_;
  Buffer<std::uint32_t> key_, sorted_, rows_, candidates_, n_jobs_, last_;
  Buffer<std::byte> scratch_;
  Buffer<ChunkCounts> counts_;
};

/// Sums on the host, in page-locked memory that all workers made the pages of.
class HomeSums {
 public:
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  double* data() { return values_.data(); }
  /// @pre no copy into it is under way
  void make(Queue& host, std::int64_t n);

 private:
  LargeVector<double> values_;
  PageLock lock_;  ///< ends before the memory does
};

/// What a run is asked for.
struct DeviceRun {
  const Samples* samples = nullptr;
  std::int64_t first_channel = 0, n_channels = 0;
  DevicePlan* plan = nullptr;
  const double *longitude_deg = nullptr, *latitude_deg = nullptr;  ///< nullptr: plan is made
  SumsCollector* collector = nullptr;  ///< sums for the host, else planes
  Finish finish;
  CudaMapper::Output output;
};

template <class Real>
class DeviceGridder {
 public:
  DeviceGridder(int device, const WarpTiling& tiling, const WarpTiling& all,
                const PairTables& tables, std::int64_t n_cells, const CudaTuning& tuning);
  int device() const { return device_; }
  DevicePlan plan(const Positions& samples);
  /// Tiles that some sample of a plan is near.
  std::vector<bool> reached(const DevicePlan& plan);
  /// Returns when everything is home. @param host packs values that lie apart, adds sums
  void run(Queue& host, const DeviceRun& run);
  const CudaTuning& tuning() const { return tuning_; }
  /// Of the runs from here on; nullptr: none.
  void set_timeline(CudaTimeline* timeline) { timeline_ = timeline; }

 private:
  static constexpr int kSlots = 3;  ///< values on their way: one copied, one waits, one is loaded

  struct Slot {
    Buffer<float> values, weights, packed_values, packed_weights;
    Buffer<std::uint8_t> flags, packed_flags;
    Buffer<float> u, packed_u;
    Buffer<double> longitude, latitude;
    CudaEvent placed, copied, free;
  };
  /// Two groups: one is summed while the other travels home.
  struct GroupState {
    ChannelGroup group;
    int width = 0;
    Buffer<double> sums, own;
    HomeSums sums_home;
    Buffer<float> planes, weight, own_weights;
    Buffer<std::int32_t> count;
    Buffer<std::uint32_t> valid, complete, complete_home;
    CudaEvent summed, home;
  };
  struct Step {
    std::size_t group, chunk;
  };

  void copy_in(Queue& host, const DeviceRun& run, const Step& step, Slot& slot);
  void begin(GroupState& state);
  void grid(const DeviceRun& run, const Step& step, Slot& slot);
  void send_home(Queue& host, const DeviceRun& run, GroupState& state);
  void absorb(Queue& host, const DeviceRun& run, GroupState& state);
  void sum_own(const DeviceRun& run, GroupState& state);
  ChunkView view_of(const DeviceChunk& chunk) const;
  PlaneArgs plane_args(const DeviceRun& run, GroupState& state);
  template <class T>
  T* room(Buffer<T>& buffer, std::int64_t n, MemorySpace space = MemorySpace::device);
  void synchronize();
  bool own_weights(const Samples& s) const {
    return s.weights != nullptr && s.weight_channel_stride != 0;
  }

  int device_;
  CudaTuning tuning_;
  CudaTimeline* timeline_ = nullptr;
  std::int64_t n_cells_, n_tiles_;
  Queue in_, compute_, out_;
  DeviceMap map_;
  ChunkSorter sorter_;
  Slot slots_[kSlots];
  GroupState states_[2];
  std::vector<ChannelGroup> groups_;
  Buffer<double> raw_[3], partial_;
  Buffer<Real> values_;
  Buffer<std::uint32_t> plain_;
  Buffer<float> u_;  ///< shared weights by place, chunk after chunk
};

}  // namespace ryle::grid::detail
