// SPDX-License-Identifier: BSD-3-Clause
// NumPy's .npz: a zip of .npy arrays, stored or deflated (APPNOTE.TXT 6.3 of PKWARE; NEP 1 of
// NumPy). Stored arrays are read where they lie; deflated ones are unpacked once into a nameless
// temporary file, so that memory stays small whatever the file claims.
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/io/scan/scan_arrays.hpp"

namespace ryle::io {
namespace {

constexpr std::int64_t kPiece_bytes = 1 << 18;
constexpr std::int64_t kMaxDirectory_bytes = 1 << 26;
constexpr std::int64_t kMaxHeader_bytes = 1 << 16;
constexpr std::int64_t kMaxDeflate_ratio = 1032;

struct ZipEntry {
  std::string name;
  int method = 0;
  std::uint32_t crc = 0;
  std::int64_t header_byte = 0, first_byte = 0, packed_bytes = 0, bytes = 0;
};

template <class Word>
Word little(const std::byte* at) {
  Word word = 0;
  for (std::size_t k = sizeof(Word); k-- > 0;)
    word = static_cast<Word>((static_cast<std::uint64_t>(word) << 8) |
                             std::to_integer<std::uint64_t>(at[k]));
  return word;
}

std::vector<std::byte> bytes_of(const RawFile& file, std::int64_t first, std::int64_t n) {
  if (!file.holds(first, n)) throw FormatError(file.path() + ": a damaged zip: it ends too early");
  std::vector<std::byte> bytes(n);
  file.read(first, n, bytes.data());
  return bytes;
}

/// First byte, length and number of entries of the central directory.
struct ZipDirectory {
  std::int64_t first_byte = 0, bytes = 0, n_entries = 0;
};

ZipDirectory find_directory(const RawFile& file) {
  const std::int64_t n = std::min<std::int64_t>(file.size_bytes(), 65'557);
  const auto tail = bytes_of(file, file.size_bytes() - n, n);
  for (std::int64_t k = n - 22; k >= 0; --k) {
    const std::byte* at = tail.data() + k;
    if (little<std::uint32_t>(at) != 0x06054b50) continue;
    ZipDirectory found{little<std::uint32_t>(at + 16), little<std::uint32_t>(at + 12),
                       little<std::uint16_t>(at + 10)};
    const std::int64_t locator = file.size_bytes() - n + k - 20;
    const bool large =
        found.first_byte == 0xFFFFFFFF || found.bytes == 0xFFFFFFFF || found.n_entries == 0xFFFF;
    if (large && locator >= 0) {
      const auto place = bytes_of(file, locator, 20);
      if (little<std::uint32_t>(place.data()) == 0x07064b50) {
        const auto record = bytes_of(file, little<std::int64_t>(place.data() + 8), 56);
        found = {little<std::int64_t>(record.data() + 48), little<std::int64_t>(record.data() + 40),
                 little<std::int64_t>(record.data() + 32)};
      }
    }
    return found;
  }
  throw FormatError(file.path() + ": a damaged zip: no directory at its end (is it complete?)");
}

/// Sizes above 4 GiB, or those of a writer that did not know them, are in an extra field.
void widen(const std::byte* extra, std::int64_t n, ZipEntry& entry) {
  for (std::int64_t k = 0; k + 4 <= n;) {
    const std::int64_t length = little<std::uint16_t>(extra + k + 2);
    std::int64_t at = k + 4;
    const std::int64_t end = at + length;
    if (end > n) return;
    if (little<std::uint16_t>(extra + k) == 1)
      for (std::int64_t* value : {&entry.bytes, &entry.packed_bytes, &entry.header_byte})
        if (*value == 0xFFFFFFFF && at + 8 <= end) {
          *value = little<std::int64_t>(extra + at);
          at += 8;
        }
    k = end;
  }
}

std::vector<ZipEntry> read_directory(const RawFile& file) {
  const ZipDirectory place = find_directory(file);
  if (place.bytes < 0 || place.bytes > kMaxDirectory_bytes)
    throw FormatError(
        fmt::format("{}: a damaged zip: a directory of {} bytes", file.path(), place.bytes));
  const auto bytes = bytes_of(file, place.first_byte, place.bytes);
  std::vector<ZipEntry> entries;
  std::size_t at = 0;
  while (at + 46 <= bytes.size() && little<std::uint32_t>(bytes.data() + at) == 0x02014b50) {
    const std::byte* e = bytes.data() + at;
    const std::size_t n_name = little<std::uint16_t>(e + 28),
                      n_extra = little<std::uint16_t>(e + 30);
    const std::size_t n_comment = little<std::uint16_t>(e + 32);
    if (at + 46 + n_name + n_extra + n_comment > bytes.size()) break;
    ZipEntry entry;
    entry.name.assign(reinterpret_cast<const char*>(e + 46), n_name);
    entry.method = little<std::uint16_t>(e + 10);
    entry.crc = little<std::uint32_t>(e + 16);
    entry.packed_bytes = little<std::uint32_t>(e + 20);
    entry.bytes = little<std::uint32_t>(e + 24);
    entry.header_byte = little<std::uint32_t>(e + 42);
    widen(e + 46 + n_name, static_cast<std::int64_t>(n_extra), entry);
    if ((little<std::uint16_t>(e + 8) & 1) != 0)
      throw UnsupportedError(file.path() + ": " + entry.name + " is encrypted");
    const auto local = bytes_of(file, entry.header_byte, 30);
    if (little<std::uint32_t>(local.data()) != 0x04034b50)
      throw FormatError(file.path() + ": a damaged zip: no entry " + entry.name +
                        " where it should be");
    entry.first_byte = entry.header_byte + 30 + little<std::uint16_t>(local.data() + 26) +
                       little<std::uint16_t>(local.data() + 28);
    if (!file.holds(entry.first_byte, entry.packed_bytes))
      throw FormatError(file.path() + ": a damaged zip: it ends within " + entry.name);
    const bool stored = entry.method == 0 && entry.bytes == entry.packed_bytes;
    const bool deflated = entry.method == 8 && entry.bytes >= 0 &&
                          entry.bytes / kMaxDeflate_ratio <= entry.packed_bytes;
    if (entry.method != 0 && entry.method != 8)
      throw UnsupportedError(
          fmt::format("{}: {} is compressed by method {}; stored and deflated arrays are read",
                      file.path(), entry.name, entry.method));
    if (!stored && !deflated)
      throw FormatError(fmt::format("{}: a damaged zip: {} is said to have {} bytes in {}",
                                    file.path(), entry.name, entry.bytes, entry.packed_bytes));
    entries.push_back(std::move(entry));
    at += 46 + n_name + n_extra + n_comment;
  }
  if (static_cast<std::int64_t>(entries.size()) != place.n_entries)
    throw FormatError(fmt::format("{}: a damaged zip: {} of {} entries are readable", file.path(),
                                  entries.size(), place.n_entries));
  return entries;
}

/// Unpacks up to `maximum` bytes and gives them piece by piece to take(bytes, n).
template <class Take>
void unpack(const RawFile& file, const ZipEntry& entry, std::int64_t maximum, Take take) {
  z_stream stream{};
  if (inflateInit2(&stream, -15) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::vector<std::byte> in(kPiece_bytes), out(in.size());
  std::int64_t taken = 0, made = 0;
  auto crc = static_cast<std::uint32_t>(crc32(0, nullptr, 0));
  int state = Z_OK;
  while (state != Z_STREAM_END && made < maximum) {
    if (stream.avail_in == 0) {
      const std::int64_t n = std::min(kPiece_bytes, entry.packed_bytes - taken);
      if (n <= 0) break;
      file.read(entry.first_byte + taken, n, in.data());
      taken += n;
      stream.next_in = reinterpret_cast<Bytef*>(in.data());
      stream.avail_in = static_cast<uInt>(n);
    }
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      throw FormatError(file.path() + ": a damaged zip: " + entry.name + " cannot be unpacked");
    const auto n = static_cast<std::int64_t>(out.size()) - stream.avail_out;
    made += n;
    if (made > entry.bytes)
      throw FormatError(file.path() + ": a damaged zip: " + entry.name + " is longer than it says");
    crc = static_cast<std::uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(out.data()), static_cast<uInt>(n)));
    take(out.data(), n);
  }
  if (made < std::min(maximum, entry.bytes))
    throw FormatError(file.path() + ": a damaged zip: " + entry.name + " is shorter than it says");
  if (made == entry.bytes && crc != entry.crc)
    throw FormatError(file.path() + ": a damaged zip: the checksum of " + entry.name + " is wrong");
}

/// The same of an entry that is stored as it is.
void require_stored_sum(const RawFile& file, const ZipEntry& entry) {
  auto crc = static_cast<std::uint32_t>(crc32(0, nullptr, 0));
  std::vector<std::byte> piece(kPiece_bytes);
  for (std::int64_t at = 0; at < entry.bytes; at += kPiece_bytes) {
    require_not_interrupted(file.path());
    const std::int64_t n = std::min(kPiece_bytes, entry.bytes - at);
    file.read(entry.first_byte + at, n, piece.data());
    crc = static_cast<std::uint32_t>(
        crc32(crc, reinterpret_cast<const Bytef*>(piece.data()), static_cast<uInt>(n)));
  }
  if (crc != entry.crc)
    throw FormatError(file.path() + ": a damaged zip: the checksum of " + entry.name + " is wrong");
}

std::shared_ptr<const RawFile> unpacked(const RawFile& file, const ZipEntry& entry) {
  std::string name = (std::filesystem::temp_directory_path() / "ryle-scans-XXXXXX").string();
  Descriptor file_here(::mkstemp(name.data()));
  if (!file_here)
    throw IoError(ExitCode::io, "cannot make a temporary file " + name + " to unpack " +
                                    entry.name + " of " + file.path() +
                                    "; TMPDIR names another folder");
  ::unlink(name.c_str());
  unpack(file, entry, entry.bytes, [&](const std::byte* bytes, std::int64_t n) {
    if (write_bytes(file_here, bytes, n) != n)
      throw IoError(ExitCode::io, "cannot unpack " + entry.name + " of " + file.path() + " into " +
                                      name + ": " + std::strerror(errno));
  });
  return std::make_shared<const RawFile>(std::move(file_here),
                                         file.path() + " (" + entry.name + ")");
}

/// What the header of an .npy says.
struct NpyHeader {
  RawNumber number;
  bool numbers = false, fortran = false;
  std::vector<std::int64_t> shape;
  std::int64_t data_byte = 0;
};

/// The text behind 'key': in the dictionary, up to the end.
std::string value_of(const std::string& header, const std::string& key) {
  const auto at = header.find("'" + key + "'");
  if (at == std::string::npos) return {};
  const auto colon = header.find(':', at + key.size() + 2);
  if (colon == std::string::npos) return {};
  const auto first = header.find_first_not_of(' ', colon + 1);
  return first == std::string::npos ? std::string() : header.substr(first);
}

bool parse_descr(const std::string& text, RawNumber& number) {
  using Kind = RawNumber::Kind;
  if (text.size() < 5 || text[0] != '\'' || text[4] != '\'') return false;
  const char order = text[1], kind = text[2], size = text[3];
  number.big_endian = order == '>';
  number.bytes = size - '0';
  if (order != '<' && order != '>' && order != '|') return false;
  if (kind == 'f') {
    number.kind = Kind::real;
    return number.bytes == 4 || number.bytes == 8;
  }
  if (kind != 'i' && kind != 'u' && kind != 'b') return false;
  number.kind = kind == 'i' ? Kind::with_sign : Kind::without_sign;
  return number.bytes == 1 || number.bytes == 2 || number.bytes == 4 || number.bytes == 8;
}

NpyHeader parse_npy(const std::vector<std::byte>& bytes, std::int64_t total,
                    const std::string& where) {
  const auto bad = [&](const std::string& why) -> FormatError {
    return FormatError(where + ": no array of NumPy: " + why);
  };
  if (bytes.size() < 12 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    throw bad("no magic number");
  const bool wide = std::to_integer<int>(bytes[6]) >= 2;
  const std::size_t begin = wide ? 12 : 10;
  const std::size_t length =
      wide ? little<std::uint32_t>(bytes.data() + 8) : little<std::uint16_t>(bytes.data() + 8);
  if (length > bytes.size() - begin) throw bad("its header is too long");
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + begin, length);
  NpyHeader header;
  header.data_byte = static_cast<std::int64_t>(begin + length);
  header.fortran = value_of(text, "fortran_order").rfind("True", 0) == 0;
  header.numbers = parse_descr(value_of(text, "descr"), header.number);
  if (!header.numbers) header.number = {};
  const std::string shape = value_of(text, "shape");
  if (shape.empty() || shape[0] != '(') throw bad("no shape");
  std::int64_t room = std::max<std::int64_t>(total - header.data_byte, 0) / header.number.bytes;
  const std::int64_t all = room;
  std::int64_t count = 1;
  for (std::size_t at = 1; at < shape.size() && shape[at] != ')';) {
    const auto first = shape.find_first_of("0123456789)", at);
    if (first == std::string::npos || shape[first] == ')') break;
    const auto last = std::min(shape.find_first_not_of("0123456789", first), shape.size());
    const double n = scan_number(shape.substr(first, last - first));
    if (header.numbers && !(n >= 0 && n <= static_cast<double>(room)))
      throw bad(fmt::format("its shape asks for more than its {} bytes", total));
    header.shape.push_back(static_cast<std::int64_t>(std::min(n, 9e15)));
    if (header.numbers) {
      count *= header.shape.back();
      room /= std::max<std::int64_t>(header.shape.back(), 1);
    }
    at = last;
  }
  if (header.numbers && count != all)
    throw bad(fmt::format("its shape asks for {} numbers, it has {}", count, all));
  return header;
}

class NpzArrays final : public ScanArrays {
 public:
  explicit NpzArrays(const std::string& path) : file_(std::make_shared<const RawFile>(path)) {
    for (auto& entry : read_directory(*file_)) {
      if (entry.name.size() < 5 || entry.name.compare(entry.name.size() - 4, 4, ".npy") != 0)
        continue;
      const std::string name = entry.name.substr(0, entry.name.size() - 4);
      std::vector<std::byte> begin;
      const std::int64_t n = std::min(entry.bytes, kMaxHeader_bytes);
      if (entry.method == 0)
        begin = bytes_of(*file_, entry.first_byte, n);
      else
        unpack(*file_, entry, n, [&](const std::byte* bytes, std::int64_t more) {
          begin.insert(begin.end(), bytes, bytes + more);
        });
      Member member{entry, parse_npy(begin, entry.bytes, path + ": " + entry.name), nullptr, false};
      arrays_.push_back({name, member.header.shape, member.header.numbers, ""});
      members_.emplace(name, std::move(member));
    }
  }

  std::optional<RawLayout> raw(const ScanArray& array) override {
    Member& member = members_.at(array.name);
    if (member.entry.method != 0 && !member.unpacked)
      member.unpacked = unpacked(*file_, member.entry);
    if (member.entry.method == 0 && !member.is_checked) {
      require_stored_sum(*file_, member.entry);
      member.is_checked = true;
    }
    RawLayout place{member.unpacked ? member.unpacked : file_, member.header.number, 0, {}};
    place.first_byte = member.header.data_byte + (member.unpacked ? 0 : member.entry.first_byte);
    place.step_bytes.resize(array.shape.size());
    std::int64_t step = place.number.bytes;
    for (std::size_t k = 0; k < array.shape.size(); ++k) {
      const std::size_t axis = member.header.fortran ? k : array.shape.size() - 1 - k;
      place.step_bytes[axis] = step;
      step *= array.shape[axis];
    }
    return place;
  }

 private:
  struct Member {
    ZipEntry entry;
    NpyHeader header;
    std::shared_ptr<const RawFile> unpacked;
    bool is_checked = false;  ///< stored: its sum was compared
  };
  std::shared_ptr<const RawFile> file_;
  std::map<std::string, Member> members_;
};

}  // namespace

std::unique_ptr<ScanFile> open_npz_scans(const std::string& path, const ScanOptions& options) {
  return open_named_scans(path, "NumPy npz", std::make_unique<NpzArrays>(path), options);
}

}  // namespace ryle::io
