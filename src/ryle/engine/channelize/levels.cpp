// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/engine/channelize/unpack.hpp"

namespace ryle::channelize {
namespace {

constexpr std::int64_t kBatch = 1024;   // samples unpacked at a time: 32 inputs of them fit in L2
constexpr std::int64_t kMaxGroup = 32;  // inputs unpacked together
constexpr std::int64_t kSlackBytes = 64;

/// Counts codes first: every sum follows from the histogram, exactly. Neighbouring samples count
/// in different tables, because equal codes in a row would wait for one another.
class CodeCounter {
 public:
  void add(const std::int8_t* codes, std::int64_t n_codes) {
    std::int64_t i = 0;
    for (; i + 4 <= n_codes; i += 4) {
      for (int k = 0; k < 4; ++k) ++counts_[k][codes[i + k] + 128];
    }
    for (; i < n_codes; ++i) ++counts_[i % 4][codes[i] + 128];
  }
  /// n_parts = 2: even codes are real parts, odd ones imaginary.
  void add_to(LevelStatistics& s, int n_parts) const {
    for (int bin = 0; bin < 256; ++bin) {
      const double value = bin - 128;
      for (int k = 0; k < 4; ++k) {
        const std::int64_t n = counts_[k][bin];
        (n_parts == 2 && k % 2 == 1 ? s.sum_im : s.sum_re) += value * static_cast<double>(n);
        s.sum_of_squares += value * value * static_cast<double>(n);
        s.histogram[bin] += n;
      }
    }
  }

 private:
  // Of one add_present(): a table gets at most n_samples / 2 + 1 codes.
  std::uint32_t counts_[4][256] = {};
};

void add_floats(const float* parts, std::int64_t n, int n_parts, LevelStatistics& s) {
  for (std::int64_t i = 0; i < n; ++i) {
    const auto value = static_cast<double>(parts[i]);
    (n_parts == 2 && i % 2 == 1 ? s.sum_im : s.sum_re) += value;
    s.sum_of_squares += value * value;
  }
}

class Levels {
 public:
  Levels(const Config& config, const Input& input)
      : input_(input),
        unpacker_(config.layout),
        parts_(is_complex(config.layout.format) ? 2 : 1),
        row_bytes_(kBatch * unpacker_.sample_bytes() + kSlackBytes),
        rows_(kMaxGroup * row_bytes_) {}

  /// Inputs [p, p + n), n <= kMaxGroup; absent spans of others do not matter.
  void add(std::int64_t p, std::int64_t n, Tick begin, Tick end, LevelStatistics* statistics) {
    std::vector<AbsentSpan> absent;
    for (const AbsentSpan& a : input_.absent) {
      if (a.input >= p && a.input < p + n && a.begin < a.end) absent.push_back(a);
    }
    if (absent.empty()) return add_present(p, n, begin, end, statistics);
    std::sort(absent.begin(), absent.end(),
              [](const AbsentSpan& a, const AbsentSpan& b) { return a.begin < b.begin; });
    for (std::int64_t j = 0; j < n; ++j) {
      Tick at = begin;
      for (const AbsentSpan& a : absent) {
        if (a.input != p + j) continue;
        add_present(p + j, 1, at, std::min(a.begin, end), statistics + j);
        at = std::max(at, a.end);
      }
      add_present(p + j, 1, at, end, statistics + j);
    }
  }

 private:
  void add_present(std::int64_t p, std::int64_t n, Tick begin, Tick end,
                   LevelStatistics* statistics) {
    if (begin >= end) return;
    RYLE_ASSERT(end - begin <= std::int64_t{0xFFFFFFFF});  // what a CodeCounter holds
    for (std::int64_t j = 0; j < n; ++j) statistics[j].n_samples += end - begin;
    std::vector<CodeCounter> counters(unpacker_.floats() ? 0 : n);
    for (Tick from = begin; from < end; from += kBatch) {
      const std::int64_t count = std::min(kBatch, end - from);
      unpacker_.unpack(input_.samples, p, n, from - input_.first_tick, count, rows_.data(),
                       row_bytes_);
      for (std::int64_t j = 0; j < n; ++j) {
        const std::byte* row = rows_.data() + j * row_bytes_;
        if (unpacker_.floats()) {
          add_floats(reinterpret_cast<const float*>(row), count * parts_, parts_, statistics[j]);
        } else {
          counters[j].add(reinterpret_cast<const std::int8_t*>(row), count * parts_);
        }
      }
    }
    for (std::size_t j = 0; j < counters.size(); ++j) counters[j].add_to(statistics[j], parts_);
  }

  const Input& input_;
  detail::Unpacker unpacker_;
  int parts_;
  std::int64_t row_bytes_;
  std::vector<std::byte> rows_;
};

/// Inputs that are read together: those that share cache lines.
std::int64_t group_size(const Config& config) {
  const std::int64_t group = detail::Unpacker(config.layout).group();
  return std::clamp<std::int64_t>(group, 1, kMaxGroup);
}

void add_group(const Config& config, const Input& input, std::int64_t p, std::int64_t n, Tick begin,
               Tick end, std::span<LevelStatistics> statistics) {
  begin = std::max(begin, input.first_tick);
  end = std::min(end, input.first_tick + input.n_samples);
  Levels(config, input)
      .add(p, std::min(n, config.n_inputs - p), begin, end,
           statistics.data() + static_cast<std::size_t>(p));
}

}  // namespace

void add_level_statistics(const Config& config, const Input& input, Tick begin, Tick end,
                          std::span<LevelStatistics> statistics) {
  RYLE_ASSERT(static_cast<std::int64_t>(statistics.size()) == config.n_inputs);
  const std::int64_t group = group_size(config);
  for (std::int64_t p = 0; p < config.n_inputs; p += group)
    add_group(config, input, p, group, begin, end, statistics);
}

void add_level_statistics(Queue& queue, const Config& config, const Input& input, Tick begin,
                          Tick end, std::span<LevelStatistics> statistics) {
  if (queue.back_end() != BackEnd::cpu)
    return add_level_statistics(config, input, begin, end, statistics);
  RYLE_ASSERT(static_cast<std::int64_t>(statistics.size()) == config.n_inputs);
  const std::int64_t group = group_size(config);
  queue.parallel_for((config.n_inputs + group - 1) / group, [&](std::int64_t i) {
    add_group(config, input, i * group, group, begin, end, statistics);
  });
}

}  // namespace ryle::channelize
