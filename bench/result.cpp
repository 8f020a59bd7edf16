// SPDX-License-Identifier: BSD-3-Clause
#include <nlohmann/json.hpp>

#include "bench/bench.hpp"

namespace ryle::bench {

std::string to_json(const Result& r) {
  nlohmann::ordered_json sizes;
  for (const auto& [name, value] : r.sizes) {
    if (value == static_cast<double>(static_cast<std::int64_t>(value))) {
      sizes[name] = static_cast<std::int64_t>(value);
    } else {
      sizes[name] = value;
    }
  }
  return nlohmann::ordered_json{{"engine", r.engine},
                                {"implementation", r.implementation},
                                {"device", r.device},
                                {"case", sizes},
                                {"median_s", r.median_s},
                                {"min_s", r.min_s},
                                {"useful_ops", r.useful_ops},
                                {"bytes", r.bytes},
                                {"rate", r.rate},
                                {"rate_unit", r.rate_unit},
                                {"roofline_fraction", r.roofline_fraction},
                                {"roofline", r.roofline},
                                {"verified", r.verified}}
      .dump();
}

}  // namespace ryle::bench
