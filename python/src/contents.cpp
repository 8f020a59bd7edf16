// SPDX-License-Identifier: BSD-3-Clause
#include "python/src/bindings.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/ingest/capture_summary.hpp"
#include "ryle/pipeline/grid/grid_state.hpp"
#include "ryle/telescope/beams_file.hpp"

/// Files that hold no arrays of their own: what is in them.
namespace ryle::python {
namespace {

nb::dict capture_info(const std::string& path) {
  CaptureSummary summary;
  {
    const nb::gil_scoped_release released;
    summary = summarize_capture(path);
  }
  nb::list streams;
  for (const auto& s : summary.streams) {
    nb::dict d;
    d["to"] = s.to;
    d["looks_like"] = s.format;
    d["datagrams"] = s.datagrams;
    d["by_length"] = s.lengths;
    d["senders"] = s.senders;
    streams.append(d);
  }
  nb::dict d;
  d["kind"] = "captured packets";
  d["link"] = summary.link;
  d["records"] = summary.counts.records;
  d["cut"] = summary.counts.cut;
  d["duration_s"] = static_cast<double>(summary.last_ns - summary.first_ns) * 1e-9;
  d["first_unix_ns"] = summary.first_ns;
  d["ends_within_record"] = summary.ends_within_record;
  d["streams"] = streams;
  return d;
}

/// Of a beams file; none where a TOML file is no such.
std::optional<nb::dict> beams_info(const std::string& path) {
  const std::string text = read_text_file(path, std::int64_t{16} << 20);
  if (text.find("[[beam") == std::string::npos) return std::nullopt;
  BeamsContext context;
  context.band_of_data = true;
  const BeamsFile file = parse_beams(text, path, context);
  nb::list beams;
  for (const auto& beam : file.beams) beams.append(beam.name);
  nb::dict d;
  d["kind"] = "beams file";
  d["telescope"] = file.array.name;
  d["n_inputs"] = file.array.n_inputs();
  d["n_channels"] = file.n_channels;
  d["first_center_hz"] = file.first_center_hz;
  d["channel_step_hz"] = file.channel_step_hz;
  d["sub_arrays"] = file.subarray_names;
  d["beams"] = beams;
  return d;
}

nb::dict grid_sums_info(const std::string& path) {
  const pipeline::GridStateFile file(path);
  const auto& i = file.identity();
  nb::dict d;
  d["kind"] = "sums of the gridder";
  d["cells"] = i.cells;
  d["n_cells"] = i.n_cells;
  d["n_channels"] = i.n_channels;
  d["function"] = i.function;
  d["weights"] = i.weights;
  d["unit"] = i.unit;
  d["precision"] = i.precision;
  d["parts"] = file.parts().size();
  return d;
}

}  // namespace

void bind_contents(nb::module_& m) {
  m.def("capture_info", &capture_info, nb::arg("path"));
  m.def("beams_info", &beams_info, nb::arg("path"));
  m.def("grid_sums_info", &grid_sums_info, nb::arg("path"));
}

}  // namespace ryle::python
