// SPDX-License-Identifier: BSD-3-Clause
// The CUDA gridder without a GPU: every function that a thread of its kernels runs, one thread
// after the other, in the order of the kernels' barriers.
#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "ryle/core/units.hpp"
#include "ryle/engine/grid/cuda/args.hpp"
#include "ryle/engine/grid/cuda/collect.hpp"
#include "ryle/engine/grid/cuda/groups.hpp"
#include "ryle/engine/grid/cuda/job.hpp"
#include "ryle/engine/grid/cuda/load.hpp"
#include "ryle/engine/grid/geometry.hpp"

namespace ryle::grid::cases {

struct HostChunk {
  std::int64_t first = 0;
  std::vector<double> x, y, z;
  std::vector<std::uint32_t> row, job_begin;
  std::vector<detail::SampleRange> ranges;
  std::vector<detail::Job> jobs;
};
struct HostPlan {
  std::vector<HostChunk> chunks;
};

/// Kernels that run in place of the loops over jobs, where a test has them.
template <class Real>
struct HostKernels {
  std::function<void(int width, const detail::GridArgs<Real>&)> grid;
  std::function<void(const detail::ReduceArgs&)> reduce;
};

template <class Real>
class CudaOnHost final : public Gridder {
 public:
  /// @param chunk_samples of a chunk; @param most channels of a group; @param share of n_shares of
  /// the map's tiles
  CudaOnHost(const Config& config, const Cells& cells, std::int64_t chunk_samples, int maximum,
             std::int64_t share = 0, std::int64_t n_shares = 1)
      : config_(config),
        chunk_samples_(chunk_samples),
        maximum_(maximum),
        sums_(cells.directions.size(), config.n_channels),
        n_shares_(n_shares),
        tiling_(
            detail::share_of(detail::make_warp_tiles(cells, config.convolution), share, n_shares)),
        tables_(detail::make_pair_tables(config.convolution, sizeof(Real) == 8)) {
    find_ranges();
  }
  void run_kernels(HostKernels<Real> kernels) { kernels_ = std::move(kernels); }
  const detail::WarpTiling& tiling() const { return tiling_; }
  const std::vector<detail::KeyRange>& key_ranges() const { return key_ranges_; }

  std::shared_ptr<const GeometryPlan> plan(Queue&, Positions samples) override {
    auto host = std::make_shared<HostPlan>();
    auto plan = std::make_shared<GeometryPlan>();
    plan->metadata = {samples.size(), 0, 0, static_cast<std::int64_t>(tiling_.tiles.size()), 0};
    for (std::int64_t first = 0; first < samples.size(); first += chunk_samples_)
      host->chunks.push_back(make_chunk(samples, first, plan->metadata));
    plan->metadata.out_of_reach += samples.size() - plan->metadata.bad_positions;
    plan->device = host;
    return plan;
  }

  void execute(Queue& queue, const GeometryPlan& plan, const Samples& samples) override {
    const auto& chunks = std::static_pointer_cast<HostPlan>(plan.device)->chunks;
    detail::SumsCollector collector(sums_, tiling_, n_shares_ == 1);
    for (const auto& group : detail::channel_groups(0, config_.n_channels, maximum_)) {
      switch (detail::group_width(group.n)) {
        case 1:
          grid<1>(queue, chunks, samples, group, collector);
          break;
        case 4:
          grid<4>(queue, chunks, samples, group, collector);
          break;
        case 8:
          grid<8>(queue, chunks, samples, group, collector);
          break;
        default:
          grid<12>(queue, chunks, samples, group, collector);
      }
    }
    collector.finish(queue);
  }
  const Sums& sums() const override { return sums_; }
  Sums& sums() override { return sums_; }
  std::string_view implementation() const override { return "cuda on the host"; }

 private:
  void find_ranges() {
    for (const auto& tile : tiling_.tiles) {
      range_begin_.push_back(static_cast<std::uint32_t>(key_ranges_.size()));
      detail::KeyRanges walk(tile, tiling_.chord, tiling_.order);
      for (detail::KeyRange r{}; walk.next(r);) key_ranges_.push_back(r);
    }
    range_begin_.push_back(static_cast<std::uint32_t>(key_ranges_.size()));
    std::uint32_t last = 0;
    keys_ = {tiling_.order, ~0U, 0};
    for (const auto& r : key_ranges_) {
      keys_.first = std::min(keys_.first, r.begin);
      last = std::max(last, r.end);
    }
    keys_.span = last - keys_.first;
    all_ranges_ = detail::union_of(key_ranges_);
  }

  HostChunk make_chunk(const Positions& p, std::int64_t first, PlanMetadata& metadata) const {
    const auto n = static_cast<std::size_t>(std::min(chunk_samples_, p.size() - first));
    HostChunk c;
    c.first = first;
    std::vector<std::uint32_t> unsorted(n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t k = static_cast<std::size_t>(first) + i;
      unsorted[i] = detail::key_in(keys_, p.x[k], p.y[k], p.z[k]);
      metadata.bad_positions += std::isnan(p.x[k]) ? 1 : 0;
    }
    c.row.resize(n);
    std::iota(c.row.begin(), c.row.end(), 0U);
    std::stable_sort(c.row.begin(), c.row.end(),
                     [&](auto a, auto b) { return unsorted[a] < unsorted[b]; });
    std::vector<std::uint32_t> keys;
    for (const std::uint32_t r : c.row) {
      const std::size_t k = static_cast<std::size_t>(first) + r;
      c.x.push_back(p.x[k]);
      c.y.push_back(p.y[k]);
      c.z.push_back(p.z[k]);
      keys.push_back(unsorted[r]);
    }
    const auto count = static_cast<std::uint32_t>(n);
    for (const auto& r : key_ranges_)
      c.ranges.push_back(detail::samples_of(keys.data(), count, keys_, r));
    for (std::size_t t = 0; t < tiling_.tiles.size(); ++t) {
      const std::uint32_t candidates =
          detail::number_candidates(c.ranges.data(), range_begin_[t], range_begin_[t + 1]);
      c.job_begin.push_back(static_cast<std::uint32_t>(c.jobs.size()));
      c.jobs.resize(c.jobs.size() + detail::n_jobs_of(candidates));
      detail::write_jobs(static_cast<std::uint32_t>(t), candidates,
                         c.jobs.data() + c.job_begin.back());
      metadata.n_candidates += candidates;
    }
    c.job_begin.push_back(static_cast<std::uint32_t>(c.jobs.size()));
    for (const auto& r : all_ranges_)
      metadata.out_of_reach -= detail::samples_of(keys.data(), count, keys_, r).n;
    return c;
  }

  template <int kChannels>
  struct Loaded {
    std::vector<Real> values;
    std::vector<std::uint32_t> valid, plain;
    std::vector<float> u, own;
  };

  template <int kChannels>
  Loaded<kChannels> load(const HostChunk& c, const Samples& s,
                         const detail::ChannelGroup& g) const {
    const std::size_t n = c.row.size();
    std::vector<float> values, weights;
    std::vector<std::uint8_t> flags;
    const bool own = s.weights != nullptr && s.weight_channel_stride != 0;
    for (int e = 0; e < g.n; ++e)
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t k = c.first + static_cast<std::int64_t>(i);
        const std::int64_t at = k * s.sample_stride + (g.first + e) * s.channel_stride;
        values.push_back(s.values[at]);
        if (s.flags != nullptr) flags.push_back(s.flags[at]);
        if (own)
          weights.push_back(
              s.weights[k * s.weight_sample_stride + (g.first + e) * s.weight_channel_stride]);
      }
    const detail::LoadView view{static_cast<std::int64_t>(n), g.n, values.data(),
                                s.flags != nullptr ? flags.data() : nullptr,
                                own ? weights.data() : nullptr};
    Loaded<kChannels> to;
    to.values.resize(n * kChannels);
    to.own.resize(own ? n * kChannels : 0);
    for (std::size_t i = 0; i < n; ++i) {
      const auto p =
          detail::load_sample<Real, kChannels>(view, c.row[i], to.values.data() + i * kChannels,
                                               own ? to.own.data() + i * kChannels : nullptr);
      to.valid.push_back(p.valid);
      to.plain.push_back(p.plain);
      if (s.weights != nullptr && !own)
        to.u.push_back(
            detail::load_weight(s.weights[(c.first + c.row[i]) * s.weight_sample_stride]));
    }
    return to;
  }

  detail::ChunkView view_of(const HostChunk& c) const {
    return {static_cast<std::int64_t>(c.row.size()),
            c.x.data(),
            c.y.data(),
            c.z.data(),
            c.row.data(),
            c.ranges.data(),
            range_begin_.data(),
            c.jobs.data(),
            static_cast<std::uint32_t>(c.jobs.size())};
  }
  detail::MapView map_view() const {
    return {tiling_.tiles.data(), static_cast<std::int64_t>(tiling_.tiles.size()),
            tiling_.cells.data(), tiling_.x.data(),
            tiling_.y.data(),     tiling_.z.data(),
            sums_.n_cells()};
  }
  detail::LaneCell<Real> cell_of(std::uint32_t tile, int lane) const {
    const std::size_t i = std::size_t{tile} * detail::kWarp + static_cast<std::size_t>(lane);
    return detail::make_cell<Real>(tiling_.tiles[tile], tiling_.cells[i] >= 0, tiling_.x[i],
                                   tiling_.y[i], tiling_.z[i]);
  }
  bool reach(const detail::WarpTile& tile, const detail::LaneCell<Real>& cell,
             const detail::Staged<Real>& s, const detail::ChunkView& chunk, std::uint32_t place,
             Real& w) const {
    bool in = false;
    detail::with_weighing<Real>(tables_.function.weighing, [&](auto weighing) {
      in = detail::reach<Real, decltype(weighing)::value>(tile, tables_.function, cell, s, chunk,
                                                          place, w);
    });
    return in;
  }

  // One warp: batches through what is shared memory there. `visit(lane, cell, sample, place, w)`.
  template <class Begin, class Visit, class Flush>
  void run_job(const detail::ChunkView& chunk, const detail::Job& job, const float* u,
               const Begin& staged_sample, const Visit& visit, const Flush& flush) const {
    const detail::WarpTile& tile = tiling_.tiles[job.tile];
    const auto box = detail::box_of<Real>(tile);
    std::vector<detail::Staged<Real>> staged;
    std::vector<std::uint32_t> place;
    std::uint32_t cursor = chunk.range_begin[job.tile];
    for (std::uint32_t k = 0; k < job.n; ++k) {
      const std::uint32_t at =
          detail::place_of(chunk.ranges, chunk.range_begin[job.tile + 1], job.first + k, cursor);
      const auto s = detail::stage<Real>(tile, chunk, u, at);
      if (!detail::is_near(box, s)) continue;
      staged.push_back(s);
      place.push_back(at);
      staged_sample(at);
    }
    bool first = true;
    constexpr std::size_t kTogether = std::size_t{detail::kFlushBatches} * detail::kWarp;
    for (std::size_t begin = 0; begin == 0 || begin < staged.size(); begin += kTogether) {
      for (int lane = 0; lane < detail::kWarp; ++lane) {
        const auto cell = cell_of(job.tile, lane);
        for (std::size_t i = begin; i < std::min(staged.size(), begin + kTogether); ++i) {
          Real w = 0;
          if (reach(tile, cell, staged[i], chunk, place[i], w))
            visit(lane, staged[i].u, place[i], w);
        }
      }
      flush(first);
      first = false;
    }
  }

  void reduce(const HostChunk& c, const std::vector<double>& partial, int n_rows,
              std::vector<double>& sums) const {
    for (std::size_t t = 0; t < tiling_.tiles.size(); ++t)
      for (int lane = 0; lane < detail::kWarp; ++lane) {
        const std::int64_t cell = tiling_.cells[t * detail::kWarp + static_cast<std::size_t>(lane)];
        if (cell < 0) continue;
        for (int r = 0; r < n_rows; ++r)
          sums[static_cast<std::size_t>(r * sums_.n_cells() + cell)] +=
              detail::total(partial.data(), n_rows, c.job_begin[t], c.job_begin[t + 1], r, lane);
      }
  }

  template <int kChannels>
  void grid(Queue& queue, const std::vector<HostChunk>& chunks, const Samples& samples,
            const detail::ChannelGroup& group, detail::SumsCollector& collector) {
    constexpr int kRows = kChannels + detail::kMomentRows;
    const auto n_cells = static_cast<std::size_t>(sums_.n_cells());
    std::vector<double> sums(kRows * n_cells), own;
    std::vector<std::uint32_t> complete(tiling_.tiles.size(), ~0U);
    std::vector<Loaded<kChannels>> loaded;
    for (const HostChunk& c : chunks) {
      loaded.push_back(load<kChannels>(c, samples, group));
      const auto& in = loaded.back();
      const auto chunk = view_of(c);
      std::vector<double> partial(c.jobs.size() * kRows * detail::kWarp, kNaN);
      if (kernels_.grid) {
        detail::GridArgs<Real> args;
        args.map = map_view();
        args.chunk = chunk;
        args.function = tables_.function;
        args.u = in.u.empty() ? nullptr : in.u.data();
        args.values = in.values.data();
        args.plain = in.plain.data();
        args.partial = partial.data();
        args.complete = complete.data();
        kernels_.grid(kChannels, args);
        kernels_.reduce(
            {args.map, c.job_begin.data(), partial.data(), kRows, nullptr, sums.data()});
        continue;
      }
      for (std::size_t j = 0; j < c.jobs.size(); ++j) {
        std::vector<detail::LaneSums<Real, kChannels>> lanes(detail::kWarp);
        double* to = partial.data() + j * kRows * detail::kWarp;
        run_job(
            chunk, c.jobs[j], in.u.empty() ? nullptr : in.u.data(),
            [&](std::uint32_t place) {
              complete[c.jobs[j].tile] &= in.plain[place] | ~full<kChannels>();
            },
            [&](int lane, Real u, std::uint32_t place, Real w) {
              detail::add(lanes[static_cast<std::size_t>(lane)], true, w, u,
                          in.values.data() + std::size_t{place} * kChannels);
            },
            [&](bool first) {
              for (int lane = 0; lane < detail::kWarp; ++lane)
                detail::flush(lanes[static_cast<std::size_t>(lane)], to, lane, first);
            });
      }
      reduce(c, partial, kRows, sums);
    }
    const auto n_tiles = static_cast<std::int64_t>(complete.size());
    if (detail::is_partial(complete.data(), n_tiles))
      own = own_of(chunks, loaded, group.n, complete);
    collector.add(queue, {group.first, group.n, sums.data(), sums.data() + kChannels * n_cells,
                          complete.data(), own.empty() ? nullptr : own.data()});
  }
  template <int kChannels>
  static constexpr std::uint32_t full() {
    return (1U << kChannels) - 1;
  }

  template <int kChannels>
  std::vector<double> own_of(const std::vector<HostChunk>& chunks,
                             const std::vector<Loaded<kChannels>>& loaded, int n,
                             const std::vector<std::uint32_t>& complete) const {
    constexpr int kRows = detail::kMomentRows * detail::kOwnChannels;
    std::vector<double> all;
    for (int slab = 0; slab < n; slab += detail::kOwnChannels) {
      std::vector<double> sums(static_cast<std::size_t>(kRows * sums_.n_cells()));
      for (std::size_t k = 0; k < chunks.size(); ++k) {
        const HostChunk& c = chunks[k];
        const auto& in = loaded[k];
        std::vector<double> partial(c.jobs.size() * kRows * detail::kWarp);
        for (std::size_t j = 0; j < c.jobs.size(); ++j) {
          if (complete[c.jobs[j].tile] == ~0U) continue;
          std::vector<detail::LaneOwn<Real>> lanes(detail::kWarp);
          double* to = partial.data() + j * kRows * detail::kWarp;
          run_job(
              view_of(c), c.jobs[j], in.u.empty() ? nullptr : in.u.data(), [](std::uint32_t) {},
              [&](int lane, Real u, std::uint32_t place, Real w) {
                detail::add_own(lanes[static_cast<std::size_t>(lane)], w, u,
                                detail::slab_of(in.valid[place], slab, kChannels),
                                in.own.empty()
                                    ? nullptr
                                    : in.own.data() + std::size_t{place} * kChannels + slab);
              },
              [&](bool first) {
                for (int lane = 0; lane < detail::kWarp; ++lane)
                  detail::flush(lanes[static_cast<std::size_t>(lane)], to, lane, first);
              });
        }
        reduce(c, partial, kRows, sums);
      }
      all.insert(all.end(), sums.begin(), sums.end());
    }
    return all;
  }

  Config config_;
  HostKernels<Real> kernels_;
  std::int64_t chunk_samples_;
  int maximum_;
  Sums sums_;
  std::int64_t n_shares_;
  detail::WarpTiling tiling_;
  detail::PairTables tables_;
  std::vector<detail::KeyRange> key_ranges_, all_ranges_;
  std::vector<std::uint32_t> range_begin_;
  detail::KeySpan keys_;
};

}  // namespace ryle::grid::cases
