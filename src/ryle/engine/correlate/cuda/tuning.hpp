// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

/// How the Hopper correlator cuts its work: data, never measured at run time. Searched on an H200
/// by `bench_cuda correlate --tune`.
namespace ryle::correlate {

struct CudaTuning {
  int slots;       ///< of 16 KiB in the ring in shared memory; kMinSlots .. kMaxSlots
  int min_blocks;  ///< of 64 spectra: what is left of a launch is cut along time down to this
  bool clusters = false;  ///< of two thread blocks, which bring operands for one another
  bool early = false;     ///< a launch begins while the one before it ends
  bool hints = false;     ///< what nobody reads again leaves the second-level cache first
  int burst = 1;          ///< blocks on the diagonal that are asked for at once, without clusters
  /// Warpgroups that multiply, of ci8 from 129 to 256 inputs, by pairs of slots.
  bool three = false;
  int fetch_bytes = 256;  ///< that the second-level cache takes from memory at once: 0, 128, 256
};

inline constexpr int kMaxSlots = 12;
/// Columns of a block are held until products of the next block have begun, which needs its rows
/// and columns: with 2 slots nobody could go on.
inline constexpr int kMinSlots = 3;
/// In clusters the columns may be those that come first.
inline constexpr int kMinSlotsOfClusters = 4;

struct CudaTuningRow {
  int compute_capability;   ///< 10 major + minor
  std::int64_t max_inputs;  ///< rows of an architecture ascend, the first that fits is taken
  CudaTuning tuning;
  bool fp16 = false;  ///< of the kernel for cf16
};

inline constexpr CudaTuningRow kCudaTuning[] = {
    // memory binds: nothing is gained by cutting
    {90, 64, {5, 1024, false, false, true, 1, false, 128}},
    {90, 128, {8, 1024, false, false, false, 1, false, 128}},
    {90, 256, {12, 16, false, false, true, 1, true, 128}},
    {90, INT64_MAX, {8, 1024, false, false, false, 1, false, 128}},
    {90, 64, {5, 1024, false, false, true, 1, false, 128}, true},
    {90, 128, {8, 1024, false, false, false, 1, false, 128}, true},
    {90, 256, {5, 1024, false, false, true, 1, false, 128}, true},
    {90, 512, {12, 1024, true, false, true, 1, false, 128}, true},
    {90, INT64_MAX, {6, 1024, false, false, false, 1, false, 128}, true},
};

constexpr CudaTuning cuda_tuning(int compute_capability, std::int64_t n_inputs, bool fp16 = false) {
  for (const auto& row : kCudaTuning) {
    if (row.compute_capability == compute_capability && n_inputs <= row.max_inputs &&
        row.fp16 == fp16)
      return row.tuning;
  }
  return {12, 16};
}

/// Replaces the table from the next execute() on, for the search; nullptr = the table again.
void set_cuda_tuning(const CudaTuning* tuning);

}  // namespace ryle::correlate
