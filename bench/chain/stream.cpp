// SPDX-License-Identifier: BSD-3-Clause
#include "bench/chain/stream.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/pipeline/visibility/fx_chain.hpp"

namespace ryle::bench {
namespace {

/// What an array delivers.
struct StreamCase {
  SampleFormat format;
  std::int64_t n_inputs, n_channels, n_taps, chunk_bytes;
  bool statistics = true;      ///< of the chain
  std::int64_t piece_mib = 0;  ///< of its copies
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

channelize::Config channels_of(const StreamCase& c) {
  channelize::Config f;
  f.n_inputs = c.n_inputs;
  f.n_channels = c.n_channels;
  f.n_taps = c.n_taps;
  f.layout.format = c.format;
  f.layout.input_stride_bits = 16;
  f.layout.sample_stride_bits = 16 * c.n_inputs;
  f.sample_rate_hz = 1e6;
  f.reference_hz = 1e8;
  return f;
}

using Chunks = std::vector<Buffer<std::byte>>;

/// Random codes of both signs.
Chunks random_chunks(std::int64_t n_bytes, int n_chunks) {
  Queue host = Queue::cpu();
  Chunks chunks;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(n_chunks); ++k) {
    chunks.emplace_back(n_bytes, MemorySpace::pinned);
    std::byte* to = chunks.back().data();
    constexpr std::int64_t kPiece = 1 << 20;
    host.parallel_for((n_bytes + kPiece - 1) / kPiece, [&](std::int64_t p) {
      const std::int64_t end = std::min(n_bytes, (p + 1) * kPiece);
      for (std::int64_t at = p * kPiece; at < end; at += 8) {
        const std::uint64_t word = mix64(combine(k, static_cast<std::uint64_t>(at)));
        std::memcpy(to + at, &word, static_cast<std::size_t>(std::min<std::int64_t>(8, end - at)));
      }
    });
  }
  return chunks;
}

/// Of a copy and nothing else, in the chunks that the chain is fed.
double copy_rate(Queue& queue, const Chunks& chunks, double seconds) {
  const OnDevice scope(queue);
  const bool cuda = queue.back_end() == BackEnd::cuda;
  const Buffer<std::byte> to(2 * chunks[0].bytes(), cuda ? MemorySpace::device : MemorySpace::host);
  const auto copy = [&](std::size_t k) {
    const auto& from = chunks[k % chunks.size()];
    copy_bytes(queue, to.data() + static_cast<std::int64_t>(k % 2) * from.bytes(), from.data(),
               from.bytes());
  };
  for (std::size_t k = 0; k < 4; ++k) copy(k);
  queue.synchronize();
  std::size_t n = 0;
  const double begin = seconds_now();
  while (n < 8 || seconds_now() - begin < seconds) {
    for (const std::size_t end = n + 8; n < end; ++n) copy(n);
    queue.synchronize();
  }
  return static_cast<double>(n) * static_cast<double>(chunks[0].bytes()) / (seconds_now() - begin);
}

/// Codes of F may be one apart in 1e-4 of the parts (T-FE-02). A product of n spectra has 4 n of
/// them, in the mean 0.08 of n = 200: more than five that differ in one of 3,000 products have a
/// chance of 1e-7, and each moves a sum by the other part, at most 127 sqrt(2).
constexpr double kCodesApart = 5 * 180;

bool close(const ci64& a, const ci64& b) {
  return std::hypot(static_cast<double>(a.re - b.re), static_cast<double>(a.im - b.im)) <=
         kCodesApart;
}

Result row_of(const StreamCase& c, std::int64_t chunk_bytes, bool cuda) {
  Result r;
  r.engine = "stream";
  r.device = list_devices().at(cuda ? 1 : 0).description;
  r.sizes = {{"n_inputs", static_cast<double>(c.n_inputs)},
             {"n_channels", static_cast<double>(c.n_channels)},
             {"n_taps", static_cast<double>(c.n_taps)},
             {"chunk_mib", static_cast<double>(chunk_bytes) / 1048576}};
  return r;
}

void fill_rate(Result& r, double seconds, std::int64_t n_chunks, std::int64_t chunk_bytes,
               double ceiling) {
  r.median_s = r.min_s = seconds / static_cast<double>(n_chunks);
  r.bytes = static_cast<double>(chunk_bytes);
  r.rate = r.bytes / r.median_s / 1e9;
  r.rate_unit = "GB/s";
  r.roofline_fraction = r.rate * 1e9 / ceiling;
  r.roofline = "host to device " + std::to_string(ceiling / 1e9).substr(0, 5) + " GB/s";
}

double wanted_seconds(const Options& options) {
  return options.quick ? 0.05 : std::max(2.0, options.seconds_per_case);
}

using Dumps = std::vector<pipeline::RawDump>;

pipeline::FxChain make_chain(const std::vector<Queue>& queues, const StreamCase& c,
                             std::int64_t spectra_per_dump, Dumps& dumps) {
  pipeline::FxChain::Setup setup;
  setup.channelize = channels_of(c);
  setup.channel_statistics = c.statistics;
  if (c.piece_mib > 0) {
    setup.ring_queues = [piece = c.piece_mib << 20](const Queue& work, int n_slots) {
      return pipeline::make_ring_queues(work, n_slots, piece);
    };
  }
  setup.spectra_per_dump = spectra_per_dump;
  setup.max_feed_ticks = c.chunk_bytes / (2 * c.n_inputs) / 64 * 64;
  return pipeline::FxChain(
      queues, setup, [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
      [&dumps](pipeline::RawDump&& dump) {
        dumps.clear();
        dumps.push_back(std::move(dump));
      });
}

/// An array as `ryle run` has it: chunks of the receiver's page-locked memory, or of pageable
/// memory, and dumps as vectors. Each of several devices gets all samples and has its share of the
/// channels.
/// @param spectra_per_dump 0: about a dump a second
Result measure_chain(const std::vector<Queue>& queues, const StreamCase& c, const Options& options,
                     bool page_locked, std::int64_t spectra_per_dump = 0) {
  Queue queue = queues.front();
  const std::int64_t ticks = c.chunk_bytes / (2 * c.n_inputs) / 64 * 64;
  const std::int64_t chunk_bytes = 2 * c.n_inputs * ticks;
  Result r = row_of(c, chunk_bytes, queue.back_end() == BackEnd::cuda);
  const Chunks chunks = random_chunks(chunk_bytes, 4);
  std::vector<std::vector<std::byte>> pageable;
  for (const auto& chunk : chunks) {
    if (!page_locked) pageable.emplace_back(chunk.data(), chunk.data() + chunk.size());
  }
  const auto samples_of = [&](std::int64_t k) {
    const auto at = static_cast<std::size_t>(k) % chunks.size();
    return page_locked ? chunks[at].data() : pageable[at].data();
  };
  const SampleClock clock{0, {1000000, 1}};
  const auto first = [&](const std::vector<Queue>& on, std::int64_t n_spectra) {
    Dumps dumps;
    auto chain = make_chain(on, c, n_spectra, dumps);
    chain.feed(samples_of(0), 0, std::min(ticks, (n_spectra + c.n_taps) * c.n_channels), {}, 0,
               clock);
    chain.flush();
    return std::move(dumps.at(0).sums);
  };
  const correlate::Sums want = first({Queue::cpu()}, 100), found = first(queues, 100);
  if (queues.size() > 1) {
    r.device = std::to_string(queues.size()) + " x " + r.device;
    r.sizes.emplace_back("n_devices", queues.size());
  }
  r.verified = want.counts == found.counts && want.integer.size() == found.integer.size();
  for (std::size_t k = 0; r.verified && k < want.integer.size(); ++k)
    r.verified = close(want.integer[k], found.integer[k]);
  Dumps dumps;
  if (spectra_per_dump == 0)
    spectra_per_dump = options.quick ? 64 : 50'000'000'000 / (2 * c.n_inputs * c.n_channels);
  auto chain = make_chain(queues, c, spectra_per_dump, dumps);
  r.implementation = std::string("run, ") + (page_locked ? "page-locked" : "pageable") + ": " +
                     std::string(chain.channelizer().implementation()) + ", " +
                     std::string(chain.correlator().implementation());
  if (!r.verified) return r;
  const double ceiling = copy_rate(queue, chunks, options.quick ? 0.02 : 0.5);
  Tick tick = 0;
  const auto feed = [&] {
    chain.feed(samples_of(tick / ticks), tick, ticks, {}, 0, clock);
    tick += ticks;
  };
  for (int k = 0; k < 8; ++k) feed();
  queue.synchronize();
  const double begin = seconds_now();
  std::int64_t n = 0;
  for (; seconds_now() - begin < wanted_seconds(options); ++n) feed();
  queue.synchronize();
  fill_rate(r, seconds_now() - begin, n, chunk_bytes, ceiling);
  r.useful_ops = 8.0 * static_cast<double>(n_pairs(c.n_inputs) * ticks);
  return r;
}

/// Seconds of MWA-32T (Wayth 2009: 64 inputs of 1.28 MHz, 128 channels): every chunk is a second of
/// samples of another array and brings a dump.
Result measure_arrays(const Queue& queue, const Options& options) {
  constexpr std::int64_t kTicksPerSecond = 1'280'000;
  const StreamCase c{SampleFormat::ci5, 64, 128, 4, 2 * 64 * kTicksPerSecond};
  Result r = measure_chain({queue}, c, options, true, kTicksPerSecond / c.n_channels);
  r.engine = "stream, arrays of MWA-32T in real time";
  r.rate = r.verified ? 1 / r.median_s : 0;
  r.rate_unit = "arrays";
  return r;
}

}  // namespace

void bench_stream(const Options& options, const Emit& emit, const StreamOptions& stream) {
  const std::string reason = cuda_unavailable_reason();
  const std::string& name = options.implementation;
  if (name.rfind("cuda", 0) == 0 && !reason.empty())
    throw DeviceError("benchmark of \"" + name + "\": " + reason);
  const bool on_cpu = name.rfind("cpu", 0) == 0;
  if (!on_cpu && !reason.empty()) return;
  Queue queue = on_cpu ? Queue::cpu(options.n_workers) : Queue::cuda();
  if (options.quick) {
    const StreamCase c{SampleFormat::ci8, 8, 16, 8, 1 << 18};
    for (const bool page_locked : {true, false})
      emit(measure_chain({queue}, c, options, page_locked));
    return;
  }
  const auto case_of = [&](std::int64_t n_inputs, std::int64_t chunk_mib) {
    return StreamCase{SampleFormat::ci8, n_inputs,        256, 8, chunk_mib << 20,
                      stream.statistics, stream.piece_mib};
  };
  const auto wanted = [&](const char* row, std::int64_t n_inputs = 0) {
    if (stream.n_inputs != 0 && n_inputs != stream.n_inputs) return false;
    return stream.only.empty() || std::string(row).find(stream.only) != std::string::npos;
  };
  if (!on_cpu && wanted("arrays")) emit(measure_arrays(queue, options));
  std::vector<std::int64_t> chunks_mib{64, 256};
  if (stream.chunk_mib > 0) chunks_mib = {stream.chunk_mib};
  for (const std::int64_t n_inputs : {128, 512, 1024}) {
    for (const std::int64_t mib : chunks_mib) {
      for (const bool page_locked : {true, false}) {
        if (wanted(page_locked ? "run, page-locked" : "run, pageable", n_inputs))
          emit(measure_chain({queue}, case_of(n_inputs, mib), options, page_locked));
      }
    }
  }
  std::vector<Queue> all;
  const auto n_devices = static_cast<int>(list_devices().size()) - 1;
  for (int k = 0; !on_cpu && k < n_devices; ++k) all.push_back(Queue::cuda(k));
  if (all.size() > 1 && wanted("run, all devices"))
    emit(measure_chain(all, case_of(512, chunks_mib.back()), options, true));
}

}  // namespace ryle::bench
