// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ryle::detail {

/// One element of a small XML file. Comments are no elements; text is trimmed and joined.
struct XmlElement {
  struct Attribute {
    std::string name, value;
  };
  std::string name;
  std::int64_t line = 0;
  std::vector<Attribute> attributes;
  std::vector<XmlElement> children;
  std::string text;

  const std::string* attribute(std::string_view wanted) const;
};

/// Parses text of at most 1 MiB and 32 levels into its root element. No document type, no entities,
/// no CDATA: a file that has them is rejected. Throws FormatError with "origin:line: what".
XmlElement parse_xml(std::string_view text, const std::string& origin);
XmlElement read_xml(const std::string& path);

}  // namespace ryle::detail
