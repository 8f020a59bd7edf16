// SPDX-License-Identifier: BSD-3-Clause
#include "apps/ryle/visibility_arguments.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "apps/ryle/log.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/visibility/described_visibilities.hpp"

namespace ryle::app {
namespace {

Conjugate conjugate_of(const std::string& text) {
  if (text == "yes") return Conjugate::yes;
  return text == "no" ? Conjugate::no : Conjugate::automatic;
}

/// What of a file was not taken as it stands, a line each.
void tell_notes(const std::string& path, const VisibilityFile& file) {
  const auto& notes = file.observation.provenance.notes;
  for (const char* name : {"column", "not_finite", "polarization", "unit"}) {
    const auto note = notes.find(name);
    if (note != notes.end())
      Log::get().line(LogLevel::info, "note", fmt::format("note: {}: {}", path, note->second));
  }
}

VisibilityFile read_pair(const std::string& path, const VisibilityArguments& a) {
  if (a.antennas.empty())
    throw ConfigError("a covariance pair needs --antennas FILE (name east north height)");
  CovarianceFiles files = a.covariance;
  files.real_path = path;
  files.imaginary_path = a.imaginary;
  files.antennas_path = a.antennas;
  files.frequency_hz = a.frequency_mhz * 1e6;
  files.channel_width_hz = a.channel_width_khz * 1e3;
  files.conjugate = conjugate_of(a.conjugate);
  files.dead = a.dead;
  return read_covariance(files);
}

}  // namespace

std::vector<std::string> pair_options() {
  return {"--antennas",  "--frequency-mhz", "--channel-width-khz", "--pol",
          "--phased-to", "--utc",           "--integration"};
}

bool is_visibilities(const RecordingArguments& recording, const VisibilityArguments& a) {
  if (!a.imaginary.empty() || !a.antennas.empty()) return true;
  const auto& telescope = recording.keys.telescope;
  if (!telescope.station.empty() || !telescope.layout.empty()) return false;
  std::filesystem::path path = std::filesystem::path(recording.files[0]).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "vis.ms/"
  const std::string suffix = path.extension().string();
  return suffix == ".ms" || suffix == ".uvfits" || suffix == ".uvh5" ||
         (std::filesystem::exists(path) && is_visibility_description(path.string()));
}

VisibilityFile read_visibilities(const std::string& path, const VisibilityArguments& a) {
  VisibilityFile file;
  if (!a.imaginary.empty()) {
    file = read_pair(path, a);
  } else {
    file = read_visibility_file(path, {conjugate_of(a.conjugate), a.column});
    tell_notes(path, file);
    const std::string left_out = leave_out(file.observation, file.dumps, a.dead);
    if (!left_out.empty()) file.observation.provenance.notes["antennas left out"] = left_out;
  }
  if (file.dumps.empty()) throw FormatError(path + ": holds no integration");
  return file;
}

std::vector<std::string> assumptions(const VisibilityFile& file) {
  std::vector<std::string> lines;
  for (const auto& [name, text] : file.observation.provenance.notes) {
    if (name.rfind(kCovarianceNote, 0) == 0) lines.push_back(name + ": " + text);
  }
  return lines;
}

void add_visibility_options(CLI::App& sub, VisibilityArguments& a) {
  sub.add_option("--imag", a.imaginary, "imaginary part of a covariance FITS pair");
  sub.add_option("--antennas", a.antennas, "antenna positions of a covariance FITS pair");
  sub.add_option("--frequency-mhz", a.frequency_mhz, "of a covariance FITS pair");
  sub.add_option("--latitude-deg", a.covariance.latitude_deg, "for arrays without a place");
  sub.add_option("--longitude-deg", a.covariance.longitude_deg, "for arrays without a place");
  sub.add_option("--height-m", a.covariance.height_m, "for arrays without a place");
  sub.add_option("--utc", a.covariance.utc, "of a covariance FITS pair; default: from its name");
  sub.add_option("--integration", a.covariance.integration_s, "seconds, of a covariance FITS pair");
  sub.add_option("--channel-width-khz", a.channel_width_khz, "of a covariance FITS pair")
      ->check(CLI::PositiveNumber);
  sub.add_option("--pol", a.covariance.pol,
                 "of a covariance FITS pair: X, Y or I; without it the label is I")
      ->check(CLI::IsMember({"X", "Y", "I"}));
  sub.add_option("--phased-to", a.covariance.phased_to,
                 "what a covariance FITS pair is phased to: zenith, sun or RA_DEG,DEC_DEG")
      ->capture_default_str();
  sub.add_option("--conjugate", a.conjugate,
                 "visibilities: yes: the file holds conj(V); no; auto: from its uvw, or, of a "
                 "covariance FITS pair, from the Sun, which must stand out")
      ->check(CLI::IsMember({"auto", "yes", "no"}))
      ->capture_default_str();
  sub.add_option("--column", a.column, "of a Measurement Set: what is read; default DATA")
      ->check(CLI::IsMember({"DATA", "CORRECTED_DATA", "MODEL_DATA"}));
  sub.add_option("--dead", a.dead, "antennas of visibilities to leave out: names or numbers, A,B")
      ->delimiter(',');
}

}  // namespace ryle::app
