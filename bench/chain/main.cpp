// SPDX-License-Identifier: BSD-3-Clause
// bench_chain [--quick] [--devices 0,1] [--beams N] [--block N] [--streams N] [--trials N]: gate S4
// without the rest of `ryle`. bench_chain stream | devices | grid | live --observation FILE
// [--blocks N] | nodes --observation FILE: F and X of a stream, X on several devices, maps from
// files, the stages of a live run of beams, all nodes of a run on one stream. One JSON object a
// line.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "bench/chain/chain.hpp"
#include "bench/chain/devices.hpp"
#include "bench/chain/grid_files.hpp"
#include "bench/chain/live.hpp"
#include "bench/chain/nodes.hpp"
#include "bench/chain/stream.hpp"

int main(int argc, char** argv) {
  ryle::bench::Options options;
  options.implementation = "cuda";
  ryle::bench::ChainOptions chain;
  bool stream = false;
  bool devices = false;
  bool grid = false;
  bool live = false;
  bool nodes = false;
  ryle::bench::GridFilesOptions files;
  ryle::bench::LiveOptions living;
  ryle::bench::StreamOptions streaming;
  std::int64_t n_channels = 0;
  for (int k = 1; k < argc; ++k) {
    const char* value = k + 1 < argc ? argv[k + 1] : "";
    if (std::strcmp(argv[k], "--quick") == 0) options.quick = true;
    if (std::strcmp(argv[k], "stream") == 0) stream = true;
    if (std::strcmp(argv[k], "devices") == 0) devices = true;
    if (std::strcmp(argv[k], "grid") == 0) grid = true;
    if (std::strcmp(argv[k], "live") == 0) live = true;
    if (std::strcmp(argv[k], "nodes") == 0) nodes = true;
    if (std::strcmp(argv[k], "--observation") == 0) living.observation = value;
    if (std::strcmp(argv[k], "--blocks") == 0) living.n_blocks = std::atoi(value);
    if (std::strcmp(argv[k], "--folder") == 0) files.folder = value;
    if (std::strcmp(argv[k], "--channels") == 0) files.n_channels = std::atoll(value);
    if (std::strcmp(argv[k], "--chunk") == 0) streaming.chunk_mib = std::atoll(value);
    if (std::strcmp(argv[k], "--inputs") == 0) streaming.n_inputs = std::atoll(value);
    if (std::strcmp(argv[k], "--no-statistics") == 0) streaming.statistics = false;
    if (std::strcmp(argv[k], "--piece") == 0) streaming.piece_mib = std::atoll(value);
    if (std::strcmp(argv[k], "--only") == 0) streaming.only = value;
    if (std::strcmp(argv[k], "--channels") == 0) n_channels = std::atoll(value);
    if (std::strcmp(argv[k], "--path") == 0) options.implementation = value;
    if (std::strcmp(argv[k], "--beams") == 0) chain.n_beams = std::atoll(value);
    if (std::strcmp(argv[k], "--block") == 0) chain.block_samples = std::atoll(value);
    if (std::strcmp(argv[k], "--streams") == 0) chain.n_streams = std::atoi(value);
    if (std::strcmp(argv[k], "--trials") == 0) chain.n_trials = std::atoll(value);
    if (std::strcmp(argv[k], "--devices") == 0) {
      chain.devices.clear();
      for (const char* c = value; *c != 0; ++c)
        if (*c != ',') chain.devices.push_back(*c - '0');
    }
  }
  bool verified = true;
  try {
    const ryle::bench::Emit emit = [&](const ryle::bench::Result& r) {
      verified = verified && r.verified;
      std::printf("%s\n", ryle::bench::to_json(r).c_str());
      std::fflush(stdout);
    };
    if (stream) {
      ryle::bench::bench_stream(options, emit, streaming);
    } else if (grid) {
      ryle::bench::bench_grid_files(options, files, emit);
    } else if (nodes) {
      ryle::bench::bench_nodes(living.observation, options, emit);
    } else if (live) {
      ryle::bench::bench_live(living, emit);
    } else if (devices) {
      ryle::bench::bench_devices(options, emit, n_channels);
    } else {
      ryle::bench::bench_chain(options, chain, emit);
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_chain: %s\n", e.what());
    return 1;
  }
  return verified ? 0 : 2;
}
