// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ryle::fuzz {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kAllWhole = SIZE_MAX;

/// One fuzz target: takes any bytes, aborts when an invariant breaks (ingest.md 11). The same
/// bodies run under libFuzzer (fuzz_NAME, clang with RYLE_FUZZ=ON) and, over seeds and random
/// damage, in the default tests.
struct Body {
  std::string_view name;
  void (*run)(std::span<const std::byte>);
  /// Whole inputs to begin with; null: those of packets and recordings.
  std::vector<Bytes> (*seeds)() = nullptr;
  /// So many of the seeds, the first ones, are files that must be taken; the others are damaged.
  std::size_t n_whole = kAllWhole;
  /// The values of a file that was taken, where checksums protect them: a damaged file gives the
  /// same or is rejected.
  std::optional<std::string> (*values)(std::span<const std::byte>) = nullptr;
  /// Whether they protect the byte at this place; null: all.
  bool (*protects)(std::span<const std::byte>, std::size_t) = nullptr;
};

/// All of them, and those of one file each.
std::vector<Body> bodies();
std::vector<Body> packet_bodies();  ///< packets, headers, recordings, scans, the live assembler
std::vector<Body> file_bodies();    ///< visibilities, filterbanks, maps, what a kill left
std::vector<Body> table_bodies();   ///< text: tables, XML, ephemerides, masks
std::vector<Body> stage_bodies();   ///< observations, triggers, sums of the gridder

/// Aborts with `what`.
void require(bool condition, const char* what);
/// A file in memory that holds `data`, by its name. The next call with this `slot` replaces it.
std::string memory_file(std::span<const std::byte> data, int slot = 0);
/// Whether `read` took its file. Every rejection is a sentence with a code that says whose fault it
/// is (65, 66, 69, 78); anything else (a broken invariant, a wrong size given to the system, an
/// exception of a library) breaks an invariant.
bool accepts(const std::function<void()>& read);
/// What `read` gives, nothing when accepts() says no.
std::optional<std::string> values_if_accepted(const std::function<std::string()>& read);
/// The bytes of `all` as text.
template <class T>
std::string raw_text(const std::vector<T>& all) {
  return {reinterpret_cast<const char*>(all.data()), all.size() * sizeof(T)};
}
/// How many files were taken since the program began.
std::int64_t n_accepted();
/// Why the last file that was not taken was not.
const std::string& last_rejection();
Bytes bytes_of(const std::string& text);
std::string text_of(std::span<const std::byte> data);

}  // namespace ryle::fuzz
