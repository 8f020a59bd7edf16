// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/io/base/sqlite_file.hpp"

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "ryle/core/error.hpp"
#include "ryle/io/base/part_file.hpp"

namespace ryle::io {

Database::Database(std::string path, Mode mode, double busy_timeout_s)
    : path_(std::move(path)), mode_(mode) {
  const int flags = mode == Mode::read     ? SQLITE_OPEN_READONLY
                    : mode == Mode::append ? SQLITE_OPEN_READWRITE
                                           : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  // "./" in front: a name that begins with "file:" or ':' is a name, not a language.
  const std::string plain = path_.empty() || path_[0] == '/' ? path_ : "./" + path_;
  const int result = sqlite3_open_v2(plain.c_str(), &handle_, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (result != SQLITE_OK) {
    const int system_error = handle_ != nullptr ? sqlite3_system_errno(handle_) : 0;
    sqlite3_close_v2(handle_);
    handle_ = nullptr;
    throw IoError::from_errno("open database", path_, system_error != 0 ? system_error : ENOENT,
                              mode == Mode::create);
  }
  sqlite3_extended_result_codes(handle_, 1);
  sqlite3_busy_timeout(handle_, static_cast<int>(busy_timeout_s * 1000));
}

void Database::fail(int result, const std::string& operation) const {
  const int kind = result & 0xff;
  const std::string what = "cannot " + operation + " " + path_ + ": ";
  const std::string words = handle_ != nullptr ? sqlite3_errmsg(handle_) : sqlite3_errstr(result);
  switch (kind) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      throw IoError(ExitCode::try_again,
                    what +
                        "another process holds the database locked; end its transaction (an "
                        "open sqlite3 shell?) and try again");
    case SQLITE_FULL:
      throw IoError(ExitCode::io,
                    what + words + disk_hint(path_) + "; what was committed before stays readable");
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      throw FormatError(what + words + "; it is not an intact SQLite database");
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      throw IoError(ExitCode::no_permission, what + words);
    case SQLITE_CANTOPEN:
      throw IoError(mode_ == Mode::create ? ExitCode::cannot_create : ExitCode::no_input,
                    what + words);
    default:
      throw IoError(ExitCode::io, what + words + disk_hint(path_));
  }
}

void remove_database(const std::string& path) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix, ignored);
}

void Database::run(const char* sql) {
  const int result = sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) fail(result, mode_ == Mode::read ? "read" : "write");
}

std::int64_t Database::number(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  check(sqlite3_prepare_v2(database.get(), sql, -1, &handle_, nullptr), "read the tables of");
}

void Statement::check(int result, const char* operation) const {
  if (result != SQLITE_OK) database_.fail(result, operation);
}

Statement& Statement::bind(int at, std::int64_t value) {
  check(sqlite3_bind_int64(handle_, at, value), "write");
  return *this;
}

Statement& Statement::bind(int at, double value) {
  check(
      std::isnan(value) ? sqlite3_bind_null(handle_, at) : sqlite3_bind_double(handle_, at, value),
      "write");
  return *this;
}

Statement& Statement::bind(int at, std::string_view text) {
  check(
      sqlite3_bind_text(handle_, at, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT),
      "write");
  return *this;
}

Statement& Statement::bind_blob(int at, std::span<const std::byte> bytes) {
  check(sqlite3_bind_blob64(handle_, at, bytes.data(), bytes.size(), SQLITE_STATIC), "write");
  return *this;
}

bool Statement::step() {
  const int result = sqlite3_step(handle_);
  if (result == SQLITE_ROW) return true;
  const int reset = sqlite3_reset(handle_);
  if (result != SQLITE_DONE) check(result, "use");
  check(reset, "use");
  return false;
}

void Statement::execute() {
  const int result = sqlite3_step(handle_);
  const int reset = sqlite3_reset(handle_);
  if (result != SQLITE_DONE) check(result, "write");
  check(reset, "write");
}

double Statement::real(int column) const {
  return sqlite3_column_type(handle_, column) == SQLITE_NULL
             ? std::numeric_limits<double>::quiet_NaN()
             : sqlite3_column_double(handle_, column);
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_, column));
  return bytes == nullptr
             ? ""
             : std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column)));
}

std::span<const std::byte> Statement::blob(int column) const {
  const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(handle_, column));
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(handle_, column))};
}

}  // namespace ryle::io
