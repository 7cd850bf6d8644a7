/// A consumer over a session, as the broker sees it. It writes down the calls.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "delivery/batches/unpacked.hpp"
#include "delivery/session_consumer.hpp"
#include "model/content.hpp"

namespace lightq::model {

/// A call of a consumer.
struct Told {
  enum class What : std::uint8_t { admitted, delivered, revoked, late, ended, pulled };
  int client = 0;  ///< its number
  What what = What::delivered;
  std::vector<OffsetRange> ranges = {};  ///< the messages
  std::uint32_t delivery = 0;
  std::uint32_t hand_out = 0;
  broker::RevokeCause cause = broker::RevokeCause::silent;
  std::vector<std::uint64_t> numbers = {};  ///< of the contents
  std::string fault = {};                   ///< a difference of a content
  broker::ClientError code = broker::ClientError::none;
  std::uint32_t timeout_ms = 0;
  std::string text = {};  ///< a payload that a plain consumer gets
};

/// The calls of all consumers in their order.
using Journal = std::deque<Told>;

class Client final : public broker::SessionConsumer {
 public:
  Client(Journal& journal, int as_number, bool hears) : number(as_number), journal_(journal), hears_(hears) {}

  void admitted(const Opened& opened) override {
    journal_.push_back({.client = number, .what = Told::What::admitted, .timeout_ms = opened.ack_timeout_ms});
  }
  [[nodiscard]] bool writable() const override { return is_writable; }
  [[nodiscard]] CodecSet codecs() const override { return CodecSet::known(); }
  void deliver(const broker::DeliveredSlice& delivered) override {
    Told told{.client = number, .what = Told::What::delivered, .ranges = {delivered.slice.range()}};
    told.delivery = delivered.delivery;
    told.hand_out = delivered.hand_out;
    const std::byte* at = delivered.slice.records.data();
    const AttributeKinds kinds = delivered.slice.batch.kinds();
    for (std::uint32_t left = delivered.slice.count; left != 0; --left) {
      const auto length = load_little_endian<std::uint32_t>(at);
      const ByteView message(at + sizeof length, length);
      const ByteView payload = payload_of(kinds, message);
      const AttributesView attributes = AttributesView::trusted(kinds, message.data());
      const auto content = Content::number_in(attributes, payload);
      told.numbers.push_back(content.value_or(UINT64_MAX));
      if (content) {
        const auto fault = Content{*content}.difference(attributes, payload);
        if (!fault.empty()) told.fault = fault;
      } else {
        told.fault = "an unknown payload";
      }
      at += record_bytes(length);
    }
    journal_.push_back(std::move(told));
  }
  void flush() override {}
  [[nodiscard]] bool hears_late() const override { return hears_; }
  void late(const std::vector<OffsetRange>& ranges) override {
    journal_.push_back({.client = number, .what = Told::What::late, .ranges = ranges});
  }
  void revoked(broker::RevokeCause cause, std::uint32_t before,
               const std::vector<OffsetRange>& ranges) override {
    Told told{.client = number, .what = Told::What::revoked, .ranges = ranges};
    told.hand_out = before;
    told.cause = cause;
    journal_.push_back(std::move(told));
  }
  void end(broker::ClientError code, const std::string&) override {
    journal_.push_back({.client = number, .what = Told::What::ended, .code = code});
  }

  const int number;
  bool is_writable = true;

 private:
  Journal& journal_;
  const bool hears_;
};

}  // namespace lightq::model
