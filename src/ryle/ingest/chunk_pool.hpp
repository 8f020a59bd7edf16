// SPDX-License-Identifier: BSD-3-Clause
#pragma once
#include <chrono>
#include <cstdint>
#include <vector>

#include "ryle/runtime/bounded_queue.hpp"
#include "ryle/runtime/chunk.hpp"

namespace ryle {

/// All chunks of a source, allocated once, and the pair of queues they go round: free ->
/// (assembler) -> full -> (consumer) -> free. Neither queue can overflow, so no edge here drops: a
/// lack shows as an empty free queue.
class ChunkPool {
 public:
  ChunkPool(int n_chunks, std::int64_t payload_bytes, std::int64_t reserved_spans,
            MemorySpace space = MemorySpace::pinned);

  /// Producer: an empty chunk, or nullptr when all are in use.
  Chunk* take();
  /// Producer: as take(), but waits up to `timeout`.
  Chunk* take_for(std::chrono::milliseconds timeout);
  /// Producer: hands a filled chunk to the consumer.
  void deliver(Chunk* chunk);
  /// Producer: no more chunks will come; those delivered can still be taken.
  void finish() { full_.close(); }

  /// Consumer.
  Chunk* next(std::chrono::milliseconds timeout);
  void release(Chunk* chunk);
  bool finished() const { return full_.finished(); }

  std::size_t n_waiting() const { return full_.size(); }
  std::size_t n_chunks() const { return chunks_.size(); }
  std::int64_t memory_bytes() const;
  /// Overwrites all payloads (tests: stale memory must never be seen).
  void poison(std::byte value);

 private:
  std::vector<Chunk> chunks_;
  std::int64_t reserved_spans_;
  BoundedQueue<Chunk*> free_, full_;
};

}  // namespace ryle
