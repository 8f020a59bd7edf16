// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/beam_chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/on_device.hpp"
#include "ryle/device/to_device.hpp"
#include "ryle/engine/beamform/import.hpp"
#include "ryle/engine/beamform/levels.hpp"
#include "ryle/pipeline/base/run_summary.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"

namespace ryle::pipeline {
namespace {

constexpr std::int64_t kPacket = 128;    // spectra
constexpr double kVoltageRmsCodes = 16;  // of a part, in the voltages of beams

std::int64_t n_antennas(const BeamSetup& setup) {
  return setup.file.array.n_inputs() / setup.n_pols;
}

// [antenna of the samples] of a sub-array: the file has it by antenna of the layout.
std::vector<double> mask_of_antennas(const BeamSetup& setup, std::size_t subarray) {
  std::vector<double> mask;
  for (std::int64_t a = 0; a < n_antennas(setup); ++a) {
    const auto& input = setup.file.array.inputs[a * setup.n_pols];
    mask.push_back(setup.file.subarrays[subarray][input.antenna]);
  }
  return mask;
}

// One input of an antenna that is bad leaves its incoherent sum without it.
bool is_bad(const BeamSetup& setup, std::int64_t antenna) {
  const auto& inputs = setup.file.array.inputs;
  for (std::int64_t p = 0; p < setup.n_pols; ++p)
    if (inputs[antenna * setup.n_pols + p].bad) return true;
  return false;
}

std::size_t subarray_named(const BeamSetup& setup, const std::string& name) {
  const auto& names = setup.file.subarray_names;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw ConfigError("beams.incoherent: no sub-array \"" + name + "\"; the beams file has " +
                      comma_separated(names));
  }
  return static_cast<std::size_t>(found - names.begin());
}

beamform::WeightMaker make_maker(const BeamSetup& setup) {
  const auto& file = setup.file;
  beamform::WeightConfig c;
  c.n_antennas = n_antennas(setup);
  c.n_pols = setup.n_pols;
  c.channels = {setup.frequency.first_center_hz, setup.frequency.channel_width_hz,
                setup.frequency.n_channels};
  c.gain_mode = beamform::gain_mode(file.gain_mode);
  c.normalization = beamform::normalization(file.normalization);
  const std::int64_t n_channels = setup.frequency.n_channels;
  std::vector<cf32> gains;
  for (std::int64_t i = 0; i < file.array.n_inputs(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    // Gains are of the voltages as received, which a channelizer brought to one level. Without
    // gains that level is the best guess at equal sensitivities.
    cf64 gain = file.gains.empty() ? cf64(1) : file.gains[at];
    if (!file.gains.empty() && !setup.scale.empty()) gain *= setup.scale[at];
    gains.insert(gains.end(), static_cast<std::size_t>(n_channels),
                 file.array.inputs[at].bad ? cf32(0) : cf32(gain));
  }
  std::vector<std::vector<double>> masks;
  for (std::size_t k = 0; k < file.subarrays.size(); ++k)
    masks.push_back(mask_of_antennas(setup, k));
  return {c, {gains.data(), {file.array.n_inputs(), n_channels}}, std::move(masks)};
}

std::int64_t spectra_limit(const BeamSetup& setup) {
  return std::min(setup.max_spectra, update_spectra(setup));
}

// Voltages of the coherent beams, made on the CPU.
beamform::Config voltage_config(const BeamSetup& setup) {
  beamform::Config c = beamformer_config(setup);
  c.incoherent.clear();
  c.output = beamform::OutputKind::voltage;
  c.output_format = beamform::OutputFormat::ci8;
  c.integration = 1;
  c.implementation = "auto";
  return c;
}

}  // namespace

std::int64_t update_spectra(const BeamSetup& setup) {
  const double packets =
      setup.beams.update_s * setup.clock.rate_hz.value() / static_cast<double>(kPacket);
  return kPacket * std::max<std::int64_t>(1, std::llround(packets));
}

beamform::Config beamformer_config(const BeamSetup& setup) {
  beamform::Config c;
  c.n_antennas = n_antennas(setup);
  c.n_pols = setup.n_pols;
  c.n_beams = static_cast<std::int64_t>(setup.file.beams.size());
  c.n_channels = setup.frequency.n_channels;
  c.max_spectra = spectra_limit(setup);
  c.format = setup.format;
  c.order = setup.order;
  c.block_spectra = kPacket;
  c.weights =
      setup.beams.weights == "i8" ? beamform::WeightFormat::i8 : beamform::WeightFormat::f32;
  c.output = setup.n_pols == 2 ? beamform::OutputKind::stokes_i : beamform::OutputKind::power;
  c.output_format = beamform::OutputFormat::f32;
  c.integration = setup.beams.integration_spectra;
  c.loss = setup.beams.loss == "raw" ? beamform::LossMode::raw : beamform::LossMode::renormalize;
  c.implementation = setup.beams.implementation;
  for (const auto& name : setup.beams.incoherent) {
    std::vector<std::uint8_t> used;
    const auto mask = mask_of_antennas(setup, subarray_named(setup, name));
    for (std::int64_t a = 0; a < n_antennas(setup); ++a)
      used.push_back(mask[a] > 0 && !is_bad(setup, a) ? 1 : 0);
    c.incoherent.push_back(std::move(used));
  }
  return c;
}

std::vector<std::string> beam_names(const BeamSetup& setup) {
  std::vector<std::string> names;
  for (const auto& beam : setup.file.beams) names.push_back(beam.name);
  for (const auto& name : setup.beams.incoherent) names.push_back("incoherent_" + name);
  return names;
}

std::int64_t beam_chain_bytes(const BeamSetup& setup) {
  const auto c = beamformer_config(setup);
  const std::int64_t weights =
      c.n_beams * c.n_channels * c.n_inputs() * static_cast<std::int64_t>(sizeof(cf32));
  const std::int64_t power =
      beamform::cost(c).state_bytes + weights + beamform::dense_output_bytes(c, c.max_windows());
  if (setup.beams.spead.empty()) return power;
  auto v = voltage_config(setup);
  const std::int64_t codes =
      beamform::cost(v).state_bytes + beamform::dense_output_bytes(v, v.max_spectra);
  v.output_format = beamform::OutputFormat::cf32;  // of the first piece
  return power + codes + beamform::cost(v).state_bytes +
         beamform::dense_output_bytes(v, v.max_spectra);
}

/// Rows of power that one queue makes.
struct BeamChain::Partition {
  Queue queue;
  BeamRange rows;
  beamform::Config config;
  std::unique_ptr<beamform::Beamformer> engine;
  // On a device:
  Buffer<float> values;
  Buffer<std::byte> samples;
  Buffer<std::int32_t> block_inputs;
};

/// Voltages of the coherent beams, ci8 with a scale that the first spectra set.
struct BeamChain::Voltages {
  Queue queue;
  beamform::Config config;
  std::unique_ptr<beamform::Beamformer> engine;
  std::vector<std::byte> memory;
  std::shared_ptr<const std::vector<float>> scale;  ///< null: nothing has come yet
};

void BeamChain::add_rows(Queue queue, BeamRange rows) {
  auto partition =
      std::make_unique<Partition>(Partition{std::move(queue), rows, config_, nullptr, {}, {}, {}});
  const std::int64_t coherent = config_.n_beams;
  auto& c = partition->config;
  c.n_beams = std::min(rows.end, coherent) - std::min(rows.first, coherent);
  const auto at = [&](std::int64_t row) {
    return config_.incoherent.begin() + (std::max(row, coherent) - coherent);
  };
  c.incoherent.assign(at(rows.first), at(rows.end));
  const OnDevice scope(partition->queue);
  partition->engine = beamform::make_beamformer(partition->queue, c);
  if (on_devices_)
    partition->values =
        Buffer<float>(beamform::dense_output_bytes(c, c.max_windows()) / 4, MemorySpace::device);
  partitions_.push_back(std::move(partition));
}

BeamChain::BeamChain(Queue queue, BeamSetup setup, MakeConsumers make_consumers)
    : BeamChain(std::vector<Queue>{std::move(queue)}, std::move(setup), std::move(make_consumers)) {
}

BeamChain::BeamChain(std::vector<Queue> queues, BeamSetup setup, MakeConsumers make_consumers)
    : setup_(std::move(setup)),
      make_consumers_(std::move(make_consumers)),
      config_(beamformer_config(setup_)),
      update_(update_spectra(setup_)),
      sky_(setup_.file.array, setup_.file.beams, setup_.file.earth_orientation),
      maker_(std::make_unique<beamform::WeightMaker>(make_maker(setup_))),
      weights_(config_.n_beams * config_.n_channels * config_.n_inputs()) {
  const auto n = static_cast<std::int64_t>(queues.size());
  on_devices_ = queues.front().back_end() == BackEnd::cuda;
  if (n > config_.n_rows())
    throw ConfigError(fmt::format("{} devices for {} beams: name fewer", n, config_.n_rows()));
  for (std::int64_t k = 0; k < n; ++k) add_rows(queues[k], beam_range(config_.n_rows(), n, k));
  if (!on_devices_)
    values_ = Buffer<float>(beamform::dense_output_bytes(config_, config_.max_windows()) / 4);
}
BeamChain::~BeamChain() = default;

std::int64_t BeamChain::spectrum_bytes() const {
  return config_.n_inputs() * bits_per_sample(config_.format) / 8;
}

std::string_view BeamChain::implementation() const {
  return partitions_.front()->engine->implementation();
}

// Weights of the interval [n, n + 1) * update_ in absolute ticks, for its middle.
void BeamChain::point(const BeamInput& input, std::int64_t interval) {
  weights_tai_ns_ = middle_tai_ns(input.clock, interval * update_, update_);
  const auto steering = beamform::steer(setup_.file.array, sky_.directions_enu(weights_tai_ns_),
                                        setup_.frequency.band_center_hz());
  make_weights(steering);
  for (const auto& partition : partitions_) {
    const std::int64_t n = partition->config.n_beams;
    const std::int64_t first = std::min(partition->rows.first, config_.n_beams);
    if (n > 0)
      partition->engine->set_weights(
          partition->queue,
          View<const cf32, 3>(weights_.data() + first * config_.n_channels * config_.n_inputs(),
                              {n, config_.n_channels, config_.n_inputs()}));
  }
  if (voltages_)
    voltages_->engine->set_weights(
        voltages_->queue,
        {weights_.data(), {config_.n_beams, config_.n_channels, config_.n_inputs()}});
  ++updates_;
}

void BeamChain::make_voltages() {
  Queue host = on_devices_ ? Queue::cpu(0) : partitions_.front()->queue;
  const beamform::Config c = voltage_config(setup_);
  voltages_ = std::make_unique<Voltages>(
      Voltages{host, c, beamform::make_beamformer(host, c),
               std::vector<std::byte>(beamform::dense_output_bytes(c, c.max_spectra)), nullptr});
  voltages_->engine->set_weights(voltages_->queue,
                                 {weights_.data(), {c.n_beams, c.n_channels, c.n_inputs()}});
}

// Codes of a unit voltage from the first spectra that came, [beam][channel]: a channel of which
// nothing did has the middle of the beam's others. Empty: nothing came at all.
std::vector<float> BeamChain::voltage_scale(const beamform::Input& in) {
  constexpr std::size_t kMaxParts = 256;  // rms to 5 %
  beamform::Config c = voltages_->config;
  c.output_format = beamform::OutputFormat::cf32;
  std::vector<std::byte> memory(beamform::dense_output_bytes(c, in.n_spectra));
  const auto out = beamform::dense_output(c, memory.data(), in.n_spectra);
  const auto engine = beamform::make_beamformer(voltages_->queue, c);
  engine->set_weights(voltages_->queue, {weights_.data(), {c.n_beams, c.n_channels, c.n_inputs()}});
  engine->execute(voltages_->queue, in, out);
  std::vector<float> scale(c.n_beams * c.n_channels, 0.0f), values, known;
  bool any = false;
  for (std::int64_t beam = 0; beam < c.n_beams; ++beam) {
    known.clear();
    float* row = scale.data() + beam * c.n_channels;
    for (std::int64_t channel = 0; channel < c.n_channels; ++channel) {
      const auto* part = reinterpret_cast<const float*>(
          memory.data() + beam * out.row_stride_bytes + channel * out.channel_stride_bytes);
      values.clear();
      for (std::int64_t k = 0; k < 2 * c.n_pols * in.n_spectra && values.size() < kMaxParts; ++k)
        if (part[k] != 0) values.push_back(part[k]);  // what is absent is 0
      const double rms = beamform::robust_level(values).rms;
      if (!(rms > 0)) continue;
      row[channel] = static_cast<float>(kVoltageRmsCodes / rms);
      known.push_back(row[channel]);
    }
    any = any || !known.empty();
    const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
    if (!known.empty()) std::nth_element(known.begin(), middle, known.end());
    std::replace(row, row + c.n_channels, 0.0f, known.empty() ? 1.0f : *middle);
  }
  return any ? scale : std::vector<float>();
}

// @param in of a piece that begins at spectrum `first` of the input
void BeamChain::send_voltages(const BeamInput& given, beamform::Input in, std::int64_t first) {
  Voltages& v = *voltages_;
  in.samples = static_cast<const std::byte*>(given.samples) + first * spectrum_bytes();
  in.channel_stride_bytes = given.channel_stride_bytes;
  if (!v.scale) {
    if (std::vector<float> scale = voltage_scale(in); !scale.empty()) {
      const std::array<std::int64_t, 3> extent{v.config.n_beams, 1, v.config.n_channels};
      const std::vector<float> offset(scale.size(), 0.0f);
      v.engine->set_requantization(v.queue, {scale.data(), extent}, {offset.data(), extent});
      v.scale = std::make_shared<const std::vector<float>>(std::move(scale));
    }
  }
  const auto out = beamform::dense_output(v.config, v.memory.data(), in.n_spectra);
  const std::int64_t made = v.engine->execute(v.queue, in, out);
  const BeamVoltages voltages{
      v.memory.data(), out.row_stride_bytes, out.channel_stride_bytes, in.first_tick, made,
      v.scale};
  for (const auto& consumer : consumers_)
    if (consumer->wants_voltages()) consumer->take_voltages(voltages, given.clock);
}

// A beam a task: a thousand beams have 33 million weights.
void BeamChain::make_weights(std::span<const beamform::Steering> steering) {
  const std::int64_t n_inputs = config_.n_inputs(), n_of_beam = config_.n_channels * n_inputs;
  const std::span<const std::int64_t> subarrays = setup_.file.subarray_of_beam;
  Queue host = on_devices_ ? beamform::weights_queue() : partitions_.front()->queue;
  host.parallel_for(config_.n_beams, [&](std::int64_t beam) {
    const auto b = static_cast<std::size_t>(beam), n = static_cast<std::size_t>(n_inputs);
    maker_->make(steering.subspan(b * n, n), 0,
                 subarrays.empty() ? subarrays : subarrays.subspan(b, 1),
                 {weights_.data() + beam * n_of_beam, {1, config_.n_channels, n_inputs}});
  });
}

CommandResult BeamChain::steer(BeamsFile file) {
  if (data_tai_ns_ == 0)
    return CommandResult::refused("no data have come yet that tell an instant; ask again");
  BeamSetup setup = setup_;
  setup.file = std::move(file);
  if (beam_names(setup) != beam_names(setup_))
    return CommandResult::refused(
        "the file has other beams than the run; the same names in the "
        "same order work: " +
        comma_separated(beam_names(setup_)));
  if (setup.file.array.n_inputs() != setup_.file.array.n_inputs())
    return CommandResult::refused(fmt::format("the file has {} inputs, the run {}",
                                              setup.file.array.n_inputs(),
                                              setup_.file.array.n_inputs()));
  // All is made before anything is changed: a file that is wrong leaves the run as it was.
  BeamSky sky(setup.file.array, setup.file.beams, setup.file.earth_orientation);
  auto maker = std::make_unique<beamform::WeightMaker>(make_maker(setup));
  sky.directions_enu(data_tai_ns_);
  setup_ = std::move(setup);
  sky_ = std::move(sky);
  maker_ = std::move(maker);
  steered_ = true;
  const Tick from = (next_tick_ + update_ - 1) / update_ * update_;
  return {true, "weights of the new file; headers of open files keep the directions of their start",
          clock_.tai_ns(from)};
}

void BeamChain::begin(const BeamInput& input) {
  BeamStream stream;
  stream.frequency = setup_.frequency;
  stream.clock = input.clock;
  stream.clock.rate_hz.den *= config_.integration;
  stream.clock.rate_hz = stream.clock.rate_hz.reduced();
  stream.integration = config_.integration;
  stream.max_samples = config_.max_windows();
  stream.telescope = setup_.file.array.name;
  stream.time_source = setup_.time_source;
  const std::int64_t tai_ns = input.clock.tai_ns(input.first_tick);
  const auto directions = sky_.directions_enu(tai_ns);
  const auto names = beam_names(setup_);
  for (std::size_t row = 0; row < names.size(); ++row) {
    BeamInfo info;
    info.name = names[row];
    info.incoherent = row >= directions.size();
    const Vector3 enu = info.incoherent ? Vector3{0, 0, 1} : directions[row];
    info.position = direction_of_enu(setup_.file.array, enu, tai_ns, setup_.file.earth_orientation);
    info.azimuth_rad = std::fmod(std::atan2(enu[0], enu[1]) + 2 * kPi, 2 * kPi);
    info.elevation_rad = std::asin(std::clamp(enu[2], -1.0, 1.0));
    for (std::int64_t a = 0; a < config_.n_antennas; ++a) {
      const auto beam = static_cast<std::int64_t>(row);
      if (info.incoherent) {
        info.n_antennas += config_.incoherent[row - directions.size()][a];
        continue;
      }
      const cf32* weights =
          weights_.data() + beam * config_.n_channels * config_.n_inputs() + a * config_.n_pols;
      info.n_antennas +=
          std::any_of(weights, weights + config_.n_pols, [](cf32 w) { return w != cf32(0); });
    }
    stream.beams.push_back(std::move(info));
  }
  consumers_ = make_consumers_(stream);
  if (std::any_of(consumers_.begin(), consumers_.end(),
                  [](auto& c) { return c->wants_voltages(); }))
    make_voltages();
  host_wanted_ = !on_devices_ || std::any_of(consumers_.begin(), consumers_.end(),
                                             [](auto& c) { return c->wants_host_values(); });
  if (on_devices_ && host_wanted_)
    values_ = Buffer<float>(beamform::dense_output_bytes(config_, config_.max_windows()) / 4,
                            MemorySpace::pinned);
}

// Samples go to each device once: as blocks that other nodes read, too, or for the beams alone.
void BeamChain::upload(BeamInput& input) {
  beamform::BlocksImport what;
  what.order = config_.order;
  what.block_spectra = kPacket;
  what.n_channels = config_.n_channels;
  what.n_spectra = input.n_spectra;
  std::vector<std::int32_t> inputs(setup_.block_inputs.begin(), setup_.block_inputs.end());
  if (inputs.empty()) {
    inputs.resize(config_.n_inputs());
    std::iota(inputs.begin(), inputs.end(), 0);
  }
  what.inputs = inputs;
  if (input.blocks != nullptr)
    input.channel_stride_bytes = beamform::imported_channel_bytes(what, config_.format);
  const std::int64_t bytes = (config_.n_channels - 1) * input.channel_stride_bytes +
                             (input.n_spectra + kPacket - 1) / kPacket * kPacket * spectrum_bytes();
  for (const auto& partition : partitions_) {
    const OnDevice scope(partition->queue);
    if (partition->samples.size() < bytes)
      partition->samples = Buffer<std::byte>(bytes, MemorySpace::device);
    if (input.blocks == nullptr) {
      copy_bytes(partition->queue, partition->samples.data(), input.samples,
                 (config_.n_channels - 1) * input.channel_stride_bytes +
                     input.n_spectra * spectrum_bytes());
      continue;
    }
    if (partition->block_inputs.size() == 0)
      partition->block_inputs = to_device(partition->queue, inputs);
    what.inputs = {partition->block_inputs.data(), inputs.size()};
    beamform::import_blocks(partition->queue, input.blocks->on(partition->queue), what,
                            partition->samples.data());
  }
}

void BeamChain::feed(const BeamInput& input) {
  if (segment_ < 0) start(input);  // what cannot be made is no loss
  loss_.guard([&] { take(input); });
}

void BeamChain::start(const BeamInput& input) {
  for (const auto& partition : partitions_) partition->engine->reset();
  const std::int64_t interval = input.first_tick / update_;
  point(input, interval);
  begin(input);
  segment_ = input.segment;
  interval_ = interval;
}

void BeamChain::take(const BeamInput& given) {
  BeamInput input = given;
  const auto start = std::chrono::steady_clock::now();
  RYLE_ASSERT(config_.order != beamform::InputOrder::pairs ||
              (input.n_spectra % kPacket == 0 && input.first_tick % kPacket == 0));
  if (input.segment != segment_) {
    for (const auto& partition : partitions_) partition->engine->reset();
    if (voltages_) voltages_->engine->reset();
  }
  if (on_devices_) upload(input);
  for (std::int64_t done = 0; done < input.n_spectra;) {
    const Tick tick = input.first_tick + done;
    const std::int64_t interval = tick / update_;
    const bool other = input.segment != segment_ || interval != interval_;
    if (other && (sky_.moves() || steered_)) {
      point(input, interval);
      steered_ = false;
    }
    segment_ = input.segment;
    interval_ = interval;
    std::int64_t n =
        std::min({input.n_spectra - done, (interval + 1) * update_ - tick, config_.max_spectra});
    ask_for_destination(input, tick, n);
    if (place_.n_samples > 0)
      n = std::min(n, (tick / config_.integration + place_.n_samples) * config_.integration - tick);
    piece(input, given, done, n);
    done += n;
  }
  // The samples' memory is the caller's again.
  for (const auto& partition : partitions_) partition->queue.synchronize();
  data_s_ += input.clock.seconds(input.n_spectra);
  next_tick_ = input.first_tick + input.n_spectra;
  clock_ = input.clock;
  data_tai_ns_ = clock_.tai_ns(next_tick_);
  busy_s_ += seconds_since(start);
}

// Samples that end in [first, last) of which nothing arrived.
void BeamChain::find_absent(const BeamInput& input, Tick first, Tick last) {
  absent_.clear();
  const std::int64_t t = config_.integration;
  for (const auto& span : input.absent) {
    const Tick from = std::max(span.begin, first / t * t), to = std::min(span.end, last);
    const std::int64_t begin = (from + t - 1) / t, end = to / t;
    if (begin >= end) continue;
    absent_.push_back({span.input, span.input + 1, begin, end});
    absent_cells_ += static_cast<double>(end - begin);
  }
}

BeamChunk BeamChain::next_chunk(const BeamInput& input, Tick tick, std::int64_t n) const {
  BeamChunk chunk;
  chunk.n_samples = config_.n_windows(tick, n);
  chunk.first_sample = tick / config_.integration;
  chunk.segment = input.segment;
  chunk.clock = input.clock;
  chunk.clock.rate_hz.den *= config_.integration;
  chunk.clock.rate_hz = chunk.clock.rate_hz.reduced();
  chunk.weights_tai_ns = weights_tai_ns_;
  return chunk;
}

// Where a consumer keeps the samples that are to come, so that they are made there.
void BeamChain::ask_for_destination(const BeamInput& input, Tick tick, std::int64_t n) {
  place_ = {};
  if (on_devices_ && host_wanted_) return;  // dense rows go to the host in one copy
  if (consumers_.empty()) return;
  // The last one alone: it may change what it has, once the others have read it.
  place_ = consumers_.back()->place(next_chunk(input, tick, n));
  const bool here =
      on_devices_ ? place_.parts.size() == partitions_.size() : place_.values != nullptr;
  const bool whole = config_.order != beamform::InputOrder::pairs ||
                     place_.n_samples * config_.integration % kPacket == 0;
  if (!here || !whole) place_ = {};
}

// Of a partition; host rows of all partitions have one memory.
beamform::Output BeamChain::output(const beamform::Config& config, std::size_t partition,
                                   std::int64_t n_windows) const {
  const auto& own = partitions_[partition]->values;
  auto out = beamform::dense_output(config, on_devices_ ? own.data() : values_.data(), n_windows);
  if (place_.n_samples == 0) return out;
  out.values = on_devices_ ? place_.parts[partition] : place_.values;
  out.row_stride_bytes = out.product_stride_bytes = place_.beam_stride * 4;
  out.channel_stride_bytes = place_.channel_stride * 4;
  return out;
}

// Windows of all rows, each partition by its engine.
void BeamChain::form(const beamform::Input& in, std::int64_t first, std::int64_t n_windows) {
  parts_.clear();
  for (std::size_t k = 0; k < partitions_.size(); ++k) {
    Partition& partition = *partitions_[k];
    beamform::Input input = in;
    const void* samples = on_devices_ ? partition.samples.data() : in.samples;
    input.samples = static_cast<const std::byte*>(samples) + first * spectrum_bytes();
    const auto out = output(partition.config, k, n_windows);
    const std::int64_t made = partition.engine->execute(partition.queue, input, out);
    RYLE_ASSERT(made == n_windows);
    if (!on_devices_) continue;
    auto* values = static_cast<float*>(out.values);
    parts_.push_back({values, partition.queue, partition.rows.first, partition.rows.size()});
    if (host_wanted_)
      copy_bytes(partition.queue, values_.data() + partition.rows.first * out.row_stride_bytes / 4,
                 values, partition.rows.size() * out.row_stride_bytes);
  }
  if (!on_devices_ || !host_wanted_) return;
  for (const auto& partition : partitions_) partition->queue.synchronize();
}

// The engine wants the slots of a piece side by side, the first at its beginning.
void BeamChain::find_present(const BeamInput& input, std::int64_t first, std::int64_t n,
                             beamform::Input& in) {
  const std::int64_t words = words_for_bits(config_.n_inputs());
  const std::int64_t given = (input.n_spectra + input.slot_spectra - 1) / input.slot_spectra;
  in.slot_spectra = std::gcd(input.slot_spectra, first);
  in.present_per_channel = input.present_per_channel;
  present_.clear();
  for (std::int64_t c = 0; c < (in.present_per_channel ? config_.n_channels : 1); ++c) {
    for (std::int64_t t = first; t < first + n; t += in.slot_spectra) {
      const std::uint64_t* mask = input.present + (c * given + t / input.slot_spectra) * words;
      present_.insert(present_.end(), mask, mask + words);
    }
  }
  in.present = present_.data();
}

void BeamChain::piece(const BeamInput& input, const BeamInput& given, std::int64_t first,
                      std::int64_t n) {
  beamform::Input in;
  in.samples = static_cast<const std::byte*>(input.samples);
  in.n_spectra = n;
  in.first_tick = input.first_tick + first;
  in.channel_stride_bytes = input.channel_stride_bytes;
  const bool pairs = config_.order == beamform::InputOrder::pairs;
  in.step_stride_bytes = (pairs ? kPacket : 1) * spectrum_bytes();
  if (input.present != nullptr) find_present(input, first, n, in);
  const std::int64_t n_windows = config_.n_windows(in.first_tick, n);
  form(in, first, n_windows);
  if (voltages_) send_voltages(given, in, first);
  find_absent(input, in.first_tick, in.first_tick + n);
  samples_ += n_windows;
  if (n_windows == 0) return;  // the engine keeps what has begun
  const auto out = output(config_, 0, n_windows);
  BeamChunk chunk = next_chunk(input, in.first_tick, n);
  if (host_wanted_) chunk.values = on_devices_ ? values_.data() : static_cast<float*>(out.values);
  chunk.parts = parts_;
  chunk.beam_stride = out.row_stride_bytes / 4;
  chunk.channel_stride = out.channel_stride_bytes / 4;
  chunk.absent = absent_;
  for (const auto& consumer : consumers_) consumer->take(chunk);
}

bool BeamChain::failed() const {
  return std::any_of(consumers_.begin(), consumers_.end(),
                     [](const auto& consumer) { return consumer->failed(); });
}

void BeamChain::finish(RunSummary& summary) {
  BeamSummary& b = summary.beams.emplace();
  b.beams = config_.n_beams;
  b.incoherent = static_cast<std::int64_t>(config_.incoherent.size());
  b.samples = samples_;
  b.sample_interval_s = static_cast<double>(config_.integration) / setup_.clock.rate_hz.value();
  b.weight_updates = updates_;
  b.masked_inputs = maker_->n_masked_gains() / config_.n_channels;
  const double cells = static_cast<double>(samples_ * config_.n_channels);
  b.absent_fraction = cells > 0 ? absent_cells_ / cells : 0;
  summary.implementations.emplace_back(implementation());
  if (updates_ > 0) {
    const auto directions = sky_.directions_enu(weights_tai_ns_);
    for (std::size_t k = 0; k < directions.size(); ++k) {
      if (directions[k][2] >= 0) continue;
      summary.warnings.push_back(
          fmt::format("beam {} looked {:.1f} deg below the horizon when it was last steered: it "
                      "sees no sky",
                      setup_.file.beams[k].name,
                      -std::asin(std::clamp(directions[k][2], -1.0, 1.0)) * 180 / kPi));
    }
  }
  for (const auto& consumer : consumers_) loss_.guard_end([&] { consumer->finish(summary); });
}

}  // namespace ryle::pipeline
