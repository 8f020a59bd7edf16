// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/manifest.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "ryle/core/descriptor.hpp"
#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/base/sha256.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;

ProductDigest digest_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError::from_errno("read", path.string(), errno);
  io::Sha256 hash;
  ProductDigest digest;
  std::vector<char> buffer(1 << 20);
  while (in) {
    in.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto n = static_cast<std::size_t>(in.gcount());
    hash.update({buffer.data(), n});
    digest.bytes += static_cast<std::int64_t>(n);
  }
  if (in.bad()) throw IoError::from_errno("read", path.string(), EIO);
  digest.sha256 = hash.hex();
  return digest;
}

std::string relative_name(const fs::path& path, const fs::path& manifest) {
  const fs::path from = fs::absolute(manifest).lexically_normal().parent_path();
  return fs::absolute(path).lexically_normal().lexically_relative(from).string();
}

/// 0 or an errno; on an error the file is as it was.
int write_line(int fd, std::string line, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return errno;
  char last = '\n';
  if (info.st_size > 0 && ::pread(fd, &last, 1, info.st_size - 1) != 1) return errno;
  if (last != '\n') line.insert(line.begin(), '\n');  // what a kill left of a line is ended
  int error = injected_fault("write", path);
  if (error == 0) {
    errno = ENOSPC;  // what a short write means
    if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) error = errno;
  }
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  if (error != 0) std::ignore = ::ftruncate(fd, info.st_size);
  return error;
}

void sync_directory(const fs::path& file) {
  const std::string directory = file.parent_path().empty() ? "." : file.parent_path().string();
  int error = injected_fault("fsync_directory", directory);
  const Descriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (error == 0 && (!fd || ::fsync(fd.get()) != 0)) error = errno;
  if (error != 0) throw IoError::from_errno("make durable (fsync)", directory, error);
}

void append_line(const fs::path& manifest, const std::string& line) {
  constexpr int kFlags = O_RDWR | O_APPEND | O_CLOEXEC;
  Descriptor fd(::open(manifest.c_str(), kFlags));
  const bool created = !fd && errno == ENOENT;
  if (created) fd = Descriptor(::open(manifest.c_str(), kFlags | O_CREAT, 0644));
  if (!fd) throw IoError::from_errno("create", manifest.string(), errno, true);
  const int error = write_line(fd.get(), line, manifest.string());
  fd.close();
  if (error != 0) throw IoError::from_errno("write", manifest.string(), error);
  if (created) sync_directory(manifest);
}

}  // namespace

ProductDigest digest_of(const std::string& path) {
  if (!fs::is_directory(path)) return digest_of_file(path);
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file())
      names.push_back(entry.path().lexically_relative(path).generic_string());
  }
  std::sort(names.begin(), names.end());
  ProductDigest total;
  io::Sha256 hash;
  for (const auto& name : names) {
    const ProductDigest one = digest_of_file(fs::path(path) / name);
    total.bytes += one.bytes;
    hash.update(one.sha256 + "  " + name + "\n");
  }
  total.sha256 = hash.hex();
  return total;
}

void append_manifest(const std::string& manifest_path, const ManifestEntry& entry) {
  const fs::path manifest(manifest_path);
  const ProductDigest digest = digest_of(entry.path);
  const std::string line = nlohmann::ordered_json{{"name", relative_name(entry.path, manifest)},
                                                  {"bytes", digest.bytes},
                                                  {"sha256", digest.sha256},
                                                  {"segment", entry.segment},
                                                  {"start_utc", utc_iso(entry.start_tai_ns, 9)},
                                                  {"start_tai_ns", entry.start_tai_ns},
                                                  {"end_tai_ns", entry.end_tai_ns},
                                                  {"integrations", entry.integrations}}
                               .dump() +
                           "\n";
  append_line(manifest, line);
}

}  // namespace ryle
