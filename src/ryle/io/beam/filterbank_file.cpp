// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/beam/filterbank_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"

namespace ryle {
namespace {

class JoinedFilterbank : public FilterbankReader {
 public:
  explicit JoinedFilterbank(std::vector<std::unique_ptr<FilterbankReader>> parts)
      : parts_(std::move(parts)), info_(parts_.front()->info()) {
    for (std::size_t k = 1; k < parts_.size(); ++k) {
      const FilterbankInfo& next = parts_[k]->info();
      if (!follows_in_time(parts_[k - 1]->info(), next))
        throw ConfigError(next.path + ": it does not follow " + parts_[k - 1]->info().path +
                          " in time");
      info_.n_samples += next.n_samples;
      info_.warnings.insert(info_.warnings.end(), next.warnings.begin(), next.warnings.end());
    }
  }
  const FilterbankInfo& info() const override { return info_; }
  void read(std::int64_t first, std::int64_t n, float* to, std::int64_t stride) override {
    for (const auto& part : parts_) {
      const std::int64_t here = part->info().n_samples;
      const std::int64_t count = std::min(n, here - first);
      if (count > 0) {
        part->read(first, count, to, stride);
        to += count;
        n -= count;
        first += count;
      }
      first -= here;
    }
  }

 private:
  std::vector<std::unique_ptr<FilterbankReader>> parts_;
  FilterbankInfo info_;
};

}  // namespace

bool same_channels(const FilterbankInfo& a, const FilterbankInfo& b) {
  return a.channel_center_hz == b.channel_center_hz && a.channel_width_hz == b.channel_width_hz &&
         a.sample_interval_s == b.sample_interval_s;
}

bool follows_in_time(const FilterbankInfo& a, const FilterbankInfo& b) {
  if (!same_channels(a, b) || a.start_tai_ns == 0 || b.start_tai_ns == 0) return false;
  const double apart_s = static_cast<double>(b.start_tai_ns - a.start_tai_ns) * 1e-9 -
                         static_cast<double>(a.n_samples) * a.sample_interval_s;
  // A start in the header is a double of days: 0.63 us.
  return std::abs(apart_s) <= std::max(0.5 * a.sample_interval_s, 2e-6);
}

std::unique_ptr<FilterbankReader> join_filterbanks(
    std::vector<std::unique_ptr<FilterbankReader>> parts) {
  RYLE_ASSERT(!parts.empty());
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_unique<JoinedFilterbank>(std::move(parts));
}

std::unique_ptr<FilterbankReader> open_filterbank(const std::string& path,
                                                  const FilterbankOptions& options) {
  require_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError::from_errno("read", path, errno != 0 ? errno : ENOENT);
  std::array<char, 16> head{};
  in.read(head.data(), head.size());
  if (std::memcmp(head.data(), "SIMPLE  =", 9) == 0) return io::open_psrfits(path, options);
  return io::open_sigproc(path, options);  // says what is wrong, and where
}

}  // namespace ryle
