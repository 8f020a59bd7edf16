// SPDX-License-Identifier: BSD-3-Clause
// A stroke font drawn for Ryle. Units: capitals are 14 high, small letters 10, descenders reach -4.
// Every glyph is a list of
//   l x y x y ...            straight lines
//   a cx cy rx ry from to    arc, degrees counter-clockwise from +x (to < from runs clockwise)
//   e cx cy rx ry            ellipse
#include <cmath>
#include <map>
#include <sstream>

#include "ryle/core/units.hpp"
#include "ryle/plot/canvas.hpp"

namespace ryle::plot {
namespace {

struct GlyphSource {
  const char* letter;  // UTF-8
  double width;
  const char* path;
};

constexpr GlyphSource kGlyphs[] = {
    {" ", 3, ""},
    {"A", 10, "l 0 0 5 14 10 0 l 1.7 4.8 8.3 4.8"},
    {"B", 9,
     "l 5 7.4 0 7.4 0 14 5 14 a 5 10.7 3.4 3.3 -90 90 l 0 7.4 0 0 5.2 0 a 5.2 3.7 3.8 3.7 -90 90"},
    {"C", 10, "a 5.6 7 5.6 7 48 312"},
    {"D", 10, "l 4 0 0 0 0 14 4 14 a 4 7 6 7 -90 90"},
    {"E", 8, "l 8 14 0 14 0 0 8 0 l 0 7.3 6.8 7.3"},
    {"F", 8, "l 8 14 0 14 0 0 l 0 7.3 6.8 7.3"},
    {"G", 10.5, "a 5.6 7 5.6 7 50 322 l 6.6 6.6 10.2 6.6 10.2 2.4"},
    {"H", 9.4, "l 0 0 0 14 l 9.4 0 9.4 14 l 0 7.3 9.4 7.3"},
    {"I", 1, "l 0.5 0 0.5 14"},
    {"J", 6, "l 6 14 6 3.8 a 3 3.8 3 3.8 185 360"},
    {"K", 9, "l 0 0 0 14 l 8.4 14 0 5 l 3.2 8.4 9 0"},
    {"L", 7.5, "l 0 14 0 0 7.5 0"},
    {"M", 11.4, "l 0 0 0 14 5.7 3.4 11.4 14 11.4 0"},
    {"N", 9.6, "l 0 0 0 14 9.6 0 9.6 14"},
    {"O", 11.2, "e 5.6 7 5.6 7"},
    {"P", 8.8, "l 0 0 0 14 5 14 a 5 10.2 3.8 3.8 -90 90 l 5 6.4 0 6.4"},
    {"Q", 11.2, "e 5.6 7 5.6 7 l 6.6 3.6 10.6 -1"},
    {"R", 9.2, "l 0 0 0 14 5 14 a 5 10.2 3.8 3.8 -90 90 l 5 6.4 0 6.4 l 4.6 6.4 9.2 0"},
    {"S", 9, "a 4.6 10.5 4 3.5 32 270 a 4.6 3.5 4.4 3.5 90 -148"},
    {"T", 9.4, "l 0 14 9.4 14 l 4.7 14 4.7 0"},
    {"U", 9.4, "l 0 14 0 4.7 a 4.7 4.7 4.7 4.7 180 360 l 9.4 4.7 9.4 14"},
    {"V", 10, "l 0 14 5 0 10 14"},
    {"W", 14, "l 0 14 3.6 0 7 12 10.4 0 14 14"},
    {"X", 9.2, "l 0 14 9.2 0 l 0 0 9.2 14"},
    {"Y", 9.4, "l 0 14 4.7 6.8 9.4 14 l 4.7 6.8 4.7 0"},
    {"Z", 9, "l 0.2 14 9 14 0 0 9 0"},
    {"0", 8.6, "e 4.3 7 4.3 7"},
    {"1", 8.6, "l 1.6 11 5 14 5 0"},
    {"2", 8.6, "a 4.2 10 3.9 4 165 -35 l 7.4 7.7 0.3 0 8.6 0"},
    {"3", 8.6, "a 4.1 10.5 3.6 3.5 150 -90 l 4.1 7 3 7 a 4.1 3.5 4.2 3.5 90 -150"},
    {"4", 8.6, "l 6.4 0 6.4 14 0 4.2 8.8 4.2"},
    {"5", 8.6, "l 7.8 14 1.5 14 0.9 7.4 a 4.1 4.5 4.3 4.5 140 -150"},
    {"6", 8.6, "e 4.3 4.4 4.3 4.4 a 7.4 4.4 7.4 9.6 180 97"},
    {"7", 8.6, "l 0 14 8.6 14 3 0"},
    {"8", 8.6, "e 4.3 10.6 3.6 3.4 e 4.3 3.6 4.3 3.6"},
    {"9", 8.6, "e 4.3 9.6 4.3 4.4 a 1.2 9.6 7.4 9.6 0 -83"},
    {"a", 8, "e 4 5 4 5 l 8 10 8 0"},
    {"b", 8.3, "l 0 14 0 0 e 4.1 5 4.1 5"},
    {"c", 7.6, "a 4.3 5 4.3 5 48 312"},
    {"d", 8.3, "e 4.2 5 4.2 5 l 8.3 14 8.3 0"},
    {"e", 8.4, "l 0.1 5.2 8.4 5.2 a 4.2 5 4.2 5 0 312"},
    {"f", 5, "a 4.6 11.2 2.6 2.8 70 180 l 2 11.2 2 0 l 0 9.8 5 9.8"},
    {"g", 8.3, "e 4.2 5 4.2 5 l 8.3 10 8.3 -0.6 a 4.3 -0.6 4 3.5 0 -150"},
    {"h", 7.8, "l 0 14 0 0 a 3.9 6.1 3.9 3.9 180 0 l 7.8 6.1 7.8 0"},
    {"i", 1, "l 0.5 10 0.5 0 l 0.5 13.4 0.5 13.8"},
    {"j", 2.6, "l 2.1 10 2.1 -1.4 a 0 -1.4 2.1 2.6 0 -95 l 2.1 13.4 2.1 13.8"},
    {"k", 7.4, "l 0 14 0 0 l 7 10 0 3.6 l 2.7 6 7.4 0"},
    {"l", 2.4, "l 0.4 14 0.4 2.2 a 2.4 2.2 2 2.2 180 280"},
    {"m", 12.8,
     "l 0 10 0 0 a 3.2 6.8 3.2 3.2 180 0 l 6.4 6.8 6.4 0 a 9.6 6.8 3.2 3.2 180 0 l 12.8 6.8 12.8 "
     "0"},
    {"n", 7.8, "l 0 10 0 0 a 3.9 6.1 3.9 3.9 180 0 l 7.8 6.1 7.8 0"},
    {"o", 8.6, "e 4.3 5 4.3 5"},
    {"p", 8.3, "l 0 10 0 -4 e 4.1 5 4.1 5"},
    {"q", 8.3, "e 4.2 5 4.2 5 l 8.3 10 8.3 -4"},
    {"r", 4.8, "l 0 10 0 0 a 4 5.6 4 4.4 180 78"},
    {"s", 7, "a 3.6 7.5 3 2.5 32 270 a 3.6 2.5 3.4 2.5 90 -148"},
    {"t", 5, "l 2 13.4 2 2.6 a 4.6 2.6 2.6 2.6 180 285 l 0 9.8 5 9.8"},
    {"u", 7.8, "l 0 10 0 3.9 a 3.9 3.9 3.9 3.9 180 360 l 7.8 10 7.8 0"},
    {"v", 8, "l 0 10 4 0 8 10"},
    {"w", 11.6, "l 0 10 2.9 0 5.8 9.4 8.7 0 11.6 10"},
    {"x", 7.4, "l 0 10 7.4 0 l 0 0 7.4 10"},
    {"y", 8, "l 0 10 4.1 0.2 l 8 10 3.4 -2.2 a 1.6 -1.5 2 2.3 -25 -100"},
    {"z", 7.2, "l 0 10 7.2 10 0 0 7.2 0"},
    {".", 1, "l 0.5 0.2 0.5 0.5"},
    {",", 1.6, "l 1 0.6 0 -2.4"},
    {":", 1, "l 0.5 0.4 0.5 0.7 l 0.5 8.4 0.5 8.7"},
    {";", 1.6, "l 1 0.6 0 -2.4 l 1 8.4 1 8.7"},
    {"-", 5, "l 0 5.2 5 5.2"},
    {"+", 8, "l 0 5.8 8 5.8 l 4 1.8 4 9.8"},
    {"=", 8, "l 0 7.8 8 7.8 l 0 3.8 8 3.8"},
    {"_", 8, "l 0 -2 8 -2"},
    {"/", 6, "l 0 -1.5 6 15"},
    {"\\", 6, "l 0 15 6 -1.5"},
    {"|", 1, "l 0.5 -3 0.5 16"},
    {"(", 3.2, "a 7 6.5 7 11 126 234"},
    {")", 3.2, "a -3.8 6.5 7 11 54 -54"},
    {"[", 3, "l 3 15.4 0 15.4 0 -2.6 3 -2.6"},
    {"]", 3, "l 0 15.4 3 15.4 3 -2.6 0 -2.6"},
    {"{", 4, "l 4 15.4 2.6 15 2 13.6 2 8.4 0.6 6.5 2 4.6 2 -0.8 2.6 -2.2 4 -2.6"},
    {"}", 4, "l 0 15.4 1.4 15 2 13.6 2 8.4 3.4 6.5 2 4.6 2 -0.8 1.4 -2.2 0 -2.6"},
    {"<", 7.4, "l 7.4 9.8 0 5.8 7.4 1.8"},
    {">", 7.4, "l 0 9.8 7.4 5.8 0 1.8"},
    {"!", 1, "l 0.5 14 0.5 4.4 l 0.5 0.2 0.5 0.5"},
    {"?", 7, "a 3.5 10.6 3.5 3.4 165 -50 l 5.7 8 3.6 6 3.6 4.2 l 3.6 0.2 3.6 0.5"},
    {"'", 1, "l 0.5 14 0.5 10.6"},
    {"\"", 4, "l 0.5 14 0.5 10.6 l 3.5 14 3.5 10.6"},
    {"`", 2.4, "l 0 14 2.4 11.4"},
    {"*", 6.4, "l 3.2 13.6 3.2 6.8 l 0.2 11.9 6.2 8.5 l 0.2 8.5 6.2 11.9"},
    {"%", 13, "e 2.8 10.8 2.8 3.2 e 10.2 3.2 2.8 3.2 l 10.6 14 2.4 0"},
    {"&", 10, "a 4.2 11 2.8 3 -40 220 l 1.9 9.2 9.8 0 a 4.2 3.9 4.2 3.9 100 340 l 8.1 2.6 9.4 6.2"},
    {"#", 9.4, "l 2 0 4 14 l 5.6 0 7.6 14 l 0.4 9.4 9.4 9.4 l 0 4.6 9 4.6"},
    {"@", 13, "e 6.5 6 3 3.4 l 9.5 9.4 9.5 4.2 a 11 4.2 1.5 1.8 180 330 a 6.5 6 6.5 8 -10 300"},
    {"$", 9, "a 4.6 10.2 4 3 32 270 a 4.6 4 4.4 3.2 90 -148 l 4.6 15.4 4.6 -1.4"},
    {"^", 7, "l 0 9.4 3.5 14 7 9.4"},
    {"~", 8, "a 2 5.4 2 1.9 180 0 a 6 5.4 2 1.9 180 360"},
    {"\u00b0", 4, "e 2 12 2 2"},
    {"\u00b1", 8, "l 0 7.4 8 7.4 l 4 11 4 3.8 l 0 0.8 8 0.8"},
    {"\u00d7", 7, "l 0 9.3 7 2.3 l 0 2.3 7 9.3"},
    {"\u2212", 8, "l 0 5.8 8 5.8"},
    {"\u2013", 8, "l 0 5.2 8 5.2"},
    {"\u00b7", 1, "l 0.5 5.5 0.5 5.9"},
    {"\u00b5", 8.4, "l 0.4 10 0.4 4 0 -4 l 0.4 3.9 0.4 3.9 a 4.2 3.9 3.8 3.9 180 360 l 8 10 8 0"},
    {"\u03c3", 9.4, "e 4.2 4.9 4.2 4.9 l 4.2 9.8 9.4 9.8"},
    {"\u03bb", 8, "l 0 14 1.6 13.6 7.6 0 l 4.3 7.4 0 0"},
    {"\u03bd", 7.4, "l 0 10 3.4 0 7.4 10"},
    {"\u00b2", 5, "a 2.4 12.2 2.3 2.3 165 -35 l 4.3 10.9 0.1 7 5 7"},
};
constexpr GlyphSource kUnknown{"", 8, "l 0 0 0 12 8 12 8 0 0 0"};
constexpr double kCapHeight = 14;
constexpr double kSpacing = 3.9;

struct Glyph {
  double width = 0;
  std::vector<Line> lines;  // y up
};

void add_arc(Glyph& glyph, double cx, double cy, double rx, double ry, double from_deg,
             double to_deg) {
  const int n = std::max(4, static_cast<int>(std::abs(to_deg - from_deg) / 12));
  Line line;
  for (int k = 0; k <= n; ++k) {
    const double angle_rad = (from_deg + (to_deg - from_deg) * k / n) * kDegree_rad;
    line.push_back({cx + rx * std::cos(angle_rad), cy + ry * std::sin(angle_rad)});
  }
  glyph.lines.push_back(std::move(line));
}

Glyph parsed(const GlyphSource& source) {
  Glyph glyph;
  glyph.width = source.width;
  std::istringstream in(source.path);
  std::string token;
  while (in >> token) {
    std::vector<double> v;
    for (double number; in >> number;) v.push_back(number);
    in.clear();
    if (token == "l") {
      Line line;
      for (std::size_t k = 0; k + 1 < v.size(); k += 2) line.push_back({v[k], v[k + 1]});
      glyph.lines.push_back(std::move(line));
    } else if (token == "a") {
      add_arc(glyph, v[0], v[1], v[2], v[3], v[4], v[5]);
    } else {
      add_arc(glyph, v[0], v[1], v[2], v[3], 0, 360);
    }
  }
  return glyph;
}

const Glyph& glyph_of(std::string_view letter) {
  static const auto* table = [] {
    auto* glyphs = new std::map<std::string, Glyph, std::less<>>;
    for (const auto& source : kGlyphs) glyphs->emplace(source.letter, parsed(source));
    glyphs->emplace("", parsed(kUnknown));
    return glyphs;
  }();
  const auto found = table->find(letter);
  return found != table->end() ? found->second : table->find("")->second;
}

// Splits UTF-8 into letters; a stray byte is one letter.
std::vector<std::string_view> letters_of(std::string_view text) {
  std::vector<std::string_view> letters;
  for (std::size_t k = 0; k < text.size();) {
    std::size_t n = 1;
    while (k + n < text.size() && (static_cast<unsigned char>(text[k + n]) & 0xc0u) == 0x80u) ++n;
    letters.push_back(text.substr(k, n));
    k += n;
  }
  return letters;
}

}  // namespace

double text_width(std::string_view text, const TextStyle& style) {
  double width = 0;
  for (const auto letter : letters_of(text)) width += glyph_of(letter).width + kSpacing;
  return text.empty() ? 0 : (width - kSpacing) * style.cap_height / kCapHeight;
}

void draw_text(Canvas& canvas, std::string_view text, Point anchor, const TextStyle& style) {
  const double scale = style.cap_height / kCapHeight;
  double along = 0;
  if (style.align != Align::left)
    along = -text_width(text, style) * (style.align == Align::center ? 0.5 : 1.0);
  std::vector<Line> lines;
  for (const auto letter : letters_of(text)) {
    const Glyph& glyph = glyph_of(letter);
    for (const auto& source : glyph.lines) {
      Line line;
      for (const Point p : source) {
        const double a = along + p.x * scale, up = p.y * scale;
        line.push_back(style.vertical ? Point{anchor.x - up, anchor.y - a}
                                      : Point{anchor.x + a, anchor.y - up});
      }
      lines.push_back(std::move(line));
    }
    along += (glyph.width + kSpacing) * scale;
  }
  const double thickness = std::max(1.15, style.cap_height * (style.bold ? 0.165 : 0.118));
  if (style.halo) canvas.stroke(lines, thickness + 3, {10, 10, 14}, 0.75);
  canvas.stroke(lines, thickness, style.color);
}

std::vector<std::string> wrapped(std::string_view text, double width, const TextStyle& style) {
  std::vector<std::string> lines;
  std::istringstream paragraphs{std::string(text)};
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    std::istringstream words(paragraph);
    std::string line;
    for (std::string word; words >> word;) {
      const std::string longer = line.empty() ? word : line + " " + word;
      if (!line.empty() && text_width(longer, style) > width) {
        lines.push_back(line);
        line = word;
      } else {
        line = longer;
      }
    }
    lines.push_back(line);
  }
  return lines;
}

}  // namespace ryle::plot
