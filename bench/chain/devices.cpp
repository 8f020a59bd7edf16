// SPDX-License-Identifier: BSD-3-Clause
#include "bench/chain/devices.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/engine/correlate/correlate.hpp"

namespace ryle::bench {
namespace {

struct DevicesCase {
  std::int64_t n_inputs, n_channels, n_spectra;
};

/// Channels [first, end) on one device.
class DevicePart {
 public:
  DevicePart(int device, const DevicesCase& c, std::int64_t first, std::int64_t end,
             const std::string& implementation, const std::byte* host)
      : queue(Queue::cuda(device)), n_spectra_(c.n_spectra) {
    const OnDevice scope(queue);
    correlator = correlate::make_correlator(
        queue, {c.n_inputs, end - first, SampleFormat::ci8, c.n_spectra, implementation});
    const std::int64_t bytes =
        dense_blocks_bytes(SampleFormat::ci8, end - first, c.n_spectra, c.n_inputs);
    const std::int64_t of_channel = bytes / (end - first);
    memory_ = Buffer<std::byte>(bytes, MemorySpace::device);
    copy_bytes(queue, memory_.data(), host + first * of_channel, bytes);
    queue.synchronize();
    blocks_ = dense_blocks(memory_.data(), SampleFormat::ci8, end - first, c.n_spectra, c.n_inputs);
  }
  void execute() { correlator->execute(queue, {.blocks = blocks_, .n_spectra = n_spectra_}); }

  Queue queue;
  std::unique_ptr<correlate::Correlator> correlator;

 private:
  std::int64_t n_spectra_;
  Buffer<std::byte> memory_;
  BlockView blocks_;
};

std::vector<DevicePart> parts_of(int n_devices, const DevicesCase& c,
                                 const std::string& implementation, const std::byte* host) {
  std::vector<DevicePart> parts;
  for (int d = 0; d < n_devices; ++d) {
    parts.emplace_back(d, c, c.n_channels * d / n_devices, c.n_channels * (d + 1) / n_devices,
                       implementation, host);
  }
  return parts;
}

std::vector<ci64> sums_of(std::vector<DevicePart>& parts) {
  for (DevicePart& part : parts) {
    part.correlator->reset(part.queue);
    part.execute();
  }
  std::vector<ci64> all;
  for (DevicePart& part : parts) {
    correlate::Sums sums;
    part.correlator->finish(part.queue, sums);
    all.insert(all.end(), sums.integer.begin(), sums.integer.end());
  }
  return all;
}

/// Chosen inputs of the first and last channel and of those on either side of every border: inputs
/// of the first, a middle and the last tile. The reference takes each channel by itself.
bool is_the_reference(const DevicesCase& c, int n_devices, const std::byte* host,
                      const std::vector<ci64>& sums) {
  const std::vector<std::int64_t> inputs{0, 1, c.n_inputs / 2, c.n_inputs / 2 + 1, c.n_inputs - 1};
  const auto n = static_cast<std::int64_t>(inputs.size());
  std::vector<std::int64_t> channels{0, c.n_channels - 1};
  for (int d = 1; d < n_devices; ++d) {
    channels.push_back(c.n_channels * d / n_devices - 1);
    channels.push_back(c.n_channels * d / n_devices);
  }
  Queue queue = Queue::cpu(1);
  auto correlator =
      correlate::make_correlator(queue, {n, 1, SampleFormat::ci8, c.n_spectra, "reference"});
  const ConstBlockView all = dense_blocks(const_cast<std::byte*>(host), SampleFormat::ci8,
                                          c.n_channels, c.n_spectra, c.n_inputs);
  Buffer<std::byte> memory(dense_blocks_bytes(SampleFormat::ci8, 1, c.n_spectra, n));
  const BlockView chosen = dense_blocks(memory.data(), SampleFormat::ci8, 1, c.n_spectra, n);
  for (const std::int64_t channel : channels) {
    for (std::int64_t block = 0; block < n_blocks(SampleFormat::ci8, c.n_spectra); ++block) {
      for (std::int64_t k = 0; k < n; ++k)
        std::memcpy(chosen.data + block * chosen.block_stride_bytes + k * chosen.input_stride_bytes,
                    all.data + channel * all.channel_stride_bytes + block * all.block_stride_bytes +
                        inputs[k] * all.input_stride_bytes,
                    kBlockBytes);
    }
    correlator->execute(queue, {.blocks = chosen, .n_spectra = c.n_spectra});
    correlate::Sums want;
    correlator->finish(queue, want);
    for (std::int64_t pair = 0; pair < n_pairs(n); ++pair) {
      const auto [i, j] = pair_of(pair);
      const auto at = channel * n_pairs(c.n_inputs) + pair_index(inputs[i], inputs[j]);
      const ci64 &a = sums[at], &b = want.integer[pair];
      if (a.re != b.re || a.im != b.im) return false;
    }
  }
  return true;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of one gulp on all devices at once: {median, best} of groups of about 50 ms.
std::pair<double, double> time_parts(std::vector<DevicePart>& parts, double seconds) {
  const auto group = [&](int n) {
    const double begin = now_seconds();
    for (int k = 0; k < n; ++k) {
      for (DevicePart& part : parts) part.execute();
    }
    for (DevicePart& part : parts) part.queue.synchronize();
    return (now_seconds() - begin) / n;
  };
  group(3);
  const int n = std::max(2, static_cast<int>(0.05 / group(3)));
  std::vector<double> times;
  for (const double begin = now_seconds(); times.size() < 5 || now_seconds() - begin < seconds;)
    times.push_back(group(n));
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front()};
}

std::vector<std::byte> random_blocks(std::int64_t n_bytes) {
  std::vector<std::byte> bytes(n_bytes);
  Queue host = Queue::cpu();
  constexpr std::int64_t kPiece = 1 << 20;
  host.parallel_for((n_bytes + kPiece - 1) / kPiece, [&](std::int64_t p) {
    for (std::int64_t at = p * kPiece; at < std::min(n_bytes, (p + 1) * kPiece); at += 8) {
      const std::uint64_t word = mix64(static_cast<std::uint64_t>(at));
      std::memcpy(bytes.data() + at, &word, 8);  // blocks are whole words
    }
  });
  return bytes;
}

void measure(const DevicesCase& c, int n_devices, const std::vector<std::byte>& host,
             const Options& options, const Emit& emit) {
  const std::string name =
      options.implementation.find(':') == std::string::npos ? "auto" : options.implementation;
  std::vector<ci64> of_one;
  double one_s = 0;
  for (int n = 1; n <= n_devices; ++n) {
    auto parts = parts_of(n, c, name, host.data());
    const std::vector<ci64> sums = sums_of(parts);
    if (n == 1) of_one = sums;
    Result r;
    r.engine = "devices";
    r.implementation = std::string(parts[0].correlator->implementation());
    r.device = std::to_string(n) + " x " + list_devices().at(1).description;
    r.sizes = {{"n_inputs", static_cast<double>(c.n_inputs)},
               {"n_channels", static_cast<double>(c.n_channels)},
               {"n_spectra", static_cast<double>(c.n_spectra)},
               {"n_devices", n}};
    r.verified = sums == of_one && is_the_reference(c, n, host.data(), sums);
    if (r.verified) {
      const auto [median_s, min_s] = time_parts(parts, options.quick ? 0.05 : 0.5);
      if (n == 1) one_s = median_s;
      r.median_s = median_s;
      r.min_s = min_s;
      r.useful_ops = 8.0 * static_cast<double>(n_pairs(c.n_inputs) * c.n_channels * c.n_spectra);
      r.bytes = static_cast<double>(
          dense_blocks_bytes(SampleFormat::ci8, c.n_channels, c.n_spectra, c.n_inputs));
      r.rate = r.useful_ops / median_s / 1e9;
      r.rate_unit = "GOPS";
      r.sizes.emplace_back("speedup", one_s / median_s);
      r.roofline = std::to_string(n) + " x one device";
      r.roofline_fraction = one_s / median_s / n;
    }
    emit(r);
  }
}

}  // namespace

void bench_devices(const Options& options, const Emit& emit, std::int64_t n_channels) {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) {
    if (options.implementation.rfind("cuda", 0) == 0) throw DeviceError("bench devices: " + reason);
    return;
  }
  const int n_devices = static_cast<int>(list_devices().size()) - 1;
  // 480 channels as in the rows of one device (correlate.md 10); fewer show what a launch costs.
  std::vector<DevicesCase> cases = {{256, 480, 4096}, {256, 240, 4096}, {1024, 120, 4096}};
  if (options.quick) cases = {{33, 16, 512}};
  for (DevicesCase& c : cases) {
    if (n_channels > 0) c.n_channels = n_channels;
  }
  const auto bytes_of = [](const DevicesCase& c) {
    return dense_blocks_bytes(SampleFormat::ci8, c.n_channels, c.n_spectra, c.n_inputs);
  };
  std::int64_t maximum = 0;
  for (const DevicesCase& c : cases) maximum = std::max(maximum, bytes_of(c));
  const auto host = random_blocks(maximum);
  for (const DevicesCase& c : cases) measure(c, n_devices, host, options, emit);
}

}  // namespace ryle::bench
