// SPDX-License-Identifier: BSD-3-Clause
// UVH5 (pyuvdata's HDF5 visibilities): conj(V_ij), uvw = r_j - r_i, pols -5..-8. Grows under SWMR,
// one flushed append a dump, so that a reader may follow and a killed run leaves every flushed dump
// readable (products.md 5).
#include <cmath>
#include <memory>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle::io {
namespace {

using h5::Growing;
using h5::Handle;

/// What the groups and numbers of the header take, generously.
constexpr std::size_t kHeader_bytes = 64 << 10;
constexpr int kRecords = 32;

Handle type_copy(hid_t type) { return {H5Tcopy(type), H5Tclose}; }

/// Data sets with one row per baseline and time, and Ryle's own with one row per dump.
struct RowSets {
  Growing visdata, flags, nsamples;
  Growing time, interval, antenna1, antenna2, uvw, phase_center_id, app_ra, app_dec, frame_pa;
  Growing start, centroid, n_spectra, weights_crc, crc;
};

class Uvh5Writer final : public PartVisibilityWriter {
 public:
  Uvh5Writer(const std::string& path, const Observation& observation, bool overwrite)
      : PartVisibilityWriter(path, observation, overwrite),
        n_channels_(observation.frequency.n_channels),
        n_pol_(n_pol_products(observation)),
        n_baselines_(n_pairs(observation.array.n_antennas())) {
    h5::silence();
    begin();
    run_or_abandon([&] {
      const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
      H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);  // SWMR needs it
      file_ = Handle(H5Fcreate(part_path(path_).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()),
                     H5Fclose);
      h5::check(file_.get(), "create", path_);
      write_header(observation);
      create_rows();
      write_ryle_group(observation, nullptr);  // a run that is killed must still say what it was
      reserve_room(observation);
      h5::check(H5Fstart_swmr_write(file_.get()), "start single-writer-multiple-reader mode of",
                path_);
    });
  }

  ~Uvh5Writer() override { end(); }

  void write(const VisibilityDump& dump) override {
    require_open();
    check_dump(observation_, dump);
    if (const int fault = injected_fault("write", path_); fault != 0)
      run_or_abandon([&] { throw IoError::from_errno("write", path_, fault); }, true);
    run_or_abandon([&] {
      append_rows(dump);
      append_values(dump);
    });
    ++n_dumps_;
  }

  void publish(const Observation& observation) override {
    require_open();
    run_or_abandon([&] {
      rows_ = RowSets();
      if (!file_.close()) h5::check(-1, "close", path_);
      // SWMR forbids new objects: what is known only at the end is written after an ordinary
      // reopening.
      const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
      H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
      file_ = Handle(H5Fopen(part_path(path_).c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
      h5::check(file_.get(), "reopen", path_);
      h5::remove(group("Ryle").get(), "reserve");
      write_header(observation);
      write_ryle_group(observation, &observation_.applied);
      h5::put_int(group("Ryle").get(), "complete", 1, path_);  // last
      if (!file_.close()) h5::check(-1, "close", path_);
    });
    publish_part();
  }

 private:
  /// What is flushed is whole: HDF5, as a single writer with readers, writes what others stand on
  /// first. A file that HDF5 failed to write is left as a kill would leave it; closing it would
  /// write what could not be written once more, and say that it ends where it does not.
  void close_unfinished(bool sound) noexcept override {
    try {
      static auto* left = new std::vector<std::pair<RowSets, Handle>>();
      if (!sound && n_dumps_ > 0) left->emplace_back(std::move(rows_), std::move(file_));
    } catch (...) {  // out of memory
    }
    rows_ = RowSets();
    file_.reset();
  }

  /// Room within the file for what publish() writes, so that a disk that is full by then costs
  /// nothing: it is freed first.
  void reserve_room(const Observation& observation) {
    const Handle room = group("Ryle/reserve");
    const std::size_t size = kHeader_bytes + 2 * (observation_to_json(observation).size() +
                                                  observation.provenance.configuration.size());
    const std::vector<std::int8_t> zeros(size, 0);
    h5::put_array(room.get(), "values", H5T_NATIVE_INT8, zeros.data(), {size}, path_);
    // HDF5 keeps room of values and of its own records apart.
    for (int k = 0; k < kRecords; ++k)
      h5::put_int(room.get(), ("record" + std::to_string(k)).c_str(), 0, path_);
  }

  Handle group(const char* name) {
    if (h5::exists(file_.get(), name)) return h5::open_group(file_.get(), name, path_);
    Handle out(H5Gcreate2(file_.get(), name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    h5::check(out.get(), std::string("create ") + name + " in", path_);
    return out;
  }

  void write_header(const Observation& observation) {
    const Handle header = group("Header");
    const hid_t h = header.get();
    const std::int64_t n_antennas = observation.array.n_antennas();
    h5::put_text(h, "version", "1.2", path_);
    h5::put_int(h, "Nants_data", n_antennas, path_);
    h5::put_int(h, "Nants_telescope", n_antennas, path_);
    h5::put_int(h, "Nbls", n_baselines_, path_);
    h5::put_int(h, "Nblts", n_baselines_ * n_dumps_, path_);
    h5::put_int(h, "Nfreqs", n_channels_, path_);
    h5::put_int(h, "Npols", n_pol_, path_);
    h5::put_int(h, "Nspws", 1, path_);
    h5::put_int(h, "Ntimes", n_dumps_, path_);
    h5::put_int(h, "Nphase", 1, path_);
    h5::put_text(h, "vis_units", flux_unit(observation), path_);
    // I = (XX + YY)/2, conventions.md 6; of uncalibrated data pyuvdata 3.1 rejects the statement.
    if (flux_unit(observation) == "Jy")
      h5::put_text(h, "pol_convention", "avg", path_);
    else
      h5::remove(h, "pol_convention");
    h5::put_text(h, "blt_order", "time, baseline", path_);
    h5::put_bool(h, "blts_are_rectangular", true, path_);
    h5::put_bool(h, "time_axis_faster_than_bls", false, path_);
    h5::put_text(h, "timesys", "UTC", path_);
    h5::put_double(h, "dut1", observation.earth_orientation.dut1_s, path_);
    std::string history;
    for (const std::string& line : history_lines(observation)) history += line + "\n";
    h5::put_text(h, "history", history, path_);
    write_telescope(h, observation);
    write_axes(h, observation);
    write_phase_center(h, observation);
  }

  void write_telescope(hid_t h, const Observation& observation) {
    const ArrayLayout& array = observation.array;
    const auto n = static_cast<hsize_t>(array.n_antennas());
    const std::string name = array.name.empty() ? "UNKNOWN" : array.name;
    h5::put_text(h, "telescope_name", name, path_);
    h5::put_text(h, "instrument", name, path_);
    h5::put_double(h, "latitude", array.latitude_rad / kDegree_rad, path_);
    h5::put_double(h, "longitude", array.longitude_rad / kDegree_rad, path_);
    h5::put_double(h, "altitude", array.height_m, path_);
    h5::put_text(h, "telescope_frame", "itrs", path_);
    std::vector<std::string> names, mounts, feeds;
    std::vector<std::int64_t> numbers;
    std::vector<double> positions, angles;
    const auto n_pols = static_cast<std::size_t>(array.n_pols());
    for (std::int64_t a = 0; a < array.n_antennas(); ++a) {
      names.push_back(antenna_name(array, a));
      mounts.emplace_back("fixed");
      numbers.push_back(a);
      for (const double x : itrf_offset_of_enu(array, array.antennas[a].enu_m)) {
        positions.push_back(x);
      }
      const auto feed_angles = feed_angles_rad(array, a);
      for (std::size_t pol = 0; pol < n_pols; ++pol) {
        feeds.emplace_back(pol == 0 ? "x" : "y");
        angles.push_back(feed_angles[pol]);
      }
    }
    h5::put_texts(h, "antenna_names", names, {n}, path_);
    h5::put_texts(h, "mount_type", mounts, {n}, path_);
    h5::put_array(h, "antenna_numbers", H5T_NATIVE_INT64, numbers.data(), {n}, path_);
    h5::put_array(h, "antenna_positions", H5T_NATIVE_DOUBLE, positions.data(), {n, 3}, path_);
    h5::put_int(h, "Nfeeds", static_cast<std::int64_t>(n_pols), path_);
    h5::put_texts(h, "feed_array", feeds, {n, n_pols}, path_);
    h5::put_array(h, "feed_angle", H5T_NATIVE_DOUBLE, angles.data(), {n, n_pols}, path_);
  }

  void write_axes(hid_t h, const Observation& observation) {
    const auto n = static_cast<hsize_t>(n_channels_);
    std::vector<double> centers, widths(n, observation.frequency.channel_width_hz);
    for (std::int64_t c = 0; c < n_channels_; ++c)
      centers.push_back(observation.frequency.center_hz(c));
    const std::vector<std::int64_t> window_of_channel(n, 0);
    const std::int64_t window = 0;
    const std::vector<std::int64_t> pols =
        n_pol_ == 4 ? std::vector<std::int64_t>{-5, -6, -7, -8} : std::vector<std::int64_t>{-5};
    h5::put_array(h, "freq_array", H5T_NATIVE_DOUBLE, centers.data(), {n}, path_);
    h5::put_array(h, "channel_width", H5T_NATIVE_DOUBLE, widths.data(), {n}, path_);
    h5::put_array(h, "spw_array", H5T_NATIVE_INT64, &window, {1}, path_);
    h5::put_array(h, "flex_spw_id_array", H5T_NATIVE_INT64, window_of_channel.data(), {n}, path_);
    h5::put_array(h, "polarization_array", H5T_NATIVE_INT64, pols.data(), {pols.size()}, path_);
  }

  void write_phase_center(hid_t h, const Observation& observation) {
    if (h5::exists(h, "phase_center_catalog")) H5Ldelete(h, "phase_center_catalog", H5P_DEFAULT);
    const Handle catalog(
        H5Gcreate2(h, "phase_center_catalog", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
    const Handle entry(H5Gcreate2(catalog.get(), "0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                       H5Gclose);
    h5::check(entry.get(), "create the phase centre of", path_);
    double ra = std::fmod(observation.phase_center.ra_rad, 2 * kPi);
    if (ra < 0) ra += 2 * kPi;
    const bool unprojected = is_unprojected(observation);
    h5::put_text(entry.get(), "cat_name", unprojected ? "unprojected" : field_name(observation),
                 path_);
    h5::put_text(entry.get(), "cat_type", unprojected ? "unprojected" : "sidereal", path_);
    h5::put_double(entry.get(), "cat_lon", unprojected ? 0 : ra, path_);
    h5::put_double(entry.get(), "cat_lat", unprojected ? kPi / 2 : observation.phase_center.dec_rad,
                   path_);
    h5::put_text(entry.get(), "cat_frame", unprojected ? "altaz" : "icrs", path_);
    h5::put_text(entry.get(), "info_source", "ryle", path_);
  }

  void create_rows() {
    const Handle header = group("Header");
    const Handle data = group("Data");
    const Handle own = group("Ryle");
    const auto rows = static_cast<hsize_t>(n_baselines_);
    const std::vector<hsize_t> cube{rows, static_cast<hsize_t>(n_channels_),
                                    static_cast<hsize_t>(n_pol_)};
    const auto column = [&](Growing& set, const char* name, hid_t type) {
      set = Growing(header.get(), name, type_copy(type), {rows}, path_);
    };
    rows_.visdata = Growing(data.get(), "visdata", h5::complex_type(), cube, path_);
    rows_.flags = Growing(data.get(), "flags", h5::bool_type(), cube, path_);
    rows_.nsamples = Growing(data.get(), "nsamples", type_copy(H5T_NATIVE_FLOAT), cube, path_);
    column(rows_.time, "time_array", H5T_NATIVE_DOUBLE);
    column(rows_.interval, "integration_time", H5T_NATIVE_DOUBLE);
    column(rows_.antenna1, "ant_1_array", H5T_NATIVE_INT64);
    column(rows_.antenna2, "ant_2_array", H5T_NATIVE_INT64);
    column(rows_.phase_center_id, "phase_center_id_array", H5T_NATIVE_INT64);
    column(rows_.app_ra, "phase_center_app_ra", H5T_NATIVE_DOUBLE);
    column(rows_.app_dec, "phase_center_app_dec", H5T_NATIVE_DOUBLE);
    column(rows_.frame_pa, "phase_center_frame_pa", H5T_NATIVE_DOUBLE);
    rows_.uvw = Growing(header.get(), "uvw_array", type_copy(H5T_NATIVE_DOUBLE), {rows, 3}, path_);
    rows_.start = Growing(own.get(), "start_tai_ns", type_copy(H5T_NATIVE_INT64), {64}, path_);
    rows_.centroid =
        Growing(own.get(), "centroid_tai_ns", type_copy(H5T_NATIVE_INT64), {64}, path_);
    rows_.n_spectra = Growing(own.get(), "n_spectra", type_copy(H5T_NATIVE_INT64), {64}, path_);
    rows_.weights_crc =
        Growing(own.get(), "weights_crc32c", type_copy(H5T_NATIVE_UINT32), {64}, path_);
    rows_.crc = Growing(own.get(), "visdata_crc32c", type_copy(H5T_NATIVE_UINT32), {64}, path_);
  }

  void append_rows(const VisibilityDump& dump) {
    const auto n = static_cast<hsize_t>(n_baselines_);
    const auto jd = utc_julian_date(dump.centroid_tai_ns);
    ApparentCenter center = apparent_center(observation_, dump.centroid_tai_ns);
    const bool unprojected = is_unprojected(observation_);
    if (unprojected) center = {center.lst_rad, observation_.array.latitude_rad, 0, center.lst_rad};
    const auto constant = [&](Growing& set, double value) {
      const std::vector<double> values(n, value);
      set.append(H5T_NATIVE_DOUBLE, values.data(), n, path_);
    };
    constant(rows_.time, jd[0] + jd[1]);
    constant(rows_.interval, dump.interval_s);
    constant(rows_.app_ra, center.ra_rad);
    constant(rows_.app_dec, center.dec_rad);
    constant(rows_.frame_pa, center.frame_pa_rad);
    std::vector<std::int64_t> antenna1, antenna2;
    std::vector<double> uvw;
    const std::vector<Vector3> uvw_ij = baseline_uvw_m(observation_, dump.centroid_tai_ns);
    for (std::int64_t b = 0; b < n_baselines_; ++b) {
      const auto [i, j] = pair_of(b);
      antenna1.push_back(i);
      antenna2.push_back(j);
      for (std::size_t k = 0; k < 3; ++k) {
        const auto enu = [&](std::int64_t a) { return observation_.array.antennas[a].enu_m[k]; };
        uvw.push_back(unprojected ? enu(j) - enu(i) : 0 - uvw_ij[b][k]);
      }
    }
    const std::vector<std::int64_t> zeros(n, 0);
    rows_.antenna1.append(H5T_NATIVE_INT64, antenna1.data(), n, path_);
    rows_.antenna2.append(H5T_NATIVE_INT64, antenna2.data(), n, path_);
    rows_.phase_center_id.append(H5T_NATIVE_INT64, zeros.data(), n, path_);
    rows_.uvw.append(H5T_NATIVE_DOUBLE, uvw.data(), n, path_);
  }

  void append_values(const VisibilityDump& dump) {
    const auto n = static_cast<hsize_t>(n_baselines_);
    const std::vector<int> order = aips_pol_order(n_pol_);
    std::vector<cf32> values(dump.data.size());
    std::vector<float> samples(dump.data.size());
    std::vector<std::int8_t> flags(dump.data.size());
    dump_to_rows(dump, dump.data, order, values.data(), [](cf32 v) { return std::conj(v); });
    const double whole = dump.n_spectra > 0 ? static_cast<double>(dump.n_spectra) : 1;
    dump_to_rows(dump, dump.counts, order, samples.data(),
                 [whole](std::uint32_t c) { return static_cast<float>(c / whole); });
    dump_to_rows(dump, dump.counts, order, flags.data(),
                 [](std::uint32_t c) { return static_cast<std::int8_t>(c == 0); });
    const Handle complex = h5::complex_type();
    const Handle boolean = h5::bool_type();
    rows_.flags.append(boolean.get(), flags.data(), n, path_);
    rows_.nsamples.append(H5T_NATIVE_FLOAT, samples.data(), n, path_);
    rows_.visdata.append(complex.get(), values.data(), n, path_);
    // The checksums come last: a dump counts only when its sums are there and right.
    const std::uint32_t weights_crc = uvh5_weights_crc(samples.data(), flags.data(), flags.size());
    const std::uint32_t crc = crc32c(values.data(), values.size() * sizeof(cf32));
    rows_.start.append(H5T_NATIVE_INT64, &dump.start_tai_ns, 1, path_);
    rows_.centroid.append(H5T_NATIVE_INT64, &dump.centroid_tai_ns, 1, path_);
    rows_.n_spectra.append(H5T_NATIVE_INT64, &dump.n_spectra, 1, path_);
    rows_.weights_crc.append(H5T_NATIVE_UINT32, &weights_crc, 1, path_);
    rows_.crc.append(H5T_NATIVE_UINT32, &crc, 1, path_);
  }

  /// The metadata as Ryle reads them; arrays equal to those in `written` are left as they are.
  void write_ryle_group(const Observation& observation, const AppliedCorrections* written) {
    const Handle own = group("Ryle");
    const hid_t h = own.get();
    const AppliedCorrections& applied = observation.applied;
    const auto doubles = [&](const char* name, const std::vector<double>& values) {
      if (!values.empty())
        h5::put_array(h, name, H5T_NATIVE_DOUBLE, values.data(), {values.size()}, path_);
    };
    h5::put_text(h, "observation_json", observation_to_json(observation), path_);
    h5::put_text(h, "configuration", observation.provenance.configuration, path_);
    if (written == nullptr || written->delay_s != applied.delay_s)
      doubles("delay_s", applied.delay_s);
    if (written == nullptr || written->filter_response != applied.filter_response)
      doubles("filter_response", applied.filter_response);
    doubles("input_rms_lsb", applied.input_rms_lsb);
    doubles("saturated_fraction", applied.saturated_fraction);
    const bool same_gains = written != nullptr && written->gains == applied.gains;
    if (!same_gains && !applied.gains.empty()) {  // [input x channel][re, im]
      h5::put_array(h, "gains", H5T_NATIVE_DOUBLE, applied.gains.data(), {applied.gains.size(), 2},
                    path_);
    }
  }

  std::int64_t n_channels_;
  std::int64_t n_pol_;
  std::int64_t n_baselines_;
  Handle file_;
  RowSets rows_;
};

}  // namespace

std::unique_ptr<VisibilityWriter> open_uvh5_writer(const std::string& path,
                                                   const Observation& observation, bool overwrite) {
  return std::make_unique<Uvh5Writer>(path, observation, overwrite);
}

}  // namespace ryle::io
