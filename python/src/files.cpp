// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <cstring>

#include "python/src/products.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/core/units.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/engine/image/weighting.hpp"
#include "ryle/ingest/capture_summary.hpp"
#include "ryle/ingest/recording.hpp"
#include "ryle/io/base/file_contents.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/image/image_cube.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/io/scan/scan_file.hpp"
#include "ryle/io/visibility/described_visibilities.hpp"
#include "ryle/io/visibility/visibility_file.hpp"
#include "ryle/pipeline/visibility/dump_builder.hpp"
#include "ryle/pipeline/visibility/imaging.hpp"
#include "ryle/pipeline/visibility/run_common.hpp"
#include "ryle/pipeline/visibility/setup.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle::python {
void read_interruptibly(const std::function<void()>& work) {
  static std::atomic<int> signals{0};
  set_interrupt_count(&signals);
  try {
    run_interruptibly(signals, work);
  } catch (...) {
    signals = 0;
    throw;
  }
}

SkyPicture picture_of(const SkyImage& image, const Observation& observation) {
  return {image, observation, image.metadata.implementation, image.metadata.path, 0, {}};
}

namespace {

// Recordings of voltages.

nb::dict recording_info(const Recording& recording) {
  const auto& i = recording.info();
  nb::dict d;
  d["format"] = i.format;
  d["channelized"] = i.channelized;
  d["n_inputs"] = i.n_inputs;
  d["n_ticks"] = i.n_ticks;
  d["start_utc"] = utc_iso(i.clock.tai_ns(0), 9);
  d["start_tai_ns"] = i.clock.tai_ns(0);
  d["rate_hz"] = i.rate_known ? nb::cast(i.clock.rate_hz.value()) : nb::none();
  d["sample_format"] = i.channelized ? "ci8" : std::string(name(i.layout.format));
  d["n_channels"] = i.frequency.n_channels;
  d["first_center_hz"] = i.frequency.first_center_hz;
  d["channel_width_hz"] = i.frequency.channel_width_hz;
  d["reference_hz"] = i.reference_hz;
  d["inverted_band"] = i.inverted_band;
  d["header"] = i.header;
  d["counters"] = i.counters;
  d["warnings"] = i.warnings;
  return d;
}

void clear(std::vector<std::uint8_t>& valid, std::int64_t row, std::int64_t n, Tick first,
           Tick begin, Tick end) {
  const Tick from = std::max<Tick>(begin - first, 0), to = std::min<Tick>(end - first, n);
  for (Tick t = from; t < to; ++t) valid[count_of(row * n + t)] = 0;
}

/// Values of samples [tick][input] as they stand for: parts of `T`, one or two a sample.
template <class T>
nb::object decoded(const SampleLayout& layout, const std::vector<std::byte>& bytes,
                   std::int64_t n_inputs, std::int64_t n) {
  const bool pairs = is_complex(layout.format);
  const std::int64_t parts = pairs ? 2 : 1;
  std::vector<T> values(count_of(n * n_inputs * parts));
  {
    const nb::gil_scoped_release released;
    auto queue = shared_queue();
    queue.parallel_for((n + 1023) / 1024, [&](std::int64_t block) {
      for (std::int64_t t = block * 1024; t < std::min(n, block * 1024 + 1024); ++t) {
        for (std::int64_t p = 0; p < n_inputs; ++p) {
          const cf64 v = decode_sample(layout, bytes.data(), p, t);
          T* to = values.data() + (t * n_inputs + p) * parts;
          to[0] = static_cast<T>(v.real());
          if (pairs) to[1] = static_cast<T>(v.imag());
        }
      }
    });
  }
  if (pairs) return nb::cast(to_array(std::move(values), {count_of(n), count_of(n_inputs), 2}));
  return nb::cast(to_array(std::move(values), {count_of(n), count_of(n_inputs)}));
}

/// Samples [tick][input] and valid [input][tick].
nb::tuple read_samples(Recording& recording, Tick first, std::int64_t n) {
  const auto& i = recording.info();
  std::vector<std::byte> bytes(count_of(recording.samples_bytes(n)));
  std::vector<AbsentSpan> absent;
  read_interruptibly([&] { recording.read_samples(first, n, bytes, absent); });
  std::vector<std::uint8_t> valid(count_of(i.n_inputs * n), 1);
  for (const auto& span : absent) clear(valid, span.input, n, first, span.begin, span.end);
  const int part_bits = bits_per_sample(i.layout.format) / (is_complex(i.layout.format) ? 2 : 1);
  nb::object samples;
  if (i.layout.format == SampleFormat::f32 || i.layout.format == SampleFormat::cf32 ||
      i.layout.format == SampleFormat::cf16)
    samples = decoded<float>(i.layout, bytes, i.n_inputs, n);
  else if (part_bits <= 8)
    samples = decoded<std::int8_t>(i.layout, bytes, i.n_inputs, n);
  else
    samples = decoded<std::int16_t>(i.layout, bytes, i.n_inputs, n);
  return nb::make_tuple(samples, to_array(std::move(valid), {count_of(i.n_inputs), count_of(n)}));
}

/// Spectra [spectrum][channel][input] and valid [channel][input][spectrum].
nb::tuple read_spectra(Recording& recording, Tick first, std::int64_t n) {
  const auto& i = recording.info();
  const std::int64_t n_channels = i.frequency.n_channels;
  std::vector<ci8> spectra(count_of(n * n_channels * i.n_inputs));
  std::vector<AbsentSpan> absent;
  std::vector<std::uint8_t> absent_channels;
  std::vector<ChannelGap> gaps;
  read_interruptibly(
      [&] { recording.read_spectra(first, n, spectra, absent, &absent_channels, &gaps); });
  std::vector<std::uint8_t> valid(count_of(n_channels * i.n_inputs * n), 1);
  for (const auto& s : absent)
    for (std::int64_t c = 0; c < n_channels; ++c)
      clear(valid, c * i.n_inputs + s.input, n, first, s.begin, s.end);
  for (const auto& g : gaps)
    for (std::int64_t row = g.channel_begin * i.n_inputs; row < g.channel_end * i.n_inputs; ++row)
      clear(valid, row, n, first, g.begin, g.end);
  for (std::size_t row = 0; row < absent_channels.size(); ++row)
    if (absent_channels[row] != 0)
      clear(valid, static_cast<std::int64_t>(row), n, first, first, first + n);
  return nb::make_tuple(
      parts_to_array(std::move(spectra), {count_of(n), count_of(n_channels), count_of(i.n_inputs)}),
      to_array(std::move(valid), {count_of(n_channels), count_of(i.n_inputs), count_of(n)}));
}

// Visibilities.

nb::dict picture_info(const SkyPicture& p) {
  const SkyImage& i = p.image;
  nb::dict d;
  d["cell_direction_cosine"] = i.cell_direction_cosine;
  d["ra_deg"] = i.center.ra_rad / kDegree_rad;
  d["dec_deg"] = i.center.dec_rad / kDegree_rad;
  d["north_angle_rad"] = i.north_angle_rad;
  d["plane_alpha"] = i.plane_alpha;
  d["plane_beta"] = i.plane_beta;
  d["first_center_hz"] = bin_axis(i).first_center_hz;
  d["channel_width_hz"] = bin_axis(i).channel_width_hz;
  d["start_tai_ns"] = i.start_tai_ns;
  d["centroid_tai_ns"] = i.centroid_tai_ns;
  d["centroid_utc"] = utc_iso(i.centroid_tai_ns, 9);
  d["exposure_s"] = i.exposure_s;
  d["unit"] = i.unit;
  d["stokes"] = i.stokes;
  d["beam"] =
      i.beam
          ? nb::cast(std::array<double, 3>{i.beam->major_rad, i.beam->minor_rad, i.beam->angle_rad})
          : nb::none();
  d["implementation"] = p.implementation;
  d["path"] = p.path;
  d["n_samples"] = p.n_samples;
  d["warnings"] = p.warnings;
  return d;
}

Result<float> pixels_of(const SkyImage& i) {
  const auto n = count_of(i.n_pixels);
  return to_array(std::vector<float>(i.pixels), {i.stokes.size(), count_of(i.n_channels), n, n});
}

VisibilityFile read_visibilities(const std::string& path, const std::string& column,
                                 const std::string& conjugate) {
  VisibilityReadOptions options;
  options.column = column;
  options.conjugate = named<Conjugate>(
      conjugate, "conjugate",
      {{"auto", Conjugate::automatic}, {"no", Conjugate::no}, {"yes", Conjugate::yes}});
  VisibilityFile file;
  read_interruptibly([&] { file = read_visibility_file(path, options); });
  return file;
}

nb::dict visibility_info(const VisibilityFile& file) {
  const auto& o = file.observation;
  nb::list antennas;
  for (const auto& a : o.array.antennas) antennas.append(nb::make_tuple(a.name, a.enu_m));
  nb::list inputs;
  for (const auto& i : o.array.inputs) inputs.append(nb::make_tuple(i.antenna, i.pol, i.bad));
  std::vector<std::int64_t> start;
  std::vector<double> interval;
  for (const auto& dump : file.dumps) {
    start.push_back(dump.centroid_tai_ns);
    interval.push_back(dump.interval_s);
  }
  nb::list utc;
  for (const auto& dump : file.dumps) utc.append(utc_iso(dump.centroid_tai_ns, 9));
  nb::dict d;
  d["telescope"] = o.array.name;
  d["latitude_deg"] = o.array.latitude_rad / kDegree_rad;
  d["longitude_deg"] = o.array.longitude_rad / kDegree_rad;
  d["height_m"] = o.array.height_m;
  d["antennas"] = antennas;
  d["inputs"] = inputs;
  d["n_channels"] = o.frequency.n_channels;
  d["first_center_hz"] = o.frequency.first_center_hz;
  d["channel_width_hz"] = o.frequency.channel_width_hz;
  d["phase_center_ra_deg"] = o.phase_center.ra_rad / kDegree_rad;
  d["phase_center_dec_deg"] = o.phase_center.dec_rad / kDegree_rad;
  d["centroid_tai_ns"] = start;
  d["centroid_utc"] = utc;
  d["interval_s"] = interval;
  d["unit"] = o.flux_unit;
  d["version"] = o.provenance.version;
  d["command_line"] = o.provenance.command_line;
  d["implementations"] = o.provenance.implementations;
  d["notes"] = o.provenance.notes;
  return d;
}

/// Of all dumps; @shape [time][channel][baseline][pol]
template <class T, class Pick>
Result<T> stacked(const VisibilityFile& file, const Pick& pick) {
  if (file.dumps.empty()) return to_array(std::vector<T>{}, {0, 0, 0, 0});
  const auto& first = file.dumps.front();
  std::vector<T> values;
  values.reserve(file.dumps.size() * pick(first).size());
  for (const auto& dump : file.dumps) {
    if (dump.n_baselines != first.n_baselines || dump.n_channels != first.n_channels ||
        dump.n_pol_products != first.n_pol_products)
      throw FormatError("the integrations of this file have different shapes");
    values.insert(values.end(), pick(dump).begin(), pick(dump).end());
  }
  return to_array(std::move(values), {file.dumps.size(), count_of(first.n_channels),
                                      count_of(first.n_baselines), count_of(first.n_pol_products)});
}

/// Sums of a correlator as one integration of an array: order of antennas, cables undone, phased to
/// the center. @shape sums, counts [channel][pair of inputs]
std::unique_ptr<VisibilityFile> visibilities_of(const DenseArray<cf64, 2>& sums,
                                                const DenseArray<std::uint32_t, 2>& counts,
                                                std::int64_t n_spectra, const ArrayLayout& array,
                                                double first_center_hz, double channel_width_hz,
                                                std::int64_t start_tai_ns, double interval_s,
                                                const std::string& phase_center,
                                                const std::string& implementation) {
  const nb::gil_scoped_release released;
  pipeline::ObservationConfig config;
  config.correlate.phase_center = phase_center;
  const FrequencyAxis frequency{first_center_hz, channel_width_hz,
                                static_cast<std::int64_t>(sums.shape(0))};
  auto file = std::make_unique<VisibilityFile>();
  file->observation = pipeline::make_observation(config, array, frequency, interval_s, start_tai_ns,
                                                 "ryle.Visibilities.observed_by");
  Observation& observation = file->observation;
  observation.nominal_dump_s = static_cast<double>(n_spectra) * interval_s;
  observation.provenance.implementations = {implementation};
  pipeline::DumpBuilder::Setup setup;
  pipeline::complete_builder(setup, config, array, frequency);
  setup.gains = pipeline::spectra_gains(config, array, frequency);
  setup.rotate = pipeline::DelayModel(array, observation.earth_orientation,
                                      observation.phase_center, frequency.band_center_hz());
  pipeline::RawDump raw;
  raw.n_spectra = n_spectra;
  constexpr std::int64_t kFemto = 1'000'000'000'000'000;
  raw.clock = {start_tai_ns, {kFemto, std::llround(interval_s * static_cast<double>(kFemto))}};
  raw.sums.real.assign(sums.data(), sums.data() + sums.size());
  raw.sums.counts.assign(counts.data(), counts.data() + counts.size());
  raw.sums.n_spectra = n_spectra;
  file->dumps = {pipeline::DumpBuilder(std::move(setup)).build(raw, {})};
  return file;
}

void write_visibilities(const VisibilityFile& file, const std::string& path, bool overwrite) {
  read_interruptibly([&] {
    const auto writer = open_visibility_writer(path, file.observation, overwrite);
    for (const auto& dump : file.dumps) writer->write(dump);
    writer->publish(file.observation);
  });
}

std::unique_ptr<SkyPicture> image_of(const VisibilityFile& file, std::int64_t n_pixels,
                                     double width, std::int64_t channel_average, bool autos,
                                     bool equalize, double taper_fwhm, const std::string& stokes,
                                     const std::string& path, double max_error,
                                     const std::string& weighting, double robust,
                                     const std::string& implementation) {
  pipeline::ImagingOptions o;
  o.n_pixels = n_pixels;
  o.width = width;
  o.channel_average = channel_average;
  o.autocorrelations = autos;
  o.equalize_inputs = equalize;
  o.taper_fwhm = taper_fwhm;
  o.stokes = stokes;
  o.max_error = max_error;
  o.robust = robust;
  o.implementation = implementation;
  o.path = known(image::sample_path_named(path), "path", path, kSamplePaths);
  o.weighting = known(image::weighting_named(weighting), "weighting", weighting,
                      "natural, uniform or briggs");
  std::atomic<int> stop{0};
  o.go_on = [&stop](double) { return stop == 0; };
  auto picture = std::make_unique<SkyPicture>();
  run_interruptibly(stop, [&] {
    auto queue = shared_queue();
    auto made = pipeline::make_image(queue, file.observation, file.dumps, o);
    picture->image = std::move(made.image);
    picture->implementation = made.implementation;
    picture->path = image::name(made.path);
    picture->n_samples = made.n_samples;
    picture->warnings = made.warnings;
  });
  picture->observation = file.observation;
  return picture;
}

// Powers.

nb::dict filterbank_info(const FilterbankReader& reader) {
  const auto& i = reader.info();
  nb::dict d;
  d["format"] = i.format;
  d["n_channels"] = i.n_channels;
  d["n_samples"] = i.n_samples;
  d["sample_interval_s"] = i.sample_interval_s;
  d["channel_width_hz"] = i.channel_width_hz;
  d["channel_center_hz"] = to_array(std::vector<double>(i.channel_center_hz));
  d["bits"] = i.bits;
  d["n_ifs"] = i.n_ifs;
  d["start_mjd_utc"] = i.start_mjd_utc;
  d["source_name"] = i.source_name;
  d["telescope"] = i.telescope;
  d["ra_deg"] = i.position.ra_rad / kDegree_rad;
  d["dec_deg"] = i.position.dec_rad / kDegree_rad;
  d["warnings"] = i.warnings;
  return d;
}

Result<float> read_powers(FilterbankReader& reader, std::int64_t first, std::int64_t n) {
  const auto& i = reader.info();
  if (first < 0 || n < 0 || first + n > i.n_samples)
    throw ConfigError(i.path + ": samples " + std::to_string(first) + " to " +
                      std::to_string(first + n) + " were asked for, it has " +
                      std::to_string(i.n_samples));
  std::vector<float> values(count_of(i.n_channels * n));
  read_interruptibly([&] { reader.read(first, n, values.data(), n); });
  return to_array(std::move(values), {count_of(i.n_channels), count_of(n)});
}

void write_filterbank(const std::string& path, const DenseArray<float, 2>& power,
                      const std::vector<double>& center_hz, double channel_width_hz,
                      double sample_interval_s, int bits, double start_mjd_utc,
                      const std::string& source_name, bool overwrite) {
  FilterbankInfo info;
  info.n_channels = static_cast<std::int64_t>(power.shape(0));
  info.n_samples = static_cast<std::int64_t>(power.shape(1));
  info.channel_center_hz = center_hz;
  info.channel_width_hz = channel_width_hz;
  info.sample_interval_s = sample_interval_s;
  info.bits = bits;
  info.start_mjd_utc = start_mjd_utc;
  info.source_name = source_name;
  const nb::gil_scoped_release released;
  SigprocWriter writer(path, info, {.overwrite = overwrite});
  writer.append(power.data(), info.n_samples, info.n_samples);
  writer.finish();
}

// Scans.

nb::dict scan_info(const ScanFile& file) {
  const auto& i = file.metadata();
  nb::dict d;
  d["format"] = i.format;
  d["n_samples"] = i.n_samples;
  d["n_channels"] = i.n_channels;
  d["frame"] = to_string(i.frame);
  d["first_center_hz"] = i.frequency.first_center_hz;
  d["channel_width_hz"] = i.frequency.channel_width_hz;
  d["beam_fwhm_rad"] = i.beam_fwhm_rad;
  d["unit"] = i.unit;
  d["object"] = i.object;
  d["telescope"] = i.telescope;
  d["polarizations"] = i.polarizations;
  d["has_weights"] = file.has_weights();
  d["has_flags"] = file.has_flags();
  d["warnings"] = i.warnings;
  return d;
}

}  // namespace

void bind_files(nb::module_& m) {
  nb::class_<Recording>(m, "Recording")
      .def("info", &recording_info)
      .def("read_samples", &read_samples, nb::arg("first"), nb::arg("n"))
      .def("read_spectra", &read_spectra, nb::arg("first"), nb::arg("n"));
  m.def(
      "open_recording",
      [](const std::string& path, const std::string& format, double sample_rate_hz,
         double reference_hz, const std::string& start_utc, const std::string& axis_order) {
        RecordingOptions options;
        options.sample_rate_hz = sample_rate_hz;
        options.reference_hz = reference_hz;
        options.start_utc = start_utc;
        options.axis_order = axis_order;
        std::unique_ptr<Recording> recording;
        read_interruptibly([&] { recording = open_recording(path, format, options); });
        return recording;
      },
      nb::arg("path"), nb::arg("format"), nb::arg("sample_rate_hz"), nb::arg("reference_hz"),
      nb::arg("start_utc"), nb::arg("axis_order"));
  m.def("recording_formats", &recording_formats);

  nb::class_<SkyPicture>(m, "SkyPicture")
      .def("info", &picture_info)
      .def("pixels", [](const SkyPicture& p) { return pixels_of(p.image); })
      .def(
          "write",
          [](const SkyPicture& p, const std::string& path, bool overwrite) {
            const nb::gil_scoped_release released;
            write_fits_image(path, p.image, p.observation, overwrite);
          },
          nb::arg("path"), nb::arg("overwrite"));
  nb::class_<VisibilityFile>(m, "VisibilityFile")
      .def("info", &visibility_info)
      .def("data",
           [](const VisibilityFile& f) {
             return stacked<cf32>(
                 f, [](const VisibilityDump& d) -> const auto& { return d.data; });
           })
      .def("counts",
           [](const VisibilityFile& f) {
             return stacked<std::uint32_t>(
                 f, [](const VisibilityDump& d) -> const auto& { return d.counts; });
           })
      .def("write", &write_visibilities, nb::arg("path"), nb::arg("overwrite"))
      .def("image", &image_of, nb::arg("n_pixels"), nb::arg("width"), nb::arg("channel_average"),
           nb::arg("autos"), nb::arg("equalize"), nb::arg("taper_fwhm"), nb::arg("stokes"),
           nb::arg("path"), nb::arg("max_error"), nb::arg("weighting"), nb::arg("robust"),
           nb::arg("implementation"));
  m.def("read_visibilities", &read_visibilities, nb::arg("path"), nb::arg("column"),
        nb::arg("conjugate"));
  m.def("visibilities_of", &visibilities_of, nb::arg("sums").noconvert(),
        nb::arg("counts").noconvert(), nb::arg("n_spectra"), nb::arg("array"),
        nb::arg("first_center_hz"), nb::arg("channel_width_hz"), nb::arg("start_tai_ns"),
        nb::arg("interval_s"), nb::arg("phase_center"), nb::arg("implementation"));
  m.def("is_visibility_description", &is_visibility_description, nb::arg("path"));
  m.def("measurement_sets_supported", &measurement_sets_supported);

  nb::class_<FilterbankReader>(m, "Filterbank")
      .def("info", &filterbank_info)
      .def("read", &read_powers, nb::arg("first"), nb::arg("n"));
  m.def(
      "open_filterbank",
      [](const std::string& path, const std::string& polarization) {
        FilterbankOptions options;
        options.polarization = polarization;
        return open_filterbank(path, options);
      },
      nb::arg("path"), nb::arg("polarization"));
  m.def("write_filterbank", &write_filterbank, nb::arg("path"), nb::arg("power").noconvert(),
        nb::arg("center_hz"), nb::arg("channel_width_hz"), nb::arg("sample_interval_s"),
        nb::arg("bits"), nb::arg("start_mjd_utc"), nb::arg("source_name"), nb::arg("overwrite"));

  nb::class_<ImageCubeReader>(m, "ImageCube")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def("__len__", &ImageCubeReader::n_images)
      .def(
          "image",
          [](const ImageCubeReader& r, std::int64_t k) {
            return std::make_unique<SkyPicture>(picture_of(r.image(k), r.observation()));
          },
          nb::arg("k"));
  m.def("is_image_cube", &is_image_cube, nb::arg("path"));

  nb::class_<ScanFile>(m, "Scans")
      .def("info", &scan_info)
      .def("positions",
           [](ScanFile& f) {
             std::vector<double> longitude, latitude;
             read_interruptibly([&] { f.read_positions(longitude, latitude); });
             return nb::make_tuple(to_array(std::move(longitude)), to_array(std::move(latitude)));
           })
      .def(
          "read",
          [](ScanFile& f, std::int64_t first, std::int64_t n) {
            const std::int64_t n_channels = f.metadata().n_channels;
            if (first < 0 || n < 0 || first + n > n_channels)
              throw ConfigError(f.metadata().path + ": channels " + std::to_string(first) + " to " +
                                std::to_string(first + n) + " were asked for, it has " +
                                std::to_string(n_channels));
            std::vector<float> values(count_of(n * f.metadata().n_samples));
            read_interruptibly([&] { f.read_channels(first, n, values.data()); });
            return to_array(std::move(values), {count_of(n), count_of(f.metadata().n_samples)});
          },
          nb::arg("first"), nb::arg("n"));
  m.def(
      "open_scans",
      [](const std::string& path, const std::string& polarization) {
        ScanOptions options;
        options.polarization = polarization;
        return open_scans(path, options);
      },
      nb::arg("path"), nb::arg("polarization"));

  m.def("is_capture_file", &is_capture_file, nb::arg("path"));
  m.def("container_of", &container_of, nb::arg("path"));
  m.def("describe_contents", &describe_contents, nb::arg("path"));
}

}  // namespace ryle::python
