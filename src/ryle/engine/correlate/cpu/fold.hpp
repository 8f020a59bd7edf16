// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/samples.hpp"

/// From the accumulators of the kernels to sums by pair: what finish() spends its time on, so it
/// runs at the rate of the memory. Rows are read in order, each from all its panels; the pairs they
/// become are one sequential stream.
namespace ryle::correlate::detail {

/// The accumulators of one channel. @shape [panel][row - panel * columns][re, im][column]
template <class T>
struct Accumulators {
  T* first;
  const std::int64_t* panel_first;  ///< element of row `panel * columns` of each panel
  std::int64_t columns;
};

/// How pairs are written. Streams pass the caches by: for sums that would not stay there anyway.
enum class Output : std::uint8_t { stored, streamed, added };

/// Adds the correction (modulo 2^32) to the sums of row j with columns 0 .. j, writes them to
/// to[0 .. j] and leaves 0 in all the row's accumulators. Streams need fence_streams() afterwards.
void fold_row(const Accumulators<std::uint32_t>& acc, std::int64_t j, ci32 correction,
              Output output, ci64* to);
/// The same without correction; not streamed.
void fold_row(const Accumulators<double>& acc, std::int64_t j, Output output, cf64* to);

/// fold_row() of this architecture can stream to this address.
bool can_stream(const ci64* to);
void fence_streams();

}  // namespace ryle::correlate::detail
