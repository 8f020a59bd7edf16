// SPDX-License-Identifier: BSD-3-Clause
// Search-mode PSRFITS. DAT_FREQ rules: OBSFREQ, OBSBW and TELESCOP of real files are wrong often.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/beam/filterbank_file.hpp"
#include "ryle/io/beam/sigproc_names.hpp"

namespace ryle::io {
namespace {

/// "12:26:37.6" (hours or degrees) to units of the first number.
double sexagesimal(const std::string& text) {
  double parts[3] = {0, 0, 0};
  std::size_t at = text.find_first_not_of(' ');
  const bool negative = at != std::string::npos && text[at] == '-';
  if (at != std::string::npos && (text[at] == '-' || text[at] == '+')) ++at;
  for (double& part : parts) {
    if (at >= text.size()) break;
    try {
      std::size_t used = 0;
      part = std::stod(text.substr(at), &used);
      at += used + 1;
    } catch (const std::exception&) {
      break;
    }
  }
  const double value = parts[0] + parts[1] / 60 + parts[2] / 3600;
  return negative ? -value : value;
}

class PsrfitsReader final : public FilterbankReader {
 public:
  PsrfitsReader(const std::string& path, const FilterbankOptions& options)
      : file_(FitsFile::open(path)) {
    info_.path = path;
    info_.format = "psrfits";
    read_primary();
    read_subint();
    read_frequencies();
    choose_polarization(options.polarization);
    row_values_.resize(static_cast<std::size_t>(info_.n_ifs * info_.n_channels) * 3);
  }

  const FilterbankInfo& info() const override { return info_; }

  void read(std::int64_t first, std::int64_t n, float* to, std::int64_t stride) override {
    if (first < 0 || n < 0 || first + n > info_.n_samples)
      throw FormatError(
          fmt::format("{}: samples {} .. {} of {}", info_.path, first, first + n, info_.n_samples));
    while (n > 0) {
      const std::int64_t row = first / row_samples_;
      const std::int64_t within = first % row_samples_;
      const std::int64_t part = std::min(n, row_samples_ - within);
      read_row(row, within, part, to, stride);
      first += part;
      n -= part;
      to += part;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(info_.path + ": " + what);
  }

  void read_primary() {
    if (file_.text("FITSTYPE", "").rfind("PSRFITS", 0) != 0)
      fail("a FITS file, but FITSTYPE is \"" + file_.text("FITSTYPE", "") +
           "\"; only PSRFITS is read");
    const std::string mode = file_.text("OBS_MODE", "");
    if (mode.rfind("SEARCH", 0) != 0 && mode.rfind("SRCH", 0) != 0)
      fail("OBS_MODE is \"" + mode + "\"; only search-mode PSRFITS is read");
    info_.telescope = file_.text("TELESCOP", "");
    info_.telescope_id = sigproc_telescope_id(info_.telescope);
    info_.source_name = file_.text("SRC_NAME", "");
    info_.position.ra_rad = sexagesimal(file_.text("RA", "")) * 15 * kDegree_rad;
    info_.position.dec_rad = sexagesimal(file_.text("DEC", "")) * kDegree_rad;
    start_day_ = file_.number("STT_IMJD", 0);
    start_s_ = file_.number("STT_SMJD", 0) + file_.number("STT_OFFS", 0);
  }

  std::int64_t key(const char* name, double low, double high) const {
    const double value = file_.number(name, std::numeric_limits<double>::quiet_NaN());
    if (!(value >= low && value <= high))
      fail(fmt::format("{} of SUBINT is {}; it must lie in {} .. {}", name, value, low, high));
    return static_cast<std::int64_t>(value);
  }

  void read_subint() {
    int status = 0;
    char name[] = "SUBINT";
    fits_movnam_hdu(file_.get(), BINARY_TBL, name, 0, &status);
    file_.check(status, "find the SUBINT table");
    info_.n_channels = key("NCHAN", 1, 1 << 20);
    info_.n_ifs = key("NPOL", 1, 4);
    info_.bits = static_cast<int>(key("NBITS", 1, 32));
    if (info_.bits != 1 && info_.bits != 2 && info_.bits != 4 && info_.bits != 8 &&
        info_.bits != 16 && info_.bits != 32)
      fail(fmt::format("NBITS is {}; it must be 1, 2, 4, 8, 16 or 32", info_.bits));
    row_samples_ = key("NSBLK", 1, 1 << 24);
    info_.is_signed = file_.number("SIGNINT", 0) != 0;
    zero_offset_ = file_.number("ZERO_OFF", 0);
    if (!std::isfinite(zero_offset_)) zero_offset_ = 0;
    info_.sample_interval_s = file_.number("TBIN", 0);
    if (!(info_.sample_interval_s > 0 && std::isfinite(info_.sample_interval_s)))
      fail(fmt::format("TBIN is {} s; it must be above 0", info_.sample_interval_s));
    LONGLONG rows = 0;
    fits_get_num_rowsll(file_.get(), &rows, &status);
    file_.check(status, "count the rows of SUBINT");
    if (rows < 1) fail("SUBINT has no rows");
    file_.require_data();
    info_.n_samples = rows * row_samples_;
    const double offset_rows = file_.number("NSUBOFFS", 0);
    start_s_ += (std::isfinite(offset_rows) ? offset_rows : 0) * static_cast<double>(row_samples_) *
                info_.sample_interval_s;
    info_.start_mjd_utc = start_day_ + start_s_ / 86400;
    if (start_day_ >= 36934 && start_day_ < 1e5)
      info_.start_tai_ns = tai_ns_from_mjd_utc(static_cast<std::int64_t>(start_day_), start_s_);
    else
      info_.warnings.push_back("STT_IMJD is missing: the absolute time is not known");
    data_column_ = column("DATA");
    scale_column_ = column("DAT_SCL");
    offset_column_ = column("DAT_OFFS");
    weight_column_ = column("DAT_WTS");
    check_data_column();
  }

  int column(const char* name) const {
    int status = 0, number = 0;
    std::string text = name;
    fits_get_colnum(file_.get(), CASEINSEN, text.data(), &number, &status);
    file_.check(status, std::string("find column ") + name);
    return number;
  }

  void check_data_column() const {
    int status = 0, type = 0;
    LONGLONG repeat = 0, width = 0;
    fits_get_coltypell(file_.get(), data_column_, &type, &repeat, &width, &status);
    file_.check(status, "read the form of DATA");
    const std::int64_t bits = row_samples_ * info_.n_ifs * info_.n_channels * info_.bits;
    if (bits % 8 != 0 || repeat * width * 8 != bits)
      fail(fmt::format("DATA has {} bytes a row; NSBLK {} x NPOL {} x NCHAN {} x {} bits are {}",
                       repeat * width, row_samples_, info_.n_ifs, info_.n_channels, info_.bits,
                       bits / 8));
    if ((info_.n_ifs * info_.n_channels * info_.bits) % 8 != 0)
      fail("a spectrum is not a whole number of bytes");
  }

  void read_frequencies() {
    int status = 0, any = 0;
    std::vector<double> mhz(info_.n_channels);
    fits_read_col(file_.get(), TDOUBLE, column("DAT_FREQ"), 1, 1, info_.n_channels, nullptr,
                  mhz.data(), &any, &status);
    file_.check(status, "read DAT_FREQ");
    descending_ = mhz.size() > 1 && mhz.front() > mhz.back();
    info_.descending = descending_;
    if (descending_) std::reverse(mhz.begin(), mhz.end());
    for (std::size_t c = 0; c < mhz.size(); ++c) {
      if (!(mhz[c] > (c == 0 ? 0.0 : mhz[c - 1])) || !std::isfinite(mhz[c]))
        fail(fmt::format("DAT_FREQ is not in order of frequency at {} MHz", mhz[c]));
      info_.channel_center_hz.push_back(mhz[c] * 1e6);
    }
    info_.channel_width_hz =
        mhz.size() > 1 ? 1e6 * (mhz.back() - mhz.front()) / static_cast<double>(mhz.size() - 1)
                       : 1e6 * std::abs(file_.number("CHAN_BW", 0));
  }

  void choose_polarization(const std::string& wanted) {
    if (!wanted.empty() && wanted != "I" && wanted != "XXYY")
      throw ConfigError("polarization \"" + wanted +
                        "\": write I (the first) or XXYY (mean of the first two)");
    const std::string type = file_.text("POL_TYPE", "");
    const bool both = info_.n_ifs >= 2 && type.rfind("AABB", 0) == 0;
    if (wanted.empty() && info_.n_ifs > 1 && !both && type.rfind("I", 0) != 0)
      throw ConfigError(info_.path + ": POL_TYPE \"" + type + "\"; say --pol I or --pol XXYY");
    if (wanted == "XXYY" && info_.n_ifs < 2)
      throw ConfigError(info_.path + ": --pol XXYY, but NPOL is 1");
    n_averaged_ = wanted == "XXYY" || (wanted.empty() && both) ? 2 : 1;
  }

  /// Scale, offset and weight of the row for every (pol, channel).
  void load_row_values(std::int64_t row) {
    if (row == loaded_row_) return;
    const std::int64_t n = info_.n_ifs * info_.n_channels;
    int status = 0, any = 0;
    float* values = row_values_.data();
    fits_read_col(file_.get(), TFLOAT, scale_column_, row + 1, 1, n, nullptr, values, &any,
                  &status);
    fits_read_col(file_.get(), TFLOAT, offset_column_, row + 1, 1, n, nullptr, values + n, &any,
                  &status);
    fits_read_col(file_.get(), TFLOAT, weight_column_, row + 1, 1, info_.n_channels, nullptr,
                  values + 2 * n, &any, &status);
    file_.check(status, fmt::format("read scales of row {}", row + 1));
    loaded_row_ = row;
  }

  void read_row(std::int64_t row, std::int64_t within, std::int64_t n, float* to,
                std::int64_t stride) {
    load_row_values(row);
    const std::int64_t per_sample = info_.n_ifs * info_.n_channels;
    raw_.resize(n * per_sample);
    read_raw(row, within, n, per_sample);
    const float* values = row_values_.data();
    const float zero = static_cast<float>(zero_offset_);
    const float share = 1.0f / static_cast<float>(n_averaged_);
    for (std::int64_t c = 0; c < info_.n_channels; ++c) {
      const std::int64_t on_disk = descending_ ? info_.n_channels - 1 - c : c;
      float* out = to + c * stride;
      if (!(values[2 * per_sample + on_disk] > 0)) {
        std::fill(out, out + n, std::numeric_limits<float>::quiet_NaN());
        continue;
      }
      for (std::int64_t t = 0; t < n; ++t) {
        float sum = 0;
        for (int p = 0; p < n_averaged_; ++p) {
          const std::int64_t k = p * info_.n_channels + on_disk;
          sum += (raw_[t * per_sample + k] - zero) * values[k] + values[per_sample + k];
        }
        out[t] = sum * share;
      }
    }
  }

  void read_raw(std::int64_t row, std::int64_t within, std::int64_t n, std::int64_t per_sample) {
    int status = 0, any = 0;
    const std::int64_t count = n * per_sample;
    const std::int64_t first = within * per_sample;
    if (info_.bits == 32) {
      fits_read_col(file_.get(), TFLOAT, data_column_, row + 1, first + 1, count, nullptr,
                    raw_.data(), &any, &status);
    } else if (info_.bits == 16) {
      std::vector<short> words(count);
      fits_read_col(file_.get(), TSHORT, data_column_, row + 1, first + 1, count, nullptr,
                    words.data(), &any, &status);
      for (std::size_t k = 0; k < words.size(); ++k) raw_[k] = words[k];
    } else {
      const int per_byte = 8 / info_.bits;
      std::vector<unsigned char> bytes(count / per_byte);
      fits_read_col(file_.get(), TBYTE, data_column_, row + 1, first / per_byte + 1,
                    count / per_byte, nullptr, bytes.data(), &any, &status);
      const unsigned mask = (1u << info_.bits) - 1;
      for (std::size_t k = 0; k < raw_.size(); ++k) {  // PSRFITS: highest bits first
        const auto place = static_cast<int>(k % static_cast<std::size_t>(per_byte));
        const unsigned code =
            (bytes[k / static_cast<std::size_t>(per_byte)] >> (8 - info_.bits * (place + 1))) &
            mask;
        raw_[k] = info_.bits == 8 && info_.is_signed
                      ? static_cast<float>(static_cast<std::int8_t>(code))
                      : static_cast<float>(code);
      }
    }
    file_.check(status, fmt::format("read data of row {}", row + 1));
  }

  FitsFile file_;
  FilterbankInfo info_;
  double start_day_ = 0, start_s_ = 0, zero_offset_ = 0;
  std::int64_t row_samples_ = 0, loaded_row_ = -1;
  int data_column_ = 0, scale_column_ = 0, offset_column_ = 0, weight_column_ = 0;
  bool descending_ = false;
  int n_averaged_ = 1;
  std::vector<float> row_values_;  // [scale | offset | weight][pol][channel]
  std::vector<float> raw_;
};

}  // namespace

std::unique_ptr<FilterbankReader> open_psrfits(const std::string& path,
                                               const FilterbankOptions& options) {
  return std::make_unique<PsrfitsReader>(path, options);
}

}  // namespace ryle::io
