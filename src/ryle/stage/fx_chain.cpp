// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/stage/fx_chain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/stage/device_ring.hpp"
#include "ryle/stage/stopwatch.hpp"

namespace ryle::stage {
namespace {

constexpr std::int64_t kBlockSpectra = 128;  // a multiple of every format's block

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -((-a) / b);
}

MemorySpace staging_space(const Queue& queue) {
  return queue.back_end() == BackEnd::cuda ? MemorySpace::pinned : MemorySpace::host;
}

MemorySpace engine_space(const Queue& queue) {
  return queue.back_end() == BackEnd::cuda ? MemorySpace::device : MemorySpace::host;
}

// What one gulp adds to the history the filter and the delays look back on.
std::int64_t staging_ticks(const FxChain::Setup& s) {
  const std::int64_t history = channelize::filter_length(s.channelize) + 2 * s.max_delay_samples;
  return 2 * history + s.max_feed_ticks +
         s.spectra_per_gulp * channelize::step_length(s.channelize) + 256;
}

FxChain::Setup completed(FxChain::Setup s) {
  s.spectra_per_gulp = std::min(s.spectra_per_gulp, s.spectra_per_dump);
  s.channelize.max_spectra = s.spectra_per_gulp;
  constexpr std::int64_t kGroup = SampleStaging::kGroupTicks;
  s.max_feed_ticks = (s.max_feed_ticks + kGroup - 1) / kGroup * kGroup;
  s.correlate.n_inputs = s.channelize.n_inputs;
  s.correlate.n_channels = s.channelize.n_channels;
  s.correlate.format = s.channelize.output;
  s.correlate.max_spectra = s.spectra_per_gulp;
  return s;
}

const Queue& first_of(const std::vector<Queue>& queues) {
  if (queues.empty()) throw ConfigError("a chain of F and X needs a queue");
  return queues.front();
}

}  // namespace

struct FxChain::Part {
  Part(const Queue& its_queue, const Setup& s, std::int64_t first, std::int64_t end,
       std::int64_t staging_bytes)
      : queue(its_queue), first_channel(first), n_channels(end - first) {
    const OnDevice scope(queue);
    channelizer = channelize::make_channelizer(queue, s.channelize);
    correlate::Config share = s.correlate;
    share.n_channels = n_channels;
    correlator = correlate::make_correlator(queue, share);
    const auto& f = s.channelize;
    blocks = Buffer<std::byte>(
        dense_blocks_bytes(f.output, f.n_channels, s.spectra_per_gulp, f.n_inputs),
        engine_space(queue));
    valid = Buffer<std::uint64_t>(f.n_inputs * words_for_bits(s.spectra_per_gulp),
                                  staging_space(queue));
    if (queue.back_end() == BackEnd::cuda)
      samples = std::make_unique<DeviceRing>(make_ring_queues(queue, kSlots), kSlots, staging_bytes,
                                             0, MemorySpace::device);
  }

  /// The staged samples where this part's engines read them; done_reading() when they have been
  /// given all that reads them.
  const void* reachable(const SampleStaging& staging) {
    if (samples == nullptr) return staging.samples();
    samples->push(staging.samples(), staging.used_bytes());
    return samples->front().data;
  }
  void done_reading() {
    if (samples != nullptr) samples->release();
  }
  ConstBlockView own(const BlockView& all) const {
    ConstBlockView share = all;
#if RYLE_MUTANT != 1397
    share.data += first_channel * all.channel_stride_bytes;
#endif
    share.n_channels = n_channels;
    return share;
  }

  static constexpr int kSlots = 2;  // one gulp is worked on while the next one is copied
  Queue queue;
  std::int64_t first_channel;
  std::int64_t n_channels;
  std::unique_ptr<channelize::Channelizer> channelizer;
  std::unique_ptr<correlate::Correlator> correlator;
  std::unique_ptr<DeviceRing> samples;  // CUDA only
  Buffer<std::byte> blocks;
  Buffer<std::uint64_t> valid;
};

FxChain::FxChain(Queue queue, const Setup& setup, DelayUpdate delay_update, DumpSink sink)
    : FxChain(std::vector<Queue>{std::move(queue)}, setup, std::move(delay_update),
              std::move(sink)) {}

FxChain::FxChain(const std::vector<Queue>& queues, const Setup& setup, DelayUpdate delay_update,
                 DumpSink sink)
    : setup_(completed(setup)),
      queue_(first_of(queues)),
      delay_update_(std::move(delay_update)),
      sink_(std::move(sink)),
      staging_(setup_.channelize.layout, setup_.channelize.n_inputs, staging_ticks(setup_),
               staging_space(queue_)) {
  const std::int64_t channels = setup_.channelize.n_channels;
  const std::int64_t n_parts =
      std::clamp<std::int64_t>(channels, 1, static_cast<std::int64_t>(queues.size()));
  for (std::int64_t k = 0; k < n_parts; ++k) {
    parts_.push_back(std::make_unique<Part>(queues[static_cast<std::size_t>(k)], setup_,
                                            channels * k / n_parts, channels * (k + 1) / n_parts,
                                            staging_.bytes()));
  }
  filter_length_ = channelize::filter_length(setup_.channelize);
  step_ = channelize::step_length(setup_.channelize);
  const auto& f = setup_.channelize;
  statistics_.resize(static_cast<std::size_t>(f.n_channels * f.n_inputs));
  levels_.resize(static_cast<std::size_t>(f.n_inputs));
}

FxChain::~FxChain() {
  try {
    wait_uploaded();                 // the staging goes first
  } catch (const std::exception&) {  // a fault was visible to the last finish()
  }
}

std::int64_t FxChain::memory_bytes() const {
  const std::int64_t scratch = channelize::cost(setup_.channelize).scratch_bytes +
                               correlate::cost(setup_.correlate).scratch_bytes;
  std::int64_t bytes = staging_.bytes() + correlate::cost(setup_.correlate).accumulator_bytes;
  for (const auto& part : parts_) {
    bytes += part->blocks.bytes() + part->valid.bytes() + scratch;
    if (part->samples != nullptr) bytes += part->samples->bytes();
  }
  return bytes;
}

const channelize::Channelizer& FxChain::channelizer() const { return *parts_.front()->channelizer; }
const correlate::Correlator& FxChain::correlator() const { return *parts_.front()->correlator; }

// Before the staging is written where a copy to a device may still read.
void FxChain::wait_uploaded() {
  for (const auto& part : parts_) {
    if (part->samples != nullptr) part->samples->wait_copied();
  }
}

void FxChain::restart_staging(Tick first) {
  wait_uploaded();
  staging_.restart(first);
}

// Before the first spectrum of a dump.
void FxChain::update_delays() {
  for (const auto& part : parts_) {
    delay_update_(*part->channelizer, clock_, next_spectrum_ * step_,
                  (next_spectrum_ + setup_.spectra_per_dump) * step_);
  }
}

void FxChain::feed(const void* samples, Tick first, std::int64_t n,
                   std::span<const AbsentSpan> absent, std::int64_t segment,
                   const SampleClock& clock) {
  const Stopwatch watch(busy_s_);
  if (!started_ || segment != segment_) {
    flush();
    segment_ = segment;
    clock_ = clock;
    started_ = true;
    restart_staging(first);
    // Spectra whose window begins before the first sample received do not exist (correlate.md 3.7).
    next_spectrum_ = dump_first_ = ceil_divide(first + margin(), step_);
  } else if (first > staging_.end()) {
    bridge_gap(first - staging_.end());
  } else if (first < staging_.end()) {
    throw Error(ExitCode::internal, "samples went back in time inside a segment");
  }
  std::int64_t offset = 0;
  while (offset < n) {
    const std::int64_t room = std::min(staging_.free_ticks(), setup_.max_feed_ticks) /
                              SampleStaging::kGroupTicks * SampleStaging::kGroupTicks;
    const std::int64_t part = std::min(n - offset, room);
    staging_.append(samples, offset, part, absent, queue_);
    offset += part;
    process_available();
  }
}

// A gap is bridged with absent samples where filters still see real ones; the rest of a long gap is
// only counted.
void FxChain::bridge_gap(std::int64_t ticks) {
  const std::int64_t edge = filter_length_ + 2 * margin() + step_ + 64;
  if (ticks > 2 * edge) {
    append_absent(edge);
    // Spectra that waited for more to be worth their overhead would go with the staging.
    drain();
    const Tick resume = staging_.end() + (ticks - edge) - edge;
    const std::int64_t resume_spectrum = ceil_divide(resume + margin(), step_);
    skip_spectra(std::max<std::int64_t>(0, resume_spectrum - next_spectrum_));
    restart_staging(resume);
    staging_.append_absent(edge);
    return;
  }
  append_absent(ticks);
}

void FxChain::append_absent(std::int64_t ticks) {
  while (ticks > 0) {
    const std::int64_t part = std::min(ticks, staging_.free_ticks());
    staging_.append_absent(part);
    ticks -= part;
    process_available();
  }
}

void FxChain::process_available() {
  if (scale_.empty()) start_levels();
  while (true) {
    // Every input's delayed window [mM - D, mM - D + L) must have been received: |D| <= margin.
    const std::int64_t last = staging_.end() - filter_length_ - margin();
    const std::int64_t available = last < 0 ? 0 : last / step_ - next_spectrum_ + 1;
    const std::int64_t most = std::min(setup_.spectra_per_gulp, setup_.spectra_per_dump - in_dump_);
    // Half a gulp of whole blocks is worth its overhead; waiting for a full one would move the
    // samples that remain once more.
    const std::int64_t whole = available / kBlockSpectra * kBlockSpectra;
    const bool worthwhile = available >= most || whole >= setup_.spectra_per_gulp / 2;
    const std::int64_t n = available >= most ? most : whole > 0 ? whole : available;
    if (n <= 0 || (!worthwhile && staging_.free_ticks() > setup_.max_feed_ticks)) break;
    process(n);
  }
  wait_uploaded();
  staging_.drop_before(next_spectrum_ * step_ - margin(), queue_);
}

// The requantiser's level is set once, from the first samples: stepping it later would step the
// data.
void FxChain::start_levels() {
  const auto& f = setup_.channelize;
  std::vector<channelize::LevelStatistics> first(static_cast<std::size_t>(f.n_inputs));
  const channelize::Input input{staging_.samples(), staging_.begin(),
                                staging_.end() - staging_.begin(), staging_.absent()};
  channelize::add_level_statistics(queue_, f, input, staging_.begin(), staging_.end(), first);
  scale_.assign(static_cast<std::size_t>(f.n_inputs), 1.0);
  std::vector<double> seen;
  const bool requantises = f.output == SampleFormat::ci8 || f.output == SampleFormat::ci4;
  for (std::int64_t p = 0; requantises && p < f.n_inputs; ++p) {
    const auto& s = first[static_cast<std::size_t>(p)];
    // Filter power 1: a channel of white noise has the variance of the samples, half of it in each
    // part.
    const double variance =
        s.n_samples > 0 ? s.sum_of_squares / static_cast<double>(s.n_samples) : 0;
    if (variance > 0) {
      scale_[static_cast<std::size_t>(p)] = setup_.target_rms_lsb / std::sqrt(variance / 2);
      seen.push_back(scale_[static_cast<std::size_t>(p)]);
    } else {
      scale_[static_cast<std::size_t>(p)] = 0;
    }
  }
  // An input that is silent now may come back: give it the level of its neighbours.
  std::sort(seen.begin(), seen.end());
  for (auto& s : scale_) {
    if (s == 0) s = seen.empty() ? 1.0 : seen[seen.size() / 2];
  }
  std::vector<cf32> gains(static_cast<std::size_t>(f.n_inputs * f.n_channels));
  for (std::int64_t p = 0; p < f.n_inputs; ++p) {
    for (std::int64_t c = 0; c < f.n_channels; ++c) {
      const auto at = static_cast<std::size_t>(p * f.n_channels + c);
      const cf32 calibration = calibration_.empty() ? cf32{1, 0} : calibration_[at];
      gains[at] = static_cast<float>(scale_[static_cast<std::size_t>(p)]) * calibration;
    }
  }
  for (const auto& part : parts_)
    part->channelizer->set_gains(View<const cf32, 2>(gains.data(), {f.n_inputs, f.n_channels}));
}

void FxChain::process(std::int64_t n) {
  const auto& f = setup_.channelize;
  if (in_dump_ == 0) {
    dump_first_ = next_spectrum_;
    update_delays();
  }
  channelize::Input input{staging_.samples(), staging_.begin(), staging_.end() - staging_.begin(),
                          staging_.absent()};
  if (in_dump_ == 0 || levels_[0].n_samples == 0) {
    const Tick first = std::max(staging_.begin(), next_spectrum_ * step_);
    channelize::add_level_statistics(queue_, f, input, first,
                                     std::min(staging_.end(), first + n * step_), levels_);
  }
  const std::int64_t words = words_for_bits(n);
  for (const auto& part : parts_) {
    input.samples = part->reachable(staging_);
    const BlockView blocks =
        dense_blocks(part->blocks.data(), f.output, f.n_channels, n, f.n_inputs);
    // Every part makes all channels: one counts.
    auto* statistics = part == parts_.front() ? statistics_.data() : nullptr;
    part->channelizer->execute(part->queue, input, next_spectrum_, n,
                               {blocks, part->valid.data(), words, statistics});
    part->correlator->execute(part->queue, {part->own(blocks), n, part->valid.data(), words, 0});
    part->done_reading();
  }
  const auto& valid = parts_.front()->valid;
  for (std::int64_t w = 0; w < f.n_inputs * words; ++w)
    valid_in_dump_ += __builtin_popcountll(valid[w]);
  next_spectrum_ += n;
  spectra_done_ += n;
  in_dump_ += n;
  if (in_dump_ == setup_.spectra_per_dump) close_dump();
}

void FxChain::skip_spectra(std::int64_t n) {
  while (n > 0) {
    if (in_dump_ == 0) {
      // Whole dumps without a single sample are not made; the gap shows in the time stamps.
      const std::int64_t whole = n / setup_.spectra_per_dump * setup_.spectra_per_dump;
      next_spectrum_ += whole;
      n -= whole;
      if (n == 0) break;
      dump_first_ = next_spectrum_;
      update_delays();
    }
    const std::int64_t part = std::min(n, setup_.spectra_per_dump - in_dump_);
    next_spectrum_ += part;
    in_dump_ += part;
    n -= part;
    if (in_dump_ == setup_.spectra_per_dump) close_dump();
  }
}

void FxChain::close_dump() {
  for (const auto& part : parts_) part->queue.check();
  RawDump dump;
  dump.segment = segment_;
  dump.first_spectrum = dump_first_;
  dump.n_spectra = in_dump_;
  dump.clock = clock_;
  const auto append = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const auto& part : parts_) {
    if (part == parts_.front()) {
      part->correlator->finish(part->queue, dump.sums);
      continue;
    }
    correlate::Sums share;
    part->correlator->finish(part->queue, share);
    append(dump.sums.integer, share.integer);
    append(dump.sums.real, share.real);
    append(dump.sums.counts, share.counts);
  }
  dump.statistics = statistics_;
  dump.levels = levels_;
  std::fill(statistics_.begin(), statistics_.end(), channelize::ChannelStatistics{});
  std::fill(levels_.begin(), levels_.end(), channelize::LevelStatistics{});
  const bool any = valid_in_dump_ > 0;
  in_dump_ = 0;
  valid_in_dump_ = 0;
  if (any) sink_(std::move(dump));
}

// Every spectrum that can be made of what is staged, however few they are.
void FxChain::drain() {
  const std::int64_t last = staging_.end() - filter_length_ - margin();
  while (last >= 0 && next_spectrum_ <= last / step_) {
    process(std::min({last / step_ - next_spectrum_ + 1, setup_.spectra_per_gulp,
                      setup_.spectra_per_dump - in_dump_}));
  }
}

void FxChain::flush() {
  const Stopwatch watch(busy_s_);
  if (!started_) return;
  drain();
  if (in_dump_ > 0) close_dump();
  started_ = false;
}

}  // namespace ryle::stage
