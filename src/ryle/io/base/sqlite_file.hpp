// SPDX-License-Identifier: BSD-3-Clause
// The few calls of SQLite Ryle needs, every result checked. Private to io/.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ryle::io {

class Statement;

/// One connection; one thread at a time.
class Database {
 public:
  enum class Mode { create, append, read };
  Database(std::string path, Mode mode, double busy_timeout_s);
  ~Database() { sqlite3_close_v2(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const char* sql);
  std::int64_t number(const char* sql);  ///< first column of the first row, 0 without rows
  std::int64_t last_row_id() const { return sqlite3_last_insert_rowid(handle_); }
  sqlite3* get() const { return handle_; }
  const std::string& path() const { return path_; }
  /// Throws the Ryle error that fits an SQLite result: disk full and I/O (exit 74), locked (75),
  /// not a database (65), permission (77), missing (66 or 73).
  [[noreturn]] void fail(int result, const std::string& operation) const;

 private:
  std::string path_;
  Mode mode_;
  sqlite3* handle_ = nullptr;
};

/// Removes a database and what SQLite keeps beside it.
void remove_database(const std::string& path);

/// A prepared statement. bind() counts from 1; columns from 0. NaN is NULL both ways.
class Statement {
 public:
  Statement(Database& database, const char* sql);
  ~Statement() { sqlite3_finalize(handle_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int at, std::int64_t value);
  Statement& bind(int at, double value);
  Statement& bind(int at, std::string_view text);
  Statement& bind_blob(int at, std::span<const std::byte> bytes);  ///< must live until the step
  bool step();     ///< true: a row; false: done (and reset)
  void execute();  ///< steps once, expects no row, resets

  std::int64_t integer(int column) const { return sqlite3_column_int64(handle_, column); }
  double real(int column) const;
  std::string text(int column) const;
  std::span<const std::byte> blob(int column) const;

 private:
  void check(int result, const char* operation) const;
  Database& database_;
  sqlite3_stmt* handle_ = nullptr;
};

}  // namespace ryle::io
