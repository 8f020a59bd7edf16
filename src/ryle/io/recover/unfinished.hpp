// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ryle/io/visibility/visibility_file.hpp"

namespace ryle {

/// A product whose writer was killed: ".NAME.part", or ".NAME.dead" once a later run of the same
/// name has put it aside (products.md 5).
struct Unfinished {
  std::string path;        ///< what is there
  std::string final_path;  ///< the name it would have got
  bool in_use = false;     ///< a living process is writing it
  std::int64_t bytes = 0;  ///< of the file, or of all files of a directory
};

/// What is left behind in a directory, of one product (its final name) or in one hidden file,
/// sorted by name; UVH5 before others of the same name. Throws IoError when there is no such place.
std::vector<Unfinished> find_unfinished(const std::string& where);

/// What became of one of them.
struct Recovered {
  enum class Outcome : std::uint8_t {
    in_use,      ///< left alone
    whole,       ///< (not asked to write) it has whole integrations
    published,   ///< they are in `product`
    nothing,     ///< no whole integration in it
    lost,        ///< cannot be read; `message` says why
    not_judged,  ///< this build cannot tell; left alone
    failed,      ///< it has whole integrations, they could not be published; the source stays
  };
  Unfinished source;
  Outcome outcome = Outcome::lost;
  std::int64_t integrations = 0;     ///< whole ones; of other kinds: of `unit`
  std::string unit = "integration";  ///< of an image cube "image", of a filterbank "spectrum"
  std::string product;
  bool removed = false;  ///< the source is gone
  std::string message;
};

struct RecoverOptions {
  bool write = true;    ///< publish; else only look
  bool remove = false;  ///< also remove what holds nothing whole or cannot be read
  bool measurement_sets = measurement_sets_supported();  ///< false: Measurement Sets are not judged
};

/// Publishes the whole integrations (images, spectra) of each as a new product under its final
/// name, or, when that is taken or another file waits for it, as NAME_recovered; the source goes
/// only after that. UVFITS whose journal is missing is made again from the UVH5 file of the same
/// run recovered before it; so is a Measurement Set killed within a flush, which casacore cannot
/// open; what was replaced that way stays. Throws nothing of a single product: it is `lost`, or
/// `failed`.
std::vector<Recovered> recover(const std::vector<Unfinished>& sources,
                               const RecoverOptions& options);

}  // namespace ryle
