// SPDX-License-Identifier: BSD-3-Clause
// Host side of the normalizer on the device: its reference is Normalizer (normalize.cpp).
#include "ryle/engine/search/cuda/normalize.hpp"

#include <algorithm>
#include <array>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/search/cuda/normalize.cuh"
#include "ryle/engine/search/device_memory.hpp"
#include "ryle/engine/search/kurtosis.hpp"
#include "ryle/engine/search/robust.hpp"

namespace ryle::search {
namespace {

using namespace detail;

std::int64_t past_cells(const NormalizeConfig& c) { return c.median_cells / 2; }

}  // namespace

struct CudaNormalizer::Impl {
  NormalizeConfig config;
  std::int64_t n_beams, max_samples, n_channels, max_cells, n_past_cells = 0;
  int degree;
  Buffer<std::uint8_t> user, absent, masked, bad, flags;
  Buffer<CellMoments> now, usual, typical, past;
  Buffer<CellScale> scales;
  Buffer<double> basis;
  Buffer<unsigned long long> counters;
  std::vector<unsigned long long> host_counters;
  std::vector<std::uint8_t> host_flags;
  std::vector<NormalizeReport> reports;                  // [beam]
  std::vector<std::vector<std::uint8_t>> channel_flags;  // [beam]
  std::vector<std::unique_ptr<SpectraFlagger>> spectra;  // [beam]; empty: not looked for
  std::int64_t n_groups = 0, history = 0, ring = 0, n_past = 0, next_column = 0, n_bursts = 0;
  Buffer<float> sums, counts, band;  // rings
  Buffer<int> found;
  std::vector<int> host_found;
  std::int64_t tick = 0;       // of the first sample of this gulp
  Buffer<std::uint8_t> times;  // that the user masks
  std::vector<std::uint8_t> host_times;
  Buffer<int> n_samples;  // spectral kurtosis
  Buffer<std::uint8_t> seen;
  Buffer<double> limits;  // low, high
  std::vector<std::uint8_t> host_seen, has_limits;
  std::vector<double> host_limits;
  Buffer<float> common, gains;  // zero-DM filter; common: means, counts
  Buffer<std::uint8_t> flag_room;

  Impl(Queue& queue, const NormalizeConfig& c, std::int64_t beams, std::int64_t samples)
      : config(c),
        n_beams(beams),
        max_samples(samples),
        n_channels(c.n_channels),
        max_cells((samples + c.statistics_samples - 1) / c.statistics_samples),
        degree(std::min<int>(kBandpassDegree, static_cast<int>(c.n_channels / 16))) {
    const OnDevice scope(queue);
    const auto device = MemorySpace::device;
    const std::int64_t rows = n_beams * n_channels, cells = checked_product({rows, max_cells}, "");
    user = Buffer<std::uint8_t>(n_channels, device);
    absent = Buffer<std::uint8_t>(n_beams * max_samples, device);
    masked = Buffer<std::uint8_t>(n_beams * max_samples, device);
    bad = Buffer<std::uint8_t>(cells, device);
    flags = Buffer<std::uint8_t>(rows, device);
    now = Buffer<CellMoments>(cells, device);
    usual = Buffer<CellMoments>(cells, device);
    typical = Buffer<CellMoments>(rows, device);
    past = Buffer<CellMoments>(std::max<std::int64_t>(1, rows * past_cells(c)), device);
    scales = Buffer<CellScale>(cells, device);
    counters = Buffer<unsigned long long>(n_beams * kNormalizeCounters, device);
    host_counters.resize(static_cast<std::size_t>(counters.size()));
    host_flags.resize(static_cast<std::size_t>(rows));
    reports.resize(static_cast<std::size_t>(n_beams));
    channel_flags.assign(static_cast<std::size_t>(n_beams),
                         std::vector<std::uint8_t>(static_cast<std::size_t>(n_channels), 0));
    const auto table = legendre_basis(static_cast<std::size_t>(n_channels), degree);
    basis = Buffer<double>(static_cast<std::int64_t>(table.size()), device);
    copy_bytes(queue, basis.data(), table.data(), basis.bytes());
    std::vector<std::uint8_t> out(static_cast<std::size_t>(n_channels), 0);
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (!c.masked.empty() && c.masked[k] != 0) out[k] = 1;
      if (!c.mask.channels.empty() && c.mask.channels[k] != 0) out[k] = 1;
    }
    copy_bytes(queue, user.data(), out.data(), user.bytes());
    queue.synchronize();
    config.mask.sort();
    if (const std::int64_t bytes = flag_room_bytes(n_channels); bytes > 0)
      flag_room = Buffer<std::uint8_t>(bytes, device);
    if (looks_for_bursts(c)) prepare_bursts();
    if (!c.mask.blocks.empty()) times = Buffer<std::uint8_t>(n_channels * max_samples, device);
    if (c.kurtosis_degrees > 0) prepare_kurtosis(cells);
    if (c.zero_dm != ZeroDm::off) {
      common = Buffer<float>(2 * n_beams * max_samples, device);
      gains = Buffer<float>(rows, device);
    }
  }

  void prepare_kurtosis(std::int64_t cells) {
    const std::int64_t n = config.statistics_samples + 1;
    n_samples = Buffer<int>(cells, MemorySpace::device);
    seen = Buffer<std::uint8_t>(n, MemorySpace::device);
    limits = Buffer<double>(2 * n, MemorySpace::device);
    host_seen.resize(static_cast<std::size_t>(n));
    has_limits.resize(host_seen.size());
    host_limits.resize(2 * host_seen.size());
  }

  /// Times of this gulp that the user masks, on the device. @return nullptr: none
  const std::uint8_t* mask_times(Queue& queue, std::int64_t n) {
    const auto reaches = [&](const MaskBlock& b) { return b.first < tick + n && b.end > tick; };
    const auto& blocks = config.mask.blocks;
    if (std::none_of(blocks.begin(), blocks.end(), reaches)) return nullptr;
    host_times.assign(static_cast<std::size_t>(n_channels * n), 0);
    for (const MaskBlock& block : blocks) {
      if (!reaches(block)) continue;
      for (std::int64_t c = 0; c < n_channels; ++c) {
        if (!block.channels.empty() && block.channels[static_cast<std::size_t>(c)] == 0) continue;
        std::fill(host_times.begin() + c * n + std::max<std::int64_t>(0, block.first - tick),
                  host_times.begin() + c * n + std::min(n, block.end - tick), std::uint8_t{1});
      }
    }
    copy_bytes(queue, times.data(), host_times.data(), n_channels * n);
    return times.data();
  }

  /// Cells by spectral kurtosis. Limits are made for numbers of samples as they come up.
  void flag_kurtosis(Queue& queue, const NormalizeWork& work) {
    const std::int64_t n = config.statistics_samples + 1;
    const auto stream = cuda::stream_of(queue);
    const KurtosisWork k{config.kurtosis_degrees, seen.data(), limits.data(), limits.data() + n};
    RYLE_CUDA(cudaMemsetAsync(seen.data(), 0, static_cast<std::size_t>(n), stream));
    launch_count_samples(work, k, stream);
    copy_bytes(queue, host_seen.data(), seen.data(), n);
    queue.synchronize();
    bool more = false;
    for (std::size_t count = 32; count < host_seen.size(); ++count) {
      if (host_seen[count] == 0 || has_limits[count] != 0) continue;
      const KurtosisLimits l =
          kurtosis_limits(static_cast<std::int64_t>(count), config.kurtosis_degrees);
      host_limits[count] = l.low;
      host_limits[static_cast<std::size_t>(n) + count] = l.high;
      more = has_limits[count] = 1;
    }
    if (more) copy_bytes(queue, limits.data(), host_limits.data(), limits.bytes());
    launch_flag_kurtosis(work, k, stream);
  }

  /// Codes again, without what all channels do at once.
  void filter(Queue& queue, NormalizeWork work) {
    const auto stream = cuda::stream_of(queue);
    work.common = common.data();
    work.common_counts = common.data() + n_beams * max_samples;
    work.gains = gains.data();
    launch_common(work, config.zero_dm == ZeroDm::weighted, stream);
    RYLE_CUDA(
        cudaMemsetAsync(counters.data(), 0, static_cast<std::size_t>(counters.bytes()), stream));
    launch_codes(work, {}, 0, work.n_beams, stream);
  }

  void prepare_bursts() {
    for (std::int64_t b = 0; b < n_beams; ++b)
      spectra.push_back(std::make_unique<SpectraFlagger>(config.spectra));
    n_groups = spectra.front()->n_groups();
    history = spectra.front()->history();
    ring = history + max_samples;
    const std::int64_t planes = checked_product({n_beams, n_groups, ring}, "sums of groups");
    sums = Buffer<float>(planes, MemorySpace::device);
    counts = Buffer<float>(planes, MemorySpace::device);
    band = Buffer<float>(n_beams * ring, MemorySpace::device);
    found = Buffer<int>(n_beams, MemorySpace::device);
    host_found.resize(static_cast<std::size_t>(n_beams));
  }

  NormalizeWork work_of(const DevicePower& power, const DeviceCodes& to) const {
    NormalizeWork w{};
    w.in = power;
    w.out = to;
    w.n_beams = static_cast<int>(n_beams);
    w.n_channels = static_cast<int>(n_channels);
    w.cell_samples = static_cast<int>(config.statistics_samples);
    w.n_cells =
        static_cast<int>((power.n + config.statistics_samples - 1) / config.statistics_samples);
    w.median_cells = static_cast<int>(config.median_cells);
    w.n_past_cells = static_cast<int>(n_past_cells);
    w.past_room = static_cast<int>(past_cells(config));
    w.absent_stride = max_samples;
    w.user = user.data();
    w.absent = absent.data();
    w.masked = masked.data();
    w.now = now.data();
    w.usual = usual.data();
    w.typical = typical.data();
    w.past = past.data();
    w.scales = scales.data();
    w.bad = bad.data();
    w.flags = flags.data();
    w.counters = counters.data();
    w.n_samples = config.kurtosis_degrees > 0 ? n_samples.data() : nullptr;
    w.flag_room = flag_room.size() > 0 ? flag_room.data() : nullptr;
    return w;
  }
  BurstWork bursts_of(std::int64_t n) const {
    return {sums.data(),
            counts.data(),
            band.data(),
            ring,
            next_column,
            n,
            n_past,
            static_cast<int>(n_groups),
            config.spectra.threshold,
            found.data()};
  }

  /// A beam in which something stands out, on its way through the host.
  struct FlaggedBeam {
    std::int64_t beam = 0;
    std::vector<float> sums, counts;  // rings [group][ring]
    std::vector<std::uint8_t> masked;
    SpectraFlagger::Past left;
  };

  /// `n` columns of rings from `first` on. @shape [group][n]
  std::vector<float> columns(const std::vector<float>& rings, std::int64_t first,
                             std::int64_t n) const {
    std::vector<float> out(static_cast<std::size_t>(n_groups * n));
    for (std::int64_t g = 0; g < n_groups; ++g)
      for (std::int64_t t = 0; t < n; ++t)
        out[static_cast<std::size_t>(g * n + t)] =
            rings[static_cast<std::size_t>(g * ring + (first + t) % ring)];
    return out;
  }

  void fetch_rings(Queue& queue, FlaggedBeam& a) const {
    const auto fetch = [&](std::vector<float>& to, const Buffer<float>& from) {
      to.resize(static_cast<std::size_t>(n_groups * ring));
      copy_bytes(queue, to.data(), from.data() + a.beam * n_groups * ring, n_groups * ring * 4);
    };
    fetch(a.sums, sums);
    fetch(a.counts, counts);
  }

  /// Beams beside each other.
  void flag_on_host(FlaggedBeam& a, std::int64_t n) const {
    SpectraFlagger& flagger = *spectra[static_cast<std::size_t>(a.beam)];
    const std::int64_t first_past = (next_column + ring - n_past) % ring;
    flagger.set_past(
        {columns(a.sums, first_past, n_past), columns(a.counts, first_past, n_past), n_past});
    flagger.execute(columns(a.sums, next_column, n), columns(a.counts, next_column, n), n,
                    a.masked);
    a.left = flagger.past();
  }

  /// What the host took out of the past stays out.
  void put_back(Queue& queue, const NormalizeWork& all, const BurstWork& work,
                const FlaggedBeam& a) {
    copy_bytes(queue, masked.data() + a.beam * max_samples, a.masked.data(), work.n);
    const std::int64_t first = (next_column + work.n + ring - a.left.n_columns) % ring;
    put_columns(queue, sums, a.beam, first, a.left.sums, a.left.n_columns);
    put_columns(queue, counts, a.beam, first, a.left.counts, a.left.n_columns);
    const auto stream = cuda::stream_of(queue);
    launch_band(work, static_cast<int>(a.beam), 1, first, a.left.n_columns, stream);
    if (std::find(a.masked.begin(), a.masked.end(), std::uint8_t{1}) != a.masked.end())
      write_again(all, a.beam, stream);
    queue.synchronize();
    ++n_bursts;
  }

  /// Some beams at a time: each has megabytes of rings.
  void flag_on_host(Queue& queue, const NormalizeWork& all, const BurstWork& work,
                    const std::vector<std::int64_t>& beams) {
    constexpr std::size_t kAtOnce = 16;
    Queue host = Queue::cpu();
    for (std::size_t first = 0; first < beams.size(); first += kAtOnce) {
      std::vector<FlaggedBeam> some(std::min(kAtOnce, beams.size() - first));
      for (std::size_t k = 0; k < some.size(); ++k) {
        some[k].beam = beams[first + k];
        fetch_rings(queue, some[k]);
      }
      queue.synchronize();
      host.parallel_for(static_cast<std::int64_t>(some.size()), [&](std::int64_t k) {
        flag_on_host(some[static_cast<std::size_t>(k)], work.n);
      });
      for (const FlaggedBeam& a : some) put_back(queue, all, work, a);
    }
  }
  /// Codes without the spectra that are masked now.
  void write_again(const NormalizeWork& all, std::int64_t beam, cudaStream_t stream) {
    RYLE_CUDA(cudaMemsetAsync(counters.data() + beam * kNormalizeCounters, 0,
                              kNormalizeCounters * sizeof(unsigned long long), stream));
    launch_codes(all, {}, static_cast<int>(beam), 1, stream);
  }
  void put_columns(Queue& queue, const Buffer<float>& to, std::int64_t beam, std::int64_t first,
                   const std::vector<float>& values, std::int64_t n) const {
    const std::int64_t before_end = std::min(n, ring - first);
    for (std::int64_t g = 0; g < n_groups; ++g) {
      float* row = to.data() + (beam * n_groups + g) * ring;
      const float* from = values.data() + g * n;
      copy_bytes(queue, row + first, from, before_end * 4);
      if (n > before_end) copy_bytes(queue, row, from + before_end, (n - before_end) * 4);
    }
    queue.synchronize();
  }

  void find_bursts(Queue& queue, const NormalizeWork& work) {
    const auto stream = cuda::stream_of(queue);
    const BurstWork b = bursts_of(work.in.n);
    RYLE_CUDA(cudaMemsetAsync(found.data(), 0, static_cast<std::size_t>(found.bytes()), stream));
    launch_codes(work, b, 0, work.n_beams, stream);
    launch_band(b, 0, work.n_beams, next_column, b.n, stream);
    launch_find_bursts(b, work.n_beams, stream);
    copy_bytes(queue, host_found.data(), found.data(), found.bytes());
    queue.synchronize();
    std::vector<std::int64_t> odd;
    for (std::int64_t beam = 0; beam < n_beams; ++beam) {
      if (host_found[static_cast<std::size_t>(beam)] != 0)
        odd.push_back(beam);
      else
        spectra[static_cast<std::size_t>(beam)]->pass(b.n);
    }
    flag_on_host(queue, work, b, odd);
    n_past = std::min(history, n_past + b.n);
    next_column = (next_column + b.n) % ring;
  }

  void collect(Queue& queue, std::int64_t n) {
    copy_bytes(queue, host_counters.data(), counters.data(), counters.bytes());
    copy_bytes(queue, host_flags.data(), flags.data(), flags.bytes());
    queue.synchronize();
    for (std::int64_t beam = 0; beam < n_beams; ++beam) {
      const auto b = static_cast<std::size_t>(beam);
      const auto* of_beam = host_counters.data() + beam * kNormalizeCounters;
      std::array<std::int64_t, kNumFlagReasons> causes{};
      for (std::size_t k = 0; k < causes.size(); ++k)
        causes[k] = static_cast<std::int64_t>(of_beam[k]);
      NormalizeReport& report = reports[b];
      add_flag_reasons(causes, report);
      report.clipped_low += static_cast<std::int64_t>(of_beam[kClippedLow]);
      report.clipped_high += static_cast<std::int64_t>(of_beam[kClippedHigh]);
      report.n_samples += n;
      if (!spectra.empty()) report.spectra = spectra[b]->report();
      const auto* first = host_flags.data() + beam * n_channels;
      channel_flags[b].assign(first, first + n_channels);
    }
  }
};

std::string CudaNormalizer::unsupported(const NormalizeConfig& c) {
  if (c.n_channels > kMaxFlagChannels)
    return std::to_string(c.n_channels) + " channels, more than " +
           std::to_string(kMaxFlagChannels);
  if (c.median_cells > kMaxMedianCells) return "running medians over more than 64 cells";
  return "";
}

CudaNormalizer::CudaNormalizer(Queue& queue, const NormalizeConfig& config, std::int64_t n_beams,
                               std::int64_t max_samples) {
  const Normalizer checked(config);  // throws for what no back-end takes
  if (const std::string what = unsupported(config); !what.empty())
    throw UnsupportedError("normalisation on CUDA: " + what + "; the CPU does it");
  if (n_beams < 1 || n_beams > 65535 || max_samples < 1)
    throw ConfigError("normalisation on CUDA: " + std::to_string(n_beams) + " beams of " +
                      std::to_string(max_samples) + " samples; 1 to 65535 beams");
  impl_ = std::make_unique<Impl>(queue, config, n_beams, max_samples);
}
CudaNormalizer::~CudaNormalizer() = default;

void CudaNormalizer::execute(Queue& queue, const DevicePower& power, const DeviceCodes& to) {
  Impl& me = *impl_;
  if (power.n <= 0) return;
  if (power.n > me.max_samples)
    throw ConfigError("normalisation on CUDA: " + std::to_string(power.n) +
                      " samples, planned for " + std::to_string(me.max_samples));
  const cuda::DeviceScope scope(cuda::device_of(queue));
  cuda::require_device_memory(power.values, "power of beams");
  const auto stream = cuda::stream_of(queue);
  NormalizeWork work = me.work_of(power, to);
  work.times = me.mask_times(queue, power.n);
  work.times_stride = power.n;
  const FlagWork flag{me.degree,
                      me.basis.data(),
                      me.config.bandpass_threshold,
                      me.config.iqrm_threshold,
                      me.config.cell_threshold,
                      power.n,
                      me.config.flag_channels,
                      median_error(work.n_cells, work.n_past_cells, work.median_cells)};
  RYLE_CUDA(cudaMemsetAsync(me.counters.data(), 0, static_cast<std::size_t>(me.counters.bytes()),
                            stream));
  RYLE_CUDA(
      cudaMemsetAsync(me.masked.data(), 0, static_cast<std::size_t>(me.masked.bytes()), stream));
  launch_absent(work, stream);
  launch_measure(work, stream);
  launch_medians(work, stream);
  launch_flag_channels(work, flag, stream);
  launch_flag_cells(work, flag, stream);
  if (work.n_samples != nullptr && flag.enabled) me.flag_kurtosis(queue, work);
  launch_scales(work, stream);
  if (me.spectra.empty())
    launch_codes(work, {}, 0, work.n_beams, stream);
  else
    me.find_bursts(queue, work);
  if (me.config.zero_dm != ZeroDm::off) me.filter(queue, work);
  launch_keep_cells(work, stream);
  me.tick += power.n;
  me.n_past_cells = std::min<std::int64_t>(past_cells(me.config), me.n_past_cells + work.n_cells);
  me.collect(queue, power.n);
}

void CudaNormalizer::skip(std::int64_t n) {
  Impl& me = *impl_;
  for (auto& flagger : me.spectra) flagger->skip(n);
  me.tick += n;
  me.n_past = 0;
}

const NormalizeReport& CudaNormalizer::report(std::int64_t beam) const {
  return impl_->reports[static_cast<std::size_t>(beam)];
}
const std::vector<std::uint8_t>& CudaNormalizer::channel_flags(std::int64_t beam) const {
  return impl_->channel_flags[static_cast<std::size_t>(beam)];
}
const std::vector<TickRange>& CudaNormalizer::undecided(std::int64_t beam) const {
  static const std::vector<TickRange> none;
  return impl_->spectra.empty() ? none
                                : impl_->spectra[static_cast<std::size_t>(beam)]->undecided();
}
std::int64_t CudaNormalizer::n_bursts() const { return impl_->n_bursts; }

std::int64_t CudaNormalizer::memory_bytes() const {
  const auto of = [](const auto&... buffers) { return (buffers.bytes() + ...); };
  const Impl& me = *impl_;
  return of(me.user, me.absent, me.masked, me.bad, me.flags, me.now, me.usual, me.typical, me.past,
            me.scales, me.basis, me.counters, me.sums, me.counts, me.band, me.found, me.times,
            me.n_samples, me.seen, me.limits, me.common, me.gains, me.flag_room);
}

std::int64_t CudaNormalizer::memory_bytes(const NormalizeConfig& c, std::int64_t n_beams,
                                          std::int64_t max_samples) {
  return device_normalizer_bytes(c, n_beams, max_samples);
}

}  // namespace ryle::search
