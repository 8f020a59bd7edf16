// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/hdf5/codecs.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace ryle::hdf5 {
namespace {

/// Bitshuffle's blocks hold whole groups of 8 elements, about this many bytes, and 128 elements at
/// least.
constexpr std::size_t kBlock_bytes = 8192;
constexpr std::size_t kGroup = 8;

std::size_t default_block_elements(std::size_t element_bytes) {
  return std::max<std::size_t>(kBlock_bytes / element_bytes / kGroup * kGroup, 128);
}

/// A big-endian number at the front of `in`, which moves on past it.
template <class T>
std::optional<T> take(Bytes& in) {
  if (in.size() < sizeof(T)) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t k = 0; k < sizeof(T); ++k) value = value << 8 | std::to_integer<unsigned>(in[k]);
  in = in.subspan(sizeof(T));
  return static_cast<T>(value);
}

/// The next `n` bytes of `in`, which moves on past them.
std::optional<Bytes> take_bytes(Bytes& in, std::size_t n) {
  if (in.size() < n) return std::nullopt;
  const Bytes front = in.first(n);
  in = in.subspan(n);
  return front;
}

/// Transposes 8 x 8 bits: bit i of byte k becomes bit k of byte i.
std::uint64_t transpose_bits(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAULL;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCULL;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ULL;
  return x ^ t ^ (t << 28);
}

/// Block sizes of a bitshuffled stream: `whole` bytes each, then what is left in groups of 8
/// elements; calls f(offset, size) for each until it says no. Returns the bytes in blocks.
template <class F>
std::optional<std::size_t> for_blocks(std::size_t n_bytes, std::size_t element_bytes,
                                      std::size_t whole, const F& f) {
  const std::size_t in_groups = n_bytes / (kGroup * element_bytes) * kGroup * element_bytes;
  for (std::size_t at = 0; at < in_groups;) {
    const std::size_t size = std::min(whole, in_groups - at);
    if (!f(at, size)) return std::nullopt;
    at += size;
  }
  return in_groups;
}

}  // namespace

std::optional<std::size_t> decode_lzf(Bytes in, std::span<std::byte> out) {
  std::size_t from = 0;
  std::size_t to = 0;
  while (from < in.size()) {
    const auto control = std::to_integer<std::size_t>(in[from++]);
    if (control < 32) {  // control + 1 bytes as they are
      const std::size_t n = control + 1;
      if (n > in.size() - from || n > out.size() - to) return std::nullopt;
      std::memcpy(out.data() + to, in.data() + from, n);
      from += n;
      to += n;
      continue;
    }
    // A repetition: 3 bits of length (7: a byte more follows), 13 bits of distance.
    std::size_t n = control >> 5;
    if (n == 7) {
      if (from == in.size()) return std::nullopt;
      n += std::to_integer<std::size_t>(in[from++]);
    }
    if (from == in.size()) return std::nullopt;
    const std::size_t distance =
        ((control & 31) << 8) + std::to_integer<std::size_t>(in[from++]) + 1;
    n += 2;
    if (distance > to || n > out.size() - to) return std::nullopt;
    // Byte by byte: a repetition may run into what it has just made.
    for (std::size_t k = 0; k < n; ++k, ++to) out[to] = out[to - distance];
  }
  return to;
}

std::optional<std::size_t> decode_lz4_chunk(Bytes in, std::span<std::byte> out,
                                            const BlockDecoder& decode_block) {
  const auto total = take<std::uint64_t>(in);
  const auto block = take<std::uint32_t>(in);
  if (!total || !block || *block == 0 || *total > out.size()) return std::nullopt;
  const auto n_bytes = static_cast<std::size_t>(*total);
  for (std::size_t at = 0; at < n_bytes;) {
    const std::size_t size = std::min<std::size_t>(*block, n_bytes - at);
    const auto stored = take<std::uint32_t>(in);
    const auto bytes = stored ? take_bytes(in, *stored) : std::nullopt;
    if (!bytes) return std::nullopt;
    const auto target = out.subspan(at, size);
    if (bytes->size() == size) {
      std::copy(bytes->begin(), bytes->end(), target.begin());
    } else if (decode_block(*bytes, target) != size) {
      return std::nullopt;
    }
    at += size;
  }
  return n_bytes;
}

void undo_bitshuffle(Bytes in, std::span<std::byte> out, std::size_t element_bytes) {
  const std::size_t n = in.size() / (kGroup * element_bytes);  // groups, and bytes of a bit plane
  for (std::size_t group = 0; group < n; ++group) {
    for (std::size_t byte = 0; byte < element_bytes; ++byte) {
      std::uint64_t planes = 0;
      for (std::size_t bit = 0; bit < 8; ++bit) {
        planes |= std::to_integer<std::uint64_t>(in[(byte * 8 + bit) * n + group]) << (8 * bit);
      }
      const std::uint64_t elements = transpose_bits(planes);
      for (std::size_t k = 0; k < kGroup; ++k) {
        out[(group * kGroup + k) * element_bytes + byte] =
            static_cast<std::byte>(elements >> (8 * k) & 0xFF);
      }
    }
  }
}

std::optional<std::size_t> decode_bitshuffle(Bytes in, std::span<std::byte> out,
                                             BitshuffleShape shape) {
  if (in.size() > out.size() || shape.element_bytes == 0) return std::nullopt;
  const std::size_t elements =
      shape.block_elements > 0 ? shape.block_elements : default_block_elements(shape.element_bytes);
  if (elements % kGroup != 0 || elements > in.size() + kBlock_bytes) return std::nullopt;
  const auto in_blocks = for_blocks(in.size(), shape.element_bytes, elements * shape.element_bytes,
                                    [&](std::size_t at, std::size_t size) {
                                      undo_bitshuffle(in.subspan(at, size), out.subspan(at, size),
                                                      shape.element_bytes);
                                      return true;
                                    });
  if (in_blocks)
    std::copy(in.begin() + static_cast<std::ptrdiff_t>(*in_blocks), in.end(),
              out.begin() + static_cast<std::ptrdiff_t>(*in_blocks));
  return in.size();
}

std::optional<std::size_t> decode_bitshuffle(Bytes in, std::span<std::byte> out,
                                             std::size_t element_bytes,
                                             const BlockDecoder& decode_block) {
  const auto total = take<std::uint64_t>(in);
  const auto block = take<std::uint32_t>(in);
  if (!total || !block || element_bytes == 0 || *total > out.size() || *block == 0 ||
      *block % (kGroup * element_bytes) != 0)
    return std::nullopt;
  const auto n_bytes = static_cast<std::size_t>(*total);
  std::vector<std::byte> planes(std::min<std::size_t>(*block, n_bytes));
  const auto in_blocks =
      for_blocks(n_bytes, element_bytes, *block, [&](std::size_t at, std::size_t size) {
        const auto stored = take<std::uint32_t>(in);
        const auto bytes = stored ? take_bytes(in, *stored) : std::nullopt;
        const auto block_planes = std::span(planes).first(size);
        if (!bytes || decode_block(*bytes, block_planes) != size) return false;
        undo_bitshuffle(block_planes, out.subspan(at, size), element_bytes);
        return true;
      });
  if (!in_blocks || in.size() != n_bytes - *in_blocks) return std::nullopt;
  std::copy(in.begin(), in.end(), out.begin() + static_cast<std::ptrdiff_t>(*in_blocks));
  return n_bytes;
}

}  // namespace ryle::hdf5
