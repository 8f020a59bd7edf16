// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/beam/fold_file.hpp"

#include "ryle/core/error.hpp"
#include "ryle/core/version.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle {
namespace {

using io::FitsFile;

struct Column {
  std::string name, form, unit;
};

void create_fold_table(FitsFile& file, const char* name, std::vector<Column> columns,
                       std::size_t n_rows) {
  std::vector<char*> names, forms, units;
  for (auto& c : columns) {
    names.push_back(c.name.data());
    forms.push_back(c.form.data());
    units.push_back(c.unit.data());
  }
  int status = 0;
  fits_create_tbl(file.get(), BINARY_TBL, static_cast<LONGLONG>(n_rows),
                  static_cast<int>(columns.size()), names.data(), forms.data(), units.data(), name,
                  &status);
  file.check(status, std::string("create table ") + name);
}

void put_column(FitsFile& file, int column, const std::vector<double>& values) {
  int status = 0;
  fits_write_col_dbl(file.get(), column, 1, 1, static_cast<LONGLONG>(values.size()),
                     const_cast<double*>(values.data()), &status);
  file.check(status, "write");
}

void write_head(FitsFile& file, const FoldedPulsar& f) {
  int status = 0;
  fits_create_img(file.get(), BYTE_IMG, 0, nullptr, &status);
  file.check(status, "create");
  file.key("OBJECT", f.source);
  file.key("TELESCOP", f.telescope);
  file.key("ORIGIN", "Ryle " + std::string(version()));
  file.key("DATAFILE", f.file, "what was folded");
  file.key("EPHEM", f.ephemeris, "pulsar ephemeris; empty: a topocentric period");
  file.key("TSTART", f.start_mjd_utc, "MJD (UTC) of the first sample");
  file.key("PERIOD", f.period_s, "s, topocentric, mean over the data");
  file.key("PSHORT", f.shortest_s, "s, shortest period searched; 0 = none");
  file.key("PLONG", f.longest_s, "s, longest period searched; 0 = none");
  file.key("PEDGE", f.at_edge, "PERIOD lies at an edge of these");
  file.key("DM", f.dm_pc_cm3, "pc cm-3");
  file.key("KDM", f.k_dm, "dispersion constant, s MHz2 pc-1 cm3");
  file.key("CHI2", f.reduced_chi2, "reduced, of the profile against its mean");
  file.key("NBIN", static_cast<long long>(f.n_bins));
  file.history({f.command_line});
  file.checksum();
}

void write_subints(FitsFile& file, const FoldedPulsar& f) {
  const auto cells = static_cast<std::size_t>(f.n_bins) * f.center_hz.size();
  create_fold_table(file, "SUBINT",
                    {{"TSTART", "1D", "s"},
                     {"TSTOP", "1D", "s"},
                     {"SUM", std::to_string(cells) + "E", ""},
                     {"COUNT", std::to_string(cells) + "J", ""}},
                    f.begin_s.size());
  put_column(file, 1, f.begin_s);
  put_column(file, 2, f.end_s);
  long axes[2] = {static_cast<long>(f.n_bins), static_cast<long>(f.center_hz.size())};
  int status = 0;
  fits_write_tdim(file.get(), 3, 2, axes, &status);
  fits_write_tdim(file.get(), 4, 2, axes, &status);
  fits_write_col_flt(file.get(), 3, 1, 1, static_cast<LONGLONG>(f.sums.size()),
                     const_cast<float*>(f.sums.data()), &status);
  const std::vector<int> counts(f.counts.begin(), f.counts.end());
  fits_write_col_int(file.get(), 4, 1, 1, static_cast<LONGLONG>(counts.size()),
                     const_cast<int*>(counts.data()), &status);
  file.check(status, "write");
  file.checksum();
}

void write_fold_content(const std::string& path, const FoldedPulsar& f) {
  FitsFile file = FitsFile::create(part_path(path), path);
  write_head(file, f);
  write_subints(file, f);
  create_fold_table(file, "CHANNEL", {{"FREQ", "1D", "MHz"}, {"MEAN", "1D", ""}, {"RMS", "1D", ""}},
                    f.center_hz.size());
  std::vector<double> mhz;
  for (const double hz : f.center_hz) mhz.push_back(hz * 1e-6);
  put_column(file, 1, mhz);
  put_column(file, 2, f.mean);
  put_column(file, 3, f.rms);
  file.checksum();
  create_fold_table(file, "PROFILE",
                    {{"PHASE", "1D", "turn"}, {"MEAN", "1D", ""}, {"SNR", "1D", ""}},
                    f.profile.size());
  std::vector<double> phase;
  for (std::size_t b = 0; b < f.profile.size(); ++b)
    phase.push_back((static_cast<double>(b) + 0.5) / static_cast<double>(f.profile.size()));
  put_column(file, 1, phase);
  put_column(file, 2, f.profile);
  put_column(file, 3, f.profile_snr);
  file.checksum();
  file.close();
}

}  // namespace

void write_fold_fits(const std::string& path, const FoldedPulsar& f, bool overwrite) {
  const std::size_t cells =
      f.begin_s.size() * f.center_hz.size() * static_cast<std::size_t>(f.n_bins);
  RYLE_ASSERT(f.sums.size() == cells && f.counts.size() == cells);
  Part part(path, overwrite);
  write_fold_content(path, f);
  part.publish();
}

}  // namespace ryle
