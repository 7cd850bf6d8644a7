/// A session for tests: it keeps the frames that the code under test sends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <lightq/protocol/session_consuming.hpp>

#include "session/frame_output.hpp"
#include "session/read_queue.hpp"

namespace lightq::test {

class FakeSession final : public broker::FrameOutput, public broker::ReadQueue::Host {
 public:
  /// A frame that was sent. Its checksum has been verified.
  struct Frame {
    session::FrameHeader header;
    std::vector<std::byte> body;

    template <typename Body>
    [[nodiscard]] Body as() const {
      EXPECT_EQ(header.op, Body::op);
      const auto decoded = Body::decode(body, header.flags);
      EXPECT_TRUE(decoded.ok());
      return decoded.ok() ? *decoded : Body{};
    }
    [[nodiscard]] session::DeliverHead head() const {
      EXPECT_EQ(header.op, session::Op::deliver);
      return session::DeliverHead::decode(ByteView(body).first(session::deliver_head_bytes)).value_or_throw();
    }
    /// Returns the delivered batch. Its checksums have been verified.
    [[nodiscard]] BatchView batch() const {
      const ByteView bytes = ByteView(body).subspan(session::deliver_head_bytes);
      EXPECT_EQ(BatchView::check(bytes), std::nullopt);
      const BatchView batch = BatchView::trusted(bytes.data());
      EXPECT_EQ(batch.total_bytes(), bytes.size());
      return batch;
    }
    [[nodiscard]] bool is_part() const { return (header.flags & session::flag_part) != 0; }
  };

  [[nodiscard]] broker::TopicRuntime* permitted(const std::string&, broker::EndpointRole role,
                                                const broker::GroupScope&) const override {
    return role == no_longer_permitted || all_forbidden ? nullptr : topic;
  }
  [[nodiscard]] broker::TopicRuntime* find_topic(TopicId) const override { return topic; }
  void append(ByteView bytes) override { keep(bytes, {}); }
  void deliver(ByteView head, ByteView rest) override {
    ++delivered;
    keep(head, rest);
  }
  void out_of_memory_for_output() override { starved = true; }
  [[nodiscard]] bool has_room() const override { return delivered < room; }
  [[nodiscard]] std::uint32_t client_takes_bytes() const override { return takes_bytes; }
  [[nodiscard]] CodecSet client_codecs() const override { return codecs; }
  bool has_turn() override { return spent < work_max; }
  void spend(std::uint64_t bytes) override { spent += bytes; }
  void work_soon() override { ++works_soon; }

  broker::TopicRuntime* topic = nullptr;
  std::optional<broker::EndpointRole> no_longer_permitted;
  bool all_forbidden = false;
  std::uint32_t takes_bytes = 64 * 1024;
  CodecSet codecs;                                             // that the client can read
  std::size_t room = std::numeric_limits<std::size_t>::max();  ///< deliver frames until the session is full
  bool starved = false;
  std::size_t delivered = 0;
  std::uint64_t work_max = std::numeric_limits<std::uint64_t>::max();  ///< in a turn
  std::uint64_t spent = 0;
  int works_soon = 0;
  std::vector<Frame> frames;

 private:
  void keep(ByteView head, ByteView rest) {
    std::vector<std::byte> bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    ASSERT_GE(bytes.size(), session::frame_layout::header_bytes);
    const auto decoded = session::decode_frame_header(bytes, takes_bytes);
    ASSERT_FALSE(decoded.fault.has_value()) << to_word(*decoded.fault);
    ASSERT_EQ(bytes.size(), session::frame_layout::header_bytes + decoded.header.body_bytes);
    EXPECT_TRUE(session::frame_crc_fits(bytes, decoded.header));
    bytes.erase(bytes.begin(), bytes.begin() + session::frame_layout::header_bytes);
    frames.push_back({decoded.header, std::move(bytes)});
  }
};

}  // namespace lightq::test
