// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "ryle/ingest/source.hpp"

namespace ryle {

class ReceiverThread;

/// A live source: what all formats do alike, by the thread that receives their packets.
class ReceiverSource : public ChunkSource {
 public:
  ~ReceiverSource() override;

  void start() override;
  Chunk* next(std::chrono::milliseconds timeout) override;
  void release(Chunk* chunk) override;
  bool ended() const override;
  void stop() override;
  IngestCounters counters() const override;
  std::string state() const override;
  std::int64_t memory_bytes() const override;

  /// As bound: port 0 replaced by the port the system chose.
  std::vector<std::string> endpoints() const;
  /// UDP buffers granted are as large as needed.
  bool receive_buffer_ok() const;
  /// Overwrites all chunks (tests). @pre not started
  void poison(std::byte value);

 protected:
  explicit ReceiverSource(std::unique_ptr<ReceiverThread> receiver);
  const ReceiverThread& receiver() const { return *receiver_; }

 private:
  std::unique_ptr<ReceiverThread> receiver_;
};

}  // namespace ryle
