// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include "ryle/pipeline/config/config.hpp"

#include <string>
#include <string_view>

namespace ryle::pipeline {

/// Why the run of this source.kind and source.format does not use the key, and what would work; ""
/// when it does.
std::string reason_without_effect(const ObservationConfig& config, std::string_view section,
                                  std::string_view key);

/// Throws ConfigError "FILE:LINE:COLUMN: section.key = value has no effect: ..." for the first key
/// that the file or --set gives and that the run of its source.kind and source.format does not use:
/// what was asked for would be left out in silence. A key that asks for nothing (false, 0, "", [])
/// is accepted, and so are the keys of [simulator] and of sockets when the source is another.
void reject_keys_without_effect(const ObservationConfig& config);

}  // namespace ryle::pipeline
