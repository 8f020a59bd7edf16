// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <span>
#include <stdexcept>
#include <thread>

#include "bench/bench.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/mwa32t_source.hpp"
#include "ryle/ingest/socket.hpp"

// Loopback ingest of mwa32t-udp packets with 4 KB of payload: one sender thread, the receiver
// thread, and a consumer that only hands chunks back. The rate that counts is the payload that went
// the whole path (recvmmsg, decode, time window, presence, copy into chunks) with nothing lost: no
// kernel drop, no absent sample, no rejected packet.

namespace ryle::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kInstants = 128;
constexpr std::size_t kPayloadBytes = kInstants * wire::kMwa32tPayloadBytesPerInstant;
constexpr std::size_t kPacketBytes = wire::kMwa32tUdpHeaderBytes + kPayloadBytes;
constexpr std::size_t kPool = 240;       // packets of pattern: 1 MB, beyond the first-level cache
constexpr std::size_t kGsoPackets = 15;  // of one system call's super-packet: 15 * 4112 < 65507
constexpr int kUdpSegment = 103;         // UDP_SEGMENT of linux/udp.h

enum class Mode { plain, gso };

// Word of the pattern: a function of the tick, repeating after the pool.
std::uint64_t pattern(std::int64_t tick, std::size_t eight_bytes) {
  const auto in_pool = static_cast<std::uint64_t>(tick) % (kPool * kInstants);
  return combine(in_pool, eight_bytes);
}

wire::Mwa32tGeometry geometry() {
  wire::Mwa32tGeometry g;
  g.n_receivers = 1;
  g.n_instants = kInstants;
  return g;
}

Mwa32tSourceConfig source_config() {
  Mwa32tSourceConfig config;
  config.endpoints = {"udp://127.0.0.1:0"};
  config.geometry = geometry();
  config.chunk_ticks = 32768;
  config.n_chunks = 48;
  config.memory = MemorySpace::host;
  config.allow_small_rcvbuf = true;
  config.rate_factor = 25;  // 250 kpkt/s instead of the array's 10
  return config;
}

class PacketSender {
 public:
  PacketSender(const std::string& endpoint_text, Mode mode)
      : mode_(mode), batch_(mode == Mode::gso ? 4 : 60), bytes_(kPool * kPacketBytes) {
    const Endpoint endpoint = parse_endpoint(endpoint_text);
    descriptor_ = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(endpoint.port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int buffer = 8 << 20;
    setsockopt(descriptor_, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    if (mode == Mode::gso) {
      const int segment = static_cast<int>(kPacketBytes);
      setsockopt(descriptor_, IPPROTO_UDP, kUdpSegment, &segment, sizeof segment);
    }
    if (connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("bench ingest: cannot connect over loopback");
    }
    std::vector<std::byte> payload(kPayloadBytes);
    for (std::size_t k = 0; k < kPool; ++k) {
      for (std::size_t w = 0; w < kPayloadBytes / 8; ++w) {
        const auto tick = static_cast<std::int64_t>(k * kInstants + w / 4);
        const std::uint64_t word = pattern(tick, w % 4);
        std::memcpy(payload.data() + 8 * w, &word, 8);
      }
      wire::Packet packet;
      packet.n_ticks = kInstants;
      wire::encode(geometry(), packet, payload, std::span(bytes_).subspan(k * kPacketBytes));
    }
  }
  ~PacketSender() { close(descriptor_); }

  // Sends packets `rate` a second (0 = as fast as it goes) for `seconds`; returns how many.
  std::uint64_t run(double seconds, double rate) {
    const auto start = Clock::now();
    const auto end =
        start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    std::uint64_t sent = 0;
    for (auto now = start; now < end; now = Clock::now()) {
      const double due_s = rate > 0 ? static_cast<double>(sent) / rate : 0;
      const double ahead_s = due_s - std::chrono::duration<double>(now - start).count();
      if (ahead_s > 100e-6) std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (ahead_s > 0) continue;
      sent += send_batch();
    }
    return sent;
  }

 private:
  std::size_t send_batch() {
    const std::size_t per_message = mode_ == Mode::gso ? kGsoPackets : 1;
    mmsghdr headers[64] = {};
    iovec vectors[64];
    for (std::size_t m = 0; m < batch_; ++m) {
      std::byte* first = bytes_.data() + (next_ % kPool) * kPacketBytes;
      for (std::size_t p = 0; p < per_message; ++p, ++next_) {
        // Only the counter changes: the payload repeats with the pool, whose packets are full
        // multiples of a message.
        const std::uint64_t tick = __builtin_bswap64(next_ * kInstants);
        std::memcpy(first + p * kPacketBytes + 8, &tick, 8);
      }
      vectors[m] = {first, per_message * kPacketBytes};
      headers[m].msg_hdr.msg_iov = &vectors[m];
      headers[m].msg_hdr.msg_iovlen = 1;
    }
    for (std::size_t done = 0; done < batch_;) {
      const int n = sendmmsg(descriptor_, headers + done, static_cast<unsigned>(batch_ - done), 0);
      if (n <= 0) throw std::runtime_error("bench ingest: sendmmsg failed");
      done += static_cast<std::size_t>(n);
    }
    return batch_ * per_message;
  }

  Mode mode_;
  std::size_t batch_;
  std::vector<std::byte> bytes_;
  std::uint64_t next_ = 0;
  int descriptor_ = -1;
};

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

bool chunk_right(const Chunk& chunk) {
  for (std::int64_t t = 0; t < chunk.n_ticks; ++t) {
    for (std::size_t w = 0; w < 4; ++w) {
      std::uint64_t word;
      std::memcpy(&word, chunk.payload.data() + t * 32 + 8 * w, 8);
      if (word != pattern(chunk.first_tick + t, w)) return false;
    }
  }
  return chunk.absent.empty();
}

Run run_path(Mode mode, double seconds, double rate, bool check) {
  Mwa32tSource source(source_config());
  source.start();
  Run run;
  std::thread consumer([&] {
    while (!source.ended()) {
      Chunk* chunk = source.next(std::chrono::milliseconds(50));
      if (chunk == nullptr) continue;
      if (check) run.right = chunk_right(*chunk) && run.right;
      source.release(chunk);
    }
  });
  PacketSender sender(source.endpoints().front(), mode);
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
double socket_ceiling_gbps(Mode mode, double seconds) {
  Endpoint endpoint = parse_endpoint("udp://127.0.0.1:0");
  const Socket socket = udp_bind(endpoint);
  set_receive_buffer(socket, std::int64_t{128} << 20);
  if (mode == Mode::gso) DatagramReader::enable_gro(socket);
  endpoint.port = socket.local_port();
  std::atomic<bool> stop{false};
  std::uint64_t received = 0;
  std::thread receiver([&] {
    DatagramReader reader(kPacketBytes, mode == Mode::gso);
    while (!stop) received += reader.receive(socket).size();
  });
  PacketSender sender(to_string(endpoint), mode);
  const auto start = Clock::now();
  sender.run(seconds, 0);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  stop = true;
  receiver.join();
  return static_cast<double>(received) * kPayloadBytes * 8e-9 / elapsed;
}

double gbps(const Run& run) {
  return static_cast<double>(run.sent) * kPayloadBytes * 8e-9 / run.seconds;
}

// The highest rate of which a short run loses nothing, by bisection between none and what the
// sender can do.
double loss_free_rate(Mode mode, double ceiling_gbps, double seconds) {
  double low = 0, high = ceiling_gbps * 1e9 / 8 / kPayloadBytes;
  for (int step = 0; step < 6; ++step) {
    const double rate = 0.5 * (low + high);
    (run_path(mode, seconds, rate, false).lost == 0 ? low : high) = rate;
  }
  return low;
}

void bench_mode(Mode mode, const Options& options, const Emit& emit) {
  const Run check = run_path(mode, options.quick ? 0.1 : 0.5, 20'000, true);
  const double ceiling = socket_ceiling_gbps(mode, options.quick ? 0.2 : 2.0);
  const double seconds = options.quick ? 0.5 : 20.0;
  // The goal of reliability.md 7 first (250 kpkt/s = 8.2 Gb/s), then what this machine can do.
  std::vector<double> rates{options.quick ? 20'000.0 : 250'000.0};
  if (!options.quick) rates.push_back(0.9 * loss_free_rate(mode, ceiling, 2.0));
  for (double rate : rates) {
    Run run;
    for (int attempt = 0; attempt < 4; ++attempt, rate *= 0.9) {
      run = run_path(mode, seconds, rate, false);
      if (run.lost == 0) break;
    }
    Result result;
    result.engine = "ingest";
    result.implementation = mode == Mode::gso ? "ingest/udp-gso-gro" : "ingest/udp-plain";
    result.device = device_description(2);
    result.sizes = {
        {"payload_bytes", double(kPayloadBytes)},
        {"packets_sent", static_cast<double>(run.sent)},
        {"packets_lost", static_cast<double>(run.lost)},
        {"asked_kpps", rate * 1e-3},
        {"sender_cpu_us_per_packet", run.sender_cpu_s / static_cast<double>(run.sent) * 1e6},
        {"receiver_cpu_us_per_packet", run.receiver_cpu_s / static_cast<double>(run.sent) * 1e6},
        {"sent_kpps", static_cast<double>(run.sent) / run.seconds * 1e-3}};
    result.median_s = result.min_s = run.seconds;
    result.useful_ops = static_cast<double>(run.sent);
    result.bytes = static_cast<double>(run.sent) * kPayloadBytes;
    result.rate = run.lost == 0 ? gbps(run) : 0;  // a rate with loss is no rate
    result.rate_unit = "Gb/s";
    result.roofline_fraction = ceiling > 0 ? result.rate / ceiling : 0;
    result.roofline = std::string(mode == Mode::gso ? "loopback, GSO" : "loopback, plain sockets") +
                      ", receiver idle, " + std::to_string(ceiling).substr(0, 5) + " Gb/s";
    result.verified = check.right && check.lost == 0 && run.right;
    emit(result);
  }
}

}  // namespace

void bench_ingest(const Options& options, const Emit& emit) {
  bench_mode(Mode::plain, options, emit);
  if (!options.quick) bench_mode(Mode::gso, options, emit);
}

}  // namespace ryle::bench
