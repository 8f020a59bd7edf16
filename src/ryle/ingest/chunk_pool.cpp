// SPDX-License-Identifier: BSD-3-Clause
#include "ryle/ingest/chunk_pool.hpp"

#include <algorithm>

namespace ryle {

ChunkPool::ChunkPool(int n_chunks, std::int64_t payload_bytes, std::int64_t reserved_spans,
                     MemorySpace space)
    : chunks_(n_chunks),
      reserved_spans_(reserved_spans),
      free_(chunks_.size()),
      full_(chunks_.size()) {
  for (auto& chunk : chunks_) {
    chunk.payload = Buffer<std::byte>(payload_bytes, space);
    chunk.absent.reserve(reserved_spans);
    free_.offer(&chunk);
  }
}

Chunk* ChunkPool::take() { return free_.try_pop().value_or(nullptr); }

Chunk* ChunkPool::take_for(std::chrono::milliseconds timeout) {
  return free_.pop_for(timeout).value_or(nullptr);
}

void ChunkPool::deliver(Chunk* chunk) { full_.offer(chunk); }

Chunk* ChunkPool::next(std::chrono::milliseconds timeout) {
  return full_.pop_for(timeout).value_or(nullptr);
}

void ChunkPool::release(Chunk* chunk) {
  chunk->absent.clear();
  free_.offer(chunk);
}

std::int64_t ChunkPool::memory_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& chunk : chunks_) {
    bytes +=
        chunk.payload.bytes() + reserved_spans_ * static_cast<std::int64_t>(sizeof(AbsentSpan));
  }
  return bytes;
}

void ChunkPool::poison(std::byte value) {
  for (auto& chunk : chunks_) std::ranges::fill(chunk.payload.span(), value);
}

}  // namespace ryle
