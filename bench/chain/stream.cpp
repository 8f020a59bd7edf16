// SPDX-License-Identifier: BSD-3-Clause
#include "bench/chain/stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/stage/fx_stream.hpp"

namespace ryle::bench {
namespace {

using stage::FxStream;

constexpr int kSlots = 4;

struct Case {
  std::int64_t n_inputs, n_channels, chunk_bytes;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

FxStream::Setup setup_of(const Case& c, const std::string& correlator) {
  FxStream::Setup setup;
  auto& f = setup.channelize;
  f.n_inputs = c.n_inputs;
  f.n_channels = c.n_channels;
  f.n_taps = 8;
  f.layout.format = SampleFormat::ci8;
  f.layout.input_stride_bits = 16;
  f.layout.sample_stride_bits = 16 * c.n_inputs;
  f.sample_rate_hz = 1e6;
  f.reference_hz = 1e8;
  if (correlator.find(':') != std::string::npos) setup.correlate.implementation = correlator;
  setup.chunk_ticks = c.chunk_bytes / (2 * c.n_inputs) / 64 * 64;
  setup.n_slots = kSlots;
  return setup;
}

using Chunks = std::vector<Buffer<std::byte>>;

/// As many chunks as the ring has slots, random codes of both signs.
Chunks random_chunks(std::int64_t n_bytes) {
  Queue host = Queue::cpu();
  Chunks chunks;
  for (std::uint64_t k = 0; k < kSlots; ++k) {
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

/// Of a copy and nothing else, in the chunks of the stream.
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

/// The dump of the first `n` chunks.
std::vector<ci64> first_dump(Queue& queue, const FxStream::Setup& setup, const Chunks& chunks,
                             std::size_t n, bool one_after_the_other) {
  FxStream stream(queue, setup);
  std::size_t pushed = 0;
  for (std::size_t k = 0; k < n; ++k) {
    while (pushed < n && !stream.full() && (!one_after_the_other || pushed == k)) {
      stream.push(chunks[pushed++ % chunks.size()].data());
      if (one_after_the_other) stream.wait_copied();
    }
    stream.advance();
    if (one_after_the_other) queue.synchronize();
  }
  stream.begin_dump();
  const FxStream::Dump dump = stream.wait_dump();
  return {dump.integer.begin(), dump.integer.end()};
}

Result measure(Queue& queue, const Case& c, const Options& options) {
  const FxStream::Setup setup = setup_of(c, options.implementation);
  const std::int64_t chunk_bytes = setup.chunk_ticks * 2 * c.n_inputs;
  const Chunks chunks = random_chunks(chunk_bytes);
  Result r;
  r.engine = "stream";
  const bool cuda = queue.back_end() == BackEnd::cuda;
  r.device = list_devices().at(cuda ? 1 : 0).description;
  r.verified =
      first_dump(queue, setup, chunks, 6, false) == first_dump(queue, setup, chunks, 6, true);
  FxStream stream(queue, setup);
  r.implementation = std::string(stream.channelizer().implementation()) + ", " +
                     std::string(stream.correlator().implementation());
  r.sizes = {{"n_inputs", static_cast<double>(c.n_inputs)},
             {"n_channels", static_cast<double>(c.n_channels)},
             {"n_taps", 8},
             {"chunk_mib", static_cast<double>(chunk_bytes) / 1048576},
             {"slots", kSlots}};
  if (!r.verified) return r;
  const double ceiling = copy_rate(queue, chunks, options.quick ? 0.02 : 0.5);
  // A dump a second, as arrays make them; the last one is waited for.
  const double wanted_s = options.quick ? 0.05 : std::max(4.0, options.seconds_per_case);
  std::size_t pushed = 0;
  bool on_its_way = false;
  const auto take_dump = [&] {
    if (on_its_way) stream.wait_dump();
    on_its_way = false;
  };
  const auto step = [&] {
    while (!stream.full()) stream.push(chunks[pushed++ % chunks.size()].data());
    stream.advance();
  };
  for (int k = 0; k < 8; ++k) step();  // everything is warm, and the ring full
  queue.synchronize();
  const double begin = seconds_now();
  double last_dump = begin;
  std::int64_t n = 0, dumps = 0;
  for (double now = begin; now - begin < wanted_s; now = seconds_now(), ++n) {
    step();
    if (now - last_dump < 1.0) continue;
    take_dump();
    stream.begin_dump();
    on_its_way = true;
    last_dump = now;
    ++dumps;
  }
  take_dump();
  stream.wait_copied();  // chunks that wait at the end are as many as those at the beginning
  queue.synchronize();
  const double taken_s = seconds_now() - begin;
  r.median_s = r.min_s = taken_s / static_cast<double>(n);
  r.bytes = static_cast<double>(chunk_bytes);
  r.useful_ops = 8.0 * static_cast<double>(n_pairs(c.n_inputs) * setup.chunk_ticks);
  r.rate = r.bytes / r.median_s / 1e9;
  r.rate_unit = "GB/s";
  r.roofline_fraction = r.rate * 1e9 / ceiling;
  r.roofline = "host to device " + std::to_string(ceiling / 1e9).substr(0, 5) + " GB/s";
  r.sizes.emplace_back("dumps", static_cast<double>(dumps));
  return r;
}

}  // namespace

void bench_stream(const Options& options, const Emit& emit) {
  const std::string reason = cuda_unavailable_reason();
  const std::string& name = options.implementation;
  if (name.rfind("cuda", 0) == 0 && !reason.empty())
    throw DeviceError("benchmark of \"" + name + "\": " + reason);
  const bool on_cpu = name.rfind("cpu", 0) == 0;
  if (!on_cpu && !reason.empty()) return;
  Queue queue = on_cpu ? Queue::cpu(options.n_workers) : Queue::cuda();
  constexpr std::int64_t kChunk = std::int64_t{512} << 20;
  const std::vector<Case> full = {{128, 256, kChunk}, {512, 256, kChunk}, {1024, 256, kChunk}};
  const std::vector<Case> quick = {{8, 16, 1 << 18}};
  for (const Case& c : options.quick ? quick : full) emit(measure(queue, c, options));
}

}  // namespace ryle::bench
