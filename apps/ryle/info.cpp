// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "apps/ryle/command.hpp"
#include "apps/ryle/report.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/beamform/beamform.hpp"
#include "ryle/engine/calibrate/calibrate.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/correlate/correlate.hpp"
#include "ryle/engine/grid/grid.hpp"
#include "ryle/engine/image/image.hpp"
#include "ryle/engine/search/search.hpp"
#include "ryle/ingest/capture_summary.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/io/base/file_contents.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/io/image/image_cube.hpp"
#include "ryle/io/scan/scan_file.hpp"
#include "ryle/io/visibility/described_visibilities.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"
#include "ryle/telescope/beams_file.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::app {
namespace {

using Json = nlohmann::ordered_json;

Json program_metadata() {
  Json devices = Json::array();
  for (const auto& d : list_devices()) {
    devices.push_back(
        {{"name", d.name}, {"description", d.description}, {"memory_bytes", d.memory_bytes}});
  }
  return {{"version", version()},
          {"devices", devices},
          {"cuda", cuda_unavailable_reason().empty() ? "available" : cuda_unavailable_reason()},
          {"instruction_sets", cpu_instruction_sets()},
          {"channelize", channelize::available_implementations()},
          {"calibrate", calibrate::available_implementations()},
          {"correlate", correlate::available_implementations()},
          {"beamform", beamform::available_implementations()},
          {"image", image::available_implementations()},
          {"search", search::available_implementations()},
          {"grid", grid::available_implementations()},
          {"recording_formats", recording_formats()}};
}

Json visibility_metadata(const std::string& path) {
  const VisibilityFile file = read_visibility_file(path);
  const auto& o = file.observation;
  std::uint64_t flagged = 0;
  std::uint64_t total = 0;
  for (const auto& dump : file.dumps) {
    for (const auto count : dump.counts) flagged += count == 0 ? 1 : 0;
    total += dump.counts.size();
  }
  Json json{{"file", path},
            {"kind", "visibilities"},
            {"telescope", o.array.name},
            {"antennas", o.array.n_antennas()},
            {"latitude_deg", o.array.latitude_rad / kDegree_rad},
            {"longitude_deg", o.array.longitude_rad / kDegree_rad},
            {"phase_center", o.phase_center_name},
            {"phase_center_deg",
             {o.phase_center.ra_rad / kDegree_rad, o.phase_center.dec_rad / kDegree_rad}},
            {"channels", o.frequency.n_channels},
            {"first_channel_hz", o.frequency.first_center_hz},
            {"channel_width_hz", o.frequency.channel_width_hz},
            {"integrations", file.dumps.size()},
            {"flagged_fraction",
             total > 0 ? static_cast<double>(flagged) / static_cast<double>(total) : 0.0},
            {"unit", o.flux_unit},
            {"ryle_version", o.provenance.version},
            {"command_line", o.provenance.command_line},
            {"configuration_sha256", o.provenance.configuration_sha256},
            {"implementations", o.provenance.implementations},
            {"notes", o.provenance.notes}};
  if (!file.dumps.empty()) {
    json["start_utc"] = utc_iso(file.dumps.front().start_tai_ns);
    json["integration_s"] = file.dumps.front().interval_s;
  }
  return json;
}

/// How recordings are opened.
struct Reading {
  std::string format = "auto";
  RecordingOptions options;
};

/// Where each of several files lies, and what it holds.
Json recording_parts(const RecordingInfo& info) {
  Json parts = Json::array();
  for (const auto& part : info.parts) {
    Json inputs = Json::array();
    for (const auto input : part.inputs) inputs.push_back(input);
    parts.push_back({{"file", part.file},
                     {"start_utc", utc_iso(info.clock.tai_ns(part.span.begin), 9)},
                     {"first_tick", part.span.begin},
                     {"n_ticks", part.span.end - part.span.begin},
                     {"inputs", inputs}});
  }
  return parts;
}

Json recording_metadata(const std::vector<std::string>& paths, const Reading& reading) {
  const auto recording = open_recordings(paths, reading.format, reading.options);
  const auto& i = recording->info();
  Json json{{"file", paths.size() == 1 ? Json(paths[0]) : Json(paths)},
            {"kind", i.channelized ? "spectra" : "samples"},
            {"format", i.format},
            {"inputs", i.n_inputs},
            {i.channelized ? "spectra" : "samples", i.n_ticks},
            {"start_utc", utc_iso(i.clock.tai_ns(0), 9)},
            // Without a rate (the warnings say so) there is no length either.
            {"rate_hz", i.rate_known ? Json(i.clock.rate_hz.value()) : Json()},
            {"duration_s", i.rate_known ? Json(i.clock.seconds(i.n_ticks)) : Json()},
            {"sample_format", i.channelized ? "ci8" : std::string(name(i.layout.format))},
            {"channels", i.frequency.n_channels},
            {"first_channel_hz", i.channelized ? i.frequency.first_center_hz : i.reference_hz},
            {"counters", i.counters},
            {"warnings", i.warnings},
            {"header", i.header}};
  if (!i.input_names.empty()) json["input_names"] = i.input_names;
  if (!i.parts.empty()) json["parts"] = recording_parts(i);
  return json;
}

std::string utc_of_unix(std::int64_t unix_ns) {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  return utc_iso(tai_ns_from_unix(unix_ns / kSecond_ns, unix_ns % kSecond_ns), 9);
}

Json capture_metadata(const std::string& path) {
  const CaptureSummary summary = summarize_capture(path);
  Json streams = Json::array();
  for (const auto& s : summary.streams) {
    const double duration_s = static_cast<double>(s.last_ns - s.first_ns) * 1e-9;
    Json lengths = Json::object();
    for (const auto& [length, n] : s.lengths) lengths[std::to_string(length)] = n;
    streams.push_back(
        {{"to", s.to},
         {"looks_like", s.format.empty() ? Json() : Json(s.format)},
         {"datagrams", s.datagrams},
         {"datagrams_per_s", duration_s > 0 ? static_cast<double>(s.datagrams) / duration_s : 0.0},
         {"by_length", lengths},
         {"senders", s.senders}});
  }
  Json warnings = Json::array();
  if (const std::string left_out = left_out_text(summary.counts); !left_out.empty())
    warnings.push_back(left_out);
  if (summary.counts.cut > 0)
    warnings.push_back(fmt::format("{} datagrams are cut by the capture", summary.counts.cut));
  if (summary.ends_within_record) warnings.push_back("the last record is not whole");
  return {{"file", path},
          {"kind", "captured packets"},
          {"link", summary.link},
          {"records", summary.counts.records},
          {"start_utc", summary.first_ns > 0 ? Json(utc_of_unix(summary.first_ns)) : Json()},
          {"duration_s", static_cast<double>(summary.last_ns - summary.first_ns) * 1e-9},
          {"streams", streams},
          {"warnings", warnings}};
}

Json filterbank_metadata(const std::string& path) {
  FilterbankOptions options;
  options.polarization = "I";  // only the header is looked at
  const auto reader = open_filterbank(path, options);
  const auto& i = reader->info();
  return {{"file", path},
          {"kind", i.n_channels > 1 ? "filterbank" : "time series"},
          {"format", i.format},
          {"source", i.source_name},
          {"telescope", i.telescope},
          {"channels", i.n_channels},
          {"first_channel_hz", i.channel_center_hz.front()},
          {"last_channel_hz", i.channel_center_hz.back()},
          {"channel_width_hz", i.channel_width_hz},
          {"samples", i.n_samples},
          {"sample_interval_s", i.sample_interval_s},
          {"duration_s", static_cast<double>(i.n_samples) * i.sample_interval_s},
          {"bits", i.bits},
          {"ifs", i.n_ifs},
          {"start_mjd_utc", i.start_mjd_utc},
          {"warnings", i.warnings}};
}

Json scan_metadata(const std::string& path) {
  ScanOptions options;
  options.polarization = "any";
  const auto scans = open_scans(path, options);
  const auto& f = scans->metadata();
  std::vector<double> longitude_deg, latitude_deg;
  scans->read_positions(longitude_deg, latitude_deg);
  const auto range = [](const std::vector<double>& values) {
    std::vector<double> finite;
    for (const double v : values)
      if (std::isfinite(v)) finite.push_back(v);
    if (finite.empty()) return Json();
    const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
    return Json{*low, *high};
  };
  Json json{{"file", path},
            {"kind", "scans"},
            {"format", f.format},
            {"object", f.object},
            {"telescope", f.telescope},
            {"samples", f.n_samples},
            {"channels", f.n_channels},
            {"longitude_deg", range(longitude_deg)},
            {"latitude_deg", range(latitude_deg)},
            {"unit", f.unit},
            {"polarizations", f.polarizations},
            {"spectral_frame", f.spectral_frame},
            {"start_utc", f.observed_utc},
            {"weights", scans->has_weights()},
            {"flags", scans->has_flags()},
            {"warnings", f.warnings}};
  if (f.frequency.channel_width_hz != 0) {
    json["first_channel_hz"] = f.frequency.first_center_hz;
    json["channel_width_hz"] = f.frequency.channel_width_hz;
  }
  return json;
}

Json grid_sums_metadata(const std::string& path) {
  const pipeline::GridStateFile file(path);
  const auto& i = file.identity();
  std::int64_t n_blocks = 0;
  for (const auto& part : file.parts()) n_blocks += static_cast<std::int64_t>(part.blocks.size());
  return {{"file", path},
          {"kind", "sums of the gridder"},
          {"cells", i.cells},
          {"n_cells", i.n_cells},
          {"channels", i.n_channels},
          {"function", i.function},
          {"weights", i.weights},
          {"unit", i.unit},
          {"precision", i.precision},
          {"parts", file.parts().size()},
          {"blocks", n_blocks}};
}

Json toml_contents(const std::string& path) {
  if (is_visibility_description(path)) return visibility_metadata(path);
  const std::string text = read_text_file(path, std::int64_t{16} << 20);
  if (text.find("[[beam") != std::string::npos) {
    BeamsContext context;
    context.band_of_data = true;
    const BeamsFile b = parse_beams(text, path, context);
    Json beams = Json::array();
    for (const auto& beam : b.beams) beams.push_back(beam.name);
    return {{"file", path},
            {"kind", "beams file"},
            {"telescope", b.array.name},
            {"inputs", b.array.n_inputs()},
            {"channels", b.n_channels},
            {"first_channel_hz", b.first_center_hz},
            {"channel_step_hz", b.channel_step_hz},
            {"sub_arrays", b.subarray_names},
            {"beams", beams}};
  }
  const auto config = pipeline::load_observation(path);
  Json given = Json::object();
  for (const auto& key : config.given) given[key.section + "." + key.key] = key.value;
  return {{"file", path},
          {"kind", "observation file"},
          {"telescope", config.telescope.name},
          {"source", config.source.kind},
          {"format", config.source.format},
          {"keys", given}};
}

/// The readers that may take a file of this container, most specific first; what none takes is
/// described as its container is.
Json metadata_by_content(const std::string& path, const Reading& reading) {
  if (is_capture_file(path)) return capture_metadata(path);
  const std::string container = container_of(path);
  std::vector<std::function<Json()>> readers;
  if (container == "fits") readers.emplace_back([&] { return filterbank_metadata(path); });
  if (container == "hdf5") {
    readers.emplace_back([&] { return grid_sums_metadata(path); });
    if (!is_image_cube(path))
      readers.emplace_back([&] { return recording_metadata({path}, reading); });
  }
  if (container == "fits" || container == "hdf5" || container == "zip")
    readers.emplace_back([&] { return scan_metadata(path); });
  std::string note;  // of the last reader, the one of scans
  for (const auto& read : readers) {
    try {
      return read();
    } catch (const UnsupportedError&) {
      throw;                    // a filter that this build lacks
    } catch (const Error& e) {  // of another kind, or damaged: the description below says which
      note = e.what();
    }
  }
  const std::string described = describe_contents(path);
  if (described.empty()) return recording_metadata({path}, reading);
  Json json = Json::parse(described);
  if (json["kind"] == "scans") json["note"] = note;
  if (container == "hdf5" && is_image_cube(path)) {
    json["kind"] = "image cube";
    json["images"] = count_whole_images(path);
  }
  return json;
}

void print(const Context& context, const Json& json) {
  if (context.json) {
    fmt::print("{}\n", json.dump());
    return;
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_array() || value.is_object()) {
      fmt::print("{}:\n", key);
      for (const auto& [k, v] : value.items()) {
        const std::string text = v.is_string() ? v.get<std::string>() : v.dump();
        fmt::print("  {}\n", value.is_array() ? text : k + " = " + text);
      }
    } else {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      fmt::print("{}: {}\n", key, value.is_null() ? "not known" : text);
    }
  }
}

int run(const Context& context, const std::vector<std::string>& files, const Reading& reading,
        bool schema) {
  if (schema) {
    fmt::print("{}\n", pipeline::json_schema());
    return 0;
  }
  if (files.empty()) {
    print(context, program_metadata());
    return 0;
  }
  if (files.size() > 1) {
    print(context, recording_metadata(files, reading));
    return 0;
  }
  const std::string& file = files[0];
  if (!std::filesystem::exists(file)) throw IoError::from_errno("read", file, ENOENT);
  std::string extension = std::filesystem::path(file).extension().string();
  if (extension.empty()) extension = std::filesystem::path(file).parent_path().extension().string();
  const bool visibilities = extension == ".ms" || extension == ".uvfits" || extension == ".uvh5";
  const bool powers = extension == ".fil" || extension == ".tim" || extension == ".sf";
  print(context, visibilities               ? visibility_metadata(file)
                 : powers                   ? filterbank_metadata(file)
                 : extension == ".toml"     ? toml_contents(file)
                 : reading.format != "auto" ? recording_metadata({file}, reading)
                                            : metadata_by_content(file, reading));
  return 0;
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
  auto* sub =
      app.add_subcommand("info", "what this ryle can do, or what a file holds and how it was made");
  auto files = std::make_shared<std::vector<std::string>>();
  auto reading = std::make_shared<Reading>();
  auto schema = std::make_shared<bool>(false);
  sub->add_option("file", *files,
                  "any file that Ryle reads or writes; several recordings of one observation");
  sub->add_option("--format", reading->format, "of a recording")->capture_default_str();
  sub->add_option("--rate", reading->options.sample_rate_hz,
                  "samples per second of a recording that has none")
      ->check(CLI::PositiveNumber);
  sub->add_option("--files-as", reading->options.files_as,
                  "several recordings: auto = by their headers, inputs = each is a station")
      ->check(CLI::IsMember({"auto", "inputs"}))
      ->capture_default_str();
  sub->add_flag("--schema", *schema, "JSON Schema of the observation file");
  add_common(*sub, context);
  sub->callback([=, &context] {
    context.action = [=, &context] { return run(context, *files, *reading, *schema); };
  });
}

}  // namespace ryle::app
