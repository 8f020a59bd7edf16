// SPDX-License-Identifier: BSD-3-Clause
// The GPU benchmarks alone, for machines that have a GPU but not the libraries of the whole program
// (scripts/gpu_check.sh). bench_cuda [correlate | channelize | image | beamform | grid | search |
// levels] [--path NAME] [--quick] [--tune]: one JSON object a line, the fields of `ryle bench
// --json`;
// --path: of the imager's, that alone; of the beamformer's cases, those of ANTENNASxBEAMS; of the
// correlator's, those with this in "IMPLEMENTATION N"; of the search, the tree of this name alone.
#include <cstring>
#include <exception>
#include <iostream>
#include <string>

#include "bench/bench_cuda.hpp"

int main(int argc, char** argv) {
  using namespace ryle::bench;
  constexpr struct {
    const char* name;
    void (*run)(const Options&, const Emit&);
  } kEngines[] = {{"correlate", bench_correlate_cuda}, {"channelize", bench_channelize_cuda},
                  {"image", bench_image_cuda},         {"beamform", bench_beamform_cuda},
                  {"grid", bench_grid_cuda},           {"search", bench_search_cuda},
                  {"levels", bench_levels_cuda}};
  Options options;
  std::string only;  // the engine named last
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--quick") == 0) options.quick = true;
    if (std::strcmp(argv[k], "--tune") == 0) options.calibrate = true;
    if (std::strcmp(argv[k], "--path") == 0 && k + 1 < argc) {
      options.path = argv[++k];
      continue;
    }
    for (const auto& engine : kEngines) {
      if (std::strcmp(argv[k], engine.name) == 0) only = engine.name;
    }
  }
  bool all_verified = true;
  const auto emit = [&](const Result& r) {
    std::cout << to_json(r) << std::endl;
    all_verified = all_verified && r.verified;
  };
  try {
    for (const auto& engine : kEngines) {
      if (only.empty() || only == engine.name) engine.run(options, emit);
    }
  } catch (const std::exception& error) {
    std::cerr << "ryle_bench_cuda: " << error.what() << '\n';
    return 1;
  }
  return all_verified ? 0 : 1;
}
