// SPDX-License-Identifier: BSD-3-Clause
// Scans among named arrays: HEGrid's planes, HCGrid's signals, HiFAST's cubes, or arrays named by
// the user or by habit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <numeric>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/io/scan/scan_arrays.hpp"

namespace ryle::io {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kMaxPolarizations = 4;

/// Which axis of an array is what; kNone: it has none.
struct NamedAxes {
  std::size_t sample = kNone, channel = kNone, polarization = kNone;
};

class NamedScans final : public ScanFile {
 public:
  NamedScans(const std::string& path, const std::string& kind, std::unique_ptr<ScanArrays> arrays,
             const ScanOptions& options)
      : arrays_(std::move(arrays)), options_(options) {
    metadata_.path = path;
    if (!options.select.empty())
      throw ConfigError(path + ": rows are selected in SDFITS files; this is " + kind);
    const bool hifast = arrays_->find("S/ra") != nullptr && arrays_->find("S/freq") != nullptr;
    const bool hcgrid = arrays_->find("coords/xcoords") != nullptr;
    if (hcgrid && options.longitude.empty()) {
      longitude_ = *find("coords/xcoords", {}, "longitudes");
      latitude_ = *find("coords/ycoords", {}, "latitudes");
    } else {
      longitude_ = *find(options.longitude, longitude_names(), "longitudes");
      latitude_ = *find(options.latitude, latitude_names(), "latitudes");
    }
    metadata_.n_samples = longitude_.count();
    if (latitude_.count() != metadata_.n_samples)
      throw FormatError(path + ": " + std::to_string(metadata_.n_samples) + " longitudes in " +
                        longitude_.name + ", but " + std::to_string(latitude_.count()) +
                        " latitudes in " + latitude_.name);
    longitude_degrees_ = longitude_degrees(options, longitude_.unit, metadata_);
    const std::string name = longitude_.last_part();
    if (name == "glon" || name == "l")
      metadata_.frame = SkyFrame::galactic;
    else
      metadata_.frame = frame_of_positions(name);
    metadata_.frame_known = metadata_.frame_known || metadata_.frame != SkyFrame::icrs;
    if (options.data.empty() && (find_planes("value/flux_") || find_planes("signal/signal_"))) {
      metadata_.format = hcgrid ? "HCGrid HDF5" : "HEGrid HDF5";
      check_hegrid();
    } else {
      find_values(hifast);
      metadata_.format =
          kind + " (" + longitude_.name + ", " + latitude_.name + ", " + values_.name + ")";
      if (hifast) name_hifast();
    }
    find_weights();
    find_flags();
  }

  const ScanMetadata& metadata() const override { return metadata_; }

  void read_positions(std::vector<double>& longitude_deg,
                      std::vector<double>& latitude_deg) override {
    longitude_deg = arrays_->numbers(longitude_);
    latitude_deg = arrays_->numbers(latitude_);
    const double a = longitude_degrees_;
    const double b = degrees_in(latitude_.unit, metadata_.path);
    if (a != 1)
      for (double& l : longitude_deg) l *= a;
    if (b != 1)
      for (double& l : latitude_deg) l *= b;
    check_longitudes(longitude_deg, latitude_deg, metadata_);
  }

  void read_positions_of(std::int64_t first, std::int64_t n, double* longitude_deg,
                         double* latitude_deg) override {
    // Some at a time: both as numbers of double are as large as the result.
    constexpr std::int64_t kTogether = std::int64_t{1} << 17;
    const bool in_pieces = arrays_->raw(longitude_) && arrays_->raw(latitude_);
    if (in_pieces && n > kTogether)
      return on_threads((n + kTogether - 1) / kTogether, [&](std::int64_t piece) {
        const std::int64_t k = piece * kTogether;
        read_positions_of(first + k, std::min(kTogether, n - k), longitude_deg + k,
                          latitude_deg + k);
      });
    const auto lon = arrays_->numbers_of(longitude_, first, n),
               lat = arrays_->numbers_of(latitude_, first, n);
    const double a = longitude_degrees_;
    const double b = degrees_in(latitude_.unit, metadata_.path);
    for (std::size_t k = 0; k < lon.size(); ++k) {
      longitude_deg[k] = a * lon[k];
      latitude_deg[k] = b * lat[k];
    }
  }

  void read_channels(std::int64_t first, std::int64_t n, float* values) override {
    read_channels_of(first, n, 0, metadata_.n_samples, values);
  }
  void read_channels_of(std::int64_t first_channel, std::int64_t n_channels, std::int64_t first,
                        std::int64_t n, float* values) override {
    const SampleRange samples{first, n};
    std::vector<RawRead> reads;
    const auto add = [&](const ScanArray& array, const NamedAxes& axes, std::int64_t from,
                         std::int64_t count, float* to) {
      if (const auto place = arrays_->raw(array)) {
        require_channels(array, axes, from, count);
        reads.push_back(
            {place->file, some_of(raw_samples(array, axes, *place), first, n), from, count, to});
      } else {
        read_array(array, axes, samples, from, count, to);
      }
    };
    if (planes_.empty()) add(values_, axes_, first_channel, n_channels, values);
    for (std::int64_t c = 0; !planes_.empty() && c < n_channels; ++c) {
      const ScanArray& plane = planes_[first_channel + c];
      add(plane, plane_axes(plane), 0, 1, values + c * n);
    }
    read_raw_all(reads);
  }
  bool has_weights() const override { return weights_.numbers && !has_channel_weights(); }
  bool has_channel_weights() const override {
    return weights_.numbers && weight_axes_.channel != kNone;
  }
  void read_channel_weights_of(std::int64_t first_channel, std::int64_t n_channels,
                               std::int64_t first, std::int64_t n, float* weights) override {
    if (!has_channel_weights())
      return ScanFile::read_channel_weights_of(first_channel, n_channels, first, n, weights);
    read_array(weights_, weight_axes_, {first, n}, first_channel, n_channels, weights);
  }
  void read_weights(float* weights) override {
    if (!has_weights()) return ScanFile::read_weights(weights);
    const auto all = arrays_->numbers(weights_);
    std::transform(all.begin(), all.end(), weights, [](double w) { return static_cast<float>(w); });
  }
  bool has_flags() const override { return flags_.numbers; }
  void read_flags(std::int64_t first, std::int64_t n, std::uint8_t* flags) override {
    read_flags_of(first, n, 0, metadata_.n_samples, flags);
  }
  void read_flags_of(std::int64_t first_channel, std::int64_t n_channels, std::int64_t first,
                     std::int64_t n, std::uint8_t* flags) override {
    if (!has_flags()) {
      std::fill_n(flags, n_channels * n, std::uint8_t{0});
      return;
    }
    if (flag_axes_.channel != kNone || metadata_.n_channels == 1)
      return read_array(flags_, flag_axes_, {first, n}, first_channel, n_channels, flags);
    read_array(flags_, flag_axes_, {first, n}, 0, 1, flags);  // of samples: of all their channels
    for (std::int64_t c = 1; c < n_channels; ++c) std::copy_n(flags, n, flags + c * n);
  }

 private:
  const ScanArray* find(const std::string& wanted, const std::vector<std::string>& names,
                        const std::string& what) const {
    const auto usable = [&](const ScanArray& s) { return s.numbers && s.count() > 0; };
    if (!wanted.empty()) {
      const ScanArray* found = arrays_->find(wanted);
      if (found != nullptr && usable(*found)) return found;
      throw FormatError(metadata_.path + ": no data set " + wanted +
                        " of numbers; there are:" + arrays_->list());
    }
    for (const auto& name : names)
      for (const auto& s : arrays_->arrays())
        if (usable(s) && s.last_part() == name) return &s;
    throw FormatError(metadata_.path + ": no data set of " + what +
                      " (ra, dec, lon, lat, glon, glat); name it with --hdf5 "
                      "lon=/NAME,lat=/NAME,data=/NAME; there are:" +
                      arrays_->list());
  }

  // As attributes of the longitudes, of their group or of the file say, or keywords of a table.
  SkyFrame frame_of_positions(const std::string& longitude) {
    const auto slash = longitude_.name.rfind('/');
    const std::vector<std::string> places{
        longitude_.name, slash == std::string::npos ? "/" : longitude_.name.substr(0, slash), "/",
        "Header"};
    const auto said = [&](const std::vector<const char*>& names) {
      for (const std::string& place : places)
        for (const char* name : names)
          if (const std::string text = arrays_->attribute(place, name); !text.empty()) return text;
      return std::string();
    };
    const std::string system = said({"RADESYS", "RADECSYS", "radesys", "radecsys"});
    metadata_.frame_known = !system.empty();
    double equinox = scan_number(said({"EQUINOX", "equinox"}));
    if (longitude == "ra2000" || longitude == "raj2000") equinox = 2000;
    return equatorial_frame(system, equinox, metadata_.path);
  }

  /// "value/flux_0", "value/flux_1", ...: by number, as flux_10 sorts before flux_2.
  bool find_planes(const std::string& stem) {
    for (std::int64_t c = 0;; ++c) {
      const ScanArray* found = arrays_->find(stem + std::to_string(c));
      if (found == nullptr) break;
      if (!found->numbers || found->count() != metadata_.n_samples)
        throw FormatError(metadata_.path + ": " + found->name + " has " +
                          std::to_string(found->count()) + " values for " +
                          std::to_string(metadata_.n_samples) + " samples");
      planes_.push_back(*found);
    }
    metadata_.n_channels = metadata_.frequency.n_channels =
        static_cast<std::int64_t>(planes_.size());
    if (!planes_.empty()) metadata_.unit = planes_[0].unit;
    return !planes_.empty();
  }

  // The counts HEGrid writes beside the data.
  void check_hegrid() {
    const std::string n_samples = arrays_->attribute("coords", "data_size");
    const std::string n_channels = arrays_->attribute("freq", "channel_num");
    if (!n_samples.empty() && scan_number(n_samples) != static_cast<double>(metadata_.n_samples))
      throw FormatError(fmt::format("{}: data_size is {}, there are {} positions", metadata_.path,
                                    n_samples, metadata_.n_samples));
    if (!n_channels.empty() && scan_number(n_channels) != static_cast<double>(metadata_.n_channels))
      throw FormatError(fmt::format("{}: channel_num is {}, there are {} channels without a gap",
                                    metadata_.path, n_channels, metadata_.n_channels));
  }

  void find_values(bool hifast) {
    const std::vector<double> center_hz = frequencies(hifast);
    if (!options_.data.empty())
      values_ = *find(options_.data, {}, "values");
    else if (hifast)
      values_ = *find("", {"flux", "ta", "t", "power"}, "spectra (flux, Ta, Power)");
    else
      values_ = guess_values();
    if (!center_hz.empty() && assign(values_, static_cast<std::int64_t>(center_hz.size()), axes_))
      metadata_.frequency = linear_axis(center_hz, descending_, metadata_.path);
    else if (!assign(values_, 0, axes_))
      throw FormatError(metadata_.path + ": " + values_.name +
                        " has neither rows nor columns for " + std::to_string(metadata_.n_samples) +
                        " samples; there are:" + arrays_->list());
    else if (!center_hz.empty())
      metadata_.warnings.push_back(fmt::format("{} frequencies, but {} channels: they are not used",
                                               center_hz.size(), length(values_, axes_.channel)));
    metadata_.n_channels = metadata_.frequency.n_channels = length(values_, axes_.channel);
    metadata_.samples_first = axes_.channel != kNone && axes_.sample < axes_.channel;
    if (!values_.unit.empty()) metadata_.unit = values_.unit;
    const std::int64_t n_polarizations = length(values_, axes_.polarization);
    if (n_polarizations > 1) {
      std::vector<std::string> names;
      for (std::int64_t p = 0; p < n_polarizations; ++p) names.push_back(std::to_string(p));
      if (hifast && n_polarizations == 2) names = {"XX", "YY"};
      const auto chosen = choose_polarizations(names, options_.polarization, metadata_.path);
      polarizations_ = chosen.which;
      metadata_.polarizations = names;
      metadata_.polarization = chosen.text;
    }
  }

  std::vector<double> frequencies(bool hifast) {
    const ScanArray* found = nullptr;
    if (!options_.frequency.empty()) found = find(options_.frequency, {}, "frequencies");
    for (const char* name : {"freq", "frequency", "freq_hz", "frequency_hz", "freq_mhz"})
      for (const auto& s : arrays_->arrays())
        if (found == nullptr && s.numbers && s.count() > 0 && s.last_part() == name) found = &s;
    if (found == nullptr) return {};
    auto center_hz = arrays_->numbers(*found);
    // No dish hears 1 MHz given in Hz, none 1e6 MHz, none less than 10 MHz.
    const double maximum = *std::max_element(center_hz.begin(), center_hz.end());
    const double otherwise = hifast ? 1e6 : maximum < 10 ? 1e9 : maximum < 1e6 ? 1e6 : 1;
    const double factor = hertz_in(found->unit, otherwise, metadata_.path);
    if (found->unit.empty() && !hifast)
      metadata_.choices.push_back(fmt::format("frequencies of {} have no unit: {} is taken",
                                              found->name,
                                              factor == 1     ? "Hz"
                                              : factor == 1e6 ? "MHz"
                                                              : "GHz"));
    for (double& f : center_hz) f *= factor;
    return center_hz;
  }

  ScanArray guess_values() const {
    std::vector<const ScanArray*> fit;
    NamedAxes axes;
    for (const auto& s : arrays_->arrays()) {
      if (!s.numbers || s.name == longitude_.name || s.name == latitude_.name) continue;
      if (assign(s, 0, axes) && !is_beside_values(s)) fit.push_back(&s);
    }
    if (fit.size() == 1) return *fit[0];
    for (const char* name :
         {"ta", "data", "flux", "tb", "t", "value", "values", "spectra", "spectrum"})
      for (const auto* s : fit)
        if (s->last_part() == name) return *s;
    throw FormatError(metadata_.path + ": " + (fit.empty() ? "no" : "more than one") +
                      " data set with a value for each of " + std::to_string(metadata_.n_samples) +
                      " samples; name it with --hdf5 data=/NAME; there are:" + arrays_->list());
  }

  // Flags and weights have the shape of what they speak of.
  bool is_beside_values(const ScanArray& array) const {
    const std::string name = array.last_part();
    const auto& flags = flag_names();
    return name == "weight" || name == "weights" ||
           std::find(flags.begin(), flags.end(), name) != flags.end() ||
           (!options_.flags.empty() && &array == arrays_->find(options_.flags)) ||
           &array == arrays_->find(weights_column(options_.weights));
  }

  static std::int64_t length(const ScanArray& array, std::size_t axis) {
    return axis == kNone ? 1 : array.shape[axis];
  }

  /// Which axes are samples, channels, polarizations, by their lengths; n_channels 0: any.
  bool assign(const ScanArray& array, std::int64_t n_channels, NamedAxes& axes) const {
    std::vector<std::size_t> real;  // axes of length 1 say nothing
    for (std::size_t k = 0; k < array.shape.size(); ++k)
      if (array.shape[k] != 1) real.push_back(k);
    // "p": polarization, "s": sample, "c": channel, in the order of preference.
    static const std::array<std::vector<const char*>, 4> kOrders{
        std::vector<const char*>{""},
        {"s", "c"},
        {"sc", "cs", "ps", "sp"},
        {"psc", "spc", "scp", "pcs", "cps", "csp"}};
    if (real.size() >= kOrders.size()) return false;
    for (const std::string order : kOrders[real.size()]) {
      NamedAxes tried;
      bool good = true;
      for (std::size_t k = 0; k < real.size(); ++k) {
        const std::int64_t n = array.shape[real[k]];
        if (order[k] == 's') {
          tried.sample = real[k];
          good = good && n == metadata_.n_samples;
        } else if (order[k] == 'p') {
          tried.polarization = real[k];
          good = good && n <= kMaxPolarizations;
        } else {
          tried.channel = real[k];
          good = good && (n_channels == 0 || n == n_channels);
        }
      }
      good = good && (tried.sample != kNone || metadata_.n_samples == 1) &&
             (tried.channel != kNone || n_channels <= 1) &&
             (tried.polarization == kNone || tried.channel != kNone || n_channels == 1);
      if (good) {
        axes = tried;
        return true;
      }
    }
    return false;
  }

  NamedAxes plane_axes(const ScanArray& plane) const {
    NamedAxes axes;
    for (std::size_t k = 0; k < plane.shape.size(); ++k)
      if (plane.shape[k] == metadata_.n_samples && axes.sample == kNone) axes.sample = k;
    return axes;
  }

  // HiFAST: [polarization][time][channel] in the group S, attributes in the group Header.
  void name_hifast() {
    metadata_.format = "HiFAST HDF5 (" + values_.last_part() + ")";
    const auto slash = metadata_.path.rfind('/');
    const std::string file = metadata_.path.substr(slash == std::string::npos ? 0 : slash + 1);
    const auto beam = file.rfind("-M");
    if (beam != std::string::npos && beam + 4 <= file.size() &&
        std::isdigit(static_cast<unsigned char>(file[beam + 2])) != 0 &&
        std::isdigit(static_cast<unsigned char>(file[beam + 3])) != 0) {
      metadata_.format += ", beam " + file.substr(beam + 1, 3);
      metadata_.beam = std::stoll(file.substr(beam + 2, 2));
    }
    metadata_.telescope = "FAST";
    if (values_.unit.empty())
      metadata_.unit = values_.last_part() == "flux"                               ? "Jy/beam"
                       : values_.last_part() == "ta" || values_.last_part() == "t" ? "K"
                                                                                   : "";
    metadata_.spectral_frame = upper_case(arrays_->attribute("Header", "frame"));
    const ScanArray* mjd = arrays_->find("S/mjd");
    if (mjd != nullptr && mjd->numbers && mjd->count() > 0)
      metadata_.observed_utc = iso_of_mjd(arrays_->numbers(*mjd)[0]);
  }

  void find_weights() {
    const std::string name = weights_column(options_.weights);
    if (name.empty() && options_.weights != "none" && !options_.weights.empty())
      throw ConfigError(metadata_.path + ": weights " + options_.weights +
                        " need TSYS and EXPOSURE of an SDFITS file; column:NAME takes a data set");
    if (name.empty()) return;
    weights_ = *find(name, {}, "weights");
    if (!lies_beside(weights_, weight_axes_))
      throw ConfigError(fmt::format(
          "{}: {} has neither a number for each of {} samples nor one for each of their {} "
          "channels; there are:{}",
          metadata_.path, name, metadata_.n_samples, metadata_.n_channels, arrays_->list()));
    if (weight_axes_.polarization != kNone && polarizations_.size() > 1)
      throw UnsupportedError(metadata_.path + ": " + name +
                             " weighs polarizations apart, of which the mean is read; --pol XX or "
                             "--pol XX,YY works");
  }

  /// Numbers of samples (no channel axis), or of samples and channels laid out as they like.
  bool lies_beside(const ScanArray& array, NamedAxes& axes) const {
    axes = {};
    if (array.count() == metadata_.n_samples) {
      axes = plane_axes(array);
      return true;
    }
    if (planes_.empty() && array.shape == values_.shape) {
      axes = axes_;
      return true;
    }
    return assign(array, metadata_.n_channels, axes);
  }

  void find_flags() {
    if (options_.flags == "none") return;
    if (!options_.flags.empty()) {
      flags_ = *find(options_.flags, {}, "flags");
      if (!lies_beside(flags_, flag_axes_))
        throw ConfigError(fmt::format(
            "{}: {} has neither a flag for each of {} samples nor one for each of their {} "
            "channels; there are:{}",
            metadata_.path, flags_.name, metadata_.n_samples, metadata_.n_channels,
            arrays_->list()));
      return;
    }
    for (const std::string& name : flag_names())
      for (const ScanArray& array : arrays_->arrays()) {
        if (array.last_part() != name || !array.numbers || array.count() == 0) continue;
        if (array.name == values_.name || array.name == weights_.name) continue;
        if (!lies_beside(array, flag_axes_)) {
          metadata_.warnings.push_back(array.name +
                                       " has neither a flag for each sample nor one for "
                                       "each of its channels and is not used");
          continue;
        }
        flags_ = array;
        metadata_.choices.push_back("flags are those of " + array.name +
                                    ", not 0 is absent; --flags none leaves them out");
        return;
      }
  }

  struct SampleRange {
    std::int64_t first, n;
  };

  template <class Out>
  void read_array(const ScanArray& array, const NamedAxes& axes, SampleRange samples,
                  std::int64_t first, std::int64_t n, Out* out) {
    require_channels(array, axes, first, n);
    const auto place = arrays_->raw(array);
    if (!place) return read_boxes(array, axes, polarizations_of(axes), samples, first, n, out);
    read_raw(*place->file, some_of(raw_samples(array, axes, *place), samples.first, samples.n),
             first, n, out);
  }

  void require_channels(const ScanArray& array, const NamedAxes& axes, std::int64_t first,
                        std::int64_t n) const {
    if (first < 0 || n < 0 || first + n > length(array, axes.channel))
      throw ConfigError(fmt::format("{}: channels {} .. {} of {}", metadata_.path, first, first + n,
                                    length(array, axes.channel)));
  }

  std::vector<std::size_t> polarizations_of(const NamedAxes& axes) const {
    return axes.polarization != kNone ? polarizations_ : std::vector<std::size_t>{0};
  }

  RawSamples raw_samples(const ScanArray& array, const NamedAxes& axes,
                         const RawLayout& place) const {
    const auto step = [&](std::size_t axis) { return axis == kNone ? 0 : place.step_bytes[axis]; };
    RawSamples s;
    s.number = place.number;
    s.n_samples = metadata_.n_samples;
    s.n_channels = length(array, axes.channel);
    s.first_byte = place.first_byte;
    s.sample_step_bytes = step(axes.sample);
    s.channel_step_bytes = step(axes.channel);
    // One channel: its values are a row, however far apart.
    if (axes.channel == kNone) s.channel_step_bytes = s.sample_step_bytes + s.number.bytes;
    s.descending = descending_;
    s.polarization_bytes.clear();
    for (const std::size_t p : polarizations_of(axes))
      s.polarization_bytes.push_back(static_cast<std::int64_t>(p) * step(axes.polarization));
    return s;
  }

  /// Through the library, some 4 million numbers at a time.
  template <class Out>
  void read_boxes(const ScanArray& array, const NamedAxes& axes,
                  const std::vector<std::size_t>& polarizations, SampleRange samples,
                  std::int64_t first, std::int64_t n, Out* out) {
    const std::int64_t n_channels = length(array, axes.channel), total = samples.n;
    const std::int64_t n_polarizations = length(array, axes.polarization);
    const std::int64_t stored = descending_ ? n_channels - first - n : first;
    const std::int64_t chunk = std::max<std::int64_t>(1, arrays_->rows_together(array));
    std::int64_t rows = std::max<std::int64_t>(1, (1 << 22) / (n * n_polarizations));
    if (rows > chunk) rows -= rows % chunk;
    std::vector<std::int64_t> start(array.shape.size(), 0), count(array.shape.size(), 1),
        step(start);
    if (axes.channel != kNone) start[axes.channel] = stored, count[axes.channel] = n;
    if (axes.polarization != kNone) count[axes.polarization] = n_polarizations;
    std::vector<float> box(std::min(rows, total) * n * n_polarizations);
    const float share = 1 / static_cast<float>(polarizations.size());
    for (std::int64_t s = 0; s < total; s += rows) {
      const std::int64_t n_here = std::min(rows, total - s);
      if (axes.sample != kNone) start[axes.sample] = samples.first + s, count[axes.sample] = n_here;
      arrays_->read_box(array, start, count, box.data());
      std::int64_t each = 1;
      for (std::size_t k = count.size(); k-- > 0; each *= count[k]) step[k] = each;
      const auto by = [&](std::size_t axis) { return axis == kNone ? 0 : step[axis]; };
      for (std::int64_t c = 0; c < n; ++c) {
        Out* row = out + (descending_ ? n - 1 - c : c) * total + s;
        const float* from = box.data() + c * by(axes.channel);
        for (std::int64_t k = 0; k < n_here; ++k) {
          float sum = 0;
          bool any = false;
          for (const std::size_t p : polarizations) {
            const float v =
                from[k * by(axes.sample) + static_cast<std::int64_t>(p) * by(axes.polarization)];
            sum += v;
            any = any || v != 0;
          }
          if constexpr (std::is_same_v<Out, std::uint8_t>)
            row[k] = any ? 1 : 0;
          else
            row[k] = sum * share;
        }
      }
    }
  }

  std::unique_ptr<ScanArrays> arrays_;
  ScanOptions options_;
  ScanMetadata metadata_;
  ScanArray longitude_, latitude_, values_, weights_, flags_;
  NamedAxes axes_, flag_axes_, weight_axes_;
  double longitude_degrees_ = 1;  ///< of one of its longitudes
  bool descending_ = false;
  std::vector<std::size_t> polarizations_{0};
  std::vector<ScanArray> planes_;
};

}  // namespace

std::int64_t ScanArray::count() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::string ScanArray::last_part() const { return lower_case(name.substr(name.rfind('/') + 1)); }

void ScanArrays::read_box(const ScanArray& array, const std::vector<std::int64_t>&,
                          const std::vector<std::int64_t>&, float*) {
  throw UnsupportedError("the array " + array.name + " cannot be read in blocks");
}

RawSamples ScanArrays::row_of(const ScanArray& array, const RawLayout& place) {
  // One axis is longer than 1, or they lie one behind the other.
  RawSamples s;
  s.number = place.number;
  s.n_samples = array.count();
  s.first_byte = place.first_byte;
  s.sample_step_bytes = place.number.bytes;
  for (std::size_t k = 0; k < array.shape.size(); ++k)
    if (array.shape[k] == s.n_samples) s.sample_step_bytes = place.step_bytes[k];
  return s;
}

std::vector<double> ScanArrays::numbers(const ScanArray& array) {
  const auto place = raw(array);
  if (!place) throw UnsupportedError("the array " + array.name + " cannot be read");
  return read_raw_numbers(*place->file, row_of(array, *place));
}

std::vector<double> ScanArrays::numbers_of(const ScanArray& array, std::int64_t first,
                                           std::int64_t n) {
  if (const auto place = raw(array))
    return read_raw_numbers(*place->file, some_of(row_of(array, *place), first, n));
  const auto all = numbers(array);
  return {all.begin() + first, all.begin() + first + n};
}

std::string ScanArrays::attribute(const std::string&, const std::string&) { return {}; }

const ScanArray* ScanArrays::find(const std::string& name) const {
  for (const auto& a : arrays_)
    if (a.name == name || "/" + a.name == name) return &a;
  return nullptr;
}

std::string ScanArrays::list() const {
  std::string text;
  for (const auto& s : arrays_) {
    text += " " + s.name + " [";
    for (std::size_t k = 0; k < s.shape.size(); ++k)
      text += (k > 0 ? "," : "") + std::to_string(s.shape[k]);
    text += "]";
  }
  return text.empty() ? " none" : text;
}

const std::vector<std::string>& longitude_names() {
  static const std::vector<std::string> kNames{"ra",      "lon",  "longitude", "ra2000",
                                               "raj2000", "glon", "l"};
  return kNames;
}
const std::vector<std::string>& latitude_names() {
  static const std::vector<std::string> kNames{"dec",      "lat",     "latitude", "dec2000",
                                               "decj2000", "dej2000", "glat",     "b"};
  return kNames;
}

std::unique_ptr<ScanFile> open_named_scans(const std::string& path, const std::string& kind,
                                           std::unique_ptr<ScanArrays> arrays,
                                           const ScanOptions& options) {
  return std::make_unique<NamedScans>(path, kind, std::move(arrays), options);
}

}  // namespace ryle::io
