// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ryle/core/error.hpp"
#include "ryle/io/base/part_file.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/beam/sigproc_names.hpp"

namespace ryle {
namespace {

void put(std::string& to, const void* value, std::size_t n) {
  to.append(static_cast<const char*>(value), n);
}
void put_text(std::string& to, const std::string& text) {
  const auto length = static_cast<std::int32_t>(text.size());
  put(to, &length, 4);
  to += text;
}
void put_key(std::string& to, const char* key, std::int32_t value) {
  put_text(to, key);
  put(to, &value, 4);
}
void put_key(std::string& to, const char* key, double value) {
  put_text(to, key);
  put(to, &value, 8);
}
void put_key(std::string& to, const char* key, const std::string& value) {
  put_text(to, key);
  put_text(to, value.substr(0, 80));
}

bool evenly_spaced(const FilterbankInfo& info) {
  const auto& f = info.channel_center_hz;
  for (std::size_t c = 0; c < f.size(); ++c) {
    const double wanted = f.front() + static_cast<double>(c) * info.channel_width_hz;
    if (std::abs(f[c] - wanted) > 1e-6 * info.channel_width_hz * static_cast<double>(f.size()))
      return false;
  }
  return true;
}

void check(const std::string& path, const FilterbankInfo& info) {
  const auto reject = [&](const std::string& why) { throw ConfigError(path + ": " + why); };
  if (info.n_channels < 1 ||
      info.n_channels != static_cast<std::int64_t>(info.channel_center_hz.size()))
    reject(fmt::format("{} channels with {} frequencies", info.n_channels,
                       info.channel_center_hz.size()));
  if (info.bits != 1 && info.bits != 2 && info.bits != 4 && info.bits != 8 && info.bits != 16 &&
      info.bits != 32)
    reject(fmt::format("{} bits; SIGPROC has 1, 2, 4, 8, 16 and 32", info.bits));
  if ((info.n_channels * info.bits) % 8 != 0)
    reject(fmt::format("{} channels of {} bits are not whole bytes", info.n_channels, info.bits));
  if (!(std::isfinite(info.sample_interval_s) && info.sample_interval_s > 0))
    reject(fmt::format("the sample interval is {} s", info.sample_interval_s));
  if (info.n_channels > 1 && !evenly_spaced(info))
    reject("channels are not evenly spaced; SIGPROC readers need fch1 and foff");
}

std::string header_of(const FilterbankInfo& info, bool descending) {
  const auto& f = info.channel_center_hz;
  const double step_mhz = info.channel_width_hz * 1e-6;
  std::string h;
  put_text(h, "HEADER_START");
  put_key(h, "telescope_id",
          info.telescope_id != 0 ? info.telescope_id : io::sigproc_telescope_id(info.telescope));
  put_key(h, "machine_id", info.machine_id);
  put_key(h, "data_type", info.n_channels == 1 ? 2 : 1);
  if (!info.source_name.empty()) put_key(h, "source_name", info.source_name);
  put_key(h, "barycentric", info.barycentric ? 1 : 0);
  put_key(h, "src_raj", rad_to_sigproc_hours(info.position.ra_rad));
  put_key(h, "src_dej", rad_to_sigproc_degrees(info.position.dec_rad));
  put_key(h, "tstart", info.start_mjd_utc);
  put_key(h, "tsamp", info.sample_interval_s);
  put_key(h, "nbits", info.bits);
  put_key(h, "fch1", (descending ? f.back() : f.front()) * 1e-6);
  put_key(h, "foff", descending ? -step_mhz : step_mhz);
  put_key(h, "nchans", static_cast<std::int32_t>(info.n_channels));
  put_key(h, "nifs", 1);
  if (info.n_channels == 1) put_key(h, "refdm", info.dispersion_measure);
  put_text(h, "HEADER_END");
  return h;
}

}  // namespace

struct SigprocWriter::Impl {
  Impl(const std::string& path, const FilterbankInfo& wanted, const SigprocWriteOptions& o)
      : info(wanted), options(o), file(path, o.overwrite) {}
  FilterbankInfo info;
  SigprocWriteOptions options;
  io::PartFile file;
  std::int64_t n_samples = 0, low = 0, high = 0, header_bytes = 0;
  std::vector<std::uint8_t> row;

  std::uint32_t quantized(float value, std::uint32_t top) {
    const float rounded = std::nearbyintf(value);
    if (!(rounded >= 0)) {  // NaN, too: SIGPROC has no other way to say "nothing"
      ++low;
      return 0;
    }
    if (rounded > static_cast<float>(top)) {
      ++high;
      return top;
    }
    return static_cast<std::uint32_t>(rounded);
  }

  void pack(std::int64_t position, float value) {
    const int bits = info.bits;
    if (bits == 32) {
      std::memcpy(row.data() + 4 * position, &value, 4);
      return;
    }
    const std::uint32_t code = quantized(value, (1u << bits) - 1);
    if (bits >= 8) {
      std::memcpy(row.data() + position * bits / 8, &code, static_cast<std::size_t>(bits / 8));
      return;
    }
    const std::int64_t per_byte = 8 / bits;
    auto& byte = row[position / per_byte];
    byte =
        static_cast<std::uint8_t>(byte | (code << (bits * static_cast<int>(position % per_byte))));
  }

  // Bytes that stay as they are, turned in tiles of which a cache line is whole.
  void append_bytes(const std::uint8_t* data, std::int64_t stride, std::int64_t n) {
    constexpr std::int64_t kTimes = 64;
    const std::int64_t channels = info.n_channels;
    std::vector<std::uint8_t> slab(kTimes * channels);
    for (std::int64_t t = 0; t < n; t += kTimes) {
      const std::int64_t now = std::min(kTimes, n - t);
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::uint8_t* from = data + c * stride + t;
        std::uint8_t* to = slab.data() + (options.descending ? channels - 1 - c : c);
        for (std::int64_t k = 0; k < now; ++k) to[k * channels] = from[k];
      }
      file.write(slab.data(), static_cast<std::size_t>(now * channels));
    }
    n_samples += n;
  }

  template <class T>
  void append(const T* data, std::int64_t stride, std::int64_t n) {
    const std::int64_t channels = info.n_channels;
    std::vector<std::uint8_t> slab;
    for (std::int64_t t = 0; t < n; ++t) {
      std::fill(row.begin(), row.end(), std::uint8_t{0});
      for (std::int64_t c = 0; c < channels; ++c)
        pack(options.descending ? channels - 1 - c : c, static_cast<float>(data[c * stride + t]));
      slab.insert(slab.end(), row.begin(), row.end());
      if (slab.size() >= std::size_t{1} << 20 || t + 1 == n) {
        file.write(slab.data(), slab.size());
        slab.clear();
      }
    }
    n_samples += n;
  }
};

SigprocWriter::SigprocWriter(const std::string& path, const FilterbankInfo& info,
                             const SigprocWriteOptions& options) {
  check(path, info);
  impl_ = std::make_unique<Impl>(path, info, options);
  auto& c = *impl_;
  c.row.resize(info.n_channels * info.bits / 8);
  const std::string header = header_of(info, options.descending);
  c.file.write(header.data(), header.size());
  c.header_bytes = static_cast<std::int64_t>(header.size());
}

SigprocWriter::~SigprocWriter() = default;

void SigprocWriter::append(const float* data, std::int64_t stride, std::int64_t n) {
  impl_->append(data, stride, n);
}
void SigprocWriter::append(const std::uint8_t* data, std::int64_t stride, std::int64_t n) {
  if (impl_->info.bits == 8) return impl_->append_bytes(data, stride, n);
  impl_->append(data, stride, n);
}
std::int64_t SigprocWriter::n_samples() const { return impl_->n_samples; }
std::int64_t SigprocWriter::n_clamped_low() const { return impl_->low; }
std::int64_t SigprocWriter::n_clamped_high() const { return impl_->high; }

void SigprocWriter::finish() { impl_->file.finish(); }

void SigprocWriter::finish_at(std::int64_t n_samples) {
  auto& c = *impl_;
  c.n_samples = std::min(n_samples, c.n_samples);
  c.file.keep(c.header_bytes + c.n_samples * static_cast<std::int64_t>(c.row.size()));
  c.file.finish();
}

}  // namespace ryle
