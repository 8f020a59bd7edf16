// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/search/dispersion.hpp"
#include "ryle/io/beam/candidate_file.hpp"
#include "ryle/pipeline/search/search_chain.hpp"

namespace ryle::pipeline {

/// Dynamic spectrum, profile and DM-time plane of an event from its codes.
CandidatePicture candidate_picture(const search::Band& band, const SearchEvent& event);

}  // namespace ryle::pipeline
