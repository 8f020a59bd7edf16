// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/device/implementation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ryle/core/error.hpp"

namespace ryle {
namespace {

ImplementationQuery query(const std::string& wanted) {
  return {"gadget", wanted, " for ci8", {"reference", "cpu:avx2", "cpu:generic", "cuda:simt"}};
}

std::string rejection(const std::string& wanted, BackEnd back_end) {
  try {
    return "chosen: " + choose_implementation(back_end, query(wanted));
  } catch (const UnsupportedError& error) {
    return error.what();
  }
}

TEST(ChooseImplementation, NamesAndKinds) {
  for (const char* wanted : {"auto", "cpu", "cpu:avx2"})
    EXPECT_EQ(choose_implementation(BackEnd::cpu, query(wanted)), "cpu:avx2");
  for (const char* wanted : {"reference", "cpu:generic"})
    EXPECT_EQ(choose_implementation(BackEnd::cpu, query(wanted)), wanted);
  ImplementationQuery small = query("cpu");
  small.cpu = "cpu:generic";
  EXPECT_EQ(choose_implementation(BackEnd::cpu, small), "cpu:generic");
  small = {"gadget", "auto", "", {"reference"}};
  EXPECT_EQ(choose_implementation(BackEnd::cpu, small), "reference");
  small.wanted = "cpu";
  EXPECT_THROW(choose_implementation(BackEnd::cpu, small), UnsupportedError);
}

TEST(ChooseImplementation, SaysWhatWorksAndWhatIsNearest) {
  EXPECT_EQ(
      rejection("cpu:avx3", BackEnd::cpu),
      "gadget implementation \"cpu:avx3\" for ci8: unknown, or not for this machine, build or "
      "data (did you mean \"cpu:avx2\"?); these work here: auto, cpu, reference, cpu:avx2, "
      "cpu:generic, cuda:simt");
  EXPECT_THAT(rejection("cuda", BackEnd::cpu),
              testing::HasSubstr("gadget implementation \"cuda\""));
  EXPECT_THAT(rejection("cpu", BackEnd::cuda), testing::HasSubstr("needs a cuda implementation"));
}

}  // namespace
}  // namespace ryle
