// SPDX-License-Identifier: BSD-3-Clause
// UVFITS random groups. Data V_ij, (u, v, w) = (r_i - r_j)/c in seconds, pols -5..-8
// (conventions.md 5).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>

#include "ryle/core/baseline.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/visibility/dump_journal.hpp"
#include "ryle/io/visibility/uvfits.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle::io {
namespace {

using namespace uvfits;

constexpr std::int64_t kMaxAntennas = 2047;  // what the larger baseline code can hold

struct ExactTimes {
  std::vector<LONGLONG> start_tai_ns, centroid_tai_ns, n_spectra;
  std::vector<double> interval_s;
};

/// JD at 0h UTC before an instant, and the fraction of the day after it.
std::array<double, 2> julian_day(std::int64_t tai_ns) {
  const auto jd = utc_julian_date(tai_ns);
  const double whole = std::floor(jd[0] - 0.5) + 0.5;
  const double fraction = (jd[0] - whole) + jd[1];
  const double carry = std::floor(fraction);
  return {whole + carry, fraction - carry};
}

class UvfitsWriter final : public PartVisibilityWriter {
 public:
  UvfitsWriter(const std::string& path, const Observation& observation, bool overwrite)
      : PartVisibilityWriter(path, observation, overwrite),
        n_channels_(observation.frequency.n_channels),
        n_pol_(n_pol_products(observation)),
        n_baselines_(n_pairs(observation.array.n_antennas())) {
    if (observation.array.n_antennas() > kMaxAntennas) {
      throw UnsupportedError("cannot write " + path + ": UVFITS baseline codes end at " +
                             std::to_string(kMaxAntennas) + " antennas, the array has " +
                             std::to_string(observation.array.n_antennas()) +
                             "; write .ms or .uvh5");
    }
    begin();
    run_or_abandon([&] {
      file_.emplace(FitsFile::create(part_path(path_), path_));
      write_primary_header(1);
      journal_.emplace(journal_of(part_path(path_)), observation_);
    });
  }

  ~UvfitsWriter() override { end(); }

  void write(const VisibilityDump& dump) override {
    require_open();
    check_dump(observation_, dump);
    if (times_.start_tai_ns.empty()) day_ = julian_day(dump.centroid_tai_ns)[0];
    run_or_abandon([&] {
      if (const int fault = injected_fault("write", path_); fault != 0) {
        throw IoError::from_errno("write", path_, fault);
      }
      write_groups(dump);
      journal_->append({dump.start_tai_ns, dump.centroid_tai_ns, dump.interval_s, dump.n_spectra,
                        crc32c(values_.data(), values_.size() * sizeof(float))});
    });
    times_.start_tai_ns.push_back(dump.start_tai_ns);
    times_.centroid_tai_ns.push_back(dump.centroid_tai_ns);
    times_.n_spectra.push_back(dump.n_spectra);
    times_.interval_s.push_back(dump.interval_s);
    ++n_dumps_;
  }

  void publish(const Observation& observation) override {
    require_open();
    run_or_abandon([&] {
      finish_primary_header(observation);
      write_antenna_table(observation);
      write_exact_times();
      append_ryle_tables(*file_, observation);
      file_->close();
    });
    file_.reset();
    publish_part();
  }

 private:
  void close_unfinished(bool) noexcept override { file_.reset(); }

  void write_primary_header(std::int64_t n_groups) {
    long axes[7] = {0, 3, static_cast<long>(n_pol_), static_cast<long>(n_channels_), 1, 1, 1};
    int status = 0;
    fits_write_grphdr(file_->get(), 1, FLOAT_IMG, 7, axes, kParameters, n_groups, 1, &status);
    file_->check(status, "write the header of");
    struct Parameter {
      const char* name;
      const char* comment;
    };
    static constexpr Parameter kNames[kParameters] = {
        {"UU", "u, seconds"},
        {"VV", "v, seconds"},
        {"WW", "w, seconds"},
        {"DATE", "centroid, day"},
        {"DATE", "rest of the day"},
        {"BASELINE", "256 a1 + a2 or 2048 a1 + a2 + 65536"},
        {"ANTENNA1", "one-based"},
        {"ANTENNA2", "one-based"},
        {"SUBARRAY", ""},
        {"INTTIM", "nominal, seconds"}};
    for (int k = 0; k < kParameters; ++k) {
      const std::string number = std::to_string(k + 1);
      file_->key(("PTYPE" + number).c_str(), std::string(kNames[k].name), kNames[k].comment);
      file_->key(("PSCAL" + number).c_str(), 1.0);
      file_->key(("PZERO" + number).c_str(), 0.0);
    }
    write_axes();
  }

  void write_axes() {
    const auto axis = [&](int number, const char* type, double value, double pixel, double delta) {
      const std::string n = std::to_string(number);
      file_->key(("CTYPE" + n).c_str(), std::string(type));
      file_->key(("CRVAL" + n).c_str(), value);
      file_->key(("CRPIX" + n).c_str(), pixel);
      file_->key(("CDELT" + n).c_str(), delta);
    };
    const FrequencyAxis& frequency = observation_.frequency;
    axis(2, "COMPLEX", 1, 1, 1);
    axis(3, "STOKES", -5, 1, -1);
    axis(4, "FREQ", frequency.first_center_hz, 1,
         frequency.channel_width_hz != 0 ? frequency.channel_width_hz : 1);
    axis(5, "IF", 1, 1, 1);
    axis(6, "RA", right_ascension_deg(), 1, 1);
    axis(7, "DEC", observation_.phase_center.dec_rad / kDegree_rad, 1, 1);
    // Room for what is known at the end: with too little cfitsio moves the groups to make it, and a
    // disk that fills up meanwhile costs them.
    constexpr int kKeysOfTheEnd = 80;
    int status = 0;
    const auto n_history = static_cast<int>(history_lines(observation_).size());
    fits_set_hdrsize(file_->get(), kKeysOfTheEnd + 2 * n_history, &status);
    file_->check(status, "reserve the header of");
  }

  double right_ascension_deg() const {
    const double ra = std::fmod(observation_.phase_center.ra_rad / kDegree_rad, 360);
    return ra < 0 ? ra + 360 : ra;
  }

  void write_groups(const VisibilityDump& dump) {
    const auto size = static_cast<std::size_t>(n_baselines_ * n_channels_ * n_pol_);
    values_.resize(3 * size);
    const std::vector<int> order = aips_pol_order(n_pol_);
    scratch_.resize(size);
    dump_to_rows(dump, dump.data, order, scratch_.data(), [](cf32 v) { return v; });
    for (std::size_t k = 0; k < size; ++k) {
      values_[3 * k] = scratch_[k].real();
      values_[3 * k + 1] = scratch_[k].imag();
    }
    weight_.resize(size);
    const auto weight = static_cast<float>(weight_per_count(observation_));
    dump_to_rows(dump, dump.counts, order, weight_.data(),
                 [weight](std::uint32_t n) { return static_cast<float>(n) * weight; });
    for (std::size_t k = 0; k < size; ++k) values_[3 * k + 2] = weight_[k];

    const std::int64_t n_before =
        static_cast<std::int64_t>(times_.start_tai_ns.size()) * n_baselines_;
    set_group_count(n_before + n_baselines_);
    const std::vector<Vector3> uvw = baseline_uvw_m(observation_, dump.centroid_tai_ns);
    const auto group_size = static_cast<std::size_t>(3 * n_channels_ * n_pol_);
    int status = 0;
    for (std::int64_t b = 0; b < n_baselines_; ++b) {
      std::array<float, kParameters> parameters = group_parameters(dump, b, uvw[b]);
      fits_write_grppar_flt(file_->get(), n_before + b + 1, 1, kParameters, parameters.data(),
                            &status);
      fits_write_img_flt(file_->get(), n_before + b + 1, 1, static_cast<LONGLONG>(group_size),
                         values_.data() + static_cast<std::size_t>(b) * group_size, &status);
    }
    fits_flush_buffer(file_->get(), 0, &status);
    file_->check(status, "write");
  }

  std::array<float, kParameters> group_parameters(const VisibilityDump& dump, std::int64_t baseline,
                                                  const Vector3& uvw_m) const {
    const auto [i, j] = pair_of(baseline);
    const auto date = julian_day(dump.centroid_tai_ns);
    const double since_zero = (date[0] - day_) + date[1];
    std::array<float, kParameters> p{};
    for (std::size_t k = 0; k < 3; ++k) p[k] = static_cast<float>(uvw_m[k] / kSpeedOfLight_m_per_s);
    // Two float32 hold the day fraction to 0.3 ns; one alone is good to 5 ms.
    p[kDate] = static_cast<float>(since_zero);
    p[kDateRest] = static_cast<float>(since_zero - static_cast<double>(p[kDate]));
    p[kBaseline] = static_cast<float>(baseline_code(i + 1, j + 1, observation_.array.n_antennas()));
    p[kAntenna1] = static_cast<float>(i + 1);
    p[kAntenna2] = static_cast<float>(j + 1);
    p[kSubarray] = 1;
    p[kInterval] = static_cast<float>(dump.interval_s);
    return p;
  }

  /// The number of groups is known only at the end: cfitsio re-reads the structure after each dump.
  void set_group_count(std::int64_t n_groups) {
    int status = 0;
    file_->key("GCOUNT", static_cast<long long>(n_groups));
    fits_set_hdustruc(file_->get(), &status);
    file_->check(status, "extend");
  }

  /// cfitsio (and the standard's spirit) want at least one group: a file without dumps gets one of
  /// weight 0, which RYLE_DUMP with no rows tells from data.
  void write_empty_group() {
    const auto n = static_cast<LONGLONG>(3 * n_channels_ * n_pol_);
    std::vector<float> zeros(n, 0.0F);
    std::array<float, kParameters> parameters{};
    parameters[kBaseline] =
        static_cast<float>(baseline_code(1, 1, observation_.array.n_antennas()));
    parameters[kAntenna1] = parameters[kAntenna2] = parameters[kSubarray] = 1;
    parameters[kInterval] = static_cast<float>(observation_.nominal_dump_s);
    int status = 0;
    fits_write_grppar_flt(file_->get(), 1, 1, kParameters, parameters.data(), &status);
    fits_write_img_flt(file_->get(), 1, 1, n, zeros.data(), &status);
    file_->check(status, "write");
  }

  void finish_primary_header(const Observation& observation) {
    if (times_.start_tai_ns.empty()) write_empty_group();
    FitsFile& f = *file_;
    f.key("PZERO4", day_, "JD of day 0 at 0h UTC");
    const std::int64_t begin = times_.start_tai_ns.empty() ? 0 : times_.start_tai_ns.front();
    f.key("DATE-OBS", utc_iso(begin, 3), "first sample, UTC");
    f.key("TIMESYS", std::string("UTC"));
    f.key("TELESCOP",
          observation.array.name.empty() ? std::string("UNKNOWN") : observation.array.name);
    f.key("INSTRUME",
          observation.array.name.empty() ? std::string("UNKNOWN") : observation.array.name);
    f.key("OBSERVER", observation.observer.empty() ? std::string("unknown") : observation.observer);
    f.key("OBJECT", field_name(observation));
    f.key("ORIGIN", std::string("ryle"));
    f.key("CREATOR", "ryle " + std::string(version()));
    f.key("EPOCH", 2000.0);
    f.key("EQUINOX", 2000.0);
    // Lower case: pyuvdata 3.2 hands the word to astropy as it is, and writes it so itself.
    f.key("RADESYS", std::string("icrs"));
    f.key("SPECSYS", std::string("TOPOCENT"));
    f.key("BSCALE", 1.0);
    f.key("BZERO", 0.0);
    f.key("BUNIT", flux_unit(observation));
    if (flux_unit(observation) == "Jy")
      f.key("POLCONV", std::string("avg"), "pyuvdata: I is the mean of XX and YY");
    f.key("LAT", observation.array.latitude_rad / kDegree_rad, "degrees");
    f.key("LON", observation.array.longitude_rad / kDegree_rad, "degrees east");
    f.key("ALT", observation.array.height_m, "metres");
    f.history(history_lines(observation));
    f.checksum();
  }

  void write_antenna_table(const Observation& observation) {
    const ArrayLayout& array = observation.array;
    for (std::int64_t a = 0; a < array.n_antennas(); ++a) {
      name_width_ = std::max(name_width_, antenna_name(array, a).size());
    }
    std::vector<std::string> names{"ANNAME", "STABXYZ", "ORBPARM", "NOSTA",  "MNTSTA", "STAXOF",
                                   "POLTYA", "POLAA",   "POLCALA", "POLTYB", "POLAB",  "POLCALB"};
    std::vector<std::string> forms{std::to_string(name_width_) + "A",
                                   "3D",
                                   "0D",
                                   "1J",
                                   "1J",
                                   "1E",
                                   "1A",
                                   "1E",
                                   "3E",
                                   "1A",
                                   "1E",
                                   "3E"};
    std::vector<std::string> units{"", "METERS",  "", "", "",        "METERS",
                                   "", "DEGREES", "", "", "DEGREES", ""};
    create_table(*file_, "AIPS AN", std::move(names), std::move(forms), std::move(units),
                 array.n_antennas());
    write_antenna_keys(observation);
    for (std::int64_t a = 0; a < array.n_antennas(); ++a) write_antenna_row(array, a);
    file_->checksum();
  }

  void write_antenna_keys(const Observation& observation) {
    const ArrayLayout& array = observation.array;
    FitsFile& f = *file_;
    const Vector3 reference = itrf_of_reference(array);
    const std::int64_t begin = times_.centroid_tai_ns.empty() ? 0 : times_.centroid_tai_ns.front();
    const std::string date = utc_iso(begin, 3).substr(0, 10) + "T00:00:00.0";
    const double midnight_lst =
        local_sidereal_time_rad(array, tai_ns_from_utc_iso(date), observation.earth_orientation);
    double gst_deg = std::fmod((midnight_lst - array.longitude_rad) / kDegree_rad, 360);
    if (gst_deg < 0) gst_deg += 360;
    f.key("EXTVER", 1);
    f.key("ARRAYX", reference[0], "ITRF of the array reference, metres");
    f.key("ARRAYY", reference[1]);
    f.key("ARRAYZ", reference[2]);
    f.key("FRAME", std::string("ITRF"));
    f.key("XYZHAND", std::string("RIGHT"));
    f.key("GSTIA0", gst_deg, "degrees, at 0h of RDATE");
    f.key("DEGPDY", 360.9856438593, "Earth rotation, degrees a day");
    f.key("FREQ", observation.frequency.first_center_hz);
    f.key("RDATE", date);
    f.key("POLARX", 0.0);
    f.key("POLARY", 0.0);
    f.key("UT1UTC", observation.earth_orientation.dut1_s);
    f.key("DATUTC", 0.0);
    f.key("TIMESYS", std::string("UTC"));
    f.key("TIMSYS", std::string("UTC"));
    f.key("ARRNAM", array.name.empty() ? std::string("UNKNOWN") : array.name);
    f.key("NUMORB", 0);
    f.key("NOPCAL", 3);
    f.key("NO_IF", 1);
    f.key("POLTYPE", std::string("X-Y LIN"));
    f.key("FREQID", -1);
  }

  void write_antenna_row(const ArrayLayout& array, std::int64_t a) {
    int status = 0;
    const LONGLONG row = a + 1;
    fitsfile* f = file_->get();
    std::string name = antenna_name(array, a);
    // x in the meridian of the array (conventions.md 5): the ITRF offset turned by minus the
    // longitude.
    const Vector3 offset = itrf_offset_of_enu(array, array.antennas[a].enu_m);
    const double c = std::cos(array.longitude_rad);
    const double s = std::sin(array.longitude_rad);
    double xyz[3] = {c * offset[0] + s * offset[1], c * offset[1] - s * offset[0], offset[2]};
    const auto angles = feed_angles_rad(array, a);
    long station = static_cast<long>(a + 1);
    long mount =
        7;  // pyuvdata's code for antennas that do not move; AIPS ends at 6 and CASA says "unknown"
    float zero[3] = {0, 0, 0};
    float angle_x = static_cast<float>(angles[0] / kDegree_rad);
    float angle_y = static_cast<float>(angles[1] / kDegree_rad);
    char x[] = "X";
    char y[] = "Y";
    char* pol_x = x;
    char* pol_y = y;
    // Padded with zero bytes: with cfitsio's blanks pyuvdata would call the antenna "Tile11  ".
    name.resize(name_width_, '\0');
    fits_write_tblbytes(f, row, 1, static_cast<LONGLONG>(name_width_),
                        reinterpret_cast<unsigned char*>(name.data()), &status);
    fits_write_col_dbl(f, 2, row, 1, 3, xyz, &status);
    fits_write_col_lng(f, 4, row, 1, 1, &station, &status);
    fits_write_col_lng(f, 5, row, 1, 1, &mount, &status);
    fits_write_col_flt(f, 6, row, 1, 1, zero, &status);
    fits_write_col_str(f, 7, row, 1, 1, &pol_x, &status);
    fits_write_col_flt(f, 8, row, 1, 1, &angle_x, &status);
    fits_write_col_flt(f, 9, row, 1, 3, zero, &status);
    fits_write_col_str(f, 10, row, 1, 1, &pol_y, &status);
    fits_write_col_flt(f, 11, row, 1, 1, &angle_y, &status);
    fits_write_col_flt(f, 12, row, 1, 3, zero, &status);
    file_->check(status, "write the antenna table of");
  }

  void write_exact_times() {
    char names[4][16] = {"START_TAI_NS", "CENTROID_TAI_NS", "N_SPECTRA", "INTERVAL"};
    char forms[4][4] = {"1K", "1K", "1K", "1D"};
    char units[4][4] = {"ns", "ns", "", "s"};
    char* type[4] = {names[0], names[1], names[2], names[3]};
    char* form[4] = {forms[0], forms[1], forms[2], forms[3]};
    char* unit[4] = {units[0], units[1], units[2], units[3]};
    int status = 0;
    const auto n = static_cast<LONGLONG>(times_.start_tai_ns.size());
    fits_create_tbl(file_->get(), BINARY_TBL, n, 4, type, form, unit, "RYLE_DUMP", &status);
    if (n > 0) {
      fits_write_col_lnglng(file_->get(), 1, 1, 1, n, times_.start_tai_ns.data(), &status);
      fits_write_col_lnglng(file_->get(), 2, 1, 1, n, times_.centroid_tai_ns.data(), &status);
      fits_write_col_lnglng(file_->get(), 3, 1, 1, n, times_.n_spectra.data(), &status);
      fits_write_col_dbl(file_->get(), 4, 1, 1, n, times_.interval_s.data(), &status);
    }
    file_->check(status, "write RYLE_DUMP of");
    file_->checksum();
  }

  std::int64_t n_channels_;
  std::int64_t n_pol_;
  std::int64_t n_baselines_;
  double day_ = 2440587.5;  ///< JD of the first dump's day; 1970 in a file without dumps
  std::size_t name_width_ = 8;
  std::optional<FitsFile> file_;
  std::optional<DumpJournal> journal_;  ///< the tables come last: what is whole until then
  std::vector<cf32> scratch_;
  std::vector<float> weight_, values_;
  ExactTimes times_;
};

}  // namespace

std::unique_ptr<VisibilityWriter> open_uvfits_writer(const std::string& path,
                                                     const Observation& observation,
                                                     bool overwrite) {
  return std::make_unique<UvfitsWriter>(path, observation, overwrite);
}

}  // namespace ryle::io
