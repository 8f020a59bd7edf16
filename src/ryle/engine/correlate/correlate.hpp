// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ryle/core/baseline.hpp"
#include "ryle/core/blocks.hpp"
#include "ryle/core/samples.hpp"
#include "ryle/core/view.hpp"
#include "ryle/device/queue.hpp"

/// X-engine: cross-multiplies and accumulates all input pairs.
/// @eq V_ij = sum_t v_i conj(v_j), i <= j   (Clark, La Plante & Greenhill 2012; integers
/// accumulated exactly)
namespace ryle::correlate {

struct Config {
  std::int64_t n_inputs = 0;
  std::int64_t n_channels = 0;
  SampleFormat format = SampleFormat::ci8;  ///< ci4, ci8, ci16, cf16 (cuda) or cf32
  std::int64_t max_spectra = 0;             ///< most spectra one execute() may bring; > 0
  std::string implementation =
      "auto";  ///< auto | reference | cpu | cpu:amx | cpu:avx512_vnni | ... | cuda ...
};

/// One gulp. Absent samples are already 0 in the blocks; the bit planes only drive the counts.
struct Input {
  ConstBlockView blocks;       ///< [channel][block][input]
  std::int64_t n_spectra = 0;  ///< the tail of the last block is 0
  const std::uint64_t* valid =
      nullptr;  ///< [input][valid_words] over the spectra; nullptr = all valid
  std::int64_t valid_words = 0;
  /// 0: one mask for all channels. Else words between the masks of successive channels:
  /// [channel][input][valid_words]; samples flagged in one channel only must be 0 there.
  std::int64_t valid_channel_stride_words = 0;
};

/// Raw sums since reset(): integer formats exact in int64, float formats in double.
/// @shape sums [channel][pair] complex, pair = pair_index(i, j) over inputs, V_ij = <v_i
/// conj(v_j)>, i <= j
/// @shape counts [channel][pair]: spectra in which both inputs were valid
struct Sums {
  std::vector<ci64> integer;  ///< ci4 ci8 ci16
  std::vector<cf64> real;     ///< cf16 cf32
  std::vector<std::uint32_t> counts;
  std::int64_t n_spectra = 0;  ///< nominal, lost ones included
};

class Correlator {
 public:
  virtual ~Correlator() = default;
  /// Adds a gulp. Asynchronous on the queue, no allocation. Integer formats: bit-identical on every
  /// implementation, for any split into gulps. Full range, -8 / -128 / -32768 included.
  virtual void execute(Queue& queue, const Input& input) = 0;
  /// Waits, writes the sums of everything since reset() and resets. `sums` is resized on first use.
  virtual void finish(Queue& queue, Sums& sums) = 0;
  /// Forgets everything accumulated.
  virtual void reset(Queue& queue) = 0;
  virtual std::string_view implementation() const = 0;
  virtual const Config& config() const = 0;
};

std::unique_ptr<Correlator> make_correlator(Queue& queue, const Config& config);
std::vector<std::string> available_implementations();

struct Cost {
  double useful_ops_per_spectrum = 0;  ///< 8 per complex multiply-accumulate, C N(N+1)/2 of them
  std::int64_t bytes_in_per_spectrum = 0;
  std::int64_t accumulator_bytes = 0;
  std::int64_t scratch_bytes = 0;
};
Cost cost(const Config& config);

}  // namespace ryle::correlate
