// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/manifest.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/sha256.hpp"
#include "ryle/product/publish.hpp"
#include "ryle/telescope/geometry.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;

ProductDigest digest_of_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError::from_errno("read", path.string(), errno);
  Sha256 hash;
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
  Sha256 hash;
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
  const std::string line =
      nlohmann::ordered_json{
          {"name", fs::path(entry.path).lexically_relative(manifest.parent_path()).string()},
          {"bytes", digest.bytes},
          {"sha256", digest.sha256},
          {"segment", entry.segment},
          {"start_utc", utc_iso(entry.start_tai_ns, 9)},
          {"start_tai_ns", entry.start_tai_ns},
          {"end_tai_ns", entry.end_tai_ns},
          {"integrations", entry.integrations}}
          .dump() +
      "\n";
  const int fd = ::open(manifest.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) throw IoError::from_errno("create", manifest_path, errno, true);
  int error = injected_fault("write", manifest_path);
  // One write: a line is there whole or not at all.
  if (error == 0) {
    errno = ENOSPC;  // what a short write means
    if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) error = errno;
  }
  if (error == 0 && ::fsync(fd) != 0) error = errno;
  ::close(fd);
  if (error != 0) throw IoError::from_errno("write", manifest_path, error);
}

}  // namespace ryle
