// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/visibility/spectra_chain.hpp"

#include <algorithm>
#include <chrono>

#include "ryle/core/error.hpp"
#include "ryle/pipeline/base/stopwatch.hpp"

namespace ryle::pipeline {

correlate::Config correlator_config(const SpectraChain::Setup& setup) {
  correlate::Config config;
  config.n_inputs = setup.n_inputs;
  config.n_channels = setup.n_channels;
  config.format = setup.format;
  config.max_spectra = setup.max_gulp;
  config.implementation = setup.implementation;
  return config;
}

SpectraChain::SpectraChain(Queue queue, const Setup& setup, FxChain::DumpSink sink)
    : setup_(setup),
      queue_(std::move(queue)),
      sink_(std::move(sink)),
      correlator_(correlate::make_correlator(queue_, correlator_config(setup))),
      dump_(setup.spectra_per_dump) {}

SpectraChain::~SpectraChain() = default;

std::int64_t SpectraChain::advance(std::int64_t first, std::int64_t segment,
                                   const SampleClock& clock) {
  return dump_.advance(first, segment, clock, [this] { close_dump(); });
}

void SpectraChain::feed(const SpectraGulp& gulp) {
  RYLE_ASSERT(gulp.n_spectra > 0 && gulp.n_spectra <= std::min(dump_.room(), setup_.max_gulp));
  const auto start = std::chrono::steady_clock::now();
  const ConstBlockView blocks = blocks_for(queue_, gulp, own_blocks_);
  correlator_->execute(queue_, {blocks, gulp.n_spectra, gulp.valid, gulp.valid_words,
                                gulp.valid_channel_stride_words});
  queue_.synchronize();  // the caller's buffers are used again for the next gulp
  dump_.add(gulp.n_spectra);
  if (dump_.room() == 0) close_dump();
  busy_s_ += seconds_since(start);
}

void SpectraChain::flush() {
  if (dump_.filled() > 0) close_dump();
}

void SpectraChain::close_dump() {
  RawDump dump;
  dump.segment = dump_.segment();
  dump.first_spectrum = dump_.first();
  dump.n_spectra = dump_.filled();
  dump.clock = dump_.clock();
  correlator_->finish(queue_, dump.sums);
  dump_.restart();
  sink_(std::move(dump));
}

}  // namespace ryle::pipeline
