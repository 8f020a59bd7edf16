// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace ryle::simulate {

/// Where a packet format keeps what an impairment touches (big endian counter). Default:
/// mwa32t-udp.
struct ImpairFormat {
  std::size_t header_bytes = 16;
  std::size_t counter_offset = 8;
  std::size_t counter_bytes = 8;
  std::size_t stream_offset = 5;  ///< one byte
};

/// What happened to a datagram. A datagram suffers at most one of the changes from corrupt_header
/// on.
enum class ImpairAction : std::uint16_t {
  sent,
  lost,            ///< by chance
  lost_in_burst,   ///< by the Gilbert-Elliott state
  duplicated,      ///< an exact second copy
  corrupt_header,  ///< detail = bit flipped, counted from the first
  corrupt_payload,
  truncated,  ///< detail = bytes left
  extended,   ///< detail = bytes added
  future,     ///< counter moved up, detail = log2 of the distance
  past,
  foreign_stream,  ///< stream id set to 255
  foreign_sender,  ///< to be sent from another socket
};

/// Chances per datagram, 0..1. All decisions follow from the seed and the order of the input alone.
struct ImpairConfig {
  std::uint64_t seed = 1;
  double loss = 0;
  double burst_begin = 0;  ///< chance to enter the bad state, in which everything is lost
  double burst_end = 0.2;  ///< chance to leave it: mean length 1 / burst_end datagrams
  double duplicate = 0;
  double reorder = 0;  ///< held back behind 1..reorder_depth later datagrams
  int reorder_depth = 8;
  double corrupt_header = 0;
  double corrupt_payload = 0;
  double truncate = 0;
  double extend = 0;
  double future = 0;
  double past = 0;
  double foreign_stream = 0;
  double foreign_sender = 0;   ///< a copy from a stranger; the original goes on untouched
  std::uint64_t reset_at = 0;  ///< from this datagram on the counter restarts at 0 (0 = never)
  ImpairFormat format;
};

/// One line of the ledger, 32 bytes. Lost datagrams are there too: the ledger is exact.
struct LedgerRecord {
  std::uint64_t order = 0;  ///< of the input
  std::uint64_t tick = 0;   ///< counter as put out
  std::uint32_t stream = 0;
  ImpairAction action = ImpairAction::sent;
  std::uint16_t detail = 0;
  std::uint32_t crc32c = 0;  ///< of the bytes as put out
  std::uint32_t spare = 0;
};
static_assert(sizeof(LedgerRecord) == 32);

/// Impairs a stream of datagrams in process. Output goes to a callback in the order of the ledger.
class Impairer {
 public:
  using Output = std::function<void(std::span<const std::byte>, const LedgerRecord&)>;
  Impairer(const ImpairConfig& config, Output output);
  void offer(std::span<const std::byte> datagram);
  /// Puts out what is held back.
  void flush();
  const std::vector<LedgerRecord>& ledger() const { return ledger_; }
  /// Without it only the last line is there: senders run for hours.
  void keep_ledger(bool keep) { keep_ledger_ = keep; }

 private:
  struct Held {
    std::uint64_t due = 0;  ///< put out after this input
    std::vector<std::byte> bytes;
    LedgerRecord record;
  };
  double chance(int what) const;
  void change(std::vector<std::byte>& bytes, LedgerRecord& record) const;
  void note(const LedgerRecord& record);
  void put_out(std::span<const std::byte> bytes, LedgerRecord record);
  void release(std::uint64_t up_to);

  ImpairConfig config_;
  Output output_;
  std::uint64_t order_ = 0;
  bool bad_ = false, keep_ledger_ = true;
  bool reset_ = false;
  std::uint64_t reset_base_ = 0;
  std::vector<Held> held_;
  std::vector<LedgerRecord> ledger_;
};

/// CRC-32C (Castagnoli), the bitwise definition: reflected polynomial 0x82F63B78.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace ryle::simulate
