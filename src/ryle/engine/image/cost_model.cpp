// SPDX-License-Identifier: BSD-3-Clause
// Rates of machines, used until `ryle bench image --calibrate` has measured the one at hand.
#include "ryle/engine/image/cost_model.hpp"

#include "ryle/device/queue.hpp"
#include "ryle/engine/image/cpu/cost.hpp"

namespace ryle::image {

CostModel default_cost_model(BackEnd back_end) {
  CostModel m;
  m.back_end = back_end;
  if (back_end == BackEnd::cuda) {
    // One H200. X-engine and its output: measured; the imagers: fitted to the rows of
    // bench/results/h200, which they meet within 15 % (256 antennas, 128 x 128 pixels, 30 to 84
    // MHz).
    m.machine = "NVIDIA H200 (measured)";
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
    m.efield_fft_ops = 17.9e12;
    m.efield_grid_ops = 0.50 * 59.3e12;
    m.efield_half_ops = 450e12;
    m.vis_grid_ops = 42e12;
    m.vis_dft_ops = 385e12;
    m.efield_dft_ops = 325e12;
    m.overhead_s = 1.9e-6;
    return m;
  }
  // Two cores with AVX-512 and AMX, measured by `ryle bench image --calibrate` on an idle server.
  m.machine = "two x86-64 cores (measured on a Xeon of 2023)";
  m.correlate_ops = 3360e9;
  for (const auto& [inputs, share] :
       {std::array<double, 2>{32, 0.22}, {64, 0.37}, {128, 0.55}, {256, 0.82}, {512, 1}}) {
    m.correlate_shares.push_back({inputs, share});
  }
  m.correlate_output_bytes = 7.5e9;
  m.efield_fft_ops = 117e9;
  m.efield_grid_ops = 104e9;
  m.efield_half_ops = 0;  // no half precision there
  m.vis_grid_ops = 89e9;
  m.vis_dft_ops = 423e9;
  m.efield_dft_ops = 331e9;
  m.overhead_s = 0;
  m.vis_pixel_s = 2.7e-9;
  m.vis_place_s = 30e-9;
  m.efield_pixel_s = 13e-9;
  m.phasor_s = 0.53e-9;
  m.setup_pair_s = 0.21e-6;
  m.setup_pixel_s = 13e-9;
  return m;
}

namespace {

// What default_cost_model(cpu) was measured with.
constexpr double kQuickOps = 155e9;
constexpr double kWorkers = 2;

// Shares of an X-engine with AMX that the instruction sets reach (bench/results, 256 inputs).
double correlator_share() {
  for (const auto& set : cpu_instruction_sets()) {
    if (set == "amx") return 1;
    if (set == "avx512_vnni") return 0.75;
    if (set == "avx_vnni") return 0.4;
    if (set == "avx2") return 0.2;
  }
  return 0.02;
}

}  // namespace

CostModel default_cost_model(BackEnd back_end, int n_workers) {
  CostModel m = default_cost_model(back_end);
  if (back_end != BackEnd::cpu) return m;
  const double workers = n_workers / kWorkers;
  const double speed = workers * detail::cpu_quick_ops() / kQuickOps;
  m.machine = "this machine (from a quick measurement)";
  m.measured_at = {detail::cpu_quick_ops(), 0};
  m.correlate_ops *= workers * correlator_share();
  m.correlate_output_bytes *= workers;
  for (double CostModel::*rate :
       {&CostModel::efield_fft_ops, &CostModel::efield_grid_ops, &CostModel::vis_grid_ops,
        &CostModel::vis_dft_ops, &CostModel::efield_dft_ops}) {
    m.*rate *= speed;
  }
  for (double CostModel::*cost :
       {&CostModel::vis_pixel_s, &CostModel::efield_pixel_s, &CostModel::phasor_s,
        &CostModel::vis_place_s, &CostModel::setup_pair_s, &CostModel::setup_pixel_s}) {
    m.*cost /= speed;
  }
  return m;
}

namespace {

/// How much of a cost waits for the memory: gridding follows both probes, and the sums that a
/// correlator writes the memory alone (bench/results/xeon-server/README.md).
struct Scaled {
  double CostModel::*value;
  bool is_rate;
  double memory_share;
};
constexpr Scaled kScaled[] = {
    {&CostModel::correlate_output_bytes, true, 1},
    {&CostModel::efield_fft_ops, true, 0},
    {&CostModel::efield_grid_ops, true, 0},
    {&CostModel::efield_half_ops, true, 0},
    {&CostModel::vis_grid_ops, true, 0.5},
    {&CostModel::vis_dft_ops, true, 0},
    {&CostModel::efield_dft_ops, true, 0},
    {&CostModel::overhead_s, false, 0},
    {&CostModel::vis_pixel_s, false, 0.5},
    {&CostModel::efield_pixel_s, false, 0},
    {&CostModel::phasor_s, false, 0},
    {&CostModel::vis_place_s, false, 0.5},
    {&CostModel::setup_pair_s, false, 0.5},
    {&CostModel::setup_pixel_s, false, 0},
};

bool both_known(double then, double now) { return then > 0 && now > 0; }

double slowdown(double then, double now) { return both_known(then, now) ? then / now : 1; }

}  // namespace

CostModel at_core_speed(const CostModel& model, const CoreSpeed& speed) {
  CostModel m = model;
  const double sums = slowdown(model.measured_at.ops, speed.ops);
  const double memory = slowdown(model.measured_at.bytes_per_s, speed.bytes_per_s);
  m.correlate_ops /= both_known(model.measured_at.product_ops, speed.product_ops)
                         ? model.measured_at.product_ops / speed.product_ops
                         : sums;
  for (const auto& [value, is_rate, share] : kScaled) {
    const double longer = (1 - share) * sums + share * memory;
    m.*value *= is_rate ? 1 / longer : longer;
  }
  m.measured_at = speed;
  return m;
}

}  // namespace ryle::image
