// SPDX-License-Identifier: BSD-3-Clause
// The GPU benchmarks alone, for machines that have a GPU but not the libraries of the whole program
// (scripts/gpu_check.sh). bench_cuda [correlate | channelize | image | beamform | search]
// [--path NAME] [--quick] [--tune]: one JSON object a line, the fields of `ryle bench --json`;
// --path: of the imager's, that alone; of the beamformer's cases, those of ANTENNASxBEAMS.
#include <cstring>
#include <exception>
#include <iostream>

#include "bench/bench_cuda.hpp"

int main(int argc, char** argv) {
  ryle::bench::Options options;
  bool correlate = true;
  bool channelize = true;
  bool image = true;
  bool beamform = true;
  bool search = true;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--quick") == 0) options.quick = true;
    if (std::strcmp(argv[k], "--path") == 0 && k + 1 < argc) options.path = argv[++k];
    if (std::strcmp(argv[k], "--tune") == 0) options.calibrate = true;
    if (std::strcmp(argv[k], "correlate") == 0) channelize = image = beamform = search = false;
    if (std::strcmp(argv[k], "channelize") == 0) correlate = image = beamform = search = false;
    if (std::strcmp(argv[k], "image") == 0) correlate = channelize = beamform = search = false;
    if (std::strcmp(argv[k], "beamform") == 0) correlate = channelize = image = search = false;
    if (std::strcmp(argv[k], "search") == 0) correlate = channelize = image = beamform = false;
  }
  bool all_verified = true;
  const auto emit = [&](const ryle::bench::Result& r) {
    std::cout << ryle::bench::to_json(r) << std::endl;
    all_verified = all_verified && r.verified;
  };
  try {
    if (correlate) ryle::bench::bench_correlate_cuda(options, emit);
    if (channelize) ryle::bench::bench_channelize_cuda(options, emit);
    if (image) ryle::bench::bench_image_cuda(options, emit);
    if (beamform) ryle::bench::bench_beamform_cuda(options, emit);
    if (search) ryle::bench::bench_search_cuda(options, emit);
  } catch (const std::exception& error) {
    std::cerr << "ryle_bench_cuda: " << error.what() << '\n';
    return 1;
  }
  return all_verified ? 0 : 1;
}
