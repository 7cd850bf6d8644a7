/// The batches of a producer, from packing to confirm. docs/session.md, "Producing". Layer: client.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <lightq/base/batch_builder.hpp>
#include <lightq/base/compression.hpp>
#include <lightq/detail/session_connection.hpp>
#include <lightq/protocol/session_producing.hpp>

namespace lightq::inline v1 {

/// The open batch, which collects messages, and the closed batches that are not confirmed yet. Each keeps its
/// bytes until it is settled. A batch gets its sequence number when it is first sent, and keeps it when it is
/// sent again. Only the broker's statement of the sequence that it expects can change it. Sequence numbers
/// are those on the wire; message numbers count the messages that `send` accepted. Movable. For one thread.
class SessionBatches final : public SessionOutgoing {
 public:
  /// The messages of a batch that was removed.
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool sent = false;                         ///< was sent at some time, so it may be stored
    std::optional<std::uint64_t> number = {};  ///< that of its first message where it is stored, if known
  };

  SessionBatches() : open_(std::make_unique<Batch>()) {}

  // --- Packing.

  /// Returns the batch that messages are packed into. Valid until `roll`.
  [[nodiscard]] BatchBuilder& open() { return open_->builder; }
  [[nodiscard]] const BatchBuilder& open() const { return open_->builder; }
  /// Closes the open batch. Requires: it is not empty. `next_message` is the number after its last message.
  /// `flush` asks that it become durable soon. The batch is compressed only if that makes it shorter.
  void roll(std::uint64_t next_message, bool flush, Codec codec = Codec::none) {
    open_->first_message = next_message - open_->builder.record_count();
    open_->flush = flush;
    if (codec != Codec::none) compress_open(codec);
    held_bytes_ += open_->builder.capacity_bytes();
    kept_.push_back(std::move(open_));
    if (free_.empty()) {
      open_ = std::make_unique<Batch>();
      return;
    }
    open_ = std::move(free_.back());  // the last one used: it may still be in the cache
    free_.pop_back();
    free_bytes_ -= open_->builder.capacity_bytes();
  }

  // --- State.

  /// Returns the memory of the closed batches, in bytes.
  [[nodiscard]] std::size_t held_bytes() const { return held_bytes_; }
  /// Returns the number of closed batches.
  [[nodiscard]] std::size_t count() const { return kept_.size(); }
  /// Returns the number of batches that are not confirmed, and that were sent on this connection (also in
  /// part) or stored on an earlier one.
  [[nodiscard]] std::size_t in_flight() const { return cursor_ + (begun_bytes_ > 0 ? 1 : 0); }
  [[nodiscard]] bool all_sent() const { return cursor_ == kept_.size(); }
  /// Returns the number of the first message in a closed batch; nothing if there is no closed batch.
  [[nodiscard]] std::optional<std::uint64_t> first_message() const {
    return kept_.empty() ? std::nullopt : std::optional(kept_.front()->first_message);
  }
  /// Returns one past the highest sequence number that was ever sent.
  [[nodiscard]] std::uint64_t sent_end() const { return sent_end_; }
  /// Returns the number of messages that were sent and may be stored.
  [[nodiscard]] std::uint64_t doubtful() const {
    std::uint64_t messages = 0;
    for (const auto& batch : kept_) messages += batch->sent ? batch->count() : 0;
    return messages;
  }

  // --- On a connection.

  /// The parameters for sending batches on a connection.
  struct Terms {
    session::ProducerIdentity producer;
    std::uint32_t channel = 0;
    std::size_t batch_bytes_max = 0;
    std::size_t window_bytes = 0;  ///< limit of unconfirmed bytes; one batch of any size is allowed
  };

  /// Starts sending batches with these parameters.
  void start(const Terms& terms) { terms_ = terms; }
  /// Records that the connection has ended. A frame that was sent in part must be sent again as a whole.
  void stop() {
    begun_bytes_ = 0;
    rewind(0);
  }

  std::size_t gather(std::span<iovec> parts, std::size_t bytes_target) override {
    std::size_t used = 0;
    std::size_t named_bytes = 0;
    std::size_t begun = begun_bytes_;
    std::size_t on_the_way = in_flight_bytes_;
    for (std::size_t at = cursor_; at < kept_.size() && used + 2 <= parts.size(); ++at, begun = 0) {
      Batch& batch = *kept_[at];
      on_the_way += batch.builder.size_bytes();
      if (begun == 0) {
        if (batch.builder.size_bytes() > terms_.batch_bytes_max ||
            (at > 0 && on_the_way > terms_.window_bytes) ||
            (used > 0 && named_bytes + batch.header.size() + batch.builder.size_bytes() > bytes_target))
          break;
        prepare(batch);
      }
      if (begun < batch.header.size())
        parts[used++] = {batch.header.data() + begun, batch.header.size() - begun};
      const std::size_t of_body = begun - std::min(begun, batch.header.size());
      named_bytes += batch.frame_bytes() - begun;
      parts[used++] = {batch.bytes.data() + of_body, batch.bytes.size() - of_body};
    }
    return used;
  }
  [[nodiscard]] bool in_midst() const override { return begun_bytes_ > 0; }
  void written(std::size_t bytes) override {
    while (bytes > 0) {
      assert(cursor_ < kept_.size());
      const std::size_t whole = kept_[cursor_]->frame_bytes();
      const std::size_t part = std::min(bytes, whole - begun_bytes_);
      begun_bytes_ += part;
      bytes -= part;
      if (begun_bytes_ == whole) passed();
    }
  }

  /// Returns the rest of the frame that was sent in part; empty if there is none. The frame then counts as
  /// sent, and batches may be removed or renumbered. The caller must send the rest before anything else.
  std::vector<std::byte> take_rest() {
    std::vector<std::byte> rest;
    if (begun_bytes_ == 0) return rest;
    const Batch& batch = *kept_[cursor_];
    rest.insert(rest.end(), batch.header.begin(), batch.header.end());
    rest.insert(rest.end(), batch.bytes.begin(), batch.bytes.end());
    rest.erase(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(begun_bytes_));
    passed();
    return rest;
  }

  // --- Answers of the broker. Requires: no frame that was sent in part belongs to a batch that is removed;
  // call `take_rest` first.

  /// Numbers all batches from `sequence` on, which becomes the number of the next one.
  void number_from(std::uint64_t sequence) { renumber(0, sequence); }

  /// Returns true if a frame was sent in part and its batch lies wholly before `sequence`.
  [[nodiscard]] bool in_midst_before(std::uint64_t sequence) const {
    return in_midst() && kept_[cursor_]->end() <= sequence;
  }
  /// Records that the batch which ends at `sequence` is stored in front of index `next`. Ignored if no batch
  /// that was sent ends there.
  void stored_before(std::uint64_t sequence, std::uint64_t next) {
    const auto end_of = [](const std::unique_ptr<Batch>& batch) { return batch->end(); };
    const auto sent_end = kept_.begin() + static_cast<std::ptrdiff_t>(cursor_);
    const auto found = std::ranges::lower_bound(kept_.begin(), sent_end, sequence, {}, end_of);
    if (found != sent_end && end_of(*found) == sequence && (*found)->count() <= next)
      (*found)->number = next - (*found)->count();
  }
  /// Removes the first batch if it lies wholly before `sequence`.
  std::optional<Range> settle_before(std::uint64_t sequence) {
    if (kept_.empty() || !kept_.front()->numbered || kept_.front()->end() > sequence) return std::nullopt;
    return remove(0);
  }
  /// Removes the first batch. With `sent_only`: only if it was sent at some time.
  std::optional<Range> settle_first(bool sent_only) {
    if (kept_.empty() || (sent_only && !kept_.front()->sent)) return std::nullopt;
    return remove(0);
  }

  /// Handles the broker's statement that it expects `sequence` next. Sends the batches from there on again,
  /// and keeps those before it until they are confirmed. If the broker has lost confirmed messages, renumbers
  /// all batches from `sequence` on, and returns how many messages it has lost; otherwise 0. Returns nothing
  /// if no batch begins or ends at `sequence`.
  std::optional<std::uint64_t> continue_from(std::uint64_t sequence) {
    const std::uint64_t first =
        !kept_.empty() && kept_.front()->numbered ? kept_.front()->sequence : next_sequence_;
    if (sequence > sent_end_ && sequence != first) return std::nullopt;
    if (sequence < first) {
      renumber(0, sequence);
      return first - sequence;
    }
    std::size_t at = 0;
    while (at < kept_.size() && kept_[at]->numbered && kept_[at]->sequence < sequence) ++at;
    const std::uint64_t here =
        at < kept_.size() && kept_[at]->numbered ? kept_[at]->sequence : next_sequence_;
    if (here != sequence) return std::nullopt;
    rewind(at);
    return 0;
  }

  /// Removes the sent batch that has exactly these sequence numbers. The batches behind it are renumbered to
  /// close the gap.
  std::optional<Range> give_up(std::uint64_t begin, std::uint64_t end) {
    for (std::size_t at = 0; at < cursor_; ++at) {
      if (kept_[at]->sequence == begin && kept_[at]->end() == end) return give_up_at(at);
    }
    return std::nullopt;
  }
  /// Removes the batch that would be sent next if it is larger than the broker accepts.
  std::optional<Range> give_up_oversized() {
    if (begun_bytes_ > 0 || cursor_ == kept_.size()) return std::nullopt;
    if (kept_[cursor_]->builder.size_bytes() <= terms_.batch_bytes_max) return std::nullopt;
    return give_up_at(cursor_);
  }

 private:
  struct Batch {
    BatchBuilder builder;
    std::uint64_t first_message = 0;
    std::uint64_t sequence = 0;  // valid if `numbered`
    bool numbered = false;       // header and checksum are computed
    bool sent = false;           // completely, at some time
    bool flush = false;
    std::optional<std::uint64_t> number;                                  // see Range
    std::array<std::byte, session::frame_layout::header_bytes> header{};  // of the frame
    std::span<std::byte> bytes;                                           // valid if `numbered`

    [[nodiscard]] std::uint64_t count() const { return builder.record_count(); }
    [[nodiscard]] std::uint64_t end() const { return sequence + count(); }
    [[nodiscard]] std::size_t frame_bytes() const { return header.size() + bytes.size(); }
  };

  void compress_open(Codec codec) {
    BatchBuilder& builder = open_->builder;
    const ByteView records = builder.records();
    if (records.size() > limits::compressed_batch_bytes_max) return;
    const std::optional<ByteView> packed = compressor_.compress(codec, records);
    if (packed && packed->size() + sizeof(std::uint32_t) < records.size() &&
        may_be_packed_in(records.size(), packed->size()))
      builder.replace_records(codec, *packed);
  }

  void prepare(Batch& batch) {
    if (!batch.numbered) {
      batch.sequence = next_sequence_;
      batch.bytes = batch.builder.finish({terms_.producer.id, batch.sequence, terms_.producer.epoch});
      batch.numbered = true;
      next_sequence_ = batch.end();
    }
    const session::FrameHeader header{session::Op::produce,
                                      batch.flush ? session::flag_flush : std::uint8_t{0}, terms_.channel, 0,
                                      static_cast<std::uint32_t>(batch.bytes.size())};
    session::encode_frame_header(batch.header.data(), header, {});
  }

  /// Moves the cursor behind its batch, which has been sent.
  void passed() {
    Batch& batch = *kept_[cursor_++];
    begun_bytes_ = 0;
    batch.sent = true;
    in_flight_bytes_ += batch.bytes.size();
    sent_end_ = std::max(sent_end_, batch.end());
  }

  void rewind(std::size_t to) {
    assert(begun_bytes_ == 0);
    cursor_ = to;
    in_flight_bytes_ = 0;
    for (std::size_t at = 0; at < to; ++at) in_flight_bytes_ += kept_[at]->bytes.size();
  }

  /// Renumbers the batches from index `from` on, starting at `sequence`. None of them is stored.
  void renumber(std::size_t from, std::uint64_t sequence) {
    for (std::size_t at = from; at < kept_.size(); ++at) {
      kept_[at]->numbered = kept_[at]->sent = false;
      kept_[at]->number.reset();
    }
    next_sequence_ = sequence;
    sent_end_ = std::min(sent_end_, sequence);
    if (from == 0) sent_end_ = sequence;
    rewind(std::min(cursor_, from));
  }

  Range give_up_at(std::size_t at) {
    if (kept_[at]->numbered) renumber(at, kept_[at]->sequence);
    return remove(at);
  }

  Range remove(std::size_t at) {
    assert(begun_bytes_ == 0 || at != cursor_);
    std::unique_ptr<Batch> batch = std::move(kept_[at]);
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(at));
    if (at < cursor_) {
      --cursor_;
      in_flight_bytes_ -= batch->bytes.size();
    }
    const Range range{batch->first_message, batch->first_message + batch->count(), batch->sent,
                      std::exchange(batch->number, std::nullopt)};
    held_bytes_ -= batch->builder.capacity_bytes();
    batch->builder.clear();
    batch->numbered = batch->sent = false;
    if (free_bytes_ + batch->builder.capacity_bytes() <= terms_.window_bytes) {
      free_bytes_ += batch->builder.capacity_bytes();
      free_.push_back(std::move(batch));
    }
    return range;
  }

  Compressor compressor_;
  std::unique_ptr<Batch> open_;
  std::deque<std::unique_ptr<Batch>> kept_;  // closed ones, oldest first; numbered ones before others
  std::vector<std::unique_ptr<Batch>> free_;
  std::size_t held_bytes_ = 0;       // memory of `kept_`
  std::size_t free_bytes_ = 0;       // memory of `free_`
  std::size_t cursor_ = 0;           // index in `kept_` of the next batch to send
  std::size_t begun_bytes_ = 0;      // bytes of the frame at the cursor that were sent
  std::size_t in_flight_bytes_ = 0;  // of the batches before the cursor
  std::uint64_t next_sequence_ = 0;  // for the next batch that gets a number
  std::uint64_t sent_end_ = 0;
  Terms terms_;
};

}  // namespace lightq::inline v1
