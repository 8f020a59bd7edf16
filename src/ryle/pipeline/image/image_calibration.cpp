// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/pipeline/image/image_calibration.hpp"

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ryle/core/error.hpp"
#include "ryle/device/queue.hpp"
#include "ryle/io/base/publish.hpp"

namespace ryle::pipeline {
namespace {

struct Rate {
  const char* name;
  double image::CostModel::*value;
  bool may_be_zero;
  bool may_be_absent = false;  ///< in a file that is older than the rate
};
constexpr Rate kRates[] = {
    {"correlate_ops", &image::CostModel::correlate_ops, false},
    {"correlate_output_bytes", &image::CostModel::correlate_output_bytes, false},
    {"efield_fft_ops", &image::CostModel::efield_fft_ops, false},
    {"efield_grid_ops", &image::CostModel::efield_grid_ops, false},
    {"efield_half_ops", &image::CostModel::efield_half_ops, true},
    {"vis_grid_ops", &image::CostModel::vis_grid_ops, false},
    {"vis_dft_ops", &image::CostModel::vis_dft_ops, true},
    {"efield_dft_ops", &image::CostModel::efield_dft_ops, true},
    {"overhead_s", &image::CostModel::overhead_s, true},
    {"vis_pixel_s", &image::CostModel::vis_pixel_s, true},
    {"efield_pixel_s", &image::CostModel::efield_pixel_s, true},
    {"phasor_s", &image::CostModel::phasor_s, true},
    {"vis_place_s", &image::CostModel::vis_place_s, true, true},
    {"setup_pair_s", &image::CostModel::setup_pair_s, true},
    {"setup_pixel_s", &image::CostModel::setup_pixel_s, true},
};

// The speed of the cores that the rates were measured at, per second; absent in older files.
struct Speed {
  const char* name;
  double image::CoreSpeed::*value;
};
constexpr Speed kSpeeds[] = {{"core_ops", &image::CoreSpeed::ops},
                             {"core_bytes_per_s", &image::CoreSpeed::bytes_per_s},
                             {"core_product_ops", &image::CoreSpeed::product_ops}};

std::string slug(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

// False when they are missing or damaged; an empty list is good.
bool read_shares(const nlohmann::json& json, image::CostModel& model) {
  const auto list = json.find("correlate_shares");
  if (list == json.end() || !list->is_array()) return false;
  for (const auto& pair : *list) {
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_number() || !pair[1].is_number()) {
      return false;
    }
    const std::array<double, 2> share{pair[0].get<double>(), pair[1].get<double>()};
    const double minimum = model.correlate_shares.empty() ? 0 : model.correlate_shares.back()[0];
    if (!(share[0] > minimum && share[1] > 0 && std::isfinite(share[0] * share[1]))) return false;
    model.correlate_shares.push_back(share);
  }
  return true;
}

}  // namespace

std::string image_machine(BackEnd back_end, int n_workers) {
  const auto devices = list_devices();
  const bool cuda = back_end == BackEnd::cuda && devices.size() > 1;
  std::string model = cuda ? devices[1].description : devices[0].description;
  model = model.substr(0, model.find(','));
  return slug(cuda ? model : model + " " + std::to_string(n_workers) + " workers");
}

std::string image_calibration_file(const std::string& machine) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  std::string folder;
  if (cache != nullptr && *cache != '\0') {
    folder = cache;
  } else if (home != nullptr && *home != '\0') {
    folder = std::string(home) + "/.cache";
  } else {
    return "";
  }
  return folder + "/ryle/image-" + machine + ".json";
}

std::string to_json(const image::CostModel& model) {
  nlohmann::ordered_json json{{"back_end", model.back_end == BackEnd::cpu ? "cpu" : "cuda"},
                              {"machine", model.machine}};
  for (const auto& rate : kRates) json[rate.name] = model.*rate.value;
  for (const auto& speed : kSpeeds) json[speed.name] = model.measured_at.*speed.value;
  json["correlate_shares"] = model.correlate_shares;
  return json.dump(2);
}

image::CostModel cost_model_from_json(const std::string& text, const std::string& file) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto fail = [&](const std::string& what) -> FormatError {
    return FormatError("image calibration " + file + ": " + what +
                       "; delete the file and run `ryle bench image --calibrate`");
  };
  if (!json.is_object()) throw fail("it is not a JSON object");
  image::CostModel model;
  const auto text_of = [&](const char* key) -> std::string {
    const auto found = json.find(key);
    return found != json.end() && found->is_string() ? found->get<std::string>() : "";
  };
  const std::string back_end = text_of("back_end");
  if (back_end != "cpu" && back_end != "cuda") throw fail("back_end must be cpu or cuda");
  model.back_end = back_end == "cpu" ? BackEnd::cpu : BackEnd::cuda;
  model.machine = text_of("machine");
  for (const auto& rate : kRates) {
    const auto found = json.find(rate.name);
    if (found == json.end() && rate.may_be_absent) continue;
    if (found == json.end() || !found->is_number())
      throw fail(std::string(rate.name) + " is missing");
    const double value = found->get<double>();
    if (!std::isfinite(value) || value < 0 || (value == 0 && !rate.may_be_zero)) {
      throw fail(std::string(rate.name) + " is " + std::to_string(value) + ", not a rate");
    }
    model.*rate.value = value;
  }
  for (const auto& speed : kSpeeds) {
    const auto found = json.find(speed.name);
    if (found == json.end()) continue;
    const double value = found->is_number() ? found->get<double>() : -1;
    if (!std::isfinite(value) || value < 0) throw fail(std::string(speed.name) + " is no speed");
    model.measured_at.*speed.value = value;
  }
  if (!read_shares(json, model)) {
    throw fail("correlate_shares must be pairs [inputs, share > 0], inputs increasing");
  }
  return model;
}

void save_image_calibration(const image::CostModel& model, const std::string& file) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
  if (error) throw IoError::from_errno("create the folder of", file, error.value(), true);
  publish_bytes(file, to_json(model) + '\n', true);
}

std::optional<image::CostModel> load_image_calibration(const std::string& file) {
  std::ifstream in(file);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return cost_model_from_json(text.str(), file);
}

image::CostModel image_cost_model(BackEnd back_end, int n_workers) {
  const std::string file = image_calibration_file(image_machine(back_end, n_workers));
  if (!file.empty()) {
    if (const auto model = load_image_calibration(file)) return *model;
  }
  return image::default_cost_model(back_end, n_workers);
}

}  // namespace ryle::pipeline
