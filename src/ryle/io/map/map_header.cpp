// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/map/map_header.hpp"

#include <erfa.h>
#include <erfam.h>
#include <fmt/format.h>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/image/fits_image_header.hpp"

namespace ryle::io {
namespace {

void write_spectral_frame(FitsFile& file, const MapMetadata& metadata) {
  if (metadata.rest_frequency_hz > 0) file.key("RESTFRQ", metadata.rest_frequency_hz, "Hz");
  if (!metadata.spectral_frame.empty())
    file.key("SPECSYS", metadata.spectral_frame, "frame of the spectral axis");
  if (!metadata.observer_frame.empty())
    file.key("SSYSOBS", metadata.observer_frame, "frame fixed during the observation");
}

// The same instant twice: readers complete one from the other and say so.
void write_time(FitsFile& file, const std::string& utc) {
  if (utc.empty()) return;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, status = 0;
  double second = 0;
  std::string text = utc;
  if (text.back() == 'Z') text.pop_back();
  fits_str2time(text.data(), &year, &month, &day, &hour, &minute, &second, &status);
  if (status != 0) {
    fits_clear_errmsg();
    file.history({"first sample at " + utc});
    return;
  }
  file.key("DATE-OBS", text, "first sample");
  double jd1 = 0, jd2 = 0;
  eraDtf2d("UTC", year, month, day, hour, minute, second, &jd1, &jd2);
  file.key("MJD-OBS", (jd1 - ERFA_DJM0) + jd2, "the same");
  file.key("TIMESYS", std::string("UTC"));
}

}  // namespace

SpectralAxis spectral_axis(std::int64_t n_channels, const MapMetadata& metadata) {
  const FrequencyAxis& f = metadata.frequency;
  if (!(f.channel_width_hz > 0)) return {};
  SpectralAxis axis{"FREQ", "Hz", f.first_center_hz, f.channel_width_hz};
  if (n_channels == 1 && f.n_channels > 1) {
    axis.first = f.band_center_hz();
    axis.step = f.channel_width_hz * static_cast<double>(f.n_channels);
  }
  if (!metadata.velocity_axis) return axis;
  const double rest_hz = metadata.rest_frequency_hz;
  if (!(rest_hz > 0))
    throw ConfigError("a velocity axis needs the rest frequency, which the scans do not say");
  // Radio convention: v = c (1 - f / f0), linear in frequency and falling with it.
  return {"VRAD", "m/s", kSpeedOfLight_m_per_s * (1 - axis.first / rest_hz),
          -kSpeedOfLight_m_per_s * axis.step / rest_hz};
}

void write_spectral_axis(FitsFile& file, int axis, std::int64_t n_channels,
                         const MapMetadata& metadata) {
  const SpectralAxis a = spectral_axis(n_channels, metadata);
  write_axis(file, axis, a.type.c_str(), a.unit.c_str(), a.first, 1, a.step);
  if (!a.unit.empty()) write_spectral_frame(file, metadata);
}

void write_stokes_axis(FitsFile& file, int axis, const MapMetadata& metadata) {
  const std::vector<int>& codes = metadata.stokes;
  const int step = codes.at(1) - codes[0];
  write_axis(file, axis, "STOKES", "", codes[0], 1, step);
}

void write_column_axis(FitsFile& file, int column, std::int64_t n_channels,
                       const MapMetadata& metadata) {
  const SpectralAxis a = spectral_axis(n_channels, metadata);
  const auto key = [&](const char* name) { return fmt::format("{}{}", name, column); };
  if (n_channels > 1) {
    file.key(key("1CTYP").c_str(), a.type, "axis of the vectors");
    if (!a.unit.empty()) file.key(key("1CUNI").c_str(), a.unit);
    file.key(key("1CRPX").c_str(), 1.0);
    file.key(key("1CRVL").c_str(), a.first);
    file.key(key("1CDLT").c_str(), a.step);
    if (a.unit.empty()) return;
    if (metadata.rest_frequency_hz > 0)
      file.key(key("RFRQ").c_str(), metadata.rest_frequency_hz, "Hz");
    if (!metadata.spectral_frame.empty()) file.key(key("SPEC").c_str(), metadata.spectral_frame);
    if (!metadata.observer_frame.empty()) file.key(key("SOBS").c_str(), metadata.observer_frame);
  } else if (!a.unit.empty()) {
    file.key("FREQ", metadata.frequency.band_center_hz(), "Hz, middle of the band");
    file.key(
        "BANDWID",
        metadata.frequency.channel_width_hz * static_cast<double>(metadata.frequency.n_channels),
        "Hz");
    write_spectral_frame(file, metadata);
  }
}

void write_map_metadata(FitsFile& file, const MapMetadata& metadata, bool table) {
  if (!table && !metadata.unit.empty()) file.key("BUNIT", metadata.unit);
  if (metadata.beam_fwhm_deg > 0) {
    const double minor =
        metadata.beam_minor_deg > 0 ? metadata.beam_minor_deg : metadata.beam_fwhm_deg;
    file.key("BMAJ", metadata.beam_fwhm_deg, "deg, beam of the map");
    file.key("BMIN", minor, "deg");
    file.key("BPA", metadata.beam_position_angle_deg, "deg");
  }
  if (!metadata.object.empty()) file.key("OBJECT", metadata.object);
  if (!metadata.telescope.empty()) file.key("TELESCOP", metadata.telescope);
  write_time(file, metadata.observed_utc);
  file.key("ORIGIN", "Ryle " + std::string(version()));
  file.history(metadata.history);
  if (metadata.area_factor != 1)
    file.history(
        {fmt::format("values multiplied by {:.6f}: beam area of the map over that of the "
                     "telescope",
                     metadata.area_factor)});
  if (metadata.per_beam)
    file.history({"values divided by the response of the beam to a source in the pixel"});
}

}  // namespace ryle::io
