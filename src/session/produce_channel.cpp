/// Checks, stores and confirms a producer's batches. Layer: session.
#include "session/produce_channel.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/random.hpp>
#include <lightq/base/ttl.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_work.hpp"
#include "delivery/batches/unpacked.hpp"
#include "session/frame_translation.hpp"

namespace lightq::broker {

using session::Code;
using session::ConfirmLevel;

namespace {

constexpr std::size_t unflushed_max = 4096;

/// Returns the level at which "confirmed" means stored as safely as the topic can. For a durable topic that
/// is synced to disk.
ConfirmLevel default_level(const TopicRuntime& topic) {
  return topic.store().is_durable() ? ConfirmLevel::flushed : ConfirmLevel::received;
}

}  // namespace

ProduceChannel::ProduceChannel(TopicRuntime& topic, SessionChannels& session, ChannelNumbers& due,
                               std::uint32_t number)
    : Channel(Kind::produces, number), topic_(&topic), session_(session), due_(due) {}

ProduceChannel::~ProduceChannel() {
  ProduceChannel::leave();
}

void ProduceChannel::leave() {
  if (topic_ != nullptr) std::exchange(topic_, nullptr)->publishing().detach(*this);
}

void ProduceChannel::fetch_ahead_for_input(unsigned step) const {
  if (topic_ == nullptr) return;
  if (step == 0) return topic_->fetch_ahead_fields();
  topic_->fetch_ahead_for_input(step - 1);
}

Code ProduceChannel::open(const session::ProduceOpen& asked, const Client& client) {
  level_ = asked.level == ConfirmLevel::topics_default ? default_level(*topic_) : asked.level;
  if (level_ == ConfirmLevel::flushed && !topic_->store().is_durable()) return Code::not_supported;
  ProducerTable::Opener opener{.user = client.user, .shown = asked.secret};
  if (client.keeps_secrets) fill_random(opener.fresh.emplace());
  const auto opened = topic_->publishing().open(identity_of(asked.producer), *this, opener);
  if (opened.refusal != ClientError::none) return code_of(opened.refusal);
  identity_ = opened.producer.identity;
  if (client.keeps_secrets) secret_ = opened.producer.secret;
  received_ = told_ = opened.producer.expected;
  batch_bytes_max_ = std::min(client.batch_bytes_max, topic_->publishing().batch_bytes_max());
  return Code::ok;
}

void ProduceChannel::admitted() {
  next_offset_ = topic_->store().next_offset();
  session_.begin(*this,
                 session::ProduceOpened{.producer = frame_of(identity_),
                                        .level = level_,
                                        .batch_bytes_max = static_cast<std::uint32_t>(batch_bytes_max_),
                                        .message_bytes_max = topic_->publishing().message_bytes_max(),
                                        .expected = received_,
                                        .next_offset = next_offset_.value,
                                        .incarnation = topic_->incarnation(),
                                        .secret = secret_});
  note_unflushed();
  durable_moved();
}

void ProduceChannel::note_unflushed() {
  if (!topic_->store().is_durable()) return;
  // While a disk does not respond, the last entry covers everything received since.
  if (unflushed_.size() == unflushed_max) unflushed_.pop_back();
  unflushed_.push_back({received_, next_offset_});
  topic_->publishing().await_durable(*this);
}

void ProduceChannel::produce(std::span<std::byte> body, bool flush) {
  const BatchView view = BatchView::trusted(body.data());
  const Sequences sequences{{view.producer_id(), view.producer_epoch()},
                            view.first_sequence(),
                            std::max<std::uint32_t>(view.record_count(), 1)};
  const auto checked = BatchView::check_produced(body);
  // The header may be damaged too. So the batch is refused, never ignored: it may be the expected one
  // although its sequence seems unexpected.
  if (checked.fault) {
    const bool expected = sequences.begin == received_ && sequences.count <= UINT64_MAX - received_;
    return refuse(expected ? sequences : Sequences{identity_, received_, 1}, Code::corrupt,
                  "the batch has a wrong checksum or an invalid format");
  }
  if (refusing_ && sequences.begin != received_) return;
  if (sequences.count > UINT64_MAX - sequences.begin)
    return break_off("the batch has sequence numbers beyond the maximum");
  if (sequences.producer.id != identity_.id) return break_off("a batch of another producer id");
  if (topic_->publishing().message_bytes_max() < checked.longest_message_bytes)
    return refuse_too_long(sequences);
  const bool has_more_to_check = view.is_compressed() || view.kinds().has(AttributeKinds::headers);
  HeaderContent content;
  if (has_more_to_check && topic_->producers().admit(sequences) == Admission::store) {
    const auto found =
        view.is_compressed() ? check_packed(view, sequences) : check_headers(header_content(view), sequences);
    if (!found) return;
    content = *found;
  }
  const OwnTtl ttl = content.has_ttl ? OwnTtl::some : OwnTtl::none;
  take({{body, view.record_count(), view.message_bytes(), ttl, content.uniform_ttl_ms}, sequences, flush});
}

/// Ends the channel, because the client violates the protocol.
void ProduceChannel::break_off(const std::string& why) {
  leave();
  session_.end(*this, Code::invalid_frame, why);
}

/// Checks a compressed batch before it is stored compressed, so that no consumer receives an unreadable one.
/// A batch that is not going to be stored is not checked, because decompressing costs more than sending.
/// Returns nothing if it is refused.
std::optional<HeaderContent> ProduceChannel::check_packed(const BatchView& batch,
                                                          const Sequences& sequences) {
  const FallibleAllocations fallible;
  const auto content =
      content_packed_in(batch);  // without memory the session ends, and the client sends again
  if (!content) {
    refuse(sequences, Code::corrupt, "the batch cannot be unpacked");
    return std::nullopt;
  }
  if (content->longest_message_bytes <= topic_->publishing().message_bytes_max())
    return check_headers(*content, sequences);
  refuse_too_long(sequences);
  return std::nullopt;
}

/// Refuses a batch if a message claims to be a dead letter, or has an invalid time to live; then returns
/// nothing.
std::optional<HeaderContent> ProduceChannel::check_headers(const HeaderContent& content,
                                                           const Sequences& sequences) {
  if (content.has_dead_headers) {
    refuse(sequences, Code::not_supported,
           "only the broker sets headers that begin with " + std::string(dead_header_prefix));
    return std::nullopt;
  }
  if (content.has_invalid_ttl) {
    refuse(sequences, Code::not_supported,
           "a message has at most one header " + std::string(ttl_header_name) +
               ", a number of milliseconds from 1 to " + std::to_string(limits::ttl_ms_max));
    return std::nullopt;
  }
  return content;
}

void ProduceChannel::take(const Arrived& arrived) {
  switch (topic_->producers().admit(arrived.sequences)) {
    case Admission::store: break;
    case Admission::repeat: note_progress(true); return;
    case Admission::out_of_sequence:
      return refuse(
          arrived.sequences, Code::out_of_sequence,
          arrived.sequences.begin < received_
              ? "some of these messages are stored already, and others are not: send from `expected` on"
              : "messages before these are missing");
    case Admission::fenced:
      return refuse(arrived.sequences, Code::fenced, "another producer has opened this producer id");
    case Admission::unknown:
      leave();
      return session_.end(*this, Code::unknown_producer, "the broker has forgotten the producer");
  }
  refusing_ = false;
  if (!topic_->publishing().accepting() || !store(arrived)) hold(arrived);
}

/// Returns false if there is no space.
bool ProduceChannel::store(const Arrived& arrived) {
  switch (topic_->publishing().store(arrived.batch, arrived.sequences)) {
    case PublishOutcome::accepted: stored(arrived); return true;
    case PublishOutcome::held: return false;
    case PublishOutcome::refused:
      refuse(arrived.sequences, Code::too_large, "the batch is larger than the topic can store");
      return true;
    case PublishOutcome::rejected: break;
  }
  if (topic_->publishing().is_held_by_disk()) {
    refuse(arrived.sequences, Code::no_space, "the disk is full or cannot be written");
  } else {
    refuse(arrived.sequences, Code::limit_reached, "the topic is full");
  }
  return true;
}

/// Keeps the batch until the topic has space. If there is no memory for it, std::bad_alloc ends the session
/// before anything has changed.
void ProduceChannel::hold(const Arrived& arrived) {
  const FallibleAllocations fallible;
  held_.assign(arrived.batch.bytes.begin(), arrived.batch.bytes.end());
  held_batch_ = arrived;
  held_batch_.batch.bytes = held_;
  session_.note_held();
  topic_->publishing().hold(*this);
}

bool ProduceChannel::resume() {
  if (!held()) return true;
  if (!topic_->publishing().accepting() || !store(held_batch_)) return false;
  held_ = std::vector<std::byte>();
  session_.note_resumed();
  return true;
}

void ProduceChannel::stored(const Arrived& arrived) {
  received_ = arrived.sequences.begin + arrived.sequences.count;
  next_offset_ = topic_->store().next_offset();
  note_unflushed();
  if (level_ == ConfirmLevel::flushed || arrived.flush) topic_->publishing().want_flush();
  note_progress(false);
}

bool ProduceChannel::durable_moved() {
  const Offset durable = topic_->store().durable_offset();
  while (!unflushed_.empty() && unflushed_.front().offset <= durable) {
    flushed_ = unflushed_.front().sequence;
    unflushed_.pop_front();
  }
  if (note_progress(false)) session_.life().work_soon();
  return !unflushed_.empty();
}

/// Notes that a confirm is due if there is progress. `again`: also without progress, to repeat an earlier
/// confirm. Returns true if none was due before.
bool ProduceChannel::note_progress(bool again) {
  const std::uint64_t reached = level_ == ConfirmLevel::flushed ? flushed_ : received_;
  if ((!again && reached <= told_) || std::exchange(confirm_due_, true)) return false;
  due_.add(number());
  return true;
}

session::Confirm ProduceChannel::take_confirm() {
  confirm_due_ = false;
  told_ = level_ == ConfirmLevel::flushed ? flushed_ : received_;
  return {received_, flushed_, next_offset_.value};
}

bool ProduceChannel::settled() const {
  return topic_ == nullptr || (!held() && !confirm_due_ && told_ == received_);
}

void ProduceChannel::refuse(const Sequences& sequences, Code code, const std::string& why) {
  refusing_ = true;
  TurnWork::add(TurnWork::refusal_made);
  session_.output().send(
      session::Refuse{sequences.begin, sequences.begin + sequences.count, received_, code, why}, number(), 0);
}

void ProduceChannel::refuse_too_large(ByteView batch_header) {
  if (topic_ == nullptr) return;
  const BatchView view = BatchView::trusted(batch_header.data());
  const std::uint64_t begin = view.first_sequence();
  if (refusing_ && begin != received_) return;
  const std::uint32_t count = std::max<std::uint32_t>(view.record_count(), 1);
  const bool expected =
      begin == received_ && count <= UINT64_MAX - received_ && view.producer_id() == identity_.id;
  if (!expected)
    return refuse({identity_, received_, 1}, Code::out_of_sequence,
                  "a batch that is too large and not the next in sequence");
  refuse_too_long({identity_, begin, count});
}

void ProduceChannel::refuse_too_long(const Sequences& sequences) {
  topic_->publishing().count_too_long(1);
  refuse(sequences, Code::too_large, "a message is longer than the broker accepts");
}

void ProduceChannel::end(ClientError error, const std::string& why) {
  topic_ = nullptr;
  if (held()) {
    held_ = std::vector<std::byte>();
    session_.note_resumed();
  }
  session_.end(*this, code_of(error), why);
}

}  // namespace lightq::broker
