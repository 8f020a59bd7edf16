// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/fx_chain.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/copies_directly.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/pipeline/base/async_readback.hpp"
#include "ryle/pipeline/base/device_samples.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"

namespace ryle::pipeline {
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

// The one place that decides how samples reach the engines.
bool samples_stream(const Queue& queue, const FxChain::Setup& s) {
  return queue.back_end() == BackEnd::cuda || s.always_streamed;
}

// Enough to copy as fast as a device takes samples, and no more: others receive and write. Measured
// beside copies to an H200, which takes 55 GB/s: 4 workers 28 GB/s, 8 42, 12 52, 15 51; stores past
// the caches gained nothing with 12.
Queue copying_queue(const Queue& queue) {
  constexpr int kMaxWorkers = 12;
  if (queue.back_end() == BackEnd::cpu) return queue;
  return Queue::cpu(std::min(kMaxWorkers, Queue::cpu().n_workers()));
}

// What filters and delays look back on.
std::int64_t history_ticks(const FxChain::Setup& s) {
  return channelize::filter_length(s.channelize) + 2 * s.max_delay_samples;
}

// What one gulp adds to it.
std::int64_t staging_ticks(const FxChain::Setup& s) {
  return 2 * history_ticks(s) + s.max_feed_ticks +
         s.spectra_per_gulp * channelize::step_length(s.channelize) + 256;
}

// Of a chunk on its way to a device, whole groups: what waits until it is worth a chunk, a feed at
// most that does not go straight, and the feed that comes on top.
std::int64_t streamed_ticks(const FxChain::Setup& s) {
  constexpr std::int64_t kGroup = SampleStaging::kGroupTicks;
  const std::int64_t waits =
      (s.spectra_per_gulp / 2 + kBlockSpectra) * channelize::step_length(s.channelize) +
      history_ticks(s);
  return (std::max(waits, s.max_feed_ticks) + s.max_feed_ticks + 2 * kGroup - 1) / kGroup * kGroup;
}

FxChain::Setup completed(FxChain::Setup s, bool streams) {
  // One call a feed: what a second one uploads would wait for the copy of the feed that follows.
  const std::int64_t per_feed = s.max_feed_ticks / channelize::step_length(s.channelize) + 2;
  if (streams) s.spectra_per_gulp = std::max(s.spectra_per_gulp, per_feed);
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
  /// @param streams samples by a ring of their own instead of from the staging
  Part(const Queue& its_queue, const Setup& s, std::int64_t first, std::int64_t end, bool streams)
      : queue(its_queue), first_channel(first), n_channels(end - first) {
    const OnDevice scope(queue);
    channelize::Config f = s.channelize;
    if (streams) {
      auto ring_queues = s.ring_queues;
      if (!ring_queues)
        ring_queues = [](const Queue& work, int n) {
          return make_ring_queues(work, n, kPieceBytes);
        };
      samples = std::make_unique<DeviceSamples>(
          queue, DeviceSamples::Setup{f.layout, f.n_inputs, kSlots, streamed_ticks(s),
                                      history_ticks(s), s.always_streamed, ring_queues});
      f.layout = samples->layout();
    }
    channelizer = channelize::make_channelizer(queue, f);
    correlate::Config share = s.correlate;
    share.n_channels = n_channels;
    correlator = correlate::make_correlator(queue, share);
    readback = std::make_unique<AsyncReadback>(queue, correlator->config());
    blocks = Buffer<std::byte>(
        dense_blocks_bytes(f.output, f.n_channels, s.spectra_per_gulp, f.n_inputs),
        engine_space(queue));
    valid = Buffer<std::uint64_t>(f.n_inputs * words_for_bits(s.spectra_per_gulp),
                                  staging_space(queue));
  }

  ConstBlockView own(const BlockView& all) const {
    ConstBlockView share = all;
    share.data += first_channel * all.channel_stride_bytes;
    share.n_channels = n_channels;
    return share;
  }

  // Small tables of the engines would wait for a copy of a whole feed: measured with 512 inputs,
  // statistics and feeds of 64 MiB on an H200, 45 GB/s instead of 36.
  static constexpr std::int64_t kPieceBytes = 8 << 20;
  static constexpr int kSlots = 4;  // one more than there are chunks in host memory
  Queue queue;
  std::int64_t first_channel;
  std::int64_t n_channels;
  std::unique_ptr<channelize::Channelizer> channelizer;
  std::unique_ptr<correlate::Correlator> correlator;
  std::unique_ptr<AsyncReadback> readback;
  std::unique_ptr<DeviceSamples> samples;
  channelize::Input input;  // streamed: what lies on the device
  Buffer<std::byte> blocks;
  Buffer<std::uint64_t> valid;
};

FxChain::FxChain(Queue queue, const Setup& setup, DelayUpdate delay_update, DumpSink sink)
    : FxChain(std::vector<Queue>{std::move(queue)}, setup, std::move(delay_update),
              std::move(sink)) {}

FxChain::FxChain(const std::vector<Queue>& queues, const Setup& setup, DelayUpdate delay_update,
                 DumpSink sink)
    : setup_(completed(setup, samples_stream(first_of(queues), setup))),
      queue_(first_of(queues)),
      streams_(samples_stream(queue_, setup_)),
      host_(copying_queue(queue_)),
      delay_update_(std::move(delay_update)),
      sink_(std::move(sink)) {
  const std::int64_t ticks = streams_ ? streamed_ticks(setup_) : staging_ticks(setup_);
  for (int k = 0; k < (streams_ ? Part::kSlots - 1 : 1); ++k) {
    chunks_.push_back(std::make_unique<SampleStaging>(
        setup_.channelize.layout, setup_.channelize.n_inputs, ticks, staging_space(queue_)));
  }
  const std::int64_t channels = setup_.channelize.n_channels;
  const std::int64_t n_parts =
      std::clamp<std::int64_t>(channels, 1, static_cast<std::int64_t>(queues.size()));
  for (std::int64_t k = 0; k < n_parts; ++k) {
    parts_.push_back(std::make_unique<Part>(queues[k], setup_, channels * k / n_parts,
                                            channels * (k + 1) / n_parts, streams_));
  }
  filter_length_ = channelize::filter_length(setup_.channelize);
  step_ = channelize::step_length(setup_.channelize);
  const auto& f = setup_.channelize;
  for (auto& statistics : statistics_) statistics.resize(f.n_channels * f.n_inputs);
  levels_.resize(f.n_inputs);
  if (setup_.on_spectra && queue_.back_end() == BackEnd::cuda)
    host_blocks_ = Buffer<std::byte>(parts_.front()->blocks.size(), MemorySpace::pinned);
}

FxChain::~FxChain() {
  wait_readback();
  try {
    wait_copied();                   // host memory goes first
  } catch (const std::exception&) {  // a fault was visible to the last flush()
  }
}

std::int64_t FxChain::memory_bytes() const {
  const std::int64_t scratch = channelize::cost(setup_.channelize).scratch_bytes +
                               correlate::cost(setup_.correlate).scratch_bytes;
  std::int64_t bytes = correlate::cost(setup_.correlate).accumulator_bytes;
  for (const auto& chunk : chunks_) bytes += chunk->bytes();
  for (const auto& part : parts_) {
    bytes += part->blocks.bytes() + part->valid.bytes() + part->readback->bytes() + scratch;
    if (part->samples != nullptr) bytes += part->samples->bytes();
  }
  return bytes;
}

const channelize::Channelizer& FxChain::channelizer() const { return *parts_.front()->channelizer; }
const correlate::Correlator& FxChain::correlator() const { return *parts_.front()->correlator; }

void FxChain::restart_staging(Tick first) {
  staging().restart(first);
  absent_.clear();
  for (const auto& part : parts_) {
    if (part->samples != nullptr) part->samples->restart();
  }
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
  } else if (first > staging().end()) {
    bridge_gap(first - staging().end());
  } else if (first < staging().end()) {
    throw Error(ExitCode::internal, "samples went back in time inside a segment");
  }
  if (goes_directly(samples, n)) {
    feed_directly(static_cast<const std::byte*>(samples), first, n, absent);
    return;
  }
  std::int64_t offset = 0;
  while (offset < n) {
    const std::int64_t room = std::min(staging().free_ticks(), setup_.max_feed_ticks) /
                              SampleStaging::kGroupTicks * SampleStaging::kGroupTicks;
    const std::int64_t part = std::min(n - offset, room);
    staging().append(samples, offset, part, absent, host_);
    offset += part;
    process_available();
  }
}

// A gap is bridged with absent samples where filters still see real ones; the rest of a long gap is
// only counted.
void FxChain::bridge_gap(std::int64_t ticks) {
  // Whole groups: what follows begins on a whole byte.
  constexpr std::int64_t kGroup = SampleStaging::kGroupTicks;
  const std::int64_t edge =
      (filter_length_ + 2 * margin() + step_ + 2 * kGroup - 1) / kGroup * kGroup;
  if (ticks > 2 * edge) {
    append_absent(edge);
    // Spectra that waited for more to be worth their overhead would go with the staging.
    drain();
    const Tick resume = staging().end() + (ticks - edge) - edge;
    const std::int64_t resume_spectrum = ceil_divide(resume + margin(), step_);
    skip_spectra(std::max<std::int64_t>(0, resume_spectrum - next_spectrum_));
    restart_staging(resume);
    staging().append_absent(edge);
    return;
  }
  append_absent(ticks);
}

void FxChain::append_absent(std::int64_t ticks) {
  while (ticks > 0) {
    const std::int64_t part = std::min(ticks, staging().free_ticks());
    staging().append_absent(part);
    ticks -= part;
    process_available();
  }
}

// Spectra all of whose samples are here: every input's delayed window [mM - D, mM - D + L) must
// have been received, |D| <= margin.
std::int64_t FxChain::available() const {
  const std::int64_t last = staging().end() - filter_length_ - margin();
  return last < 0 ? 0 : last / step_ - next_spectrum_ + 1;
}

// Half a gulp of whole blocks is worth its overhead, and what is in the way must go.
bool FxChain::is_worthwhile(std::int64_t n) const {
  const std::int64_t maximum =
      std::min(setup_.spectra_per_gulp, setup_.spectra_per_dump - in_dump_);
  const std::int64_t whole = n / kBlockSpectra * kBlockSpectra;
  return n >= maximum || whole >= setup_.spectra_per_gulp / 2 ||
         staging().free_ticks() <= setup_.max_feed_ticks;
}

void FxChain::process_available() {
  if (scale_.empty()) {
    start_levels({staging().samples(), staging().begin(), staging().end() - staging().begin(),
                  staging().absent()});
  }
  if (streams_) {
    constexpr std::int64_t kGroup = SampleStaging::kGroupTicks;
    const std::int64_t n = (staging().end() - staging().begin()) / kGroup * kGroup;
    if (is_worthwhile(available())) send_chunk(n);
    return;
  }
  while (true) {
    const std::int64_t ready = available();
    const std::int64_t maximum =
        std::min(setup_.spectra_per_gulp, setup_.spectra_per_dump - in_dump_);
    // Waiting for a full gulp would move the samples that remain once more.
    const std::int64_t whole = ready / kBlockSpectra * kBlockSpectra;
    const std::int64_t n = ready >= maximum ? maximum : whole > 0 ? whole : ready;
    if (n <= 0 || !is_worthwhile(ready)) break;
    input_ = {staging().samples(), staging().begin(), staging().end() - staging().begin(),
              staging().absent()};
    process(n);
  }
  staging().drop_before(next_spectrum_ * step_ - margin(), host_);
}

// The first n ticks staged go to the devices.
void FxChain::send_chunk(std::int64_t n) {
  if (n == 0) return;
  const auto absent = staging().absent();
  absent_.insert(absent_.end(), absent.begin(), absent.end());
  send(staging().samples(), staging().begin(), n);
  stage_next_chunk(n);
}

// Nothing is staged before them, and they are worth a chunk of their own.
bool FxChain::goes_directly(const void* samples, std::int64_t n) const {
  return streams_ && staging().begin() == staging().end() && n % DeviceSamples::kGroupTicks == 0 &&
         n >= setup_.spectra_per_gulp / 2 * step_ && copies_directly(queue_, samples);
}

void FxChain::feed_directly(const std::byte* samples, Tick first, std::int64_t n,
                            std::span<const AbsentSpan> absent) {
  absent_.insert(absent_.end(), absent.begin(), absent.end());
  try {
    for (std::int64_t offset = 0; offset < n;) {
      const std::int64_t part = std::min(n - offset, setup_.max_feed_ticks);
      const std::byte* from = samples + offset * setup_.channelize.layout.sample_stride_bits / 8;
      if (scale_.empty()) start_levels({from, first + offset, part, absent_});
      send(from, first + offset, part);
      offset += part;
    }
  } catch (...) {
    try {
      wait_copied();
    } catch (const std::exception&) {  // what failed first is said
    }
    throw;
  }
  wait_copied();  // the caller's memory again
  staging().restart(first + n);
}

// For all of them: where one fails others may still read.
void FxChain::wait_copied() {
  std::exception_ptr error;
  for (const auto& part : parts_) {
    try {
      if (part->samples != nullptr) part->samples->wait_copied();
    } catch (const std::exception&) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

// Samples that follow those before go to the devices, where they make all the spectra they can.
void FxChain::send(const void* samples, Tick first, std::int64_t n) {
  for (const auto& part : parts_) {
    part->samples->push(samples, n);
    const DeviceSamples::Stretch stretch = part->samples->front();
    part->input = {stretch.samples, first - stretch.n_history, stretch.n_history + n, absent_};
  }
  input_ = {samples, first, n, absent_};
  const std::int64_t last = first + n - filter_length_ - margin();
  while (last >= 0 && next_spectrum_ <= last / step_) {
    process(std::min({last / step_ - next_spectrum_ + 1, setup_.spectra_per_gulp,
                      setup_.spectra_per_dump - in_dump_}));
  }
  const Tick oldest = first + n - parts_.front()->samples->history_ticks();
  for (const auto& part : parts_) part->samples->release();
  std::erase_if(absent_, [&](const AbsentSpan& a) { return a.end <= oldest; });
}

// What follows goes where no copy reads any more; what was staged beyond n ticks goes along.
void FxChain::stage_next_chunk(std::int64_t n) {
  const SampleStaging& sent = staging();
  chunk_ = (chunk_ + 1) % chunks_.size();
  for (const auto& part : parts_) part->samples->wait_copied(static_cast<int>(chunks_.size()) - 1);
  staging().restart(sent.begin() + n);
  const std::int64_t rest = sent.end() - sent.begin() - n;
  if (rest > 0)
    staging().append(sent.samples(), n, rest, {}, host_);  // absent_ knows the rest, too
}

// The requantiser's level is set once, from the first samples: stepping it later would step the
// data.
void FxChain::start_levels(const channelize::Input& input) {
  const auto& f = setup_.channelize;
  std::vector<channelize::LevelStatistics> first(f.n_inputs);
  channelize::add_level_statistics(host_, f, input, input.first_tick,
                                   input.first_tick + input.n_samples, first);
  scale_.assign(f.n_inputs, 1.0);
  first_levels_ = first;
  std::vector<double> seen;
  const bool requantises = f.output == SampleFormat::ci8 || f.output == SampleFormat::ci4;
  for (std::int64_t p = 0; requantises && p < f.n_inputs; ++p) {
    const auto& s = first[p];
    // Filter power 1: a channel of white noise has the variance of the samples, half of it in each
    // part.
    const double variance =
        s.n_samples > 0 ? s.sum_of_squares / static_cast<double>(s.n_samples) : 0;
    if (variance > 0) {
      scale_[p] = setup_.target_rms_lsb / std::sqrt(variance / 2);
      seen.push_back(scale_[p]);
    } else {
      scale_[p] = 0;
    }
  }
  // An input that is silent now may come back: give it the level of its neighbours.
  std::sort(seen.begin(), seen.end());
  for (auto& s : scale_) {
    if (s == 0) s = seen.empty() ? 1.0 : seen[seen.size() / 2];
  }
  std::vector<cf32> gains(f.n_inputs * f.n_channels);
  for (std::int64_t p = 0; p < f.n_inputs; ++p) {
    for (std::int64_t c = 0; c < f.n_channels; ++c) {
      const auto at = static_cast<std::size_t>(p * f.n_channels + c);
      const cf32 calibration = calibration_.empty() ? cf32{1, 0} : calibration_[at];
      gains[at] = static_cast<float>(scale_[p]) * calibration;
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
  // Chunks may end anywhere: a few spectra at the beginning of a dump say too little.
  const bool early = streams_ && in_dump_ < setup_.spectra_per_gulp / 2;
  if (in_dump_ == 0 || early || levels_[0].n_samples == 0) {
    const Tick first = std::max(input_.first_tick, next_spectrum_ * step_);
    channelize::add_level_statistics(
        host_, f, input_, first, std::min(input_.first_tick + input_.n_samples, first + n * step_),
        levels_);
  }
  const std::int64_t words = words_for_bits(n);
  for (const auto& part : parts_) {
    const channelize::Input& input = streams_ ? part->input : input_;
    const BlockView blocks =
        dense_blocks(part->blocks.data(), f.output, f.n_channels, n, f.n_inputs);
    // Every part makes all channels: one counts.
    const bool counts = setup_.channel_statistics && part == parts_.front();
    auto* statistics = counts ? statistics_[counting_].data() : nullptr;
    part->channelizer->execute(part->queue, input, next_spectrum_, n,
                               {blocks, part->valid.data(), words, statistics});
    if (setup_.correlates)
      part->correlator->execute(part->queue, {part->own(blocks), n, part->valid.data(), words, 0});
  }
  if (setup_.on_spectra) hand_on(n);
  const auto& valid = parts_.front()->valid;
  for (std::int64_t w = 0; w < f.n_inputs * words; ++w)
    valid_in_dump_ += __builtin_popcountll(valid[w]);
  next_spectrum_ += n;
  spectra_done_ += n;
  in_dump_ += n;
  if (in_dump_ == setup_.spectra_per_dump) close_dump();
}

// Every part makes all channels: the first one's go to those who read spectra.
void FxChain::hand_on(std::int64_t n) {
  Part& part = *parts_.front();
  const auto& f = setup_.channelize;
  std::byte* data = part.blocks.data();
  if (host_blocks_.size() > 0) {
    data = host_blocks_.data();
    copy_bytes(part.queue, data, part.blocks.data(),
               dense_blocks_bytes(f.output, f.n_channels, n, f.n_inputs));
  }
  part.queue.synchronize();
  SpectraGulp gulp;
  gulp.blocks = dense_blocks(data, f.output, f.n_channels, n, f.n_inputs);
  gulp.n_spectra = n;
  gulp.valid = part.valid.data();
  gulp.valid_words = words_for_bits(n);
  spectra_on_devices_.renew(gulp.blocks);
  if (part.queue.back_end() == BackEnd::cuda)
    spectra_on_devices_.provide(part.queue, part.blocks.data());
  gulp.device = &spectra_on_devices_;
  setup_.on_spectra(gulp, next_spectrum_, segment_, clock_);
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
  if (!setup_.correlates) {
    std::fill(levels_.begin(), levels_.end(), channelize::LevelStatistics{});
    in_dump_ = valid_in_dump_ = 0;
    return;
  }
  try {
    wait_delivered();  // the one before
  } catch (...) {      // none follows it
    in_dump_ = 0;
    valid_in_dump_ = 0;
    throw;
  }
  for (const auto& part : parts_) part->queue.check();
  RawDump dump;
  dump.segment = segment_;
  dump.first_spectrum = dump_first_;
  dump.n_spectra = in_dump_;
  dump.clock = clock_;
  for (const auto& part : parts_) part->readback->begin(part->queue, *part->correlator);
  dump.levels = levels_;
  std::fill(levels_.begin(), levels_.end(), channelize::LevelStatistics{});
  const bool any = valid_in_dump_ > 0;
  const std::size_t counted = counting_;
  counting_ = 1 - counting_;
  in_dump_ = 0;
  valid_in_dump_ = 0;
  if (!streams_) {
    deliver(dump, any, counted);
    return;
  }
  delivery_ = std::async(
      std::launch::async,
      [this, any, counted, dump = std::move(dump)]() mutable { deliver(dump, any, counted); });
}

void FxChain::deliver(RawDump& dump, bool any, std::size_t counted) {
  for (const auto& part : parts_)
    part->readback->receive(dump.sums, part->first_channel, setup_.channelize.n_channels);
  // What the queues counted is there since the sums are.
  dump.statistics = statistics_[counted];
  std::fill(statistics_[counted].begin(), statistics_[counted].end(),
            channelize::ChannelStatistics{});
  if (any) sink_(std::move(dump));
}

void FxChain::wait_delivered() {
  if (delivery_.valid()) delivery_.get();
}

void FxChain::wait_readback() noexcept {
  try {
    wait_delivered();
  } catch (...) {  // not whole: its device was lost
  }
}

// Every spectrum that can be made of what is staged, however few they are; then nothing follows.
void FxChain::drain() {
  if (streams_) {
    send_chunk(staging().end() - staging().begin());
    return;
  }
  while (available() > 0) {
    input_ = {staging().samples(), staging().begin(), staging().end() - staging().begin(),
              staging().absent()};
    process(std::min({available(), setup_.spectra_per_gulp, setup_.spectra_per_dump - in_dump_}));
  }
}

void FxChain::flush() {
  const Stopwatch watch(busy_s_);
  if (!started_) return;
  drain();
  if (in_dump_ > 0) close_dump();
  wait_delivered();
  started_ = false;
}

}  // namespace ryle::pipeline
