// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>

namespace ryle::detail {

/// log10(S / Jy) = sum_k coefficients[k] log10(nu / reference_hz)^k at the epoch, between min_hz
/// and max_hz. max_hz = 0: no law.
struct TabulatedLaw {
  double reference_hz = 0;
  std::array<double, 6> coefficients{};
  double min_hz = 0;
  double max_hz = 0;
  double epoch_year = 0;
  double fading_per_year = 0;
  double fading_error_per_year = 0;
  double relative_error = 0;
  const char* reference = "";
};

/// One radio source of the table: where it is, J2000, and what is published of its flux density.
struct TabulatedSource {
  const char* name;
  double ra_deg;
  double dec_deg;
  std::array<const char*, 3> aliases;
  bool landmark;                       ///< bright enough to be marked in pictures of the whole sky
  std::array<TabulatedLaw, 2> laws{};  ///< the first whose range holds a frequency is used
};

/// Landmarks first, brightest first, then by right ascension.
std::span<const TabulatedSource> tabulated_sources();
/// By name or alias; case, blanks, '-' and '_' do not matter. nullptr: not in the table.
const TabulatedSource* find_tabulated(std::string_view name);
/// The form in which names are compared.
std::string folded_name(std::string_view name);

}  // namespace ryle::detail
