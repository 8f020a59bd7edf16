// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ryle/core/time.hpp"

// The text headers of GUPPI RAW (80-character cards) and DADA (KEY value # comment). Views into the
// given bytes; nothing is copied, allocated or thrown.

namespace ryle::wire {

/// Whole text must be the number; no locale.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;
std::optional<double> parse_real(std::string_view text) noexcept;
/// "187.5", "-100", "3.2e-07" as an exact ratio; nothing when it does not fit 63 bits.
std::optional<Rational> parse_decimal(std::string_view text) noexcept;

struct TextField {
  std::string_view key;
  std::string_view value;  ///< quotes and outer blanks removed
};

/// GUPPI RAW: bytes of the cards up to and including END; 0 = no END within `start` or a card that
/// is no text.
std::size_t guppi_header_bytes(std::span<const std::byte> start) noexcept;
/// Card k of a header; empty key for one that has no "KEYWORD=".
TextField guppi_card(std::span<const std::byte> header, std::size_t k) noexcept;
/// Last card with this key (writers that rewrite a header append); empty when there is none.
std::string_view guppi_value(std::span<const std::byte> header, std::string_view key) noexcept;

/// DADA: first line with this key; empty when there is none. The text ends at the first NUL.
std::string_view dada_value(std::span<const std::byte> header, std::string_view key) noexcept;
/// Next field from byte `offset`, which moves behind it; empty key at the end.
TextField dada_field(std::span<const std::byte> header, std::size_t& offset) noexcept;

}  // namespace ryle::wire
