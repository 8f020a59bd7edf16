// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/search.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "python/src/products.hpp"
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/pipeline/config/config_fields.hpp"
#include "ryle/pipeline/search/search_products.hpp"
#include "ryle/pipeline/search/search_run.hpp"
#include "ryle/pipeline/search/search_settings.hpp"
#include "ryle/pipeline/search/search_stream.hpp"

namespace ryle::python {
namespace {

namespace se = search;

se::Band band_of(const DenseArray<double, 1>& center_hz, double channel_width_hz,
                 double sample_interval_s, const std::string& k_dm) {
  se::Band band;
  band.center_hz.assign(center_hz.data(), center_hz.data() + center_hz.size());
  band.channel_width_hz = channel_width_hz;
  band.sample_interval_s = sample_interval_s;
  band.k_dm = se::dispersion_constant(k_dm);
  return band;
}

class Dedisperser {
 public:
  Dedisperser(const DenseArray<std::int32_t, 2>& delays, int max_code, std::int64_t max_outputs,
              const std::string& implementation, double smear_samples)
      : queue_(shared_queue()), max_outputs_(max_outputs) {
    se::DedisperseConfig c;
    c.n_trials = static_cast<std::int64_t>(delays.shape(0));
    c.n_channels = static_cast<std::int64_t>(delays.shape(1));
    c.delays.assign(delays.data(), delays.data() + delays.size());
    c.max_code = max_code;
    c.max_outputs = max_outputs;
    c.implementation = implementation;
    c.smear_samples = smear_samples;
    n_trials_ = c.n_trials;
    n_channels_ = c.n_channels;
    wide_ = se::sum_format(c.n_channels, max_code) == se::SumFormat::u32;
    const nb::gil_scoped_release released;
    plan_ = se::make_dedisperser(queue_, c);
  }

  /// @shape codes [channel][time]; sums [trial][time - max_delay]
  nb::object execute(const DenseArray<std::uint8_t, 2>& codes) {
    return wide_ ? nb::cast(sums<std::uint32_t>(codes)) : nb::cast(sums<std::uint16_t>(codes));
  }

  std::int64_t max_delay() const { return plan_->max_delay(); }
  double work() const { return plan_->work(); }
  double max_track_error() const { return plan_->track_error().max_samples; }
  std::string implementation() const { return std::string(plan_->implementation()); }

 private:
  template <class T>
  Result<T> sums(const DenseArray<std::uint8_t, 2>& codes) {
    const PlanLock lock(mutex_);
    const auto n_time = static_cast<std::int64_t>(codes.shape(1));
    const std::int64_t n = n_time - plan_->max_delay();
    std::vector<T> out(count_of(n_trials_ * n));
    // Engines read beyond the last channel: a copy that has room for it, of a piece at a time.
    const std::int64_t piece = std::min(max_outputs_, n);
    const std::int64_t stride = piece + plan_->max_delay();
    std::vector<std::uint8_t> padded(count_of(n_channels_ * stride + se::kReadAhead));
    for (std::int64_t first = 0; first < n; first += piece) {
      {
        const nb::gil_scoped_release released;
        const std::int64_t now = std::min(piece, n - first), read = now + plan_->max_delay();
        for (std::int64_t c = 0; c < n_channels_; ++c)
          std::memcpy(padded.data() + c * stride, codes.data() + c * n_time + first,
                      count_of(read));
        plan_->execute(queue_, padded.data(), stride, now, out.data() + first, n);
      }
      check_signals();
    }
    return to_array(std::move(out), {count_of(n_trials_), count_of(n)});
  }

  Queue queue_;
  std::int64_t max_outputs_, n_trials_ = 0, n_channels_ = 0;
  bool wide_ = false;
  mutable std::recursive_mutex mutex_;
  std::unique_ptr<se::Dedisperser> plan_;
};

/// Settings by the names of the keys of [search]; a name that is none is an error.
class SetByName {
 public:
  explicit SetByName(const nb::dict& values) : values_(values) {}
  template <class T, class... More>
  void operator()(const char* key, T& field, More&&... /*description*/) {
    names_.push_back(key);
    if (!values_.contains(key)) return;
    ++n_taken_;
    try {
      field = nb::cast<T>(values_[key]);
    } catch (const nb::cast_error&) {
      throw ConfigError("search: " + std::string(key) +
                        " is of another type: " + nb::repr(values_[key]).c_str());
    }
  }
  void require_all() const {
    if (n_taken_ == values_.size()) return;
    std::string unknown, known;
    for (const auto& item : values_) {
      const auto key = nb::cast<std::string>(item.first);
      if (std::find(names_.begin(), names_.end(), key) == names_.end())
        unknown += (unknown.empty() ? "" : ", ") + key;
    }
    for (const auto& key : names_) known += (known.empty() ? "" : ", ") + key;
    throw ConfigError("search: " + unknown + ": no such keyword; they are " + known);
  }

 private:
  const nb::dict& values_;
  std::vector<std::string> names_;
  std::size_t n_taken_ = 0;
};

}  // namespace

nb::dict candidate_dict(const SearchCandidate& c) {
  nb::dict d;
  d["number"] = c.number;
  d["time_s"] = c.time_s;
  d["time_error_s"] = c.time_error_s;
  d["mjd_utc"] = c.mjd_utc;
  d["dm_pc_cm3"] = c.dm_pc_cm3;
  d["dm_error"] = c.dm_error;
  d["width_s"] = c.width_s;
  d["width_error_s"] = c.width_error_s;
  d["snr"] = c.snr;
  d["snr_boxcar"] = c.snr_boxcar;
  d["boxcar_samples"] = c.boxcar_samples;
  d["smearing_s"] = c.smearing_s;
  d["scattering_s"] = c.scattering_s;
  d["scattering_error_s"] = c.scattering_error_s;
  d["members"] = c.members;
  d["beam"] = c.beam;
  d["n_beams"] = c.n_beams;
  d["flags"] = c.flags;
  d["reasons"] = c.reasons;
  d["picture"] = c.picture;
  return d;
}

namespace {

nb::list candidates(const std::vector<SearchCandidate>& events) {
  nb::list list;
  for (const auto& e : events) list.append(candidate_dict(e));
  return list;
}

/// @shape power [channel][time], NaN = absent
nb::tuple search_array(const DenseArray<float, 2>& power, const DenseArray<double, 1>& center_hz,
                       double channel_width_hz, double sample_interval_s, double start_mjd_utc,
                       const pipeline::SearchSettings& settings) {
  const auto n_samples = static_cast<std::int64_t>(power.shape(1));
  const se::Band band = band_of(center_hz, channel_width_hz, sample_interval_s, settings.k_dm);
  pipeline::BeamSearchConfig config;
  config.chain = pipeline::search_chain(settings, {band, n_samples, false});
  pipeline::SearchProductOptions options;
  options.pictures = false;
  pipeline::set_products(settings, options);
  options.voevents = false;
  pipeline::BeamSearch beams(config);
  pipeline::SearchProducts products(options, band, config.chain.dms);
  SearchDescription description;
  description.start_mjd_utc = start_mjd_utc;
  description.n_samples = n_samples;
  pipeline::describe_search(config.chain, beams, description);
  products.begin(description);
  std::vector<pipeline::BeamEvent> found;
  const std::int64_t block = config.chain.block_samples;
  for (std::int64_t first = 0; first < n_samples; first += block) {
    {
      const nb::gil_scoped_release released;
      beams.feed(power.data() + first, 0, n_samples, std::min(block, n_samples - first), found);
      products.add(found, 0, 0);
    }
    check_signals();
  }
  {
    const nb::gil_scoped_release released;
    beams.finish(found);
    products.add(found, 0, 0);
  }
  const std::vector<double>& dms = config.chain.dms;
  return nb::make_tuple(candidates(products.events()), to_array(std::vector<double>(dms)),
                        beams.implementation(), beams.n_flagged_channels(), beams.counts().n_hits);
}

nb::list search_files(const std::vector<std::string>& files, const std::string& output_directory,
                      const std::string& name, bool overwrite, bool pictures,
                      const std::string& polarization, int n_workers, nb::object on_progress,
                      const pipeline::SearchSettings& settings) {
  pipeline::SearchOptions o;
  static_cast<pipeline::SearchSettings&>(o) = settings;
  o.file = files.front();
  o.more_files.assign(files.begin() + 1, files.end());
  o.output_directory = output_directory;
  o.name = name;
  o.overwrite = overwrite;
  o.pictures = pictures;
  o.input.polarization = polarization;
  o.n_workers = n_workers;
  o.command_line = "ryle.search";
  std::atomic<int> stop{0};
  o.stop = &stop;
  Callback progress(std::move(on_progress), stop);
  if (progress)
    o.on_progress = [&](double data_s, double total_s, std::int64_t n) {
      progress.call([&] { return nb::make_tuple(data_s, total_s, n); });
    };
  std::vector<pipeline::SearchSummary> all;
  run_interruptibly(stop, [&] { all = pipeline::search_files(o); });
  progress.rethrow();
  nb::list list;
  for (const auto& s : all) {
    nb::dict d;
    d["file"] = s.description.file;
    d["plan"] = s.description.plan;
    d["n_trials"] = s.description.n_trials;
    d["reference_hz"] = s.description.reference_hz;
    d["implementation"] = s.description.implementation;
    d["data_s"] = s.data_s;
    d["elapsed_s"] = s.elapsed_s;
    d["n_hits"] = s.n_hits;
    d["flagged_channels"] = s.flagged_channels;
    d["candidates"] = candidates(s.events);
    d["products"] = s.products;
    d["warnings"] = s.warnings;
    d["notes"] = s.notes;
    list.append(d);
  }
  return list;
}

pipeline::SearchSettings settings_of(const nb::dict& values) {
  pipeline::SearchSettings settings;
  SetByName set(values);
  pipeline::fields(set, settings);
  set.require_all();
  return settings;
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::class_<Dedisperser>(m, "Dedisperser")
      .def(nb::init<const DenseArray<std::int32_t, 2>&, int, std::int64_t, const std::string&,
                    double>(),
           nb::arg("delays").noconvert(), nb::arg("max_code"), nb::arg("max_outputs"),
           nb::arg("implementation"), nb::arg("smear_samples"))
      .def("execute", &Dedisperser::execute, nb::arg("codes").noconvert())
      .def_prop_ro("max_delay", &Dedisperser::max_delay)
      .def_prop_ro("work", &Dedisperser::work)
      .def_prop_ro("max_track_error", &Dedisperser::max_track_error)
      .def_prop_ro("implementation", &Dedisperser::implementation);
  m.def(
      "delay_table",
      [](const DenseArray<double, 1>& center_hz, double channel_width_hz, double sample_interval_s,
         const std::string& k_dm, const std::vector<double>& dms) {
        auto delays =
            se::delay_table(band_of(center_hz, channel_width_hz, sample_interval_s, k_dm), dms);
        return to_array(std::move(delays), {dms.size(), center_hz.size()});
      },
      nb::arg("center_hz").noconvert(), nb::arg("channel_width_hz"), nb::arg("sample_interval_s"),
      nb::arg("k_dm"), nb::arg("dms"));
  m.def(
      "dm_trials",
      [](const DenseArray<double, 1>& center_hz, double channel_width_hz, double sample_interval_s,
         const std::string& k_dm, const std::string& kind, double dm_min, double dm_max,
         double step, std::int64_t count, double tolerance) {
        se::DmPlanConfig plan;
        plan.kind = kind;
        plan.dm_min = dm_min;
        plan.dm_max = dm_max;
        plan.step = step;
        plan.count = count;
        plan.tolerance = tolerance;
        auto dms =
            se::dm_trials(band_of(center_hz, channel_width_hz, sample_interval_s, k_dm), plan);
        return to_array(std::move(dms));
      },
      nb::arg("center_hz").noconvert(), nb::arg("channel_width_hz"), nb::arg("sample_interval_s"),
      nb::arg("k_dm"), nb::arg("kind"), nb::arg("dm_min"), nb::arg("dm_max"), nb::arg("step"),
      nb::arg("count"), nb::arg("tolerance"));
  m.def(
      "search_array",
      [](const DenseArray<float, 2>& power, const DenseArray<double, 1>& center_hz,
         double channel_width_hz, double sample_interval_s, double start_mjd_utc,
         const nb::dict& settings) {
        return search_array(power, center_hz, channel_width_hz, sample_interval_s, start_mjd_utc,
                            settings_of(settings));
      },
      nb::arg("power").noconvert(), nb::arg("center_hz").noconvert(), nb::arg("channel_width_hz"),
      nb::arg("sample_interval_s"), nb::arg("start_mjd_utc"), nb::arg("settings"));
  m.def(
      "search_files",
      [](const std::vector<std::string>& files, const std::string& output_directory,
         const std::string& name, bool overwrite, bool pictures, const std::string& polarization,
         int n_workers, nb::object on_progress, const nb::dict& settings) {
        return search_files(files, output_directory, name, overwrite, pictures, polarization,
                            n_workers, std::move(on_progress), settings_of(settings));
      },
      nb::arg("files"), nb::arg("output_directory"), nb::arg("name"), nb::arg("overwrite"),
      nb::arg("pictures"), nb::arg("polarization"), nb::arg("n_workers"),
      nb::arg("on_progress").none(), nb::arg("settings"));
  m.def("search_implementations", &se::available_implementations);
}

}  // namespace ryle::python
