// SPDX-License-Identifier: BSD-3-Clause
// Single-dish FITS: one row, one spectrum. GBT, Parkes, FAST and CLASS write it, each its own way:
// axes come from TDIM and CTYPEn, columns from their names, never from a number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/scan/scan_formats.hpp"
#include "ryle/io/scan/scan_sdfits.hpp"

namespace ryle::io {
namespace {

constexpr double kNot_known = std::numeric_limits<double>::quiet_NaN();

bool begins(const std::string& text, const char* with) { return text.rfind(with, 0) == 0; }

/// Words of SPECSYS behind "FREQ-" of the old dialects (AIPS memo 27).
std::string spectral_frame_of(const std::string& ctype, const std::string& specsys) {
  if (!specsys.empty()) return upper_case(specsys);
  static const std::pair<const char*, const char*> kWords[] = {
      {"-OBS", "TOPOCENT"}, {"-TOP", "TOPOCENT"}, {"-LSR", "LSRK"},     {"-LSD", "LSRD"},
      {"-HEL", "HELIOCEN"}, {"-BAR", "BARYCENT"}, {"-GEO", "GEOCENTR"}, {"-GAL", "GALACTOC"},
      {"-LGR", "LOCALGRP"}, {"-CMB", "CMBDIPOL"}};
  for (const auto& [suffix, word] : kWords)
    if (ctype.size() > 4 && ctype.compare(ctype.size() - 4, 4, suffix) == 0) return word;
  return {};
}

class SdfitsScans final : public ScanFile {
 public:
  SdfitsScans(const FitsScans& file, const ScanOptions& options)
      : raw_(file.raw), options_(options), rows_(file, options) {
    metadata_.path = file.path;
    metadata_.format = "SDFITS";
    metadata_.samples_first = true;
    choose_row_polarization();
    if (rows_.size() == 0) rows_.reject_empty();
    lay_out();
    place_frequencies();
    place_positions();
    name_metadata(file);
    weigh();
    warn_of_mixtures();
    metadata_.n_samples = rows_.size();
  }

  const ScanMetadata& metadata() const override { return metadata_; }

  void read_positions(std::vector<double>& longitude_deg,
                      std::vector<double>& latitude_deg) override {
    longitude_deg = longitude_deg_;
    latitude_deg = latitude_deg_;
    check_longitudes(longitude_deg, latitude_deg, metadata_);
  }
  void read_channels(std::int64_t first, std::int64_t n, float* values) override {
    read_raw(*raw_, data_, first, n, values);
  }
  void read_channels_of(std::int64_t first_channel, std::int64_t n_channels, std::int64_t first,
                        std::int64_t n, float* values) override {
    read_raw(*raw_, some_of(data_, first, n), first_channel, n_channels, values);
  }
  bool has_weights() const override { return !weights_.empty(); }
  void read_weights(float* weights) override {
    if (weights_.empty()) return ScanFile::read_weights(weights);
    std::copy(weights_.begin(), weights_.end(), weights);
  }
  bool has_channel_weights() const override { return !channel_weights_.begin_bytes.empty(); }
  void read_channel_weights_of(std::int64_t first_channel, std::int64_t n_channels,
                               std::int64_t first, std::int64_t n, float* weights) override {
    if (!has_channel_weights())
      return ScanFile::read_channel_weights_of(first_channel, n_channels, first, n, weights);
    read_raw(*raw_, some_of(channel_weights_, first, n), first_channel, n_channels, weights);
  }
  bool has_flags() const override { return !flags_.begin_bytes.empty() || !row_flags_.empty(); }
  void read_flags(std::int64_t first, std::int64_t n, std::uint8_t* flags) override {
    read_flags_of(first, n, 0, metadata_.n_samples, flags);
  }
  void read_flags_of(std::int64_t first_channel, std::int64_t n_channels, std::int64_t first,
                     std::int64_t n, std::uint8_t* flags) override {
    if (!flags_.begin_bytes.empty())
      return read_raw(*raw_, some_of(flags_, first, n), first_channel, n_channels, flags);
    for (std::int64_t c = 0; c < n_channels; ++c) {
      if (row_flags_.empty())
        std::fill_n(flags + c * n, n, std::uint8_t{0});
      else
        std::copy_n(row_flags_.data() + first, n, flags + c * n);
    }
  }

 private:
  std::string where() const { return metadata_.path; }

  /// Spectra of different polarizations are rows of their own (GBT): those wanted stay.
  void choose_row_polarization() {
    const auto codes = rows_.numbers(rows_.stokes_word());
    if (rows_.axis_polarizations() > 1 || codes.empty()) return;
    std::vector<std::string> names;
    for (const double code : codes) {
      const std::string name = stokes_name(code);
      if (name.empty()) return;  // not every row says: nothing to choose from
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    if (names.empty()) return;
    // XX before YY, RR before LL, I before Q: as their codes count away from zero.
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
      static const std::string kOrder = "I Q U V RR LL RL LR XX YY XY YX ";
      return kOrder.find(a + " ") < kOrder.find(b + " ");
    });
    metadata_.polarizations = names;
    metadata_.polarizations_in_rows = true;
    const double number = scan_number(options_.polarization);
    if (number >= 0 && !rows_.numbers("PLNUM").empty()) {  // the number GBT gives it
      rows_.keep_where("PLNUM", options_.polarization);
      metadata_.polarization =
          rows_.size() > 0 ? stokes_name(rows_.numbers(rows_.stokes_word())[0]) : std::string();
      return;
    }
    const auto chosen = choose_polarizations(names, options_.polarization, where());
    std::vector<bool> keep(codes.size());
    for (std::size_t k = 0; k < codes.size(); ++k)
      for (const std::size_t p : chosen.which)
        if (names[p] == stokes_name(codes[k])) keep[k] = true;
    metadata_.polarization = chosen.text;
    const auto before = rows_.size();
    rows_.keep(keep);
    if (rows_.size() < before && upper_case(options_.polarization) == "MEAN")
      metadata_.warnings.push_back(
          fmt::format("{} rows of other polarizations than {} are left out", before - rows_.size(),
                      chosen.text));
  }

  /// Where numbers are: from the table of the first row; the others are held against it later.
  void lay_out() {
    const SdfitsLayout& layout = rows_.layout(0);
    metadata_.n_channels = layout.n_channels;
    data_.number = layout.data->form;
    data_.n_channels = layout.n_channels;
    data_.n_samples = rows_.size();
    data_.channel_step_bytes = layout.channel_step * layout.data->form.bytes;
    if (layout.n_polarizations > 1) {
      std::vector<std::string> names = rows_.axis_names(0);
      const auto chosen = choose_polarizations(names, options_.polarization, where());
      metadata_.polarization = chosen.text;
      metadata_.polarizations = names;
      polarizations_ = chosen.which;
    }
    data_.polarization_bytes.clear();
    for (const std::size_t p : polarizations_)
      data_.polarization_bytes.push_back(static_cast<std::int64_t>(p) * layout.polarization_step *
                                         layout.data->form.bytes);
  }

  void place_frequencies() {
    const SdfitsLayout& layout = rows_.layout(0);
    const std::vector<RowAxis> axes = rows_.frequency_axes();
    const RowAxis& first = axes[0];
    std::vector<bool> good(axes.size());
    std::int64_t bad = -1;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      const bool same_form = rows_.layout(static_cast<std::int64_t>(k)).same_form(layout);
      good[k] = same_form && axes[k].agrees(first);
      if (!good[k] && bad < 0) bad = static_cast<std::int64_t>(k);
    }
    if (bad >= 0) rows_.reject_mixture(good, static_cast<std::size_t>(bad), axes);
    data_.descending = first.step_hz < 0;
    metadata_.frequency.n_channels = layout.n_channels;
    if (!(std::isfinite(first.first_hz) && std::abs(first.step_hz) > 0)) {
      metadata_.frequency.channel_width_hz = 0;
      metadata_.warnings.push_back("the frequencies of the channels are not known: " +
                                   layout.axis_note);
    } else {
      metadata_.frequency.channel_width_hz = std::abs(first.step_hz);
      metadata_.frequency.first_center_hz =
          data_.descending
              ? first.first_hz + static_cast<double>(layout.n_channels - 1) * first.step_hz
              : first.first_hz;
    }
    data_.begin_bytes = rows_.begin_bytes(*layout.data);
    find_flags();
  }

  /// A column of the shape of the spectra, read as they are.
  RawSamples beside_data(const ScanColumn& column) const {
    const SdfitsLayout& layout = rows_.layout(0);
    RawSamples s = data_;
    s.number = column.form;
    s.channel_step_bytes = layout.channel_step * column.form.bytes;
    for (std::size_t p = 0; p < polarizations_.size(); ++p)
      s.polarization_bytes[p] = static_cast<std::int64_t>(polarizations_[p]) *
                                layout.polarization_step * column.form.bytes;
    s.begin_bytes = rows_.begin_bytes(column);
    return s;
  }

  void find_flags() {
    if (options_.flags == "none") return;
    std::vector<std::string> names = flag_names();
    if (!options_.flags.empty()) names = {options_.flags};
    for (const std::string& name : names) {
      if (!rows_.has_column(name)) continue;
      const ScanColumn* column = rows_.same_shape(name);
      if (column != nullptr) {
        flags_ = beside_data(*column);
      } else {
        const auto all = rows_.repeat(name) == 1 ? rows_.numbers(name) : std::vector<double>();
        if (all.empty()) {
          const std::string what = where() + ": the column " + name +
                                   " has neither one number a row nor those of the spectra in all "
                                   "tables";
          if (!options_.flags.empty()) throw ConfigError(what);
          metadata_.warnings.push_back(what + "; it is not used");
          continue;
        }
        for (const double f : all) row_flags_.push_back(f != 0 ? 1 : 0);
      }
      if (options_.flags.empty())
        metadata_.choices.push_back("flags are those of the column " + upper_case(name) +
                                    ", not 0 is absent; --flags none leaves them out");
      return;
    }
    if (!options_.flags.empty())
      throw ConfigError(where() + ": no column " + options_.flags + " of flags; there are " +
                        rows_.list());
  }

  void place_positions() {
    RowPositions positions = rows_.positions(options_, metadata_);
    longitude_deg_ = std::move(positions.longitude_deg);
    latitude_deg_ = std::move(positions.latitude_deg);
    metadata_.frame = positions.frame;
    for (auto& w : positions.warnings) metadata_.warnings.push_back(std::move(w));
  }

  void name_metadata(const FitsScans& file) {
    const auto first = [&](const char* word) {
      const auto all = rows_.texts(word);
      if (!all.empty() && !all[0].empty()) return all[0];
      return file.key(word);
    };
    const SdfitsLayout& layout = rows_.layout(0);
    metadata_.format = fmt::format("SDFITS ({} table{} of {})", rows_.n_tables_used(),
                                   rows_.n_tables_used() == 1 ? "" : "s", rows_.n_tables());
    metadata_.telescope = first("TELESCOP");
    std::set<std::string> objects;
    for (const auto& o : rows_.texts("OBJECT")) objects.insert(o);
    metadata_.object = objects.size() == 1 ? *objects.begin() : std::string();
    metadata_.unit = layout.data->unit;
    if (metadata_.unit.empty())
      metadata_.unit = first(fmt::format("TUNIT{}", layout.data->number).c_str());
    if (metadata_.unit.empty()) metadata_.unit = first("BUNIT");
    metadata_.spectral_frame = spectral_frame_of(layout.frequency_type, first("SPECSYS"));
    for (const char* word : {"RESTFREQ", "RESTFRQ"}) {
      const auto all = rows_.numbers(word);
      if (!all.empty() && all[0] > 0 && metadata_.rest_frequency_hz == 0)
        metadata_.rest_frequency_hz = all[0] * hertz_in(rows_.unit(word), 1, where());
    }
    if (layout.class_axis)  // offsets in the rest frame of the source
      metadata_.spectral_frame = "SOURCE";
    metadata_.observed_utc = first("DATE-OBS");
    const auto seconds = rows_.numbers("TIME");
    if (metadata_.observed_utc.size() == 10 && !seconds.empty() && seconds[0] >= 0 &&
        seconds[0] < 86401) {
      const auto s = static_cast<int>(seconds[0]);
      metadata_.observed_utc +=
          fmt::format("T{:02}:{:02}:{:06.3f}", s / 3600, s / 60 % 60, s % 60 + (seconds[0] - s));
    }
  }

  void weigh() {
    if (options_.weights.empty() || options_.weights == "none") return;
    const std::string column = weights_column(options_.weights);
    if (!column.empty()) {
      if (const ScanColumn* own = rows_.same_shape(column);
          own != nullptr && own->repeat > 1 && metadata_.n_channels > 1) {
        if (polarizations_.size() > 1)
          throw UnsupportedError(where() + ": " + column +
                                 " weighs polarizations apart, of which the mean is read; --pol XX "
                                 "works");
        channel_weights_ = beside_data(*own);
        return;
      }
      const std::int64_t repeat = rows_.repeat(column);
      const bool by_polarization =
          repeat > 1 && repeat == rows_.axis_polarizations() && polarizations_.size() == 1;
      if (repeat > 1 && !by_polarization)
        throw ConfigError(
            fmt::format("{}: {} has {} numbers a row, neither one nor those of the spectra",
                        where(), column, repeat));
      const auto values =
          rows_.numbers(column, by_polarization ? static_cast<std::int64_t>(polarizations_[0]) : 0);
      if (values.empty())
        throw ConfigError(where() + ": no column " + column +
                          " of numbers for the weights; there are " + rows_.list());
      weights_.assign(values.begin(), values.end());
      return;
    }
    WeightColumns columns;
    for (const char* word : {"EXPOSURE", "OBSTIME", "INTTIME", "DURATION"})
      if (columns.exposure_s.empty()) columns.exposure_s = rows_.numbers(word);
    columns.system_temperature_k = system_temperatures();
    if (columns.exposure_s.empty() || columns.system_temperature_k.empty())
      throw ConfigError(where() + ": weights " + options_.weights +
                        " need TSYS and EXPOSURE; there are " + rows_.list());
    const bool radiometer = options_.weights == "radiometer";
    if (radiometer && !(metadata_.frequency.channel_width_hz > 0))
      throw ConfigError(where() + ": weights radiometer need the width of a channel");
    weights_ = system_weights(columns, radiometer ? metadata_.frequency.channel_width_hz : 1);
    const std::set<double> different(columns.system_temperature_k.begin(),
                                     columns.system_temperature_k.end());
    if (different.size() == 1 && *different.begin() == 1)
      metadata_.warnings.push_back("TSYS is 1 in all rows: it was not measured");
  }

  /// Of what is read: the mean of two polarizations has T^2 = (T1^2 + T2^2)/4.
  std::vector<double> system_temperatures() const {
    if (polarizations_.size() < 2 || rows_.numbers("TSYS", 1).empty()) {
      auto one = rows_.numbers("TSYS", static_cast<std::int64_t>(polarizations_[0]));
      return one.empty() ? rows_.numbers("TSYS") : one;
    }
    const auto a = rows_.numbers("TSYS", static_cast<std::int64_t>(polarizations_[0]));
    auto b = rows_.numbers("TSYS", static_cast<std::int64_t>(polarizations_[1]));
    for (std::size_t k = 0; k < b.size(); ++k)
      b[k] = a[k] > 0 && b[k] > 0 ? 0.5 * std::hypot(a[k], b[k]) : kNot_known;
    return b;
  }

  void warn_of_mixtures() {
    const std::pair<const char*, const char*> kSwitched[] = {
        {"CAL", "the noise diode on and off"}, {"SIG", "the signal and the reference"}};
    for (const auto& [word, what] : kSwitched) {
      const auto all = rows_.texts(word);
      if (std::set<std::string>(all.begin(), all.end()).size() > 1)
        metadata_.warnings.push_back(
            fmt::format("rows with {} are both read: --select {}={} takes one of them", what, word,
                        begins(word, "CAL") ? "F" : "T"));
    }
  }

  std::shared_ptr<const RawFile> raw_;
  ScanOptions options_;
  SdfitsRows rows_;
  ScanMetadata metadata_;
  RawSamples data_, flags_, channel_weights_;
  std::vector<std::uint8_t> row_flags_;
  std::vector<std::size_t> polarizations_{0};
  std::vector<double> longitude_deg_, latitude_deg_;
  std::vector<float> weights_;
};

}  // namespace

std::unique_ptr<ScanFile> open_sdfits(const FitsScans& file, const ScanOptions& options) {
  if (!SdfitsRows::any(file)) return nullptr;
  return std::make_unique<SdfitsScans>(file, options);
}

}  // namespace ryle::io
