// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/image/image_cube.hpp"

#include <algorithm>
#include <optional>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/io/base/crc32c.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/observation_json.hpp"
#include "ryle/io/base/publish.hpp"
#include "ryle/io/image/fits_image_header.hpp"

namespace ryle {
namespace {

using io::h5::Growing;
using io::h5::Handle;
namespace h5 = io::h5;

constexpr const char* kFormat = "ryle-image-cube 1";

hsize_t size_of(std::int64_t n) { return static_cast<hsize_t>(n); }

Handle latest_format() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);  // SWMR needs it
  return access;
}

Handle type_copy(hid_t type) { return {H5Tcopy(type), H5Tclose}; }

struct Rows {
  Growing images, weights, start, centroid, end, exposure, loss, ra, dec, north, crc;
};

}  // namespace

struct ImageCubeWriter::Impl {
  std::string path;
  Observation observation;
  bool overwrite;
  std::optional<SkyImage> shape{};  ///< the first image without its pixels
  Handle file{};
  Rows rows{};
  std::int64_t n_images = 0;
  bool done = false;

  void create(const SkyImage& image) {
    const Handle access = latest_format();
    file = Handle(H5Fcreate(part_path(path).c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()),
                  H5Fclose);
    h5::check(file.get(), "create", path);
    const Handle header(H5Gcreate2(file.get(), "Header", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                        H5Gclose);
    write_header(header.get(), image);
    const auto n = image.n_pixels;
    const auto n_stokes = size_of(static_cast<std::int64_t>(image.stokes.size()));
    const auto row = [&](const char* name, hid_t type, std::vector<hsize_t> chunk) {
      return Growing(file.get(), name, type_copy(type), std::move(chunk), path);
    };
    rows.images = row("images", H5T_IEEE_F32LE,
                      {1, n_stokes, size_of(image.n_channels), size_of(n), size_of(n)});
    rows.weights = row("weights", H5T_IEEE_F32LE, {1, n_stokes, size_of(image.n_channels)});
    rows.start = row("start_tai_ns", H5T_STD_I64LE, {64});
    rows.centroid = row("centroid_tai_ns", H5T_STD_I64LE, {64});
    rows.end = row("end_tai_ns", H5T_STD_I64LE, {64});
    rows.exposure = row("exposure_s", H5T_IEEE_F64LE, {64});
    rows.loss = row("loss_ppm", H5T_IEEE_F64LE, {64});
    rows.ra = row("ra_rad", H5T_IEEE_F64LE, {64});
    rows.dec = row("dec_rad", H5T_IEEE_F64LE, {64});
    rows.north = row("north_angle_rad", H5T_IEEE_F64LE, {64});
    rows.crc = row("crc32c", H5T_STD_U32LE, {64});
    h5::check(H5Fstart_swmr_write(file.get()), "start single-writer-multiple-reader mode of", path);
  }

  void write_header(hid_t h, const SkyImage& image) const {
    std::vector<std::int64_t> stokes(image.stokes.begin(), image.stokes.end());
    std::vector<double> center_hz, width_hz;
    for (std::int64_t k = 0; k < image.n_channels; ++k) {
      const FrequencyBin bin = frequency_bin(image, k);
      center_hz.push_back(bin.center_hz);
      width_hz.push_back(bin.width_hz);
    }
    h5::put_text(h, "format", kFormat, path);
    h5::put_array(h, "stokes", H5T_NATIVE_INT64, stokes.data(), {stokes.size()}, path);
    h5::put_array(h, "bin_center_hz", H5T_NATIVE_DOUBLE, center_hz.data(), {center_hz.size()},
                  path);
    h5::put_array(h, "bin_width_hz", H5T_NATIVE_DOUBLE, width_hz.data(), {width_hz.size()}, path);
    h5::put_double(h, "first_center_hz", image.frequency.first_center_hz, path);
    h5::put_double(h, "channel_width_hz", image.frequency.channel_width_hz, path);
    h5::put_int(h, "n_data_channels", image.frequency.n_channels, path);
    h5::put_int(h, "n_channels_per_bin", image.n_channels_per_bin, path);
    h5::put_double(h, "cell_direction_cosine", image.cell_direction_cosine, path);
    h5::put_double(h, "plane_alpha", image.plane_alpha, path);
    h5::put_double(h, "plane_beta", image.plane_beta, path);
    h5::put_text(h, "unit", image.unit, path);
    if (image.beam) {
      h5::put_double(h, "beam_major_rad", image.beam->major_rad, path);
      h5::put_double(h, "beam_minor_rad", image.beam->minor_rad, path);
      h5::put_double(h, "beam_position_angle_rad", image.beam->angle_rad, path);
    }
    h5::put_text(h, "path", image.metadata.path, path);
    h5::put_text(h, "function", image.metadata.function, path);
    h5::put_text(h, "gains_id", image.metadata.gains_id, path);
    h5::put_text(h, "implementation", image.metadata.implementation, path);
    h5::put_text(h, "observation_json", observation_to_json(observation), path);
  }

  void write_row(const SkyImage& image) {
    const auto one = [&](Growing& set, hid_t type, const auto& value) {
      set.append(type, &value, 1, path);
    };
    const std::size_t n_planes = image.stokes.size() * static_cast<std::size_t>(image.n_channels);
    const std::vector<float> none(n_planes, 1.0F);
    const bool per_plane = image.weights.size() == n_planes;
    rows.images.append(H5T_NATIVE_FLOAT, image.pixels.data(), 1, path);
    rows.weights.append(H5T_NATIVE_FLOAT, per_plane ? image.weights.data() : none.data(), 1, path);
    one(rows.start, H5T_NATIVE_INT64, image.start_tai_ns);
    one(rows.centroid, H5T_NATIVE_INT64, image.centroid_tai_ns);
    one(rows.end, H5T_NATIVE_INT64, io::end_of(image));
    one(rows.exposure, H5T_NATIVE_DOUBLE, image.exposure_s);
    one(rows.loss, H5T_NATIVE_DOUBLE, image.metadata.loss_ppm);
    one(rows.ra, H5T_NATIVE_DOUBLE, image.center.ra_rad);
    one(rows.dec, H5T_NATIVE_DOUBLE, image.center.dec_rad);
    one(rows.north, H5T_NATIVE_DOUBLE, image.north_angle_rad);
    // The checksum comes last: an image counts only when its sum is there and right.
    const std::uint32_t crc = io::crc32c(image.pixels.data(), image.pixels.size() * sizeof(float));
    one(rows.crc, H5T_NATIVE_UINT32, crc);
  }

  void publish(const Observation& last, bool complete);
  /// What is flushed is whole and stays for recovery; a file that HDF5 failed to write is not
  /// closed (uvh5_writer.cpp has the reasons).
  void abandon(bool sound) noexcept {
    done = true;
    try {
      static auto* left = new std::vector<std::pair<Rows, Handle>>();
      if (!sound && n_images > 0) left->emplace_back(std::move(rows), std::move(file));
    } catch (...) {  // out of memory
    }
    rows = Rows();
    file.reset();
    n_images > 0 ? leave_part(path) : discard_part(path);
  }
  [[noreturn]] void fail(const Error& error, bool sound) {
    abandon(sound);
    const std::string kept = n_images == 0
                                 ? ""
                                 : "; the " + std::to_string(n_images) + " whole images stay in " +
                                       part_path(path) + ": make room, then `ryle recover` of it";
    throw IoError(error.exit_code(), error.what() + kept);
  }
};

ImageCubeWriter::ImageCubeWriter(const std::string& path, const Observation& observation,
                                 bool overwrite)
    : impl_(std::make_unique<Impl>(Impl{path, observation, overwrite})) {
  h5::silence();
  prepare_part(path, overwrite);
}

ImageCubeWriter::~ImageCubeWriter() {
  if (!impl_->done) impl_->abandon(true);
}

std::int64_t ImageCubeWriter::n_images() const { return impl_->n_images; }

std::int64_t ImageCubeWriter::n_bytes() const {
  if (!impl_->shape) return 0;
  const SkyImage& s = *impl_->shape;
  return impl_->n_images * static_cast<std::int64_t>(sizeof(float) * s.stokes.size()) *
         s.n_channels * s.plane_size();
}

bool ImageCubeWriter::accepts(const SkyImage& image) const {
  if (!impl_->shape) return true;
  const SkyImage& s = *impl_->shape;
  return s.n_pixels == image.n_pixels && s.n_channels == image.n_channels &&
         s.stokes == image.stokes && s.cell_direction_cosine == image.cell_direction_cosine &&
         s.frequency.first_center_hz == image.frequency.first_center_hz &&
         s.frequency.channel_width_hz == image.frequency.channel_width_hz &&
         s.frequency.n_channels == image.frequency.n_channels &&
         s.n_channels_per_bin == image.n_channels_per_bin;
}

void ImageCubeWriter::append(const SkyImage& image) {
  Impl& c = *impl_;
  if (c.done) throw ConfigError(c.path + " is closed already");
  io::check_image(c.path, image);
  if (!accepts(image)) {
    throw ConfigError("cannot append to " + c.path +
                      ": the image has another size, cell, Stokes planes or frequencies; publish "
                      "this segment and begin another");
  }
  if (const int fault = injected_fault("write", c.path); fault != 0)
    c.fail(IoError::from_errno("write", c.path, fault), true);
  try {
    if (!c.shape) {
      c.create(image);
      c.shape = image;
      c.shape->pixels.clear();
      c.shape->weights.clear();
    }
    c.write_row(image);
  } catch (const Error& error) {
    c.fail(error, false);
  } catch (...) {
    c.abandon(false);
    throw;
  }
  ++c.n_images;
}

void ImageCubeWriter::publish(const Observation& observation) { impl_->publish(observation, true); }

void ImageCubeWriter::Impl::publish(const Observation& last, bool complete) {
  Impl& c = *this;
  if (c.done || !c.shape) throw ConfigError("cannot publish " + c.path + ": it holds no image");
  try {
    c.rows = Rows();
    if (!c.file.close()) h5::check(-1, "close", c.path);
    // SWMR forbids new objects: what is known only at the end comes after an ordinary reopening.
    const Handle access = latest_format();
    c.file = Handle(H5Fopen(part_path(c.path).c_str(), H5F_ACC_RDWR, access.get()), H5Fclose);
    h5::check(c.file.get(), "reopen", c.path);
    const Handle header = h5::open_group(c.file.get(), "Header", c.path);
    h5::put_text(header.get(), "observation_json", observation_to_json(last), c.path);
    if (complete) h5::put_int(header.get(), "complete", 1, c.path);
    if (!c.file.close()) h5::check(-1, "close", c.path);
  } catch (...) {
    c.abandon(false);
    throw;
  }
  c.done = true;
  publish_part(c.path, c.overwrite);
}

void ImageCubeWriter::publish_incomplete() { impl_->publish(impl_->observation, false); }

struct ImageCubeReader::Impl {
  std::string path;
  Handle file;
  SkyImage shape;
  Observation observation;
  std::int64_t n_images = 0;
  bool complete = false;

  explicit Impl(const std::string& name) : path(name) {
    // A file that grows, or whose writer was killed, opens only for a follower.
    file = h5::open_file(path, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
    const Handle header = h5::open_group(file.get(), "Header", path);
    if (h5::read_text(header.get(), "format", path) != kFormat)
      throw FormatError("cannot read " + path + ": it is no " + kFormat);
    read_header(header.get());
    const auto images = h5::shape_of(file.get(), "images", path);
    const auto sums = h5::shape_of(file.get(), "crc32c", path);
    if (images.size() != 5 || sums.size() != 1 || images[1] != shape.stokes.size() ||
        images[3] != images[4])
      throw FormatError("cannot read " + path + ": images are no [time][stokes][freq][y][x]");
    shape.n_channels = static_cast<std::int64_t>(images[2]);
    shape.n_pixels = static_cast<std::int64_t>(images[3]);
    n_images = static_cast<std::int64_t>(std::min(images[0], sums[0]));
  }

  void read_header(hid_t h) {
    const auto first = [&](const auto& values, const char* name) {
      if (values.empty()) throw FormatError("cannot read " + path + ": " + name + " is empty");
      return values.front();
    };
    const auto real = [&](const char* name) {
      return first(h5::read_doubles(h, name, path), name);
    };
    const auto integer = [&](const char* name) {
      return first(h5::read_ints(h, name, path), name);
    };
    shape.stokes.clear();
    for (const auto code : h5::read_ints(h, "stokes", path))
      shape.stokes.push_back(static_cast<int>(code));
    shape.frequency = {real("first_center_hz"), real("channel_width_hz"),
                       integer("n_data_channels")};
    shape.n_channels_per_bin = integer("n_channels_per_bin");
    shape.cell_direction_cosine = real("cell_direction_cosine");
    shape.plane_alpha = real("plane_alpha");
    shape.plane_beta = real("plane_beta");
    shape.unit = h5::read_text(h, "unit", path);
    if (h5::exists(h, "beam_major_rad"))
      shape.beam = SynthesizedBeam{real("beam_major_rad"), real("beam_minor_rad"),
                                   real("beam_position_angle_rad")};
    shape.metadata.path = h5::read_text(h, "path", path);
    shape.metadata.function = h5::read_text(h, "function", path);
    shape.metadata.gains_id = h5::read_text(h, "gains_id", path);
    shape.metadata.implementation = h5::read_text(h, "implementation", path);
    observation = observation_from_json(h5::read_text(h, "observation_json", path), path);
    complete = h5::exists(h, "complete");
  }

  /// Row k of a data set, which must have `n_values` values.
  void read_row(const char* name, hid_t type, std::int64_t k, void* out,
                std::size_t n_values = 1) const {
    const Handle set(H5Dopen2(file.get(), name, H5P_DEFAULT), H5Dclose);
    if (!set.valid()) throw FormatError("cannot read " + std::string(name) + " of " + path);
    auto count = h5::shape_of(file.get(), name, path);
    hsize_t n = count.empty() ? 0 : 1;
    for (std::size_t axis = 1; axis < count.size() && n <= n_values; ++axis) n *= count[axis];
    if (n != n_values)
      throw FormatError("cannot read " + std::string(name) + " of " + path +
                        ": its rows do not have " + std::to_string(n_values) + " values");
    std::vector<hsize_t> start(count.size(), 0);
    start[0] = size_of(k);
    count[0] = 1;
    const Handle space(H5Dget_space(set.get()), H5Sclose);
    const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                        H5Sclose);
    if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                            nullptr) < 0)
      throw FormatError("cannot read image " + std::to_string(k) + " of " + path + ": " +
                        h5::last_error());
    h5::read_part(set.get(), std::string(name) + " of image " + std::to_string(k), type,
                  memory.get(), space.get(), out, path);
  }
};

ImageCubeReader::ImageCubeReader(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
ImageCubeReader::~ImageCubeReader() = default;
std::int64_t ImageCubeReader::n_images() const { return impl_->n_images; }
bool ImageCubeReader::complete() const { return impl_->complete; }
const Observation& ImageCubeReader::observation() const { return impl_->observation; }

SkyImage ImageCubeReader::image(std::int64_t k) const {
  const Impl& c = *impl_;
  if (k < 0 || k >= c.n_images) {
    throw ConfigError("no image " + std::to_string(k) + " in " + c.path + ": it holds " +
                      std::to_string(c.n_images));
  }
  SkyImage image = c.shape;
  const auto n_stokes = static_cast<std::int64_t>(image.stokes.size());
  const std::int64_t n_planes = checked_file_product({n_stokes, image.n_channels}, "an image cube");
  image.pixels.resize(
      checked_file_product({n_planes, image.n_pixels, image.n_pixels}, "an image cube"));
  image.weights.resize(n_planes);
  c.read_row("images", H5T_NATIVE_FLOAT, k, image.pixels.data(), image.pixels.size());
  c.read_row("weights", H5T_NATIVE_FLOAT, k, image.weights.data(), image.weights.size());
  c.read_row("start_tai_ns", H5T_NATIVE_INT64, k, &image.start_tai_ns);
  c.read_row("centroid_tai_ns", H5T_NATIVE_INT64, k, &image.centroid_tai_ns);
  c.read_row("end_tai_ns", H5T_NATIVE_INT64, k, &image.end_tai_ns);
  c.read_row("exposure_s", H5T_NATIVE_DOUBLE, k, &image.exposure_s);
  c.read_row("loss_ppm", H5T_NATIVE_DOUBLE, k, &image.metadata.loss_ppm);
  c.read_row("ra_rad", H5T_NATIVE_DOUBLE, k, &image.center.ra_rad);
  c.read_row("dec_rad", H5T_NATIVE_DOUBLE, k, &image.center.dec_rad);
  c.read_row("north_angle_rad", H5T_NATIVE_DOUBLE, k, &image.north_angle_rad);
  std::uint32_t crc = 0;
  c.read_row("crc32c", H5T_NATIVE_UINT32, k, &crc);
  if (crc != io::crc32c(image.pixels.data(), image.pixels.size() * sizeof(float))) {
    throw FormatError("image " + std::to_string(k) + " of " + c.path +
                      " is damaged: its checksum does not fit");
  }
  return image;
}

bool is_image_cube(const std::string& file) {
  try {
    const Handle opened = h5::open_file(file, H5F_ACC_RDONLY | H5F_ACC_SWMR_READ);
    const Handle header = h5::open_group(opened.get(), "Header", file);
    return h5::read_text(header.get(), "format", file) == kFormat;
  } catch (const Error&) {
    return false;
  }
}

std::int64_t count_whole_images(const std::string& file) {
  const ImageCubeReader reader(file);
  std::int64_t n = 0;
  try {
    for (; n < reader.n_images(); ++n) (void)reader.image(n);
  } catch (const FormatError&) {  // the first damaged image ends what is whole
  }
  return n;
}

std::int64_t recover_image_cube(const std::string& part, const std::string& path, bool overwrite) {
  const ImageCubeReader reader(part);
  const std::int64_t n = count_whole_images(part);
  if (n == 0) throw FormatError("nothing to recover in " + part);
  Observation observation = reader.observation();
  observation.provenance.notes["recovered"] = "the writer died; images after the last are lost";
  ImageCubeWriter writer(path, observation, overwrite);
  for (std::int64_t k = 0; k < n; ++k) writer.append(reader.image(k));
  writer.publish_incomplete();
  return n;
}

}  // namespace ryle
