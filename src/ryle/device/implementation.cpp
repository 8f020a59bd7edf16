// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/implementation.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"

namespace ryle {

std::string choose_implementation(BackEnd back_end, const ImplementationQuery& query) {
  const auto reject = [&](const std::string& why) {
    throw UnsupportedError(query.engine + " implementation \"" + query.wanted + "\"" + query.of +
                           ": " + why + "; these work here: auto, cpu, " +
                           comma_separated(query.here));
  };
  const bool on_cuda = back_end == BackEnd::cuda;
  const std::string wanted = query.wanted != "auto" ? query.wanted : on_cuda ? "cuda" : "cpu";
  const bool wants_cuda = wanted.starts_with("cuda");
  if (wants_cuda) {
    const std::string reason = cuda_unavailable_reason();
    if (!reason.empty()) reject(reason);
    if (!on_cuda) reject("it needs a CUDA queue");
  } else if (on_cuda) {
    reject("the queue is a CUDA queue and needs a cuda implementation");
  }
  const bool any = wanted == "cpu" || wanted == "cuda";
  if (wanted == "cpu" && !query.cpu.empty()) return query.cpu;
  const auto found = std::find_if(
      query.here.begin(), query.here.end(),
      [&](const std::string& name) { return any ? name.starts_with(wanted) : name == wanted; });
  if (found != query.here.end()) return wants_cuda ? wanted : *found;
  if (any && query.wanted == "auto" && !on_cuda) return "reference";
  reject(any ? "there is no fast code for it"
             : "unknown, or not for this machine, build or data (did you mean \"" +
                   nearest_word(wanted, query.here) + "\"?)");
  return {};
}

bool has_instruction_set(std::string_view name) {
  const auto sets = cpu_instruction_sets();
  return std::find(sets.begin(), sets.end(), name) != sets.end();
}

}  // namespace ryle
