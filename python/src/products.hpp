// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "python/src/bindings.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/io/image/image_file.hpp"
#include "ryle/telescope/observation.hpp"

/// Products as Python gets them, read from files or streamed from a run.
namespace ryle::python {

struct SkyPicture {
  SkyImage image;
  Observation observation;
  std::string implementation, path;
  std::int64_t n_samples = 0;
  std::vector<std::string> warnings;
};
/// One that says itself what made it.
SkyPicture picture_of(const SkyImage& image, const Observation& observation);

nb::dict candidate_dict(const SearchCandidate& candidate);

}  // namespace ryle::python
