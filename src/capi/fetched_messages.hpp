/// The messages of a read, kept until the program takes them. Layer: capi.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/reader.hpp>

namespace lightq::capi {

/// Owns copies of messages, of which the program takes one after the other. The one taken last stays valid
/// until the next call. For one thread.
class FetchedMessages {
 public:
  /// Drops all messages.
  void clear() {
    left_.clear();
    taken_.reset();
  }
  /// Keeps a copy. Throws std::bad_alloc.
  void add(const Delivered& delivered) {
    const std::byte* const begin = delivered.payload.data() - delivered.attributes_bytes;
    Fetched made{{begin, delivered.payload.data() + delivered.payload.size()}, delivered};
    made.delivered.payload = ByteView(made.bytes).subspan(delivered.attributes_bytes);
    left_.push_back(std::move(made));
  }
  /// Takes the oldest message. Returns null if none is left. Lifetime: until the next call.
  const Delivered* take() {
    taken_.reset();
    if (left_.empty()) return nullptr;
    taken_.emplace(std::move(left_.front()));
    left_.pop_front();
    return &taken_->delivered;
  }

 private:
  /// The payload of `delivered` lies in `bytes`, behind the attributes. A move keeps it valid.
  struct Fetched {
    std::vector<std::byte> bytes;
    Delivered delivered;
  };

  std::deque<Fetched> left_;
  std::optional<Fetched> taken_;
};

}  // namespace lightq::capi
