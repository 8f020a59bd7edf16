// SPDX-License-Identifier: BSD-3-Clause
#include "bench/chain/nodes.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"
#include "ryle/pipeline/run/graph.hpp"

namespace ryle::bench {
namespace {

namespace fs = std::filesystem;

/// A folder for products, gone in the end.
struct Scratch {
  fs::path path = fs::temp_directory_path() / ("ryle-bench-nodes-" + std::to_string(::getpid()));
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

/// A chunk of noise as planar blocks, and as packets of pairs of inputs where the beamformer takes
/// these. Codes of every value but the most negative one, which no sampler sends.
struct NoiseChunk {
  Buffer<std::byte> blocks, packets;

  NoiseChunk(const SpectraShape& shape, bool pairs, std::uint64_t key)
      : blocks(
            dense_blocks_bytes(shape.format, shape.n_channels, shape.chunk_spectra, shape.n_inputs),
            MemorySpace::pinned) {
    const bool nibbles = shape.format == SampleFormat::ci4;
    const auto code = [&](std::uint64_t k) {
      const std::uint64_t bits = combine(key, k);
      // About normal, 2.4 of the unit wide in 4 bits.
      const auto part = [&](int shift) {
        const auto byte = [&](int at) { return static_cast<int>(bits >> (shift + at) & 15); };
        return std::clamp((byte(0) + byte(4) + byte(8) + byte(12) - 30) / 4, -7, 7);
      };
      return nibbles ? static_cast<std::byte>(part(0) << 4 | (part(16) & 15))
                     : static_cast<std::byte>(8 * part(0));
    };
    Queue::cpu().parallel_for(shape.n_channels, [&](std::int64_t c) {
      const std::int64_t n = blocks.size() / shape.n_channels;
      for (std::int64_t k = c * n; k < (c + 1) * n; ++k)
        blocks[k] = code(static_cast<std::uint64_t>(k));
    });
    if (!pairs) return;
    packets = Buffer<std::byte>(blocks.size(), MemorySpace::pinned);
    constexpr std::int64_t kSpectra = 128;  // of a packet and of a block
    const auto view = dense_blocks(blocks.data(), shape.format, shape.n_channels,
                                   shape.chunk_spectra, shape.n_inputs);
    for (std::int64_t c = 0; c < shape.n_channels; ++c)
      for (std::int64_t b = 0; b < view.n_blocks; ++b)
        for (std::int64_t i = 0; i < shape.n_inputs; ++i) {
          std::byte* to = packets.data() + (c * view.n_blocks + b) * kSpectra * shape.n_inputs +
                          i / 2 * 2 * kSpectra + i % 2;
          for (std::int64_t t = 0; t < kSpectra; ++t) to[2 * t] = view.cell(c, b, i)[t];
        }
  }
};

struct Measured {
  double per_data_s = 0;  ///< seconds a second of data
  double copied = 0;      ///< bytes to devices over bytes of the stream
  std::string implementations;
  bool whole = false;
};

Measured measure(const pipeline::ObservationConfig& config, bool with_beams, double seconds) {
  const pipeline::SpectraInput input = pipeline::spectra_input(config);
  if (input.fine)
    throw ConfigError(
        "bench nodes: channelize.fine_channels stand before the nodes; `ryle plan` "
        "measures both");
  std::unique_ptr<pipeline::StreamBeams> beams;
  if (with_beams && pipeline::wants_beams(config))
    beams = std::make_unique<pipeline::StreamBeams>(pipeline::beams_of(config, input));
  const pipeline::RunOptions options;
  pipeline::Nodes nodes = pipeline::make_nodes(config, input.array, input.metadata, beams.get(),
                                               nullptr, true, options);
  const SpectraShape& shape = input.shape;
  const bool pairs = nodes.beams != nullptr && !nodes.beams->reads_blocks();
  std::vector<NoiseChunk> chunks;
  for (std::uint64_t k = 0; k < 3; ++k) chunks.emplace_back(shape, pairs, k);
  pipeline::DeviceBlocks devices;
  std::int64_t n_fed = 0;
  const auto feed = [&] {
    const NoiseChunk& chunk = chunks[static_cast<std::size_t>(n_fed) % chunks.size()];
    const std::int64_t first = n_fed++ * shape.chunk_spectra;
    pipeline::SpectraGulp gulp;
    gulp.blocks = dense_blocks(chunk.blocks.data(), shape.format, shape.n_channels,
                               shape.chunk_spectra, shape.n_inputs);
    gulp.n_spectra = shape.chunk_spectra;
    if (nodes.reads_blocks()) {
      devices.renew(gulp.blocks);
      gulp.device = &devices;
    }
    for (const auto& node : nodes.all) {
      if (!pairs || node.get() != nodes.beams) {
        node->feed(gulp, first, 0, input.metadata.clock);
        continue;
      }
      pipeline::BeamInput packets;
      packets.samples = chunk.packets.data();
      packets.blocks = gulp.device;
      packets.channel_stride_bytes = chunk.packets.size() / shape.n_channels;
      packets.n_spectra = shape.chunk_spectra;
      packets.first_tick = first;
      packets.clock = input.metadata.clock;
      nodes.beams->feed(packets);
    }
  };
  const std::int64_t n_first = 8;  // plans, memory, levels
  for (std::int64_t k = 0; k < n_first; ++k) feed();
  const auto begin = std::chrono::steady_clock::now();
  while (pipeline::seconds_since(begin) < seconds) feed();
  const double elapsed_s = pipeline::seconds_since(begin);
  const double chunk_s = input.metadata.clock.seconds(shape.chunk_spectra);
  Measured m;
  m.per_data_s = elapsed_s / (static_cast<double>(n_fed - n_first) * chunk_s);
  m.copied = static_cast<double>(devices.copied_bytes()) /
             static_cast<double>(n_fed * chunks.front().blocks.size());
  m.whole = true;
  pipeline::RunSummary summary;
  for (const auto& node : nodes.all) {
    node->finish({}, summary);
    m.whole =
        m.whole && std::abs(node->data_s() / (static_cast<double>(n_fed) * chunk_s) - 1) < 1e-9;
  }
  m.whole = m.whole && summary.errors.empty() && !summary.products.empty();
  for (const auto& name : summary.implementations)
    m.implementations += (m.implementations.empty() ? "" : ", ") + name;
  return m;
}

}  // namespace

void bench_nodes(const std::string& observation, const Options& options, const Emit& emit) {
  if (observation.empty()) throw ConfigError("bench nodes: --observation FILE is missing");
  const Scratch scratch;
  struct Row {
    const char* name;
    bool visibilities, images, beams;
  };
  double own_s = 0;
  for (const Row& row : {Row{"visibilities", true, false, false}, Row{"images", false, true, false},
                         Row{"beams", false, false, true}, Row{"all", true, true, true}}) {
    std::vector<std::string> values{"source.kind=network",
                                    "source.allow_small_rcvbuf=true",
                                    "output.pictures=false",
                                    "output.ms=false",
                                    "output.uvfits=false",
                                    "output.overwrite=true",
                                    "output.directory=" + (scratch.path / row.name).string()};
    values.emplace_back(row.visibilities ? "output.uvh5=true" : "output.uvh5=false");
    values.emplace_back(row.images ? "image.cadence_s=0.5" : "image.cadence_s=0.0");
    fs::create_directories(scratch.path / row.name);
    const auto config = pipeline::load_observation(observation, values);
    const Measured m =
        measure(config, row.beams, options.quick ? 0.2 : std::max(2.0, options.seconds_per_case));
    Result r;
    r.engine = "nodes";
    r.implementation = std::string(row.name) + ": " + m.implementations;
    const bool on_device = config.runtime.device != "cpu" && cuda_unavailable_reason().empty();
    r.device = list_devices().at(on_device ? 1 : 0).description;
    r.median_s = r.min_s = m.per_data_s;
    r.verified = m.whole;
    r.rate = m.whole ? 1 / m.per_data_s : 0;
    r.rate_unit = "x real time";
    const bool all = row.visibilities && row.images && row.beams;
    if (on_device) r.sizes.emplace_back("copied", m.copied);
    if (all) r.sizes.emplace_back("of_own_times", m.per_data_s / own_s);
    own_s += m.per_data_s;
    emit(r);
  }
}

}  // namespace ryle::bench
