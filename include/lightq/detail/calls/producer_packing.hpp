/// Packs a producer's messages into its open batch. Layer: client.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <lightq/base/attributes.hpp>
#include <lightq/base/batch_builder.hpp>
#include <lightq/base/flag_while.hpp>
#include <lightq/base/home_process.hpp>
#include <lightq/base/reset_by_move.hpp>
#include <lightq/base/types.hpp>
#include <lightq/detail/session_reports.hpp>

namespace lightq::inline v1 {

/// Writes messages into the open batch and numbers them. Knows how many bytes the batch still takes without a
/// check by the ProducerDriver, which owns this object. Movable: the object that was moved from takes no
/// message. Lifetime: the open batch and `reports` outlive it. For one thread.
///
/// A batch begins with the attribute kinds of the last one, so that messages with alternating kinds do not
/// end each other's batch.
class ProducerPacking {
 public:
  /// Packs nothing until the first `refresh` or `reserve`. `required`: kinds that each batch has.
  ProducerPacking(BatchBuilder& open, SendReports& reports, AttributeKinds required = {})
      : open_(&open), kinds_of_last_(required), required_(required), reports_(&reports) {}

  // --- Messages.

  /// Returns true if the open batch takes a record of `bytes` without attributes. False in a forked child.
  [[nodiscard]] bool takes(std::size_t bytes) const {
    return bytes <= room_ && bytes <= record_bytes_max_ && home_.is_here();
  }
  /// Adds a copy of a message, and returns its number. `bytes`: the size of its record. Requires: `takes`.
  std::uint64_t add(ByteView payload, std::size_t bytes) {
    open_->add(payload);
    room_ = room_ - bytes;
    return sent_++;
  }
  /// Adds a message of `payload_bytes` that `write` writes, and returns its number. `bytes`: the size of its
  /// record. Requires: `takes`. If `write` throws, nothing was added.
  template <typename Write>
  std::uint64_t add_in_place(std::size_t payload_bytes, std::size_t bytes, Write&& write) {
    const std::size_t left = std::exchange(room_.get(), 0) - bytes;  // 0: nothing is sent from `write`
    {
      const FlagWhile writing(writing_);
      open_->add_in_place(payload_bytes, std::forward<Write>(write));
    }
    room_ = left;
    return sent_++;
  }
  /// Adds a message with attributes. Gives it its own callback, if there is one. Requires: the batch has room
  /// for the message, and either has its attribute kinds or is empty. If `write` throws, nothing was added.
  template <typename Write>
  std::uint64_t add_in_place(std::size_t payload_bytes, Write&& write, const Attributes& attributes,
                             MessageCallback callback) {
    BatchBuilder& open = *open_;
    const std::size_t before = open.size_bytes();
    const std::size_t room = std::exchange(room_.get(), 0);
    const bool watched = static_cast<bool>(callback);
    if (watched) watch(std::move(callback));
    try {
      const FlagWhile writing(writing_);
      open.add_in_place(payload_bytes, std::forward<Write>(write), attributes,
                        kinds_to_begin_with(payload_bytes, attributes));
    } catch (...) {
      if (watched) unwatch();
      throw;
    }
    use(AttributeKinds(attributes));
    room_ = open.kinds().any() ? 0 : room - std::min(room, open.size_bytes() - before);
    return sent_++;
  }
  /// Returns true while `write` runs, which must not use the producer.
  [[nodiscard]] bool is_writing() const { return writing_; }
  /// Returns the number of messages that were added: the number of the next one.
  [[nodiscard]] std::uint64_t sent() const { return sent_; }

  // --- Room.

  /// Returns the kinds of a batch for this message alone.
  [[nodiscard]] AttributeKinds kinds_for(const Attributes& attributes) const {
    return AttributeKinds(attributes) | required_;
  }
  /// Returns the message's bytes in the open batch, attributes included; nothing if the batch lacks its
  /// kinds.
  [[nodiscard]] std::optional<std::size_t> bytes_in_open(std::size_t payload_bytes,
                                                         const Attributes& attributes) const {
    const AttributeKinds kinds =
        open_->empty() ? kinds_to_begin_with(payload_bytes, attributes) : open_->kinds();
    if (!kinds.has_all_of(AttributeKinds(attributes))) return std::nullopt;
    return attributes_bytes(kinds, attributes) + payload_bytes;
  }
  /// Returns the size of the largest record that can be stored, as far as is known.
  [[nodiscard]] std::size_t record_bytes_max() const { return record_bytes_max_; }
  /// Sets how many bytes of records the open batch takes, and the size of the largest record. `takes` returns
  /// false all the same if the batch has attributes or begins with some: then the driver checks each message.
  void refresh(std::size_t room, std::size_t largest) {
    const AttributeKinds kinds = open_->empty() ? kinds_of_last_ : open_->kinds();
    room_ = kinds.any() ? 0 : room;
    record_bytes_max_ = largest;
  }
  /// Makes room for one record of `bytes`.
  void reserve(std::size_t bytes) { room_ = bytes; }
  /// Records that these attribute kinds are in use, so that the next batch begins with them.
  void use(const AttributeKinds& kinds) { kinds_used_ = kinds_used_ | kinds; }
  /// Continues with an empty batch, after the last one was closed.
  void begin(BatchBuilder& open) {
    open_ = &open;
    kinds_of_last_ = std::exchange(kinds_used_, {}) | required_;
  }

 private:
  /// Sets or removes the callback of the message that is being added. Not inlined, because callbacks for
  /// single messages are rare.
  [[gnu::noinline]] void watch(MessageCallback callback) { reports_->watch(sent_, std::move(callback)); }
  [[gnu::noinline]] void unwatch() { reports_->unwatch(); }

  /// Returns the kinds of a batch that begins with this message: its own and those of the last batch, or only
  /// its own if the message would be too large otherwise.
  [[nodiscard]] AttributeKinds kinds_to_begin_with(std::size_t payload_bytes,
                                                   const Attributes& attributes) const {
    const AttributeKinds own = kinds_for(attributes);
    const AttributeKinds both = own | kinds_of_last_;
    const std::size_t bytes = attributes_bytes(both, attributes) + payload_bytes;
    return record_bytes(bytes) <= record_bytes_max_ ? both : own;
  }

  ResetByMove<std::size_t> room_;  // bytes of records that the open batch takes without a check
  std::size_t record_bytes_max_ = 0;
  ResetByMove<BatchBuilder*> open_;
  std::uint64_t sent_ = 0;
  bool writing_ = false;
  AttributeKinds kinds_used_;     // of the messages in the open batch
  AttributeKinds kinds_of_last_;  // of the batch that was closed last
  AttributeKinds required_;
  ResetByMove<SendReports*> reports_;
  HomeProcess home_;
};

}  // namespace lightq::inline v1
