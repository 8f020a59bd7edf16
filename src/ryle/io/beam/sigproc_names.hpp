// SPDX-License-Identifier: BSD-3-Clause
// Numbers of telescopes in SIGPROC headers (the ones PRESTO, dspsr and sigpyproc share). Private to
// io/.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace ryle::io {

inline constexpr std::array<std::pair<int, std::string_view>, 17> kSigprocTelescopes{{
    {0, ""},
    {1, "Arecibo"},
    {2, "Ooty"},
    {3, "Nancay"},
    {4, "Parkes"},
    {5, "Jodrell"},
    {6, "GBT"},
    {7, "GMRT"},
    {8, "Effelsberg"},
    {9, "ATA"},
    {10, "SRT"},
    {11, "LOFAR"},
    {12, "VLA"},
    {20, "CHIME"},
    {21, "FAST"},
    {40, "Northern Cross"},
    {64, "MeerKAT"},
}};

inline std::string sigproc_telescope(int id) {
  for (const auto& [number, name] : kSigprocTelescopes) {
    if (number == id) return std::string(name);
  }
  return "SIGPROC telescope " + std::to_string(id);
}

inline int sigproc_telescope_id(std::string_view name) {
  for (const auto& [number, known] : kSigprocTelescopes) {
    if (number != 0 && known == name) return number;
  }
  return 0;
}

}  // namespace ryle::io
