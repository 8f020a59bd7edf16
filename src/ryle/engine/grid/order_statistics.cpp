// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/engine/grid/order_statistics.hpp"

#include <numeric>

#include "ryle/core/error.hpp"
#include "ryle/device/implementation.hpp"
#include "ryle/engine/grid/order_gridders.hpp"
#include "ryle/engine/grid/tiles.hpp"

namespace ryle::grid {

Estimator parse_estimator(const std::string& text, double beam_fwhm_rad) {
  const auto colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (name == "median")
    return {Statistic::median,
            parse_convolution(rest.empty() ? "mean" : "mean:" + rest, beam_fwhm_rad)};
  if (name != "wmedian") return {Statistic::mean, parse_convolution(text, beam_fwhm_rad)};
  const Convolution f = parse_convolution(rest.empty() ? "gauss" : rest, beam_fwhm_rad);
  if (has_negative_lobes(f))
    throw ConfigError("convolution function \"" + text +
                      "\": a median has no weights below 0; end it before its negative lobe with "
                      "radius=, or take gauss");
  return {Statistic::weighted_median, f};
}

std::string to_string(const Estimator& estimator) {
  std::string function = to_string(estimator.convolution);
  switch (estimator.statistic) {
    case Statistic::mean:
      return function;
    case Statistic::median:
      return "median" + function.substr(function.rfind(":radius="));
    case Statistic::weighted_median:
      return "wmedian:" + function;
  }
  return "";
}

std::unique_ptr<OrderGridder> make_order_gridder(const OrderConfig& config, Cells cells) {
  const Convolution& f = config.estimator.convolution;
  check(f);
  detail::check_cells(cells);
  if (config.estimator.statistic == Statistic::mean)
    throw ConfigError("a mean is no order statistic; make_gridder() makes it");
  if (config.estimator.statistic == Statistic::weighted_median && has_negative_lobes(f))
    throw ConfigError("a weighted median has no weights below 0, and " + to_string(f) +
                      " has negative lobes");
  if (config.n_channels < 1)
    throw ConfigError("the gridder needs a channel or more, got " +
                      std::to_string(config.n_channels));
  const std::string chosen = choose_implementation(
      BackEnd::cpu, {"medians", config.implementation, "", available_order_implementations()});
  if (chosen == "reference") return detail::make_order_reference(config, std::move(cells));
  return detail::make_order_selection(config, std::move(cells));
}

std::vector<std::uint32_t> OrderGridder::near(Queue&, Positions samples) {
  std::vector<std::uint32_t> all(samples.size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

std::vector<std::string> available_order_implementations() {
  return {"reference", "cpu:selection"};
}

}  // namespace ryle::grid
