// SPDX-License-Identifier: BSD-3-Clause
// What the CUDA detector's kernels are launched with: windows of every boxcar, cells of a row.
#include <algorithm>
#include <array>

#include "ryle/engine/search/cuda/detect_work.hpp"
#include "ryle/engine/search/detect_common.hpp"

namespace ryle::search::detail {
namespace {

/// Windows of a level; every width has the narrowest that covers it.
std::vector<int> windows_of(bool covering, bool halved) {
  if (covering) return halved ? std::vector<int>{32} : std::vector<int>{1, 3, 8, 16, 32};
  if (halved) return {19, 23, 27, 32};
  return {1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, 23, 27, 32};
}

/// Window on cells that holds a boxcar of `width` in samples of the halved data, wherever it
/// begins.
int row_slot_of(int halvings, int width) {
  if (halvings > 0) return width <= 25 ? 0 : 1;
  constexpr std::array kMax{1, 3, 5, 9, 13, 17, 25, 33};
  return static_cast<int>(std::lower_bound(kMax.begin(), kMax.end(), width) - kMax.begin());
}

}  // namespace

BoxcarTable boxcar_table(std::int64_t max_width, double threshold) {
  BoxcarTable table{};
  table.covering = threshold >= kCoveringThreshold;
  for (const Octave& octave : octaves(boxcar_widths(max_width))) {
    const int h = octave.halvings;
    auto& entry = table.octaves[table.n_octaves++];
    entry = {h, table.n_widths, static_cast<int>(octave.widths.size()), 0, 0};
    table.max_halvings = std::max(table.max_halvings, h);
    const std::vector<int> windows = windows_of(table.covering, h > 0);
    for (const std::int32_t w : octave.widths) {
      const auto window = std::lower_bound(windows.begin(), windows.end(), w);
      const int slot = static_cast<int>(window - windows.begin());
      const int all = slot + (h == 0 ? 0 : kFullSlots + kHalvedSlots * (h - 1));
      entry.slots |= 1u << slot;
      table.windows[all] = *window;
      table.slot[table.n_widths] = all;
      const int row_slot = row_slot_of(h, w);
      entry.row_slots |= 1u << row_slot;
      table.row_slot[table.n_widths] = row_slot + (h == 0 ? 0 : kRowFull + 2 * (h - 1));
      table.widths[table.n_widths++] = w;
    }
  }
  return table;
}

RowWork row_work(const DeviceInput& in) {
  RowWork w{};
  w.in = in;
  w.first = std::max<std::int64_t>(0, std::min(in.first_start, in.stat_first)) / 64 * 64;
  // An odd cell behind the end at most: a thread with one that does not count costs its warp more.
  const std::int64_t half = ((in.n_columns - w.first + 63) / 64 + 1) / 2;
  w.half = static_cast<int>(std::min<std::int64_t>(half, 1 << 20));
  w.n_tiles = (w.half + 31) / 32;
  w.n_columns = static_cast<int>(in.n_columns - w.first);
  w.stat_begin = static_cast<int>(in.stat_first - w.first);
  w.stat_end = static_cast<int>(std::max(in.stat_end, in.stat_first) - w.first);
  return w;
}

bool fits_rows(const RowWork& w, const BoxcarTable& table) {
  // In a shorter row sums that go to the place of a cell ahead meet cells that are still read.
  return !w.in.wide && table.covering && table.max_halvings <= kRowHalvings &&
         w.half >= kRowAhead && w.half <= kMaxHalf;
}

bool takes_rows_once(const DeviceInput& in, const BoxcarTable& table) {
  return fits_rows(row_work(in), table) && in.stride % 8 == 0 &&
         reinterpret_cast<std::uintptr_t>(in.sums) % 16 == 0 && in.first_start % 64 == 0;
}

}  // namespace ryle::search::detail
