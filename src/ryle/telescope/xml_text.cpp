// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/xml_text.hpp"

#include <algorithm>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/telescope/csv.hpp"

namespace ryle::detail {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr int kDeepest = 32;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':';
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  XmlElement document() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
    skip_between();
    if (starts("<?xml")) {
      skip_past("?>", "the declaration");
      skip_between();
    }
    if (at_ >= text_.size()) fail("there is no element");
    XmlElement root = element(0);
    skip_between();
    if (at_ < text_.size()) fail("something follows the root element <" + root.name + ">");
    return root;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw FormatError(origin_ + ":" + std::to_string(line()) + ": " + what);
  }
  // Counted on from the last time it was asked for: every element wants its line.
  std::int64_t line() const {
    const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(counted_to_);
    const std::size_t end = std::max(counted_to_, std::min(at_, text_.size()));
    line_ += std::count(begin, text_.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    counted_to_ = end;
    return line_;
  }
  bool starts(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
  void skip_past(std::string_view end, const char* what) {
    const auto found = text_.find(end, at_);
    if (found == std::string_view::npos) fail(std::string(what) + " does not end");
    at_ = found + end.size();
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  void skip_comment() {
    at_ += 4;
    skip_past("-->", "a comment");
  }
  // Blanks and comments outside the root element.
  void skip_between() {
    for (;;) {
      skip_blanks();
      if (!starts("<!--")) break;
      skip_comment();
    }
    if (starts("<!")) fail("document types are not read");
  }
  std::string name(const char* of) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (begin == at_) fail(std::string("the name of ") + of + " is missing");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string plain(std::string_view raw) const {
    if (raw.find('&') != std::string_view::npos) fail("entities (&...;) are not read");
    if (raw.find('\0') != std::string_view::npos) fail("a zero byte");
    return std::string(raw);
  }

  void attributes(XmlElement& result) {
    for (;;) {
      const std::size_t before = at_;
      skip_blanks();
      if (at_ >= text_.size()) fail("<" + result.name + "> does not end");
      if (text_[at_] == '>' || text_[at_] == '/') return;
      if (before == at_) fail("a blank is missing between attributes of <" + result.name + ">");
      XmlElement::Attribute attribute;
      attribute.name = name("an attribute");
      skip_blanks();
      if (at_ >= text_.size() || text_[at_] != '=')
        fail("attribute \"" + attribute.name + "\" has no value");
      ++at_;
      skip_blanks();
      const char quote = at_ < text_.size() ? text_[at_] : '\0';
      if (quote != '"' && quote != '\'')
        fail("the value of attribute \"" + attribute.name + "\" is not in quotes");
      const auto end = text_.find(quote, ++at_);
      if (end == std::string_view::npos)
        fail("the value of attribute \"" + attribute.name + "\" does not end");
      const std::string_view value = text_.substr(at_, end - at_);
      if (value.find('<') != std::string_view::npos)
        fail("the value of attribute \"" + attribute.name + "\" has a '<'");
      attribute.value = plain(value);
      at_ = end + 1;
      if (result.attribute(attribute.name) != nullptr)
        fail("attribute \"" + attribute.name + "\" is there twice");
      result.attributes.push_back(std::move(attribute));
    }
  }

  XmlElement element(int depth) {
    if (depth >= kDeepest) fail("elements are nested more than 32 deep");
    if (!starts("<")) fail("text outside of elements");
    XmlElement result;
    result.line = line();
    ++at_;
    result.name = name("an element");
    attributes(result);
    if (text_[at_] == '/') {
      if (!starts("/>")) fail("a '/' inside <" + result.name + ">");
      at_ += 2;
      return result;
    }
    ++at_;
    for (;;) {
      const auto next = text_.find('<', at_);
      if (next == std::string_view::npos) {
        at_ = text_.size();
        fail("<" + result.name + "> of line " + std::to_string(result.line) + " is not closed");
      }
      const std::string piece(trimmed(plain(text_.substr(at_, next - at_))));
      if (!piece.empty()) result.text += (result.text.empty() ? "" : " ") + piece;
      at_ = next;
      if (starts("<!--")) {
        skip_comment();
      } else if (starts("<!") || starts("<?")) {
        fail("declarations and CDATA are not read");
      } else if (starts("</")) {
        at_ += 2;
        const std::string closed = name("an element");
        if (closed != result.name)
          fail("</" + closed + "> closes <" + result.name + "> of line " +
               std::to_string(result.line));
        skip_blanks();
        if (!starts(">")) fail("</" + closed + " does not end");
        ++at_;
        return result;
      } else {
        result.children.push_back(element(depth + 1));
      }
    }
  }

  std::string_view text_;
  const std::string& origin_;
  std::size_t at_ = 0;
  mutable std::size_t counted_to_ = 0;
  mutable std::int64_t line_ = 1;
};

}  // namespace

const std::string* XmlElement::attribute(std::string_view wanted) const {
  for (const auto& a : attributes) {
    if (a.name == wanted) return &a.value;
  }
  return nullptr;
}

XmlElement parse_xml(std::string_view text, const std::string& origin) {
  if (text.size() > kMaxBytes)
    throw FormatError(origin + ": " + std::to_string(text.size()) + " bytes; at most 1 MiB");
  return Reader(text, origin).document();
}

XmlElement read_xml(const std::string& path) { return parse_xml(read_text_file(path), path); }

}  // namespace ryle::detail
