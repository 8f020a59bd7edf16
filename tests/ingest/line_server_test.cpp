// SPDX-License-Identifier: BSD-3-Clause
// Single lines over a unix socket: who may not hold whom up, and what is left on disk.
#include "ryle/ingest/line_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "ryle/core/error.hpp"
#include "ryle/ingest/socket.hpp"

namespace ryle {
namespace {

using testing::HasSubstr;

std::string socket_path() { return (std::filesystem::temp_directory_path() / "ask.sock").string(); }

// Of a busy machine: nothing here is about how long it takes.
constexpr double kPatience_s = 600;
std::string ask(const std::string& path, std::string_view line) {
  return ask_line_server(path, line, kPatience_s);
}

std::string twice(std::string_view line) {
  if (line == "throw") throw ConfigError("no");
  return std::string(line) + std::string(line);
}

Socket silent_client(const std::string& path) {
  Socket socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  return socket;
}

TEST(LineServer, AnswersEveryoneOnce) {
  const std::string path = socket_path();
  const LineServer server(path, twice, kPatience_s);
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0660U);
  EXPECT_EQ(ask(path, "ab"), "abab");
  EXPECT_EQ(ask(path, ""), "");
  EXPECT_EQ(ask(path, "throw"), "error: no");
  const std::string maximum(LineServer::kMaxBytes, 'x');
  EXPECT_EQ(ask(path, maximum), maximum + maximum);
  EXPECT_THAT(ask(path, maximum + "x"), HasSubstr("at most 4096 bytes"));
  EXPECT_THAT(ask(path, std::string(1 << 20, 'x')), HasSubstr("at most 4096 bytes"));
}

// Fewer than the most: the next client is served while they say nothing.
TEST(LineServer, SilentClientsHoldNobodyUp) {
  const std::string path = socket_path();
  const LineServer server(path, twice, kPatience_s);
  std::vector<Socket> silent;
  for (std::size_t k = 0; k + 1 < LineServer::kMaxClients; ++k) {
    silent.push_back(silent_client(path));
    ASSERT_EQ(::send(silent.back().get(), "ab", 2, 0), 2);  // without its end
  }
  EXPECT_EQ(ask(path, "c"), "cc");
  silent.resize(3);
  ASSERT_EQ(::send(silent.back().get(), "\n", 1, 0), 1);
  char answer[8] = {};
  ASSERT_EQ(::recv(silent.back().get(), answer, 5, MSG_WAITALL), 5);
  EXPECT_STREQ(answer, "abab\n");
}

// As many as it takes: the next one is served when their time is over.
TEST(LineServer, ClientsThatStaySilentAreLeft) {
  const std::string path = socket_path();
  const LineServer server(path, twice, 0.05);
  std::vector<Socket> silent;
  for (std::size_t k = 0; k < LineServer::kMaxClients; ++k) silent.push_back(silent_client(path));
  std::string answer;
  while (answer.empty()) {  // its own 0.05 s may pass before a busy machine sends its line
    try {
      answer = ask(path, "c");
    } catch (const IoError&) {
    }
  }
  EXPECT_EQ(answer, "cc");
}

TEST(LineServer, TakesOverFromTheDeadOnly) {
  const std::string path = socket_path();
  EXPECT_THROW(ask_line_server(path, "a"), IoError);
  {
    const LineServer server(path, twice, kPatience_s);
    EXPECT_THROW(LineServer(path, twice), IoError);  // one is at work
    EXPECT_EQ(ask(path, "a"), "aa");
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  {  // bound by a process that was killed
    const Socket dead(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.data(), path.size());
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ASSERT_TRUE(std::filesystem::exists(path));
  {
    const LineServer server(path, twice, kPatience_s);
    EXPECT_EQ(ask(path, "a"), "aa");
  }
  std::ofstream(path) << "someone's file";
  EXPECT_THROW(LineServer(path, twice), IoError);
  EXPECT_EQ(std::filesystem::file_size(path), 14U);
  std::filesystem::remove(path);
  EXPECT_THROW(LineServer(std::string(200, 'x'), twice), ConfigError);
}

}  // namespace
}  // namespace ryle
