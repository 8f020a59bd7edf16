// SPDX-License-Identifier: BSD-3-Clause
// The whole Observation as one JSON text, kept in every visibility file so that Ryle reads its own
// files exactly.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "ryle/telescope/observation.hpp"

namespace ryle {

/// Everything but the arrays of AppliedCorrections (formats store those natively). Doubles survive
/// bit for bit.
std::string observation_to_json(const Observation& observation);
/// Inverse; throws FormatError that names `where` and the field.
Observation observation_from_json(const std::string& text, const std::string& where);

}  // namespace ryle

namespace ryle::io {

/// Cuts text into printable-ASCII pieces of at most `width`; other bytes become '?'; lines stay
/// lines.
std::vector<std::string> printable_lines(const std::string& text, std::size_t width);

}  // namespace ryle::io
