// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ryle/simulate/impair.hpp"

namespace ryle::simulate {

/// A UDP relay on this machine, in a thread: what comes in at in_port() goes impaired to the target
/// ("host:port"). Foreign-sender copies leave from a second socket. Unprivileged, and the ledger is
/// exact, which no kernel emulator's is.
class ImpairRelay {
 public:
  ImpairRelay(const ImpairConfig& config, const std::string& target_host,
              std::uint16_t target_port);
  ~ImpairRelay();
  std::uint16_t in_port() const;
  /// Relays what is waiting, puts out what is held back and ends the thread. The ledger is then
  /// complete.
  void stop();
  const std::vector<LedgerRecord>& ledger() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ryle::simulate
