// SPDX-License-Identifier: BSD-3-Clause
// Rates of machines, used until `ryle bench image --calibrate` has measured the one at hand.
#include "ryle/engine/image/cost_model.hpp"

namespace ryle::image {

CostModel default_cost_model(BackEnd back_end) {
  CostModel m;
  m.back_end = back_end;
  if (back_end == BackEnd::cuda) {
    // One H200 (image.md 6): fp32 59.3 Tflop/s, 45 % of it in transforms, 50 % elsewhere. X-engine,
    // its output and the fp16 matrix products are measured, the rest is assumed.
    m.machine = "NVIDIA H200 (design)";
    m.correlate_ops = 1111e12;
    // Larger matrices fill the tensor cores better.
    for (const auto& [inputs, rate] : {std::array<double, 2>{64, 400},
                                       {128, 740},
                                       {256, 919},
                                       {512, 1111},
                                       {1024, 1211},
                                       {2048, 1257}}) {
      m.correlate_shares.push_back({inputs, rate / 1111});
    }
    m.correlate_output_bytes = 2.06e12;
    m.efield_fft_ops = 0.45 * 59.3e12;
    m.efield_grid_ops = 0.50 * 59.3e12;
    m.efield_half_ops = 450e12;
    m.vis_grid_ops = 59.3e12;
    m.vis_dft_ops = 550e12;
    m.efield_dft_ops = 550e12;
    m.overhead_s = 0;
    return m;
  }
  // Two cores with AVX-512: the X-engine is measured, the rest assumed. No half precision there.
  m.machine = "two x86-64 cores (design)";
  m.correlate_ops = 600e9;
  m.correlate_output_bytes = 10e9;
  m.efield_fft_ops = 20e9;
  m.efield_grid_ops = 20e9;
  m.efield_half_ops = 0;
  m.vis_grid_ops = 60e9;
  m.vis_dft_ops = 100e9;
  m.efield_dft_ops = 100e9;
  m.overhead_s = 20e-6;
  return m;
}

}  // namespace ryle::image
