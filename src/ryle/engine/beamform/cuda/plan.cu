// SPDX-License-Identifier: BSD-3-Clause
// Host side of the CUDA beamformer: choice of kernel, memory, and the path of a gulp: fused (sums
// never leave the registers) where kind and format allow it, else sums in memory and a second
// kernel that knows every kind, format and loss.
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "ryle/core/bits.hpp"
#include "ryle/core/integer.hpp"
#include "ryle/device/cuda/runtime.hpp"
#include "ryle/device/cuda/warpgroup_support.hpp"
#include "ryle/engine/beamform/cuda/kernels.cuh"
#include "ryle/engine/beamform/cuda/make.hpp"
#include "ryle/engine/beamform/cuda/tuning.hpp"
#include "ryle/engine/beamform/implementations.hpp"
#include "ryle/engine/beamform/weight_bank.hpp"
#include "ryle/engine/beamform/weights.hpp"

namespace ryle::beamform {
namespace {

using namespace detail;

enum class Kernel : std::uint8_t { wgmma, small_beams, direct, tiled, fp32 };

constexpr const char* kNames[] = {"sm90_s8_wgmma", "sm90_s8_few", "sm80_s8_direct", "sm80_s8_tiled",
                                  "fp32"};
constexpr std::int64_t kMaxDirectBeams = 32;  // bound by memory: direct comes first
constexpr std::int64_t kScratchBytes = std::int64_t{256} << 20;

std::optional<CudaTuning>& tuning_override() {
  static std::optional<CudaTuning> value;
  return value;
}

bool nibbles(const Config& c) { return c.format == SampleFormat::ci4 && c.table.empty(); }
int steps_of(const Config& c) {
  return static_cast<int>((c.n_antennas + kStepAntennas - 1) / kStepAntennas);
}
bool codes_fit(const Config& c) {
  const bool bytes = c.format == SampleFormat::ci4 || c.format == SampleFormat::ci8;
  return c.weights == WeightFormat::i8 && bytes && c.n_beams > 0;
}
// Floats of sums are exact: 2 A 128 127 < 2^24 for bytes, multiples of 16 for nibbles. Weights of
// all antennas stay in shared memory.
bool takes(Kernel kernel, const Config& c, int device) {
  if (kernel == Kernel::fp32) return true;
  if (!codes_fit(c)) return false;
  if (kernel == Kernel::wgmma)
    return nibbles(c) && c.n_antennas <= 512 && cuda::has_warpgroup_products(device);
  const bool one_step = nibbles(c) && c.n_antennas <= kStepAntennas;
  if (kernel == Kernel::small_beams)
    return one_step && c.n_beams <= kSlabRows && cuda::has_warpgroup_products(device);
  if (kernel == Kernel::direct) return one_step;
  return c.n_antennas <= (nibbles(c) ? 1024 : 128);
}

// Those that take a configuration, best first.
std::vector<Kernel> kernels_for(const Config& c, int device) {
  std::vector<Kernel> order = {Kernel::wgmma, Kernel::direct, Kernel::tiled, Kernel::fp32};
  if (c.n_beams <= kMaxDirectBeams) std::swap(order[0], order[1]);
  order.insert(order.begin(), Kernel::small_beams);
  std::erase_if(order, [&](Kernel kernel) { return !takes(kernel, c, device); });
  return order;
}

std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
template <class T>
T* bytes_at(T* p, std::int64_t offset) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(p) +
                              static_cast<std::uintptr_t>(offset));
}

class CudaBeamformer final : public Beamformer {
 public:
  CudaBeamformer(Queue& queue, const Config& config, Kernel kernel);
  void set_weights(Queue& queue, View<const cf32, 3> weights) override;
  void set_requantization(Queue& queue, View<const float, 3> scale,
                          View<const float, 3> offset) override;
  std::int64_t execute(Queue& queue, const Input& input, const Output& output) override;
  void reset() override { forget_ = true; }
  std::string_view implementation() const override { return name_; }
  const Config& config() const override { return config_; }

 private:
  bool tensor() const { return kernel_ != Kernel::fp32; }
  bool power() const { return config_.output != OutputKind::voltage; }
  std::int64_t n_incoherent() const { return static_cast<std::int64_t>(config_.incoherent.size()); }
  void plan_tiles();
  CudaSamples samples_of(const Input& input) const;
  bool readable_as_is(const Input& input) const;
  void lose(Queue& queue, const Input& input, const Output& output);
  /// Samples and weights of the tensor-core kernels for pol `pol`.
  FusedArgs operands(Queue& queue, const Input& input, int pol);
  void launch(const FusedArgs& args, cudaStream_t stream) const;
  FinishArgs finish_args(const Input& input, const Output& output) const;
  std::int64_t inner_of(const Input& input) const;
  bool fuse(Queue& queue, const Input& input, const Output& output);
  void through_memory(Queue& queue, const Input& input, const Output& output, bool coherent);
  void add_incoherent(Queue& queue, const Input& input, const Output& output, std::int64_t first,
                      std::int64_t n);

  Config config_;
  Kernel kernel_;
  int device_;
  std::string name_;
  WeightBank bank_;
  int n_products_, n_steps_, n_slabs_;
  CudaTuning tuning_{1, 1};
  std::int64_t shared_bytes_ = 0;
  Buffer<char2> codes_;    // [beam][channel][input]
  Buffer<float2> floats_;  // the same for fp32
  Buffer<uint4> fragments_;
  Buffer<float> weight_scale_, scale_, offset_, full_power_, factor_;
  Buffer<std::uint32_t> full_used_;
  Buffer<std::uint8_t> mask_, repacked_;
  Buffer<char2> table_;
  Buffer<CudaWindow> windows_[2];
  Buffer<std::byte> scratch_;
  Buffer<std::uint64_t> present_;
  std::int64_t chunk_spectra_ = 0, chunk_channels_ = 0;
  CudaFactors loss_;
  bool forget_ = false;
  Tick next_tick_ = 0;
};

template <class T>
void upload(Queue& queue, Buffer<T>& to, const void* from, std::int64_t n) {
  if (to.size() < n) to = Buffer<T>(n, MemorySpace::device);
  if (n > 0) copy_bytes(queue, to.data(), from, n * static_cast<std::int64_t>(sizeof(T)));
}

CudaBeamformer::CudaBeamformer(Queue& queue, const Config& config, Kernel kernel)
    : config_(config),
      kernel_(kernel),
      device_(cuda::device_of(queue)),
      name_(std::string("beamform/cuda/") + kNames[static_cast<int>(kernel)]),
      bank_(config),
      n_products_(static_cast<int>(n_scales(config))),
      n_steps_(steps_of(config)),
      n_slabs_(static_cast<int>((config.n_beams + kSlabRows - 1) / kSlabRows)) {
  const cuda::DeviceScope scope(device_);
  const std::int64_t n_codes =
      checked_product({config.n_beams, config.n_channels, config.n_inputs()}, "beam weights");
  if (tensor()) {
    codes_ = Buffer<char2>(n_codes, MemorySpace::device);
    const std::int64_t slabs = config.n_pols * config.n_channels * n_slabs_;
    fragments_ =
        Buffer<uint4>(checked_product({slabs, n_steps_, 96}, "beam weights"), MemorySpace::device);
    plan_tiles();
  } else {
    floats_ = Buffer<float2>(n_codes, MemorySpace::device);
  }
  const std::int64_t cells = config.n_beams * config.n_channels;
  weight_scale_ = Buffer<float>(cells * config.n_pols, MemorySpace::device);
  full_power_ = Buffer<float>(cells, MemorySpace::device);
  full_used_ = Buffer<std::uint32_t>(cells, MemorySpace::device);
  const std::int64_t outputs = config.n_rows() * n_products_ * config.n_channels;
  const std::vector<float> ones(static_cast<std::size_t>(outputs), 1.0f);
  upload(queue, scale_, ones.data(), outputs);
  offset_ = Buffer<float>(outputs, MemorySpace::device);
  if (config.integration > 1) {
    for (auto& w : windows_) w = Buffer<CudaWindow>(outputs, MemorySpace::device);
  }
  if (!config.table.empty()) upload(queue, table_, config.table.data(), 256);
  if (n_incoherent() > 0) {
    std::vector<std::uint8_t> mask;
    for (const auto& row : config.incoherent) mask.insert(mask.end(), row.begin(), row.end());
    upload(queue, mask_, mask.data(), static_cast<std::int64_t>(mask.size()));
  }
  // Sums in memory: 8 bytes a spectrum, in pieces of time and channels.
  const std::int64_t per_spectrum =
      std::max<std::int64_t>(config.n_beams * 8, n_incoherent() * 4) * config.n_pols;
  chunk_spectra_ =
      std::clamp(kScratchBytes / per_spectrum / kGroupSpectra * kGroupSpectra,
                 std::int64_t{kGroupSpectra}, round_up(config.max_spectra, kGroupSpectra));
  chunk_channels_ = std::clamp<std::int64_t>(kScratchBytes / (per_spectrum * chunk_spectra_), 1,
                                             config.n_channels);
  scratch_ =
      Buffer<std::byte>(per_spectrum * chunk_spectra_ * chunk_channels_, MemorySpace::device);
  queue.synchronize();  // host vectors above go
}

void CudaBeamformer::plan_tiles() {
  const int voltage_bytes =
      config_.output == OutputKind::voltage ? static_cast<int>(config_.bytes_per_value()) : 0;
  const CudaTuningKernel kernel = kernel_ == Kernel::wgmma         ? CudaTuningKernel::wgmma
                                  : kernel_ == Kernel::small_beams ? CudaTuningKernel::small_beams
                                  : kernel_ == Kernel::direct      ? CudaTuningKernel::direct
                                                                   : CudaTuningKernel::tiled;
  tuning_ = cuda_tuning(kernel, n_slabs_, voltage_bytes);
  shared_bytes_ = cuda::attribute_of(device_, cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

void CudaBeamformer::set_weights(Queue& queue, View<const cf32, 3> weights) {
  const cuda::DeviceScope scope(device_);
  Queue host = weights_queue();
  bank_.set(weights, host);
  const auto stream = cuda::stream_of(queue);
  upload(queue, weight_scale_, bank_.scale.data(), static_cast<std::int64_t>(bank_.scale.size()));
  const auto n = static_cast<std::int64_t>(bank_.values.size());
  if (tensor()) {
    std::vector<char2> codes(bank_.values.size());
    const auto of_beam = codes.size() / static_cast<std::size_t>(config_.n_beams);
    host.parallel_for(config_.n_beams, [&](std::int64_t beam) {
      const std::size_t first = static_cast<std::size_t>(beam) * of_beam;
      for (std::size_t k = first; k < first + of_beam; ++k)
        codes[k] = {static_cast<signed char>(bank_.values[k].real()),
                    static_cast<signed char>(bank_.values[k].imag())};
    });
    upload(queue, codes_, codes.data(), n);
    PackArgs pack;
    pack.codes = codes_.data();
    pack.n_beams = static_cast<int>(config_.n_beams);
    pack.n_channels = static_cast<int>(config_.n_channels);
    pack.n_antennas = static_cast<int>(config_.n_antennas);
    pack.n_pols = static_cast<int>(config_.n_pols);
    pack.n_slabs = n_slabs_;
    pack.n_steps = n_steps_;
    pack.pair_order = config_.order == InputOrder::pairs;
    pack.fragments = fragments_.data();
    launch_pack(pack, stream);
  } else {
    upload(queue, floats_, bank_.values.data(), n);
  }
  LossArgs full;
  full.codes = tensor() ? codes_.data() : nullptr;
  full.floats = floats_.data();
  full.weight_scale = weight_scale_.data();
  full.n_spectra = 1;
  full.n_beams = static_cast<int>(config_.n_beams);
  full.n_channels = static_cast<int>(config_.n_channels);
  full.n_inputs = static_cast<int>(config_.n_inputs());
  full.n_pols = static_cast<int>(config_.n_pols);
  full.n_used = full_used_.data();
  full.weight_power = full_power_.data();
  launch_full_counts(full, stream);
}

void CudaBeamformer::set_requantization(Queue& queue, View<const float, 3> scale,
                                        View<const float, 3> offset) {
  const cuda::DeviceScope scope(device_);
  check_requantization(config_, scale, offset);
  std::vector<float> dense[2];
  for (std::int64_t row = 0; row < config_.n_rows(); ++row) {
    for (std::int64_t product = 0; product < n_products_; ++product) {
      for (std::int64_t channel = 0; channel < config_.n_channels; ++channel) {
        dense[0].push_back(scale(row, product, channel));
        dense[1].push_back(offset(row, product, channel));
      }
    }
  }
  upload(queue, scale_, dense[0].data(), scale_.size());
  upload(queue, offset_, dense[1].data(), offset_.size());
}

CudaSamples CudaBeamformer::samples_of(const Input& input) const {
  CudaSamples s;
  s.data = static_cast<const std::uint8_t*>(input.samples);
  s.channel_stride_bytes = input.channel_stride_bytes;
  s.step_stride_bytes = input.step_stride_bytes;
  s.block_spectra = config_.order == InputOrder::pairs ? config_.block_spectra : 0;
  s.n_inputs = static_cast<int>(config_.n_inputs());
  s.n_pols = static_cast<int>(config_.n_pols);
  s.format = config_.format;
  s.table = config_.table.empty() ? nullptr : table_.data();
  return s;
}

// The tensor-core kernels read whole operands: 32 antennas a step, rows of 16 (pairs) or 8 bytes.
bool CudaBeamformer::readable_as_is(const Input& input) const {
  if (!nibbles(config_) || config_.n_pols != 1 || config_.n_antennas % kStepAntennas != 0)
    return false;
  const bool pairs = config_.order == InputOrder::pairs;
  if (pairs && config_.block_spectra % kGroupSpectra != 0) return false;
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(input.samples));
  return (address | input.channel_stride_bytes | input.step_stride_bytes) % (pairs ? 16 : 8) == 0;
}

void CudaBeamformer::lose(Queue& queue, const Input& input, const Output& output) {
  loss_ = {};
  LossArgs a;
  a.n_spectra = input.n_spectra;
  a.n_beams = static_cast<int>(config_.n_beams);
  a.n_incoherent = static_cast<int>(n_incoherent());
  a.n_channels = static_cast<int>(config_.n_channels);
  a.n_inputs = static_cast<int>(config_.n_inputs());
  a.n_pols = static_cast<int>(config_.n_pols);
  a.full_used = full_used_.data();
  a.full_power = full_power_.data();
  a.n_used = output.n_used;
  a.weight_power = output.weight_power;
  if (input.present != nullptr && input.n_spectra > 0) {
    const std::int64_t slots = n_slots(input);
    const std::int64_t words = words_for_bits(config_.n_inputs()) * slots *
                               (input.present_per_channel ? config_.n_channels : 1);
    // Through pageable memory: the caller may write to his at once.
    const std::vector<std::uint64_t> bits(input.present, input.present + words);
    upload(queue, present_, bits.data(), words);
    const std::int64_t cells = config_.n_pols * config_.n_rows() * config_.n_channels * slots;
    if (factor_.size() < cells) {
      queue.synchronize();
      factor_ = Buffer<float>(cells, MemorySpace::device);
    }
    loss_ = {factor_.data(), config_.n_rows(), config_.n_channels, slots, input.slot_spectra};
    a.codes = tensor() ? codes_.data() : nullptr;
    a.floats = floats_.data();
    a.weight_scale = weight_scale_.data();
    a.mask = mask_.data();
    a.present = present_.data();
    a.present_per_channel = input.present_per_channel;
    a.n_slots = slots;
    a.slot_spectra = input.slot_spectra;
    a.raw = config_.loss == LossMode::raw;
    a.needs_all_pols = power();
    a.factor = factor_.data();
  }
  launch_loss(a, cuda::stream_of(queue));
}

FusedArgs CudaBeamformer::operands(Queue& queue, const Input& input, int pol) {
  FusedArgs a;
  a.n_spectra = input.n_spectra;
  a.fragments = fragments_.data();
  a.n_slabs = n_slabs_;
  a.n_steps = n_steps_;
  a.n_beams = static_cast<int>(config_.n_beams);
  a.n_channels = static_cast<int>(config_.n_channels);
  a.n_pols = static_cast<int>(config_.n_pols);
  a.pol = pol;
  a.n_products = n_products_;
  a.loss = loss_;
  const CudaTuning tuning = tuning_override().value_or(tuning_);
  a.slabs_per_block = static_cast<int>(std::min<std::int64_t>(tuning.slabs_per_block, n_slabs_));
  a.groups_per_item = static_cast<int>(tuning.groups_per_item);
  a.stages = static_cast<int>(tuning.stages);
  a.stream_warps = static_cast<int>(tuning.warps);
  a.halves = tuning.halves;
  if (readable_as_is(input)) {
    const bool pairs = config_.order == InputOrder::pairs;
    a.layout = pairs ? FusedLayout::pairs4 : FusedLayout::spectra4;
    a.samples = static_cast<const std::uint8_t*>(input.samples);
    a.channel_stride_bytes = input.channel_stride_bytes;
    a.block_stride_bytes = input.step_stride_bytes;
    a.step_stride_bytes = static_cast<int>(input.step_stride_bytes);
    a.groups_per_block = static_cast<int>(config_.block_spectra / kGroupSpectra);
    const auto groups = static_cast<unsigned>(a.groups_per_block);
    a.block_shift = std::has_single_bit(groups) ? std::countr_zero(groups) : -1;
    a.pair_stride_bytes = static_cast<int>(2 * config_.block_spectra);
    return a;
  }
  const bool bytes = !nibbles(config_);
  const std::int64_t width = std::int64_t{n_steps_} * kStepAntennas;
  const std::int64_t planes = bytes ? 2 : 1;
  const std::int64_t all = config_.n_channels * config_.max_spectra * width * planes;
  if (repacked_.size() < all) repacked_ = Buffer<std::uint8_t>(all, MemorySpace::device);
  RepackArgs r;
  r.samples = samples_of(input);
  r.pol = pol;
  r.n_antennas = static_cast<int>(config_.n_antennas);
  r.n_steps = n_steps_;
  r.bytes = bytes;
  r.pair_order = config_.order == InputOrder::pairs;
  r.n_channels = static_cast<int>(config_.n_channels);
  r.n_spectra = input.n_spectra;
  r.out = repacked_.data();
  launch_repack(r, cuda::stream_of(queue));
  a.layout = bytes ? FusedLayout::spectra8 : FusedLayout::spectra4;
  a.samples = repacked_.data();
  a.plane_stride_bytes = input.n_spectra * width;
  a.channel_stride_bytes = planes * a.plane_stride_bytes;
  a.step_stride_bytes = static_cast<int>(width);
  return a;
}

void CudaBeamformer::launch(const FusedArgs& args, cudaStream_t stream) const {
  if (kernel_ == Kernel::wgmma) return launch_wgmma(args, stream);
  if (kernel_ == Kernel::small_beams && is_streamable(args))
    return launch_small_beams(args, stream);
  if (kernel_ == Kernel::small_beams || kernel_ == Kernel::direct)
    return launch_direct(args, stream);
  FusedArgs fitting = args;
  while (fitting.slabs_per_block > 1 &&
         tiled_shared_bytes(fitting.slabs_per_block, n_steps_, args.output) > shared_bytes_)
    --fitting.slabs_per_block;
  launch_tiled(fitting, stream);
}

FinishArgs CudaBeamformer::finish_args(const Input& input, const Output& output) const {
  FinishArgs f;
  f.n_rows = static_cast<int>(config_.n_beams);
  f.all_channels = static_cast<int>(config_.n_channels);
  f.n_pols = static_cast<int>(config_.n_pols);
  f.n_products = n_products_;
  f.gulp_tick = input.first_tick;
  f.integration = config_.integration;
  f.kind = config_.output;
  f.format = config_.output_format;
  f.divide_by_all = config_.loss == LossMode::raw;
  f.weight_scale = weight_scale_.data();
  f.loss = loss_;
  f.scale = scale_.data();
  f.offset = offset_.data();
  f.windows_in = windows_[0].data();
  f.windows_out = windows_[1].data();
  f.values = static_cast<std::byte*>(output.values);
  f.row_stride_bytes = output.row_stride_bytes;
  f.product_stride_bytes = output.product_stride_bytes;
  f.channel_stride_bytes = output.channel_stride_bytes;
  f.low = output.saturated_low;
  f.high = output.saturated_high;
  f.dither = config_.dither;
  f.seed = config_.seed;
  return f;
}

// Spectra that may be added before anything else is known about them.
std::int64_t CudaBeamformer::inner_of(const Input& input) const {
  for (const std::int64_t inner : {64, 32, 16, 8}) {
    if (config_.integration % inner == 0 && input.first_tick % inner == 0 &&
        input.n_spectra % inner == 0)
      return inner;
  }
  return 1;
}

FusedOutput fused_output(const Config& c, std::int64_t inner, bool final) {
  if (c.output == OutputKind::voltage) {
    if (c.output_format == OutputFormat::cf16) return FusedOutput::cf16;
    return c.output_format == OutputFormat::ci8 ? FusedOutput::ci8 : FusedOutput::cf32;
  }
  if (inner > 1) return FusedOutput::integrated;
  return final && c.output_format == OutputFormat::u8 ? FusedOutput::power_u8
                                                      : FusedOutput::power_f32;
}

// Everything in one kernel, or in one kernel and a second sum of its f32 powers; false: this kind,
// format or loss goes through memory.
bool CudaBeamformer::fuse(Queue& queue, const Input& input, const Output& output) {
  const bool voltage = config_.output == OutputKind::voltage;
  if (!tensor() || (!voltage && config_.output != OutputKind::power)) return false;
  if (voltage &&
      (config_.n_pols != 1 || config_.output_format == OutputFormat::ci4 || config_.dither))
    return false;
  if (loss_.factor != nullptr && loss_.slot_spectra % kGroupSpectra != 0) return false;
  // The unfinished windows of all rows change places together, piece by piece of time.
  if (n_incoherent() > 0 && input.n_spectra > chunk_spectra_) return false;
  const auto stream = cuda::stream_of(queue);
  const std::int64_t inner = inner_of(input);
  const bool stored =
      config_.output_format == OutputFormat::f32 || config_.output_format == OutputFormat::u8;
  const bool final = voltage || (inner == config_.integration && stored);
  const std::int64_t n_values = voltage ? input.n_spectra : input.n_spectra / inner;
  const std::int64_t pitch = round_up(n_values, 4);
  const std::int64_t per_channel = config_.n_beams * pitch * 4;
  if (!final && per_channel > scratch_.size()) return false;
  const std::int64_t channels =
      final ? config_.n_channels : std::min(config_.n_channels, scratch_.size() / per_channel);
  for (int pol = 0; pol < config_.n_pols; ++pol) {
    FusedArgs a = operands(queue, input, pol);
    a.output = fused_output(config_, inner, final);
    a.n_groups = static_cast<int>((input.n_spectra + kGroupSpectra - 1) / kGroupSpectra);
    a.weight_scale = weight_scale_.data();
    a.scale = scale_.data();
    a.offset = offset_.data();
    a.product = voltage ? 0 : pol;
    a.integration = static_cast<int>(inner);
    a.n_values = n_values;
    for (std::int64_t first = 0; first < config_.n_channels; first += channels) {
      a.first_channel = static_cast<int>(first);
      a.launch_channels = static_cast<int>(std::min(channels, config_.n_channels - first));
      if (final) {
        a.gain = 1.0f / static_cast<float>(inner);
        a.as_bytes = config_.output_format == OutputFormat::u8;
        a.values = static_cast<std::byte*>(output.values) + a.product * output.product_stride_bytes;
        a.row_stride_bytes = output.row_stride_bytes;
        a.channel_stride_out_bytes = output.channel_stride_bytes;
        if (a.as_bytes || a.output == FusedOutput::ci8) {  // floats are never cut
          a.low = output.saturated_low;
          a.high = output.saturated_high;
        }
      } else {
        a.values = scratch_.data();
        a.row_stride_bytes = pitch * 4;
        a.channel_stride_out_bytes = per_channel;
      }
      const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(a.values));
      a.vectors = (address | a.row_stride_bytes | a.channel_stride_out_bytes) % 16 == 0;
      launch(a, stream);
      if (final) continue;
      FinishArgs f = finish_args(input, output);
      f.powers = reinterpret_cast<const float*>(scratch_.data());
      f.pitch = pitch;
      f.inner_spectra = inner;
      f.scaled = true;
      f.first_channel = a.first_channel;
      f.n_channels = a.launch_channels;
      f.n_pols = 1;
      f.first_product = pol;
      f.n_spectra = input.n_spectra;
      if (f.loss.factor != nullptr)
        f.loss.factor += pol * loss_.n_rows * loss_.n_channels * loss_.n_slots;
      launch_finish(f, stream);
    }
  }
  return true;
}

void CudaBeamformer::add_incoherent(Queue& queue, const Input& input, const Output& output,
                                    std::int64_t first, std::int64_t n) {
  const auto stream = cuda::stream_of(queue);
  for (std::int64_t channel = 0; channel < config_.n_channels; channel += chunk_channels_) {
    IncoherentArgs a;
    a.samples = samples_of(input);
    a.mask = mask_.data();
    a.n_rows = static_cast<int>(n_incoherent());
    a.n_antennas = static_cast<int>(config_.n_antennas);
    a.first_channel = static_cast<int>(channel);
    a.n_channels = static_cast<int>(std::min(chunk_channels_, config_.n_channels - channel));
    a.first_spectrum = first;
    a.n_spectra = n;
    a.powers = reinterpret_cast<float*>(scratch_.data());
    a.pitch = chunk_spectra_;
    launch_incoherent(a, stream);
    FinishArgs f = finish_args(input, output);
    f.powers = a.powers;
    f.pitch = a.pitch;
    f.first_row = static_cast<int>(config_.n_beams);
    f.n_rows = a.n_rows;
    f.first_channel = a.first_channel;
    f.n_channels = a.n_channels;
    f.first_spectrum = first;
    f.n_spectra = n;
    launch_finish(f, stream);
  }
}

// Sums of some channels and spectra in memory, then the rest of the work, piece by piece.
void CudaBeamformer::through_memory(Queue& queue, const Input& input, const Output& output,
                                    bool coherent) {
  const auto stream = cuda::stream_of(queue);
  for (std::int64_t first = 0; first < input.n_spectra; first += chunk_spectra_) {
    const std::int64_t n = std::min(chunk_spectra_, input.n_spectra - first);
    for (std::int64_t channel = 0; coherent && channel < config_.n_channels;
         channel += chunk_channels_) {
      const std::int64_t channels = std::min(chunk_channels_, config_.n_channels - channel);
      const std::int64_t plane = channels * config_.n_beams * chunk_spectra_;
      auto* sums = reinterpret_cast<float2*>(scratch_.data());
      for (int pol = 0; tensor() && pol < config_.n_pols; ++pol) {
        FusedArgs a = operands(queue, input, pol);
        a.output = FusedOutput::cf32;
        a.loss = {};
        a.first_group = static_cast<int>(first / kGroupSpectra);
        a.n_groups = static_cast<int>((n + kGroupSpectra - 1) / kGroupSpectra);
        a.first_channel = static_cast<int>(channel);
        a.launch_channels = static_cast<int>(channels);
        a.values = reinterpret_cast<std::byte*>(sums + pol * plane);
        a.row_stride_bytes = chunk_spectra_ * 8;
        a.channel_stride_out_bytes = config_.n_beams * a.row_stride_bytes;
        a.n_values = n;
        a.vectors = true;
        launch(a, stream);
      }
      if (!tensor()) {
        launch_plain(
            {samples_of(input), floats_.data(), static_cast<int>(config_.n_antennas),
             static_cast<int>(config_.n_beams), static_cast<int>(config_.n_channels),
             static_cast<int>(channel), static_cast<int>(channels), first, n, sums, chunk_spectra_},
            stream);
      }
      FinishArgs f = finish_args(input, output);
      f.sums = sums;
      f.pitch = chunk_spectra_;
      f.first_channel = static_cast<int>(channel);
      f.n_channels = static_cast<int>(channels);
      f.first_spectrum = first;
      f.n_spectra = n;
      launch_finish(f, stream);
    }
    if (n_incoherent() > 0) add_incoherent(queue, input, output, first, n);
    std::swap(windows_[0], windows_[1]);
  }
}

std::int64_t CudaBeamformer::execute(Queue& queue, const Input& sparse, const Output& output) {
  const cuda::DeviceScope scope(device_);
  const Input input = checked_input(config_, sparse);
  const auto stream = cuda::stream_of(queue);
  const std::int64_t window = config_.integration;
  if (input.n_spectra > 0) {
    cuda::require_device_memory(input.samples, "beamformer input samples");
    cuda::require_device_memory(output.values, "beamformer output values");
  }
  // A gap inside a window leaves it open; any other leaves unfinished windows behind.
  if (forget_ || (input.first_tick != next_tick_ &&
                  floor_divide(input.first_tick, window) != floor_divide(next_tick_ - 1, window))) {
    for (const auto& w : windows_) {
      if (w.size() > 0)
        RYLE_CUDA(cudaMemsetAsync(w.data(), 0, static_cast<std::size_t>(w.bytes()), stream));
    }
    forget_ = false;
  }
  next_tick_ = input.first_tick + input.n_spectra;
  const auto cells =
      static_cast<std::size_t>(config_.n_rows() * n_products_ * config_.n_channels) * 4;
  if (output.saturated_low != nullptr)
    RYLE_CUDA(cudaMemsetAsync(output.saturated_low, 0, cells, stream));
  if (output.saturated_high != nullptr)
    RYLE_CUDA(cudaMemsetAsync(output.saturated_high, 0, cells, stream));
  lose(queue, input, output);
  if (input.n_spectra == 0) return 0;
  const bool coherent = config_.n_beams > 0;
  const bool fused = coherent && fuse(queue, input, output);
  if (fused && n_incoherent() == 0) {
    std::swap(windows_[0], windows_[1]);
  } else {
    through_memory(queue, input, output, coherent && !fused);
  }
  return config_.n_windows(input.first_tick, input.n_spectra);
}

}  // namespace

void set_cuda_tuning(const CudaTuning* tuning) {
  tuning_override() = tuning == nullptr ? std::nullopt : std::optional(*tuning);
}

std::vector<std::string> cuda_implementations(const Config& config) {
  if (!cuda_unavailable_reason().empty()) return {};
  std::vector<std::string> names;
  for (const Kernel kernel : kernels_for(config, 0))
    names.push_back(std::string("cuda:") + kNames[static_cast<int>(kernel)]);
  return names;
}

std::vector<std::string> cuda_implementations() {
  Config any;
  any.n_antennas = any.n_beams = 1;
  return cuda_implementations(any);
}

std::unique_ptr<Beamformer> make_cuda_beamformer(Queue& queue, const Config& config) {
  const std::string& wanted = config.implementation;
  std::string works;
  for (const Kernel kernel : kernels_for(config, cuda::device_of(queue))) {
    const std::string name = std::string("cuda:") + kNames[static_cast<int>(kernel)];
    if (wanted == "cuda" || wanted == "auto" || wanted == name)
      return std::make_unique<CudaBeamformer>(queue, config, kernel);
    works += ", " + name;
  }
  throw UnsupportedError("beamformer implementation \"" + wanted +
                         "\": no such CUDA kernel for these samples, weights and antennas; these "
                         "work: auto, cuda" +
                         works);
}

}  // namespace ryle::beamform
