// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/beam/vdif_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "ryle/core/bits.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/part_file.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kVdifHeaderBytes = 32;
constexpr std::int64_t kVdifPayloadBytes = 8000;  // at most, where the rate allows: jumbo frames
constexpr std::int64_t kVdifMaxFrameBytes = 8 * ((1 << 24) - 1);
constexpr std::int64_t kVdifMaxGap_s = 600;
constexpr std::int64_t kVdifSecond_ns = 1'000'000'000;
constexpr std::uint32_t kVdifSync = 0xACABFEED;

// Samples per frame: a divisor of the rate (frames do not cross seconds) that fills 8-byte words;
// the largest below kVdifPayloadBytes, else the smallest there is.
std::int64_t frame_samples(std::int64_t rate_hz, std::int64_t bytes_per_sample) {
  std::int64_t best = 0, minimum = 0;
  const auto consider = [&](std::int64_t samples) {
    const std::int64_t bytes = samples * bytes_per_sample;
    if (bytes % 8 != 0 || bytes + kVdifHeaderBytes > kVdifMaxFrameBytes) return;
    if (bytes <= kVdifPayloadBytes) best = std::max(best, samples);
    if (minimum == 0 || samples < minimum) minimum = samples;
  };
  for (std::int64_t d = 1; d * d <= rate_hz; ++d) {
    if (rate_hz % d != 0) continue;
    consider(d);
    consider(rate_hz / d);
  }
  return best > 0 ? best : minimum;
}

struct VdifEpoch {
  std::uint32_t half_years = 0;
  std::int64_t tai_s = 0;
};

// The half-year of UTC that holds an instant.
VdifEpoch vdif_epoch(std::int64_t tai_ns) {
  const std::string date = utc_iso(tai_ns, 0);
  const int year = std::stoi(date.substr(0, 4)), month = std::stoi(date.substr(5, 2));
  if (year < 2000 || year > 2031)
    throw ConfigError("VDIF counts half-years from 2000 to 2031; the data are of " + date);
  VdifEpoch epoch;
  epoch.half_years = static_cast<std::uint32_t>(2 * (year - 2000) + (month >= 7 ? 1 : 0));
  epoch.tai_s =
      tai_ns_from_utc_iso(fmt::format("{:04d}-{}-01T00:00:00", year, month >= 7 ? "07" : "01")) /
      kVdifSecond_ns;
  return epoch;
}

}  // namespace

struct VdifWriter::Impl {
  Impl(const std::string& path, const VdifFileInfo& wanted, bool overwrite)
      : info(wanted), rate_hz(checked_rate(path)), file(path, overwrite) {
    bytes_per_sample = info.n_channels * 2 * info.bits / 8;
    samples = frame_samples(rate_hz, bytes_per_sample);
    if (samples == 0 || rate_hz / samples >= 1 << 24)
      reject(path, fmt::format("no frame length divides a rate of {} Hz into whole 8-byte words",
                               rate_hz));
    epoch = vdif_epoch(info.clock.epoch_tai_ns);
    first_second = info.clock.epoch_tai_ns / kVdifSecond_ns;
    const std::int64_t into_ns = info.clock.epoch_tai_ns % kVdifSecond_ns;
    const auto scaled = static_cast<__int128>(into_ns) * rate_hz;
    offset = static_cast<std::int64_t>((scaled + kVdifSecond_ns / 2) / kVdifSecond_ns);
    shift_s = static_cast<double>(static_cast<__int128>(offset) * kVdifSecond_ns - scaled) /
              (1e9 * static_cast<double>(rate_hz));
    frame.assign(info.n_threads,
                 std::vector<std::byte>(kVdifHeaderBytes + samples * bytes_per_sample));
    clear_frame();
  }

  [[noreturn]] static void reject(const std::string& path, const std::string& why) {
    throw ConfigError(path + ": " + why);
  }

  std::int64_t checked_rate(const std::string& path) const {
    const Rational rate = info.clock.rate_hz.reduced();
    if (info.bits != 8 && info.bits != 4)
      reject(path, fmt::format("VDIF voltages are ci8 or ci4, not of {} bits", info.bits));
    if (info.n_channels < 1 || !std::has_single_bit(static_cast<std::uint64_t>(info.n_channels)) ||
        info.n_channels > 1 << 20)
      reject(path, fmt::format("VDIF frames hold a power of two of channels, not {}; select some",
                               info.n_channels));
    if (info.n_threads < 1 || info.n_threads > 1024)
      reject(path, fmt::format("{} threads; VDIF has 1 to 1024", info.n_threads));
    if (info.station.size() != 2) reject(path, "a VDIF station is two letters");
    if (rate.den != 1 || rate.num < 1)
      reject(path, fmt::format("{}/{} complex samples a second and channel are no whole number: no "
                               "VDIF frame starts with a second; HDF5 (.h5) takes any rate",
                               rate.num, rate.den));
    return rate.num;
  }

  void clear_frame() {
    for (auto& f : frame)
      std::fill(f.begin() + kVdifHeaderBytes, f.end(), std::byte(info.bits == 8 ? 0x80 : 0x88));
    n_present = 0;
  }

  void header(std::vector<std::byte>& to, std::int64_t number, std::int64_t thread, bool invalid) {
    const std::int64_t per_second = rate_hz / samples;
    const std::int64_t second = first_second + number / per_second - epoch.tai_s;
    std::uint32_t words[8] = {};
    words[0] = (invalid ? 1u << 31 : 0u) | static_cast<std::uint32_t>(second);
    words[1] = epoch.half_years << 24 | static_cast<std::uint32_t>(number % per_second);
    const auto log2_channels =
        static_cast<std::uint32_t>(std::countr_zero(static_cast<std::uint64_t>(info.n_channels)));
    words[2] = 1u << 29 | log2_channels << 24 | static_cast<std::uint32_t>(to.size() / 8);
    words[3] = 1u << 31 | static_cast<std::uint32_t>(info.bits - 1) << 26 |
               static_cast<std::uint32_t>(thread) << 16 |
               static_cast<std::uint32_t>(static_cast<std::uint8_t>(info.station[0])) << 8 |
               static_cast<std::uint8_t>(info.station[1]);
    // EDV 1: the rate of complex samples, in kHz or MHz of 23 bits.
    const bool in_khz = rate_hz % 1000 == 0 && rate_hz / 1000 < 1 << 23;
    if (in_khz) {
      words[4] = 1u << 24 | static_cast<std::uint32_t>(rate_hz / 1000);
      words[5] = kVdifSync;
      std::memcpy(&words[6], "ryle    ", 8);
    }
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(to.data(), words, sizeof words);
  }

  void write_frame() {
    const bool invalid = n_present == 0;
    for (std::int64_t thread = 0; thread < info.n_threads; ++thread) {
      auto& f = frame[thread];
      header(f, frame_number, thread, invalid);
      slab.insert(slab.end(), f.begin(), f.end());
    }
    n_frames += info.n_threads;
    n_invalid += invalid ? info.n_threads : 0;
    if (slab.size() >= std::size_t{1} << 20) flush();
    ++frame_number;
    filled = 0;
    clear_frame();
  }

  void flush() {
    if (!slab.empty()) file.write(slab.data(), slab.size());
    slab.clear();
  }

  // Samples without data up to position `to` of the grid.
  void skip_to(std::int64_t to) {
    if (to - next > kVdifMaxGap_s * rate_hz)
      throw FormatError(
          file.path() + ": a gap of " +
          std::to_string(static_cast<double>(to - next) / static_cast<double>(rate_hz)) +
          " s is more than one file of VDIF should hold");
    while (next < to) {
      const std::int64_t n = std::min(to - next, samples - filled);
      filled += n;
      next += n;
      if (filled == samples) write_frame();
    }
  }

  // n samples into the frame, from `time` of the codes.
  void copy(const std::uint8_t* codes, std::int64_t channel_stride_bytes, std::int64_t time,
            std::int64_t n) {
    const std::int64_t code_bytes = info.bits == 8 ? 2 : 1;
    for (std::int64_t thread = 0; thread < info.n_threads; ++thread) {
      auto* to = reinterpret_cast<std::uint8_t*>(frame[thread].data()) + kVdifHeaderBytes +
                 filled * bytes_per_sample;
      for (std::int64_t channel = 0; channel < info.n_channels; ++channel) {
        const std::uint8_t* from =
            codes + channel * channel_stride_bytes + (time * info.n_threads + thread) * code_bytes;
        std::uint8_t* at = to + channel * code_bytes;
        for (std::int64_t t = 0; t < n; ++t) {
          if (info.bits == 8) {
            at[0] = from[0] ^ 0x80;
            at[1] = from[1] ^ 0x80;
          } else {
            // Real part in the low bits, as all of VDIF goes from low to high.
            at[0] = static_cast<std::uint8_t>(from[0] << 4 | from[0] >> 4) ^ 0x88;
          }
          from += info.n_threads * code_bytes;
          at += bytes_per_sample;
        }
      }
    }
  }

  VdifFileInfo info;
  std::int64_t rate_hz;
  io::PartFile file;
  std::int64_t bytes_per_sample = 0, samples = 0;
  VdifEpoch epoch;
  std::int64_t first_second = 0, offset = 0;  // tick 0 is sample `offset` of that second
  double shift_s = 0;
  bool started = false;
  std::int64_t next = 0;  // sample of the grid
  std::int64_t frame_number = 0, filled = 0, n_present = 0;
  std::int64_t n_frames = 0, n_invalid = 0, left_out = 0;
  std::vector<std::vector<std::byte>> frame;  // [thread]
  std::vector<std::byte> slab;
};

VdifWriter::VdifWriter(const std::string& path, const VdifFileInfo& info, bool overwrite)
    : impl_(std::make_unique<Impl>(path, info, overwrite)) {}
VdifWriter::~VdifWriter() = default;

void VdifWriter::append(const void* codes, std::int64_t channel_stride_bytes, Tick first,
                        std::int64_t n, const std::uint64_t* absent) {
  auto& c = *impl_;
  std::int64_t time = 0;
  if (!c.started) {
    // The first frame starts with its first sample: what comes before it is left out.
    const std::int64_t at = c.offset + first;
    const std::int64_t number = (at + c.samples - 1) / c.samples;
    time = std::min(n, number * c.samples - at);
    c.left_out += time;
    if (time == n) return;
    c.started = true;
    c.frame_number = number;
    c.next = number * c.samples;
  }
  RYLE_ASSERT(c.offset + first + time >= c.next);
  c.skip_to(c.offset + first + time);
  while (time < n) {
    const std::int64_t run = std::min(n - time, c.samples - c.filled);
    c.copy(static_cast<const std::uint8_t*>(codes), channel_stride_bytes, time, run);
    for (std::int64_t t = time; t < time + run; ++t)
      c.n_present += absent == nullptr || !test_bit(absent, t) ? 1 : 0;
    c.filled += run;
    c.next += run;
    time += run;
    if (c.filled == c.samples) c.write_frame();
  }
}

void VdifWriter::finish() {
  auto& c = *impl_;
  c.flush();
  c.left_out += c.filled;
  c.filled = 0;
  c.file.finish();
}

std::int64_t VdifWriter::samples_per_frame() const { return impl_->samples; }
std::int64_t VdifWriter::n_frames() const { return impl_->n_frames; }
std::int64_t VdifWriter::n_invalid_frames() const { return impl_->n_invalid; }
std::int64_t VdifWriter::n_left_out() const { return impl_->left_out; }
double VdifWriter::time_shift_s() const { return impl_->shift_s; }

}  // namespace ryle
