// SPDX-License-Identifier: BSD-3-Clause
// TART raw data: HDF5 with `config` (JSON), `timestamp` and `data` u8 [antenna][time / 8]
// (ingest.md 2.8).
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ryle/core/checked.hpp"
#include "ryle/core/error.hpp"
#include "ryle/hdf5/filters.hpp"
#include "ryle/hdf5/handle.hpp"
#include "ryle/ingest/hdf5_input.hpp"
#include "ryle/ingest/recording_file.hpp"
#include "ryle/ingest/recording_formats.hpp"
#include "ryle/ingest/recording_tart.hpp"
#include "ryle/ingest/recording_time.hpp"

namespace ryle::detail {
namespace {

constexpr std::int64_t kMaxAntennas = 4096;

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw FormatError(path + ": " + what);
}

// The first string of a one-element data set, variable or fixed length.
std::string read_string(const std::string& path, hid_t file, const char* name) {
  const hdf5::Handle set(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  if (!set.valid())
    fail(path,
         std::string("no data set \"") + name + "\"; a TART file has config, timestamp and data");
  const hdf5::Handle type(H5Dget_type(set.get()), H5Tclose);
  const hdf5::Handle space(H5Dget_space(set.get()), H5Sclose);
  if (!type.valid() || H5Tget_class(type.get()) != H5T_STRING || !space.valid() ||
      H5Sget_simple_extent_npoints(space.get()) != 1) {
    fail(path, std::string("\"") + name + "\" is not one string");
  }
  hdf5::require_filters(set.get(), path);
  std::string text;
  if (H5Tis_variable_str(type.get()) > 0) {
    char* value = nullptr;
    if (hdf5::read(set.get(), type.get(), H5S_ALL, H5S_ALL, &value) < 0)
      fail(path, std::string("cannot read ") + name);
    if (value != nullptr) text = value;
    H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, &value);
  } else {
    const std::size_t size = H5Tget_size(type.get());
    if (size == 0 || size > 1 << 20)
      fail(path, std::string("\"") + name + "\" has an impossible length");
    text.resize(size);
    if (hdf5::read(set.get(), type.get(), H5S_ALL, H5S_ALL, text.data()) < 0) {
      fail(path, std::string("cannot read ") + name);
    }
    text.resize(std::min(text.find('\0'), text.size()));
  }
  return text;
}

class Tart final : public RecordingBase {
 public:
  explicit Tart(const std::string& path, const RecordingOptions& options)
      : path_(path), file_bytes_(RecordingFile(path).size_bytes()) {
    const QuietHdf5 quiet;
    file_ = hdf5::open_file(path);
    if (file_ < 0) fail(path, "not an HDF5 file, or a damaged one");
    try {
      load(options);
    } catch (...) {
      close();
      throw;
    }
  }
  ~Tart() override { close(); }
  Tart(const Tart&) = delete;
  Tart& operator=(const Tart&) = delete;

  void read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                    std::vector<AbsentSpan>& absent) override;

 private:
  void load(const RecordingOptions& options);
  void open_data();
  bool read_rows(std::int64_t first_byte, std::int64_t n_bytes);
  void close() {
    const QuietHdf5 quiet;
    if (data_ >= 0) H5Dclose(data_);
    if (file_ >= 0) H5Fclose(file_);
    data_ = file_ = -1;
  }

  std::string path_;
  std::int64_t file_bytes_ = 0;
  hid_t file_ = -1;
  hid_t data_ = -1;
  std::vector<std::uint8_t> rows_;
};

void Tart::open_data() {
  data_ = H5Dopen2(file_, "data", H5P_DEFAULT);
  if (data_ < 0) fail(path_, "no data set \"data\"; a TART file has config, timestamp and data");
  hdf5::require_filters(data_, path_);
  const hdf5::Handle space(H5Dget_space(data_), H5Sclose);
  const hdf5::Handle type(H5Dget_type(data_), H5Tclose);
  std::array<hsize_t, 2> size{};
  if (!space.valid() || H5Sget_simple_extent_ndims(space.get()) != 2 ||
      H5Sget_simple_extent_dims(space.get(), size.data(), nullptr) != 2) {
    fail(path_, "\"data\" is not two-dimensional [antenna][byte]");
  }
  if (!type.valid() || H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) != 1) {
    fail(path_, "\"data\" is not of 8-bit integers");
  }
  if (size[0] == 0 || size[0] > kMaxAntennas) {
    fail(path_, "\"data\" has " + std::to_string(size[0]) + " antennas; 1 to " +
                    std::to_string(kMaxAntennas) + " are read");
  }
  // Random 1-bit samples do not compress: a size beyond what is stored is a damaged header, not
  // data. (A filter may shrink test data; 1000 : 1 is more than any of HDF5's reaches.)
  const auto stored = static_cast<std::uint64_t>(file_bytes_);
  if (size[1] == 0 || size[1] > stored * 1000 / size[0]) {
    fail(path_, "\"data\" declares " + std::to_string(size[0]) + " x " + std::to_string(size[1]) +
                    " bytes in a file of " + std::to_string(file_bytes_));
  }
  info_.n_inputs = static_cast<std::int64_t>(size[0]);
  info_.n_ticks = static_cast<std::int64_t>(size[1]) * 8;
}

void Tart::load(const RecordingOptions& options) {
  info_.format = "tart";
  open_data();
  const TartConfig config = parse_tart_config(path_, read_string(path_, file_, "config"));
  const std::string stamp = read_string(path_, file_, "timestamp");
  const auto epoch = recording_tai_ns_from_text(stamp);
  if (!epoch)
    fail(path_, "timestamp is \"" + stamp.substr(0, 80) + "\"; expected 2026-06-12T11:20:40+00:00");
  info_.clock.epoch_tai_ns = *epoch;
  info_.clock.rate_hz = {config.sampling_frequency_hz, 1};
  info_.time_source = TimeSource::header;
  // Real samples: baseband 0 is the sky frequency that the mixer took to zero, the lower band edge.
  info_.reference_hz =
      options.reference_hz > 0 ? options.reference_hz : config.frequency_hz - config.baseband_hz;
  if (config.n_antennas != 0 && config.n_antennas != info_.n_inputs) {
    info_.warnings.push_back("config says " + std::to_string(config.n_antennas) +
                             " antennas, data has " + std::to_string(info_.n_inputs));
  }
  info_.header = config.header;
  info_.header["timestamp"] = stamp;
  set_time_major_layout(SampleFormat::i1, Encoding::levels);
  info_.layout.msb_first = true;
  info_.counters["frames"] = 1;
}

bool Tart::read_rows(std::int64_t first_byte, std::int64_t n_bytes) {
  const QuietHdf5 quiet;
  const std::array<hsize_t, 2> start{0, static_cast<hsize_t>(first_byte)};
  const std::array<hsize_t, 2> count{static_cast<hsize_t>(info_.n_inputs),
                                     static_cast<hsize_t>(n_bytes)};
  const hdf5::Handle file_space(H5Dget_space(data_), H5Sclose);
  const hdf5::Handle memory_space(H5Screate_simple(2, count.data(), nullptr), H5Sclose);
  if (!file_space.valid() || !memory_space.valid()) return false;
  if (H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                          nullptr) < 0)
    return false;
  return hdf5::read(data_, H5T_NATIVE_UINT8, memory_space.get(), file_space.get(), rows_.data()) >=
         0;
}

void Tart::read_samples(Tick first, std::int64_t n, std::span<std::byte> destination,
                        std::vector<AbsentSpan>& absent) {
  RYLE_ASSERT(n >= 0 && static_cast<std::int64_t>(destination.size()) >= samples_bytes(n));
  std::fill(destination.begin(), destination.begin() + samples_bytes(n), std::byte{0});
  const std::int64_t begin = std::max<std::int64_t>(first, 0);
  const std::int64_t end = std::max(begin, std::min(first + n, info_.n_ticks));
  const auto all_absent = [&](Tick from, Tick to) {
    for (std::int64_t p = 0; p < info_.n_inputs && from < to; ++p) absent.push_back({p, from, to});
  };
  all_absent(first, std::min(begin, first + n));
  all_absent(std::max(end, first), first + n);
  // A window at a time, so that memory does not grow with the request.
  constexpr std::int64_t kWindow = std::int64_t{1} << 19;
  for (std::int64_t t0 = begin; t0 < end;) {
    const std::int64_t first_byte = t0 / 8;
    const std::int64_t t1 = std::min(end, (first_byte * 8) + kWindow);
    const std::int64_t n_bytes = (t1 + 7) / 8 - first_byte;
    rows_.resize(info_.n_inputs * n_bytes);
    if (!read_rows(first_byte, n_bytes)) {
      all_absent(t0, t1);
      t0 = t1;
      continue;
    }
    for (std::int64_t t = t0; t < t1; ++t) {
      const auto at = static_cast<std::size_t>(t / 8 - first_byte);
      const int shift = 7 - static_cast<int>(t & 7);
      std::int64_t bit = (t - first) * info_.n_inputs;
      for (std::int64_t p = 0; p < info_.n_inputs; ++p, ++bit) {
        const unsigned one = (rows_[static_cast<std::size_t>(p * n_bytes) + at] >> shift) & 1u;
        destination[bit >> 3] |= std::byte(one << (7 - (bit & 7)));
      }
    }
    t0 = t1;
  }
}

}  // namespace

TartConfig parse_tart_config(const std::string& where, const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) fail(where, "config is not a JSON object");
  const auto number = [&](const char* key) -> double {
    if (!json.contains(key) || !json[key].is_number())
      fail(where, std::string("config has no number \"") + key + "\"");
    const double value = json[key].get<double>();
    if (!std::isfinite(value)) fail(where, std::string("config: ") + key + " is not finite");
    return value;
  };
  TartConfig config;
  const double rate = number("sampling_frequency");
  if (!(rate >= 1 && rate <= 1e12) || rate != std::floor(rate)) {
    fail(where, "config: sampling_frequency is " + std::to_string(rate) +
                    " Hz; a whole number from 1 to 1e12 is read");
  }
  config.sampling_frequency_hz = static_cast<std::int64_t>(rate);
  config.frequency_hz = number("frequency");
  config.baseband_hz = number("baseband_frequency");
  if (json.contains("num_antenna") && json["num_antenna"].is_number_integer()) {
    config.n_antennas = json["num_antenna"].get<std::int64_t>();
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_string()) {
      config.header[key] = value.get<std::string>();
    } else if (value.is_primitive()) {
      config.header[key] = value.dump();
    }
  }
  return config;
}

std::unique_ptr<Recording> open_tart(const std::string& path, const RecordingOptions& options) {
  return std::make_unique<Tart>(path, options);
}

}  // namespace ryle::detail
