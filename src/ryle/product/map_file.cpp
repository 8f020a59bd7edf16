// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/product/map_file.hpp"

#include <optional>
#include <type_traits>

#include "ryle/core/error.hpp"
#include "ryle/product/fits_file.hpp"
#include "ryle/product/map_header.hpp"
#include "ryle/product/publish.hpp"

namespace ryle {

struct MapFileWriter::Content {
  std::string path;
  bool overwrite = false;
  Values values = Values::float32;
  std::int64_t plane_size = 0, n_planes = 0, n_written = 0;
  std::int64_t n_stokes = 1;
  std::optional<product::FitsFile> file;

  void header(const MapProjection& projection, const MapFacts& facts) {
    int status = 0;
    for (const std::string& card : projection.cards())
      fits_write_record(file->get(), card.c_str(), &status);
    file->check(status, "write the coordinates of");
    product::write_spectral_axis(*file, 3, n_planes / n_stokes, facts);
    if (n_stokes > 1) product::write_stokes_axis(*file, 4, facts);
    product::write_map_facts(*file, facts);
  }

  template <class T, class Write>
  void append(const T* plane, const Write& write) {
    if (std::is_floating_point_v<T> != (values == Values::float32))
      throw ConfigError(path + ": a plane of another type than the file was made for");
    if (n_written == n_planes)
      throw ConfigError(path + ": more planes than the " + std::to_string(n_planes) + " announced");
    if (const int fault = injected_fault("write", path); fault != 0)
      throw IoError::from_errno("write", path, fault);
    int status = 0;
    write(file->get(), 1 + n_written * plane_size, plane_size, const_cast<T*>(plane), &status);
    file->check(status, "write");
    ++n_written;
  }
};

MapFileWriter::MapFileWriter(const std::string& path, const MapProjection& projection,
                             std::int64_t n_planes, Values values, const MapFacts& facts,
                             bool overwrite)
    : content_(std::make_unique<Content>()) {
  Content& c = *content_;
  c.path = path;
  c.overwrite = overwrite;
  c.values = values;
  c.plane_size = projection.width() * projection.height();
  c.n_planes = n_planes;
  if (n_planes > 1 && facts.stokes.size() > 1)
    c.n_stokes = static_cast<std::int64_t>(facts.stokes.size());
  if (n_planes % c.n_stokes != 0)
    throw ConfigError(path + ": " + std::to_string(n_planes) + " planes are not the same for " +
                      std::to_string(c.n_stokes) + " polarizations");
  prepare_part(path, overwrite);
  try {
    c.file.emplace(product::FitsFile::create(part_path(path), path));
    LONGLONG axes[4] = {projection.width(), projection.height(), n_planes / c.n_stokes, c.n_stokes};
    int status = 0;
    fits_create_imgll(c.file->get(), values == Values::float32 ? FLOAT_IMG : LONG_IMG,
                      c.n_stokes > 1 ? 4 : 3, axes, &status);
    c.file->check(status, "create a cube in");
    c.header(projection, facts);
    // Room for cards that come after the data: else a cube would move for them.
    constexpr int kLaterCards = 36;
    fits_set_hdrsize(c.file->get(), kLaterCards, &status);
    c.file->check(status, "make room in the header of");
  } catch (...) {
    c.file.reset();
    discard_part(path);
    throw;
  }
}

MapFileWriter::~MapFileWriter() {
  if (content_->n_planes < 0) return;  // published
  content_->file.reset();
  discard_part(content_->path);
}

void MapFileWriter::append(const float* plane) {
  content_->append(plane, [](fitsfile* f, LONGLONG at, LONGLONG n, float* p, int* status) {
    fits_write_img_flt(f, 1, at, n, p, status);
  });
}
void MapFileWriter::append(const std::int32_t* plane) {
  content_->append(plane, [](fitsfile* f, LONGLONG at, LONGLONG n, std::int32_t* p, int* status) {
    fits_write_img_int(f, 1, at, n, p, status);
  });
}

void MapFileWriter::add_history(const std::vector<std::string>& lines) {
  content_->file->history(lines);
}

product::FitsFile& MapFileWriter::complete_file() {
  Content& c = *content_;
  if (c.n_written != c.n_planes)
    throw ConfigError(c.path + ": " + std::to_string(c.n_written) + " of " +
                      std::to_string(c.n_planes) + " planes written");
  return *c.file;
}

void MapFileWriter::publish() {
  Content& c = *content_;
  complete_file().checksum();
  c.file->close();
  publish_part(c.path, c.overwrite);
  c.n_planes = -1;
}

}  // namespace ryle
