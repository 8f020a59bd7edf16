// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/telescope/xml_text.hpp"

#include <algorithm>
#include <pugixml.hpp>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/core/text.hpp"

namespace ryle::detail {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
constexpr int kMaxDepth = 32;

/// The tree of pugixml with its lines, and without what is not read.
class Reader {
 public:
  Reader(std::string_view text, const std::string& origin) : text_(text), origin_(origin) {}

  XmlElement document() {
    using namespace pugi;
    xml_document file;
    // Escapes stay as they are, so that they can be rejected.
    const auto result =
        file.load_buffer(text_.data(), text_.size(),
                         parse_pi | parse_cdata | parse_doctype | parse_fragment, encoding_utf8);
    if (!result) {
      at_ = result.offset;
      fail(result.status == status_end_element_mismatch
               ? "an end tag closes no element that is open, or an element is not closed"
               : result.description());
    }
    XmlElement outside;
    read(file, outside, 0);
    if (!outside.text.empty()) fail("text outside of elements");
    if (outside.children.empty()) fail("there is no element");
    if (outside.children.size() > 1)
      fail("something follows the root element <" + outside.children.front().name + ">");
    return std::move(outside.children.front());
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    throw FormatError(origin_ + ":" + std::to_string(line()) + ": " + what);
  }
  // Counted on from the last time it was asked for: every element wants its line.
  std::int64_t line() {
    const std::ptrdiff_t end = std::clamp(at_, counted_to_, std::ssize(text_));
    line_ += std::count(text_.begin() + counted_to_, text_.begin() + end, '\n');
    counted_to_ = end;
    return line_;
  }
  std::string plain(std::string_view raw) {
    if (raw.find('&') != std::string_view::npos) fail("entities (&...;) are not read");
    return std::string(raw);
  }

  void read(const pugi::xml_node& node, XmlElement& element, int depth) {
    if (depth > kMaxDepth) fail("elements are nested more than 32 deep");
    for (const auto& a : node.attributes()) {
      if (element.attribute(a.name()) != nullptr)
        fail("attribute \"" + std::string(a.name()) + "\" is there twice");
      element.attributes.push_back({a.name(), plain(a.value())});
    }
    for (const auto& child : node) {
      at_ = child.offset_debug();
      if (child.type() == pugi::node_doctype) fail("document types are not read");
      if (child.type() == pugi::node_pcdata) {
        const std::string piece(trimmed(plain(child.value())));
        if (!piece.empty()) element.text += (element.text.empty() ? "" : " ") + piece;
        continue;
      }
      if (child.type() != pugi::node_element) fail("CDATA and instructions are not read");
      XmlElement& inner = element.children.emplace_back();
      inner.name = child.name();
      inner.line = line();
      read(child, inner, depth + 1);
    }
  }

  std::string_view text_;
  const std::string& origin_;
  std::ptrdiff_t at_ = 0, counted_to_ = 0;
  std::int64_t line_ = 1;
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
  if (text.find('\0') != std::string_view::npos) throw FormatError(origin + ": a zero byte");
  return Reader(text, origin).document();
}

XmlElement read_xml(const std::string& path) { return parse_xml(read_text_file(path), path); }

}  // namespace ryle::detail
