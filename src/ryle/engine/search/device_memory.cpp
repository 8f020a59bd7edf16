// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/search/device_memory.hpp"

#include <algorithm>
#include <set>

#include "ryle/engine/search/cuda/detect_work.hpp"
#include "ryle/engine/search/cuda/normalize_work.hpp"
#include "ryle/engine/search/cuda/subband_plan.hpp"
#include "ryle/engine/search/drift_steps.hpp"
#include "ryle/engine/search/fdmt_plan.hpp"
#include "ryle/engine/search/flag_spectra.hpp"

namespace ryle::search {

bool looks_for_bursts(const NormalizeConfig& c) {
  return c.flag_spectra && c.flag_channels && c.n_channels >= 4 && c.spectra.threshold > 0 &&
         !c.spectra.band.center_hz.empty();
}

std::int64_t device_normalizer_bytes(const NormalizeConfig& c, std::int64_t n_beams,
                                     std::int64_t max_samples) {
  const std::int64_t rows = n_beams * c.n_channels;
  const std::int64_t cells =
      rows * ((max_samples + c.statistics_samples - 1) / c.statistics_samples);
  std::int64_t bytes = cells * (2 * kCellMoments_bytes + kCellScale_bytes + 1) +
                       rows * kCellMoments_bytes +
                       std::max<std::int64_t>(1, rows * (c.median_cells / 2)) * kCellMoments_bytes +
                       2 * n_beams * max_samples + device_flag_room_bytes(c.n_channels);
  // Flags, those of the user, coefficients of band passes, counters.
  const std::int64_t terms = std::min<std::int64_t>(detail::kBandpassDegree, c.n_channels / 16) + 1;
  bytes += rows + c.n_channels * (1 + 8 * terms) + n_beams * detail::kNormalizeCounters * 8;
  if (!c.mask.blocks.empty()) bytes += c.n_channels * max_samples;
  if (c.kurtosis_degrees > 0)  // numbers of samples; low and high limits, and which there are
    bytes += cells * 4 + (c.statistics_samples + 1) * 17;
  if (c.zero_dm != ZeroDm::off) bytes += 2 * n_beams * max_samples * 4 + rows * 4;
  if (looks_for_bursts(c)) {
    const SpectraFlagger flagger(c.spectra);
    bytes += n_beams * (2 * flagger.n_groups() + 1) * (flagger.history() + max_samples) * 4 +
             n_beams * 4;  // and whether there was one
  }
  return bytes;
}

std::int64_t device_drift_bytes(const DriftConfig& c, std::int64_t n_beams, std::int64_t block) {
  const detail::DriftShape shape = detail::drift_shape(c.window_samples, block);
  const std::int64_t rows = n_beams * c.n_channels, plane = shape.plane;
  // Samples held back and given, cells of two blocks, joined cells and their averages, corrections.
  const std::int64_t of_row =
      shape.ring() + block + 2 * plane + 3 * (plane / detail::kDriftJoined) + block / shape.cell;
  return rows * (4 * of_row + 8 + kCellLevel_bytes) + n_beams * (32 * plane + 12 + block) +
         c.n_channels;
}

std::vector<std::int64_t> tree_pass_rows(const DedisperseConfig& config) {
  using namespace detail;
  const std::vector<double> dispersion = tree_dispersion(config);
  const std::vector<TreeNode> tree = tree_of(config.n_channels);
  std::vector<std::set<std::int32_t>> sweeps(tree.size());
  for (const std::int32_t row : tree_rows(config)) sweeps[0].insert(row);
  std::vector<std::int64_t> rows;
  for (std::size_t k = 0; k < tree.size(); ++k) {  // a node before its parts
    const TreeNode& node = tree[k];
    rows.resize(std::max(rows.size(), static_cast<std::size_t>(node.depth) + 1));
    rows[node.depth] += static_cast<std::int64_t>(sweeps[k].size());
    if (node.part_node.empty()) continue;
    for (const std::int32_t sweep : sweeps[k])
      for (std::int64_t p = 0; p < node.n_parts(); ++p)
        sweeps[node.part_node[p]].insert(tree_offset(dispersion, node, p, sweep).sweep);
  }
  std::reverse(rows.begin(), rows.end());
  return rows;
}

std::int64_t device_tree_half(std::int64_t n_outputs) {
  constexpr std::int64_t kTile = 256;  // kTileWords
  return (n_outputs + 2 * kTile - 1) / (2 * kTile) * kTile;
}

std::int64_t device_tree_stride(std::int64_t max_outputs, std::int64_t max_delay) {
  constexpr std::int64_t kCodeBlock = 1024;  // kCodeTileWords: thread blocks read whole ones
  return (device_tree_half(max_outputs) + max_delay + 2 * kCodeBlock + 63) / 64 * 64;
}

std::int64_t device_tree_bytes(const DedisperseConfig& config) {
  const std::int64_t max_delay = *std::max_element(config.delays.begin(), config.delays.end());
  std::vector<std::int64_t> rows = tree_pass_rows(config);
  rows.pop_back();  // the last pass writes to the sums
  std::int64_t all = 0;
  for (const std::int64_t n : rows) all += n;
  return all * device_tree_stride(config.max_outputs, max_delay) * 4;
}

std::int64_t device_subband_bytes(const DedisperseConfig& config) {
  const detail::SubbandTables tables =
      detail::subband_tables(detail::subband_plan(config), config.n_trials);
  const std::int64_t outputs = std::min(config.max_outputs, detail::kSubbandOutputs);
  return static_cast<std::int64_t>(tables.rows.size()) *
         detail::subband_stride(outputs, tables.max_extra) * 2;
}

std::int64_t device_detector_bytes(const DetectConfig& config) {
  detail::DeviceInput in{};
  in.wide = config.format == SumFormat::u32;
  in.n_columns = config.max_columns;
  const detail::RowWork w = detail::row_work(in);
  if (!detail::fits_rows(w, detail::boxcar_table(config.max_width, config.threshold))) return 0;
  return config.n_trials * w.n_tiles * detail::kRowWindows * 32 *
         static_cast<std::int64_t>(sizeof(unsigned));
}

}  // namespace ryle::search
