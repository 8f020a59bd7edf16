// SPDX-License-Identifier: BSD-3-Clause
// The CUDA imagers on a station like LWA-SV: from packed voltages in device memory to images in
// device memory, X-engine included, and the whole station from host memory with copies overlapped.
#include <algorithm>
#include <array>
#include <cmath>

#include "bench/bench_cuda.hpp"
#include "ryle/core/baseline.hpp"
#include "ryle/core/random.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/engine/correlate/cuda/make.hpp"
#include "ryle/engine/image/cuda/all_sky.hpp"
#include "ryle/engine/image/image.hpp"

namespace ryle::bench {
namespace {

using image::AllSkyConfig;
using image::Path;

struct Case {
  Path path;
  std::int64_t n_channels;
  std::int64_t support;
  double frequency_hz;
  bool correlated = false;
  std::int64_t n_bands = 1;  // more than one: from host memory
};

constexpr std::int64_t kAntennas = 256;
constexpr std::int64_t kSpectra = 1000;
constexpr double kSeconds = 0.04;  // what the spectra last at 25 kHz

/// 256 antennas in an ellipse of 89 m x 110 m on a slightly tilted, rough plane.
AllSkyConfig station(const Case& c) {
  AllSkyConfig config;
  for (std::int64_t a = 0; a < kAntennas; ++a) {
    const auto key = combine(11, static_cast<std::uint64_t>(a));
    const double r = std::sqrt(uniform(key)), angle_rad = 2 * kPi * uniform(key + 1);
    const double x = 44.5 * r * std::cos(angle_rad), y = 55 * r * std::sin(angle_rad);
    config.antenna_enu_m.push_back({x, y, -0.026 * x + 0.018 * y + 0.2 * gaussian(key + 2)});
    config.inputs.push_back({a, 0, false});
    config.inputs.push_back({a, 1, false});
  }
  config.channels = {c.frequency_hz, 25e3, c.n_channels};
  config.n_spectra_per_image = kSpectra;
  config.function.support = c.support;
  config.function.correlated = c.correlated;
  config.path = c.path;
  return config;
}

std::int64_t gulp_bytes(const Case& c) {
  return dense_blocks_bytes(SampleFormat::ci4, c.n_channels, kSpectra, 2 * kAntennas);
}

// The tail of the last block is zero by contract.
__global__ void clear_tail(std::byte* data, std::int64_t n_cells, std::int64_t n_inputs,
                           std::int64_t n_blocks, int used) {
  const std::int64_t k = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (k >= n_cells || k / n_inputs % n_blocks != n_blocks - 1) return;
  for (int t = used; t < 128; ++t) data[k * 128 + t] = std::byte{0};
}

Buffer<std::byte> random_gulp(Queue& queue, const Case& c, std::uint64_t seed) {
  Buffer<std::byte> gulp(gulp_bytes(c), MemorySpace::device);
  detail::fill_random(gulp.data(), gulp.bytes(), false, seed, queue);
  const std::int64_t blocks = n_blocks(SampleFormat::ci4, kSpectra);
  const std::int64_t cells = gulp.bytes() / 128;
  clear_tail<<<static_cast<unsigned>((cells + 255) / 256), 256, 0, cuda::stream_of(queue)>>>(
      gulp.data(), cells, 2 * kAntennas, blocks, static_cast<int>(kSpectra % 128));
  RYLE_CUDA_LAUNCHED("clear_tail");
  return gulp;
}

/// One band: everything from voltages on the device to images on the device.
class Band {
 public:
  Band(Queue& queue, const Case& c) : case_(c), config_(station(c)) {
    if (image::takes_voltages(c.path)) {
      field_ = make_field_imager(queue, config_);
      return;
    }
    vis_ = make_vis_imager(queue, config_);
    correlator_ = correlate::make_correlator(queue, {.n_inputs = 2 * kAntennas,
                                                     .n_channels = c.n_channels,
                                                     .format = SampleFormat::ci4,
                                                     .max_spectra = kSpectra,
                                                     .implementation = "cuda:mma_s8"});
  }
  image::DeviceImages run(Queue& queue, std::byte* gulp) {
    const auto blocks =
        dense_blocks(gulp, SampleFormat::ci4, case_.n_channels, kSpectra, 2 * kAntennas);
    if (field_) {
      field_->execute(queue, {.blocks = blocks, .n_spectra = kSpectra});
      return finish_on_device(queue, *field_);
    }
    correlator_->execute(queue, {.blocks = blocks, .n_spectra = kSpectra});
    return execute_on_device(queue, *vis_, sums(queue));
  }
  image::VisInput sums(Queue& queue) {
    const auto sums = correlate::finish_on_device(queue, *correlator_);
    image::VisInput input;
    input.sums = sums.sums;
    input.tiles = sums.tiles;
    input.tile_shift = sums.tile_shift;
    input.counts = sums.counts;
    input.n_spectra = sums.n_spectra;
    return input;
  }
  correlate::Correlator* correlator() { return correlator_.get(); }

 private:
  Case case_;
  AllSkyConfig config_;
  std::unique_ptr<image::FieldImager> field_;
  std::unique_ptr<image::VisImager> vis_;
  std::unique_ptr<correlate::Correlator> correlator_;
};

bool sums_fourier(Path path) { return path == Path::vis_dft || path == Path::efield_dft; }

/// First and last channel of the images against the CPU: the same path for visibilities, for
/// voltages the correlated form of visibilities on the grid, which is equal.
bool verify(Queue& queue, Band& band, const Case& c, std::byte* gulp) {
  const auto images = band.run(queue, gulp);
  std::vector<float> found(static_cast<std::size_t>(images.n_floats));
  copy_bytes(queue, found.data(), images.pixels, images.n_floats * 4);
  correlate::Config x{.n_inputs = 2 * kAntennas,
                      .n_channels = c.n_channels,
                      .format = SampleFormat::ci4,
                      .max_spectra = kSpectra};
  auto correlator = correlate::make_correlator(queue, x);
  const auto blocks = dense_blocks(gulp, SampleFormat::ci4, c.n_channels, kSpectra, 2 * kAntennas);
  correlator->execute(queue, {.blocks = blocks, .n_spectra = kSpectra});
  correlate::Sums sums;
  correlator->finish(queue, sums);
  auto host = Queue::cpu();
  for (const std::int64_t channel : {std::int64_t{0}, c.n_channels - 1}) {
    AllSkyConfig config = station(c);
    config.channels = {config.channels.center_hz(channel), 25e3, 1};
    config.path = sums_fourier(c.path) ? Path::vis_dft : Path::vis_grid;
    config.function.correlated =
        c.correlated || (image::takes_voltages(c.path) && !sums_fourier(c.path));
    config.implementation = "cpu";
    auto imager = make_vis_imager(host, config);
    image::VisInput input;
    input.sums = sums.integer.data() + channel * n_pairs(2 * kAntennas);
    input.n_spectra = kSpectra;
    image::Images wanted;
    imager->execute(host, input, wanted);
    const float* image = found.data() + channel * static_cast<std::int64_t>(wanted.pixels.size());
    double peak = 0, squares = 0, n = 0;
    for (std::size_t p = 0; p < wanted.pixels.size(); ++p) {
      if (std::isnan(wanted.pixels[p]) != std::isnan(image[p])) return false;
      if (std::isnan(image[p])) continue;
      // Where the taper is small its division enlarges rounding: inside r < 0.8 only.
      const double y = static_cast<double>(p / 128 % 128) - 64,
                   x = static_cast<double>(p % 128) - 64;
      if (std::hypot(x, y) > 0.8 * 128 * config.cell_wavelengths) continue;
      peak = std::max(peak, std::abs(static_cast<double>(wanted.pixels[p])));
      squares += std::pow(static_cast<double>(wanted.pixels[p]) - image[p], 2);
      n += 1;
    }
    // Fourier sums on tensor cores have operands of eleven bits.
    const double allowed = sums_fourier(c.path) ? 1e-4 : c.path == Path::efield_half ? 3e-5 : 5e-6;
    if (!(std::sqrt(squares / n) <= allowed * peak)) return false;
  }
  return true;
}

Result row(const Case& c) {
  Result r;
  r.engine = "image";
  r.implementation =
      "image/cuda/" + std::string(name(c.path)) + (c.correlated ? "-correlated" : "");
  r.device = list_devices().at(1).description;
  r.sizes = {{"n_antennas", kAntennas}, {"n_channels", c.n_channels},
             {"n_spectra", kSpectra},   {"n_pixels", 128},
             {"support", c.support},    {"center_mhz", c.frequency_hz / 1e6},
             {"n_bands", c.n_bands}};
  r.rate_unit = "x real time";
  r.bytes = static_cast<double>(c.n_bands * gulp_bytes(c)) +
            static_cast<double>(c.n_bands * c.n_channels) * 4 * 128 * 128 * 4;
  return r;
}

void finish_row(Result& r, const std::pair<double, double>& times) {
  r.median_s = times.first;
  r.min_s = times.second;
  r.rate = kSeconds / r.median_s;
}

/// Voltages resident on the device, several gulps so that no cache holds them.
Result resident(const Case& c, const Options& options) {
  Queue queue = Queue::cuda();
  Band band(queue, c);
  std::vector<Buffer<std::byte>> gulps;
  for (std::uint64_t g = 0; g < 3; ++g) gulps.push_back(random_gulp(queue, c, g));
  Result r = row(c);
  r.verified = verify(queue, band, c, gulps[0].data());
  if (!r.verified) return r;
  std::size_t next = 0;
  finish_row(r, detail::time_queue(queue, options.seconds_per_case,
                                   [&] { band.run(queue, gulps[next++ % gulps.size()].data()); }));
  return r;
}

/// Stages of vis-grid apart: the X-engine alone, imaging alone.
void stages(const Case& c, const Options& options, const Emit& emit) {
  Queue queue = Queue::cuda();
  Band band(queue, c);
  auto gulp = random_gulp(queue, c, 5);
  band.run(queue, gulp.data());
  const auto blocks =
      dense_blocks(gulp.data(), SampleFormat::ci4, c.n_channels, kSpectra, 2 * kAntennas);
  Result r = row(c);
  r.implementation += "/x-engine";
  r.verified = verify(queue, band, c, gulp.data());
  if (!r.verified) return emit(r);
  image::VisInput input;
  finish_row(r, detail::time_queue(queue, options.seconds_per_case, [&] {
               band.correlator()->execute(queue, {.blocks = blocks, .n_spectra = kSpectra});
               input = band.sums(queue);
             }));
  emit(r);
  auto imager = make_vis_imager(queue, station(c));
  r.implementation = row(c).implementation + "/imaging";
  finish_row(r, detail::time_queue(queue, options.seconds_per_case,
                                   [&] { execute_on_device(queue, *imager, input); }));
  emit(r);
}

/// Six bands one after the other: a band is copied in while the one before is imaged and the one
/// before that is copied out.
Result from_host(const Case& c, const Options& options) {
  Queue work = Queue::cuda(), in = Queue::cuda(), out = Queue::cuda();
  Result r = row(c);
  std::vector<Band> bands;
  for (std::int64_t b = 0; b < c.n_bands; ++b) {
    Case of_band = c;
    of_band.frequency_hz = c.frequency_hz + 25e3 * static_cast<double>(b * c.n_channels);
    bands.emplace_back(work, of_band);
  }
  const std::int64_t image_bytes = c.n_channels * 4 * 128 * 128 * 4;
  std::vector<Buffer<std::byte>> host, images;
  for (std::int64_t b = 0; b < c.n_bands; ++b) {
    const auto gulp = random_gulp(work, c, static_cast<std::uint64_t>(b));
    host.emplace_back(gulp_bytes(c), MemorySpace::pinned);
    images.emplace_back(image_bytes, MemorySpace::pinned);
    copy_bytes(work, host.back().data(), gulp.data(), gulp.bytes());
    work.synchronize();
  }
  r.verified = verify(work, bands[0], c, random_gulp(work, c, 0).data());
  if (!r.verified) return r;
  std::array<Buffer<std::byte>, 2> gulp;
  for (auto& each : gulp) each = Buffer<std::byte>(gulp_bytes(c), MemorySpace::device);
  std::array<cudaEvent_t, 2> arrived{}, used{};
  std::vector<cudaEvent_t> imaged(bands.size()), left(bands.size());
  const auto create = [](cudaEvent_t& e) {
    RYLE_CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  };
  for (auto* events : {&arrived, &used}) std::for_each(events->begin(), events->end(), create);
  for (auto* events : {&imaged, &left}) std::for_each(events->begin(), events->end(), create);
  const auto record = [](cudaEvent_t e, Queue& q) {
    RYLE_CUDA(cudaEventRecord(e, cuda::stream_of(q)));
  };
  const auto wait = [](Queue& q, cudaEvent_t e) {
    RYLE_CUDA(cudaStreamWaitEvent(cuda::stream_of(q), e));
  };
  std::size_t slot = 0;
  finish_row(r, detail::time_queue(work, options.seconds_per_case, [&] {
               for (std::size_t b = 0; b < bands.size(); ++b, slot ^= 1) {
                 wait(in, used[slot]);
                 copy_bytes(in, gulp[slot].data(), host[b].data(), host[b].bytes());
                 record(arrived[slot], in);
                 wait(work, arrived[slot]);
                 wait(work, left[b]);
                 const auto image = bands[b].run(work, gulp[slot].data());
                 record(used[slot], work);
                 record(imaged[b], work);
                 wait(out, imaged[b]);
                 copy_bytes(out, images[b].data(), image.pixels, image_bytes);
                 record(left[b], out);
               }
             }));
  out.synchronize();
  return r;
}

}  // namespace

void bench_image_cuda(const Options& options, const Emit& emit) {
  if (!detail::wants_cuda(options)) return;
  const std::vector<Case> full = {
      {Path::vis_grid, 128, 5, 60e6},       {Path::vis_grid, 128, 7, 60e6},
      {Path::vis_grid, 128, 5, 30e6},       {Path::vis_grid, 128, 5, 84e6},
      {Path::vis_grid, 128, 7, 60e6, true}, {Path::vis_dft, 128, 7, 60e6},
      {Path::efield, 132, 7, 60e6},         {Path::efield, 132, 7, 30e6},
      {Path::efield, 132, 7, 84e6},         {Path::efield_half, 132, 7, 60e6},
      {Path::efield_half, 132, 7, 30e6},    {Path::efield_half, 132, 7, 84e6},
      {Path::efield_dft, 132, 7, 60e6},     {Path::vis_grid, 132, 5, 50e6, false, 6}};
  const std::vector<Case> quick = {
      {Path::vis_grid, 2, 5, 60e6}, {Path::efield, 2, 7, 60e6}, {Path::efield_half, 2, 7, 60e6}};
  const std::string& wanted = options.implementation;
  if (wanted != "auto" && wanted != "all" && wanted.rfind("cuda", 0) != 0) return;
  const bool all_paths = options.path == "all";
  if (!options.quick && all_paths) stages(full[0], options, emit);
  for (const Case& c : options.quick ? quick : full) {
    if (!all_paths && options.path != name(c.path)) continue;
    emit(c.n_bands > 1 ? from_host(c, options) : resident(c, options));
  }
}

}  // namespace ryle::bench
