// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/fx_stream.hpp"

#include <algorithm>

#include "ryle/core/baseline.hpp"
#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/device/on_device.hpp"
#ifdef RYLE_HAVE_CUDA
#include "ryle/engine/correlate/cuda/make.hpp"
#endif

namespace ryle::pipeline {
namespace {

MemorySpace memory_of(const Queue& queue) {
  return queue.back_end() == BackEnd::cuda ? MemorySpace::device : MemorySpace::host;
}

FxStream::Setup with_sizes(FxStream::Setup s) {
  const std::int64_t step = channelize::step_length(s.channelize);
  s.channelize.max_spectra = std::max<std::int64_t>(0, s.chunk_ticks) / step + 2;
  s.correlate.n_inputs = s.channelize.n_inputs;
  s.correlate.n_channels = s.channelize.n_channels;
  s.correlate.format = s.channelize.output;
  s.correlate.max_spectra = s.channelize.max_spectra;
  return s;
}

DeviceSamples::Setup samples_of(const FxStream::Setup& s) {
  DeviceSamples::Setup setup;
  setup.layout = s.channelize.layout;
  setup.n_inputs = s.channelize.n_inputs;
  setup.n_slots = s.n_slots;
  setup.chunk_ticks = s.chunk_ticks;
  // What the next spectrum may read before a chunk.
  setup.history_ticks = channelize::filter_length(s.channelize) + 2 * s.max_delay_samples;
  setup.always_transposed = s.always_transposed;
  return setup;
}

}  // namespace

/// Sums go to a second place on the device, so that the next dump can begin, and from there to the
/// host by a queue of their own.
struct FxStream::Outgoing {
  explicit Outgoing(const Queue& work, std::int64_t n_products)
      : queue(Queue::beside(work)),
        ready(work),
        arrived(work),
        n_products(n_products),
        sums(checked_product({2, n_products}, "sums of a dump"), MemorySpace::device),
        host_sums(2 * n_products, MemorySpace::pinned) {}

  void copy_out(Queue& work, std::byte* to_host, std::byte* stopover, const void* from,
                std::int64_t n_bytes) {
    copy_bytes(work, stopover, from, n_bytes);
    ready.record(work);
    ready.wait_event(queue);
    copy_bytes(queue, to_host, stopover, n_bytes);
    arrived.record(queue);
  }

  Queue queue;
  Event ready;
  Event arrived;
  std::int64_t n_products;
  Buffer<std::int64_t> sums;
  Buffer<std::int64_t> host_sums;
  Buffer<std::uint32_t> counts, host_counts;  // made when a sample is absent first
  bool counted = false;
  bool integer = true;
  std::int64_t n_spectra = 0;
};

FxStream::FxStream(const Queue& queue, const Setup& setup)
    : setup_(with_sizes(setup)), queue_(queue), samples_(queue_, samples_of(setup_)) {
  const OnDevice scope(queue_);
  setup_.channelize.layout = samples_.layout();
  channelizer_ = channelize::make_channelizer(queue_, setup_.channelize);
  correlator_ = correlate::make_correlator(queue_, setup_.correlate);
  const auto& f = setup_.channelize;
  blocks_ = Buffer<std::byte>(dense_blocks_bytes(f.output, f.n_channels, f.max_spectra, f.n_inputs),
                              memory_of(queue_));
  valid_ = Buffer<std::uint64_t>(f.n_inputs * words_for_bits(f.max_spectra));
  if (queue_.back_end() == BackEnd::cuda)
    outgoing_ = std::make_unique<Outgoing>(queue_, f.n_channels * n_pairs(f.n_inputs));
  const std::int64_t step = channelize::step_length(f);
  first_spectrum_ = next_spectrum_ = (setup_.max_delay_samples + step - 1) / step;
}

FxStream::~FxStream() {
  try {
    samples_.wait_copied();
    queue_.synchronize();
    if (outgoing_ != nullptr) outgoing_->queue.synchronize();
  } catch (const std::exception&) {  // a fault was visible to the last wait_dump()
  }
}

void FxStream::push(const void* chunk, std::span<const AbsentSpan> absent) {
  samples_.push(chunk, setup_.chunk_ticks);
  absent_.insert(absent_.end(), absent.begin(), absent.end());
  pushed_ += setup_.chunk_ticks;
}

void FxStream::advance() {
  const DeviceSamples::Stretch stretch = samples_.front();
  const Tick first = received_ - stretch.n_history;
  received_ += setup_.chunk_ticks;
  const std::int64_t step = channelize::step_length(setup_.channelize);
  // Every input's delayed window [mM - D, mM - D + L) has been received: |D| <= max_delay_samples.
  const std::int64_t last =
      received_ - channelize::filter_length(setup_.channelize) - setup_.max_delay_samples;
  const std::int64_t n = last < 0 ? 0 : last / step - next_spectrum_ + 1;
  const auto& f = setup_.channelize;
  for (std::int64_t done = 0; done < n;) {
    const std::int64_t part = std::min(n - done, f.max_spectra);
    const channelize::Input input{stretch.samples, first, received_ - first, absent_};
    const BlockView blocks = dense_blocks(blocks_.data(), f.output, f.n_channels, part, f.n_inputs);
    const std::int64_t words = words_for_bits(part);
    channelizer_->execute(queue_, input, next_spectrum_, part,
                          {blocks, valid_.data(), words, nullptr});
    correlator_->execute(queue_, {blocks, part, valid_.data(), words, 0});
    next_spectrum_ += part;
    done += part;
  }
  samples_.release();
  const Tick oldest = received_ - samples_.history_ticks();
  std::erase_if(absent_, [&](const AbsentSpan& a) { return a.end <= oldest; });
}

void FxStream::begin_dump() {
  RYLE_ASSERT(!dump_waits_);
  dump_waits_ = true;
#ifdef RYLE_HAVE_CUDA
  if (outgoing_ != nullptr) {
    Outgoing& out = *outgoing_;
    const OnDevice scope(queue_);
    const correlate::DeviceSums from = correlate::finish_in_order(queue_, *correlator_);
    out.integer = from.integer;
    out.n_spectra = from.n_spectra;
    out.counted = from.counts != nullptr;
    const auto bytes_of = [](auto& buffer) { return reinterpret_cast<std::byte*>(buffer.data()); };
    if (out.counted) {
      if (out.counts.size() == 0) {
        out.counts = Buffer<std::uint32_t>(out.n_products, MemorySpace::device);
        out.host_counts = Buffer<std::uint32_t>(out.n_products, MemorySpace::pinned);
      }
      out.copy_out(queue_, bytes_of(out.host_counts), bytes_of(out.counts), from.counts,
                   out.counts.bytes());
    }
    out.copy_out(queue_, bytes_of(out.host_sums), bytes_of(out.sums), from.sums, out.sums.bytes());
    return;
  }
#endif
  correlator_->finish(queue_, sums_);
}

FxStream::Dump FxStream::wait_dump() {
  RYLE_ASSERT(dump_waits_);
  dump_waits_ = false;
  if (outgoing_ == nullptr) return {sums_.integer, sums_.real, sums_.counts, sums_.n_spectra};
  Outgoing& out = *outgoing_;
  out.arrived.synchronize();
  queue_.check();
  const auto n = static_cast<std::size_t>(out.n_products);
  Dump dump;
  dump.n_spectra = out.n_spectra;
  if (out.integer) dump.integer = {reinterpret_cast<const ci64*>(out.host_sums.data()), n};
  if (!out.integer) dump.real = {reinterpret_cast<const cf64*>(out.host_sums.data()), n};
  if (out.counted) dump.counts = out.host_counts.span();
  return dump;
}

}  // namespace ryle::pipeline
