// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/run/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/random.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/ingest/sender_list.hpp"
#include "ryle/pipeline/beam/beam_heaps.hpp"
#include "ryle/pipeline/config/config_effect.hpp"
#include "ryle/pipeline/run/graph.hpp"
#include "ryle/pipeline/run/outputs.hpp"
#include "ryle/pipeline/run/run_memory.hpp"
#include "ryle/pipeline/visibility/horizon.hpp"
#include "ryle/pipeline/visibility/live_spectra.hpp"
#include "ryle/pipeline/visibility/product_set.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/simulation.hpp"
#include "ryle/pipeline/visibility/spectra_dumps.hpp"
#include "ryle/pipeline/visibility/spectra_reader.hpp"

namespace ryle::pipeline {
namespace {

/// The samples of the observation: live ones as the 32-antenna array sends them, or those of the
/// recording.
SampleMetadata sample_metadata(const ObservationConfig& config, std::string& title) {
  SampleMetadata metadata;
  if (config.source.kind == "file") {
    const auto recording = open_source(config);
    const auto& info = recording->info();
    title =
        fmt::format("{}: {} inputs, {} samples", source_name(config), info.n_inputs, info.n_ticks);
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

void note_phase_center(const std::string& warning, Plan& plan) {
  if (!warning.empty()) plan.warnings.push_back(warning);
}

constexpr const char* kSampleNode = "channelizer, visibilities";
constexpr const char* kFineNode = "finer channels";

// The node whose spectra others read; "" = those of the source.
std::string channelizer_of(const ObservationConfig& config) {
  if (config.source.kind == "file") return "";
  if (is_live_samples(config.source)) return kSampleNode;
  return config.channelize.fine_channels > 0 ? kFineNode : "";
}

std::vector<std::string> visibility_products(const ObservationConfig& config) {
  std::vector<std::string> products = config.output.files;
  if (config.output.ms) products.emplace_back("Measurement Set");
  if (config.output.uvfits) products.emplace_back("UVFITS");
  if (config.output.uvh5) products.emplace_back("UVH5");
  return products;
}

std::vector<std::string> image_products(const ObservationConfig& config) {
  std::vector<std::string> products;
  if (config.image.fits) products.emplace_back("FITS");
  if (!config.image.hdf5.empty()) products.emplace_back("HDF5");
  if (!config.image.watch.empty()) products.emplace_back("light curves");
  if (config.image.trigger_sigma > 0) products.emplace_back("events");
  return products;
}

std::vector<std::string> beam_products(const ObservationConfig& config) {
  std::vector<std::string> products;
  if (config.beams.filterbank) products.emplace_back("filterbanks");
  if (!config.beams.spead.empty()) products.emplace_back("voltages as heaps of SPEAD");
  if (config.beams.power_s > 0) products.emplace_back("power against time");
  if (!config.search.fold.empty()) products.emplace_back("folded pulsar");
  return products;
}

/// Beams of these spectra, their search and their files.
void plan_beams(const ObservationConfig& asked, const BeamSetup& setup, Plan& plan) {
  require_distinct_outputs(asked, beam_names(setup));
  if (!asked.beams.spead.empty()) open_live_beam_streams(asked, setup);
  const ObservationConfig config = with_search_blocks(asked, setup);
  const auto engine = beamformer_config(setup);
  const double rate_hz = setup.clock.rate_hz.value();
  const auto n_samples = static_cast<double>(engine.n_channels * engine.n_inputs());
  plan.ports.emplace_back(
      "power", fmt::format("[beam {}][channel {}][time] f32{}, {:.4g} ms a sample", engine.n_rows(),
                           engine.n_channels, engine.n_pols == 2 ? " of Stokes I" : "",
                           1e3 * static_cast<double>(engine.integration) / rate_hz));
  plan.beamform_gops = 8e-9 * rate_hz * n_samples * static_cast<double>(engine.n_beams);
  if (config.beams.filterbank)
    plan.output_mb_per_hour += 3600e-6 * rate_hz / static_cast<double>(engine.integration) *
                               static_cast<double>(engine.n_rows() * engine.n_channels) *
                               static_cast<double>(config.beams.bits) / 8;
  plan.device_memory_bytes = beams_device_memory(config, setup);
  plan.total_device_memory_bytes = total_bytes(plan.device_memory_bytes);
  warn_of_device_memory(config, plan);
  if (wants_search(config.search))
    plan_search_blocks(config.search, asked.search.block_samples == 0,
                       static_cast<double>(engine.integration) / rate_hz, plan);
  const BeamMargins margins = measure_beam_margins(config, setup);
  plan.search_margin = margins.search;
  plan.nodes.push_back({"beams", margins.beams, channelizer_of(config), beam_products(config)});
  if (wants_search(config.search))
    plan.nodes.push_back({"search of beams", margins.search, "beams", {"candidates", "VOEvents"}});
}

/// Seconds of data per second of a correlator of these spectra, on zeros.
double measure_correlator(const ObservationConfig& config, std::int64_t n_inputs,
                          const SpectraMetadata& metadata) {
  SpectraChain chain(make_queue(config.runtime), spectra_chain_setup(config, n_inputs, metadata),
                     [](RawDump&&) {});
  const std::int64_t n = metadata.max_gulp;
  const Buffer<std::byte> bytes(
      dense_blocks_bytes(metadata.format, metadata.frequency.n_channels, n, n_inputs));
  std::memset(bytes.data(), 0, static_cast<std::size_t>(bytes.size()));
  SpectraGulp gulp;
  gulp.blocks = dense_blocks(const_cast<std::byte*>(bytes.data()), metadata.format,
                             metadata.frequency.n_channels, n, n_inputs);
  SpectraSlice slice;
  std::int64_t first = 0;
  const auto run_for = [&](double seconds) {
    const double busy = chain.busy_s();
    const std::int64_t done = chain.spectra_done();
    while (chain.busy_s() - busy < seconds) {
      gulp.n_spectra = n;
      feed_in_slices(chain, slice, gulp, first, 0, metadata.clock);
      first += n;
    }
    return metadata.clock.seconds(chain.spectra_done() - done) / (chain.busy_s() - busy);
  };
  run_for(0.1);
  return run_for(0.4);
}

/// The ring keeps chunks as they are: it takes no time of the engines.
void plan_voltages(const ObservationConfig& config, Plan& plan) {
  if (!keeps_voltages(config)) return;
  plan.ports.emplace_back(
      "voltages",
      fmt::format("the last {:.6g} s as received, dumped when asked for", config.voltages.ring_s));
  plan.nodes.push_back({"voltages", 0, "", {"dumps of voltages"}});
}

/// Nodes take turns on the engines' thread: together they need the sum of their times.
void conclude_margins(Plan& plan) {
  double seconds_per_s = 0;
  for (const auto& node : plan.nodes)
    if (node.margin > 0) seconds_per_s += 1 / node.margin;
  if (seconds_per_s > 0) plan.predicted_margin = 1 / seconds_per_s;
}

/// Seconds of data per second that received channels are cut into finer ones, on random codes.
double measure_fine(const ObservationConfig& config, const FineSetup& setup) {
  FineSpectra fine(Queue::cpu(static_cast<int>(config.runtime.threads)), setup,
                   [](const SpectraGulp&, std::int64_t, std::int64_t, const SampleClock&) {});
  const SpectraShape& shape = setup.coarse;
  SpectraBlocks blocks(shape);
  for (std::int64_t k = 0; k < blocks.bytes.size(); ++k)
    blocks.bytes.data()[k] = static_cast<std::byte>(mix64(static_cast<std::uint64_t>(k)));
  SpectraGulp gulp;
  gulp.blocks = blocks.view;
  gulp.n_spectra = shape.chunk_spectra;
  std::int64_t first = 0;
  while (fine.busy_s() < 0.4) {
    fine.feed(gulp, first, 0, setup.received.clock);
    first += gulp.n_spectra;
  }
  return setup.received.clock.seconds(first) / fine.busy_s();
}

void plan_fine(const ObservationConfig& config, const FineSetup& setup, Plan& plan) {
  const SpectraMetadata fine = setup.metadata();
  plan.ports.emplace_back(
      kFineNode,
      fmt::format("[channel {}][block][input {}] {}, {:.6g} Hz wide, {} taps x {} points",
                  fine.frequency.n_channels, setup.coarse.n_inputs, name(fine.format),
                  fine.frequency.channel_width_hz, setup.channelize.n_taps,
                  setup.channelize.n_channels));
  plan.nodes.push_back({kFineNode, measure_fine(config, setup), "", {}});
}

/// Live packets of spectra.
void plan_live_spectra(const ObservationConfig& config, Plan& plan) {
  require_products(config);
  const SpectraInput input = spectra_input(config);
  const FrequencyAxis& axis = input.metadata.frequency;
  const FrequencyAxis& received = input.received.frequency;
  plan.title =
      fmt::format("{} live: {} inputs x {} channels of {:.6g} kHz", config.source.format,
                  input.array.n_inputs(), received.n_channels, received.channel_width_hz * 1e-3);
  plan.ports = {
      {"spectra", input.packets_in_place()
                      ? fmt::format("[channel {}][packet][pair][128][2] {}", received.n_channels,
                                    name(input.shape.format))
                      : fmt::format("[channel {}][block][input {}] {}", received.n_channels,
                                    input.array.n_inputs(), name(input.shape.format))}};
  plan.input_gbps = 1e-9 * input.bits_per_s();
  const auto images = plan_live_images(config, input.array, input.metadata);
  add_memory(config, graph_memory(config, input, images), plan);
  if (input.fine) plan_fine(config, *input.fine, plan);
  if (wants_images(config)) {
    plan_images(config, input.array, axis, input.metadata.clock, 0, plan);
    plan.nodes.push_back({"images",
                          plan.sky->predicted_s > 0 ? plan.image_s / plan.sky->predicted_s : 0,
                          channelizer_of(config), image_products(config)});
  }
  if (wants_visibilities(config)) {
    note_phase_center(
        require_live_phase_center(config, input.array, input.metadata.clock.epoch_tai_ns), plan);
    plan.ports.emplace_back(
        "visibilities",
        fmt::format("[channel {}][pair {}], {:.6g} s a dump", axis.n_channels,
                    n_pairs(input.array.n_inputs()), config.correlate.integration_s));
    plan.nodes.push_back({"visibilities",
                          measure_correlator(config, input.array.n_inputs(), input.metadata),
                          channelizer_of(config), visibility_products(config)});
  }
  if (wants_beams(config)) plan_beams(config, beams_of(config, input).setup, plan);
  plan_voltages(config, plan);
  conclude_margins(plan);
  warn_if_too_slow(config, plan);
}

/// A recording of spectra. False for samples.
bool plan_recorded_spectra(const ObservationConfig& config, Plan& plan) {
  const auto recording = open_source(config);
  const auto& info = recording->info();
  if (!info.channelized) return false;
  plan.title = fmt::format("{}: {} inputs, {} channels, {} spectra", source_name(config),
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

// The ring of live time samples, and what it takes.
void plan_sample_voltages(const ObservationConfig& config, const SampleMetadata& metadata,
                          const SpectraMetadata& spectra, Plan& plan) {
  require_voltage_ring(config, spectra.frequency, spectra.clock.rate_hz.value());
  const std::int64_t chunks =
      voltage_ring_chunks(config, metadata.clock.rate_hz.value(), metadata.max_feed_ticks);
  if (chunks > 0)
    add_memory(config,
               {{"ring of voltages",
                 chunks * metadata.max_feed_ticks * metadata.layout.sample_stride_bits / 8}},
               plan);
  plan_voltages(config, plan);
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
  require_distinct_outputs(config);
  if (makes_visibilities(config))
    for (const auto& name : visibility_names(config, "")) require_visibility_suffix(name);
  const SenderList checked(config.source.allowed_senders);  // refuses what a receiver would
  require_spead_output(config.output);
  Plan plan;
  plan.source = config.source.kind == "file" ? source_name(config) : config.source.format + " live";
  if (config.source.kind != "file" && !is_live_samples(config.source)) {
    plan_live_spectra(config, plan);
    return plan;
  }
  if (config.source.kind == "file" && plan_recorded_spectra(config, plan)) return plan;
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
  plan.nodes.push_back({kSampleNode, measure_margin(setup, metadata, chain, sample_memory(queues)),
                        "", visibility_products(config)});
  SpectraMetadata spectra;
  spectra.frequency = frequency_axis(f);
  spectra.clock = metadata.clock;
  spectra.clock.rate_hz.den *= channelize::step_length(f);
  spectra.clock.rate_hz = spectra.clock.rate_hz.reduced();
  spectra.max_gulp = setup.spectra_per_gulp;
  if (wants_images(config)) {
    plan_images(config, array, spectra.frequency, spectra.clock, 0, plan);
    add_memory(config, {{"all-sky imager", plan.sky->bytes}}, plan);
    plan.nodes.push_back({"images",
                          plan.sky->predicted_s > 0 ? plan.image_s / plan.sky->predicted_s : 0,
                          channelizer_of(config), image_products(config)});
  }
  if (wants_beams(config)) {
    const BeamSetup beams = stream_beams(config, array, spectra).setup;
    add_memory(config, beams_memory(config, beams), plan);
    plan_beams(config, beams, plan);
  }
  if (config.source.kind != "file") plan_sample_voltages(config, metadata, spectra, plan);
  conclude_margins(plan);
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
  for (const auto& node : p.nodes)
    if (node.margin > 0)
      text += fmt::format("  {:<24} {:.2f}x real time\n", node.name, node.margin);
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

std::string to_svg(const Plan& p) {
  constexpr int kColumn = 310, kRow = 100, kBox = 250, kHeight = 74, kLeft = 20, kTop = 40;
  std::map<std::string, int> column{{"", 0}}, row{{"", 0}};
  int rows = 0;
  for (const auto& node : p.nodes) {
    column[node.name] = column[node.reads] + 1;
    row[node.name] = rows++;
  }
  row[""] = (rows - 1) / 2;
  int n_columns = 0;
  for (const auto& [name, at] : column) n_columns = std::max(n_columns, at + 1);
  const auto escaped = [](std::string text) {
    for (const auto& [from, to] : {std::pair{"&", "&amp;"}, std::pair{"<", "&lt;"}})
      for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += 4)
        text.replace(at, 1, to);
    return text;
  };
  const auto x = [&](const std::string& name) { return kLeft + column[name] * kColumn; };
  const auto y = [&](const std::string& name) { return kTop + row[name] * kRow; };
  std::string boxes, edges;
  const auto line = [&](const std::string& name, int below, const char* style,
                        const std::string& text) {
    boxes += fmt::format("<text x=\"{}\" y=\"{}\" {}>{}</text>\n", x(name) + 10, y(name) + below,
                         style, escaped(text));
  };
  const auto box = [&](const std::string& name, const std::string& title, const std::string& speed,
                       const std::string& products) {
    boxes += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#eef3f8\" "
        "stroke=\"#35618e\"/>\n",
        x(name), y(name), kBox, kHeight);
    line(name, 22, "font-weight=\"bold\"", title);
    line(name, 42, "font-size=\"12\" fill=\"#444\"", speed);
    line(name, 62, "font-size=\"12\" fill=\"#35618e\"", products);
  };
  box("", p.source, fmt::format("{:.3g} Gb/s", p.input_gbps), "");
  for (const auto& node : p.nodes) {
    box(node.name, node.name,
        node.margin > 0 ? fmt::format("{:.3g} x real time here", node.margin) : "not measured",
        fmt::format("{}", fmt::join(node.makes, ", ")));
    const int x0 = x(node.reads) + kBox, y0 = y(node.reads) + kHeight / 2;
    const int x1 = x(node.name), y1 = y(node.name) + kHeight / 2;
    edges += fmt::format(
        "<path d=\"M{} {} C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#35618e\" "
        "marker-end=\"url(#arrow)\"/>\n",
        x0, y0, x0 + 40, y0, x1 - 40, y1, x1 - 2, y1);
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" "
      "font-family=\"sans-serif\" font-size=\"14\">\n<defs><marker id=\"arrow\" "
      "markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\"><path "
      "d=\"M0 0 L8 4 L0 8 z\" fill=\"#35618e\"/></marker></defs>\n<rect width=\"100%\" "
      "height=\"100%\" fill=\"white\"/>\n<text x=\"{}\" y=\"24\">{}</text>\n{}{}</svg>\n",
      kLeft + n_columns * kColumn, kTop + std::max(1, rows) * kRow, kLeft, escaped(p.title), edges,
      boxes);
}

std::string to_json(const Plan& p) {
  nlohmann::ordered_json memory, ports;
  auto nodes = nlohmann::ordered_json::object();
  auto device_memory = nlohmann::ordered_json::object();
  for (const auto& [what, bytes] : p.memory_bytes) memory[what] = bytes;
  for (const auto& [what, bytes] : p.device_memory_bytes) device_memory[what] = bytes;
  for (const auto& [what, shape] : p.ports) ports[what] = shape;
  for (const auto& node : p.nodes) nodes[node.name] = node.margin;
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
                              {"nodes", nodes},
                              {"decorrelation", p.decorrelation},
                              {"implementations", p.implementations},
                              {"warnings", p.warnings}};
  if (p.sky) json["images"] = nlohmann::ordered_json::parse(plan_json(*p.sky, p.image_s));
  return json.dump();
}

}  // namespace ryle::pipeline
