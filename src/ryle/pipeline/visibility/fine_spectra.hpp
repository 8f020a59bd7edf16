// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ryle/device/queue.hpp"
#include "ryle/engine/channelize/channelize.hpp"
#include "ryle/engine/correlate/finish.hpp"
#include "ryle/ingest/fengine_blocks.hpp"
#include "ryle/pipeline/config/config.hpp"
#include "ryle/pipeline/visibility/spectra_gulp.hpp"
#include "ryle/pipeline/visibility/spectra_metadata.hpp"

namespace ryle::pipeline {

/// Channels of an F-engine cut into finer ones: sizes, and the channelizer that works on one of
/// them at a time.
struct FineSetup {
  SpectraShape coarse;               ///< of the blocks that come
  SpectraMetadata received;          ///< what is known of them
  channelize::Config channelize;     ///< of one coarse channel; max_spectra is that of a fine gulp
  std::int64_t fine_per_coarse = 0;  ///< kept of channelize.n_channels, those in the middle
  double target_rms_lsb = 16;        ///< of integer output
  MemorySpace memory = MemorySpace::host;  ///< of the blocks that come out

  /// Of what comes out.
  SpectraShape shape() const;
  /// What nodes must know of it.
  SpectraMetadata metadata() const;
  /// Samples that wait, blocks and masks of a gulp; without the tables of the channelizer.
  std::int64_t memory_bytes() const;
};

/// channelize.fine_channels of every channel: a critically sampled channel (spectra come at the
/// rate of its width) is cut into as many; of one sampled faster the middle is kept, which has the
/// width of the channel. Throws ConfigError where that is no even transform, UnsupportedError for
/// spectra sampled more slowly than their width.
FineSetup fine_setup(const ObservationConfig& config, const SpectraShape& coarse,
                     const SpectraMetadata& received);

/// Spectra of an F-engine to spectra of finer channels, on the host: every (channel, input) is a
/// complex time series whose sample rate is that of the spectra. Assumed: its phase turns as
/// exp(+2 pi i (nu - nu_c) t) for a tone at nu in a channel centered at nu_c, whatever the order of
/// the channels in the packets.
/// @eq X[c N + k, m] = g_p sum_n h[n] x_c[mK + n] exp(-2 pi i (k - N/2)(mK + n)/K), N of K kept
/// - Thread: one, the engines'.
/// - Reads gulps of any length. Fine spectrum m holds spectra mK .. mK + L - 1 of the same clock,
///   whose rate is divided by K. Samples that are absent, or skipped by a gap, make the fine
///   spectra that need them absent; a new segment starts anew.
/// - Integer output is scaled, input by input, to a level measured from the first spectra.
class FineSpectra {
 public:
  /// @param first first fine spectrum of the gulp, on `clock`
  using Sink = std::function<void(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
                                  const SampleClock& clock)>;

  FineSpectra(Queue queue, const FineSetup& setup, Sink sink);

  void feed(const SpectraGulp& gulp, std::int64_t first, std::int64_t segment,
            const SampleClock& clock);
  /// Hands on what is whole.
  void flush();

  /// What the samples of an input were multiplied with; empty: nothing. Known when the sink is
  /// called.
  const std::vector<double>& scale() const { return scale_; }
  /// What coarse codes of four bits did to the products of an input; empty: they were finer.
  const std::vector<correlate::SamplerGain>& samplers() const { return samplers_; }
  double busy_s() const { return busy_s_; }
  std::string_view implementation() const { return channelizer_->implementation(); }

 private:
  void restart(std::int64_t first, std::int64_t segment, const SampleClock& clock);
  void keep(const SpectraGulp& gulp, std::int64_t offset, std::int64_t n);
  void note_absent(const SpectraGulp& gulp, std::int64_t offset, std::int64_t n);
  void run(std::int64_t n);
  SpectraGulp channelized(std::int64_t n);
  void drop_used();
  void set_scale();
  std::int64_t ready() const;

  FineSetup setup_;
  Queue queue_;
  Sink sink_;
  std::int64_t length_, step_, capacity_;
  std::unique_ptr<channelize::Channelizer> channelizer_;
  Buffer<std::byte> samples_;                    ///< [channel][input][capacity] ci8
  std::vector<std::vector<AbsentSpan>> absent_;  ///< [channel]
  Buffer<std::byte> scratch_;  ///< blocks of one channel, where not all fine ones are kept
  SpectraBlocks out_;
  std::vector<std::uint64_t> valid_;  ///< [input][words] of one channel
  SampleClock clock_;
  std::int64_t segment_ = -1;
  Tick held_first_ = 0;
  std::int64_t held_ = 0;
  std::int64_t next_ = 0;  ///< fine spectrum
  bool scaled_ = false;
  std::vector<double> scale_;
  std::vector<correlate::SamplerGain> samplers_;
  double busy_s_ = 0;
};

}  // namespace ryle::pipeline
