// SPDX-License-Identifier: BSD-3-Clause
// The importers on the device: the bytes of the CPU importer, for every layout and format, with and
// without holes in the planes of valid samples.
#include "ryle/engine/correlate/import.hpp"

#include "tests/cuda/cuda_test.hpp"
#include "tests/engine/correlate/voltage_sources.hpp"

namespace ryle::correlate {
namespace {

using test::Voltages;

class CudaImport : public ryle::test::CudaTest {
 protected:
  template <class T>
  Buffer<std::byte> upload_all(const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return upload(bytes);
  }

  void check(SampleFormat from, SampleFormat to, std::int64_t c, std::int64_t t, std::int64_t p) {
    for (const test::VoltageSource& s : test::voltage_sources(from, c, t, p)) {
      const Buffer<std::byte> source = upload_all(test::source_bytes(s, c, t, p));
      for (const bool holes : {false, true}) {
        const auto planes = holes ? test::planes_with_holes(c, t, p) : std::vector<std::uint64_t>{};
        const Buffer<std::byte> on_device = upload_all(planes);
        const Voltages want = test::imported(from, to, c, t, p, planes);
        const Buffer<std::byte> found = upload(ryle::test::garbage(want.memory.bytes()));
        BlockView view = want.view;
        view.data = found.data();
        const std::int64_t words = (t + 63) / 64;
        import_voltages(queue(), source.data(), s.layout, t, view,
                        {holes ? reinterpret_cast<const std::uint64_t*>(on_device.data()) : nullptr,
                         words, p * words});
        const auto bytes = download(found);
        EXPECT_EQ(std::memcmp(bytes.data(), want.memory.data(), bytes.size()), 0)
            << s.name << " " << ryle::name(from) << " to " << ryle::name(to) << " C=" << c
            << " T=" << t << " N=" << p << " holes " << holes;
      }
    }
  }
};

TEST_F(CudaImport, GivesTheBytesOfTheCpu) {
  for (const auto format :
       {SampleFormat::ci4, SampleFormat::ci8, SampleFormat::ci16, SampleFormat::cf32}) {
    check(format, format, 3, 65, 7);     // nothing whole
    check(format, format, 5, 256, 96);   // pieces of 16 bytes, several blocks of columns
    check(format, format, 128, 144, 1);  // pieces over channels
    check(format, SampleFormat::cf32, 2, 35, 16);
  }
}

TEST_F(CudaImport, RefusesMemoryTheDeviceDoesNotReach) {
  const Buffer<std::byte> source(1024, MemorySpace::device);
  const Buffer<std::byte> blocks(1024, MemorySpace::device);
  const Buffer<std::byte> host(1024);
  const auto layout = spectrum_channel_input(SampleFormat::ci8, 1, 2);
  const auto view = [](const Buffer<std::byte>& b) {
    return dense_blocks(b.data(), SampleFormat::ci8, 1, 64, 2);
  };
  import_voltages(queue(), source.data(), layout, 64, view(blocks));
  EXPECT_THROW(import_voltages(queue(), host.data(), layout, 64, view(blocks)), ConfigError);
  EXPECT_THROW(import_voltages(queue(), source.data(), layout, 64, view(host)), ConfigError);
  queue().synchronize();
}

}  // namespace
}  // namespace ryle::correlate
