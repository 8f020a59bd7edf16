// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/engine/channelize/problem.hpp"
#include "ryle/engine/channelize/unpack.hpp"

namespace ryle::channelize {
namespace {

constexpr std::int64_t kBatch = 4096;

template <class Part>
void add_parts(const Part* parts, std::int64_t n_samples, int n_parts, LevelStatistics& s) {
  for (std::int64_t i = 0; i < n_samples * n_parts; ++i) {
    const auto value = static_cast<double>(parts[i]);
    (n_parts == 2 && i % 2 == 1 ? s.sum_im : s.sum_re) += value;
    s.sum_of_squares += value * value;
    if constexpr (sizeof(Part) == 1) ++s.histogram[parts[i] + 128];
  }
  s.n_samples += n_samples;
}

}  // namespace

void add_level_statistics(const Config& config, const Input& input, Tick begin, Tick end,
                          std::span<LevelStatistics> statistics) {
  RYLE_ASSERT(static_cast<std::int64_t>(statistics.size()) == config.n_inputs);
  const detail::Unpacker unpacker(config.layout);
  const int parts = is_complex(config.layout.format) ? 2 : 1;
  std::vector<std::byte> batch(static_cast<std::size_t>(kBatch * unpacker.sample_bytes()) + 64);
  begin = std::max(begin, input.first_tick);
  end = std::min(end, input.first_tick + input.n_samples);
  const auto add = [&](std::int64_t p, Tick from, Tick to) {
    for (; from < to; from += kBatch) {
      const std::int64_t n = std::min(kBatch, to - from);
      unpacker.unpack(input.samples, p, 1, from - input.first_tick, n, batch.data(), 0);
      if (unpacker.floats()) {
        add_parts(reinterpret_cast<const float*>(batch.data()), n, parts, statistics[p]);
      } else {
        add_parts(reinterpret_cast<const std::int8_t*>(batch.data()), n, parts, statistics[p]);
      }
    }
  };
  std::vector<AbsentSpan> absent(input.absent.begin(), input.absent.end());
  std::sort(absent.begin(), absent.end(), [](const AbsentSpan& a, const AbsentSpan& b) {
    return a.input != b.input ? a.input < b.input : a.begin < b.begin;
  });
  auto span = absent.begin();
  for (std::int64_t p = 0; p < config.n_inputs; ++p) {
    Tick at = begin;
    while (span != absent.end() && span->input < p) ++span;
    for (; span != absent.end() && span->input == p; ++span) {
      if (span->begin >= span->end) continue;
      add(p, at, std::min(span->begin, end));
      at = std::max(at, span->end);
    }
    add(p, at, end);
  }
}

}  // namespace ryle::channelize
