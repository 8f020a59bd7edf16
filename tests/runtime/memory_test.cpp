// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "ryle/device/buffer.hpp"

namespace ryle {
namespace {

// Counted by walking the pages. /proc/self/statm sums per-core counters that lag by up to 32 pages
// each, and more the more cores there are.
std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/smaps_rollup");
  for (std::string word; in >> word;) {
    std::int64_t kib = 0;
    if (word == "Rss:" && in >> kib) return kib * 1024;
  }
  return -1;
}

// Plans count what is asked for: host buffers must not take much more.
TEST(Buffer, HostMemoryIsWhatWasAskedFor) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's own memory would be counted";
#endif
  std::string huge_pages;
  std::getline(std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"), huge_pages);
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  for (const std::int64_t bytes : {kMiB, kMiB + 1, 2 * kMiB + 1, 5 * kMiB, 8 * kMiB + 1}) {
    const std::int64_t before = resident_bytes();
    if (before < 0) GTEST_SKIP() << "skipped: no /proc/self/smaps_rollup";
    const Buffer<std::byte> buffer(bytes);
    const std::int64_t taken = resident_bytes() - before;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 128, 0u) << bytes;
    EXPECT_EQ(buffer[bytes - 1], std::byte{0}) << bytes;
    // Whole huge pages need their alignment.
    if (bytes >= 2 * kMiB) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (2 * kMiB), 0u) << bytes;
    }
    // The kernel may round up by itself where it is told to do so always.
    if (huge_pages.find("[always]") == std::string::npos) {
      EXPECT_LE(taken, bytes + kMiB / 4) << bytes;
    }
  }
}

}  // namespace
}  // namespace ryle
