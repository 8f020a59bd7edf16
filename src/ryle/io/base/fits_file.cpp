// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/fits_file.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/part_file.hpp"

namespace ryle::io {
namespace {

std::string words_of(int status) {
  char text[FLEN_STATUS] = "";
  char detail[FLEN_ERRMSG] = "";
  fits_get_errstatus(status, text);
  std::string out = text;
  if (fits_read_errmsg(detail) != 0) out += std::string(": ") + detail;
  fits_clear_errmsg();
  return out;
}

/// cfitsio unpacks what gzip, compress, pack, lzh, zip and bzip2 made, in memory and whatever it
/// grows to.
void reject_compressed(const std::string& path) {
  require_regular_file(path);
  std::ifstream file(path, std::ios::binary);
  std::string magic(3, '\0');
  file.read(magic.data(), 3);
  for (const char* known : {"\x1f\x8b", "\x1f\x9d", "\x1f\x1e", "\x1f\xa0", "PK", "BZh"}) {
    if (magic.rfind(known, 0) == 0)
      throw FormatError(path +
                        ": is compressed (gzip, compress, zip or bzip2); unpack it first, for "
                        "example by gunzip");
  }
}

/// FITS standard 4.0, appendix J: the big-endian words of [first, end) added in ones' complement.
/// What the file lacks of its last block counts as 0.
std::uint32_t sum_of_words(const std::string& path, std::int64_t first, std::int64_t end) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(first);
  std::string piece(std::size_t{1} << 20, '\0');
  std::uint64_t sum = 0;
  for (std::int64_t at = first; at < end; at += static_cast<std::int64_t>(piece.size())) {
    require_not_interrupted(path);
    const auto n = std::min<std::int64_t>(static_cast<std::int64_t>(piece.size()), end - at);
    file.read(piece.data(), n);
    const auto n_read = static_cast<std::size_t>(file.gcount());
    std::fill(piece.begin() + static_cast<std::ptrdiff_t>(n_read), piece.end(), '\0');
    for (std::size_t k = 0; k < static_cast<std::size_t>(n); k += 4) {
      std::uint32_t word = 0;
      for (std::size_t byte = 0; byte < 4; ++byte)
        word = word << 8 | static_cast<unsigned char>(piece[k + byte]);
      sum += word;
    }
    while (sum >> 32 != 0) sum = (sum & 0xffffffffU) + (sum >> 32);
  }
  return static_cast<std::uint32_t>(sum);
}

constexpr std::size_t kTextWidth_bytes = 128;

void write_text_rows(FitsFile& file, const std::string& text, int column) {
  int status = 0;
  const std::size_t n_rows = (text.size() + kTextWidth_bytes - 1) / kTextWidth_bytes;
  std::string row;
  for (std::size_t k = 0; k < n_rows; ++k) {
    row = text.substr(k * kTextWidth_bytes, kTextWidth_bytes);
    row.resize(kTextWidth_bytes, '\0');
    fits_write_col_byt(file.get(), column, static_cast<LONGLONG>(k + 1), 1, kTextWidth_bytes,
                       reinterpret_cast<unsigned char*>(row.data()), &status);
  }
  file.check(status, "write text");
}

/// The observation as ASCII JSON, escaped by the writer, in rows of bytes: exact and free of header
/// rules.
void write_observation(FitsFile& file, const Observation& observation) {
  create_table(file, "RYLE_OBSERVATION", {"JSON"}, {std::to_string(kTextWidth_bytes) + "B"}, {""},
               0);
  const std::string text = observation_to_json(observation);
  file.key("JSONLEN", static_cast<long long>(text.size()), "bytes of JSON text");
  write_text_rows(file, text, 1);
  file.checksum();
}

void write_applied(FitsFile& file, const Observation& observation) {
  const AppliedCorrections& applied = observation.applied;
  const ArrayLayout& array = observation.array;
  const std::size_t n_inputs = array.inputs.size();
  const auto n_channels = static_cast<std::size_t>(observation.frequency.n_channels);
  const bool gains = n_inputs > 0 && applied.gains.size() == n_inputs * n_channels;
  std::vector<std::string> names{"ANTENNA", "POL", "DELAY", "RMS_LSB", "SATURATED"};
  std::vector<std::string> forms{"1J", "1J", "1D", "1D", "1D"};
  std::vector<std::string> units{"", "", "s", "", ""};
  if (gains) {
    names.emplace_back("GAIN");
    forms.push_back(std::to_string(n_channels) + "M");
    units.emplace_back("");
  }
  create_table(file, "RYLE_APPLIED", names, forms, units, n_inputs);
  int status = 0;
  const auto present = [n_inputs](const std::vector<double>& v) {
    return n_inputs > 0 && v.size() == n_inputs;
  };
  for (std::size_t k = 0; k < n_inputs; ++k) {
    const auto row = static_cast<LONGLONG>(k + 1);
    LONGLONG antenna = array.inputs[k].antenna;
    LONGLONG pol = array.inputs[k].pol;
    double values[3] = {present(applied.delay_s) ? applied.delay_s[k] : 0,
                        present(applied.input_rms_lsb) ? applied.input_rms_lsb[k] : 0,
                        present(applied.saturated_fraction) ? applied.saturated_fraction[k] : 0};
    fits_write_col_lnglng(file.get(), 1, row, 1, 1, &antenna, &status);
    fits_write_col_lnglng(file.get(), 2, row, 1, 1, &pol, &status);
    for (int c = 0; c < 3; ++c)
      fits_write_col_dbl(file.get(), 3 + c, row, 1, 1, &values[c], &status);
    if (gains) {
      std::vector<cf64> gain(
          applied.gains.begin() + static_cast<std::ptrdiff_t>(k * n_channels),
          applied.gains.begin() + static_cast<std::ptrdiff_t>((k + 1) * n_channels));
      fits_write_col_dblcmp(file.get(), 6, row, 1, static_cast<LONGLONG>(n_channels),
                            reinterpret_cast<double*>(gain.data()), &status);
    }
  }
  file.check(status, "write RYLE_APPLIED");
  file.key("HASDELAY", present(applied.delay_s), "DELAY holds applied delays");
  file.key("HASRMS", present(applied.input_rms_lsb), "RMS_LSB holds measured levels");
  file.key("HASSAT", present(applied.saturated_fraction), "SATURATED holds measured fractions");
  file.checksum();
}

void write_filter(FitsFile& file, const Observation& observation) {
  std::vector<double> response = observation.applied.filter_response;
  if (response.empty()) return;
  create_table(file, "RYLE_FILTER", {"RESPONSE"}, {"1D"}, {""}, response.size());
  int status = 0;
  fits_write_col_dbl(file.get(), 1, 1, 1, static_cast<LONGLONG>(response.size()), response.data(),
                     &status);
  file.check(status, "write RYLE_FILTER");
  file.checksum();
}

bool move_to(FitsFile& file, const char* name) {
  int status = 0;
  std::string text = name;
  fits_movnam_hdu(file.get(), BINARY_TBL, text.data(), 0, &status);
  if (status != 0) fits_clear_errmsg();
  return status == 0;
}

std::vector<double> read_doubles(FitsFile& file, int column, std::size_t n, int* status) {
  std::vector<double> values(n);
  if (n > 0) {
    fits_read_col_dbl(file.get(), column, 1, 1, static_cast<LONGLONG>(n), 0, values.data(), nullptr,
                      status);
  }
  return values;
}

void read_applied(FitsFile& file, Observation& observation) {
  int status = 0;
  const std::size_t n_inputs = observation.array.inputs.size();
  AppliedCorrections& applied = observation.applied;
  if (move_to(file, "RYLE_APPLIED")) {
    const auto flag = [&](const char* name) {
      int value = 0;
      int ignored = 0;
      fits_read_key_log(file.get(), name, &value, nullptr, &ignored);
      return value != 0;
    };
    if (flag("HASDELAY")) applied.delay_s = read_doubles(file, 3, n_inputs, &status);
    if (flag("HASRMS")) applied.input_rms_lsb = read_doubles(file, 4, n_inputs, &status);
    if (flag("HASSAT")) applied.saturated_fraction = read_doubles(file, 5, n_inputs, &status);
    file.require_data();
    int n_columns = 0;
    fits_get_num_cols(file.get(), &n_columns, &status);
    if (n_columns >= 6) {
      int type = 0;
      LONGLONG repeat = 0, width = 0, n_rows = 0;
      fits_get_coltypell(file.get(), 6, &type, &repeat, &width, &status);
      fits_get_num_rowsll(file.get(), &n_rows, &status);
      if (status == 0 &&
          (repeat != observation.frequency.n_channels || n_rows != static_cast<LONGLONG>(n_inputs)))
        throw FormatError(file.path() + ": RYLE_APPLIED has not a gain an input and channel");
      const std::size_t n = n_inputs * static_cast<std::size_t>(observation.frequency.n_channels);
      applied.gains.resize(n);
      fits_read_col_dblcmp(file.get(), 6, 1, 1, static_cast<LONGLONG>(n), 0,
                           reinterpret_cast<double*>(applied.gains.data()), nullptr, &status);
    }
  }
  if (move_to(file, "RYLE_FILTER")) {
    file.require_data();
    LONGLONG n = 0;
    fits_get_num_rowsll(file.get(), &n, &status);
    applied.filter_response = read_doubles(file, 1, static_cast<std::size_t>(n), &status);
  }
  file.check(status, "read the Ryle tables");
}

}  // namespace

void create_table(FitsFile& file, const char* name, std::vector<std::string> names,
                  std::vector<std::string> forms, std::vector<std::string> units, LONGLONG n_rows) {
  std::vector<char*> type, form, unit;
  for (std::size_t k = 0; k < names.size(); ++k) {
    type.push_back(names[k].data());
    form.push_back(forms[k].data());
    unit.push_back(units[k].data());
  }
  int status = 0;
  fits_create_tbl(file.get(), BINARY_TBL, n_rows, static_cast<int>(names.size()), type.data(),
                  form.data(), unit.data(), name, &status);
  file.check(status, std::string("create table ") + name + " in");
}

FitsFile FitsFile::create(const std::string& disk_path, const std::string& shown_path) {
  fitsfile* file = nullptr;
  int status = 0;
  fits_create_diskfile(&file, disk_path.c_str(), &status);
  FitsFile out(file, shown_path, true);
  out.check(status, "create");
  return out;
}

FitsFile FitsFile::open(const std::string& disk_path, const std::string& shown_path, bool writing) {
  reject_compressed(disk_path);
  fitsfile* file = nullptr;
  int status = 0;
  fits_open_diskfile(&file, disk_path.c_str(), writing ? READWRITE : READONLY, &status);
  FitsFile out(file, shown_path, writing);
  out.check(status, "open");
  return out;
}

FitsFile FitsFile::open(const std::string& disk_path) { return open(disk_path, disk_path, false); }

FitsFile FitsFile::open_to_write(const std::string& disk_path, const std::string& shown_path) {
  return open(disk_path, shown_path, true);
}

FitsFile::~FitsFile() {
  if (file_ == nullptr) return;
  int status = 0;
  fits_close_file(file_, &status);
  fits_clear_errmsg();
}

void FitsFile::close() {
  int status = 0;
  fits_close_file(file_, &status);
  file_ = nullptr;
  check(status, "close");
}

void FitsFile::check(int status, const std::string& what) const {
  if (status == 0) return;
  const std::string message = "cannot " + what + " " + path_ + ": " + words_of(status);
  if (!writing_) throw FormatError(message);
  throw IoError(status == FILE_NOT_CREATED ? ExitCode::cannot_create : ExitCode::io,
                message + disk_hint(path_));
}

void FitsFile::key(const char* name, const std::string& value, const char* comment) {
  int status = 0;
  std::string text;
  for (const std::string& line :
       printable_lines(value, 68)) {  // one card; longer text belongs in RYLE_OBSERVATION
    text = line;
    break;
  }
  fits_update_key_str(file_, name, text.c_str(), comment, &status);
  check(status, std::string("write keyword ") + name + " of");
}

void FitsFile::key(const char* name, double value, const char* comment) {
  int status = 0;
  fits_update_key_dbl(file_, name, value, -15, comment, &status);
  check(status, std::string("write keyword ") + name + " of");
}

void FitsFile::key(const char* name, long long value, const char* comment) {
  int status = 0;
  fits_update_key_lng(file_, name, value, comment, &status);
  check(status, std::string("write keyword ") + name + " of");
}

void FitsFile::key(const char* name, bool value, const char* comment) {
  int status = 0;
  fits_update_key_log(file_, name, value ? 1 : 0, comment, &status);
  check(status, std::string("write keyword ") + name + " of");
}

void FitsFile::history(const std::vector<std::string>& lines) {
  int status = 0;
  for (const std::string& line : lines) fits_write_history(file_, line.c_str(), &status);
  check(status, "write HISTORY of");
}

void FitsFile::checksum() {
  int status = 0;
  fits_write_chksum(file_, &status);
  check(status, "write the checksum of");
}

void FitsFile::checksum(std::uint64_t data_sum) {
  key("DATASUM", std::to_string(data_sum), "data unit checksum");
  // Else cfitsio adds the card and sums a header whose END it has not moved behind it.
  key("CHECKSUM", std::string(16, '0'), "HDU checksum");
  int status = 0;
  fits_update_chksum(file_, &status);
  check(status, "write the checksum of");
}

void FitsFile::require_data() const {
  const std::int64_t n_bytes = require_regular_file(path_);
  LONGLONG header = 0, first = 0, end = 0;
  int status = 0;
  fits_get_hduaddrll(file_, &header, &first, &end, &status);
  check(status, "find the data of");
  // The last block may lack its padding.
  if (first > end || end - n_bytes >= 2880)
    throw FormatError(path_ + ": the header promises data up to byte " + std::to_string(end) +
                      ", the file has " + std::to_string(n_bytes) + "; it is truncated");
  require_data_sum();
  if (fits_is_compressed_image(file_, &status) == 0) return;
  int bits = 0, n_axes = 0;
  LONGLONG sizes[9] = {};
  fits_get_img_paramll(file_, 9, &bits, &n_axes, sizes, &status);
  check(status, "read the size of");
  double unpacked = 8;
  for (int k = 0; k < std::min(n_axes, 9); ++k) unpacked *= static_cast<double>(sizes[k]);
  const double limit = 64.0 * (1 << 20) + 64.0 * static_cast<double>(n_bytes);
  if (unpacked < 0 || unpacked > limit)
    throw FormatError(path_ + ": the compressed image promises " + std::to_string(unpacked) +
                      " bytes; with the size of the file at most " + std::to_string(limit) +
                      " are believed");
}

void FitsFile::require_data_sum() const {
  const std::string written = text("DATASUM", "");
  const auto first_digit = written.find_first_not_of(' ');
  if (first_digit == std::string::npos) return;
  LONGLONG header = 0, first = 0, end = 0;
  int status = 0, number = 0;
  fits_get_hduaddrll(file_, &header, &first, &end, &status);
  check(status, "find the data of");
  const std::uint32_t sum = sum_of_words(path_, first, end);
  if (written.substr(first_digit, written.find_last_not_of(' ') + 1 - first_digit) ==
      std::to_string(sum))
    return;
  fits_get_hdu_num(file_, &number);
  const std::string name = text("EXTNAME", "");
  throw FormatError(path_ + ": the data of HDU " + std::to_string(number - 1) +
                    (name.empty() ? "" : " (" + name + ")") + " add up to " + std::to_string(sum) +
                    ", its DATASUM is " + written +
                    ": they were damaged, or changed by a program that left DATASUM as it was; "
                    "copy the file again, or, if the change was meant, delete DATASUM or renew it "
                    "(astropy: hdu.add_datasum())");
}

double FitsFile::number(const char* name, double otherwise) const {
  double value = otherwise;
  int status = 0;
  fits_read_key_dbl(file_, name, &value, nullptr, &status);
  if (status != 0) fits_clear_errmsg();
  return status == 0 ? value : otherwise;
}

std::string FitsFile::text(const char* name, const std::string& otherwise) const {
  char value[FLEN_VALUE] = "";
  int status = 0;
  fits_read_key_str(file_, name, value, nullptr, &status);
  if (status != 0) fits_clear_errmsg();
  return status == 0 ? value : otherwise;
}

void append_ryle_tables(FitsFile& file, const Observation& observation) {
  write_observation(file, observation);
  write_applied(file, observation);
  write_filter(file, observation);
}

bool read_ryle_tables(FitsFile& file, Observation& observation) {
  if (!move_to(file, "RYLE_OBSERVATION")) return false;
  int status = 0;
  LONGLONG n_rows = 0;
  fits_get_num_rowsll(file.get(), &n_rows, &status);
  file.require_data();
  const double length = file.number("JSONLEN", 0);
  std::string text(static_cast<std::size_t>(n_rows) * kTextWidth_bytes, '\0');
  if (n_rows > 0) {
    fits_read_col_byt(file.get(), 1, 1, 1, static_cast<LONGLONG>(text.size()), 0,
                      reinterpret_cast<unsigned char*>(text.data()), nullptr, &status);
  }
  file.check(status, "read RYLE_OBSERVATION of");
  if (!(length >= 0 && length <= static_cast<double>(text.size())))
    throw FormatError(file.path() + ": RYLE_OBSERVATION is shorter than its JSONLEN");
  text.resize(static_cast<std::size_t>(length));
  observation = observation_from_json(text, file.path());
  read_applied(file, observation);
  return true;
}

}  // namespace ryle::io
