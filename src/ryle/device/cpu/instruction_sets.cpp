// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include "ryle/device/queue.hpp"

#include <sys/syscall.h>
#include <unistd.h>

namespace ryle {
namespace {

// Linux gives the 8 KiB AMX tile state only to processes that ask for it (arch_prctl
// ARCH_REQ_XCOMP_PERM).
bool request_amx_tiles() {
  constexpr int kArchReqXcompPerm = 0x1023;
  constexpr int kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

bool cpu_has_amx_int8() {
  unsigned a = 7, b = 0, c = 0, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (d >> 24 & 1u) != 0 && (d >> 25 & 1u) != 0;
}

bool cpu_has_avx_vnni() {
  unsigned a = 7, b = 0, c = 1, d = 0;
  asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
  return (a >> 4 & 1u) != 0;
}

std::vector<std::string> detect() {
  __builtin_cpu_init();
  std::vector<std::string> sets;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  if (avx512 && cpu_has_amx_int8() && request_amx_tiles()) sets.emplace_back("amx");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (vnni) sets.emplace_back("avx512_vnni");
  // Permutations of bytes, double shifts, dot products of bytes: Ice Lake, Zen 4 and later.
  if (vnni && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2"))
    sets.emplace_back("avx512_vbmi");
  if (avx512) sets.emplace_back("avx512");
  if (__builtin_cpu_supports("avx2") && cpu_has_avx_vnni()) sets.emplace_back("avx_vnni");
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.emplace_back("avx2");
  sets.emplace_back("generic");
  return sets;
}

}  // namespace

std::vector<std::string> cpu_instruction_sets() {
  static const std::vector<std::string> sets = detect();
  return sets;
}

}  // namespace ryle
