// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace ryle::fuzz {

/// One fuzz target: takes any bytes, aborts when an invariant breaks (ingest.md 11). The same
/// bodies run under libFuzzer (fuzz_NAME, clang with RYLE_FUZZ=ON) and, over seeds and random
/// damage, in the default tests.
struct Body {
  std::string_view name;
  void (*run)(std::span<const std::byte>);
};
std::span<const Body> bodies();

}  // namespace ryle::fuzz
