// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>

namespace ryle {

/// Size and fingerprint of a product. A directory (Measurement Set): the bytes of its files, and
/// the SHA-256 of the list "SHA256  PATH\n" of them in the order of their relative paths, as
/// `sha256sum` prints it.
struct ProductDigest {
  std::int64_t bytes = 0;
  std::string sha256;
};
ProductDigest digest_of(const std::string& path);

/// One published product of a run.
struct ManifestEntry {
  std::string path;
  std::int64_t segment = 0;  ///< counts from 1
  std::int64_t start_tai_ns = 0;
  std::int64_t end_tai_ns = 0;
  std::int64_t integrations = 0;
};

/// Appends one JSON line {name, bytes, sha256, segment, start_utc, start_tai_ns, end_tai_ns,
/// integrations} and makes it durable; `name` is relative to the manifest. A line once written is
/// never changed, so that a kill leaves all lines but perhaps the last whole; a line that cannot be
/// written leaves the manifest as it was.
void append_manifest(const std::string& manifest_path, const ManifestEntry& entry);

}  // namespace ryle
