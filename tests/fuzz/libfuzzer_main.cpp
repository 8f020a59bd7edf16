// SPDX-License-Identifier: BSD-3-Clause
// One executable per body: RYLE_FUZZ_BODY names it.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/fuzz/bodies.hpp"

namespace {

const ryle::fuzz::Body& body() {
  static const ryle::fuzz::Body found = [] {
    for (const auto& b : ryle::fuzz::bodies()) {
      if (b.name == RYLE_FUZZ_BODY) return b;
    }
    std::abort();
  }();
  return found;
}

}  // namespace

/// Writes made-up files for the corpus where RYLE_FUZZ_SEEDS says.
extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* folder = std::getenv("RYLE_FUZZ_SEEDS");
  if (folder == nullptr || body().seeds == nullptr) return 0;
  int n = 0;
  for (const auto& seed : body().seeds())
    std::ofstream(std::string(folder) + "/seed-" + std::to_string(n++), std::ios::binary)
        .write(reinterpret_cast<const char*>(seed.data()),
               static_cast<std::streamsize>(seed.size()));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  body().run(std::as_bytes(std::span(data, size)));
  return 0;
}
