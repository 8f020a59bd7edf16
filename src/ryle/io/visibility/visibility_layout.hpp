// SPDX-License-Identifier: BSD-3-Clause
// What the three visibility formats share: row order, signs, weights, the metadata as text. Private
// to io/.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle::io {

/// Checks sizes before anything is written; throws ConfigError naming the field.
void check_observation(const Observation& observation);
void check_dump(const Observation& observation, const VisibilityDump& dump);

/// Baseline vectors of one dump, conventions.md 5. @shape [baseline] @unit m
/// (u, v, w)_ij = (r_i - r_j) along east, north and s_0 of the phase centre at the centroid.
std::vector<Vector3> baseline_uvw_m(const Observation& observation, std::int64_t centroid_tai_ns);

/// Position of file product q in pol_product order (XX XY YX YY).
/// MS: XX XY YX YY; AIPS order (UVFITS, UVH5): XX YY XY YX, codes -5 -6 -7 -8.
std::vector<int> casa_pol_order(std::int64_t n_pol_products);
std::vector<int> aips_pol_order(std::int64_t n_pol_products);

/// Independent samples behind one value: count x noise bandwidth x spectrum interval
/// (reliability.md 3).
double weight_per_count(const Observation& observation);
double spectrum_interval_s(const Observation& observation);
double noise_bandwidth_hz(const Observation& observation);

/// Nothing was taken out of the phases (correlate.fringe_stopping = "none"): not by a phase centre,
/// not by cables.
bool is_unprojected(const Observation& observation);
std::int64_t n_pol_products(const Observation& observation);
std::string antenna_name(const ArrayLayout& array, std::int64_t antenna);  ///< never empty
std::string field_name(const Observation& observation);  ///< object, else the phase centre
/// "Jy" or "uncalib", the words pyuvdata and CASA know.
std::string flux_unit(const Observation& observation);
/// Feed angles of an antenna {X, Y}, from north through east; Y = X + 90 deg where no input says
/// otherwise.
std::array<double, 2> feed_angles_rad(const ArrayLayout& array, std::int64_t antenna);

/// Apparent place of the phase centre and the turn of ICRS north against it (UVH5 header).
struct ApparentCenter {
  double ra_rad = 0;
  double dec_rad = 0;
  double frame_pa_rad = 0;
  double lst_rad = 0;
};
ApparentCenter apparent_center(const Observation& observation, std::int64_t tai_ns);

/// Short provenance lines for HISTORY (no '=' that a reader could take for a keyword, printable
/// ASCII, <= 70 characters).
std::vector<std::string> history_lines(const Observation& observation);
/// Copies a dump to rows: out[(baseline * n_channels + channel) * n_pol + q] =
/// transform(in[channel][baseline][order[q]]). Baselines in blocks: both sides then stay in cache
/// lines (the plain order costs a miss per value).
template <class In, class Out, class Transform>
void dump_to_rows(const VisibilityDump& dump, const std::vector<In>& in,
                  const std::vector<int>& order, Out* out, Transform transform) {
  constexpr std::int64_t kBlock = 16;
  const std::int64_t n_pol = dump.n_pol_products;
  for (std::int64_t first = 0; first < dump.n_baselines; first += kBlock) {
    const std::int64_t last = first + kBlock < dump.n_baselines ? first + kBlock : dump.n_baselines;
    for (std::int64_t channel = 0; channel < dump.n_channels; ++channel) {
      for (std::int64_t baseline = first; baseline < last; ++baseline) {
        const In* source = in.data() + dump.index(channel, baseline, 0);
        Out* target = out + (baseline * dump.n_channels + channel) * n_pol;
        for (std::int64_t q = 0; q < n_pol; ++q) target[q] = transform(source[order[q]]);
      }
    }
  }
}

/// The inverse: rows of one dump as dump_to_rows() makes them, back into out[channel][baseline][p].
template <class In, class Out, class Transform>
void rows_to_dump(const VisibilityDump& dump, const In* rows, const std::vector<int>& order,
                  std::vector<Out>& out, Transform transform) {
  const std::int64_t n_pol = dump.n_pol_products;
  out.resize(dump.n_baselines * dump.n_channels * n_pol);
  for (std::int64_t baseline = 0; baseline < dump.n_baselines; ++baseline) {
    for (std::int64_t channel = 0; channel < dump.n_channels; ++channel) {
      Out* target = out.data() + dump.index(channel, baseline, 0);
      for (std::int64_t q = 0; q < n_pol; ++q) target[order[q]] = transform(*rows++);
    }
  }
}

/// What becomes of the .part: with whole integrations in it an error and an end without publish()
/// leave it for recovery, and the error says so, else it is removed.
class PartVisibilityWriter : public VisibilityWriter {
 public:
  const std::string& path() const override { return path_; }

 protected:
  PartVisibilityWriter(const std::string& path, const Observation& observation, bool overwrite)
      : path_(path), overwrite_(overwrite), observation_(observation) {}
  /// Closes the file as a kill would leave it. @param sound nothing has failed in the file
  virtual void close_unfinished(bool sound) noexcept = 0;

  void begin();  ///< prepare_part()
  void require_open() const;
  template <class F>
  void run_or_abandon(F&& f, bool sound = false) {
    try {
      f();
    } catch (...) {
      done_ = true;
      close_unfinished(sound);
      fail();
    }
  }
  void publish_part();  ///< of a file that is closed
  void end() noexcept;  ///< in destructors

  std::string path_;
  bool overwrite_;
  Observation observation_;
  std::int64_t n_dumps_ = 0;  ///< whole ones

 private:
  [[noreturn]] void fail();
  bool done_ = false;
};

/// The whole dumps of a .part whose writer was killed: those that are there to the last byte by
/// their checksums, up to the first that is not. The file is only read. Throws FormatError,
/// UnsupportedError.
VisibilityFile read_unfinished_uvh5(const std::string& part);
VisibilityFile read_unfinished_uvfits(const std::string& part);
VisibilityFile read_unfinished_measurement_set(const std::string& part);

/// The openers behind open_visibility_writer() and read_visibility_file().
std::unique_ptr<VisibilityWriter> open_measurement_set_writer(const std::string& path,
                                                              const Observation& observation,
                                                              bool overwrite);
std::unique_ptr<VisibilityWriter> open_uvfits_writer(const std::string& path,
                                                     const Observation& observation,
                                                     bool overwrite);
std::unique_ptr<VisibilityWriter> open_uvh5_writer(const std::string& path,
                                                   const Observation& observation, bool overwrite);
VisibilityFile read_measurement_set(const std::string& path, const VisibilityReadOptions& options);
VisibilityFile read_uvfits(const std::string& path, const VisibilityReadOptions& options);
VisibilityFile read_uvh5(const std::string& path, const VisibilityReadOptions& options);

}  // namespace ryle::io
