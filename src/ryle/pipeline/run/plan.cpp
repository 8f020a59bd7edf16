// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/ingest/sender_list.hpp"
#include "ryle/pipeline/beam/live_beams.hpp"
#include "ryle/pipeline/config/config_effect.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/visibility/horizon.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"

namespace ryle::pipeline {
namespace {

/// The samples of the observation: live ones as the 32-antenna array sends them, or those of the
/// recording.
SampleMetadata sample_metadata(const ObservationConfig& config, std::string& title) {
  SampleMetadata metadata;
  if (config.source.kind == "file") {
    const auto recording =
        open_recording(config.source.file, config.source.format, recording_options(config));
    const auto& info = recording->info();
    title =
        fmt::format("{}: {} inputs, {} samples", config.source.file, info.n_inputs, info.n_ticks);
    return {info.n_inputs,      info.layout, info.clock,       info.reference_hz,
            info.inverted_band, 1 << 16,     info.time_source, info.clock.seconds(info.n_ticks)};
  }
  metadata = live_sample_metadata(config);
  title = fmt::format("{} live: {} inputs x {:.6g} MHz", config.source.format, metadata.n_inputs,
                      metadata.clock.rate_hz.value() * 1e-6);
  return metadata;
}

/// Seconds of data per second of F and X on this machine, from memory as the run has it.
double measure_margin(const FxChain::Setup& setup, const SampleMetadata& metadata, FxChain& chain,
                      MemorySpace memory) {
  const std::int64_t n = metadata.max_feed_ticks;
  const Buffer<std::uint64_t> samples(n * metadata.layout.sample_stride_bits / 64 + 8, memory);
  for (std::int64_t k = 0; k < samples.size(); ++k)
    samples[k] = mix64(static_cast<std::uint64_t>(k));
  constexpr double kWarmUp_s = 0.1;
  constexpr double kMeasured_s = 0.4;
  Tick tick = 0;
  const auto run_for = [&](double seconds) {
    const double busy = chain.busy_s();
    const std::int64_t done = chain.spectra_done();
    while (chain.busy_s() - busy < seconds) {
      chain.feed(samples.data(), tick, n, {}, 0, metadata.clock);
      tick += n;
    }
    const double data_s = static_cast<double>(chain.spectra_done() - done) *
                          metadata.clock.seconds(channelize::step_length(setup.channelize));
    return data_s / (chain.busy_s() - busy);
  };
  run_for(kWarmUp_s);
  return run_for(kMeasured_s);
}

/// What the images of these spectra cost, path by path.
void plan_images(const ObservationConfig& config, const ArrayLayout& array,
                 const FrequencyAxis& frequency, const SampleClock& clock, std::int64_t n_spectra,
                 Plan& plan) {
  Queue queue = make_queue(config.runtime);
  const Cadence cadence = make_cadence(config.image.cadence_s, clock.rate_hz.value(), n_spectra);
  const auto sky = make_sky_config(config, array, frequency, cadence.spectra_per_image, {});
  plan.sky =
      choose_path(config, sky, queue, false, images_in(n_spectra, cadence.spectra_per_image));
  if (!plan.sky->plan.warning.empty()) plan.warnings.push_back(plan.sky->plan.warning);
  plan.n_image_spectra = cadence.spectra_per_image;
  plan.image_s = clock.seconds(cadence.spectra_per_image);
  plan.ports.emplace_back(
      "images", fmt::format("[bin {}][plane {}][y {}][x {}] f32, {} spectra = {:.6g} s each{}",
                            image::n_bins(sky), image::n_planes(sky), sky.n_pixels, sky.n_pixels,
                            cadence.spectra_per_image, plan.image_s,
                            cadence.images_per_stack > 1
                                ? fmt::format(", stacked by {}", cadence.images_per_stack)
                                : ""));
  if (plan.sky->predicted_s > plan.image_s && config.source.kind != "file") {
    plan.warnings.push_back(fmt::format("images take {:.2f}x real time: data will be lost live",
                                        plan.sky->predicted_s / plan.image_s));
  }
}

void add_memory(const ObservationConfig& config, const MemoryItems& items, Plan& plan) {
  plan.memory_bytes.insert(plan.memory_bytes.end(), items.begin(), items.end());
  plan.total_memory_bytes += total_bytes(items);
  require_memory(config, plan.total_memory_bytes);
}

/// Devices are asked what they have only if they are here: a plan may be made elsewhere.
void warn_of_device_memory(const ObservationConfig& config, Plan& plan) {
  for (const int index : beam_devices(config.runtime))
    for (const DeviceInfo& device : list_devices())
      if (device.name == "cuda:" + std::to_string(index) &&
          plan.total_device_memory_bytes > device.memory_bytes)
        plan.warnings.push_back(fmt::format(
            "{} has {} of memory, the beams and their search need {}: fewer beams, shorter blocks "
            "or more devices",
            device.name, mib(device.memory_bytes), mib(plan.total_device_memory_bytes)));
}

/// What the search takes at a time.
void plan_search_blocks(const SearchConfig& search, bool chosen, double sample_s, Plan& plan) {
  const auto n = static_cast<double>(search.block_samples);
  plan.ports.emplace_back("search blocks",
                          fmt::format("{} samples = {:.3g} s{}, {} buffered", search.block_samples,
                                      n * sample_s, chosen ? ", chosen" : "", search.blocks));
  if (chosen && !plan.device_memory_bytes.empty() && !cuda_unavailable_reason().empty())
    plan.warnings.push_back(
        "search.block_samples is chosen without the memory of a GPU, which is not here: the run "
        "may take shorter blocks");
}

/// A simulator has a speed of its own, and may wait.
void warn_if_too_slow(const ObservationConfig& config, Plan& plan) {
  if (!(plan.predicted_margin > 0) || config.source.kind == "file") return;
  const double speed = expected_speed(config);
  if (plan.predicted_margin >= speed) return;
  if (is_real_time(config))
    plan.warnings.push_back(
        fmt::format("this machine does {:.2f}x real time, the data come at {:g}x: data will be "
                    "lost live",
                    plan.predicted_margin, speed));
  else
    plan.warnings.push_back(
        fmt::format("this machine does {:.2f}x real time, the simulator is set to {:g}x: it waits "
                    "(simulator.wait_for_run)",
                    plan.predicted_margin, speed));
}

/// Packets of antennas that become beams.
void plan_beams(const ObservationConfig& asked, Plan& plan) {
  const LiveBeams live = live_beams(asked);
  const ObservationConfig config = with_search_blocks(asked, live);
  const BeamSetup setup = beam_setup(config, live);
  const auto engine = beamformer_config(setup);
  const double rate_hz = setup.clock.rate_hz.value();
  const auto n_samples = static_cast<double>(engine.n_channels * engine.n_inputs());
  plan.title =
      fmt::format("{} live: {} antennas x {} channels of {:.6g} kHz", config.source.format,
                  engine.n_inputs(), engine.n_channels, setup.frequency.channel_width_hz * 1e-3);
  plan.input_gbps = 8e-9 * rate_hz * n_samples;
  plan.ports = {
      {"spectra", fmt::format("[channel {}][packet][pair][128][2] ci4", engine.n_channels)},
      {"power",
       fmt::format("[beam {}][channel {}][time] f32, {:.4g} ms a sample", engine.n_rows(),
                   engine.n_channels, 1e3 * static_cast<double>(engine.integration) / rate_hz)}};
  plan.beamform_gops = 8e-9 * rate_hz * n_samples * static_cast<double>(engine.n_beams);
  if (config.beams.filterbank)
    plan.output_mb_per_hour = 3600e-6 * rate_hz / static_cast<double>(engine.integration) *
                              static_cast<double>(engine.n_rows() * engine.n_channels) *
                              static_cast<double>(config.beams.bits) / 8;
  add_memory(config, live_beams_memory(config, live), plan);
  plan.device_memory_bytes = live_beams_device_memory(config, live);
  plan.total_device_memory_bytes = total_bytes(plan.device_memory_bytes);
  warn_of_device_memory(config, plan);
  if (wants_search(config.search))
    plan_search_blocks(config.search, asked.search.block_samples == 0,
                       static_cast<double>(engine.integration) / rate_hz, plan);
  const BeamMargins margins = measure_beam_margins(config, live);
  plan.predicted_margin = margins.both();
  plan.search_margin = margins.search;
  warn_if_too_slow(config, plan);
}

void note_phase_center(const std::string& warning, Plan& plan) {
  if (!warning.empty()) plan.warnings.push_back(warning);
}

/// Observations of spectra: packets of an F-engine, or a recording of one. False for samples.
bool plan_spectra(const ObservationConfig& config, Plan& plan) {
  if (config.source.kind != "file") {
    if (!is_live_spectra(config.source)) return false;
    const ArrayLayout array = load_array(config, 0);
    const FengineSourceConfig receiver = live_spectra_config(config, array);
    const FrequencyAxis axis = fengine_channels(receiver);
    plan.title = fmt::format("{} live: {} inputs x {} channels of {:.6g} kHz", config.source.format,
                             array.n_inputs(), axis.n_channels, axis.channel_width_hz * 1e-3);
    plan.ports = {{"spectra", fmt::format("[channel {}][block][input {}] ci4", axis.n_channels,
                                          array.n_inputs())}};
    plan.input_gbps = 8e-9 * receiver.clock.rate_hz.value() *
                      static_cast<double>(axis.n_channels * array.n_inputs());
    require_products(config);
    note_phase_center(require_live_phase_center(config, array, receiver.clock.epoch_tai_ns), plan);
    if (wants_images(config)) plan_images(config, array, axis, receiver.clock, 0, plan);
    if (wants_visibilities(config)) {
      plan.ports.emplace_back(
          "visibilities", fmt::format("[channel {}][pair {}], {:.6g} s a dump", axis.n_channels,
                                      n_pairs(array.n_inputs()), config.correlate.integration_s));
    }
    const auto images = plan_live_images(config, array, live_spectra_metadata(receiver));
    add_memory(config, live_run_memory(config, receiver, images), plan);
    return true;
  }
  const auto recording =
      open_recording(config.source.file, config.source.format, recording_options(config));
  const auto& info = recording->info();
  if (!info.channelized) return false;
  plan.title = fmt::format("{}: {} inputs, {} channels, {} spectra", config.source.file,
                           info.n_inputs, info.frequency.n_channels, info.n_ticks);
  plan.ports = {{"spectra", fmt::format("[spectrum {}][channel {}][input {}] ci8", info.n_ticks,
                                        info.frequency.n_channels, info.n_inputs)}};
  const ArrayLayout array = load_array(config, info.n_inputs);
  note_phase_center(require_phase_center(config, array, info.clock.epoch_tai_ns,
                                         info.clock.seconds(info.n_ticks)),
                    plan);
  plan_images(config, array, info.frequency, info.clock, info.n_ticks, plan);
  add_memory(config, {{"all-sky imager", plan.sky->bytes}}, plan);
  return true;
}

// 1 - r_h(tau): what a delay difference left in the voltages costs (correlate.md 9).
double delay_loss(std::span<const double> filter, double delay_samples) {
  const auto shift = static_cast<std::size_t>(std::llround(delay_samples));
  double overlap = 0;
  for (std::size_t n = 0; n + shift < filter.size(); ++n) overlap += filter[n] * filter[n + shift];
  return 1 - overlap;
}

void describe_ports(const FxChain::Setup& s, const SampleMetadata& metadata, Plan& plan) {
  const auto& f = s.channelize;
  plan.ports = {
      {"samples", fmt::format("[time][input {}] {}, {} bits an instant", f.n_inputs,
                              name(f.layout.format), metadata.layout.sample_stride_bits)},
      {"filter", fmt::format("{} taps x {} points, step {}", f.n_taps,
                             channelize::transform_length(f), channelize::step_length(f))},
      {"blocks", fmt::format("[channel {}][block {}][input {}][128 B] {}", f.n_channels,
                             n_blocks(f.output, s.spectra_per_gulp), f.n_inputs, name(f.output))},
      {"visibilities", fmt::format("[channel {}][pair {}], {} spectra a dump", f.n_channels,
                                   n_pairs(f.n_inputs), s.spectra_per_dump)}};
}

}  // namespace

Plan make_plan(const ObservationConfig& config) {
  reject_keys_without_effect(config);
  const SenderList checked(config.source.allowed_senders);  // refuses what a receiver would
  Plan plan;
  if (config.source.kind != "file" && is_live_beams(config.source)) {
    plan_beams(config, plan);
    return plan;
  }
  if (plan_spectra(config, plan)) return plan;
  const SampleMetadata metadata = sample_metadata(config, plan.title);
  const ArrayLayout array = load_array(config, metadata.n_inputs);
  const FxChain::Setup setup = make_chain_setup(config, metadata, array);
  const auto& f = setup.channelize;
  calibration_gains(config, f.n_inputs,
                    f.n_channels);  // refuses a wrong table now, not when data flow
  note_phase_center(
      config.source.kind == "file"
          ? require_phase_center(config, array, metadata.clock.epoch_tai_ns, metadata.length_s)
          : require_live_phase_center(config, array, simulation_start_tai_ns(config)),
      plan);
  describe_ports(setup, metadata, plan);

  if (config.source.kind != "file")
    add_memory(config, {{"ring of chunks", ring_bytes(config, f.n_inputs)}}, plan);
  add_memory(config, sums_memory(config, setup), plan);  // before they are allocated

  const std::vector<Queue> queues = make_queues(config.runtime);
  FxChain chain(
      queues, setup, [](channelize::Channelizer&, const SampleClock&, Tick, Tick) {},
      [](RawDump&&) {});
  add_memory(config, engines_memory(setup, chain), plan);

  const double spectra_per_s = f.sample_rate_hz / static_cast<double>(channelize::step_length(f));
  const double samples_per_s = spectra_per_s * static_cast<double>(f.n_channels * f.n_inputs);
  plan.input_gbps =
      f.sample_rate_hz * static_cast<double>(metadata.layout.sample_stride_bits) * 1e-9;
  plan.channelize_gflops = channelize::cost(f).useful_ops_per_sample * samples_per_s * 1e-9;
  const correlate::Config x{f.n_inputs, f.n_channels, f.output, setup.spectra_per_gulp,
                            setup.correlate.implementation};
  plan.correlate_gops = correlate::cost(x).useful_ops_per_spectrum * spectra_per_s * 1e-9;
  const int formats = config.output.ms + config.output.uvfits + config.output.uvh5;
  plan.output_mb_per_hour = formats * 13.0 *
                            static_cast<double>(4 * n_pairs(array.n_antennas()) * f.n_channels) *
                            1e-6 * 3600 / config.correlate.integration_s;
  plan.predicted_margin = measure_margin(setup, metadata, chain, sample_memory(queues));
  if (config.image.cadence_s > 0 && config.source.kind == "file") {
    SampleClock clock = metadata.clock;
    clock.rate_hz.den *= channelize::step_length(f);
    plan_images(config, array, frequency_axis(f), clock, 0, plan);
    add_memory(config, {{"all-sky imager", plan.sky->bytes}}, plan);
  }
  plan.implementations = {std::string(chain.channelizer().implementation()),
                          std::string(chain.correlator().implementation())};
  if (config.correlate.fringe_stopping != "f") {
    const double largest = DelayModel::largest_delay_s(array, frequency_axis(f).band_center_hz());
    plan.decorrelation = delay_loss(chain.channelizer().filter(), largest * f.sample_rate_hz);
    if (plan.decorrelation > 0.01) {
      plan.warnings.push_back(
          fmt::format("delays after correlation lose up to {:.1f} % of the amplitude here; "
                      "correlate.fringe_stopping = \"f\" loses nothing",
                      100 * plan.decorrelation));
    }
  }
  warn_if_too_slow(config, plan);
  return plan;
}

std::string to_text(const Plan& p) {
  std::string text = p.title + "\n\n";
  for (const auto& [what, shape] : p.ports) text += fmt::format("  {:<24} {}\n", what, shape);
  if (p.input_gbps > 0)
    text += fmt::format("\n  {:<24} {:.3f} Gb/s of samples\n", "input", p.input_gbps);
  if (p.channelize_gflops > 0) {
    text += fmt::format("  {:<24} {:.2f} GFLOPS, {:.2f} GOPS\n", "channelize, correlate",
                        p.channelize_gflops, p.correlate_gops);
  }
  if (p.beamform_gops > 0) text += fmt::format("  {:<24} {:.1f} GOPS\n", "beams", p.beamform_gops);
  if (p.output_mb_per_hour > 0)
    text += fmt::format("  {:<24} {:.0f} MB an hour\n", "products", p.output_mb_per_hour);
  text += "\n";
  for (const auto& [what, bytes] : p.memory_bytes)
    text += fmt::format("  {:<24} {}\n", what, mib(bytes));
  text +=
      fmt::format("  {:<24} {}, all allocated at start\n\n", "memory", mib(p.total_memory_bytes));
  for (const auto& [what, bytes] : p.device_memory_bytes)
    text += fmt::format("  {:<24} {}\n", what, mib(bytes));
  if (p.total_device_memory_bytes > 0)
    text += fmt::format("  {:<24} {}, and tables of the engines\n\n", "memory of each GPU",
                        mib(p.total_device_memory_bytes));
  if (p.predicted_margin > 0) {
    text += fmt::format("  {:<24} {:.2f}x real time, measured on this machine", "engines",
                        p.predicted_margin);
    for (const auto& name : p.implementations)
      text += (&name == &p.implementations.front() ? " with " : " ") + name;
    text += "\n";
  }
  if (p.search_margin > 0)
    text +=
        fmt::format("  {:<24} {:.2f}x real time\n", "of them the search alone", p.search_margin);
  if (p.sky) text += plan_text(*p.sky, p.image_s);
  for (const auto& w : p.warnings) text += "  warning: " + w + "\n";
  return text;
}

std::string to_json(const Plan& p) {
  nlohmann::ordered_json memory, ports;
  auto device_memory = nlohmann::ordered_json::object();
  for (const auto& [what, bytes] : p.memory_bytes) memory[what] = bytes;
  for (const auto& [what, bytes] : p.device_memory_bytes) device_memory[what] = bytes;
  for (const auto& [what, shape] : p.ports) ports[what] = shape;
  nlohmann::ordered_json json{{"title", p.title},
                              {"ports", ports},
                              {"memory_bytes", memory},
                              {"total_memory_bytes", p.total_memory_bytes},
                              {"device_memory_bytes", device_memory},
                              {"total_device_memory_bytes", p.total_device_memory_bytes},
                              {"input_gbps", p.input_gbps},
                              {"channelize_gflops", p.channelize_gflops},
                              {"correlate_gops", p.correlate_gops},
                              {"beamform_gops", p.beamform_gops},
                              {"output_mb_per_hour", p.output_mb_per_hour},
                              {"predicted_margin", p.predicted_margin},
                              {"search_margin", p.search_margin},
                              {"decorrelation", p.decorrelation},
                              {"implementations", p.implementations},
                              {"warnings", p.warnings}};
  if (p.sky) json["images"] = nlohmann::ordered_json::parse(plan_json(*p.sky, p.image_s));
  return json.dump();
}

}  // namespace ryle::pipeline
