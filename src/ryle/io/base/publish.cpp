// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/publish.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"
#include "ryle/core/text.hpp"
#include "ryle/io/base/part_file.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;

FaultHook& fault_hook() {
  static FaultHook hook;
  return hook;
}

// Files of a directory are synchronised by several threads, the manifest is written by another.
std::mutex& fault_mutex() {
  static std::mutex mutex;
  return mutex;
}

fs::path clean(const std::string& path) {
  fs::path p = fs::path(path).lexically_normal();
  if (!p.has_filename()) p = p.parent_path();  // "vis.ms/" and "vis.ms" are one product
  return p;
}

fs::path directory_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

bool exists_no_follow(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// ---- one writer per product
// ------------------------------------------------------------------------------------- A lock file
// beside the .part is held with flock() while the product grows: a SIGKILL frees it by itself, so a
// .part whose lock can be taken is dead and may be removed.
std::mutex lock_mutex;
std::map<std::string, Descriptor>& held_locks() {
  static std::map<std::string, Descriptor> locks;
  return locks;
}

std::string lock_path(const std::string& final_path) { return part_path(final_path) + ".lock"; }

IoError in_use(const std::string& final_path) {
  return {ExitCode::cannot_create,
          "cannot write " + final_path + ": another running process is writing it (" +
              lock_path(final_path) + " is locked); wait for it or choose another name"};
}

bool held_here(const std::string& final_path) {
  const std::scoped_lock guard(lock_mutex);
  return held_locks().contains(lock_path(final_path));
}

void take_lock(const std::string& final_path) {
  const std::string path = lock_path(final_path);
  const std::scoped_lock guard(lock_mutex);
  if (held_locks().contains(path)) return;  // this process writes it again after a failure
  for (;;) {
    Descriptor fd(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!fd) throw IoError::from_errno("create", path, errno, true);
    injected_fault("lock", path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) throw in_use(final_path);
    // The previous owner may have removed the name between open and flock: then we hold a file
    // nobody else sees.
    struct stat by_fd {};
    struct stat by_name {};
    if (::fstat(fd.get(), &by_fd) == 0 && ::stat(path.c_str(), &by_name) == 0 &&
        by_fd.st_ino == by_name.st_ino) {
      held_locks()[path] = std::move(fd);
      return;
    }
  }
}

void release_lock(const std::string& final_path) noexcept {
  try {
    const std::string path = lock_path(final_path);
    const std::scoped_lock guard(lock_mutex);
    const auto found = held_locks().find(path);
    if (found == held_locks().end()) return;
    ::unlink(path.c_str());
    held_locks().erase(found);
  } catch (...) {  // out of memory: the lock goes when the process does
  }
}

// ---- durable bytes
// ------------------------------------------------------------------------------------------------
void fsync_path(const fs::path& path, bool directory) {
  const char* operation = directory ? "fsync_directory" : "fsync";
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | (directory ? O_DIRECTORY : 0)));
  if (!fd) throw IoError::from_errno("open to fsync", path.string(), errno);
  int error = injected_fault(operation, path.string());
  if (error == 0 && ::fsync(fd.get()) != 0) error = errno;
  if (error != 0) {
    // After a failed fsync the kernel may have dropped the dirty pages: a second fsync would
    // succeed and lie.
    throw IoError::from_errno("make durable (fsync)", path.string(), error);
  }
}

/// Regular files of a product (one, or those of a directory tree), then its directories, innermost
/// first.
void list_tree(const fs::path& path, std::vector<fs::path>& files,
               std::vector<fs::path>& directories) {
  if (!fs::is_directory(fs::symlink_status(path))) {
    files.push_back(path);
    return;
  }
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_directory()) {
      list_tree(entry.path(), files, directories);
    } else if (entry.is_regular_file()) {
      files.push_back(entry.path());
    }
  }
  directories.push_back(path);
}

/// An MS has about a hundred files; fsync in parallel shares the journal commits (1.2 s -> 0.2 s on
/// a virtual disk).
void fsync_all(const std::vector<fs::path>& files) {
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  std::exception_ptr first_error;
  std::mutex error_mutex;
  const auto work = [&] {
    for (std::size_t k = next++; k < files.size() && !failed; k = next++) {
      try {
        fsync_path(files[k], false);
      } catch (...) {
        const std::scoped_lock guard(error_mutex);
        if (!failed.exchange(true)) first_error = std::current_exception();
      }
    }
  };
  constexpr std::size_t kThreads = 8;
  std::vector<std::jthread> workers;
  for (std::size_t t = 1; t < std::min(kThreads, files.size()); ++t) workers.emplace_back(work);
  work();
  workers.clear();
  if (first_error) std::rethrow_exception(first_error);
}

void fsync_tree(const fs::path& path) {
  std::vector<fs::path> files;
  std::vector<fs::path> directories;
  list_tree(path, files, directories);
  fsync_all(files);
  for (const fs::path& directory : directories) fsync_path(directory, true);
}

IoError already_there(const std::string& final_path) {
  return {ExitCode::cannot_create,
          "cannot create " + final_path +
              ": the name exists; choose another, move it away, or ask for overwriting"};
}

/// A Measurement Set, by the type that casacore writes into its table.info: the only directory that
/// is a product.
bool is_measurement_set(const fs::path& path) {
  std::ifstream info(path / "table.info");
  std::string line;
  return std::getline(info, line) && line.find("Measurement Set") != std::string::npos;
}

/// Why overwriting must not replace what has this name; empty when it may. A product is replaced by
/// a product: never a directory of other content, a device, a socket or a FIFO.
std::string reason_to_keep(const fs::path& target) {
  std::error_code ignored;
  auto type = fs::symlink_status(target, ignored).type();
  const bool link = type == fs::file_type::symlink;  // it is the link that would be replaced
  if (link) type = fs::status(target, ignored).type();
  if (type == fs::file_type::regular || type == fs::file_type::not_found) return "";
  if (link) return "a link to something that is no file";
  if (type != fs::file_type::directory) return "a device, a socket or a FIFO";
  if (target.extension() == ".ms" && is_measurement_set(target)) return "";
  return "a directory that is no Measurement Set";
}

/// Fallback for file systems without renameat2 flags (some network and fuse ones answer EINVAL).
int rename_without_flags(const fs::path& from, const fs::path& to, bool overwrite) {
  if (exists_no_follow(to)) {
    if (!overwrite) return EEXIST;
    if (fs::is_directory(fs::symlink_status(to))) fs::remove_all(to);
  }
  return ::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

void remove_part(const std::string& final_path) {
  std::error_code error;
  fs::remove_all(part_path(final_path), error);
  if (!error) fs::remove(journal_of(part_path(final_path)), error);
  if (error)
    throw IoError::from_errno("remove the unfinished", part_path(final_path), error.value(), true);
}

/// @pre the lock is held. What a killed run wrote is data: a later run of the same name must not
/// lose it.
std::string rename_part_aside(const std::string& final_path) {
  const std::string part = part_path(final_path);
  const auto journal_follows = [&](const std::string& name) {
    std::error_code ignored;  // without it the product is as lost as it was
    if (exists_no_follow(journal_of(part))) fs::rename(journal_of(part), journal_of(name), ignored);
    return name;
  };
  if (!exists_no_follow(part)) return "";
  const std::string stem = part.substr(0, part.size() - std::string_view("part").size()) + "dead";
  for (int k = 1;; ++k) {
    const std::string name = k == 1 ? stem : stem + std::to_string(k);
    if (::renameat2(AT_FDCWD, part.c_str(), AT_FDCWD, name.c_str(), RENAME_NOREPLACE) == 0)
      return journal_follows(name);
    if (errno == EEXIST) continue;
    if (errno == EINVAL || errno == ENOSYS) {  // no flags on this file system
      if (exists_no_follow(name)) continue;
      if (::rename(part.c_str(), name.c_str()) == 0) return journal_follows(name);
    }
    throw IoError::from_errno("put aside the unfinished", part, errno, true);
  }
}

int rename_final(const fs::path& from, const fs::path& to, bool overwrite) {
  const int fault = injected_fault("rename", to.string());
  if (fault != 0) return fault;
  if (overwrite && exists_no_follow(to)) {
    // Again: hours may have passed since the product was begun.
    if (!reason_to_keep(to).empty()) return EEXIST;
    // Exchange is atomic for files and directories alike; the old product is then the .part and
    // goes.
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
      std::error_code ignored;
      fs::remove_all(from, ignored);
      return 0;
    }
  } else if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return 0;
  }
  if (errno == EINVAL || errno == ENOSYS || errno == ENOENT)
    return rename_without_flags(from, to, overwrite);
  return errno;
}

}  // namespace

void set_publish_fault_hook(FaultHook hook) {
  const std::scoped_lock guard(fault_mutex());
  fault_hook() = std::move(hook);
}

int injected_fault(std::string_view operation, const std::string& path) {
  const std::scoped_lock guard(fault_mutex());
  return fault_hook() ? fault_hook()(operation, path) : 0;
}

std::string part_path(const std::string& final_path) {
  const fs::path p = clean(final_path);
  return (p.parent_path() / ("." + p.filename().string() + ".part")).string();
}

void require_creatable(const std::string& final_path, bool overwrite) {
  const fs::path target = clean(final_path);
  const fs::path directory = directory_of(target);
  if (!target.has_filename() || target.filename() == "." || target.filename() == "..") {
    throw IoError(ExitCode::cannot_create, "cannot create \"" + final_path + "\": not a file name");
  }
  if (!fs::is_directory(directory)) {
    throw IoError(ExitCode::cannot_create, "cannot create " + final_path + ": " +
                                               directory.string() +
                                               " is not a directory; make it first (mkdir -p)");
  }
  if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    throw IoError::from_errno("create " + target.filename().string() + " in", directory.string(),
                              errno, true);
  }
  if (!overwrite && exists_no_follow(target)) throw already_there(final_path);
  if (const std::string kept = reason_to_keep(target); !kept.empty())
    throw IoError(ExitCode::cannot_create,
                  "cannot replace " + final_path + ": it is " + kept +
                      ", and overwriting replaces files and Measurement Sets only; give the name "
                      "of a file, or move it away");
  if (!held_here(final_path) && part_in_use(final_path)) throw in_use(final_path);
}

void require_all_creatable(const std::vector<std::string>& final_paths, bool overwrite) {
  std::set<fs::path> names;
  for (const auto& path : final_paths) {
    if (path.empty()) continue;
    require_creatable(path, overwrite);
    if (!names.insert(clean(path)).second)
      throw ConfigError(path + ": two products would have this name; give each its own");
  }
}

void require_creatable_in(const std::string& folder, const std::vector<std::string>& final_paths,
                          bool overwrite) {
  if (folder.empty() || fs::exists(folder)) {
    if (!folder.empty() && !fs::is_directory(folder))
      throw IoError(ExitCode::cannot_create, "cannot create " + folder + ": it is no directory");
    return require_all_creatable(final_paths, overwrite);
  }
  fs::path above = clean(fs::absolute(folder).string());
  while (above.has_parent_path() && above != above.parent_path() && !exists_no_follow(above))
    above = above.parent_path();
  if (!fs::is_directory(above))
    throw IoError(ExitCode::cannot_create,
                  "cannot create " + folder + ": " + above.string() + " is no directory");
  if (::access(above.c_str(), W_OK | X_OK) != 0)
    throw IoError::from_errno("create " + folder + " in", above.string(), errno, true);
}

void require_ending(const std::string& path, const std::string& option,
                    const std::vector<std::string>& endings) {
  if (path.empty()) return;
  const std::string ending = lower_case(clean(path).extension().string());
  if (std::find(endings.begin(), endings.end(), ending) != endings.end()) return;
  throw ConfigError(option + " " + path + ": the name must end in " + comma_separated(endings) +
                    "; " + fs::path(clean(path)).replace_extension(endings.front()).string() +
                    " would do");
}

void require_room(const std::string& directory, double bytes, const std::string& what) {
  std::error_code error;
  const auto space = fs::space(directory, error);
  if (error || static_cast<double>(space.available) >= bytes) return;
  char needed[32];
  std::snprintf(needed, sizeof needed, "%.0f", bytes);
  throw IoError(ExitCode::io, "cannot begin to write in " + directory + ": " +
                                  std::to_string(space.available) +
                                  " bytes are free on its disk, " + what + " take " + needed +
                                  "; free space, write elsewhere, or ask for less");
}

void prepare_part(const std::string& final_path, bool overwrite) {
  require_creatable(final_path, overwrite);
  const int fault = injected_fault("create", final_path);
  if (fault != 0) throw IoError::from_errno("create", final_path, fault, true);
  take_lock(final_path);
  try {
    // These can be read without their end (unfinished.hpp).
    !overwrite&& is_recoverable(final_path) ? void(rename_part_aside(final_path))
                                            : remove_part(final_path);
  } catch (...) {
    release_lock(final_path);
    throw;
  }
}

bool part_in_use(const std::string& final_path) {
  if (held_here(final_path)) return true;
  const Descriptor fd(::open(lock_path(final_path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  return fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0;
}

std::string set_aside_part(const std::string& final_path) {
  take_lock(final_path);
  std::string name;
  try {
    name = rename_part_aside(final_path);
  } catch (...) {
    release_lock(final_path);
    throw;
  }
  release_lock(final_path);
  return name;
}

void discard_dead_part(const std::string& final_path) {
  take_lock(final_path);
  discard_part(final_path);
}

void publish_part(const std::string& final_path, bool overwrite) {
  const fs::path part = part_path(final_path);
  const fs::path target = clean(final_path);
  int rename_error = 0;
  try {
    fsync_tree(part);
    rename_error = rename_final(part, target, overwrite);
  } catch (const fs::filesystem_error& error) {
    leave_part(final_path);
    throw IoError::from_errno("publish", final_path, error.code().value(), true);
  } catch (...) {
    leave_part(final_path);
    throw;
  }
  if (rename_error == 0) {
    std::error_code ignored;
    fs::remove(journal_of(part.string()), ignored);
  }
  release_lock(final_path);
  if (rename_error ==
      EEXIST) {  // somebody took the name while we wrote: the data are complete, so they stay
    throw IoError(ExitCode::cannot_create, "cannot rename the finished " + part.string() + " to " +
                                               final_path +
                                               ": the name now exists; rename it by hand");
  }
  if (rename_error != 0) {
    leave_part(final_path);
    throw IoError::from_errno("rename " + part.string() + " to", final_path, rename_error, true);
  }
  fsync_path(directory_of(target), true);
}

void discard_part(const std::string& final_path) noexcept {
  try {
    std::error_code ignored;
    fs::remove_all(part_path(final_path), ignored);
    fs::remove(journal_of(part_path(final_path)), ignored);
  } catch (...) {  // out of memory: a .part left behind is never mistaken for a product
  }
  release_lock(final_path);
}

Part::Part(std::string final_path, bool overwrite)
    : path_(std::move(final_path)), overwrite_(overwrite) {
  prepare_part(path_, overwrite_);
}

void Part::publish() {
  open_ = false;
  publish_part(path_, overwrite_);
}

void Part::discard() noexcept {
  if (std::exchange(open_, false)) discard_part(path_);
}

bool is_recoverable(const std::string& final_path) {
  const std::string suffix = clean(final_path).extension().string();
  // Image cubes are .h5 or .hdf5; of beams under these names recovery says that it cannot read
  // them.
  return suffix == ".uvh5" || suffix == ".uvfits" || suffix == ".ms" || suffix == ".fil" ||
         suffix == ".h5" || suffix == ".hdf5";
}

void leave_part(const std::string& final_path) noexcept {
  try {
    if (is_recoverable(final_path)) {
      release_lock(final_path);
      return;
    }
  } catch (...) {  // out of memory
  }
  discard_part(final_path);
}

std::string kept_in_part(const std::string& final_path, std::int64_t n_whole) {
  if (n_whole < 1) return "";
  return "; " + std::to_string(n_whole) +
         (n_whole == 1 ? " whole integration stays in " : " whole integrations stay in ") +
         part_path(final_path) + ": make room, then `ryle recover` of it";
}

std::string journal_of(const std::string& unfinished_path) { return unfinished_path + ".journal"; }

void remove_unfinished(const std::string& unfinished_path) {
  fs::remove_all(unfinished_path);
  fs::remove(journal_of(unfinished_path));
}

void publish_bytes(const std::string& final_path, std::string_view bytes, bool overwrite) {
  io::PartFile file(final_path, overwrite);
  file.write(bytes.data(), bytes.size());
  file.finish();
}

}  // namespace ryle
