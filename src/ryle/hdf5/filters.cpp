// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/hdf5/filters.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"
#include "ryle/hdf5/codecs.hpp"
#include "ryle/hdf5/handle.hpp"
#include "ryle/hdf5/walk.hpp"
#ifdef RYLE_HAVE_LZ4
#include <lz4.h>
#endif
#ifdef RYLE_HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef RYLE_HAVE_BLOSC
#include <blosc.h>
#endif

namespace ryle::hdf5 {
namespace {

// Numbers that the HDF Group gave out.
constexpr H5Z_filter_t kLzf = 32000, kBlosc = 32001, kLz4 = 32004, kBitshuffle = 32008,
                       kZstd = 32015;

struct KnownFilter {
  H5Z_filter_t number;
  const char* name;
};
constexpr std::array<KnownFilter, 18> kNames{{{H5Z_FILTER_DEFLATE, "gzip"},
                                              {H5Z_FILTER_SZIP, "szip"},
                                              {305, "LZO"},
                                              {307, "bzip2"},
                                              {kLzf, "LZF"},
                                              {kBlosc, "Blosc"},
                                              {32002, "MAFISC"},
                                              {32003, "Snappy"},
                                              {kLz4, "LZ4"},
                                              {kBitshuffle, "bitshuffle"},
                                              {32009, "SPDP"},
                                              {32013, "ZFP"},
                                              {32014, "FPZip"},
                                              {kZstd, "Zstandard"},
                                              {32017, "SZ"},
                                              {32022, "granular bit rounding"},
                                              {32024, "SZ3"},
                                              {32026, "Blosc2"}}};

// What the read under way must get of a chunk; filters are given no more than bytes.
thread_local std::size_t chunk_bytes = 0;
thread_local bool chunk_is_exact = false;

/// Compressors within bitshuffle, as its fifth parameter names them.
constexpr unsigned kBitshuffle_none = 0, kBitshuffle_lz4 = 2, kBitshuffle_zstd = 3;

#ifdef RYLE_HAVE_LZ4
std::optional<std::size_t> decode_lz4(Bytes in, std::span<std::byte> out) {
  if (in.size() > LZ4_MAX_INPUT_SIZE || out.size() > LZ4_MAX_INPUT_SIZE) return std::nullopt;
  const int n = LZ4_decompress_safe(reinterpret_cast<const char*>(in.data()),
                                    reinterpret_cast<char*>(out.data()),
                                    static_cast<int>(in.size()), static_cast<int>(out.size()));
  return n < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(n));
}
#endif
#ifdef RYLE_HAVE_ZSTD
std::optional<std::size_t> decode_zstd(Bytes in, std::span<std::byte> out) {
  const std::size_t n = ZSTD_decompress(out.data(), out.size(), in.data(), in.size());
  return ZSTD_isError(n) != 0 ? std::nullopt : std::optional(n);
}
#endif
#ifdef RYLE_HAVE_BLOSC
std::optional<std::size_t> decode_blosc(Bytes in, std::span<std::byte> out) {
  std::size_t n = 0;
  if (blosc_cbuffer_validate(in.data(), in.size(), &n) < 0 || n > out.size()) return std::nullopt;
  const int made = blosc_decompress_ctx(in.data(), out.data(), out.size(), 1);
  return made < 0 ? std::nullopt : std::optional(static_cast<std::size_t>(made));
}
#endif

/// The decoder of a compressor within bitshuffle, empty where the build lacks it.
BlockDecoder bitshuffle_codec(unsigned codec) {
#ifdef RYLE_HAVE_LZ4
  if (codec == kBitshuffle_lz4) return decode_lz4;
#endif
#ifdef RYLE_HAVE_ZSTD
  if (codec == kBitshuffle_zstd) return decode_zstd;
#endif
  (void)codec;
  return {};
}

std::optional<std::size_t> decode_bitshuffle_chunk(std::span<const unsigned> parameters, Bytes in,
                                                   std::span<std::byte> out) {
  const auto parameter = [&](std::size_t k) { return k < parameters.size() ? parameters[k] : 0U; };
  const std::size_t element_bytes = parameter(2);
  if (parameter(4) == kBitshuffle_none)
    return decode_bitshuffle(in, out, BitshuffleShape{element_bytes, parameter(3)});
  const BlockDecoder codec = bitshuffle_codec(parameter(4));
  return codec ? decode_bitshuffle(in, out, element_bytes, codec) : std::nullopt;
}

/// One filter callback for all: HDF5 hands in the chunk, and takes the decoded one instead.
template <class Decode>
std::size_t decode_chunk(unsigned flags, std::size_t n_bytes, std::size_t* buffer_bytes,
                         void** buffer, const Decode& decode) {
  if ((flags & H5Z_FLAG_REVERSE) == 0 || chunk_bytes == 0) return 0;  // Ryle only reads
  // HDF5 takes and gives memory of malloc.
  void* out = std::malloc(chunk_bytes);  // NOLINT(cppcoreguidelines-no-malloc)
  if (out == nullptr) return 0;
  const auto made = decode(Bytes(static_cast<const std::byte*>(*buffer), n_bytes),
                           std::span(static_cast<std::byte*>(out), chunk_bytes));
  // HDF5 reads a whole chunk of what it gets, so that fewer bytes are as bad as none.
  if (!made || *made == 0 || (chunk_is_exact && *made != chunk_bytes)) {
    std::free(out);  // NOLINT(cppcoreguidelines-no-malloc)
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_PLINE, H5E_READERROR,
             "a compressed chunk is damaged");
    return 0;
  }
  std::free(*buffer);  // NOLINT(cppcoreguidelines-no-malloc)
  *buffer = out;
  *buffer_bytes = chunk_bytes;
  return *made;
}

template <auto decode>
std::size_t plain_filter(unsigned flags, std::size_t, const unsigned*, std::size_t n_bytes,
                         std::size_t* buffer_bytes, void** buffer) {
  return decode_chunk(flags, n_bytes, buffer_bytes, buffer, decode);
}

std::size_t bitshuffle_filter(unsigned flags, std::size_t n_parameters, const unsigned* parameters,
                              std::size_t n_bytes, std::size_t* buffer_bytes, void** buffer) {
  return decode_chunk(flags, n_bytes, buffer_bytes, buffer,
                      [&](Bytes in, std::span<std::byte> out) {
                        return decode_bitshuffle_chunk({parameters, n_parameters}, in, out);
                      });
}

void add_filter(H5Z_filter_t number, const char* name, H5Z_func_t function) {
  // Said to encode, which it rejects: HDF5 makes no data set of a filter that says it cannot.
  const H5Z_class2_t filter{H5Z_CLASS_T_VERS, number, 1, 1, name, nullptr, nullptr, function};
  H5Zregister(&filter);
}

void register_filters() {
  static std::once_flag once;
  std::call_once(once, [] {
    add_filter(kLzf, "lzf", plain_filter<decode_lzf>);
    add_filter(kBitshuffle, "bitshuffle", bitshuffle_filter);
#ifdef RYLE_HAVE_LZ4
    constexpr auto kChunk = [](Bytes in, std::span<std::byte> out) {
      return decode_lz4_chunk(in, out, decode_lz4);
    };
    add_filter(kLz4, "lz4", plain_filter<kChunk>);
#endif
#ifdef RYLE_HAVE_ZSTD
    add_filter(kZstd, "zstd", plain_filter<decode_zstd>);
#endif
#ifdef RYLE_HAVE_BLOSC
    add_filter(kBlosc, "blosc", plain_filter<decode_blosc>);
#endif
  });
}

struct Filter {
  H5Z_filter_t number = 0;
  std::vector<unsigned> parameters;
  std::string name;
};

std::vector<Filter> filters_of(hid_t properties) {
  std::vector<Filter> filters;
  const int n = std::max(H5Pget_nfilters(properties), 0);
  for (unsigned k = 0; k < static_cast<unsigned>(n); ++k) {
    std::array<unsigned, 32> parameters{};
    std::size_t n_parameters = parameters.size();
    std::array<char, 64> name{};
    unsigned flags = 0;
    Filter& filter = filters.emplace_back();
    filter.number = H5Pget_filter2(properties, k, &flags, &n_parameters, parameters.data(),
                                   name.size() - 1, name.data(), nullptr);
    filter.parameters.assign(parameters.begin(),
                             parameters.begin() + static_cast<std::ptrdiff_t>(
                                                      std::min(n_parameters, parameters.size())));
    filter.name = name.data();
  }
  return filters;
}

/// Properties of a data set for the time of a call.
class Properties {
 public:
  explicit Properties(hid_t set) : id_(H5Dget_create_plist(set)) {}
  ~Properties() {
    if (id_ >= 0) H5Pclose(id_);
  }
  Properties(const Properties&) = delete;
  Properties& operator=(const Properties&) = delete;
  hid_t get() const { return id_; }

 private:
  hid_t id_;
};

/// Sets what filters must make of the chunks of a data set, for the time of a read.
class ChunkSize {
 public:
  explicit ChunkSize(hid_t set) {
    const Properties properties(set);
    std::array<hsize_t, H5S_MAX_RANK> sides{};
    const int rank = H5Pget_layout(properties.get()) == H5D_CHUNKED
                         ? H5Pget_chunk(properties.get(), H5S_MAX_RANK, sides.data())
                         : 0;
    if (rank < 1) return;
    const hid_t type = H5Dget_type(set);
    std::size_t n_bytes = H5Tget_size(type);
    H5Tclose(type);
    for (int k = 0; k < rank; ++k) n_bytes *= static_cast<std::size_t>(sides[k]);
    bool exact = true;
    for (const Filter& filter : filters_of(properties.get())) {  // as the writer applied them
      if (filter.number >= H5Z_FILTER_RESERVED) break;
      if (filter.number == H5Z_FILTER_FLETCHER32) n_bytes += sizeof(std::uint32_t);
      // What these leave for the next filter is theirs to know.
      exact =
          exact && (filter.number == H5Z_FILTER_SHUFFLE || filter.number == H5Z_FILTER_FLETCHER32);
    }
    chunk_bytes = n_bytes;
    chunk_is_exact = exact;
  }
  ~ChunkSize() { chunk_bytes = 0; }
  ChunkSize(const ChunkSize&) = delete;
  ChunkSize& operator=(const ChunkSize&) = delete;
};

std::string name_of(const Filter& filter) {
  const auto known = std::find_if(kNames.begin(), kNames.end(),
                                  [&](const KnownFilter& k) { return k.number == filter.number; });
  const std::string name = known != kNames.end() ? known->name
                           : filter.name.empty() ? "unknown"
                                                 : filter.name;
  return std::to_string(filter.number) + " (" + name + ")";
}

std::string name_of_set(hid_t set) {
  std::array<char, 256> name{};
  return H5Iget_name(set, name.data(), name.size()) > 0 ? name.data() : "a data set";
}

/// All of a data set, with a look at the signals every so many bytes. Slabs are whole chunks.
herr_t read_slabs(hid_t set, hid_t memory_type, void* out) {
  constexpr hsize_t kSlab_bytes = 64 << 20;
  const Handle space(H5Dget_space(set), H5Sclose);
  std::array<hsize_t, H5S_MAX_RANK> shape{}, chunk{}, first{};
  const int rank = H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  hsize_t row_bytes = H5Tget_size(memory_type);
  for (int k = 1; k < rank; ++k) row_bytes *= shape[k];
  if (rank < 1 || row_bytes == 0 || shape[0] <= kSlab_bytes / row_bytes)
    return H5Dread(set, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out);
  const Properties properties(set);
  hsize_t step = std::max<hsize_t>(1, kSlab_bytes / row_bytes);
  if (H5Pget_layout(properties.get()) == H5D_CHUNKED &&
      H5Pget_chunk(properties.get(), H5S_MAX_RANK, chunk.data()) == rank)
    step = (step + chunk[0] - 1) / chunk[0] * chunk[0];
  std::array<hsize_t, H5S_MAX_RANK> count = shape;
  for (; first[0] < shape[0]; first[0] += count[0]) {
    require_not_interrupted(name_of_set(set));
    count[0] = std::min(step, shape[0] - first[0]);
    const Handle rows(H5Screate_simple(rank, count.data(), nullptr), H5Sclose);
    if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, first.data(), nullptr, count.data(),
                            nullptr) < 0 ||
        H5Dread(set, memory_type, rows.get(), space.get(), H5P_DEFAULT,
                static_cast<std::byte*>(out) + first[0] * row_bytes) < 0)
      return -1;
  }
  return 0;
}

}  // namespace

std::int64_t open_unwalked(const std::string& path, unsigned access) {
  const Handle properties(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  // Beside a writer HDF5 tries again when a checksum does not fit: by default 100 times, each wait
  // twice as long as the one before, which for a damaged file takes for ever. 24 take 20 ms.
  if ((access & H5F_ACC_SWMR_READ) != 0) H5Pset_metadata_read_attempts(properties.get(), 24);
  return H5Fopen(path.c_str(), access, properties.get());
}

hid_t open_file(const std::string& path, unsigned access) {
  register_filters();
  walk_in_child(path, access);
  return open_unwalked(path, access);
}

herr_t read(hid_t set, hid_t memory_type, hid_t memory_space, hid_t file_space, void* out) {
  const ChunkSize size(set);
  if (memory_space == H5S_ALL && file_space == H5S_ALL) return read_slabs(set, memory_type, out);
  return H5Dread(set, memory_type, memory_space, file_space, H5P_DEFAULT, out);
}

void require_filters(hid_t set, const std::string& path) {
  const Properties properties(set);
  for (const Filter& filter : filters_of(properties.get())) {
    std::string what;
    if (H5Zfilter_avail(filter.number) <= 0) what = "HDF5 filter " + name_of(filter);
    const unsigned codec = filter.parameters.size() > 4 ? filter.parameters[4] : kBitshuffle_none;
    if (what.empty() && filter.number == kBitshuffle && codec != kBitshuffle_none &&
        !bitshuffle_codec(codec)) {
      what = "HDF5 filter " + name_of(filter) + " with " +
             (codec == kBitshuffle_lz4    ? "LZ4"
              : codec == kBitshuffle_zstd ? "Zstandard"
                                          : "compressor " + std::to_string(codec));
    }
    if (what.empty()) continue;
    throw UnsupportedError("cannot read " + name_of_set(set) + " of " + path +
                           ": it is compressed with " + what +
                           ", which this build does not have (it has " + filter_names() +
                           "); write the file again with one of these (h5repack -f GZIP=4), or "
                           "name a folder with the filter's plug-in in HDF5_PLUGIN_PATH");
  }
}

std::string filter_names() {
  register_filters();
  std::string names;
  for (const KnownFilter& known : kNames) {
    if (H5Zfilter_avail(known.number) > 0)
      names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

}  // namespace ryle::hdf5
