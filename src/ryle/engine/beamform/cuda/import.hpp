// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/beamform/import.hpp"

/// import_blocks() on a device; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::beamform::detail {

void import_blocks_cuda(Queue& queue, const ConstBlockView& blocks, const BlocksImport& what,
                        std::byte* samples);

}  // namespace ryle::beamform::detail
