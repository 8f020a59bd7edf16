// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>

#include "ryle/core/blocks.hpp"

namespace ryle::pipeline {

/// A gulp of channelized voltages in host memory; meaning of the members as in image::FieldInput.
struct SpectraGulp {
  ConstBlockView blocks;
  std::int64_t n_spectra = 0;
  const std::uint64_t* valid = nullptr;
  std::int64_t valid_words = 0;
  std::int64_t valid_channel_stride_words = 0;
};

}  // namespace ryle::pipeline
