// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/beam/recorded_beams.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/engine/beamform/levels.hpp"
#include "ryle/engine/beamform/weights.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/pipeline/beam/beam_samples.hpp"
#include "ryle/pipeline/beam/beam_sinks.hpp"
#include "ryle/pipeline/beam/fine_channels.hpp"
#include "ryle/pipeline/beam/host_beamformer.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/pipeline/visibility/spectra_reader.hpp"
#include "ryle/telescope/beams_file.hpp"

namespace ryle::pipeline {
namespace {

using beamform::OutputFormat;
using beamform::OutputKind;
using Seconds = std::chrono::duration<double>;

constexpr double kLossWarned = 1e-3;      // of power (beamform.md 1)
constexpr double kStepTurns = 1.0 / 360;  // largest turn of a phase between sets of weights
constexpr double kLongestUpdate_s = 10;
constexpr std::int64_t kFirstLevels = 64;  // values behind the first scales

OutputKind kind_named(const std::string& name) {
  if (name == "power") return OutputKind::power;
  if (name == "stokes-i") return OutputKind::stokes_i;
  if (name == "stokes-iquv") return OutputKind::stokes_iquv;
  if (name == "voltage") return OutputKind::voltage;
  throw ConfigError("--products " + name + ": power, stokes-i, stokes-iquv or voltage is wanted");
}

OutputFormat format_named(const std::string& name) {
  const std::pair<const char*, OutputFormat> known[] = {
      {"f32", OutputFormat::f32}, {"f16", OutputFormat::f16},   {"u16", OutputFormat::u16},
      {"u8", OutputFormat::u8},   {"cf32", OutputFormat::cf32}, {"cf16", OutputFormat::cf16},
      {"ci8", OutputFormat::ci8}, {"ci4", OutputFormat::ci4}};
  for (const auto& [word, format] : known) {
    if (name == word) return format;
  }
  throw ConfigError("--values " + name +
                    ": f32 f16 u16 u8 of powers, cf32 cf16 ci8 ci4 of voltages are wanted");
}

double value_bytes(const std::string& format) {
  switch (format_named(format)) {
    case OutputFormat::cf32:
      return 8;
    case OutputFormat::f32:
    case OutputFormat::cf16:
      return 4;
    case OutputFormat::f16:
    case OutputFormat::u16:
    case OutputFormat::ci8:
      return 2;
    default:
      return 1;
  }
}

bool has_codes(OutputFormat format) {
  return format == OutputFormat::u8 || format == OutputFormat::u16 || format == OutputFormat::ci8 ||
         format == OutputFormat::ci4;
}

/// --layout and --station replace the array of the beams file; a layout without a place of its own
/// (--latitude-deg ...) stands at that of the beams file.
BeamsContext context_of(const ObservationConfig& config) {
  BeamsContext context;
  context.band_of_data = true;
  const auto& t = config.telescope;
  const std::string layout = resolve_path(config, t.layout);
  const bool csv = std::filesystem::path(layout).extension() != ".json";
  if (!t.layout.empty() && t.station.empty() && csv && t.latitude_deg == 0 && t.longitude_deg == 0)
    context.layout = layout;
  else if (!t.layout.empty() || !t.station.empty())
    context.array = load_array(config, 0);
  return context;
}

class RecordedBeams {
 public:
  RecordedBeams(const ObservationConfig& config, const RecordedBeamsOptions& options,
                const RunOptions& run)
      : config_(config),
        options_(options),
        run_(run),
        file_(load_beams(options.beams, context_of(config))),
        files_(require_files()),
        recording_(open_source(config)),
        reader_(make_spectra_reader(config, *recording_)),
        queue_(Queue::cpu(static_cast<int>(config.runtime.threads))),
        inputs_(choose_inputs(checked_array(), options.pol)),
        sky_(file_.array, file_.beams, file_.earth_orientation) {
    if (file_.n_channels == 0) {  // no [band]: the recording knows it
      file_.n_channels = reader_->frequency.n_channels;
      file_.first_center_hz = reader_->frequency.first_center_hz;
      file_.channel_step_hz = reader_->frequency.channel_width_hz;
    }
    choose_channels();
    choose_engine();
    make_maker();
    choose_update();
    require_space();
  }

  RecordedBeamsSummary run() {
    const auto start = std::chrono::steady_clock::now();
    beams_ = make_engine(engine_);
    if (options_.fine_channels > 1) make_fine();
    make_sinks();
    point(0);
    if (has_codes(engine_.output_format)) first_levels();
    SpectraGulp gulp;
    const std::int64_t total = n_spectra();
    for (std::int64_t first = 0; first < total && !stopped();) {
      const std::int64_t n = std::min(reader_->max_gulp, total - first);
      reader_->read(first, n, gulp);
      samples_->load(gulp, queue_);
      process(first, n);
      first += n;
      s_.n_spectra = first;
      report(first, total, start);
    }
    for (auto& sink : sinks_) sink->finish(s_);
    conclude();
    s_.elapsed_s = Seconds(std::chrono::steady_clock::now() - start).count();
    return s_;
  }

 private:
  /// On the device that was asked for: "auto" means the CPU here.
  std::unique_ptr<beamform::Beamformer> make_engine(const beamform::Config& config) {
    const bool asked =
        config_.runtime.device.rfind("cuda", 0) == 0 || config.implementation.rfind("cuda", 0) == 0;
    if (!asked) return beamform::make_beamformer(queue_, config);
    RuntimeConfig runtime = config_.runtime;
    if (runtime.device == "auto") runtime.device = "cuda:0";
    return std::make_unique<HostBeamformer>(make_queue(runtime), config);
  }

  /// Before the recording is opened.
  std::vector<std::string> require_files() const {
    std::vector<std::string> files;
    const auto rows = beam_rows(file_.beams, options_.incoherent);
    for (const auto& output : options_.outputs) {
      beam_file_ending(output);
      const auto some = beam_files_of(output, rows);
      files.insert(files.end(), some.begin(), some.end());
    }
    require_all_creatable(files, options_.overwrite || config_.output.overwrite);
    return files;
  }

  /// Values of all rows and products; headers and tables are small beside them.
  void require_space() const {
    const double n_values =
        static_cast<double>(n_spectra()) * static_cast<double>(frequency_.n_channels) *
        static_cast<double>(n_products()) *
        static_cast<double>(beam_rows(file_.beams, options_.incoherent).size()) /
        static_cast<double>(options_.integration);
    std::map<std::string, int> n_outputs;
    for (const auto& output : options_.outputs)
      if (!is_beam_stream(output))
        ++n_outputs[std::filesystem::path(output).parent_path().string()];
    for (const auto& [folder, n] : n_outputs)
      require_room(folder.empty() ? "." : folder, n * n_values * value_bytes(s_.format),
                   "the values of the beams");
  }

  bool stopped() const { return run_.stop != nullptr && *run_.stop > 0; }

  const ArrayLayout& checked_array() const {
    if (file_.array.n_inputs() != reader_->n_inputs)
      throw ConfigError(options_.beams + ": its layout has " +
                        std::to_string(file_.array.n_inputs()) + " inputs, the recording " +
                        std::to_string(reader_->n_inputs) + "; one line per input is wanted");
    return file_.array;
  }

  std::int64_t n_spectra() const {
    const double wanted = config_.source.duration_s * reader_->clock.rate_hz.value();
    return wanted > 0
               ? std::min(reader_->n_spectra, static_cast<std::int64_t>(std::llround(wanted)))
               : reader_->n_spectra;
  }

  void choose_channels() {
    const std::int64_t all = reader_->frequency.n_channels, first = options_.first_channel;
    const std::int64_t n = options_.n_channels > 0 ? options_.n_channels : all - first;
    if (first < 0 || n < 1 || first + n > all)
      throw ConfigError("channels " + std::to_string(first) + " to " + std::to_string(first + n) +
                        " are asked for; the spectra have 0 to " + std::to_string(all));
    frequency_ = {reader_->frequency.center_hz(first), reader_->frequency.channel_width_hz, n};
    const double file_hz = file_.first_center_hz +
                           0.5 * static_cast<double>(file_.n_channels - 1) * file_.channel_step_hz;
    const double reach_hz =
        std::fabs(file_.channel_step_hz) * static_cast<double>(file_.n_channels);
    if (std::fabs(file_hz - reader_->frequency.band_center_hz()) >
        0.5 * (reach_hz + frequency_.channel_width_hz * static_cast<double>(all)))
      s_.warnings.push_back(options_.beams + ": its band is not that of the recording, " +
                            "which is the one that is used");
    samples_ = std::make_unique<BeamSamples>(inputs_.order, first, n);
  }

  void choose_engine() {
    const bool vdif = std::any_of(
        options_.outputs.begin(), options_.outputs.end(),
        [](const auto& o) { return beam_file_ending(o) == ".vdif" || is_beam_stream(o); });
    s_.output = options_.output;
    if (s_.output.empty())
      s_.output = vdif ? "voltage" : inputs_.n_pols == 2 ? "stokes-i" : "power";
    kind_ = kind_named(s_.output);
    s_.format = options_.format;
    if (s_.format.empty()) s_.format = kind_ != OutputKind::voltage ? "f32" : vdif ? "ci8" : "cf32";
    auto& e = engine_;
    e.n_pols = inputs_.n_pols;
    e.n_antennas = static_cast<std::int64_t>(inputs_.order.size()) / e.n_pols;
    e.n_beams = static_cast<std::int64_t>(file_.beams.size());
    e.n_channels = frequency_.n_channels;
    e.max_spectra = reader_->max_gulp;
    e.format = reader_->format;
    e.weights =
        options_.weights == "f32" ? beamform::WeightFormat::f32 : beamform::WeightFormat::i8;
    e.output = kind_;
    e.output_format = format_named(s_.format);
    e.integration = options_.integration;
    e.loss = options_.loss == "raw" ? beamform::LossMode::raw : beamform::LossMode::renormalize;
    e.implementation = options_.implementation;
    if (options_.fine_channels > 1) {
      if (kind_ == OutputKind::voltage || e.output_format != OutputFormat::f32)
        throw ConfigError("fine channels are written as power or Stokes parameters in f32");
      e.output = OutputKind::voltage;
      e.output_format = OutputFormat::cf32;
      e.integration = 1;
    }
    for (const auto& name : options_.incoherent) {
      const auto& mask = subarray(name);
      std::vector<std::uint8_t> used;
      for (const std::int64_t a : inputs_.antennas) used.push_back(mask[a] > 0 && !bad(a) ? 1 : 0);
      e.incoherent.push_back(std::move(used));
    }
  }

  const std::vector<double>& subarray(const std::string& name) const {
    std::string known;
    for (std::size_t k = 0; k < file_.subarray_names.size(); ++k) {
      if (file_.subarray_names[k] == name) return file_.subarrays[k];
      known += (k > 0 ? ", " : "") + file_.subarray_names[k];
    }
    throw ConfigError("--incoherent " + name + ": no such sub-array; the beams file has " + known);
  }
  bool bad(std::int64_t antenna) const {
    return std::any_of(inputs_.order.begin(), inputs_.order.end(), [&](std::int64_t i) {
      const auto& input = file_.array.inputs[i];
      return input.antenna == antenna && input.bad;
    });
  }

  void make_maker() {
    beamform::WeightConfig c;
    c.n_antennas = engine_.n_antennas;
    c.n_pols = engine_.n_pols;
    c.channels = {frequency_.first_center_hz, frequency_.channel_width_hz, frequency_.n_channels};
    c.gain_mode = beamform::gain_mode(file_.gain_mode);
    c.normalization = beamform::normalization(file_.normalization);
    steered_ = with_inputs(file_.array, inputs_);
    std::vector<cf32> gains;
    for (const std::int64_t i : inputs_.order) {
      const auto at = static_cast<std::size_t>(i);
      // Gains are of the samples as recorded, which the channelizer brought to one level. Without
      // gains that level is the best guess at equal sensitivities.
      cf64 gain = file_.gains.empty() ? cf64(1) : file_.gains[at];
      if (!file_.gains.empty() && !reader_->scale.empty()) gain *= reader_->scale[at];
      if (file_.array.inputs[at].bad) gain = 0;
      gains.insert(gains.end(), static_cast<std::size_t>(frequency_.n_channels), cf32(gain));
    }
    std::vector<std::vector<double>> masks;
    for (const auto& mask : file_.subarrays) {
      masks.emplace_back();
      for (const std::int64_t a : inputs_.antennas) masks.back().push_back(mask[a]);
    }
    maker_ = std::make_unique<beamform::WeightMaker>(
        c, View<const cf32, 2>{gains.data(), {engine_.n_inputs(), frequency_.n_channels}},
        std::move(masks));
    s_.n_masked_inputs = maker_->n_masked_gains() / frequency_.n_channels;
    weights_.resize(engine_.n_beams * engine_.n_channels * engine_.n_inputs());
  }

  // Phases turn with the projected baselines: nu D / c times the angle a beam moves in a second.
  void choose_update() {
    update_ = INT64_MAX / 4;
    const std::int64_t t0 = reader_->clock.tai_ns(0);
    const auto now = sky_.directions_enu(t0);
    Vector3 low{1e9, 1e9, 1e9}, high{-1e9, -1e9, -1e9};
    for (const std::int64_t a : inputs_.antennas) {
      for (int k = 0; k < 3; ++k) {
        low[k] = std::min(low[k], file_.array.antennas[a].enu_m[k]);
        high[k] = std::max(high[k], file_.array.antennas[a].enu_m[k]);
      }
    }
    const double size_m = std::hypot(high[0] - low[0], high[1] - low[1], high[2] - low[2]);
    const double top_hz = std::max(1.0, frequency_.center_hz(frequency_.n_channels - 1));
    s_.worst_delay_loss =
        beamform::delay_loss(frequency_.channel_width_hz, size_m / kSpeedOfLight_m_per_s);
    if (s_.worst_delay_loss > kLossWarned)
      s_.warnings.push_back("channels of " + std::to_string(frequency_.channel_width_hz) +
                            " Hz are wide for this array: beams at the horizon lose up to " +
                            std::to_string(100 * s_.worst_delay_loss) +
                            " % of power; more channels would do");
    if (!sky_.moves()) return;
    double fastest = 0;
    const auto later = sky_.directions_enu(t0 + 1'000'000'000);
    for (std::size_t b = 0; b < now.size(); ++b)
      fastest = std::max(fastest, std::hypot(later[b][0] - now[b][0], later[b][1] - now[b][1],
                                             later[b][2] - now[b][2]));
    const double turns_per_s = top_hz * size_m / kSpeedOfLight_m_per_s * fastest;
    double seconds = options_.update_s;
    if (!(seconds > 0))
      seconds =
          turns_per_s > 0 ? std::min(kLongestUpdate_s, kStepTurns / turns_per_s) : kLongestUpdate_s;
    update_ = std::max<std::int64_t>(
        1, static_cast<std::int64_t>(seconds * reader_->clock.rate_hz.value()));
    s_.update_s = reader_->clock.seconds(update_);
  }

  // Weights of [k, k + 1) update intervals in absolute ticks, for the middle of it.
  void point(std::int64_t interval) {
    interval_ = interval;
    const std::int64_t tai_ns = sky_.moves()
                                    ? middle_tai_ns(reader_->clock, interval * update_, update_)
                                    : reader_->clock.tai_ns(0);
    metadata_.directions_enu = sky_.directions_enu(tai_ns);
    const auto steering =
        beamform::steer(steered_, metadata_.directions_enu, frequency_.band_center_hz());
    const View<cf32, 3> view(weights_.data(),
                             {engine_.n_beams, engine_.n_channels, engine_.n_inputs()});
    maker_->make(steering, 0, file_.subarray_of_beam, view);
    beams_->set_weights(queue_, view);
    metadata_.positions.clear();
    for (std::size_t i = 0; i < engine_.incoherent.size(); ++i)
      metadata_.directions_enu.push_back({0, 0, 1});
    for (const auto& enu : metadata_.directions_enu)
      metadata_.positions.push_back(
          direction_of_enu(file_.array, enu, tai_ns, file_.earth_orientation));
    ++s_.n_updates;
  }

  void make_fine() {
    FineConfig f;
    f.beams = engine_;
    f.coarse = frequency_;
    f.rate_hz = reader_->clock.rate_hz.value();
    f.n_fine = options_.fine_channels;
    f.n_taps = options_.fine_taps;
    f.kind = kind_;
    f.integration = options_.integration;
    fine_ = std::make_unique<FineChannels>(queue_, f);
  }

  // Instants of values: the middle of what is behind the first spectrum, less half a spectrum.
  SampleClock value_clock() const {
    SampleClock clock = reader_->clock;
    const double spectrum_s = 1 / reader_->clock.rate_hz.value();
    double shift_s = reader_->window_s > 0 ? 0.5 * (reader_->window_s - spectrum_s) : 0;
    std::int64_t ticks = engine_.integration;
    if (fine_ != nullptr) {
      ticks = options_.integration * options_.fine_channels;
      shift_s += (fine_->half_window_ticks() - 0.5 * static_cast<double>(options_.fine_channels)) *
                 spectrum_s;
    }
    clock.epoch_tai_ns += std::llround(shift_s * 1e9);
    clock.rate_hz.den *= ticks;
    clock.rate_hz = clock.rate_hz.reduced();
    return clock;
  }

  void make_sinks() {
    BeamSinkInfo info;
    info.beams = beam_rows(file_.beams, options_.incoherent);
    const std::int64_t t0 = reader_->clock.tai_ns(0);
    for (const auto& enu : sky_.directions_enu(t0))
      info.positions.push_back(direction_of_enu(file_.array, enu, t0, file_.earth_orientation));
    info.positions.resize(info.beams.size(), zenith(file_.array, t0, file_.earth_orientation));
    const bool two = engine_.n_pols == 2;
    if (kind_ == OutputKind::voltage) {
      info.products = two ? std::vector<std::string>{"X", "Y"}
                          : std::vector<std::string>{options_.pol == "Y" ? "Y" : "X"};
    } else if (kind_ == OutputKind::power) {
      info.products = two ? std::vector<std::string>{"XX", "YY"}
                          : std::vector<std::string>{options_.pol == "Y" ? "YY" : "XX"};
    } else {
      info.products = kind_ == OutputKind::stokes_i ? std::vector<std::string>{"I"}
                                                    : std::vector<std::string>{"I", "Q", "U", "V"};
    }
    info.kind = kind_;
    info.format = format_named(s_.format);
    info.format_name = s_.format;
    info.frequency = fine_ != nullptr ? fine_->frequency() : frequency_;
    info.clock = value_clock();
    info.integration = options_.integration;
    info.array = &file_.array;
    info.history = run_.command_line;
    info.overwrite = options_.overwrite || config_.output.overwrite;
    for (const auto& output : options_.outputs) sinks_.push_back(make_beam_sink(output, info));
    s_.n_channels = info.frequency.n_channels;
    s_.value_interval_s = 1 / info.clock.rate_hz.value();
    const std::int64_t cells = engine_.n_rows() * n_products() * engine_.n_channels;
    metadata_.saturated_low.resize(cells);
    metadata_.saturated_high.resize(cells);
    metadata_.n_used.resize(engine_.n_rows() * engine_.n_channels);
    low_ = metadata_.saturated_low;
    high_ = metadata_.saturated_high;
    used_ = metadata_.n_used;
    if (fine_ == nullptr)
      memory_.resize(beamform::dense_output_bytes(engine_, engine_.max_windows()));
  }

  std::int64_t n_products() const {
    return engine_.output == OutputKind::voltage ? 1 : engine_.n_products();
  }

  beamform::LevelOptions level_options() const {
    beamform::LevelOptions o;
    o.interval = options_.scale_s > 0 && engine_.output != OutputKind::voltage
                     ? std::max<std::int64_t>(
                           engine_.integration,
                           std::llround(options_.scale_s * reader_->clock.rate_hz.value()))
                     : 0;
    if (engine_.output_format == OutputFormat::ci8) o.rms_codes = 16;
    // 15 levels lose least at a step of 0.335 sigma.
    if (engine_.output_format == OutputFormat::ci4) o.rms_codes = 3;
    if (engine_.output_format == OutputFormat::u16) {
      o.mean_code = 4096;
      o.rms_codes = 512;
    }
    return o;
  }

  // Scales need values before there are codes: the first ones, as floats.
  void first_levels() {
    levels_ = std::make_unique<beamform::LevelTracker>(engine_, level_options());
    beamform::Config floats = engine_;
    floats.output_format =
        engine_.output == OutputKind::voltage ? OutputFormat::cf32 : OutputFormat::f32;
    floats.dither = false;
    auto engine = make_engine(floats);
    engine->set_weights(
        queue_, {weights_.data(), {engine_.n_beams, engine_.n_channels, engine_.n_inputs()}});
    std::vector<std::byte> memory(beamform::dense_output_bytes(floats, floats.max_windows()));
    SpectraGulp gulp;
    std::int64_t values = 0;
    const std::int64_t total = n_spectra();
    const std::uint64_t lost = reader_->lost_samples;
    for (std::int64_t first = 0; first < total && values < kFirstLevels;) {
      const std::int64_t n = std::min(reader_->max_gulp, total - first);
      reader_->read(first, n, gulp);
      samples_->load(gulp, queue_);
      for (std::int64_t t = 0; t < n;) {
        const std::int64_t end = samples_->end_of_run(t);
        const std::int64_t windows = floats.n_windows(first + t, end - t);
        const auto out = beamform::dense_output(floats, memory.data(), windows);
        engine->execute(queue_, samples_->input(t, end, first + t), out);
        if (!samples_->absent(t)) {
          levels_->add_floats(out, (first + t) / floats.integration, windows);
          values += windows;
        }
        t = end;
      }
      first += n;
    }
    reader_->lost_samples = lost;
  }

  void process(Tick first, std::int64_t n) {
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t windows = engine_.n_windows(first, n);
    beamform::Output out = fine_ != nullptr
                               ? fine_->target(n)
                               : beamform::dense_output(engine_, memory_.data(), windows);
    BeamSinkGulp gulp;
    gulp.values = out;
    gulp.first = first / engine_.integration;
    gulp.n = windows;
    gulp.metadata = &metadata_;
    std::vector<std::pair<std::int64_t, std::int64_t>> absent;
    for (auto* counts : {&metadata_.saturated_low, &metadata_.saturated_high, &metadata_.n_used})
      std::fill(counts->begin(), counts->end(), 0u);
    out.saturated_low = low_.data();
    out.saturated_high = high_.data();
    out.n_used = used_.data();
    for (std::int64_t t = 0; t < n;) {
      const Tick tick = first + t;
      const std::int64_t interval = tick / update_;
      std::int64_t end = std::min(n, samples_->end_of_run(t));
      end = std::min(end, (interval + 1) * update_ - first);
      if (interval != interval_) point(interval);
      if (levels_ != nullptr) {
        end = std::min(end, levels_->next_update(tick) - first);
        rescale(tick);
      }
      const std::int64_t made = beams_->execute(queue_, samples_->input(t, end, tick), out);
      const bool nothing = samples_->absent(t);
      if (nothing) absent.emplace_back(tick, first + end);
      if (levels_ != nullptr && engine_.output != OutputKind::voltage && !nothing)
        levels_->add_codes(out, tick / engine_.integration, made);
      add(low_, metadata_.saturated_low);
      add(high_, metadata_.saturated_high);
      add(used_, metadata_.n_used);
      out.values = static_cast<std::byte*>(out.values) + made * engine_.bytes_per_value();
      t = end;
    }
    s_.beam_s += Seconds(std::chrono::steady_clock::now() - start).count();
    for (const auto& [begin, end] : absent) {
      const std::int64_t from = (begin + engine_.integration - 1) / engine_.integration;
      const std::int64_t to = end / engine_.integration;
      if (from < to) gulp.absent.emplace_back(from, to);
    }
    if (fine_ != nullptr) {
      gulp.n = fine_->take(first, n, absent);
      gulp.first = fine_->first_value();
      gulp.values = fine_->values();
      gulp.absent.clear();
    }
    tally();
    s_.n_values += gulp.n;
    if (gulp.n == 0) return;
    for (auto& sink : sinks_) sink->take(gulp);
  }

  void rescale(Tick tick) {
    if (!levels_->update(tick)) return;
    const auto scale = levels_->scale(), offset = levels_->offset();
    beams_->set_requantization(queue_, scale, offset);
    const auto size = static_cast<std::ptrdiff_t>(scale.size());
    for (auto& sink : sinks_)
      sink->scales(tick / engine_.integration, {scale.data, scale.data + size},
                   {offset.data, offset.data + size});
    ++s_.n_scale_changes;
  }

  static void add(const std::vector<std::uint32_t>& from, std::vector<std::uint32_t>& to) {
    for (std::size_t k = 0; k < to.size(); ++k) to[k] += from[k];
  }
  void tally() {
    for (const auto count : metadata_.saturated_low) s_.saturated_low += count;
    for (const auto count : metadata_.saturated_high) s_.saturated_high += count;
    for (const auto count : metadata_.n_used) used_samples_ += static_cast<double>(count);
  }

  void report(std::int64_t done, std::int64_t total, std::chrono::steady_clock::time_point start) {
    s_.data_s = reader_->clock.seconds(done);
    if (!run_.on_progress) return;
    Progress p;
    p.data_s = s_.data_s;
    p.total_s = reader_->clock.seconds(total);
    p.elapsed_s = Seconds(std::chrono::steady_clock::now() - start).count();
    p.margin = p.elapsed_s > 0 ? p.data_s / p.elapsed_s : 0;
    p.integrations = s_.n_values;
    p.state = "OK";
    run_.on_progress(p);
  }

  void conclude() {
    s_.n_beams = engine_.n_beams;
    s_.n_incoherent = static_cast<std::int64_t>(engine_.incoherent.size());
    s_.n_antennas = engine_.n_antennas;
    s_.n_pols = engine_.n_pols;
    s_.lost_samples = reader_->lost_samples;
    s_.stopped = stopped();
    double weighted = 0;
    for (const cf32& w : weights_) weighted += w != cf32(0) ? 1 : 0;
    if (weighted > 0 && s_.n_spectra > 0)
      s_.used_fraction = used_samples_ / (weighted * static_cast<double>(s_.n_spectra));
    if (!reader_->implementation.empty()) s_.implementations.push_back(reader_->implementation);
    s_.implementations.emplace_back(beams_->implementation());
    if (fine_ != nullptr) s_.implementations.emplace_back(fine_->implementation());
    const auto& warnings = recording_->info().warnings;
    s_.warnings.insert(s_.warnings.end(), warnings.begin(), warnings.end());
    if (file_.earth_orientation.table == nullptr && file_.earth_orientation.dut1_s == 0 &&
        sky_.moves())
      s_.warnings.emplace_back(
          "dut1_s is 0: beams that follow the sky are off by up to 13.5 arcsec");
  }

  const ObservationConfig& config_;
  const RecordedBeamsOptions& options_;
  const RunOptions& run_;
  BeamsFile file_;
  std::vector<std::string> files_;
  std::unique_ptr<Recording> recording_;
  std::unique_ptr<SpectraReader> reader_;
  Queue queue_;
  BeamInputs inputs_;
  BeamSky sky_;
  ArrayLayout steered_;  ///< inputs in the engine's order
  FrequencyAxis frequency_;
  OutputKind kind_ = OutputKind::power;
  beamform::Config engine_;
  std::unique_ptr<BeamSamples> samples_;
  std::unique_ptr<beamform::WeightMaker> maker_;
  std::unique_ptr<beamform::Beamformer> beams_;
  std::unique_ptr<beamform::LevelTracker> levels_;
  std::unique_ptr<FineChannels> fine_;
  std::vector<std::unique_ptr<BeamSink>> sinks_;
  std::vector<cf32> weights_;
  std::vector<std::byte> memory_;
  BeamFileWriter::Metadata metadata_;
  std::vector<std::uint32_t> low_, high_, used_;
  std::int64_t update_ = 1, interval_ = 0;
  double used_samples_ = 0;
  RecordedBeamsSummary s_;
};

}  // namespace

RecordedBeamsSummary beamform_recording(const ObservationConfig& config,
                                        const RecordedBeamsOptions& options,
                                        const RunOptions& run) {
  return RecordedBeams(config, options, run).run();
}

}  // namespace ryle::pipeline
