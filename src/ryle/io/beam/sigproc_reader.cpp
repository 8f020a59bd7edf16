// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/units.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/beam/sigproc_names.hpp"

namespace ryle::io {
namespace {

constexpr std::int64_t kLongestHeader = std::int64_t{4} << 20;  // a table of 200,000 channels
constexpr std::int64_t kSlab = 64;  // samples unpacked at a time: one cache line of output

/// Values of one (time, if) row of channels, as stored, in file order.
void unpack_row(const std::uint8_t* from, int bits, bool is_signed, std::int64_t n, float* to) {
  switch (bits) {
    case 1:
    case 2:
    case 4: {
      const unsigned mask = (1u << bits) - 1;
      const std::int64_t per_byte = 8 / bits;
      for (std::int64_t c = 0; c < n; ++c) {
        const auto shift = static_cast<unsigned>(bits * (c % per_byte));  // lowest bits first
        to[c] = static_cast<float>((from[c / per_byte] >> shift) & mask);
      }
      return;
    }
    case 8:
      if (is_signed) {
        for (std::int64_t c = 0; c < n; ++c) to[c] = static_cast<std::int8_t>(from[c]);
      } else {
        for (std::int64_t c = 0; c < n; ++c) to[c] = from[c];
      }
      return;
    case 16:
      for (std::int64_t c = 0; c < n; ++c) {
        std::uint16_t value;
        std::memcpy(&value, from + 2 * c, 2);
        to[c] = is_signed ? static_cast<float>(static_cast<std::int16_t>(value))
                          : static_cast<float>(value);
      }
      return;
    default:
      std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
  }
}

/// Integer key within limits, or an error that names it.
std::int64_t integer(const SigprocHeader& h, const std::string& path, const std::string& key,
                     double otherwise, double low, double high) {
  const double value = h.number(key, otherwise);
  if (!(value >= low && value <= high))
    throw FormatError(fmt::format("{}: {} is {}; it must lie in {} .. {}", path, key,
                                  h.has(key) ? fmt::format("{}", value) : "missing", low, high));
  return static_cast<std::int64_t>(value);
}

double finite(const SigprocHeader& h, const std::string& path, const std::string& key,
              bool required) {
  if (!h.has(key) && required) throw FormatError(path + ": the header has no " + key);
  const double value = h.number(key, 0);
  if (!std::isfinite(value))
    throw FormatError(fmt::format("{}: {} is {}; it must be a finite number", path, key, value));
  return value;
}

/// Channel centers in file order, MHz.
std::vector<double> centers_mhz(const SigprocHeader& h, const FilterbankInfo& info, bool series) {
  const auto n = static_cast<std::size_t>(info.n_channels);
  if (!h.channel_table_mhz.empty()) {
    if (h.channel_table_mhz.size() != n)
      throw FormatError(fmt::format("{}: the table has {} channels, nchans says {}", info.path,
                                    h.channel_table_mhz.size(), n));
    return h.channel_table_mhz;
  }
  const double first = finite(h, info.path, "fch1", !series);
  const double step = finite(h, info.path, "foff", !series && n > 1);
  std::vector<double> mhz(n);
  for (std::size_t c = 0; c < n; ++c) mhz[c] = first + static_cast<double>(c) * step;
  const double lowest = std::min(mhz.front(), mhz.back());
  if (!series && (!(lowest > 0) || (n > 1 && step == 0)))
    throw FormatError(
        fmt::format("{}: channels from {} MHz in steps of {} MHz; every center must be above 0 and "
                    "the step not 0",
                    info.path, first, step));
  return mhz;
}

class SigprocReader final : public FilterbankReader {
 public:
  SigprocReader(const std::string& path, const FilterbankOptions& options)
      : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_) throw IoError::from_errno("read", path, errno);
    struct stat status {};
    if (::fstat(file_.get(), &status) != 0) throw IoError::from_errno("read", path, errno);
    std::string head(std::min<std::int64_t>(status.st_size, kLongestHeader), '\0');
    const std::int64_t n = read_at(file_, head.data(), std::ssize(head), 0);
    if (n < 0) throw IoError::from_errno("read", path, errno);
    head.resize(n);
    const SigprocHeader header = parse_sigproc_header(head, path, options.keys);
    info_.path = path;
    info_.format = "sigproc";
    info_.header_bytes = header.header_bytes;
    set_layout(header, status.st_size);
    set_frequencies(header);
    set_labels(header);
    choose_ifs(options.polarization);
  }

  const FilterbankInfo& info() const override { return info_; }

  void read(std::int64_t first, std::int64_t n, float* to, std::int64_t stride) override {
    if (first < 0 || n < 0 || first + n > info_.n_samples)
      throw FormatError(
          fmt::format("{}: samples {} .. {} of {}", info_.path, first, first + n, info_.n_samples));
    bytes_.resize(kSlab * row_bytes_);
    rows_.resize(kSlab * info_.n_channels);
    other_.resize(info_.n_channels);
    for (std::int64_t done = 0; done < n; done += kSlab)
      read_slab(first + done, std::min(kSlab, n - done), to + done, stride);
  }

 private:
  void set_layout(const SigprocHeader& h, std::int64_t file_bytes) {
    const std::string& path = info_.path;
    info_.n_channels =
        integer(h, path, "nchans", h.number("data_type", 1) == 2 ? 1 : 0, 1, 1 << 20);
    info_.n_ifs = integer(h, path, "nifs", 1, 1, 4);
    info_.bits = static_cast<int>(integer(h, path, "nbits", 0, 1, 32));
    constexpr std::array kBits{1, 2, 4, 8, 16, 32};
    if (std::find(kBits.begin(), kBits.end(), info_.bits) == kBits.end())
      throw FormatError(
          fmt::format("{}: nbits is {}; it must be 1, 2, 4, 8, 16 or 32", path, info_.bits));
    if (info_.n_ifs == 3) throw FormatError(path + ": nifs is 3; it must be 1, 2 or 4");
    info_.is_signed = integer(h, path, "signed", 0, 0, 1) != 0;
    if (info_.is_signed && info_.bits < 8)
      throw FormatError(fmt::format("{}: signed is 1 with nbits {}; only 8 and 16 bits can be",
                                    path, info_.bits));
    const std::int64_t row_bits = info_.n_channels * info_.n_ifs * info_.bits;
    if (row_bits % 8 != 0 || (info_.n_channels * info_.bits) % 8 != 0)
      throw FormatError(fmt::format(
          "{}: nifs {} x nchans {} x nbits {}: a spectrum must be a whole number of bytes", path,
          info_.n_ifs, info_.n_channels, info_.bits));
    row_bytes_ = row_bits / 8;
    const std::int64_t data_bytes = file_bytes - info_.header_bytes;
    info_.n_samples = data_bytes / row_bytes_;
    if (data_bytes % row_bytes_ != 0)
      info_.warnings.push_back(
          fmt::format("the last spectrum is cut short: {} of {} bytes, ignored",
                      data_bytes % row_bytes_, row_bytes_));
    const double nsamples = h.number("nsamples", 0);
    if (nsamples > 0 && nsamples != static_cast<double>(info_.n_samples))
      info_.warnings.push_back(fmt::format("the header says {} samples, the file holds {}: {} used",
                                           nsamples, info_.n_samples, info_.n_samples));
    if (info_.n_samples == 0)
      throw FormatError(
          fmt::format("{}: byte {}: no data after the header", path, info_.header_bytes));
  }

  void set_frequencies(const SigprocHeader& h) {
    const bool series = h.number("data_type", 1) == 2 || info_.n_channels == 1;
    std::vector<double> mhz = centers_mhz(h, info_, series);
    descending_ = mhz.size() > 1 && mhz.front() > mhz.back();
    info_.descending = descending_;
    if (descending_) std::reverse(mhz.begin(), mhz.end());
    for (std::size_t c = 1; c < mhz.size(); ++c) {
      if (!(mhz[c] > mhz[c - 1]))
        throw FormatError(
            fmt::format("{}: the table of channels is not in order of frequency at {} MHz",
                        info_.path, mhz[c]));
    }
    const double step = std::abs(h.number("foff", 0));
    info_.channel_width_hz =
        1e6 * (step > 0         ? step
               : mhz.size() > 1 ? (mhz.back() - mhz.front()) / static_cast<double>(mhz.size() - 1)
                                : 0.0);
    for (const double f : mhz) info_.channel_center_hz.push_back(f * 1e6);
    info_.dedispersed_hz = series ? h.number("fch1", 0) * 1e6 : 0;
  }

  void set_labels(const SigprocHeader& h) {
    const std::string& path = info_.path;
    info_.sample_interval_s = finite(h, path, "tsamp", true);
    if (!(info_.sample_interval_s > 0 && info_.sample_interval_s < 1e6))
      throw FormatError(
          fmt::format("{}: tsamp is {} s; it must be above 0", path, info_.sample_interval_s));
    info_.start_mjd_utc = finite(h, path, "tstart", false);
    if (info_.start_mjd_utc >= 36934.5 && info_.start_mjd_utc < 1e5) {  // UTC exists since 1960
      const double day = std::floor(info_.start_mjd_utc);
      info_.start_tai_ns =
          tai_ns_from_mjd_utc(static_cast<std::int64_t>(day), (info_.start_mjd_utc - day) * 86400);
    } else {
      info_.warnings.push_back(
          fmt::format("tstart is MJD {}: the absolute time is not known", info_.start_mjd_utc));
    }
    info_.dispersion_measure = finite(h, path, "refdm", false);
    info_.barycentric = h.number("barycentric", 0) != 0;
    info_.telescope_id = static_cast<int>(h.number("telescope_id", 0));
    info_.machine_id = static_cast<int>(h.number("machine_id", 0));
    info_.telescope = sigproc_telescope(info_.telescope_id);
    const auto name = h.strings.find("source_name");
    if (name != h.strings.end()) info_.source_name = name->second;
    info_.position.ra_rad = sigproc_hours_to_rad(finite(h, path, "src_raj", false));
    info_.position.dec_rad = sigproc_degrees_to_rad(finite(h, path, "src_dej", false));
  }

  void choose_ifs(const std::string& wanted) {
    if (!wanted.empty() && wanted != "I" && wanted != "XXYY")
      throw ConfigError("polarization \"" + wanted +
                        "\": write I (the first IF) or XXYY (mean of the first two)");
    if (info_.n_ifs == 4 && wanted.empty())
      throw ConfigError(info_.path +
                        ": 4 IFs; say whether the first is the intensity (--pol I) or the first "
                        "two are XX and YY (--pol XXYY)");
    if (wanted == "XXYY" && info_.n_ifs == 1)
      throw ConfigError(info_.path + ": --pol XXYY, but the file has one IF only");
    average_two_ = wanted == "XXYY" || (wanted.empty() && info_.n_ifs == 2);
  }

  void read_slab(std::int64_t first, std::int64_t n, float* to, std::int64_t stride) {
    const std::int64_t offset = info_.header_bytes + first * row_bytes_;
    const std::int64_t got = read_at(file_, bytes_.data(), n * row_bytes_, offset);
    if (got < 0) throw IoError::from_errno("read", info_.path, errno);
    if (got != n * row_bytes_)
      throw FormatError(fmt::format("{}: byte {}: the file became shorter while it was read",
                                    info_.path, offset));
    const std::int64_t channels = info_.n_channels;
    const std::int64_t if_bytes = row_bytes_ / info_.n_ifs;
    for (std::int64_t t = 0; t < n; ++t) {
      const std::uint8_t* row = bytes_.data() + t * row_bytes_;
      float* out = rows_.data() + t * channels;
      unpack_row(row, info_.bits, info_.is_signed, channels, out);
      if (!average_two_) continue;
      unpack_row(row + if_bytes, info_.bits, info_.is_signed, channels, other_.data());
      for (std::int64_t c = 0; c < channels; ++c) out[c] = 0.5f * (out[c] + other_[c]);
    }
    for (std::int64_t c = 0; c < channels; ++c) {
      const float* column = rows_.data() + (descending_ ? channels - 1 - c : c);
      float* out = to + c * stride;
      for (std::int64_t t = 0; t < n; ++t) out[t] = column[t * channels];
    }
  }

  Descriptor file_;
  FilterbankInfo info_;
  std::int64_t row_bytes_ = 0;
  bool descending_ = false;
  bool average_two_ = false;
  std::vector<std::uint8_t> bytes_;
  std::vector<float> rows_, other_;
};

}  // namespace

std::unique_ptr<FilterbankReader> open_sigproc(const std::string& path,
                                               const FilterbankOptions& options) {
  return std::make_unique<SigprocReader>(path, options);
}

}  // namespace ryle::io
