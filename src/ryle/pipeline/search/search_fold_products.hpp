// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/engine/search/fold.hpp"
#include "ryle/io/beam/fold_file.hpp"
#include "ryle/telescope/pulsar.hpp"

/// What offline and live folding share: the prediction, and the products.
namespace ryle::pipeline {

/// Turns of `clock` from `start_tai_ns` for `duration_s`, fine enough for 1e-9 turns.
search::PhaseModel predicted_phase(const PulsarClock& clock, std::int64_t start_tai_ns,
                                   double duration_s);

/// Names of what is written; "" = not.
struct FoldOutputs {
  std::string text;  ///< profile: phase, mean, S/N of a bin
  std::string
      picture;       ///< PNG: profile with its error, sub-integrations, bands where there are any
  std::string fits;  ///< tables: sub-integrations x channels x bins
  bool overwrite = false;
};

/// Profile in sigma of a bin. @eq (p_b - p) sqrt(n_b) / sigma
std::vector<double> profile_snr(const search::Fold& fold);

/// @param cube may be nullptr when no FITS file and no picture of bands is asked for; head: names,
/// times, DM of the tables
std::vector<std::string> write_fold_products(const FoldOutputs& outputs, const search::Fold& fold,
                                             const search::FoldCube* cube, FoldedPulsar head);

}  // namespace ryle::pipeline
