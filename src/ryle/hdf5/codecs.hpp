// SPDX-License-Identifier: BSD-3-Clause
// Decoders of compressed HDF5 chunks, on plain bytes. Every one checks both ends: a damaged or
// hostile stream is rejected, never read or written past.
#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>

namespace ryle::hdf5 {

using Bytes = std::span<const std::byte>;
/// Decodes all of `in` to the front of `out` and returns the bytes it made, or nothing when `in` is
/// damaged or does not fit.
using BlockDecoder = std::function<std::optional<std::size_t>(Bytes in, std::span<std::byte> out)>;

/// LZF (liblzf's format, the `compression="lzf"` of h5py).
std::optional<std::size_t> decode_lzf(Bytes in, std::span<std::byte> out);

/// The LZ4 filter of the HDF Group: big-endian total and block size, then blocks with their length;
/// a block as long as what it holds is stored as it is.
std::optional<std::size_t> decode_lz4_chunk(Bytes in, std::span<std::byte> out,
                                            const BlockDecoder& decode_block);

/// Turns the bit planes of 8 n elements back to elements. @shape in [bit of an element][n bytes],
/// out [8 n][element_bytes]; both of one size
void undo_bitshuffle(Bytes in, std::span<std::byte> out, std::size_t element_bytes);

/// The bitshuffle filter: bit planes of blocks of elements, then elements that fill no group of 8
/// as they are. Compressed ones carry big-endian total and block size (bytes) and a length a block.
struct BitshuffleShape {
  std::size_t element_bytes = 1;
  std::size_t block_elements = 0;  ///< of an uncompressed stream; 0: about 8 KiB
};
std::optional<std::size_t> decode_bitshuffle(Bytes in, std::span<std::byte> out,
                                             BitshuffleShape shape);
std::optional<std::size_t> decode_bitshuffle(Bytes in, std::span<std::byte> out,
                                             std::size_t element_bytes,
                                             const BlockDecoder& decode_block);

}  // namespace ryle::hdf5
