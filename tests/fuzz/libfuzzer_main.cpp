// SPDX-License-Identifier: BSD-3-Clause
// One executable per body: RYLE_FUZZ_BODY names it.
#include <cstdint>
#include <cstdlib>

#include "tests/fuzz/bodies.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ryle::fuzz::Body* body = [] {
    for (const auto& b : ryle::fuzz::bodies()) {
      if (b.name == RYLE_FUZZ_BODY) return &b;
    }
    std::abort();
  }();
  body->run(std::as_bytes(std::span(data, size)));
  return 0;
}
