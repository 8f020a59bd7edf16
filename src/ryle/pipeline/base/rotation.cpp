// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/base/rotation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ryle/telescope/geometry.hpp"

namespace ryle::pipeline {

Rotation::Rotation(double segment_s, double segment_mib)
    : segment_ns_(std::llround(segment_s * 1e9)),
      segment_bytes_(std::llround(segment_mib * 1048576)) {}

std::int64_t Rotation::dump_bytes(std::int64_t n_baselines, std::int64_t n_pol_products,
                                  std::int64_t n_channels) {
  return n_baselines * (n_pol_products * n_channels * 12 + 40);
}

std::int64_t Rotation::dump_bytes(const VisibilityDump& dump) {
  return dump_bytes(dump.n_baselines, dump.n_pol_products, dump.n_channels);
}

std::int64_t Rotation::segment_bytes(const VisibilityDump& dump) const {
  if (!on()) return 0;
  double bytes = static_cast<double>(segment_bytes_);
  if (segment_ns_ > 0 && dump.interval_s > 0) {
    const double by_time = std::ceil(static_cast<double>(segment_ns_) / (dump.interval_s * 1e9)) *
                           static_cast<double>(dump_bytes(dump));
    bytes = segment_bytes_ > 0 ? std::min(bytes, by_time) : by_time;
  }
  return static_cast<std::int64_t>(std::min(bytes, 9e18));
}

std::int64_t Rotation::index_of(const VisibilityDump& dump) const {
  // Integrations are whole spectra, S is not: half an integration decides, so that 2 s hold four
  // integrations of 0.499968 s.
  const std::int64_t slack_ns = std::llround(dump.interval_s * 0.5e9);
  return (dump.start_tai_ns - origin_tai_ns_ + slack_ns) / segment_ns_;
}

bool Rotation::due(const VisibilityDump& dump) const {
  if (dumps_ == 0) return false;
  if (segment_ns_ > 0 && index_of(dump) > index_) return true;
  return segment_bytes_ > 0 && bytes_ + dump_bytes(dump) > segment_bytes_;
}

void Rotation::begin(const VisibilityDump& dump, bool new_origin) {
  if (new_origin) origin_tai_ns_ = dump.start_tai_ns;
  index_ = segment_ns_ > 0 ? index_of(dump) : 0;
  start_tai_ns_ = end_tai_ns_ = dump.start_tai_ns;
  dumps_ = 0;
  bytes_ = 0;
}

void Rotation::add(const VisibilityDump& dump) {
  ++dumps_;
  bytes_ += dump_bytes(dump);
  end_tai_ns_ = dump.start_tai_ns + std::llround(dump.interval_s * 1e9);
}

std::string segment_suffix(std::int64_t start_tai_ns, std::int64_t number) {
  std::string utc = utc_iso(start_tai_ns, 3);
  std::erase_if(utc, [](char c) { return c == '-' || c == ':'; });
  return fmt::format("_{}Z_s{:04d}", utc, number);
}

}  // namespace ryle::pipeline
