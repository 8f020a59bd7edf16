// SPDX-License-Identifier: BSD-3-Clause
// The importers' kernels thread by thread on the host: the bytes of the CPU importer for every
// layout, format and way of reading, with and without holes.
#include "tests/support/simt/cuda_names.hpp"
// The kernels follow the words of CUDA they are written in.
#include "ryle/engine/correlate/cuda/import.cuh"
#include "tests/engine/correlate/voltage_sources.hpp"

namespace ryle::correlate::detail {
namespace {

using test::Voltages;

ImportArguments arguments_of(const void* source, const VoltageLayout& from, const Voltages& to,
                             const std::vector<std::uint64_t>& planes) {
  const std::int64_t words = (to.n_spectra + 63) / 64;
  const auto columns = static_cast<int>(to.view.n_channels * to.view.n_inputs);
  return {static_cast<const std::byte*>(source),
          from.channel_stride_bytes,
          from.input_stride_bytes,
          from.spectrum_stride_bytes,
          from.heap_stride_bytes,
          static_cast<int>(from.spectra_per_heap == 0 ? kNoHeaps : from.spectra_per_heap),
          to.view.data,
          to.view.channel_stride_bytes,
          to.view.block_stride_bytes,
          to.view.input_stride_bytes,
          planes.empty() ? nullptr : planes.data(),
          words,
          to.view.n_inputs * words,
          static_cast<int>(to.n_spectra),
          static_cast<int>(to.view.n_inputs),
          columns,
          (columns + kImportColumns - 1) / kImportColumns};
}

struct Imported {
  std::vector<ImportRead> reads;  // in the order of the sources
  int wrong = 0;
};

/// Every layout in memory that ends with its last byte.
Imported import_all(SampleFormat from, SampleFormat to, std::int64_t c, std::int64_t t,
                    std::int64_t p, bool holes, std::uint64_t seed) {
  Imported all;
  for (const test::VoltageSource& s : test::voltage_sources(from, c, t, p)) {
    const auto source = test::source_bytes(s, c, t, p);
    const Buffer<std::uint8_t> aligned(s.bytes);
    std::memcpy(aligned.data(), source.data(), source.size());
    const auto planes = holes ? test::planes_with_holes(c, t, p) : std::vector<std::uint64_t>{};
    const Voltages want = test::imported(from, to, c, t, p, planes);
    const Voltages got(to, c, t, p, true);
    std::memset(got.memory.data(), 0xCD, static_cast<std::size_t>(got.memory.bytes()));
    const ImportArguments a = arguments_of(aligned.data(), s.layout, got, planes);
    const auto sample = static_cast<int>(voltage_bytes(from));
    all.reads.push_back(import_read(a, sample));
    const ImportKernel kernel = import_kernel(sample, from != to, all.reads.back());
    simt::launch({{static_cast<unsigned>(a.n_tiles * got.view.n_blocks)}, {kImportThreads}}, seed,
                 [&] { kernel(a); });
    const bool equal = std::memcmp(got.memory.data(), want.memory.data(),
                                   static_cast<std::size_t>(want.memory.bytes())) == 0;
    EXPECT_TRUE(equal) << s.name << " " << ryle::name(from) << " to " << ryle::name(to)
                       << " C=" << c << " T=" << t << " N=" << p << " holes " << holes;
    all.wrong += equal ? 0 : 1;
  }
  return all;
}

constexpr SampleFormat kSources[] = {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16,
                                     SampleFormat::cf32};

TEST(ImportKernel, GivesTheBlocksOfEveryLayout) {
  std::uint64_t seed = 0;
  for (const SampleFormat format : kSources) {
    // Nothing whole; whole pieces within an input's channel; whole pieces over channels only.
    for (const auto& [c, t, p] :
         {std::array<std::int64_t, 3>{3, 65, 7}, {2, 130, 32}, {16, 48, 1}}) {
      import_all(format, format, c, t, p, seed % 2 == 1, seed);
      ++seed;
    }
    import_all(format, SampleFormat::cf32, 2, 35, 16, true, seed++);
  }
}

// Each way of reading was met: pieces of 16 bytes where all is whole, samples where it is not.
TEST(ImportKernel, ReadsPiecesWhereTheyAreWhole) {
  using enum ImportRead;
  const auto ci8 = SampleFormat::ci8;
  const std::vector<ImportRead> wide{columns_16, spectra_16, spectra, spectra, spectra_16, spectra};
  EXPECT_EQ(import_all(ci8, ci8, 2, 64, 16, false, 1).reads, wide);
  const std::vector<ImportRead> narrow(6, spectra);
  auto odd = import_all(ci8, ci8, 3, 65, 7, true, 2).reads;
  EXPECT_EQ(odd[0], columns);
  odd[0] = spectra;
  odd[4] = spectra;  // heaps of 16 spectra are whole whatever the inputs
  EXPECT_EQ(odd, narrow);
}

}  // namespace
}  // namespace ryle::correlate::detail
