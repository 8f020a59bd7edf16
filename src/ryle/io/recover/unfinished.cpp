// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/recover/unfinished.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>

#include "ryle/core/error.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/beam/sigproc.hpp"
#include "ryle/io/image/image_cube.hpp"
#include "ryle/io/visibility/visibility_layout.hpp"

namespace ryle {
namespace {

namespace fs = std::filesystem;
using Outcome = Recovered::Outcome;

std::int64_t bytes_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    const std::uintmax_t size = fs::file_size(path, ignored);
    return ignored ? 0 : static_cast<std::int64_t>(size);
  }
  std::int64_t total = 0;
  for (const auto& entry : fs::recursive_directory_iterator(path, ignored)) {
    if (entry.is_regular_file(ignored))
      total += static_cast<std::int64_t>(entry.file_size(ignored));
  }
  return total;
}

/// "vis.uvh5" of ".vis.uvh5.part" and ".vis.uvh5.dead2"; empty for other names.
std::string product_of(const std::string& name) {
  if (name.size() < 3 || name[0] != '.') return "";
  const std::size_t dot = name.rfind('.');
  const std::string last = name.substr(dot);
  const bool part = last == ".part";
  const bool dead =
      last.rfind(".dead", 0) == 0 && last.find_first_not_of("0123456789", 5) == std::string::npos;
  return (part || dead) && dot > 1 ? name.substr(1, dot - 1) : "";
}

/// UVH5 first: the others may be made from it.
int rank_of(const std::string& final_path) {
  return fs::path(final_path).extension() == ".uvh5" ? 0 : 1;
}

Unfinished describe(const fs::path& path, const std::string& product) {
  Unfinished found;
  found.path = path.string();
  found.final_path = (path.parent_path() / product).string();
  found.in_use = path.extension() == ".part" && part_in_use(found.final_path);
  found.bytes = bytes_of(path);
  return found;
}

/// When the file came into being, in ns; on a file system that does not keep it, when it was last
/// written. Renaming changes neither.
std::int64_t born_ns(const std::string& path) {
  struct statx info {};
  if (::statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME | STATX_MTIME, &info) != 0)
    return 0;
  const auto& time = (info.stx_mask & STATX_BTIME) != 0 ? info.stx_btime : info.stx_mtime;
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// The files of a run are opened one after the other before its first integration.
constexpr std::int64_t kOpening_ns = 5'000'000'000;

bool same_stem(const std::string& a, const std::string& b) {
  const fs::path first(a);
  const fs::path second(b);
  return first.parent_path() == second.parent_path() && first.stem() == second.stem();
}

VisibilityFile read_unfinished(const Unfinished& source) {
  const std::string suffix = fs::path(source.final_path).extension().string();
  if (suffix == ".uvh5") return io::read_unfinished_uvh5(source.path);
  if (suffix == ".ms") return io::read_unfinished_measurement_set(source.path);
  if (suffix == ".uvfits") {
    if (!fs::exists(journal_of(source.path)))
      throw UnsupportedError(
          "its journal is missing, and the header of a UVFITS file is written "
          "at its end");
    return io::read_unfinished_uvfits(source.path);
  }
  if (suffix == ".h5" || suffix == ".hdf5")
    throw UnsupportedError("it is no image cube, or one without an image");
  if (suffix == ".fits") {
    throw UnsupportedError(
        "the images of a FITS file are closed together, at its end; the HDF5 cube of a run "
        "(image.hdf5) keeps every one");
  }
  throw UnsupportedError("it is made whole at the end of a run, from the visibilities");
}

std::string free_name(const std::string& final_path) {
  const fs::path path(final_path);
  std::string name = final_path;
  // A run may be writing the name again while we recover what an earlier one left; and what else is
  // unfinished under it must not be put aside by our writer.
  const auto taken = [](const std::string& n) {
    return fs::exists(fs::symlink_status(n)) || part_in_use(n) ||
           fs::exists(fs::symlink_status(part_path(n)));
  };
  for (int k = 1; taken(name); ++k) {
    name = (path.parent_path() / (path.stem().string() + "_recovered" +
                                  (k == 1 ? "" : std::to_string(k)) + path.extension().string()))
               .string();
  }
  return name;
}

void publish(const VisibilityFile& file, const std::string& name) {
  Observation observation = file.observation;
  observation.provenance.notes["recovered"] =
      std::to_string(file.dumps.size()) + " whole integrations of a file whose writer was killed";
  const auto writer = open_visibility_writer(name, observation, false);
  for (const auto& dump : file.dumps) writer->write(dump);
  writer->publish(observation);
}

/// The header and the whole spectra of a filterbank that grew: it has no length in its header.
struct FilterbankExtent {
  std::int64_t n_spectra = 0;
  std::int64_t bytes = 0;  // up to the end of the last whole spectrum
};

FilterbankExtent whole_spectra(const Unfinished& source) {
  constexpr std::size_t kHeaderBytes = 1 << 16;
  std::string bytes(kHeaderBytes, '\0');
  std::ifstream in(source.path, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(in.gcount());
  const SigprocHeader header = parse_sigproc_header(bytes, source.path);
  const double bits =
      header.number("nchans", 0) * header.number("nifs", 1) * header.number("nbits", 0);
  if (!(bits >= 8 && bits <= 1e9)) throw FormatError(source.path + ": the header has no channels");
  const std::int64_t spectrum_bytes = static_cast<std::int64_t>(bits) / 8;
  FilterbankExtent extent;
  extent.n_spectra = std::max<std::int64_t>(0, source.bytes - header.header_bytes) / spectrum_bytes;
  extent.bytes = header.header_bytes + extent.n_spectra * spectrum_bytes;
  return extent;
}

void remove_source(Recovered& result) {
  try {
    remove_unfinished(result.source.path);
    result.removed = true;
  } catch (const fs::filesystem_error& error) {
    result.message += "; cannot remove " + result.source.path + ": " + error.code().message();
  }
}

struct Published {
  std::string final_path;
  std::string product;  // the name it got
  std::int64_t born_ns = 0;
};

class Recovery {
 public:
  explicit Recovery(const RecoverOptions& options) : options_(options) {}

  Recovered one(const Unfinished& source) {
    Recovered result;
    result.source = source;
    if (source.in_use) {
      result.outcome = Outcome::in_use;
      return result;
    }
    if (fs::path(source.final_path).extension() == ".ms" && !options_.measurement_sets) {
      result.outcome = Outcome::not_judged;
      result.message = "this build has no casacore and cannot tell what is in it; left alone";
      return result;
    }
    try {
      if (fs::path(source.final_path).extension() == ".fil") {
        salvage_filterbank(result);
      } else if (is_image_cube(source.path)) {
        salvage_cube(result);
      } else {
        salvage(read_own_or_sibling(source, result), result);
      }
      if (result.outcome == Outcome::nothing && options_.remove) remove_useless(result);
    } catch (const std::bad_alloc&) {  // says nothing of the file
      fail(result, "out of memory");
    } catch (const std::exception& error) {
      if (result.integrations > 0) {
        fail(result, error.what());
      } else {
        result.message = error.what();
        if (options_.remove) remove_useless(result);
      }
    }
    return result;
  }

 private:
  static void fail(Recovered& result, const std::string& why) {
    result.outcome = Outcome::failed;
    result.product.clear();
    result.message += (result.message.empty() ? "" : "; ") + why;
  }

  static void remove_useless(Recovered& result) {
    try {
      if (fs::path(result.source.path).extension() != ".part") {
        remove_source(result);
        return;
      }
      discard_dead_part(result.source.final_path);  // under its lock: the name may be a live run's
      result.removed = true;
    } catch (const Error& error) {  // a run has begun to write it
      result.message += std::string("; not removed: ") + error.what();
    }
  }

  VisibilityFile read_own_or_sibling(const Unfinished& source, Recovered& result) {
    try {
      return read_unfinished(source);
    } catch (const Error& error) {
      const Published* sibling = sibling_of(source);
      const bool visibilities = fs::path(source.final_path).extension() == ".uvfits" ||
                                fs::path(source.final_path).extension() == ".ms";
      if (sibling == nullptr || !visibilities) throw;
      result.message = "made again from " + sibling->product + " (" + error.what() + ")";
      return read_visibility_file(sibling->product);
    }
  }

  /// Several runs of one name may have been killed: of the files that carry it, the one opened
  /// together with this one.
  const Published* sibling_of(const Unfinished& source) const {
    const std::int64_t born = born_ns(source.path);
    const Published* best = nullptr;
    std::int64_t min_ns = kOpening_ns;
    for (const Published& p : published_) {
      const std::int64_t apart_ns = std::abs(p.born_ns - born);
      if (!same_stem(p.final_path, source.final_path) || apart_ns > min_ns) continue;
      best = &p;
      min_ns = apart_ns;
    }
    return best;
  }

  /// Cut after the last whole spectrum and renamed, not copied: filterbanks are large. There is no
  /// checksum in one, so that spectra a crash of the system did not bring to the disk stay zeros.
  void salvage_filterbank(Recovered& result) {
    result.unit = "spectrum";
    Unfinished& source = result.source;
    const FilterbankExtent extent = whole_spectra(source);
    result.integrations = extent.n_spectra;
    result.outcome = extent.n_spectra == 0 ? Outcome::nothing : Outcome::whole;
    if (extent.n_spectra == 0 || !options_.write) return;
    if (fs::path(source.path).extension() == ".part")
      source.path = set_aside_part(source.final_path);
    result.product = free_name(source.final_path);
    prepare_part(result.product, false);
    const std::string part = part_path(result.product);
    if (::truncate(source.path.c_str(), extent.bytes) != 0)
      throw IoError::from_errno("cut", source.path, errno, true);
    if (::rename(source.path.c_str(), part.c_str()) != 0)
      throw IoError::from_errno("rename", source.path, errno, true);
    source.path = part;
    publish_part(result.product, false);
    result.outcome = Outcome::published;
    result.removed = true;
  }

  void salvage_cube(Recovered& result) {
    result.unit = "image";
    Unfinished& source = result.source;
    result.integrations = count_whole_images(source.path);
    result.outcome = result.integrations == 0 ? Outcome::nothing : Outcome::whole;
    if (result.integrations == 0 || !options_.write) return;
    if (fs::path(source.path).extension() == ".part")
      source.path = set_aside_part(source.final_path);
    result.product = free_name(source.final_path);
    result.integrations = recover_image_cube(source.path, result.product, false);
    result.outcome = Outcome::published;
    remove_source(result);
  }

  void salvage(const VisibilityFile& file, Recovered& result) {
    result.integrations = static_cast<std::int64_t>(file.dumps.size());
    result.outcome = file.dumps.empty() ? Outcome::nothing : Outcome::whole;
    if (file.dumps.empty() || !options_.write) return;
    Unfinished& source = result.source;
    const std::int64_t born = born_ns(source.path);
    // Out of the way first: the new product grows under the same hidden name.
    if (fs::path(source.path).extension() == ".part")
      source.path = set_aside_part(source.final_path);
    result.product = free_name(source.final_path);
    publish(file, result.product);
    result.outcome = Outcome::published;
    const bool made_again = !result.message.empty();
    if (made_again) {  // nobody has read it
      result.message += "; " + source.path + " stays";
      return;
    }
    published_.push_back({source.final_path, result.product, born});
    remove_source(result);
  }

  const RecoverOptions& options_;
  std::vector<Published> published_;
};

}  // namespace

std::vector<Unfinished> find_unfinished(const std::string& where) {
  std::vector<Unfinished> found;
  const fs::path place(where);
  const std::string own = product_of(place.filename().string());
  std::error_code ignored;
  if (!own.empty()) {
    if (!fs::exists(fs::symlink_status(place))) throw IoError::from_errno("read", where, ENOENT);
    return {describe(place, own)};
  }
  const bool directory = fs::is_directory(place, ignored) && place.extension() != ".ms";
  const fs::path parent = directory ? place : place.parent_path();
  const std::string only = directory ? "" : place.filename().string();
  const fs::path listed = parent.empty() ? fs::path(".") : parent;
  if (!fs::is_directory(listed, ignored)) throw IoError::from_errno("read", where, ENOENT);
  for (const auto& entry : fs::directory_iterator(listed)) {
    const std::string product = product_of(entry.path().filename().string());
    if (product.empty() || (!only.empty() && product != only)) continue;
    found.push_back(describe(parent / entry.path().filename(), product));
  }
  if (found.empty() && !directory && !fs::exists(fs::symlink_status(place)))
    throw IoError::from_errno("read", where, ENOENT);
  std::sort(found.begin(), found.end(), [](const Unfinished& a, const Unfinished& b) {
    const auto key = [](const Unfinished& u) {
      const fs::path p(u.final_path);
      return std::make_tuple((p.parent_path() / p.stem()).string(), rank_of(u.final_path), u.path);
    };
    return key(a) < key(b);
  });
  return found;
}

std::vector<Recovered> recover(const std::vector<Unfinished>& sources,
                               const RecoverOptions& options) {
  Recovery recovery(options);
  std::vector<Recovered> results;
  for (const auto& source : sources) results.push_back(recovery.one(source));
  return results;
}

}  // namespace ryle
