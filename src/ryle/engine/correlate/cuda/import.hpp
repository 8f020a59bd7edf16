// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/engine/correlate/import.hpp"

/// Importers on a device; present only in builds with CUDA (RYLE_HAVE_CUDA).
namespace ryle::correlate::detail {

/// import_voltages() on a CUDA queue, after its checks. Throws ConfigError for more spectra or
/// columns than one launch numbers, and for memory the device does not reach.
void import_voltages_cuda(Queue& queue, const void* source, const VoltageLayout& layout,
                          std::int64_t n_spectra, const BlockView& blocks,
                          const ValidPlanes& planes);

}  // namespace ryle::correlate::detail
