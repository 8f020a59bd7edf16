// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/file_contents.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "ryle/core/error.hpp"
#include "ryle/core/input_file.hpp"
#include "ryle/io/base/fits_file.hpp"
#include "ryle/io/base/hdf5_file.hpp"
#include "ryle/io/base/sqlite_file.hpp"

namespace ryle {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxHdus = 100;
constexpr std::size_t kMaxObjects = 200;        // of an HDF5 file, listed one by one
constexpr std::streamsize kMaxText = 16 << 20;  // of JSON and XML

std::string text_of(const std::string& path) {
  require_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError::from_errno("read", path, errno);
  std::string text(static_cast<std::size_t>(kMaxText) + 1, '\0');
  in.read(text.data(), kMaxText + 1);
  text.resize(in.gcount());
  if (in.gcount() > kMaxText)
    throw FormatError(path + ": larger than 16 MiB, no text file of Ryle is");
  return text;
}

// ---- FITS

Json fits_hdu(const io::FitsFile& file) {
  int status = 0, type = 0;
  fits_get_hdu_type(file.get(), &type, &status);
  Json hdu{{"name", file.text("EXTNAME", "")}};
  if (type == IMAGE_HDU) {
    int bits = 0, n_axes = 0;
    std::array<LONGLONG, 9> shape{};
    fits_get_img_paramll(file.get(), 9, &bits, &n_axes, shape.data(), &status);
    file.check(status, "read the shape of an image");
    hdu["type"] = "image";
    hdu["bits"] = bits;
    hdu["shape"] = std::vector<LONGLONG>(shape.begin(), shape.begin() + std::clamp(n_axes, 0, 9));
  } else {
    LONGLONG rows = 0;
    int columns = 0;
    fits_get_num_rowsll(file.get(), &rows, &status);
    fits_get_num_cols(file.get(), &columns, &status);
    file.check(status, "read the size of a table");
    hdu["type"] = "table";
    hdu["rows"] = rows;
    std::vector<std::string> names;
    for (int c = 1; c <= std::min(columns, 100); ++c)
      names.push_back(file.text(("TTYPE" + std::to_string(c)).c_str(), ""));
    hdu["columns"] = names;
  }
  return hdu;
}

/// What astronomers look for in a header, where it is there.
void add_header(const io::FitsFile& file, Json& to) {
  for (const char* key : {"OBJECT", "TELESCOP", "INSTRUME", "OBSERVER", "DATE-OBS", "BUNIT",
                          "RADESYS", "SPECSYS", "PIXTYPE", "ORDERING", "ORIGIN"}) {
    const std::string value = file.text(key, "");
    if (!value.empty()) to[key] = value;
  }
  for (const char* key :
       {"EQUINOX", "BMAJ", "BMIN", "BPA", "RESTFRQ", "NSIDE", "DATAMIN", "DATAMAX"}) {
    const double value = file.number(key, -1e300);
    if (value > -1e300) to[key] = value;
  }
  for (int axis = 1; axis <= 9; ++axis) {
    const std::string n = std::to_string(axis);
    const std::string type = file.text(("CTYPE" + n).c_str(), "");
    if (type.empty()) continue;
    to["axis " + n] = {{"type", type},
                       {"unit", file.text(("CUNIT" + n).c_str(), "")},
                       {"value", file.number(("CRVAL" + n).c_str(), 0)},
                       {"step", file.number(("CDELT" + n).c_str(), 0)},
                       {"pixel", file.number(("CRPIX" + n).c_str(), 0)}};
  }
}

Json describe_fits(const std::string& path) {
  const auto file = io::FitsFile::open(path);
  int status = 0, n_hdus = 0;
  fits_get_num_hdus(file.get(), &n_hdus, &status);
  file.check(status, "count the HDUs");
  Json json{{"kind", "FITS file"}, {"file", path}};
  Json hdus = Json::array();
  bool described = false;
  for (int k = 1; k <= std::min(n_hdus, kMaxHdus); ++k) {
    fits_movabs_hdu(file.get(), k, nullptr, &status);
    file.check(status, "go to an HDU");
    hdus.push_back(fits_hdu(file));
    const auto& hdu = hdus.back();
    if (hdu["name"] == "SINGLE DISH") json["kind"] = "scans";
    const bool image = hdu["type"] == "image" && !hdu["shape"].empty();
    const bool cells = file.text("PIXTYPE", "") == "HEALPIX";
    if (described || (!image && !cells)) continue;
    json["kind"] = cells ? "HEALPix map" : "FITS image";
    add_header(file, json);
    described = true;
  }
  json["hdus"] = hdus;
  if (n_hdus > kMaxHdus) json["hdus_not_listed"] = n_hdus - kMaxHdus;
  return json;
}

// ---- HDF5

struct Visited {
  hid_t file;
  Json* sets;
  std::size_t n = 0;
};

herr_t visit_object(hid_t, const char* name, const H5O_info_t* info, void* data) {
  auto& visited = *static_cast<Visited*>(data);
  if (info->type != H5O_TYPE_DATASET) return 0;
  if (++visited.n > kMaxObjects) return 0;
  const io::h5::Handle set(H5Dopen2(visited.file, name, H5P_DEFAULT), H5Dclose);
  const io::h5::Handle space(H5Dget_space(set.get()), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space.get());
  std::vector<hsize_t> shape(std::max(rank, 0));
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  (*visited.sets)[name] = shape;
  return 0;
}

herr_t visit_attribute(hid_t group, const char* name, const H5A_info_t*, void* data) {
  auto& to = *static_cast<Json*>(data);
  const io::h5::Handle attribute(H5Aopen(group, name, H5P_DEFAULT), H5Aclose);
  const io::h5::Handle type(H5Aget_type(attribute.get()), H5Tclose);
  const io::h5::Handle space(H5Aget_space(attribute.get()), H5Sclose);
  if (H5Sget_simple_extent_npoints(space.get()) != 1) return 0;
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind == H5T_INTEGER || kind == H5T_FLOAT) {
    double value = 0;
    if (H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &value) >= 0) to[name] = value;
  } else if (kind == H5T_STRING && H5Tis_variable_str(type.get()) == 0) {
    const std::size_t size = H5Tget_size(type.get());
    if (size == 0 || size > 4096) return 0;
    std::string value(size, '\0');
    if (H5Aread(attribute.get(), type.get(), value.data()) >= 0)
      to[name] = value.substr(0, value.find('\0'));
  }
  return 0;
}

Json describe_hdf5(const std::string& path) {
  const io::h5::Handle file = io::h5::open_file(path);
  Json attributes = Json::object(), sets = Json::object();
  H5Aiterate2(file.get(), H5_INDEX_NAME, H5_ITER_INC, nullptr, visit_attribute, &attributes);
  Visited visited{file.get(), &sets};
  // Hard links only: what lies in other files is not of this one.
  H5Ovisit2(file.get(), H5_INDEX_NAME, H5_ITER_INC, visit_object, &visited, H5O_INFO_BASIC);
  Json json{{"kind", "HDF5 file"}, {"file", path}, {"attributes", attributes}, {"data_sets", sets}};
  if (visited.n > kMaxObjects) json["data_sets_not_listed"] = visited.n - kMaxObjects;
  return json;
}

// ---- SQLite, JSON, VOEvent

Json describe_sqlite(const std::string& path) {
  io::Database database(path, io::Database::Mode::read, 1);
  std::vector<std::string> tables;
  {
    io::Statement list(database,
                       "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
    while (list.step()) tables.push_back(list.text(0));
  }
  Json rows = Json::object();
  for (const auto& table : tables) {
    std::string quoted;
    for (const char c : table) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    rows[table] = database.number(("SELECT count(*) FROM \"" + quoted + "\"").c_str());
  }
  return {{"kind", "SQLite database"}, {"file", path}, {"rows", rows}};
}

Json describe_json(const std::string& path) {
  Json content;
  try {
    content = Json::parse(text_of(path));
  } catch (const Json::exception& e) {
    throw FormatError(path + ": damaged JSON: " + e.what());
  }
  Json json{{"kind", "JSON file"}, {"file", path}};
  if (content.is_array()) json["elements"] = content.size();
  if (!content.is_object()) return json;
  if (content.contains("beams") && content.contains("mean_code")) json["kind"] = "notes of beams";
  for (const auto& [key, value] : content.items()) {
    const std::string shown = json.contains(key) ? "content." + key : key;
    if (value.is_primitive())
      json[shown] = value;
    else
      json[shown] = std::to_string(value.size()) + (value.is_array() ? " elements" : " keys");
  }
  return json;
}

/// Value of name="..." in a tag; empty when it is not there.
std::string attribute_of(std::string_view tag, const std::string& name) {
  for (const char quote : {'"', '\''}) {
    const std::string begin = " " + name + "=" + quote;
    const auto at = tag.find(begin);
    if (at == std::string_view::npos) continue;
    const auto end = tag.find(quote, at + begin.size());
    if (end == std::string_view::npos) continue;
    return std::string(tag.substr(at + begin.size(), end - at - begin.size()));
  }
  return "";
}

Json describe_xml(const std::string& path) {
  const std::string text = text_of(path);
  Json json{{"kind", "XML file"}, {"file", path}};
  const auto event = text.find("VOEvent");
  if (event == std::string::npos) return json;
  json["kind"] = "VOEvent";
  const std::string_view tag = std::string_view(text).substr(event, text.find('>', event) - event);
  json["ivorn"] = attribute_of(tag, "ivorn");
  json["role"] = attribute_of(tag, "role");
  Json parameters = Json::object();
  for (auto at = text.find("<Param "); at != std::string::npos; at = text.find("<Param ", at + 1)) {
    const std::string_view param = std::string_view(text).substr(at, text.find('>', at) - at);
    const std::string unit = attribute_of(param, "unit");
    parameters[attribute_of(param, "name")] =
        attribute_of(param, "value") + (unit.empty() ? "" : " " + unit);
  }
  json["parameters"] = parameters;
  return json;
}

}  // namespace

std::string container_of(const std::string& path) {
  require_regular_file(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError::from_errno("read", path, errno);
  std::array<char, 64> bytes{};
  in.read(bytes.data(), bytes.size());
  const std::string_view head(bytes.data(), static_cast<std::size_t>(in.gcount()));
  const auto begins = [&](std::string_view magic) { return head.substr(0, magic.size()) == magic; };
  if (begins("SIMPLE  =")) return "fits";
  if (begins("\x89HDF\r\n\x1a\n")) return "hdf5";
  if (begins("SQLite format 3")) return "sqlite";
  if (begins("PK\x03\x04")) return "zip";
  const auto first = std::find_if(head.begin(), head.end(), [](char c) {
    return std::isspace(static_cast<unsigned char>(c)) == 0;
  });
  if (first == head.end()) return "";
  if (*first == '<') return "xml";
  return *first == '{' ? "json" : "";
}

std::string describe_contents(const std::string& path) {
  const std::string container = container_of(path);
  if (container == "fits") return describe_fits(path).dump();
  if (container == "hdf5") return describe_hdf5(path).dump();
  if (container == "sqlite") return describe_sqlite(path).dump();
  if (container == "xml") return describe_xml(path).dump();
  if (container == "json") return describe_json(path).dump();
  return "";
}

}  // namespace ryle
