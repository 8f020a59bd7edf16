// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/recording.hpp"
#include "ryle/ingest/capture_file.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "ryle/core/error.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_frames.hpp"
#include "ryle/wire/lwa.hpp"
#include "ryle/wire/text_header.hpp"

namespace ryle {
namespace {

using Opener = std::unique_ptr<Recording> (*)(const std::string&, const RecordingOptions&);

struct Format {
  std::string_view name;
  Opener open;
};

// "a,b,c,d": one file a receiver.
std::unique_ptr<Recording> open_mwa32t(const std::string& path, const RecordingOptions& options) {
  std::vector<std::string> paths;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t comma = std::min(path.find(',', at), path.size());
    paths.push_back(path.substr(at, comma - at));
    at = comma + 1;
  }
  return detail::open_mwa32t_groups(paths, options);
}

constexpr std::array kFormats{
    Format{"mwa32t", open_mwa32t},
    Format{"mwa32t-interleaved", detail::open_mwa32t_interleaved},
    Format{"tbf", [](const std::string& p,
                     const RecordingOptions& o) { return detail::open_lwa_spectra(p, false, o); }},
    Format{"tbx", [](const std::string& p,
                     const RecordingOptions& o) { return detail::open_lwa_spectra(p, true, o); }},
    Format{"tbn", detail::open_tbn},
    Format{"tbw", detail::open_tbw},
    Format{"drx", detail::open_drx},
    Format{"tart", detail::open_tart},
    Format{"vdif", detail::open_vdif},
    Format{"codif", detail::open_codif},
    Format{"guppi", detail::open_guppi},
    Format{"dada", detail::open_dada},
    Format{"voltages", detail::open_voltage_dump},
};

std::string known_formats() {
  std::string text;
  for (const auto& f : kFormats) text += std::string(f.name) + ", ";
  return text + "auto";
}

bool starts_with(std::span<const std::byte> bytes, std::string_view text) {
  return bytes.size() >= text.size() &&
         std::equal(text.begin(), text.end(), bytes.begin(),
                    [](char a, std::byte b) { return std::byte(a) == b; });
}

std::string_view detect_lwa(const std::string& path, std::span<const std::byte> head) {
  switch (wire::identify_lwa_frame(head).kind) {
    case wire::LwaKind::tbf:
      return "tbf";
    case wire::LwaKind::tbx:
      return "tbx";
    case wire::LwaKind::tbn:
      return "tbn";
    case wire::LwaKind::tbw:
      return "tbw";
    case wire::LwaKind::cor:
      throw FormatError(
          path +
          ": LWA COR frames hold visibilities of the station's correlator, which no antenna table "
          "goes with; write them as UVFITS with the LWA software, which ryle image reads, or "
          "record "
          "TBF or TBX and correlate that");
    case wire::LwaKind::drx:
      return "drx";
    case wire::LwaKind::none:
      break;
  }
  return {};
}

// By content; by the name only where the content says nothing (samples without any header).
std::string_view detect(const std::string& path) {
  if (path.find(',') != std::string::npos) return "mwa32t";
  RecordingFile file(path);
  const auto head = file.window(0, 8192);
  if (starts_with(head, "\x89HDF\r\n\x1a\n"))
    return detail::is_voltage_dump(path) ? "voltages" : "tart";
  if (const auto lwa = detect_lwa(path, head); !lwa.empty()) return lwa;
  if (wire::guppi_header_bytes(file.window(0, 1024 * 80)) > 0) return "guppi";
  const auto text = file.window(0, 4096);
  if (!wire::dada_value(text, "HDR_SIZE").empty() && !wire::dada_value(text, "NBIT").empty())
    return "dada";
  if (detail::looks_like_frames(path, detail::kCodifFormat)) return "codif";
  if (detail::looks_like_frames(path, detail::kVdifFormat)) return "vdif";
  if (path.ends_with(".mwa32t")) return "mwa32t";
  throw FormatError(path + ": not a recording that Ryle knows by its content (" +
                    std::to_string(file.size_bytes()) +
                    " bytes); say which format it is: " + known_formats());
}

}  // namespace

std::int64_t Recording::samples_bytes(std::int64_t n) const {
  const auto& i = info();
  if (n <= 0 || i.n_inputs <= 0) return 0;
  const std::int64_t last_bit = (i.n_inputs - 1) * i.layout.input_stride_bits +
                                (n - 1) * i.layout.sample_stride_bits +
                                bits_per_sample(i.layout.format);
  return (last_bit + 7) / 8;
}

std::vector<std::string> recording_formats() {
  std::vector<std::string> names;
  names.reserve(std::size(kFormats));
  for (const auto& f : kFormats) names.emplace_back(f.name);
  return names;
}

namespace detail {

std::unique_ptr<Recording> open_one_recording(const std::string& path, std::string_view format,
                                              const RecordingOptions& options) {
  if (is_capture_file(path))
    throw FormatError(path +
                      ": captured packets, not a recording; a run replays them with source.kind = "
                      "\"pcap\" and the format of the packets");
  const std::string_view wanted = format.empty() || format == "auto" ? detect(path) : format;
  for (const auto& f : kFormats) {
    if (f.name == wanted) return f.open(path, options);
  }
  throw UnsupportedError("unknown recording format \"" + std::string(format) +
                         "\"; known: " + known_formats());
}

void require_map_used(const std::string& name, const std::vector<std::string>& map,
                      const std::vector<std::string>& used) {
  for (const auto& entry : map) {
    if (std::find(used.begin(), used.end(), entry) != used.end()) continue;
    throw ConfigError(name + ": source.channel_map: \"" + entry +
                      "\" is of no channel that is there; `ryle info` lists stations, threads and "
                      "channels of VDIF and CODIF files, other formats have no map");
  }
}

}  // namespace detail

std::unique_ptr<Recording> open_recording(const std::string& path, std::string_view format,
                                          const RecordingOptions& options) {
  auto recording = detail::open_one_recording(path, format, options);
  detail::require_map_used(path, options.channel_map, recording->info().channel_map_used);
  return recording;
}

}  // namespace ryle
