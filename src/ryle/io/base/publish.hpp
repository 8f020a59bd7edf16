// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ryle {

/// Name under which a product grows: ".NAME.part" in the same directory.
std::string part_path(const std::string& final_path);
/// Throws IoError when the product could not be made: its directory is missing or cannot be
/// written, the name exists and not `overwrite`, or overwriting would replace a directory that is
/// no Measurement Set, a device, a socket or a FIFO, or another live process writes the same
/// product. Changes nothing: for a check before the first sample is read.
void require_creatable(const std::string& final_path, bool overwrite);
/// The same of all names but the empty ones; throws ConfigError where two of them are one.
void require_all_creatable(const std::vector<std::string>& final_paths, bool overwrite);
/// The same for products of a folder that is made when it is not there: then throws where it could
/// not be made. Makes nothing. "" is no folder.
void require_creatable_in(const std::string& folder, const std::vector<std::string>& final_paths,
                          bool overwrite);
/// Throws ConfigError, which begins with the option, for a name that ends otherwise; capitals and
/// empty names pass. `endings` are written with their dot; the first one is recommended.
void require_ending(const std::string& path, const std::string& option,
                    const std::vector<std::string>& endings);
/// Throws IoError (ExitCode::io) where the disk of a directory has fewer bytes free; `what` takes
/// them. A directory that is not there has room.
void require_room(const std::string& directory, double bytes, const std::string& what);
/// require_creatable, then takes the lock of the product. A dead .part that `ryle recover` can read
/// is put aside for it; others, and any with `overwrite`, are removed.
void prepare_part(const std::string& final_path, bool overwrite);
/// fsync (files of a directory one by one), rename to the final name, fsync the directory. After a
/// failed fsync throws, leaves nothing under the final name (products.md 5), and the .part to
/// leave_part().
void publish_part(const std::string& final_path, bool overwrite);
/// Removes the .part (file or directory), ignoring that it may not exist.
void discard_part(const std::string& final_path) noexcept;
/// A product that grows under its temporary name. What is not published when it ends is removed:
/// in a writer it stands before the file, which is closed first.
class Part {
 public:
  /// As prepare_part().
  Part(std::string final_path, bool overwrite);
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  ~Part() { discard(); }
  const std::string& path() const { return path_; }  ///< the final one
  std::string unfinished() const { return part_path(path_); }
  /// As publish_part(). @pre the file is closed
  void publish();
  void discard() noexcept;  ///< now

 private:
  std::string path_;
  bool overwrite_, open_ = true;
};
/// What its whole integrations can be read of without its end stays: the .part is left to
/// `ryle recover`, unlocked. Others are removed as by discard_part().
void leave_part(const std::string& final_path) noexcept;
/// Products of which leave_part() leaves something: .uvh5, .uvfits, .ms, .fil, .h5 and .hdf5.
bool is_recoverable(const std::string& final_path);
/// "; N whole integrations stay in .NAME.part: ...", empty for none.
std::string kept_in_part(const std::string& final_path, std::int64_t n_whole);
/// A file beside an unfinished product that says what is whole in it; it goes where that goes.
std::string journal_of(const std::string& unfinished_path);
/// Removes an unfinished product of any name, with its journal. Throws std::filesystem_error.
void remove_unfinished(const std::string& unfinished_path);

/// A living process, this one included, is writing the product.
bool part_in_use(const std::string& final_path);
/// Renames a dead .part to ".NAME.dead" (or .dead2, ...) and returns that name; empty when there is
/// none. Throws IoError when it is in use.
std::string set_aside_part(const std::string& final_path);
/// As discard_part, for a .part nobody writes: takes its lock first, throws IoError when it is in
/// use.
void discard_dead_part(const std::string& final_path);

/// Writes bytes to the .part of final_path and publishes it: for products made whole in memory.
void publish_bytes(const std::string& final_path, std::string_view bytes, bool overwrite);

/// For tests: called before each "create", "write", "fsync", "rename" and "fsync_directory" with
/// the path; the errno it returns is reported as if the system had (0 = go on). An empty function
/// removes it. Not for concurrent use.
using FaultHook = std::function<int(std::string_view operation, const std::string& path)>;
void set_publish_fault_hook(FaultHook hook);
/// What the hook says of this operation; writers ask before theirs, so that injected faults reach
/// every format.
int injected_fault(std::string_view operation, const std::string& path);

}  // namespace ryle
