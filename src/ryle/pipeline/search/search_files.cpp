// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/search/search_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <utility>

#include "ryle/core/error.hpp"

namespace ryle::pipeline {
namespace {

/// The beams of one span of time.
struct Span {
  std::vector<std::unique_ptr<FilterbankReader>> beams;
  const FilterbankInfo& info(std::size_t beam = 0) const { return beams[beam]->info(); }
};

bool same_start(const FilterbankInfo& a, const FilterbankInfo& b) {
  const double late_s = static_cast<double>(b.start_tai_ns - a.start_tai_ns) * 1e-9;
  // A start in the header is a double of days: 0.63 us.
  return std::abs(late_s) <= std::max(0.5 * a.sample_interval_s, 2e-6);
}

bool same_direction(const SkyDirection& a, const SkyDirection& b) {
  constexpr double kNear_rad = 1e-6;  // 0.2 arc seconds: headers are rounded
  const double across = std::remainder(a.ra_rad - b.ra_rad, 2 * std::acos(-1.0));
  return std::abs(across) * std::cos(a.dec_rad) < kNear_rad &&
         std::abs(a.dec_rad - b.dec_rad) < kNear_rad;
}

/// One beam goes on whatever it points at: a telescope may track, and a single header may lie.
bool follows(const Span& before, const Span& after) {
  if (before.beams.size() != after.beams.size()) return false;
  for (std::size_t b = 0; b < before.beams.size(); ++b) {
    if (!follows_in_time(before.info(b), after.info(b))) return false;
    if (before.beams.size() > 1 && !same_direction(before.info(b).position, after.info(b).position))
      return false;
  }
  return true;
}

std::vector<Span> spans_of(std::vector<std::unique_ptr<FilterbankReader>> readers) {
  std::vector<Span> spans;
  for (auto& reader : readers) {
    std::size_t k = 0;
    while (k < spans.size() && !(same_channels(spans[k].info(), reader->info()) &&
                                 same_start(spans[k].info(), reader->info())))
      ++k;
    if (k == spans.size()) spans.emplace_back();
    spans[k].beams.push_back(std::move(reader));
  }
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.info().start_tai_ns < b.info().start_tai_ns;
  });
  return spans;
}

SearchRecording joined(std::vector<Span>& spans) {
  SearchRecording out;
  for (const Span& s : spans)
    for (const auto& beam : s.beams) out.files.push_back(beam->info().path);
  for (std::size_t b = 0; b < spans.front().beams.size(); ++b) {
    std::vector<std::unique_ptr<FilterbankReader>> parts;
    for (Span& s : spans) parts.push_back(std::move(s.beams[b]));
    out.beams.push_back(join_filterbanks(std::move(parts)));
  }
  return out;
}

void reject_twice(const std::vector<std::string>& files) {
  std::set<std::filesystem::path> seen;
  for (const auto& file : files) {
    std::error_code ignored;
    auto real = std::filesystem::canonical(file, ignored);
    if (!seen.insert(ignored ? std::filesystem::path(file) : std::move(real)).second)
      throw ConfigError(file + ": it is given twice; give each file once");
  }
}

}  // namespace

std::string name_of_files(const std::vector<std::string>& files) {
  const auto name = [&](std::size_t k) {
    return std::filesystem::path(files[k]).filename().string();
  };
  if (files.size() == 1) return name(0);
  return name(0) + (files.size() > 2 ? "+...+" : "+") + name(files.size() - 1);
}

std::vector<SearchRecording> open_search_files(const std::vector<std::string>& files,
                                               const FilterbankOptions& options,
                                               std::vector<std::string>& notes) {
  reject_twice(files);
  std::vector<std::unique_ptr<FilterbankReader>> readers;
  for (const auto& file : files) readers.push_back(open_filterbank(file, options));
  std::vector<Span> spans = spans_of(std::move(readers));
  std::vector<SearchRecording> out;
  std::vector<char> used(spans.size(), 0);
  for (std::size_t first = 0; first < spans.size(); ++first) {
    if (used[first] != 0) continue;
    std::vector<Span> chain;
    chain.push_back(std::move(spans[first]));
    for (std::size_t k = first + 1; k < spans.size(); ++k) {  // in order of time
      if (used[k] != 0 || !follows(chain.back(), spans[k])) continue;
      used[k] = 1;
      chain.push_back(std::move(spans[k]));
    }
    const std::size_t n_spans = chain.size();
    out.push_back(joined(chain));
    const SearchRecording& r = out.back();
    if (n_spans > 1)
      notes.push_back(fmt::format("{} follow each other in time: searched as one of {:.3f} s",
                                  fmt::join(r.files, ", "),
                                  static_cast<double>(r.beams.front()->info().n_samples) *
                                      r.beams.front()->info().sample_interval_s));
  }
  if (out.size() < 2) return out;
  std::string each;
  for (const auto& r : out)
    each += fmt::format("{}{}", each.empty() ? "" : "; ", fmt::join(r.files, ", "));
  notes.push_back(
      "searched one by one, because they neither start together nor follow each other in time, or "
      "differ in channels or interval: " +
      each);
  return out;
}

}  // namespace ryle::pipeline
