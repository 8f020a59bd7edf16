// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/wire/text_header.hpp"

#include <gtest/gtest.h>

#include <string>

namespace ryle::wire {
namespace {

std::span<const std::byte> bytes(const std::string& text) { return std::as_bytes(std::span(text)); }

std::string card(std::string text) {
  text.resize(80, ' ');
  return text;
}

TEST(TextHeader, NumbersMustBeWhole) {
  EXPECT_EQ(parse_integer("42").value(), 42);
  EXPECT_EQ(parse_integer("+42").value(), 42);
  EXPECT_EQ(parse_integer("-1").value(), -1);
  for (const char* bad : {"", "+", "4 2", "42x", "0x10", "1e3", "9223372036854775808", " 1"}) {
    EXPECT_FALSE(parse_integer(bad)) << bad;
  }
  EXPECT_DOUBLE_EQ(parse_real("3.2e-07").value(), 3.2e-7);
  for (const char* bad : {"", "nan", "inf", "-inf", "1e400", "1.5 MHz", "--1"})
    EXPECT_FALSE(parse_real(bad)) << bad;
}

TEST(TextHeader, DecimalsAreExactRatios) {
  EXPECT_EQ(parse_decimal("187.5").value(), (Rational{375, 2}));
  EXPECT_EQ(parse_decimal("-100").value(), (Rational{-100, 1}));
  EXPECT_EQ(parse_decimal("544.000000").value(), (Rational{544, 1}));
  EXPECT_EQ(parse_decimal("1.05").value(), (Rational{21, 20}));
  EXPECT_EQ(parse_decimal("10.0500").value(), (Rational{201, 20}));
  EXPECT_EQ(parse_decimal("3.2e-07").value(), (Rational{1, 3125000}));
  EXPECT_EQ(parse_decimal("2E3").value(), (Rational{2000, 1}));
  EXPECT_EQ(parse_decimal("1.882352941176471").value(),
            (Rational{1882352941176471, 1000000000000000}));
  EXPECT_EQ(parse_decimal("0.0").value(), (Rational{0, 1}));
  for (const char* bad : {"", ".", "-", "1.2.3", "1e", "1e99", "99999999999999999999",
                          "0.00000000000000000001x", "a"}) {
    EXPECT_FALSE(parse_decimal(bad)) << bad;
  }
}

TEST(TextHeader, GuppiCards) {
  const std::string header = card("OBSNCHAN= '32      '") + card("TELESCOP= 'GBT''s  '") +
                             card("BLOCSIZE=   8192 / bytes") + card("no card at all") +
                             card("BLOCSIZE=   16384") + card("END");
  EXPECT_EQ(guppi_header_bytes(bytes(header)), header.size());
  EXPECT_EQ(guppi_header_bytes(bytes(header + "rest")), header.size());
  EXPECT_EQ(guppi_header_bytes(bytes(header.substr(0, header.size() - 1))), 0u);
  EXPECT_EQ(guppi_value(bytes(header), "OBSNCHAN"), "32");
  EXPECT_EQ(guppi_value(bytes(header), "TELESCOP"), "GBT");
  EXPECT_EQ(guppi_value(bytes(header), "BLOCSIZE"), "16384");  // the last one counts
  EXPECT_EQ(guppi_value(bytes(header), "ABSENT"), "");
  EXPECT_EQ(guppi_card(bytes(header), 3).key, "");
  EXPECT_EQ(guppi_card(bytes(header), 99).key, "");
  std::string binary = header;
  binary[100] = '\x01';
  EXPECT_EQ(guppi_header_bytes(bytes(binary)), 0u);
  EXPECT_EQ(guppi_header_bytes(bytes(std::string(80 * 5000, ' ') + card("END"))),
            0u);  // not walked to its end
}

TEST(TextHeader, DadaLines) {
  const std::string header =
      "HDR_SIZE 4096 # bytes\n\n# NBIT 2\n  NBIT\t8\r\nSTATE\nNAME two words  # x\nLAST 1" +
      std::string(1, '\0') + "\nHIDDEN 1\n";
  EXPECT_EQ(dada_value(bytes(header), "HDR_SIZE"), "4096");
  EXPECT_EQ(dada_value(bytes(header), "NBIT"), "8");
  EXPECT_EQ(dada_value(bytes(header), "STATE"), "");
  EXPECT_EQ(dada_value(bytes(header), "NAME"), "two words");
  EXPECT_EQ(dada_value(bytes(header), "LAST"), "1");
  EXPECT_EQ(dada_value(bytes(header), "HIDDEN"), "");
  std::size_t offset = 0;
  int n = 0;
  while (!dada_field(bytes(header), offset).key.empty()) ++n;
  EXPECT_EQ(n, 5);
  EXPECT_EQ(dada_value({}, "X"), "");
}

}  // namespace
}  // namespace ryle::wire
