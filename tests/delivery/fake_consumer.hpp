/// A session consumer for tests of delivery. It keeps the delivered messages.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "delivery/batches/unpacked.hpp"
#include "delivery/session_consumer.hpp"

namespace lightq::test {

class FakeConsumer final : public broker::SessionConsumer {
 public:
  /// A delivered frame.
  struct Frame {
    OffsetRange range;
    std::uint32_t delivery;
    std::uint64_t lost;
    bool whole;
    std::vector<std::string> payloads;
    std::uint32_t hand_out = 0;
  };
  /// A revocation that it was told.
  struct Revocation {
    broker::RevokeCause cause;
    std::uint32_t before;
    std::vector<OffsetRange> ranges;
    friend bool operator==(const Revocation&, const Revocation&) = default;
  };

  void admitted(const Opened& opened) override { opened_at = opened; }
  [[nodiscard]] bool writable() const override { return is_writable; }
  [[nodiscard]] CodecSet codecs() const override { return reads; }
  void deliver(const broker::DeliveredSlice& delivered) override {
    Frame frame{delivered.slice.range(), delivered.delivery, delivered.lost, delivered.slice.is_whole(), {}};
    frame.hand_out = delivered.hand_out;
    message_bytes += delivered.slice.message_bytes();
    packed += delivered.slice.batch.is_compressed() ? 1 : 0;
    const broker::BatchSlice plain =
        broker::unpacked(delivered.slice).value_or_throw().value_or(broker::BatchSlice{});
    // An unreadable batch is for the client to report.
    if (!plain.batch.valid()) return frames.push_back(std::move(frame));
    const std::byte* at = plain.records.data();
    for (std::uint32_t left = plain.count; left != 0; --left) {
      const auto length = load_little_endian<std::uint32_t>(at);
      const ByteView message(at + sizeof length, length);
      frame.payloads.emplace_back(as_text(payload_of(plain.batch.kinds(), message)));
      at += record_bytes(length);
    }
    const std::size_t kept = frame.payloads.size() - std::min<std::size_t>(refuses, frame.payloads.size());
    frame.payloads.resize(kept);
    if (refuses > 0) is_writable = false;
    ends_with_its_bytes &= at == plain.records.data() + plain.records.size();
    frames.push_back(std::move(frame));
  }
  [[nodiscard]] std::uint32_t refused() const override { return refuses; }
  void flush() override { ++flushes; }
  [[nodiscard]] bool hears_late() const override { return wants_late; }
  void late(const std::vector<OffsetRange>& ranges) override {
    was_late.insert(was_late.end(), ranges.begin(), ranges.end());
  }
  void revoked(broker::RevokeCause cause, std::uint32_t before,
               const std::vector<OffsetRange>& ranges) override {
    revocations.push_back({cause, before, ranges});
  }
  void end(broker::ClientError code, const std::string&) override { ended = code; }

  [[nodiscard]] std::vector<std::string> payloads() const {
    std::vector<std::string> all;
    for (const Frame& frame : frames) all.insert(all.end(), frame.payloads.begin(), frame.payloads.end());
    return all;
  }
  /// Returns the payloads since the last call, with the delivery number if it is not 1: "a", "b#2".
  std::vector<std::string> take() {
    std::vector<std::string> taken;
    for (const Frame& frame : std::exchange(frames, {})) {
      for (const auto& payload : frame.payloads)
        taken.push_back(frame.delivery == 1 ? payload : payload + "#" + std::to_string(frame.delivery));
    }
    return taken;
  }

  bool is_writable = true;
  CodecSet reads = CodecSet::known();
  std::uint32_t refuses = 0;  ///< the number of records of the next slice that it refuses
  bool ends_with_its_bytes = true;
  int flushes = 0;
  bool wants_late = false;
  std::vector<OffsetRange> was_late;
  std::vector<Revocation> revocations;
  int packed = 0;  ///< the number of slices that arrived compressed
  std::uint64_t message_bytes = 0;
  std::vector<Frame> frames;
  std::optional<Opened> opened_at;
  std::optional<broker::ClientError> ended;
};

}  // namespace lightq::test
