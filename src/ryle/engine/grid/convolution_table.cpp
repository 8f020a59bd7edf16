// SPDX-License-Identifier: BSD-3-Clause
// Convolution functions as rows of a text file.
#include <cmath>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "ryle/core/angle.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"
#include "ryle/engine/grid/convolution.hpp"

namespace ryle::grid {
namespace {

std::optional<double> plain_number(const std::string& word) {
  double x = 0;
  return parse_finite(word, x) ? std::optional(x) : std::nullopt;
}

class TableReader {
 public:
  explicit TableReader(const std::string& path) : path_(path) {}

  Convolution read() {
    std::istringstream file(read_text_file(path_));
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) take(words_of(line), number);
    if (f_.table_theta_rad.size() < 2) fail("has fewer than two rows", 0);
    f_.function = Function::table;
    f_.table_name = path_;
    f_.support_rad = f_.table_theta_rad.back();
    const double first = f_.table_value.front();
    for (double& k : f_.table_value) k /= first;
    return std::move(f_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, int line) const {
    throw ConfigError("table of a convolution function " + path_ +
                      (line > 0 ? ", line " + std::to_string(line) : "") + ": " + what +
                      "; rows are an angle in arcmin, or with a unit, and K, from angle 0 on");
  }
  static std::vector<std::string> words_of(std::string line) {
    line.resize(std::min(line.find('#'), line.size()));
    for (char& c : line)
      if (c == ',' || c == ';' || c == '\t' || c == '\r') c = ' ';
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
  }
  // "theta_arcsec K": what follows the last underscore, or stands in brackets.
  bool names_the_unit(const std::vector<std::string>& words) {
    if (plain_number(words[0]) || parse_angle_rad(words[0])) return false;
    std::string unit = words[0].substr(words[0].find_last_of("_[(") + 1);
    unit.resize(std::min(unit.find_first_of("])"), unit.size()));
    if (unit != words[0] && !parse_angle_rad("1" + unit)) return false;
    if (unit != words[0]) unit_ = unit;
    return true;
  }
  void take(std::vector<std::string> words, int line) {
    if (words.empty()) return;
    const bool first = f_.table_theta_rad.empty() && !header_;
    if (first && words.size() >= 2 && names_the_unit(words)) {
      header_ = true;
      return;
    }
    if (words.size() == 3) {  // the unit has a column of its own
      words[0] += words[1];
      words.erase(words.begin() + 1);
    }
    if (words.size() != 2) fail("not an angle and K", line);
    const auto angle_rad = parse_angle_rad(plain_number(words[0]) ? words[0] + unit_ : words[0]);
    const auto k = plain_number(words[1]);
    if (!angle_rad || !k) fail("\"" + words[angle_rad ? 1 : 0] + "\" is not understood", line);
    auto& theta = f_.table_theta_rad;
    if (theta.empty() ? *angle_rad != 0 || !(*k > 0) : !(*angle_rad > theta.back()))
      fail(theta.empty() ? "the first row is angle 0 and a K above 0" : "angles must ascend", line);
    theta.push_back(*angle_rad);
    f_.table_value.push_back(*k);
  }

  std::string path_, unit_ = "arcmin";
  bool header_ = false;
  Convolution f_;
};

}  // namespace

Convolution read_convolution_table(const std::string& path) { return TableReader(path).read(); }

}  // namespace ryle::grid
