// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ryle/device/queue.hpp"

/// How every engine finds the implementation that its configuration names.
namespace ryle {

struct ImplementationQuery {
  std::string engine = {};  ///< begins messages: "correlator"
  std::string wanted = {};  ///< "auto", "cpu", "cuda", "reference", "cpu:avx2", "cuda:simt", ...
  std::string of = {};      ///< what it is for, in messages: " for ci8"
  /// Names that work here for these data, of each back-end the fastest first.
  std::vector<std::string> here = {};
  std::string cpu = {};  ///< what "cpu" means; "" = the first of `here` that begins so
};

/// The name to run: "reference", "cpu:..." or "cuda..." (as it was asked for). "auto" is "cuda" on
/// a CUDA queue, else "cpu", and the reference where a CPU has nothing else. Throws
/// UnsupportedError, which says why and names what works.
std::string choose_implementation(BackEnd back_end, const ImplementationQuery& query);

/// One of cpu_instruction_sets().
bool has_instruction_set(std::string_view name);

}  // namespace ryle
