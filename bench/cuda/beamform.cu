// SPDX-License-Identifier: BSD-3-Clause
// Gates G1 to G4 of the beamformer on a GPU (beamform.md): BEST-2 heaps of random nibbles in device
// memory to beams in device memory, cold inputs and outputs, verified against the double reference.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <tuple>

#include "bench/bench_cuda.hpp"
#include "ryle/core/random.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/engine/beamform/cuda/tuning.hpp"

namespace ryle::bench {
namespace {

using namespace beamform;

struct Case {
  std::int64_t antennas, beams, channels, spectra, integration;
  OutputFormat format;
  InputOrder order = InputOrder::pairs;
};

constexpr OutputFormat f32 = OutputFormat::f32, u8 = OutputFormat::u8;
constexpr std::int64_t kVerifySpectra = 256;

bool voltage(const Case& k) {
  return k.format == OutputFormat::cf32 || k.format == OutputFormat::cf16 ||
         k.format == OutputFormat::ci8;
}

std::string_view name_of(OutputFormat format) {
  if (format == OutputFormat::cf16) return "cf16";
  if (format == OutputFormat::ci8) return "ci8";
  return format == u8 ? "u8" : "f32";
}

std::vector<Case> cases(const Options& options) {
  if (options.quick) return {{32, 64, 16, 512, 8, f32}};
  if (options.calibrate) {
    return {{32, 1024, 256, 4096, 8, f32},
            {32, 1024, 256, 4096, 32, u8},
            {32, 1024, 256, 2048, 1, u8},
            {32, 1024, 1024, 1024, 1, OutputFormat::cf16},
            {32, 1024, 1024, 1024, 1, OutputFormat::ci8},
            {32, 8, 1024, 16384, 16, f32},
            {32, 16, 1024, 16384, 16, f32},
            {32, 16, 1024, 16384, 16, u8},
            {512, 1024, 64, 4096, 32, f32}};
  }
  return {{32, 1024, 1024, 4096, 8, f32},  // G1
          {32, 1024, 1024, 4096, 8, u8},
          {32, 1024, 1024, 4096, 16, u8},
          {32, 1024, 1024, 4096, 32, f32},
          {32, 1024, 1024, 4096, 32, u8},
          {32, 1024, 1024, 4096, 64, u8},
          {32, 1024, 1024, 4096, 32, f32, InputOrder::spectra},
          {32, 256, 1024, 4096, 8, f32},
          {512, 1024, 64, 4096, 32, f32},  // G2
          {512, 1024, 64, 4096, 32, u8},
          {128, 1024, 256, 4096, 32, f32},
          {32, 1024, 1024, 1024, 1, OutputFormat::cf16},  // G3
          {32, 1024, 1024, 1024, 1, OutputFormat::ci8},
          {32, 1024, 1024, 1024, 1, u8},
          {32, 1024, 1024, 1024, 1, f32},
          {32, 8, 1024, 16384, 16, f32},  // G4
          {32, 16, 1024, 16384, 16, f32},
          {32, 16, 1024, 16384, 16, u8},
          {32, 16, 1024, 16384, 1000, f32}};
}

Config config_of(const Case& k) {
  Config c;
  c.n_antennas = k.antennas;
  c.n_beams = k.beams;
  c.n_channels = k.channels;
  c.max_spectra = k.spectra;
  c.order = k.order;
  c.output = voltage(k) ? OutputKind::voltage : OutputKind::power;
  c.output_format = k.format;
  c.integration = k.integration;
  return c;
}

// Phasors of 4096 phases: the table is large, the sines are not.
std::vector<cf32> weights_of(const Config& c) {
  std::vector<cf32> phasors(4096);
  for (std::size_t k = 0; k < phasors.size(); ++k)
    phasors[k] = cf32(std::polar(1.0, 6.283185307 * static_cast<double>(k) / 4096));
  std::vector<cf32> w(static_cast<std::size_t>(c.n_beams * c.n_channels * c.n_antennas));
  for (std::size_t k = 0; k < w.size(); ++k) w[k] = phasors[mix64(k) & 4095];
  return w;
}

void set_scale(Beamformer& beams, Queue& queue, float scale, float offset) {
  const Config& c = beams.config();
  const std::array extent{c.n_rows(), c.output == OutputKind::voltage ? 1 : c.n_products(),
                          c.n_channels};
  const auto cells = static_cast<std::size_t>(extent[0] * extent[1] * extent[2]);
  const std::vector<float> scales(cells, scale), offsets(cells, offset);
  beams.set_requantization(queue, {scales.data(), extent}, {offsets.data(), extent});
}

double half_value(std::uint16_t h) {
  const int exponent = h >> 10 & 31;
  const double size =
      exponent == 0 ? std::ldexp(h & 1023, -24) : std::ldexp(1024 + (h & 1023), exponent - 25);
  return (h & 0x8000) != 0 ? -size : size;
}

void numbers(OutputFormat format, const std::byte* p, std::int64_t bytes,
             std::vector<double>& out) {
  const std::int64_t step = format == f32 || format == OutputFormat::cf32 ? 4
                            : format == OutputFormat::cf16                ? 2
                                                                          : 1;
  for (std::int64_t at = 0; at < bytes; at += step) {
    float real = 0;
    std::uint16_t half = 0;
    if (step == 4) {
      std::memcpy(&real, p + at, 4);
      out.push_back(static_cast<double>(real));
    } else if (step == 2) {
      std::memcpy(&half, p + at, 2);
      out.push_back(half_value(half));
    } else {
      out.push_back(format == u8 ? static_cast<double>(p[at])
                                 : static_cast<double>(static_cast<std::int8_t>(p[at])));
    }
  }
}

// First and last channel, 32 beams from the first to the last, 256 spectra (whole windows).
bool verify(Queue& queue, const Config& c, const std::vector<cf32>& weights,
            const std::byte* samples, const Output& output, float scale, std::int64_t max_beams) {
  const std::int64_t spectra = std::min(c.max_spectra, std::max(kVerifySpectra, c.integration));
  const std::int64_t n_beams = std::min(max_beams, c.n_beams);
  const std::int64_t gulp = c.max_spectra * c.n_antennas;
  for (const std::int64_t channel : {std::int64_t{0}, c.n_channels - 1}) {
    Config one = c;
    one.n_channels = 1;
    one.max_spectra = spectra;
    one.n_beams = n_beams;
    one.implementation = "reference";
    Queue host = Queue::cpu(1);
    auto reference = make_beamformer(host, one);
    std::vector<cf32> w;
    std::vector<std::int64_t> beams;
    for (std::int64_t k = 0; k < n_beams; ++k) {
      beams.push_back(n_beams == 1 ? 0 : k * (c.n_beams - 1) / (n_beams - 1));
      const cf32* from = weights.data() + (beams.back() * c.n_channels + channel) * c.n_antennas;
      w.insert(w.end(), from, from + c.n_antennas);
    }
    reference->set_weights(host, {w.data(), {n_beams, 1, c.n_antennas}});
    set_scale(*reference, host, scale, 0);
    std::vector<std::byte> in(static_cast<std::size_t>(gulp));
    copy_bytes(queue, in.data(), samples + channel * gulp, gulp);
    queue.synchronize();
    Input part;
    part.samples = in.data();
    part.n_spectra = spectra;
    const std::int64_t n = one.n_windows(0, spectra);
    std::vector<std::byte> want(static_cast<std::size_t>(dense_output_bytes(one, n)));
    reference->execute(host, part, dense_output(one, want.data(), n));
    std::vector<std::byte> got(want.size());
    const std::int64_t row_bytes = n * c.bytes_per_value();
    for (std::int64_t k = 0; k < n_beams; ++k) {
      copy_bytes(queue, got.data() + k * row_bytes,
                 static_cast<const std::byte*>(output.values) +
                     beams[static_cast<std::size_t>(k)] * output.row_stride_bytes +
                     channel * output.channel_stride_bytes,
                 row_bytes);
    }
    queue.synchronize();
    std::vector<double> a, b;
    numbers(c.output_format, want.data(), static_cast<std::int64_t>(want.size()), a);
    numbers(c.output_format, got.data(), static_cast<std::int64_t>(got.size()), b);
    const bool codes = c.output_format == u8 || c.output_format == OutputFormat::ci8;
    std::size_t differ = 0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      // Fp16: one rounding; f32: the sums are exact, the rest of it a few 2^-24.
      const double allowed = codes ? 1 : (c.output_format == f32 ? 1e-5 : 1e-3) * std::fabs(a[k]);
      if (!(std::fabs(a[k] - b[k]) <= allowed)) return false;
      differ += codes && a[k] != b[k];
    }
    if (differ * 2000 > a.size()) return false;
  }
  return true;
}

struct Ceilings {
  double mma_ops, bytes_per_s;
};

/// Cuts of the work that `--tune` tries with a kernel.
std::vector<CudaTuning> search_of(const Case& k, std::string_view kernel) {
  std::vector<CudaTuning> all;
  if (kernel == "beamform/cuda/sm90_s8_few") {
    for (const std::int64_t warps : {12, 10, 8})
      for (const std::int64_t stages : {2, 3}) all.push_back({1, 1, warps, stages});
    return all;
  }
  if (kernel == "beamform/cuda/sm90_s8_wgmma") {
    for (const std::int64_t slabs : {16, 8})
      for (const std::int64_t groups : {8, 16, 32})
        for (const bool halves : {true, false})
          if (groups * 64 <= k.spectra && (k.antennas <= 32 || !halves))
            all.push_back({slabs, groups, 12, 2, halves});
    return all;
  }
  for (const std::int64_t slabs : {1, 2, 4, 6, 8, 16, 32, 64}) {
    if (slabs > (k.beams + 15) / 16) continue;
    for (const std::int64_t groups : {4, 8, 16, 32, 64, 128, 256})
      if (groups * 64 <= k.spectra && (k.beams <= 32 || (groups >= 16 && groups <= 64)))
        all.push_back({slabs, groups});
  }
  return all;
}

void measure(const Case& k, const Options& options, const Ceilings& ceilings, const Emit& emit) {
  Queue queue = Queue::cuda();
  Config config = config_of(k);
  if (options.implementation.rfind("cuda", 0) == 0) config.implementation = options.implementation;
  const std::size_t kernel = options.path.find('@');
  if (kernel != std::string::npos)
    config.implementation = "cuda:" + options.path.substr(kernel + 1);
  auto beams = make_beamformer(queue, config);
  const auto weights = weights_of(config);
  beams->set_weights(queue, {weights.data(), {k.beams, k.channels, k.antennas}});
  // Mean power of random nibbles: 43 LSB^2 an antenna; to code 64, voltages to 40 rms a part.
  const float power = 43.0f * static_cast<float>(k.antennas);
  const float scale = voltage(k) ? 40.0f / std::sqrt(power / 2) : 64.0f / power;
  set_scale(*beams, queue, scale, 0);
  const std::int64_t gulp_bytes = k.channels * k.spectra * k.antennas;
  const std::int64_t windows = config.n_windows(0, k.spectra);
  const std::int64_t out_bytes = dense_output_bytes(config, windows);
  int cache_bytes = 0;
  RYLE_CUDA(cudaDeviceGetAttribute(&cache_bytes, cudaDevAttrL2CacheSize, 0));
  const std::int64_t n_gulps =
      std::max<std::int64_t>(2, 3 * std::int64_t{cache_bytes} / (gulp_bytes + out_bytes) + 1);
  const Buffer<std::byte> in(n_gulps * gulp_bytes, MemorySpace::device);
  const Buffer<std::byte> out(n_gulps * out_bytes, MemorySpace::device);
  detail::fill_random(in.data(), in.bytes(), false, 3, queue);
  detail::fill_random(out.data(), out.bytes() / 8 * 8, false, 4, queue);
  std::int64_t gulp = 0;
  Tick tick = 0;
  const auto run = [&] {
    Input input;
    input.samples = in.data() + gulp * gulp_bytes;
    input.n_spectra = k.spectra;
    input.first_tick = tick;
    tick += (k.spectra + k.integration - 1) / k.integration * k.integration;
    const Output output = dense_output(config, out.data() + gulp * out_bytes, windows);
    beams->execute(queue, input, output);
    gulp = (gulp + 1) % n_gulps;
    return output;
  };
  const std::vector<CudaTuning> table = {CudaTuning{}};
  const std::vector<CudaTuning> search = search_of(k, beams->implementation());
  for (const CudaTuning& tuning : options.calibrate ? search : table) {
    if (options.calibrate) set_cuda_tuning(&tuning);
    gulp = tick = 0;
    const Output output = run();
    Result r;
    r.engine = "beamform";
    r.implementation = std::string(beams->implementation());
    r.device = list_devices()[1].description;
    r.sizes = {{"n_antennas", static_cast<double>(k.antennas)},
               {"n_beams", static_cast<double>(k.beams)},
               {"n_channels", static_cast<double>(k.channels)},
               {"n_spectra", static_cast<double>(k.spectra)},
               {"integration", static_cast<double>(k.integration)},
               {"bytes_per_value", static_cast<double>(config.bytes_per_value())},
               {"voltage", voltage(k) ? 1.0 : 0.0},
               {"pairs", k.order == InputOrder::pairs ? 1.0 : 0.0}};
    if (options.calibrate) {
      r.sizes.emplace_back("slabs_per_block", static_cast<double>(tuning.slabs_per_block));
      r.sizes.emplace_back("groups_per_item", static_cast<double>(tuning.groups_per_item));
      r.sizes.emplace_back("stages", static_cast<double>(tuning.stages));
      r.sizes.emplace_back("warps", static_cast<double>(tuning.warps));
      r.sizes.emplace_back("halves", tuning.halves ? 1.0 : 0.0);
    }
    r.verified =
        verify(queue, config, weights, in.data(), output, scale, options.calibrate ? 3 : 32);
    if (r.verified) {
      std::tie(r.median_s, r.min_s) =
          detail::time_queue(queue, options.calibrate ? 0.05 : options.seconds_per_case, run);
    }
    set_cuda_tuning(nullptr);
    r.useful_ops = cost(config).useful_ops_per_spectrum * static_cast<double>(k.spectra);
    r.bytes = static_cast<double>(gulp_bytes + out_bytes);
    r.rate_unit = "GOPS";
    if (r.verified) {
      r.rate = r.useful_ops / r.median_s * 1e-9;
      const double arithmetic_s = r.useful_ops / ceilings.mma_ops;
      const double memory_s = r.bytes / ceilings.bytes_per_s;
      r.roofline_fraction = std::max(arithmetic_s, memory_s) / r.median_s;
      r.roofline =
          memory_s > arithmetic_s
              ? "copy " + std::to_string(static_cast<long>(ceilings.bytes_per_s * 1e-9)) + " GB/s"
              : "mma.sync s8 " + std::to_string(static_cast<long>(ceilings.mma_ops * 1e-9)) +
                    " GOPS";
    }
    emit(r);
  }
}

}  // namespace

// --path ANTENNASxBEAMS[:FORMAT][@KERNEL]
void bench_beamform_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  const Ceilings ceilings{ceiling_cuda_mma_s8_ops(), ceiling_cuda_copy_bytes_per_s()};
  for (const Case& k : cases(options)) {
    const std::string size = std::to_string(k.antennas) + "x" + std::to_string(k.beams);
    const std::string one = size + ":" + std::string(name_of(k.format));
    const std::string path = options.path.substr(0, options.path.find('@'));
    if (path == "all" || path == size || path == one) measure(k, options, ceilings, emit);
  }
}

}  // namespace ryle::bench
