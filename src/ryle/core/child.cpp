// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/core/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/interrupt.hpp"

namespace ryle {
namespace {

/// What a child says first.
enum class Answer : char { result = 'R', error = 'E', memory = 'M' };

std::int64_t mapped_bytes() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return std::int64_t{pages} * ::sysconf(_SC_PAGESIZE);
}

void lower_limit(int resource, std::int64_t soft, std::int64_t hard) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource_t>(resource), &now) != 0) return;
  now.rlim_max = std::min(now.rlim_max, static_cast<rlim_t>(hard));
  now.rlim_cur = std::min(now.rlim_max, static_cast<rlim_t>(soft));
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &now);
}

/// The child: limits, no core file, an end when the parent ends, no messages of libraries.
void restrict_child(const ChildLimits& limits, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU})
    std::signal(signal, SIG_DFL);
  // Ctrl-C reaches the whole process group: the parent decides whether the child ends.
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
  const std::int64_t memory_bytes = mapped_bytes() + limits.memory_bytes;
  lower_limit(RLIMIT_AS, memory_bytes, memory_bytes);
  lower_limit(RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1);
  lower_limit(RLIMIT_CORE, 0, 0);
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null >= 0) ::dup2(null, STDERR_FILENO);
}

void send_error(const ChildPipe& pipe, ExitCode code, const std::string& text) {
  const auto size = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), 65536));
  const auto number = static_cast<std::int32_t>(code);
  const Answer answer = Answer::error;
  pipe.write(&answer, 1);
  pipe.write(&number, sizeof number);
  pipe.write(&size, sizeof size);
  pipe.write(text.data(), size);
}

[[noreturn]] void child_main(const ChildPipe& pipe, const std::string& what,
                             const std::function<void()>& work,
                             const std::function<void(const ChildPipe&)>& send) {
  try {
    try {
      work();
      const Answer answer = Answer::result;
      pipe.write(&answer, 1);
      if (send) send(pipe);
    } catch (const Error& error) {
      send_error(pipe, error.exit_code(), error.what());
    } catch (const std::bad_alloc&) {
      const Answer answer = Answer::memory;
      pipe.write(&answer, 1);
    } catch (const std::exception& error) {
      send_error(pipe, ExitCode::bad_data, "cannot read " + what + ": " + error.what());
    }
  } catch (...) {  // the parent is gone
  }
  ::_exit(0);
}

/// Waits for the child; its status. A child that is still there is ended.
class Child {
 public:
  Child(pid_t id, Descriptor answers) : id_(id), answers_(std::move(answers)) {}
  ~Child() {
    answers_.close();
    if (id_ > 0) {
      ::kill(id_, SIGKILL);
      wait();
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  int wait() {
    int status = 0;
    while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {
    }
    id_ = -1;
    return status;
  }
  void kill() const { ::kill(id_, SIGKILL); }

 private:
  pid_t id_;
  Descriptor answers_;
};

std::string reason_of_death(int status, const ChildLimits& limits) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGXCPU || signal == SIGKILL)
    return "it took more than " + std::to_string(limits.cpu_s) + " s";
  return std::string("the library that reads it died of it (") +
         (signal != 0 ? ::strsignal(signal) : "it left") + ")";
}

/// False when nothing came for so long that the child cannot be at work any more.
bool wait_for_answer(int descriptor, std::int64_t limit_s, const std::string& what) {
  pollfd entry{descriptor, POLLIN, 0};
  for (std::int64_t second = 0; second < limit_s;) {
    const int n = ::poll(&entry, 1, 1000);
    require_not_interrupted(what);
    if (n > 0) return true;
    if (n == 0) ++second;
    if (n < 0 && errno != EINTR) return true;
  }
  return false;
}

}  // namespace

void ChildPipe::write(const void* from, std::size_t n) const {
  const auto* at = static_cast<const char*>(from);
  while (n > 0) {
    const ssize_t done = ::write(descriptor_, at, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw IoError(ExitCode::io, "the other end of a pipe is gone");
    at += done;
    n -= static_cast<std::size_t>(done);
  }
}

void ChildPipe::read(void* to, std::size_t n) const {
  auto* at = static_cast<char*>(to);
  while (n > 0) {
    const ssize_t done = ::read(descriptor_, at, n);
    require_not_interrupted("a file");
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) throw IoError(ExitCode::io, "the other end of a pipe is gone");
    at += done;
    n -= static_cast<std::size_t>(done);
  }
}

void run_in_child(const std::string& what, const ChildLimits& limits,
                  const std::function<void()>& work,
                  const std::function<void(const ChildPipe&)>& send,
                  const std::function<void(const ChildPipe&)>& receive) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw OsLimitError(std::string("cannot make a pipe: ") + std::strerror(errno));
  Descriptor out(ends[0]), in(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t id = ::fork();
  if (id < 0) {
    throw OsLimitError("cannot start the process that reads " + what + ": " + std::strerror(errno) +
                       "; raise `ulimit -u` or free memory");
  }
  if (id == 0) {
    out.close();
    restrict_child(limits, parent);
    child_main(ChildPipe(ends[1]), what, work, send);
  }
  in.close();
#ifdef F_SETPIPE_SZ
  ::fcntl(ends[0], F_SETPIPE_SZ, 1 << 20);
#endif
  Child child(id, std::move(out));
  const ChildPipe pipe(ends[0]);
  const std::string begin = "cannot read " + what + ": ";
  const std::string end = "; the file is damaged or not what it says";
  if (!wait_for_answer(ends[0], 4 * limits.cpu_s + 20, what)) {
    child.kill();
    throw FormatError(begin + reason_of_death(child.wait(), limits) + end);
  }
  Answer answer{};
  auto code = static_cast<std::int32_t>(ExitCode::bad_data);
  std::string text = begin + "it asks for more than " + std::to_string(limits.memory_bytes) +
                     " bytes of memory" + end;
  try {
    pipe.read(&answer, 1);
    if (answer == Answer::result) {
      if (receive) receive(pipe);
      child.wait();
      return;
    }
    if (answer == Answer::error) {
      std::uint32_t size = 0;
      pipe.read(&code, sizeof code);
      pipe.read(&size, sizeof size);
      text.resize(std::min<std::uint32_t>(size, 65536));
      pipe.read(text.data(), text.size());
    }
  } catch (const IoError&) {  // it died before it had said all
    throw FormatError(begin + reason_of_death(child.wait(), limits) + end);
  }
  if (code == static_cast<std::int32_t>(ExitCode::bad_data)) throw FormatError(text);
  throw Error(static_cast<ExitCode>(code), text);
}

}  // namespace ryle
