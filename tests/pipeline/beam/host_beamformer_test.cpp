// SPDX-License-Identifier: BSD-3-Clause
// A beamformer behind copies gives what it gives without them, into any strides. On a GPU the same
// copies are asynchronous: tests/cuda_chain.
#include "ryle/pipeline/beam/host_beamformer.hpp"

#include <gtest/gtest.h>

#include "tests/pipeline/beam/two_gulps.hpp"

namespace ryle::pipeline {
namespace {

using beamform::OutputFormat;
using beamform::OutputKind;
using test::form_beams;
using test::small_beams;

TEST(HostBeamformer, GivesWhatItsEngineGives) {
  const std::pair<OutputKind, OutputFormat> cases[] = {{OutputKind::power, OutputFormat::f32},
                                                       {OutputKind::power, OutputFormat::u8},
                                                       {OutputKind::stokes_iquv, OutputFormat::f32},
                                                       {OutputKind::voltage, OutputFormat::ci8},
                                                       {OutputKind::voltage, OutputFormat::cf32}};
  for (const auto& [kind, format] : cases) {
    Queue queue = Queue::cpu(1);
    const auto config = small_beams(kind, format);
    const auto engine = beamform::make_beamformer(queue, config);
    HostBeamformer behind_copies(Queue::cpu(1), config);
    EXPECT_EQ(behind_copies.implementation(), engine->implementation());
    EXPECT_TRUE(form_beams(behind_copies, queue) == form_beams(*engine, queue))
        << static_cast<int>(kind) << " " << static_cast<int>(format);
  }
}

}  // namespace
}  // namespace ryle::pipeline
