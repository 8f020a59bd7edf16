// SPDX-License-Identifier: BSD-3-Clause
// Some samples of a file of scans whose format does not read them alone.
#include <algorithm>

#include "ryle/io/scan/scan_file.hpp"

namespace ryle {
namespace {

template <class T, class Read>
void keep_some(std::int64_t n_all, std::int64_t first, std::int64_t n, T* out, const Read& read) {
  std::vector<T> all(n_all);
  read(all.data());
  std::copy_n(all.data() + first, n, out);
}

}  // namespace

void ScanFile::read_positions_of(std::int64_t first, std::int64_t n, double* longitude_deg,
                                 double* latitude_deg) {
  std::vector<double> longitude, latitude;
  read_positions(longitude, latitude);
  std::copy_n(longitude.data() + first, n, longitude_deg);
  std::copy_n(latitude.data() + first, n, latitude_deg);
}

void ScanFile::read_channels_of(std::int64_t first_channel, std::int64_t n_channels,
                                std::int64_t first, std::int64_t n, float* values) {
  if (n == metadata().n_samples) return read_channels(first_channel, n_channels, values);
  for (std::int64_t c = 0; c < n_channels; ++c)
    keep_some(metadata().n_samples, first, n, values + c * n,
              [&](float* all) { read_channels(first_channel + c, 1, all); });
}

void ScanFile::read_weights_of(std::int64_t first, std::int64_t n, float* weights) {
  keep_some(metadata().n_samples, first, n, weights, [&](float* all) { read_weights(all); });
}

void ScanFile::read_flags_of(std::int64_t first_channel, std::int64_t n_channels,
                             std::int64_t first, std::int64_t n, std::uint8_t* flags) {
  if (n == metadata().n_samples) return read_flags(first_channel, n_channels, flags);
  for (std::int64_t c = 0; c < n_channels; ++c)
    keep_some(metadata().n_samples, first, n, flags + c * n,
              [&](std::uint8_t* all) { read_flags(first_channel + c, 1, all); });
}

}  // namespace ryle
