// SPDX-License-Identifier: BSD-3-Clause
// cfitsio makes the header, of a cube of one pixel; planes go past it to their places in the file,
// in pieces that any thread may write. A cube of gigabytes is never read again for its checksum.
#include "ryle/io/map/map_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/map/map_header.hpp"

namespace ryle {
namespace {

constexpr std::int64_t kBlock_bytes = 2880, kCard_bytes = 80;
/// Numbers that are turned round at a time, and those of a piece for a thread.
constexpr std::int64_t kTurned = 16'384, kPiece = std::int64_t{1} << 18;

void write_at(int fd, const std::string& path, const void* data, std::int64_t n_bytes,
              std::int64_t at) {
  const auto* from = static_cast<const char*>(data);
  while (n_bytes > 0) {
    const ssize_t n = ::pwrite(fd, from, static_cast<std::size_t>(n_bytes), at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) throw IoError::from_errno("write", path, n < 0 ? errno : EIO);
    from += n;
    at += n;
    n_bytes -= n;
  }
}

/// Ones' complement sum of words (FITS standard 4.0, J.1).
std::uint64_t folded(std::uint64_t sum) {
  while (sum >> 32 != 0) sum = (sum & 0xFFFFFFFFU) + (sum >> 32);
  return sum;
}

}  // namespace

struct MapFileWriter::Impl {
  std::string path;
  std::optional<Part> part;
  Values values = Values::float32;
  std::int64_t plane_size = 0, n_planes = 0, n_written = 0;
  std::int64_t n_stokes = 1;
  std::int64_t data_byte = 0;
  Descriptor planes;
  std::atomic<std::uint64_t> sum = 0;
  std::vector<std::string> history;
  std::optional<io::FitsFile> file;  ///< once all planes are there

  void close_planes() {
    if (planes.close() != 0) throw IoError::from_errno("close", path, errno);
  }

  void create(const MapProjection& projection, const MapMetadata& metadata) {
    const std::array<LONGLONG, 4> axes{projection.width(), projection.height(), n_planes / n_stokes,
                                       n_stokes};
    const int n_axes = n_stokes > 1 ? 4 : 3;
    LONGLONG header = 0, data = 0, end = 0;
    {
      io::FitsFile small = io::FitsFile::create(part_path(path), path);
      std::array<LONGLONG, 4> one{1, 1, 1, 1};
      int status = 0;
      fits_create_imgll(small.get(),
                        values == Values::float32   ? FLOAT_IMG
                        : values == Values::float64 ? DOUBLE_IMG
                                                    : LONG_IMG,
                        n_axes, one.data(), &status);
      small.check(status, "create a cube in");
      write_header(small, projection, metadata);
      // Room for cards that come after the data: else a cube would move for them.
      constexpr int kLaterCards = 36;
      fits_set_hdrsize(small.get(), kLaterCards, &status);
      fits_get_hduaddrll(small.get(), &header, &data, &end, &status);
      small.check(status, "make room in the header of");
      small.close();
    }
    data_byte = data;
    planes = Descriptor(::open(part_path(path).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (!planes) throw IoError::from_errno("open", path, errno);
    for (int k = 0; k < n_axes; ++k) set_axis(k, axes[k]);
    const std::int64_t bytes = (values == Values::float64 ? 8 : 4) * plane_size * n_planes;
    const std::int64_t size = data_byte + (bytes + kBlock_bytes - 1) / kBlock_bytes * kBlock_bytes;
    // The one pixel that cfitsio wrote goes with what was behind the header.
    if (::ftruncate(planes.get(), data_byte) != 0 || ::ftruncate(planes.get(), size) != 0)
      throw IoError::from_errno("make room in", path, errno);
  }

  void write_header(io::FitsFile& to, const MapProjection& projection,
                    const MapMetadata& metadata) const {
    int status = 0;
    for (const std::string& card : projection.cards())
      fits_write_record(to.get(), card.c_str(), &status);
    to.check(status, "write the coordinates of");
    io::write_spectral_axis(to, 3, n_planes / n_stokes, metadata);
    if (n_stokes > 1) io::write_stokes_axis(to, 4, metadata);
    io::write_map_metadata(to, metadata);
  }

  // NAXIS1 is the fourth card (FITS standard 4.0, 4.4.1); its value ends in column 30.
  void set_axis(int axis, LONGLONG n) const {
    std::array<char, 24> text{};
    std::snprintf(text.data(), text.size(), "%20lld", n);
    write_at(planes.get(), path, text.data(), 20, (3 + axis) * kCard_bytes + 10);
  }

  template <class T>
  void require(std::int64_t n_more) const {
    constexpr Values own = std::is_same_v<T, float>    ? Values::float32
                           : std::is_same_v<T, double> ? Values::float64
                                                       : Values::int32;
    if (values != own)
      throw ConfigError(path + ": a plane of another type than the file was made for");
    if (n_written + n_more > n_planes)
      throw ConfigError(path + ": more planes than the " + std::to_string(n_planes) + " announced");
    if (const int fault = injected_fault("write", path); fault != 0)
      throw IoError::from_errno("write", path, fault);
  }

  // Numbers [first, first + n) of a plane. Any number of threads.
  template <class T>
  void write_some(std::int64_t plane, const T* numbers, std::int64_t first, std::int64_t n) {
    using Word = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Word));
    std::array<Word, kTurned> turned;
    std::uint64_t own = 0;
    for (std::int64_t k = first; k < first + n; k += kTurned) {
      const std::int64_t n_here = std::min(kTurned, first + n - k);
      std::memcpy(turned.data(), numbers + k, static_cast<std::size_t>(kBytes * n_here));
      for (std::int64_t i = 0; i < n_here; ++i) {
        auto& word = turned[i];
        constexpr bool kTurns = std::endian::native == std::endian::little;
        if constexpr (kBytes == 8) {  // checksums are of words of 32 bits
          own = folded(own + (word >> 32) + (word & 0xFFFFFFFFU));
          if constexpr (kTurns) word = __builtin_bswap64(word);
        } else {
          own += word;
          if constexpr (kTurns) word = __builtin_bswap32(word);
        }
      }
      write_at(planes.get(), path, turned.data(), kBytes * n_here,
               data_byte + kBytes * (plane * plane_size + k));
    }
    sum += folded(own);
  }

  template <class T>
  void append(const T* plane) {
    require<T>(1);
    write_some(n_written, plane, 0, plane_size);
    ++n_written;
  }

  template <class T>
  void append_all(const std::vector<const T*>& planes, const ForEach& for_each) {
    const auto n = static_cast<std::int64_t>(planes.size());
    const std::int64_t n_pieces = (plane_size + kPiece - 1) / kPiece;
    require<T>(n);
    for_each(n * n_pieces, [&](std::int64_t k) {
      const std::int64_t plane = k / n_pieces, first = k % n_pieces * kPiece;
      write_some(n_written + plane, planes[plane], first, std::min(kPiece, plane_size - first));
    });
    n_written += n;
  }

  /// The file, open for keywords.
  io::FitsFile& whole() {
    if (n_written != n_planes)
      throw ConfigError(path + ": " + std::to_string(n_written) + " of " +
                        std::to_string(n_planes) + " planes written");
    if (!file) {
      close_planes();
      file.emplace(io::FitsFile::open_to_write(part_path(path), path));
    }
    file->history(history);
    history.clear();
    return *file;
  }
};

MapFileWriter::MapFileWriter(const std::string& path, const MapProjection& projection,
                             std::int64_t n_planes, Values values, const MapMetadata& metadata,
                             bool overwrite)
    : impl_(std::make_unique<Impl>()) {
  Impl& c = *impl_;
  c.path = path;
  c.values = values;
  c.plane_size = projection.width() * projection.height();
  c.n_planes = n_planes;
  if (n_planes > 1 && metadata.stokes.size() > 1)
    c.n_stokes = static_cast<std::int64_t>(metadata.stokes.size());
  if (n_planes % c.n_stokes != 0)
    throw ConfigError(path + ": " + std::to_string(n_planes) + " planes are not the same for " +
                      std::to_string(c.n_stokes) + " polarizations");
  c.part.emplace(path, overwrite);
  c.create(projection, metadata);
}

MapFileWriter::~MapFileWriter() = default;

void MapFileWriter::append(const float* plane) { impl_->append(plane); }
void MapFileWriter::append(const double* plane) { impl_->append(plane); }
void MapFileWriter::append(const std::int32_t* plane) { impl_->append(plane); }

void MapFileWriter::append_all(const std::vector<const float*>& planes, const ForEach& for_each) {
  impl_->append_all(planes, for_each);
}
void MapFileWriter::append_all(const std::vector<const double*>& planes, const ForEach& for_each) {
  impl_->append_all(planes, for_each);
}

void MapFileWriter::add_history(const std::vector<std::string>& lines) {
  impl_->history.insert(impl_->history.end(), lines.begin(), lines.end());
}

io::FitsFile& MapFileWriter::complete_file() { return impl_->whole(); }

void MapFileWriter::publish() {
  Impl& c = *impl_;
  io::FitsFile& file = c.whole();
  int n_parts = 0, status = 0;
  fits_get_num_hdus(file.get(), &n_parts, &status);
  if (n_parts == 1)
    file.checksum(folded(c.sum));
  else
    file.checksum();  // of the last one: adopt() has seen to the others
  file.close();
  c.part->publish();
  c.n_planes = -1;
}

}  // namespace ryle
