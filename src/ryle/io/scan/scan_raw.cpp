// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/scan/scan_raw.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"

namespace ryle::io {
namespace {

constexpr std::int64_t kTileChannels = 4096;
constexpr std::int64_t kSpan_bytes = 1 << 20;  ///< read at once rather than sample by sample

template <class Word>
Word swapped(Word word) {
  if constexpr (sizeof(Word) == 8) return static_cast<Word>(__builtin_bswap64(word));
  if constexpr (sizeof(Word) == 4) return static_cast<Word>(__builtin_bswap32(word));
  if constexpr (sizeof(Word) == 2) return static_cast<Word>(__builtin_bswap16(word));
  return word;
}

template <class Word, class Value, class Out>
void decode_as(const std::byte* from, std::int64_t step, std::int64_t n, const RawNumber& number,
               Out* to) {
  const bool plain = number.scale == 1 && number.zero == 0 && !number.has_null;
  const bool swap = number.big_endian == (std::endian::native == std::endian::little);
  for (std::int64_t k = 0; k < n; ++k) {
    Word word;
    std::memcpy(&word, from + k * step, sizeof(Word));
    const auto value = std::bit_cast<Value>(swap ? swapped(word) : word);
    if (plain) {
      to[k] = static_cast<Out>(value);
      continue;
    }
    bool absent = false;
    if constexpr (std::is_integral_v<Value>)
      absent = number.has_null && static_cast<std::int64_t>(value) == number.null;
    to[k] = absent ? std::numeric_limits<Out>::quiet_NaN()
                   : static_cast<Out>(number.zero + number.scale * static_cast<double>(value));
  }
}

template <class Out>
void decode_any(const std::byte* from, std::int64_t step, std::int64_t n, const RawNumber& number,
                Out* to) {
  using Kind = RawNumber::Kind;
  const auto take = [&](auto word, auto value) {
    decode_as<decltype(word), decltype(value)>(from, step, n, number, to);
  };
  if (number.kind == Kind::logical) {
    for (std::int64_t k = 0; k < n; ++k) to[k] = from[k * step] == std::byte{'T'} ? Out{1} : Out{0};
    return;
  }
  const bool sign = number.kind == Kind::with_sign;
  switch (number.bytes) {
    case 1:
      return sign ? take(std::uint8_t{}, std::int8_t{}) : take(std::uint8_t{}, std::uint8_t{});
    case 2:
      return sign ? take(std::uint16_t{}, std::int16_t{}) : take(std::uint16_t{}, std::uint16_t{});
    case 4:
      if (number.kind == Kind::real) return take(std::uint32_t{}, float{});
      return sign ? take(std::uint32_t{}, std::int32_t{}) : take(std::uint32_t{}, std::uint32_t{});
    default:
      if (number.kind == Kind::real) return take(std::uint64_t{}, double{});
      return sign ? take(std::uint64_t{}, std::int64_t{}) : take(std::uint64_t{}, std::uint64_t{});
  }
}

/// Bytes of one sample's channels [channel, channel + n) in one polarization.
std::int64_t region_bytes(const RawSamples& s, std::int64_t n) {
  return (n - 1) * s.channel_step_bytes + s.number.bytes;
}

/// A tile [sample][channel] as it is stored, the mean of the polarizations or (flags) whether any
/// is not 0.
template <class Out>
void load_tile(const RawFile& file, const RawSamples& samples, std::int64_t sample,
               std::int64_t n_samples, std::int64_t channel, std::int64_t n, std::int64_t pitch,
               std::vector<std::byte>& raw, std::vector<float>& row, float* tile) {
  const std::int64_t region = region_bytes(samples, n);
  const auto n_polarizations = static_cast<float>(samples.polarization_bytes.size());
  bool more = false;
  for (const std::int64_t polarization : samples.polarization_bytes) {
    const std::int64_t skip = channel * samples.channel_step_bytes + polarization;
    std::int64_t low = std::numeric_limits<std::int64_t>::max(), high = 0;
    for (std::int64_t s = sample; s < sample + n_samples; ++s) {
      low = std::min(low, samples.begin_of(s));
      high = std::max(high, samples.begin_of(s));
    }
    const std::int64_t span = high - low + region;
    const bool together = span <= std::max(kSpan_bytes, 2 * n_samples * region);
    raw.resize(together ? span : region);
    if (together) file.read(low + skip, span, raw.data());
    for (std::int64_t s = 0; s < n_samples; ++s) {
      const std::int64_t begin = samples.begin_of(sample + s);
      if (!together) file.read(begin + skip, region, raw.data());
      float* to = tile + s * pitch;
      float* values = more || std::is_same_v<Out, std::uint8_t> ? row.data() : to;
      decode(raw.data() + (together ? begin - low : 0), samples.channel_step_bytes, n,
             samples.number, values);
      if (values == to) continue;
      for (std::int64_t c = 0; c < n; ++c) {
        if constexpr (std::is_same_v<Out, std::uint8_t>)
          to[c] = (more && to[c] != 0) || values[c] != 0 ? 1.0f : 0.0f;
        else
          to[c] += values[c];
      }
    }
    more = true;
  }
  if (std::is_same_v<Out, float> && n_polarizations > 1) {
    const float share = 1 / n_polarizations;
    for (std::int64_t s = 0; s < n_samples; ++s)
      for (std::int64_t c = 0; c < n; ++c) tile[s * pitch + c] *= share;
  }
}

/// @param stride of the rows of `out`
template <class Out>
void read_by_samples(const RawFile& file, const RawSamples& samples, std::int64_t first,
                     std::int64_t n, Out* out, std::int64_t stride) {
  const std::int64_t side = std::min(n, kTileChannels);
  // A pitch that is no power of two: the columns of a tile do not fall into one set of the cache.
  const std::int64_t pitch = side + 16;
  const std::int64_t n_rows =
      std::min(samples.n_samples, std::clamp<std::int64_t>((1 << 18) / side, 64, 1 << 14));
  std::vector<float> tile(pitch * n_rows), row(static_cast<std::size_t>(side));
  std::vector<std::byte> raw;
  for (std::int64_t c = 0; c < n; c += side) {
    const std::int64_t n_here = std::min(side, n - c);
    const std::int64_t stored =
        samples.descending ? samples.n_channels - first - c - n_here : first + c;
    for (std::int64_t s = 0; s < samples.n_samples; s += n_rows) {
      const std::int64_t rows = std::min(n_rows, samples.n_samples - s);
      load_tile<Out>(file, samples, s, rows, stored, n_here, pitch, raw, row, tile.data());
      transpose_to(tile.data(), pitch, rows, n_here, samples.descending, out + c * stride + s,
                   stride);
    }
  }
}

/// Samples lie next to each other: a channel is read along.
template <class Out>
void read_by_channels(const RawFile& file, const RawSamples& samples, std::int64_t first,
                      std::int64_t n, Out* out, std::int64_t stride) {
  const std::int64_t step = samples.sample_step_bytes, total = samples.n_samples;
  const std::int64_t n_block = std::min<std::int64_t>(total, 1 << 16);
  std::vector<std::byte> raw;
  std::vector<float> values(n_block);
  const bool direct = std::is_same_v<Out, float> && samples.number.native_float() && step == 4 &&
                      samples.polarization_bytes.size() == 1;
  const float share = 1 / static_cast<float>(samples.polarization_bytes.size());
  for (std::int64_t c = 0; c < n; ++c) {
    const std::int64_t stored = samples.descending ? samples.n_channels - 1 - first - c : first + c;
    const std::int64_t begin = samples.first_byte + stored * samples.channel_step_bytes;
    Out* row = out + c * stride;
    if (direct) {
      file.read(begin + samples.polarization_bytes[0], 4 * total, row);
      continue;
    }
    for (std::int64_t s = 0; s < total; s += n_block) {
      const std::int64_t rows = std::min(n_block, total - s);
      const std::int64_t span = (rows - 1) * step + samples.number.bytes;
      std::fill_n(row + s, rows, Out{0});
      for (const std::int64_t polarization : samples.polarization_bytes) {
        raw.resize(span);
        file.read(begin + s * step + polarization, span, raw.data());
        decode(raw.data(), step, rows, samples.number, values.data());
        for (std::int64_t k = 0; k < rows; ++k) {
          if constexpr (std::is_same_v<Out, std::uint8_t>)
            row[s + k] = row[s + k] != 0 || values[k] != 0 ? 1 : 0;
          else
            row[s + k] += values[k] * share;
        }
      }
    }
  }
}

bool in_rows(const RawSamples& samples) {
  return samples.begin_bytes.empty() && samples.sample_step_bytes < samples.channel_step_bytes;
}

template <class Out>
void read_any(const RawFile& file, const RawSamples& samples, std::int64_t first, std::int64_t n,
              Out* out, std::int64_t stride) {
  if (first < 0 || n < 0 || first + n > samples.n_channels)
    throw ConfigError(file.path() + ": channels " + std::to_string(first) + " .. " +
                      std::to_string(first + n) + " of " + std::to_string(samples.n_channels));
  if (n == 0 || samples.n_samples == 0) return;
  if (in_rows(samples))
    read_by_channels(file, samples, first, n, out, stride);
  else
    read_by_samples(file, samples, first, n, out, stride);
}

/// Bytes of a piece: enough that starting a thread for some of them does not matter.
constexpr std::int64_t kThreadBlock_bytes = 1 << 20;

/// Some samples of some channels of a read.
struct RawBlock {
  std::size_t read = 0;
  std::int64_t first_channel = 0, n_channels = 0, first = 0, n = 0;
};

void add_pieces(const RawRead& r, std::size_t read, std::vector<RawBlock>& pieces) {
  const bool rows = in_rows(r.samples);
  const std::int64_t channels = rows ? 1 : std::max<std::int64_t>(1, r.n_channels);
  const std::int64_t each = channels * r.samples.number.bytes *
                            static_cast<std::int64_t>(r.samples.polarization_bytes.size());
  const std::int64_t n = std::max<std::int64_t>(1024, kThreadBlock_bytes / each);
  for (std::int64_t c = 0; c < r.n_channels; c += channels)
    for (std::int64_t s = 0; s < r.samples.n_samples; s += n)
      pieces.push_back({read, c, channels, s, std::min(n, r.samples.n_samples - s)});
}

}  // namespace

RawFile::RawFile(const std::string& path)
    : RawFile((require_regular_file(path), Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC))),
              path) {}

RawFile::RawFile(Descriptor file, std::string path)
    : file_(std::move(file)), path_(std::move(path)) {
  struct stat metadata {};
  if (!file_ || ::fstat(file_.get(), &metadata) != 0)
    throw IoError(ExitCode::io, "cannot open " + path_ + ": " + std::strerror(errno));
  size_bytes_ = metadata.st_size;
}

void RawFile::read(std::int64_t first_byte, std::int64_t n_bytes, void* to) const {
  if (!holds(first_byte, n_bytes))
    throw FormatError(path_ + ": ends too early: bytes " + std::to_string(first_byte) + " .. " +
                      std::to_string(first_byte + n_bytes) + " are to be read, it has " +
                      std::to_string(size_bytes_));
  const std::int64_t got = read_at(file_, to, n_bytes, first_byte);
  if (got != n_bytes)
    throw IoError(ExitCode::io, "cannot read " + path_ + " at byte " +
                                    std::to_string(first_byte + std::max<std::int64_t>(got, 0)) +
                                    ": " + (got < 0 ? std::strerror(errno) : "it became shorter"));
}

bool RawNumber::native_float() const {
  return kind == Kind::real && bytes == 4 && scale == 1 && zero == 0 &&
         big_endian == (std::endian::native == std::endian::big);
}

void decode(const std::byte* from, std::int64_t step_bytes, std::int64_t n, const RawNumber& number,
            double* to) {
  decode_any(from, step_bytes, n, number, to);
}
void decode(const std::byte* from, std::int64_t step_bytes, std::int64_t n, const RawNumber& number,
            float* to) {
  decode_any(from, step_bytes, n, number, to);
}

RawSamples some_of(const RawSamples& samples, std::int64_t first, std::int64_t n) {
  if (first < 0 || n < 0 || first > samples.n_samples - n)
    throw ConfigError("samples " + std::to_string(first) + " .. " + std::to_string(first + n) +
                      " of " + std::to_string(samples.n_samples));
  RawSamples some = samples;
  some.n_samples = n;
  some.first_byte += first * samples.sample_step_bytes;
  if (!samples.begin_bytes.empty())
    some.begin_bytes.assign(samples.begin_bytes.begin() + first,
                            samples.begin_bytes.begin() + first + n);
  return some;
}

void read_raw(const RawFile& file, const RawSamples& samples, std::int64_t first, std::int64_t n,
              float* out) {
  read_any(file, samples, first, n, out, samples.n_samples);
}
void read_raw(const RawFile& file, const RawSamples& samples, std::int64_t first, std::int64_t n,
              std::uint8_t* out) {
  read_any(file, samples, first, n, out, samples.n_samples);
}

void read_raw_all(const std::vector<RawRead>& reads) {
  std::vector<RawBlock> pieces;
  for (std::size_t r = 0; r < reads.size(); ++r) add_pieces(reads[r], r, pieces);
  on_threads(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t k) {
    const RawBlock& p = pieces[k];
    const RawRead& r = reads[p.read];
    const std::int64_t total = r.samples.n_samples;
    float* const to = r.out + p.first_channel * total + p.first;
    read_any(*r.file, some_of(r.samples, p.first, p.n), r.first_channel + p.first_channel,
             p.n_channels, to, total);
  });
}

void on_threads(std::int64_t n, const std::function<void(std::int64_t)>& body) {
  constexpr std::int64_t kMax = 12;
  const std::int64_t n_threads = std::min<std::int64_t>(
      {n, kMax, std::max<std::int64_t>(1, std::thread::hardware_concurrency())});
  std::atomic<std::int64_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    for (std::int64_t k = next++; k < n; k = next++) try {
        body(k);
      } catch (...) {
        next = n;
        const std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (std::int64_t t = 1; t < n_threads; ++t) threads.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads: those that began do the work
    }
    work();
  }
  if (error) std::rethrow_exception(error);
}

std::vector<double> read_raw_numbers(const RawFile& file, const RawSamples& samples) {
  // The first and the last number lie in the file before room is made for all.
  const std::int64_t total = samples.n_samples, bytes = samples.number.bytes;
  if (total > 0 &&
      (!file.holds(samples.begin_of(0), bytes) || !file.holds(samples.begin_of(total - 1), bytes)))
    throw FormatError(file.path() + ": ends before the last of " + std::to_string(total) +
                      " numbers");
  std::vector<double> out(total);
  std::vector<std::byte> raw;
  constexpr std::int64_t kBlock = 4096;
  for (std::int64_t s = 0; s < total; s += kBlock) {
    const std::int64_t n = std::min(kBlock, total - s);
    const std::int64_t step = samples.begin_bytes.empty() ? samples.sample_step_bytes : 0;
    const std::int64_t span = (n - 1) * step + bytes;
    if (step > 0 && span <= kSpan_bytes) {
      raw.resize(span);
      file.read(samples.begin_of(s), span, raw.data());
      decode(raw.data(), step, n, samples.number, out.data() + s);
      continue;
    }
    raw.resize(bytes);
    for (std::int64_t k = s; k < s + n; ++k) {
      file.read(samples.begin_of(k), bytes, raw.data());
      decode(raw.data(), bytes, 1, samples.number, out.data() + k);
    }
  }
  return out;
}

}  // namespace ryle::io
