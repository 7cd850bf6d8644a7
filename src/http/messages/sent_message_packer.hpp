/// Packs the messages of a request into batches. Layer: http.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <lightq/base/attributes.hpp>
#include <lightq/base/limits.hpp>

#include "http/messages/sent_message.hpp"
#include "requests/publication.hpp"

namespace lightq::broker {

/// Packs messages into batches that every topic can store.
class SentMessagePacker {
 public:
  /// `kinds`: those of all messages.
  explicit SentMessagePacker(AttributeKinds kinds) : kinds_(kinds) {}

  void add(const SentMessage& message) {
    message.with_attributes([&](const Attributes& attributes) {
      const std::size_t bytes = attributes_bytes(kinds_, attributes) + message.payload.size();
      packed_.longest_bytes = std::max(packed_.longest_bytes, bytes);
      std::vector<BatchBuilder>& batches = packed_.batches;
      const bool fits = !batches.empty() &&
                        batches.back().size_bytes() + record_bytes(bytes) <= batch_bytes_target &&
                        batches.back().record_count() < limits::batch_records_max;
      if (!fits) batches.emplace_back();
      batches.back().add(as_byte_view(message.payload), attributes, kinds_);
    });
  }
  [[nodiscard]] MessagesToPublish take() { return std::move(packed_); }

 private:
  static constexpr std::size_t batch_bytes_target = 32 * limits::KiB;  // fits the smallest topic

  const AttributeKinds kinds_;
  MessagesToPublish packed_;
};

}  // namespace lightq::broker
