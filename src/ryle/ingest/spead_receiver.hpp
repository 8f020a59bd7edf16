// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <array>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ryle/ingest/receiver_thread.hpp"
#include "ryle/ingest/segment_clocks.hpp"
#include "ryle/ingest/spead_source.hpp"
#include "ryle/wire/spead.hpp"

namespace ryle {

/// The thread behind SpeadSource: finds the items of a heap, in each packet or in those that came
/// before, and feeds the assembler the cells that a packet holds.
class SpeadReceiver : public ReceiverThread {
 public:
  explicit SpeadReceiver(const SpeadSourceConfig& config);
  ~SpeadReceiver() override;

  const SpeadSourceConfig& config() const { return config_; }
  const SegmentClocks& clocks() const { return clocks_; }
  std::int64_t memory_bytes() const override;

 private:
  /// Items of a heap that are needed to place its packets.
  enum Needed : std::size_t { timestamp, feng_id, frequency, feng_raw, n_needed };
  static constexpr std::size_t kHeaps = 4096, kMaxWaiting_bytes = 16 << 20;
  struct HeapItems {
    std::array<std::uint64_t, n_needed> value{};  ///< of feng_raw: where it begins in the heap
    std::array<std::uint64_t, n_needed> end{};    ///< where those end that have an address
    std::uint32_t seen = 0;                       ///< bit of each whose value is known ...
    std::uint32_t located = 0;                    ///< ... or only where it begins: `value`
    bool complete() const { return seen == (1u << n_needed) - 1; }
  };
  /// A packet that came before the items of its heap.
  struct WaitingPacket {
    std::uint64_t sender = 0;
    SenderAddress address;
    std::uint64_t offset = 0;
    std::vector<std::byte> payload;
    UdpPort* port = nullptr;
  };
  /// A cell that two packets share, of which one has come.
  struct Edge {
    std::array<std::byte, 8> bytes{};
    unsigned have = 0;  ///< bit of each byte
  };
  struct Heap {
    HeapItems items;
    std::vector<WaitingPacket> waiting;
  };
  using HeapKey = std::pair<std::uint64_t, std::uint64_t>;  // sender, counter

  bool serve(int timeout_ms) override;
  Reason take_datagram(UdpPort& port, const DatagramReader::Datagram& datagram) override;
  void segment_begun() override;
  void disconnect_all() override;
  std::string format_note() const override;

  /// Which input's endpoint it is, of beams.
  std::uint64_t input_of(const UdpPort& port) const;
  void read_items(HeapItems& items) const;
  static void read_located(std::uint64_t offset, std::span<const std::byte> payload,
                           HeapItems& items);
  Reason place(UdpPort& port, const HeapItems& items, std::uint64_t offset, std::uint64_t sender,
               std::span<const std::byte> payload);
  bool join_edge(std::uint32_t stream, std::uint64_t slot, std::size_t at,
                 std::span<const std::byte> part, std::byte* whole);
  std::span<const std::byte> whole_cells(std::uint32_t stream, std::uint64_t heap_slot,
                                         std::uint64_t lo, std::uint64_t hi,
                                         std::span<const std::byte> bytes,
                                         std::uint64_t& first_cell);
  Reason reject(Reason reason);
  Heap& heap(const HeapKey& key);
  void give_up(Heap& heap);
  void take_descriptor(std::span<const std::byte> bytes);

  SpeadSourceConfig config_;
  std::uint64_t heap_ticks_;  ///< of the timestamps
  int slot_bits_;
  std::array<std::uint32_t, n_needed> ids_;
  wire::SpeadPacket packet_;  ///< being taken
  std::map<HeapKey, Heap> heaps_;
  std::list<HeapKey> heap_order_;  ///< the oldest first
  std::size_t waiting_bytes_ = 0;
  bool some_repeat_ = false;                 ///< packets behind the first of a heap had all items
  bool some_do_not_ = false;                 ///< a packet had not
  std::optional<std::uint64_t> grid_ticks_;  ///< remainder of the timestamps of this segment
  std::uint64_t timestamp_ = 0;              ///< of the packet that is being offered
  std::string described_;                    ///< where it is not what is configured
  std::map<std::pair<std::uint64_t, std::uint32_t>, Edge> edges_;  ///< [slot, stream]
  std::vector<std::byte> joined_;
  SegmentClocks clocks_;
};

}  // namespace ryle
