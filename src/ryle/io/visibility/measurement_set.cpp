// SPDX-License-Identifier: BSD-3-Clause
// Measurement Sets: dumps -> rows and back. casacore itself lives in ms/ (see ms_file.hpp for why).
#include "ryle/core/error.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

#ifdef RYLE_HAVE_CASACORE
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>

#include "ryle/core/baseline.hpp"
#include "ryle/core/checked.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/part_file.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/visibility/dump_builder.hpp"
#include "ryle/io/visibility/dump_journal.hpp"
#include "ryle/io/visibility/ms/ms_file.hpp"
#include "ryle/io/visibility/ms_pipe.hpp"

namespace ryle::io {
namespace {

ms::InputRow input_row(const Observation& observation, std::size_t k) {
  const AppliedCorrections& applied = observation.applied;
  const ArrayInput& input = observation.array.inputs[k];
  const auto value = [k](const std::vector<double>& values) {
    return k < values.size() ? values[k] : 0.0;
  };
  ms::InputRow row;
  row.antenna = static_cast<int>(input.antenna);
  row.receptor = input.pol;
  row.bad = input.bad;
  row.delay_s = value(applied.delay_s);
  row.rms_lsb = value(applied.input_rms_lsb);
  row.saturated_fraction = value(applied.saturated_fraction);
  const auto n = static_cast<std::size_t>(observation.frequency.n_channels);
  if (applied.gains.size() == n * observation.array.inputs.size()) {
    row.gains.assign(applied.gains.begin() + static_cast<std::ptrdiff_t>(k * n),
                     applied.gains.begin() + static_cast<std::ptrdiff_t>((k + 1) * n));
  }
  return row;
}

void add_applied(const Observation& observation, ms::Impl& content) {
  const AppliedCorrections& applied = observation.applied;
  const std::size_t n_inputs = observation.array.inputs.size();
  for (std::size_t k = 0; k < n_inputs; ++k) content.inputs.push_back(input_row(observation, k));
  const auto given = [n_inputs](std::size_t size) { return n_inputs > 0 && size == n_inputs; };
  content.filter_response = applied.filter_response;
  content.n_taps = applied.n_taps;
  content.window = applied.window;
  content.van_vleck = applied.van_vleck;
  content.has_delays = given(applied.delay_s.size());
  content.has_gains =
      n_inputs > 0 &&
      applied.gains.size() == n_inputs * static_cast<std::size_t>(observation.frequency.n_channels);
  content.has_levels = given(applied.input_rms_lsb.size());
  content.has_saturation = given(applied.saturated_fraction.size());
  content.configuration = observation.provenance.configuration;
  content.observation_json = observation_to_json(observation);
}

ms::Impl content_of(const Observation& observation, std::vector<ms::DumpRow> dumps) {
  const ArrayLayout& array = observation.array;
  ms::Impl content;
  content.telescope_name = array.name.empty() ? "UNKNOWN" : array.name;
  content.observer = observation.observer.empty() ? "unknown" : observation.observer;
  content.project = observation.object;
  content.field_name = field_name(observation);
  content.telescope_itrf_m = itrf_of_reference(array);
  content.n_receptors = static_cast<int>(array.n_pols());
  for (std::int64_t a = 0; a < array.n_antennas(); ++a) {
    const Antenna& antenna = array.antennas[a];
    content.antennas.push_back(
        {antenna_name(array, a), itrf_of_enu(array, antenna.enu_m), feed_angles_rad(array, a)});
  }
  content.phase_center_rad = {observation.phase_center.ra_rad, observation.phase_center.dec_rad};
  content.pointing_rad = content.phase_center_rad;
  for (std::int64_t c = 0; c < observation.frequency.n_channels; ++c) {
    content.channel_centers_hz.push_back(observation.frequency.center_hz(c));
  }
  content.channel_width_hz = observation.frequency.channel_width_hz;
  content.noise_bandwidth_hz = noise_bandwidth_hz(observation);
  if (!dumps.empty()) {
    const std::int64_t begin = dumps.front().start_tai_ns;
    const std::int64_t end =
        dumps.back().start_tai_ns + std::llround(dumps.back().interval_s * 1e9);
    content.begin_s = utc_mjd_s(begin);
    content.end_s = utc_mjd_s(end);
    // Fixed antennas look up: the pointing is the zenith at the middle of the observation.
    const SkyDirection up = zenith(array, begin + (end - begin) / 2, observation.earth_orientation);
    content.pointing_rad = {up.ra_rad, up.dec_rad};
  }
  content.history = history_lines(observation);
  content.command_lines = printable_lines(observation.provenance.command_line, 4096);
  content.configuration_lines = printable_lines(observation.provenance.configuration, 4096);
  add_applied(observation, content);
  content.dumps = std::move(dumps);
  return content;
}

std::string journal_path(const std::string& part) { return part + "/ryle_journal.jsonl"; }

/// Checksum of the rows of one dump, in the order of the file.
std::uint32_t rows_crc(const cf32* data, const float* weight, std::size_t n) {
  return crc32c(weight, n * sizeof(float), crc32c(data, n * sizeof(cf32)));
}

/// What the sub-tables and casacore's buffers take at the end, generously; and DATA, weight and
/// flag of one value.
constexpr std::size_t kClosing_bytes = 4 << 20;
constexpr std::size_t kValue_bytes = sizeof(cf32) + sizeof(float) + 1;

class MeasurementSetWriter final : public PartVisibilityWriter {
 public:
  MeasurementSetWriter(const std::string& path, const Observation& observation, bool overwrite)
      : PartVisibilityWriter(path, observation, overwrite) {
    const std::int64_t n_channels = observation.frequency.n_channels;
    const std::int64_t n_products = n_pol_products(observation);
    const std::int64_t n_baselines = n_pairs(observation.array.n_antennas());
    const auto size = static_cast<std::size_t>(
        checked_product({n_channels, n_products, n_baselines}, "a visibility dump"));
    require_descriptors(ms::kOpen_files, "Measurement Set " + path_);
    begin();
    run_or_abandon("create", [&] {
      require_space(2 * kClosing_bytes + size * kValue_bytes);
      writer_ = std::make_unique<ms::Writer>(part_path(path_), flux_unit(observation), n_products,
                                             n_channels, n_baselines);
      journal_.emplace(journal_path(part_path(path_)), observation);
    });
    data_.resize(size);
    weight_.resize(size);
    flag_ = std::make_unique<bool[]>(size);
    for (std::int64_t b = 0; b < n_baselines; ++b) {
      const auto [i, j] = pair_of(b);
      antenna1_.push_back(static_cast<int>(i));
      antenna2_.push_back(static_cast<int>(j));
    }
  }

  ~MeasurementSetWriter() override { end(); }

  void write(const VisibilityDump& dump) override {
    require_open();
    check_dump(observation_, dump);
    const std::vector<int> order = casa_pol_order(dump.n_pol_products);
    const auto weight = static_cast<float>(weight_per_count(observation_));
    dump_to_rows(dump, dump.data, order, data_.data(), [](cf32 v) { return v; });
    dump_to_rows(dump, dump.counts, order, weight_.data(),
                 [weight](std::uint32_t n) { return static_cast<float>(n) * weight; });
    dump_to_rows(dump, dump.counts, order, flag_.get(), [](std::uint32_t n) { return n == 0; });
    const std::vector<Vector3> uvw = baseline_uvw_m(observation_, dump.centroid_tai_ns);
    const ms::DumpValues values{utc_mjd_s(dump.centroid_tai_ns),
                                dump.interval_s,
                                antenna1_.data(),
                                antenna2_.data(),
                                uvw.front().data(),
                                data_.data(),
                                weight_.data(),
                                flag_.get()};
    run_or_abandon("write", [&] {
      if (const int fault = injected_fault("write", path_); fault != 0) {
        throw IoError::from_errno("write", path_, fault);
      }
      require_space(kClosing_bytes + 2 * data_.size() * kValue_bytes);
      writer_->append(values);
    });
    run_or_abandon("write", [&] {
      journal_->append({dump.start_tai_ns, dump.centroid_tai_ns, dump.interval_s, dump.n_spectra,
                        rows_crc(data_.data(), weight_.data(), data_.size())});
    });
    dumps_.push_back({dump.start_tai_ns, dump.centroid_tai_ns, dump.interval_s, dump.n_spectra});
    ++n_dumps_;
  }

  void publish(const Observation& observation) override {
    require_open();
    run_or_abandon("finish", [&] {
      const ms::Impl content = content_of(observation, dumps_);
      require_space(kClosing_bytes / 2 +
                    2 * (content.observation_json.size() + content.configuration.size() +
                         observation.applied.gains.size() * sizeof(cf64)));
      writer_->finish(content);
      writer_.reset();
      journal_.reset();
      // Without it the tables are whole, and are read as such.
      std::filesystem::remove(journal_path(part_path(path_)));
    });
    publish_part();
  }

 private:
  /// casacore loses tables, or the process, when a disk fills under it (products.md 5): it is never
  /// let near the end.
  void require_space(std::size_t n_bytes) const {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::path(part_path(path_)).parent_path();
    const auto space =
        std::filesystem::space(parent.empty() ? std::filesystem::path(".") : parent, error);
    if (error || space.available >= n_bytes) return;
    throw IoError(ExitCode::io, "cannot write " + path_ + ": " + std::to_string(space.available) +
                                    " bytes are free on its disk, a Measurement Set wants " +
                                    std::to_string(n_bytes) +
                                    " to go on; free space or write elsewhere");
  }

  template <class F>
  void run_or_abandon(const char* operation, F&& f) {
    PartVisibilityWriter::run_or_abandon([&] {
      try {
        f();
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        throw IoError(ExitCode::io, std::string("cannot ") + operation + " " + path_ + ": " +
                                        error.what() + disk_hint(path_));
      }
    });
  }

  /// With whole dumps the tables stay as they are, as a kill would leave them.
  void close_unfinished(bool) noexcept override {
    const bool keep = n_dumps_ > 0;
    if (keep && writer_) writer_->leave();
    try {  // tables that casacore may still hold open give their space back now
      for (const auto& entry : std::filesystem::recursive_directory_iterator(part_path(path_))) {
        if (!keep && entry.is_regular_file()) std::filesystem::resize_file(entry.path(), 0);
      }
    } catch (...) {
    }
    writer_.reset();
    journal_.reset();
  }

  std::unique_ptr<ms::Writer> writer_;
  std::optional<DumpJournal> journal_;
  std::vector<int> antenna1_, antenna2_;
  std::vector<cf32> data_;
  std::vector<float> weight_;
  std::unique_ptr<bool[]> flag_;
  std::vector<ms::DumpRow> dumps_;
};

void restore_applied(const ms::Impl& content, Observation& observation) {
  AppliedCorrections& applied = observation.applied;
  applied.filter_response = content.filter_response;
  for (const ms::InputRow& input : content.inputs) {
    if (content.has_delays) applied.delay_s.push_back(input.delay_s);
    if (content.has_levels) applied.input_rms_lsb.push_back(input.rms_lsb);
    if (content.has_saturation) applied.saturated_fraction.push_back(input.saturated_fraction);
    if (content.has_gains)
      applied.gains.insert(applied.gains.end(), input.gains.begin(), input.gains.end());
  }
}

Observation foreign_observation(const std::string& path, const ms::ReadResult& in,
                                const std::vector<std::int64_t>& used, int n_pols) {
  ForeignArray array;
  array.name = in.content.telescope_name;
  array.reference_itrf_m = in.content.telescope_itrf_m;
  for (const std::int64_t a : used) {
    const ms::AntennaRow& antenna = in.content.antennas.at(static_cast<std::size_t>(a));
    array.names.push_back(antenna.name);
    array.itrf_m.push_back(antenna.itrf_m);
    array.feed_angle_rad.push_back(antenna.feed_angles_rad[0]);
  }
  Observation observation;
  observation.array = array_from_itrf(array, n_pols);
  observation.frequency = axis_from_centers(path, in.content.channel_centers_hz);
  if (observation.frequency.n_channels == 1)
    observation.frequency.channel_width_hz = std::abs(in.content.channel_width_hz);
  observation.phase_center = {in.content.phase_center_rad[0], in.content.phase_center_rad[1]};
  observation.phase_center_name = in.content.field_name;
  observation.object = in.content.field_name;
  observation.observer = in.content.observer;
  observation.channel_bandwidth_hz = in.content.noise_bandwidth_hz;
  observation.time_source = TimeSource::header;
  return observation;
}

/// CORR_TYPE -> pol_product; throws for anything but linear feeds.
std::vector<int> products_of(const std::string& path, const std::vector<int>& corr_types) {
  std::vector<int> products;
  for (const int type : corr_types) {
    if (type == 1 && corr_types.size() == 1) {
      products.push_back(0);  // Stokes I alone is imaged like XX alone
    } else if (type >= 9 && type <= 12) {
      products.push_back(type - 9);
    } else {
      throw UnsupportedError("Measurement Set " + path + ": correlation type " +
                             std::to_string(type) +
                             " is not linear; ryle reads XX XY YX YY (9..12)");
    }
  }
  return products;
}

VisibilityFile build(const std::string& path, const ms::ReadResult& in,
                     const VisibilityReadOptions& options) {
  const std::vector<int> products = products_of(path, in.corr_types);
  VisibilityFile file;
  RowSet rows;
  rows.path = path;
  rows.products = products;
  rows.stokes_i = in.corr_types.front() == 1;
  rows.n_file_channels = static_cast<std::int64_t>(in.content.channel_centers_hz.size());
  std::vector<std::int64_t> used;
  if (in.is_ryle) {
    file.observation = observation_from_json(in.content.observation_json, path);
    restore_applied(in.content, file.observation);
    for (std::int64_t a = 0; a < file.observation.array.n_antennas(); ++a) used.push_back(a);
    rows.weight_per_count = weight_per_count(file.observation);
  } else {
    used = used_antennas(in.antenna1, in.antenna2);
    file.observation = foreign_observation(path, in, used, n_pols_of(products));
  }
  rows.antenna_index = index_of(used);
  rows.antenna1 = in.antenna1;
  rows.antenna2 = in.antenna2;
  rows.interval_s = in.interval_s;
  for (const double time_s : in.time_s)
    rows.centroid_tai_ns.push_back(tai_ns_from_mjd_seconds(time_s, in.tai));
  for (std::size_t r = 0; r < in.antenna1.size(); ++r) {
    rows.uvw_m.push_back({in.uvw_m[3 * r], in.uvw_m[3 * r + 1], in.uvw_m[3 * r + 2]});
  }
  rows.data = in.data;
  rows.weight = in.weight_spectrum;
  for (std::size_t k = 0; k < rows.weight.size(); ++k) {
    if (in.flag[k] != 0) rows.weight[k] = 0;
  }
  if (!in.is_ryle) {
    describe_values(in.content.data_unit, in.pol_convention, rows, file.observation);
    if (in.has_corrected_data && options.column.empty())
      file.observation.provenance.notes["column"] =
          "DATA was read; CORRECTED_DATA is there too (--column CORRECTED_DATA)";
    if (!options.column.empty())
      file.observation.provenance.notes["column"] = options.column + " was read, as asked for";
  }
  build_dumps(rows, options, file);
  for (std::size_t d = 0; d < file.dumps.size() && d < in.content.dumps.size(); ++d) {
    const ms::DumpRow& exact = in.content.dumps[d];
    set_exact_times(file.dumps[d], exact.start_tai_ns, exact.centroid_tai_ns, exact.interval_s,
                    exact.n_spectra);
  }
  return file;
}

}  // namespace

std::unique_ptr<VisibilityWriter> open_measurement_set_writer(const std::string& path,
                                                              const Observation& observation,
                                                              bool overwrite) {
  return std::make_unique<MeasurementSetWriter>(path, observation, overwrite);
}

VisibilityFile read_unfinished_measurement_set(const std::string& part) {
  // Finished, but not published: the journal has gone and the tables say all.
  if (!std::filesystem::exists(journal_path(part)) && std::filesystem::exists(part + "/RYLE_DUMP"))
    return read_measurement_set(part, {});
  const Journal journal = read_journal(journal_path(part));
  VisibilityFile file;
  file.observation = journal.observation;
  VisibilityDump shape;
  shape.n_channels = file.observation.frequency.n_channels;
  shape.n_pol_products = n_pol_products(file.observation);
  shape.n_baselines = n_pairs(file.observation.array.n_antennas());
  const auto size = static_cast<std::size_t>(checked_file_product(
      {shape.n_channels, shape.n_pol_products, shape.n_baselines}, "a visibility dump"));
  const double per_count = weight_per_count(file.observation);
  const auto rows =
      ms::read_in_child<ms::UnfinishedRows>("the unfinished Measurement Set", part, [&] {
        return ms::read_unfinished(
            part, shape.n_baselines * static_cast<std::int64_t>(journal.entries.size()));
      });
  const std::vector<int> order = casa_pol_order(shape.n_pol_products);
  for (std::size_t d = 0; d < journal.entries.size(); ++d) {
    if ((d + 1) * size > rows.data.size() || (d + 1) * size > rows.weight_spectrum.size()) break;
    const JournalEntry& entry = journal.entries[d];
    const cf32* data = rows.data.data() + d * size;
    const float* weight = rows.weight_spectrum.data() + d * size;
    if (rows_crc(data, weight, size) != entry.crc) break;
    VisibilityDump dump = shape;
    dump.start_tai_ns = entry.start_tai_ns;
    dump.centroid_tai_ns = entry.centroid_tai_ns;
    dump.interval_s = entry.interval_s;
    dump.n_spectra = entry.n_spectra;
    rows_to_dump(dump, data, order, dump.data, [](cf32 v) { return v; });
    rows_to_dump(dump, weight, order, dump.counts, [per_count](float w) {
      return static_cast<std::uint32_t>(std::llround(static_cast<double>(w) / per_count));
    });
    file.dumps.push_back(std::move(dump));
  }
  return file;
}

VisibilityFile read_measurement_set(const std::string& path, const VisibilityReadOptions& options) {
  return build(path,
               ms::read_in_child<ms::ReadResult>("Measurement Set", path,
                                                 [&] { return ms::read(path, options.column); }),
               options);
}

}  // namespace ryle::io

#else

namespace ryle::io {
namespace {
[[noreturn]] void reject(const std::string& path) {
  throw UnsupportedError(
      "Measurement Set " + path +
      ": this build has no casacore; install casacore-dev and configure again, or use a .uvfits or "
      ".uvh5 file");
}
}  // namespace

std::unique_ptr<VisibilityWriter> open_measurement_set_writer(const std::string& path,
                                                              const Observation&, bool) {
  reject(path);
}
VisibilityFile read_measurement_set(const std::string& path, const VisibilityReadOptions&) {
  reject(path);
}
VisibilityFile read_unfinished_measurement_set(const std::string& part) { reject(part); }

}  // namespace ryle::io
#endif
