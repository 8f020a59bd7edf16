// SPDX-License-Identifier: BSD-3-Clause
// Frames as raw RGB into the standard input of ffmpeg. A socket stands for the pipe: send() with
// MSG_NOSIGNAL reports a dead ffmpeg as an error where write() would kill us by SIGPIPE.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/plot/sky.hpp"

extern char** environ;

namespace ryle {
namespace {

namespace fs = std::filesystem;

/// Container and codec by the end of the name; every one plays in browsers.
std::vector<std::string> codec_for(const std::string& path) {
  const std::string end = lower_case(fs::path(path).extension().string());
  if (end == ".mp4" || end == ".mkv") {
    return {"-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf",
            "18",   "-preset", "veryfast", "-f",      end == ".mp4" ? "mp4" : "matroska"};
  }
  if (end == ".webm")
    return {"-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-crf", "28", "-b:v", "0", "-f", "webm"};
  if (end == ".gif") return {"-f", "gif"};
  throw UnsupportedError("cannot make the movie " + path + ": \"" + end +
                         "\" is no movie Ryle knows; use .mp4, .mkv, .webm or .gif");
}

/// Last words of ffmpeg, for messages: the end of what it wrote to its error stream.
std::string last_words(int fd) {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = ::read(fd, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const auto line = text.rfind('\n');
  if (line != std::string::npos) text.erase(0, line + 1);
  return text.empty() ? "ffmpeg gives no reason" : text;
}

}  // namespace

struct SkyMovie::Impl {
  std::string path;
  Observation observation;
  SkyPictureOptions options;
  double frames_per_s;
  bool hold_scale, overwrite;
  std::int64_t n_frames = 0, width = 0, height = 0;
  pid_t child = -1;
  Descriptor input = {};  ///< our end of the socket
  FILE* words = nullptr;  ///< its error stream, a file that has no name

  [[noreturn]] void fail(const std::string& what) {
    const int status = end_child();
    std::string reason = "its exit status is " + std::to_string(status);
    if (words != nullptr && std::fseek(words, 0, SEEK_SET) == 0)
      reason = last_words(::fileno(words));
    release();
    discard_part(path);
    throw IoError(ExitCode::io, "cannot " + what + " " + path + ": ffmpeg: " + reason);
  }

  int end_child() {
    input.close();
    if (child < 0) return 0;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    child = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  void release() {
    if (words != nullptr) std::fclose(words);
    words = nullptr;
  }

  /// ffmpeg learns the size of the frames at its start: with the first of them.
  void start(const RgbPicture& first) {
    width = first.width;
    height = first.height;
    std::vector<std::string> words_of_command{SkyMovie::find_ffmpeg(),
                                              "-nostdin",
                                              "-loglevel",
                                              "error",
                                              "-y",
                                              "-f",
                                              "rawvideo",
                                              "-pix_fmt",
                                              "rgb24",
                                              "-s",
                                              fmt::format("{}x{}", width, height),
                                              "-r",
                                              fmt::format("{}", frames_per_s),
                                              "-i",
                                              "pipe:0",
                                              "-an"};
    for (auto& word : codec_for(path)) words_of_command.push_back(std::move(word));
    words_of_command.push_back("file:" + part_path(path));
    std::vector<char*> arguments;
    for (auto& word : words_of_command) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw IoError::from_errno("start ffmpeg for", path, errno);
    words = std::tmpfile();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    if (words != nullptr) posix_spawn_file_actions_adddup2(&actions, ::fileno(words), 2);
    // Its own process group: Ctrl-C ends our run, which then closes the movie in order.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    const int error =
        ::posix_spawn(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    ::close(ends[1]);
    input = Descriptor(ends[0]);
    if (error != 0) {
      child = -1;
      end_child();
      throw IoError::from_errno("start ffmpeg for", path, error);
    }
  }
};

void SkyMovie::require_name(const std::string& path, const std::string& option) {
  if (path.empty()) return;
  try {
    static_cast<void>(codec_for(path));
  } catch (const UnsupportedError& e) {
    throw UnsupportedError(option + ": " + e.what());
  }
}

std::string SkyMovie::find_ffmpeg() {
  const char* variable = std::getenv("PATH");
  std::istringstream folders(variable != nullptr ? variable : "/usr/bin:/usr/local/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/ffmpeg";
    if (::access(candidate.c_str(), X_OK) == 0 && fs::is_regular_file(candidate)) return candidate;
  }
  return "";
}

SkyMovie::SkyMovie(const std::string& path, Observation observation, SkyPictureOptions options,
                   double frames_per_s, bool hold_scale, bool overwrite)
    : impl_(std::make_unique<Impl>(Impl{path, std::move(observation), std::move(options),
                                        frames_per_s, hold_scale, overwrite})) {
  static_cast<void>(codec_for(path));
  if (!(frames_per_s > 0 && frames_per_s <= 1000))
    throw ConfigError(
        fmt::format("movie {}: {} frames/s; up to 1000 would do", path, frames_per_s));
  if (find_ffmpeg().empty()) {
    throw UnsupportedError("cannot make the movie " + path +
                           ": the program ffmpeg is not installed (apt install ffmpeg); a sequence "
                           "of PNG files needs none");
  }
  prepare_part(path, overwrite);
}

SkyMovie::~SkyMovie() {
  if (impl_->n_frames < 0) return;  // finished
  if (impl_->child > 0) ::kill(impl_->child, SIGTERM);
  impl_->end_child();
  impl_->release();
  discard_part(impl_->path);
}

std::int64_t SkyMovie::n_frames() const { return std::abs(impl_->n_frames); }

void SkyMovie::append(const SkyImage& image) {
  Impl& c = *impl_;
  if (c.n_frames < 0) throw ConfigError("the movie " + c.path + " is finished already");
  if (c.hold_scale && c.n_frames == 0) {
    const ColorScale scale = color_scale(image, c.options);
    c.options.color_min = scale.low;
    c.options.color_max = scale.high;
    c.options.color_gamma = scale.gamma;
  }
  const RgbPicture frame = draw_sky(image, c.observation, c.options);
  if (c.n_frames == 0) c.start(frame);
  if (c.child < 0 || frame.width != c.width || frame.height != c.height)
    throw ConfigError("the movie " + c.path + " cannot take a frame of another size");
  const auto* bytes = frame.rgb.data();
  for (std::size_t left = frame.rgb.size(); left > 0;) {
    const ssize_t n = ::send(c.input.get(), bytes, left, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) c.fail("write the movie");
    bytes += n;
    left -= static_cast<std::size_t>(n);
  }
  ++c.n_frames;
}

void SkyMovie::finish() {
  Impl& c = *impl_;
  if (c.n_frames <= 0) throw ConfigError("the movie " + c.path + " has no frame");
  if (c.end_child() != 0 || !fs::exists(part_path(c.path))) c.fail("finish the movie");
  c.release();
  c.n_frames = -c.n_frames;
  publish_part(c.path, c.overwrite);
}

}  // namespace ryle
