// SPDX-License-Identifier: BSD-3-Clause
// Voltages of other systems to planar blocks on the device: verified against the importer of the
// CPU, then timed beside a plain copy of as many bytes.
#include <algorithm>
#include <cstring>

#include "bench/bench_cuda.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/import.hpp"

namespace ryle::bench {
namespace {

using namespace correlate;

struct Order {
  const char* name;
  VoltageLayout layout;
};

struct Case {
  std::int64_t n_inputs, n_channels, n_spectra;
};

constexpr std::int64_t kSpectraPerHeap = 256;  // MeerKAT's F-engine

/// The first channels by the CPU: enough that the first and the last column of a tile are met.
bool verify(Queue& queue, const Order& order, const Case& c, const Buffer<std::byte>& source,
            const BlockView& blocks) {
  std::vector<std::byte> host(static_cast<std::size_t>(source.size()));
  std::vector<std::byte> found(static_cast<std::size_t>(
      dense_blocks_bytes(SampleFormat::ci8, c.n_channels, c.n_spectra, c.n_inputs)));
  copy_bytes(queue, host.data(), source.data(), source.bytes());
  copy_bytes(queue, found.data(), blocks.data, static_cast<std::int64_t>(found.size()));
  queue.synchronize();
  std::vector<std::byte> wanted(found.size(), std::byte{0xCD});
  Queue cpu = Queue::cpu();
  import_voltages(
      cpu, host.data(), order.layout, c.n_spectra,
      dense_blocks(wanted.data(), SampleFormat::ci8, c.n_channels, c.n_spectra, c.n_inputs));
  return found == wanted;
}

Result measure(const Order& order, const Case& c, const Options& options, double bytes_per_s) {
  Queue queue = Queue::cuda();
  const std::int64_t bytes = 2 * c.n_inputs * c.n_channels * c.n_spectra;
  constexpr std::size_t kSets = 3;
  std::vector<Buffer<std::byte>> sources;
  std::vector<Buffer<std::byte>> targets;
  for (std::size_t k = 0; k < kSets; ++k) {
    sources.emplace_back(bytes, MemorySpace::device);
    targets.emplace_back(bytes, MemorySpace::device);
    detail::fill_random(sources.back().data(), bytes, true, k, queue);
    RYLE_CUDA(cudaMemset(targets.back().data(), 0xCD, static_cast<std::size_t>(bytes)));
  }
  const auto run = [&](std::size_t k) {
    import_voltages(
        queue, sources[k].data(), order.layout, c.n_spectra,
        dense_blocks(targets[k].data(), SampleFormat::ci8, c.n_channels, c.n_spectra, c.n_inputs));
    return dense_blocks(targets[k].data(), SampleFormat::ci8, c.n_channels, c.n_spectra,
                        c.n_inputs);
  };
  Result r;
  r.engine = "import";
  r.implementation = std::string("correlate/cuda/import ") + order.name;
  r.device = list_devices().at(1).description;
  r.sizes = {{"n_inputs", c.n_inputs}, {"n_channels", c.n_channels}, {"n_spectra", c.n_spectra}};
  r.verified = verify(queue, order, c, sources[0], run(0));
  if (!r.verified) return r;
  std::size_t next = 0;
  const auto [median_s, min_s] =
      detail::time_queue(queue, options.seconds_per_case, [&] { run(next++ % kSets); });
  r.median_s = median_s;
  r.min_s = min_s;
  r.bytes = 2.0 * static_cast<double>(bytes);
  r.rate = r.bytes / median_s / 1e9;
  r.rate_unit = "GB/s";
  r.roofline_fraction = r.rate * 1e9 / bytes_per_s;
  r.roofline = "copy " + std::to_string(static_cast<long>(bytes_per_s / 1e9)) + " GB/s";
  return r;
}

}  // namespace

void bench_import_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  const double bytes_per_s = ceiling_cuda_copy_bytes_per_s();
  const std::vector<Case> full = {{64, 480, 4096}, {256, 256, 2048}, {1024, 128, 1024}};
  const std::vector<Case> quick = {{16, 8, 256}};
  for (const Case& c : options.quick ? quick : full) {
    constexpr auto kFormat = SampleFormat::ci8;
    for (const Order& order :
         {Order{"[spectrum][channel][input]",
                spectrum_channel_input(kFormat, c.n_channels, c.n_inputs)},
          {"[channel][input][spectrum]", channel_input_spectrum(kFormat, c.n_inputs, c.n_spectra)},
          {"[heap][input][channel][spectrum]",
           heap_input_channel_spectrum(kFormat, c.n_inputs, c.n_channels, kSpectraPerHeap)}})
      emit(measure(order, c, options, bytes_per_s));
  }
}

}  // namespace ryle::bench
