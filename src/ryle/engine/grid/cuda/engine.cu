// SPDX-License-Identifier: BSD-3-Clause
// Values of a group of channels, chunk after chunk: copied, loaded, gridded, reduced. Copies run
// ahead by the slots there are; sums of a group travel home while the next is gridded.
#include "ryle/engine/grid/cuda/engine.cuh"

#include <algorithm>

namespace ryle::grid::detail {
namespace {

constexpr int kOwnRows = kMomentRows * kOwnChannels;

/// Something with strides on the host, of samples [first, first + n) and some channels.
template <class T>
struct Rows {
  const T* from;
  std::int64_t sample_stride, channel_stride;
  std::int64_t first, n;
  std::int64_t first_channel;
  int n_channels;
};

// To [channel][n] on the device: channel by channel where samples are neighbours, else through
// pinned memory.
template <class T>
void copy_rows(Queue& host, Queue& queue, const Rows<T>& r, bool together, T* to, T* packed) {
  const T* const from = r.from + r.first_channel * r.channel_stride + r.first * r.sample_stride;
  const auto bytes = static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kWidestPitch_bytes = 1 << 30;
  const std::int64_t pitch = r.channel_stride * bytes;
  if (r.sample_stride == 1 && together && pitch >= r.n * bytes && pitch < kWidestPitch_bytes) {
    const auto row = static_cast<std::size_t>(r.n * bytes);
    RYLE_CUDA(cudaMemcpy2DAsync(to, row, from, static_cast<std::size_t>(pitch), row,
                                static_cast<std::size_t>(r.n_channels), cudaMemcpyHostToDevice,
                                cuda::stream_of(queue)));
    return;
  }
  if (r.sample_stride == 1) {
    for (int c = 0; c < r.n_channels; ++c)
      copy_bytes(queue, to + c * r.n, from + c * r.channel_stride, r.n * bytes);
    return;
  }
  constexpr std::int64_t kPart = 8192;
  host.parallel_for((r.n + kPart - 1) / kPart, [&](std::int64_t part) {
    const std::int64_t end = std::min(r.n, (part + 1) * kPart);
    for (std::int64_t k = part * kPart; k < end; ++k)
      for (int c = 0; c < r.n_channels; ++c)
        packed[c * r.n + k] = from[k * r.sample_stride + c * r.channel_stride];
  });
  copy_bytes(queue, to, packed, r.n_channels * r.n * bytes);
}

/// Nothing is under way any more when this goes, whatever happened.
class WaitAll {
 public:
  explicit WaitAll(std::vector<const Queue*> queues) : queues_(std::move(queues)) {}
  ~WaitAll() {
    for (const Queue* q : queues_) static_cast<void>(cudaStreamSynchronize(cuda::stream_of(*q)));
  }
  WaitAll(const WaitAll&) = delete;
  WaitAll& operator=(const WaitAll&) = delete;

 private:
  std::vector<const Queue*> queues_;
};

}  // namespace

void HomeSums::make(Queue& host, std::int64_t n) {
  lock_ = {};
  values_ = {};
  values_.resize(static_cast<std::size_t>(n));
  constexpr std::int64_t kPart = std::int64_t{1} << 18;
  host.parallel_for((n + kPart - 1) / kPart, [&](std::int64_t part) {
    std::fill(data() + part * kPart, data() + std::min(n, (part + 1) * kPart), 0.0);
  });
  lock_ = PageLock(data(), 8 * n);
}

template <class Real>
DeviceGridder<Real>::DeviceGridder(int device, const WarpTiling& tiling, const WarpTiling& all,
                                   const PairTables& tables, std::int64_t n_cells,
                                   const CudaTuning& tuning)
    : device_(device),
      tuning_(tuning),
      n_cells_(n_cells),
      n_tiles_(static_cast<std::int64_t>(tiling.tiles.size())),
      in_(Queue::cuda(device)),
      compute_(Queue::cuda(device)),
      out_(Queue::cuda(device)),
      map_(compute_, tiling, all, tables, n_cells),
      sorter_(device) {}

template <class Real>
void DeviceGridder<Real>::synchronize() {
  in_.synchronize();
  sorter_.queue().synchronize();
  compute_.synchronize();
  out_.synchronize();
}

// Memory that kernels or copies may still use is not given away.
template <class Real>
template <class T>
T* DeviceGridder<Real>::room(Buffer<T>& buffer, std::int64_t n, MemorySpace space) {
  if (buffer.size() < n) synchronize();
  return at_least(buffer, n, space);
}

template <class Real>
DevicePlan DeviceGridder<Real>::plan(const Positions& samples) {
  DevicePlan plan;
  plan.device = device_;
  plan.metadata.n_samples = samples.size();
  plan.metadata.n_tiles = n_tiles_;
  sorter_.forget_counts();
  const double* const from[] = {samples.x.data(), samples.y.data(), samples.z.data()};
  const WaitAll wait_all({&sorter_.queue()});  // nothing reads the samples when this ends
  for (std::int64_t first = 0; first < samples.size(); first += tuning_.chunk_samples) {
    DeviceChunk& c = plan.chunks.emplace_back();
    c.first = first;
    c.n = std::min(tuning_.chunk_samples, samples.size() - first);
    sorter_.queue().synchronize();
    for (int a = 0; a < 3; ++a)
      copy_bytes(sorter_.queue(), at_least(raw_[a], c.n), from[a] + first, 8 * c.n);
    sorter_.sort(map_, raw_[0].data(), raw_[1].data(), raw_[2].data(), c);
  }
  sorter_.read_counts(plan.metadata);
  return plan;
}

template <class Real>
std::vector<bool> DeviceGridder<Real>::reached(const DevicePlan& plan) {
  std::vector<bool> any(static_cast<std::size_t>(n_tiles_));
  std::vector<std::uint32_t> begin(any.size() + 1);
  for (const DeviceChunk& c : plan.chunks) {
    copy_bytes(compute_, begin.data(), c.job_begin.data(), 4 * (n_tiles_ + 1));
    compute_.synchronize();
    for (std::size_t t = 0; t < any.size(); ++t)
      if (begin[t + 1] > begin[t]) any[t] = true;
  }
  return any;
}

template <class Real>
void DeviceGridder<Real>::copy_in(Queue& host, const DeviceRun& run, const Step& step, Slot& slot) {
  const DeviceChunk& c = run.plan->chunks[step.chunk];
  const ChannelGroup& g = groups_[step.group];
  const Samples& s = *run.samples;
  slot.copied.wait();  // what was packed for it before has gone
  const std::int64_t n = g.n * c.n;
  const bool packs = s.sample_stride != 1;
  room(slot.values, n);
  if (packs) room(slot.packed_values, n, MemorySpace::pinned);
  if (s.flags != nullptr) room(slot.flags, n);
  if (s.flags != nullptr && packs) room(slot.packed_flags, n, MemorySpace::pinned);
  const bool own = own_weights(s);
  const bool shared = s.weights != nullptr && !own && step.group == 0;
  const bool packs_weights = s.weight_sample_stride != 1;
  if (own) room(slot.weights, n);
  if (own && packs_weights) room(slot.packed_weights, n, MemorySpace::pinned);
  if (shared) room(slot.u, c.n);
  if (shared && packs_weights) room(slot.packed_u, c.n, MemorySpace::pinned);
  const bool places = run.longitude_deg != nullptr && step.group == 0;
  if (places) {
    room(slot.longitude, c.n);
    room(slot.latitude, c.n);
  }
  slot.free.hold(in_);
  const StageSpan span(timeline_, in_, "copy in");
  if (places) {
    copy_bytes(in_, slot.longitude.data(), run.longitude_deg + c.first, 8 * c.n);
    copy_bytes(in_, slot.latitude.data(), run.latitude_deg + c.first, 8 * c.n);
    slot.placed.record(in_);
  }
  copy_rows<float>(host, in_,
                   {s.values, s.sample_stride, s.channel_stride, c.first, c.n, g.first, g.n},
                   tuning_.copies_together, slot.values.data(), slot.packed_values.data());
  if (s.flags != nullptr)
    copy_rows<std::uint8_t>(
        host, in_, {s.flags, s.sample_stride, s.channel_stride, c.first, c.n, g.first, g.n},
        tuning_.copies_together, slot.flags.data(), slot.packed_flags.data());
  const Rows<float> weights{
      s.weights,         s.weight_sample_stride, s.weight_channel_stride, c.first, c.n,
      own ? g.first : 0, own ? g.n : 1};
  const bool together = tuning_.copies_together;
  if (own) copy_rows(host, in_, weights, together, slot.weights.data(), slot.packed_weights.data());
  if (shared) copy_rows(host, in_, weights, together, slot.u.data(), slot.packed_u.data());
  slot.copied.record(in_);
}

template <class Real>
void DeviceGridder<Real>::begin(GroupState& state) {
  const std::int64_t n_rows = state.width + kMomentRows;
  room(state.sums, n_rows * n_cells_);
  room(state.complete, n_tiles_);
  const auto stream = cuda::stream_of(compute_);
  RYLE_CUDA(cudaMemsetAsync(state.sums.data(), 0, static_cast<std::size_t>(8 * n_rows * n_cells_),
                            stream));
  RYLE_CUDA(
      cudaMemsetAsync(state.complete.data(), 0xff, static_cast<std::size_t>(4 * n_tiles_), stream));
}

template <class Real>
void DeviceGridder<Real>::grid(const DeviceRun& run, const Step& step, Slot& slot) {
  DeviceChunk& c = run.plan->chunks[step.chunk];
  GroupState& state = states_[step.group % 2];
  const Samples& s = *run.samples;
  const auto stream = cuda::stream_of(compute_);
  if (run.longitude_deg != nullptr && step.group == 0) {
    Queue& q = sorter_.queue();
    slot.placed.hold(q);
    for (auto& raw : raw_) room(raw, c.n);
    const StageSpan span(timeline_, q, "sort");
    launch_directions(slot.longitude.data(), slot.latitude.data(), c.n, raw_[0].data(),
                      raw_[1].data(), raw_[2].data(), cuda::stream_of(q));
    sorter_.sort(map_, raw_[0].data(), raw_[1].data(), raw_[2].data(), c);
    sorter_.sorted.hold(compute_);
  }
  const bool own = own_weights(s), shared = s.weights != nullptr && !own;
  const std::int64_t width = state.width, n_rows = width + kMomentRows;
  const std::int64_t n_samples = run.plan->metadata.n_samples;
  room(values_, c.n * width);
  room(plain_, c.n);
  room(state.valid, n_samples);
  if (own) room(state.own_weights, n_samples * width);
  room(partial_, c.n_jobs * n_rows * kWarp);
  if (shared) room(u_, n_samples);
  slot.copied.hold(compute_);
  if (shared && step.group == 0)
    launch_load_weights(slot.u.data(), c.row.data(), c.n, u_.data() + c.first, stream);
  LoadArgs<Real> load;
  load.from = {c.n, state.group.n, slot.values.data(),
               s.flags != nullptr ? slot.flags.data() : nullptr,
               own ? slot.weights.data() : nullptr};
  load.row = c.row.data();
  load.values = values_.data();
  load.own = own ? state.own_weights.data() + c.first * width : nullptr;
  load.valid = state.valid.data() + c.first;
  load.plain = plain_.data();
  {
    const StageSpan span(timeline_, compute_, "load");
    launch_load(state.width, load, stream);
  }
  slot.free.record(compute_);
  GridArgs<Real> args;
  args.map = map_.view();
  args.chunk = view_of(c);
  args.function = map_.function();
  args.u = shared ? u_.data() + c.first : nullptr;
  args.values = values_.data();
  args.plain = plain_.data();
  args.partial = partial_.data();
  args.complete = state.complete.data();
  {
    const StageSpan span(timeline_, compute_, "grid");
    launch_grid(state.width, args, stream);
  }
  const StageSpan span(timeline_, compute_, "reduce");
  launch_reduce({map_.view(), c.job_begin.data(), partial_.data(), static_cast<int>(n_rows),
                 nullptr, state.sums.data()},
                stream);
}

template <class Real>
ChunkView DeviceGridder<Real>::view_of(const DeviceChunk& c) const {
  return {c.n,          c.x.data(),      c.y.data(),         c.z.data(),
          c.row.data(), c.ranges.data(), map_.range_begin(), c.jobs.data(),
          c.n_jobs};
}

template <class Real>
PlaneArgs DeviceGridder<Real>::plane_args(const DeviceRun& run, GroupState& state) {
  const std::int64_t n = state.group.n;
  PlaneArgs a;
  a.n_cells = n_cells_;
  a.n_channels = state.group.n;
  a.weighted = state.sums.data();
  a.moments = state.sums.data() + state.width * n_cells_;
  a.min_count = run.finish.min_count;
  a.min_weight = run.finish.min_weight;
  a.values = room(state.planes, n * n_cells_);
  if (state.group.first == run.first_channel) {
    if (run.output.weight != nullptr) a.weight = room(state.weight, n_cells_);
    if (run.output.count != nullptr) a.count = room(state.count, n_cells_);
  }
  return a;
}

template <class Real>
void DeviceGridder<Real>::send_home(Queue& host, const DeviceRun& run, GroupState& state) {
  const std::int64_t n_sums = (state.width + kMomentRows) * n_cells_;
  room(state.complete_home, n_tiles_, MemorySpace::pinned);
  PlaneArgs planes;
  if (run.collector != nullptr) {
    if (state.sums_home.size() < n_sums) {
      synchronize();
      state.sums_home.make(host, n_sums);
    }
  } else {
    planes = plane_args(run, state);
    const StageSpan span(timeline_, compute_, "planes");
    launch_planes(planes, cuda::stream_of(compute_));
  }
  state.summed.record(compute_);
  state.summed.hold(out_);
  const StageSpan span(timeline_, out_, "copy out");
  if (run.collector != nullptr) {
    copy_bytes(out_, state.sums_home.data(), state.sums.data(), 8 * n_sums);
  } else {
    copy_bytes(out_, run.output.values + (state.group.first - run.first_channel) * n_cells_,
               planes.values, 4 * state.group.n * n_cells_);
    if (planes.weight != nullptr) copy_bytes(out_, run.output.weight, planes.weight, 4 * n_cells_);
    if (planes.count != nullptr) copy_bytes(out_, run.output.count, planes.count, 4 * n_cells_);
  }
  copy_bytes(out_, state.complete_home.data(), state.complete.data(), 4 * n_tiles_);
  state.home.record(out_);
}

// Moments of single channels in tiles where something was absent, from what the group left behind.
template <class Real>
void DeviceGridder<Real>::sum_own(const DeviceRun& run, GroupState& state) {
  const Samples& s = *run.samples;
  const auto stream = cuda::stream_of(compute_);
  const bool own = own_weights(s), shared = s.weights != nullptr && !own;
  const std::int64_t n_slabs = (state.group.n + kOwnChannels - 1) / kOwnChannels;
  room(state.own, n_slabs * kOwnRows * n_cells_);
  RYLE_CUDA(cudaMemsetAsync(state.own.data(), 0,
                            static_cast<std::size_t>(8 * n_slabs * kOwnRows * n_cells_), stream));
  for (std::int64_t slab = 0; slab < n_slabs; ++slab)
    for (const DeviceChunk& c : run.plan->chunks) {
      OwnArgs<Real> a;
      a.map = map_.view();
      a.chunk = view_of(c);
      a.function = map_.function();
      a.u = shared ? u_.data() + c.first : nullptr;
      a.own = own ? state.own_weights.data() + c.first * state.width : nullptr;
      a.valid = state.valid.data() + c.first;
      a.complete = state.complete.data();
      a.first = static_cast<int>(slab) * kOwnChannels;
      a.width = state.width;
      a.partial = room(partial_, c.n_jobs * std::int64_t{kOwnRows} * kWarp);
      launch_own(a, stream);
      launch_reduce({map_.view(), c.job_begin.data(), partial_.data(), kOwnRows,
                     state.complete.data(), state.own.data() + slab * kOwnRows * n_cells_},
                    stream);
    }
}

template <class Real>
void DeviceGridder<Real>::absorb(Queue& host, const DeviceRun& run, GroupState& state) {
  state.home.wait();
  const bool partial = is_partial(state.complete_home.data(), n_tiles_);
  if (partial) sum_own(run, state);
  if (run.collector == nullptr) {
    if (!partial) return;
    const PlaneArgs planes = plane_args(run, state);
    launch_own_planes({map_.view(), state.complete.data(), state.own.data(), planes},
                      cuda::stream_of(compute_));
    copy_bytes(compute_, run.output.values + (state.group.first - run.first_channel) * n_cells_,
               planes.values, 4 * state.group.n * n_cells_);
    compute_.synchronize();
    return;
  }
  std::vector<double> own;
  if (partial) {
    const std::int64_t n = (state.group.n + kOwnChannels - 1) / kOwnChannels * kOwnRows * n_cells_;
    own.resize(static_cast<std::size_t>(n));
    copy_bytes(compute_, own.data(), state.own.data(), 8 * n);
    compute_.synchronize();
  }
  GroupSums group;
  group.first_channel = state.group.first;
  group.n_channels = state.group.n;
  group.weighted = state.sums_home.data();
  group.moments = state.sums_home.data() + state.width * n_cells_;
  group.complete = state.complete_home.data();
  group.own = partial ? own.data() : nullptr;
  run.collector->add(host, group);
}

template <class Real>
void DeviceGridder<Real>::run(Queue& host, const DeviceRun& run) {
  const cuda::DeviceScope scope(device_);
  const WaitAll wait_all({&in_, &sorter_.queue(), &compute_, &out_});
  groups_ = channel_groups(run.first_channel, run.n_channels, tuning_.channels);
  if (timeline_ != nullptr) timeline_->start(in_);
  const std::size_t n_chunks = run.plan->chunks.size();
  std::vector<Step> steps;
  for (std::size_t g = 0; g < groups_.size(); ++g)
    for (std::size_t c = 0; c < n_chunks; ++c) steps.push_back({g, c});
  if (run.longitude_deg != nullptr) sorter_.forget_counts();
  std::size_t copied = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (; copied < std::min(steps.size(), i + kSlots); ++copied)
      copy_in(host, run, steps[copied], slots_[copied % kSlots]);
    GroupState& state = states_[steps[i].group % 2];
    if (steps[i].chunk == 0) {
      state.group = groups_[steps[i].group];
      state.width = group_width(state.group.n);
      begin(state);
    }
    grid(run, steps[i], slots_[i % kSlots]);
    if (steps[i].chunk + 1 < n_chunks) continue;
    send_home(host, run, state);
    if (steps[i].group > 0) absorb(host, run, states_[(steps[i].group - 1) % 2]);
  }
  if (!steps.empty()) absorb(host, run, states_[(groups_.size() - 1) % 2]);
  if (run.longitude_deg != nullptr) sorter_.read_counts(run.plan->metadata);
  synchronize();
}

template class DeviceGridder<float>;
template class DeviceGridder<double>;

}  // namespace ryle::grid::detail
