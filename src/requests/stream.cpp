/// A consumer that sends messages to one client until it ends. Layer: requests.
#include "requests/stream.hpp"

#include <algorithm>
#include <utility>

#include "delivery/batches/unpacked.hpp"
#include "requests/request_errors.hpp"

namespace lightq::broker {

namespace {

/// Returns how much may be granted: `most`, less the amounts that are used or were granted before.
std::uint64_t credit_left(std::uint64_t most, std::uint64_t used, std::uint64_t granted,
                          std::uint64_t delivered) {
  const std::uint64_t open = granted > delivered ? granted - delivered : 0;
  return most > used + open ? most - used - open : 0;
}

}  // namespace

Stream::Stream(Parts parts, StreamWish wish)
    : MessageHolder(parts.topic, parts.access, std::move(parts.requester), std::move(parts.copies)),
      id_(parts.id),
      client_(std::move(parts.client)),
      over_(std::move(parts.over)),
      wish_(std::move(wish)) {}

TopicConsumers::Refusal Stream::begin() {
  granted_ = {wish_.messages_max, wish_.bytes_max};
  const bool has_group = !wish_.group.empty();
  return join({.group = wish_.group,
               .mode = has_group ? GroupMode::group : GroupMode::own,
               .acknowledgement = is_leased() ? AckMode::by_consumer : AckMode::automatic,
               .start = wish_.start,
               .credit = {wish_.messages_max, wish_.bytes_max},
               .ack_timeout_ms = static_cast<std::uint32_t>(wish_.lasts.count())});
}

void Stream::admitted(const Opened& opened) {
  is_admitted_ = true;
  client_->opened({.stream = id_, .lease = is_leased() ? id_ : 0, .next = opened.next});
}

bool Stream::writable() const {
  return client_ != nullptr && refused_ == 0 && is_permitted() && may_copy();
}

void Stream::deliver(const DeliveredSlice& delivered) {
  taken_.lost += delivered.lost;
  const auto plain = unpacked(delivered.slice);
  if (!plain || !*plain) {
    refused_ = delivered.slice.count;
    return;
  }
  const StreamAmount amount{delivered.slice.count, delivered.slice.message_bytes()};
  delivered_ += amount;
  taken_.amount += amount;
  if (taken_.held == nullptr) taken_.held = holding();
  taken_.held->add(amount.bytes);
  append_copies(**plain, {.delivery = is_leased() ? delivered.delivery : 0}, taken_.messages);
}

void Stream::flush() {
  if (client_ == nullptr) return;
  if (!taken_.messages.empty()) client_->sent(std::exchange(taken_, {}));
  if (refused_ > 0) end_with({ErrorCode::corrupt, "the next messages cannot be read"});
}

void Stream::written(const StreamAmount& taken) {
  written_ += taken;
  give_credit();
}

void Stream::give_credit() {
  if (topic() == nullptr) return;
  const std::uint64_t unwritten = delivered_.messages - written_.messages;
  const Credit credit{
      credit_left(wish_.messages_max, std::max(unwritten, in_flight()), granted_.messages,
                  delivered_.messages),
      credit_left(wish_.bytes_max, delivered_.bytes - written_.bytes, granted_.bytes, delivered_.bytes)};
  if (credit.messages == 0 && credit.bytes == 0) return;
  if (topic()->consumers().add_credit(*this, credit)) granted_ += {credit.messages, credit.bytes};
}

void Stream::look_at_rights() {
  if (topic() != nullptr && !is_permitted()) end_with(right_withdrawn());
}

void Stream::give_up() {
  if (!is_admitted_) end_with({ErrorCode::timeout, "the disk has not stored the new group in time"});
}

void Stream::end_with(const Error& why) {
  const auto client = std::exchange(client_, nullptr);
  if (client == nullptr) return;
  leave();
  client->ended(why);
  over_();
}

void Stream::end(ClientError code, const std::string& why) {
  forget_topic();
  end_with(error_of(code, why));
}

}  // namespace lightq::broker
