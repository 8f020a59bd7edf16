// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <optional>
#include <string>

#include "ryle/engine/image/cost_model.hpp"

/// Rates of this machine that `ryle bench image --calibrate` measured, kept from one run to the
/// next.
namespace ryle::pipeline {

/// Name of the machine for files and reports: "intel-r-xeon-r-processor-2-workers".
std::string image_machine(BackEnd back_end, int n_workers);
/// $XDG_CACHE_HOME/ryle/image-MACHINE.json, or the same under $HOME/.cache; "" when neither is set.
std::string image_calibration_file(const std::string& machine);

std::string to_json(const image::CostModel& model);
/// Throws FormatError when a rate is missing, not a number or not positive (half precision may be
/// 0).
image::CostModel cost_model_from_json(const std::string& text, const std::string& file);

/// Writes the file (and its folder), whole under its name at once: who reads meanwhile reads the
/// old one. Throws IoError.
void save_image_calibration(const image::CostModel& model, const std::string& file);
/// nullopt when there is no file; throws FormatError when it is damaged.
std::optional<image::CostModel> load_image_calibration(const std::string& file);
/// The rates measured on this machine, else the defaults.
image::CostModel image_cost_model(BackEnd back_end, int n_workers);

}  // namespace ryle::pipeline
