// SPDX-License-Identifier: BSD-3-Clause
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "bench/bench.hpp"
#include "bench/ingest_traffic.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/described_blocks.hpp"
#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/ingest/socket.hpp"

// Loopback ingest: one sender thread, the receiver thread, and a consumer that only hands chunks
// back. The rate that counts is the payload that went the whole path (recvmmsg, decode, time
// window, presence, copy into chunks) with nothing lost: no kernel drop, no absent sample, no
// rejected packet.

namespace ryle::bench {
namespace {

using Clock = std::chrono::steady_clock;

double cpu_s(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

struct Run {
  double seconds = 0;
  // Processor time: what a busy machine leaves comparable.
  double sender_cpu_s = 0, receiver_cpu_s = 0;
  std::uint64_t sent = 0, lost = 0;
  bool right = true;  // every sample of every chunk was the pattern (only when checked)
  std::string state;
};

Run run_path(const Traffic& traffic, SendMode mode, double seconds, double rate, bool check) {
  const BoundSource bound = traffic.open();
  ChunkSource& source = *bound.source;
  source.start();
  Run run;
  std::thread consumer([&] {
    while (!source.ended()) {
      Chunk* chunk = source.next(std::chrono::milliseconds(50));
      if (chunk == nullptr) continue;
      if (check) run.right = traffic.right(source, *chunk) && run.right;
      source.release(chunk);
    }
  });
  PacketSender sender(traffic, bound.endpoint, mode);
  const auto start = Clock::now();
  const double process_cpu = cpu_s(CLOCK_PROCESS_CPUTIME_ID);
  const double sender_cpu = cpu_s(CLOCK_THREAD_CPUTIME_ID);
  run.sent = sender.run(seconds, rate);
  run.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  source.stop();
  consumer.join();
  run.sender_cpu_s = cpu_s(CLOCK_THREAD_CPUTIME_ID) - sender_cpu;
  run.receiver_cpu_s = cpu_s(CLOCK_PROCESS_CPUTIME_ID) - process_cpu - run.sender_cpu_s;
  const auto counters = source.counters();
  run.lost = run.sent - counters.used;
  run.state = source.state();
  run.right = run.right && counters.balance() == 0 && (run.lost > 0 || counters.lost_samples == 0);
  return run;
}

// What the sockets alone do, as fast as it goes: the same sender, a receiver that looks at nothing.
double socket_ceiling_gbps(const Traffic& traffic, SendMode mode, double seconds) {
  Endpoint endpoint = parse_endpoint(traffic.socket_endpoint());
  const Socket socket = udp_bind(endpoint);
  set_receive_buffer(socket, std::int64_t{128} << 20);
  if (mode == SendMode::gso) DatagramReader::enable_gro(socket);
  endpoint.port = socket.local_port();
  std::atomic<bool> stop{false};
  std::uint64_t received = 0;
  std::thread receiver([&] {
    DatagramReader reader(traffic.packet_bytes(), mode == SendMode::gso);
    while (!stop) received += reader.receive(socket).size();
  });
  PacketSender sender(traffic, to_string(endpoint), mode);
  const auto start = Clock::now();
  sender.run(seconds, 0);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  stop = true;
  receiver.join();
  return static_cast<double>(received * traffic.payload_bytes()) * 8e-9 / elapsed;
}

// The highest rate of which a short run loses nothing, by bisection between none and what the
// sender can do.
double loss_free_rate(const Traffic& traffic, SendMode mode, double ceiling_gbps, double seconds) {
  double low = 0, high = ceiling_gbps * 1e9 / 8 / static_cast<double>(traffic.payload_bytes());
  for (int step = 0; step < 6; ++step) {
    const double rate = 0.5 * (low + high);
    (run_path(traffic, mode, seconds, rate, false).lost == 0 ? low : high) = rate;
  }
  return low;
}

Result result_of(const Traffic& traffic, SendMode mode, const Run& run, double rate,
                 double ceiling) {
  const auto sent = static_cast<double>(run.sent);
  const auto payload_bytes = static_cast<double>(traffic.payload_bytes());
  Result result;
  result.engine = "ingest";
  result.implementation = mode == SendMode::gso ? "ingest/udp-gso-gro" : "ingest/udp-plain";
  if (traffic.name() != "mwa32t") result.implementation += "/" + traffic.name();
  result.device = device_description(2);
  result.sizes = {{"payload_bytes", payload_bytes},
                  {"packets_sent", sent},
                  {"packets_lost", static_cast<double>(run.lost)},
                  {"asked_kpps", rate * 1e-3},
                  {"sender_cpu_us_per_packet", run.sender_cpu_s / sent * 1e6},
                  {"receiver_cpu_us_per_packet", run.receiver_cpu_s / sent * 1e6},
                  {"sent_kpps", sent / run.seconds * 1e-3}};
  result.median_s = result.min_s = run.seconds;
  result.useful_ops = sent;
  result.bytes = sent * payload_bytes;
  // A rate with loss is no rate.
  result.rate = run.lost == 0 ? sent * payload_bytes * 8e-9 / run.seconds : 0;
  result.rate_unit = "Gb/s";
  result.roofline_fraction = ceiling > 0 ? result.rate / ceiling : 0;
  result.roofline =
      std::string(mode == SendMode::gso ? "loopback, GSO" : "loopback, plain sockets") +
      ", receiver idle, " + std::to_string(ceiling).substr(0, 5) + " Gb/s";
  return result;
}

void bench_mode(const Traffic& traffic, SendMode mode, const Options& options, const Emit& emit) {
  // The check compares byte by byte, which is slow: little of it, and slowly.
  const Run check =
      run_path(traffic, mode, options.quick ? 0.1 : 0.5, options.quick ? 5'000 : 20'000, true);
  const double ceiling = socket_ceiling_gbps(traffic, mode, options.quick ? 0.2 : 2.0);
  const double seconds = options.quick ? 0.5 : 20.0;
  // The goal of reliability.md 7 first (250 kpkt/s = 8.2 Gb/s), then what this machine can do.
  std::vector<double> rates{options.quick ? 20'000.0 : traffic.goal_packets_per_s()};
  if (!options.quick) rates.push_back(0.9 * loss_free_rate(traffic, mode, ceiling, 2.0));
  for (double rate : rates) {
    Run run;
    double asked = rate;
    for (int attempt = 0; attempt < 4; ++attempt, rate *= 0.9) {
      asked = rate;
      run = run_path(traffic, mode, seconds, rate, false);
      if (run.lost == 0) break;
    }
    Result result = result_of(traffic, mode, run, asked, ceiling);
    result.verified = check.right && check.lost == 0 && run.right;
    emit(result);
  }
}

// Chunks of CHIPS packets to planar blocks, one core: what the consumer pays before its engine. By
// the code written for them, or by their description.
void bench_unpack(const Options& options, bool described, const Emit& emit) {
  const FengineLayout layout{132, 512, 132, 32, options.quick ? 128 : 256};
  const DescribedBlocks blocks(described_chips_packet(),
                               {layout.n_channels, layout.n_inputs, layout.chunk_spectra, false});
  std::vector<Chunk> chunks(options.quick ? 1 : 12);  // 200 MB: beyond the last-level cache
  for (auto& chunk : chunks) {
    chunk.payload = Buffer<std::byte>(layout.chunk_bytes());
    chunk.n_ticks = layout.chunk_spectra;
    for (std::int64_t k = 0; k < chunk.payload.size(); k += 8) {
      const std::uint64_t word = mix64(static_cast<std::uint64_t>(k));
      __builtin_memcpy(chunk.payload.data() + k, &word, 8);
    }
  }
  SpectraBlocks spectra(layout.shape());
  std::size_t next = 0;
  const auto [median_s, min_s] = time_runs(options.seconds_per_case, [&] {
    const Chunk& chunk = chunks[next++ % chunks.size()];
    described ? blocks.unpack(chunk, spectra) : unpack(layout, chunk, spectra);
  });
  std::int64_t wrong = 0;
  const std::byte* packets = chunks[(next - 1) % chunks.size()].payload.data();
  for (std::int64_t k = 0; k < layout.chunk_bytes(); k += 97) {
    const std::int64_t place = k % 32, channel = k / 32 % 132,
                       t = k / 32 / 132 % layout.chunk_spectra;
    const std::int64_t board = k / 32 / 132 / layout.chunk_spectra;
    wrong += spectra.blocks().cell(channel, t / 128, 32 * board + place)[t % 128] != packets[k];
  }
  Result result;
  result.engine = "ingest";
  result.implementation = described ? "ingest/unpack/chips-described" : "ingest/unpack/chips";
  result.device = device_description(1);
  result.sizes = {{"n_channels", 132},
                  {"n_inputs", 512},
                  {"n_spectra", static_cast<double>(layout.chunk_spectra)}};
  result.median_s = median_s;
  result.min_s = min_s;
  result.useful_ops = static_cast<double>(layout.chunk_bytes());
  result.bytes = 2 * static_cast<double>(layout.chunk_bytes());
  result.rate = static_cast<double>(layout.chunk_bytes()) * 8e-9 / median_s;
  result.rate_unit = "Gb/s";
  result.roofline = "none";
  result.verified = wrong == 0;
  emit(result);
}

}  // namespace

void bench_ingest(const Options& options, const Emit& emit) {
  for (const bool described : {false, true}) bench_unpack(options, described, emit);
  // Beside each codec the description of the same packets.
  for (const auto& traffic :
       {mwa32t_traffic(), described_mwa32t_traffic(), chips_traffic(), described_chips_traffic()}) {
    bench_mode(*traffic, SendMode::plain, options, emit);
    if (!options.quick) bench_mode(*traffic, SendMode::gso, options, emit);
  }
}

}  // namespace ryle::bench
