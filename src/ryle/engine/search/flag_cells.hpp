// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <vector>

/// Private to the engine.
namespace ryle::search::detail {

/// Mean and rms of one channel over one cell of time.
struct CellStatistics {
  double mean = 0;
  double rms = 0;  ///< 0: nothing there
  std::int64_t n = 0;
};

struct CellLimits {
  std::int64_t n_samples = 1024;
  double threshold = 5;       ///< MADs over the channels
  double iqrm_threshold = 3;  ///< IQRM over the channels
};

/// Channels of one cell of time that are out. Mean and rms are taken relative to what is usual for
/// the channel, then to the median of the 17 channels about it: a pulse, however bright, lifts
/// neighbors alike, interference of few channels does not. An outlier by MAD or IQRM must also
/// matter: 0.3 of the rms. @shape cells, usual, good [channel]; returns 1 = out
std::vector<std::uint8_t> bad_cells(const std::vector<CellStatistics>& cells,
                                    const std::vector<CellStatistics>& usual,
                                    const std::vector<std::uint8_t>& good,
                                    const CellLimits& limits);

/// The same for spectral kurtosis: beyond the limits, and not with its neighbors.
std::vector<std::uint8_t> bad_kurtosis(const std::vector<CellStatistics>& cells,
                                       const std::vector<std::uint8_t>& good, double degrees);

}  // namespace ryle::search::detail
