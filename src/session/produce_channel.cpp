/// Checks, stores and confirms a producer's batches. Layer: session.
#include "session/produce_channel.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/random.hpp>
#include <lightq/base/ttl.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_work.hpp"
#include "delivery/batches/message_ids.hpp"
#include "delivery/batches/unpacked.hpp"
#include "session/frame_translation.hpp"

namespace lightq::broker {

using session::Code;
using session::ConfirmLevel;

namespace {

constexpr std::size_t unflushed_max = 4096;

constexpr std::size_t untold_max = 4096;

/// Returns the level at which "confirmed" means stored as safely as the topic can. For a durable topic that
/// is synced to disk.
ConfirmLevel default_level(const ProduceTarget& target) {
  return target.is_durable() ? ConfirmLevel::flushed : ConfirmLevel::received;
}

}  // namespace

ProduceChannel::ProduceChannel(TopicRuntime& topic, ProduceTarget& target, SessionChannels& session,
                               ChannelNumbers& due, std::uint32_t number)
    : Channel(Kind::produces, number), topic_(&topic), target_(target), session_(session), due_(due) {}

ProduceChannel::~ProduceChannel() {
  ProduceChannel::leave();
}

void ProduceChannel::leave() {
  if (std::exchange(topic_, nullptr) != nullptr) target_.detach(*this);
}

void ProduceChannel::fetch_ahead_for_input(unsigned step) const {
  if (topic_ == nullptr) return;
  if (step == 0) return topic_->fetch_ahead_fields();
  topic_->fetch_ahead_for_input(step - 1);
}

Code ProduceChannel::open(const session::ProduceOpen& asked, const Client& client) {
  level_ = asked.level == ConfirmLevel::topics_default ? default_level(target_) : asked.level;
  if (level_ == ConfirmLevel::flushed && !target_.is_durable()) return Code::not_supported;
  ProducerTable::Opener opener{.user = client.user, .shown = asked.secret};
  if (client.keeps_secrets) fill_random(opener.fresh.emplace());
  asked_target_ = asked.target;
  const auto opened = target_.open(identity_of(asked.producer), *this, opener);
  if (opened.refusal != ClientError::none) return code_of(opened.refusal);
  identity_ = opened.producer.identity;
  if (client.keeps_secrets) secret_ = opened.producer.secret;
  received_ = opened.producer.expected;
  told_ = level_ == ConfirmLevel::flushed ? 0 : received_;
  batch_bytes_max_ = std::min(client.batch_bytes_max, target_.batch_bytes_max());
  return Code::ok;
}

void ProduceChannel::admitted() {
  next_offset_ = target_.ends().next;
  session_.begin(*this,
                 session::ProduceOpened{.producer = frame_of(identity_),
                                        .level = level_,
                                        .batch_bytes_max = static_cast<std::uint32_t>(batch_bytes_max_),
                                        .message_bytes_max = target_.message_bytes_max(),
                                        .expected = received_,
                                        .next_offset = next_offset_.value,
                                        .incarnation = target_.target_incarnation(),
                                        .secret = secret_,
                                        .target = asked_target_});
  note_unflushed();
  durable_moved();
  if (level_ == ConfirmLevel::flushed && flushed_ < received_) target_.want_flush();
}

void ProduceChannel::note_unflushed() {
  if (!target_.is_durable()) return;
  // While a disk does not respond, the last entry covers everything received since.
  if (unflushed_.size() == unflushed_max) unflushed_.pop_back();
  unflushed_.push_back({received_, next_offset_});
  target_.await_durable(*this);
}

void ProduceChannel::produce(std::span<std::byte> body, bool flush) {
  const BatchView view = BatchView::trusted(body.data());
  const Sequences sequences{{view.producer_id(), view.producer_epoch()},
                            view.first_sequence(),
                            std::max<std::uint32_t>(view.record_count(), 1)};
  const auto checked = BatchView::check_produced(body, AttributeKinds(AttributeKinds::known));
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
  if (target_.message_bytes_max() < checked.longest_message_bytes) return refuse_too_long(sequences);
  const bool has_more_to_check =
      view.is_compressed() || view.kinds().has(AttributeKinds::headers | AttributeKinds::dues);
  HeaderContent content;
  if ((has_more_to_check || is_scheduled()) && target_.admit(sequences) == Admission::store &&
      !check_content(view, sequences, content))
    return;
  const OwnTtl ttl = content.has_ttl ? OwnTtl::some : OwnTtl::none;
  take({{body, view.record_count(), view.message_bytes(), ttl, content.uniform_ttl_ms}, sequences, flush});
}

/// Ends the channel, because the client violates the protocol.
void ProduceChannel::break_off(const std::string& why) {
  leave();
  session_.end(*this, Code::invalid_frame, why);
}

/// Checks the content of a batch that is to be stored, and sets `content`. Returns false if it is refused.
bool ProduceChannel::check_content(const BatchView& batch, const Sequences& sequences,
                                   HeaderContent& content) {
  if (!check_kinds(batch, sequences)) return false;
  if (batch.is_compressed()) return check_packed(batch, sequences, content);
  content = header_content(batch);
  if (!check_headers(content, sequences)) return false;
  const char* const fault = is_scheduled() ? fault_in_schedule(batch) : nullptr;
  if (fault != nullptr) refuse(sequences, Code::too_large, fault);
  return fault == nullptr;
}

/// Checks that the batch has due times if it is for the schedule, and none otherwise. Returns false if it is
/// refused.
bool ProduceChannel::check_kinds(const BatchView& batch, const Sequences& sequences) {
  const bool has_dues = batch.kinds().has(AttributeKinds::dues);
  if (has_dues == is_scheduled()) return true;
  refuse(sequences, Code::not_supported,
         has_dues ? "delayed messages need a channel to the topic's schedule, target 1 of produce_open"
                  : "on a channel to the topic's schedule each message needs a due time or a delay");
  return false;
}

/// Returns why the schedule cannot store these messages, or null.
const char* ProduceChannel::fault_in_schedule(const BatchView& batch) const {
  if (has_wrong_ids(batch))
    return "a message has two ids, an empty one, or one that is longer than 128 bytes";
  return target_.fault_of(batch);
}

/// Checks a compressed batch before it is stored compressed, so that no consumer receives an unreadable one.
/// A batch that is not going to be stored is not checked, because decompressing costs more than sending.
/// Sets `content`. Returns false if it is refused.
bool ProduceChannel::check_packed(const BatchView& batch, const Sequences& sequences,
                                  HeaderContent& content) {
  const FallibleAllocations fallible;
  const char* fault = nullptr;
  const auto look = [&](const BatchView& plain) { fault = fault_in_schedule(plain); };
  // Without memory the session ends, and the client sends again.
  const auto packed = is_scheduled() ? content_packed_in(batch, look) : content_packed_in(batch);
  if (!packed) {
    refuse(sequences, Code::corrupt, "the batch cannot be unpacked");
    return false;
  }
  content = *packed;
  if (!check_headers(content, sequences)) return false;
  if (target_.message_bytes_max() < packed->longest_message_bytes) {
    refuse_too_long(sequences);
    return false;
  }
  if (fault != nullptr) refuse(sequences, Code::too_large, fault);
  return fault == nullptr;
}

/// Refuses a batch if a message claims to be a dead letter, or has an invalid time to live. Then returns
/// false.
bool ProduceChannel::check_headers(const HeaderContent& content, const Sequences& sequences) {
  if (content.has_dead_headers) {
    refuse(sequences, Code::not_supported,
           "only the broker sets headers that begin with " + std::string(dead_header_prefix));
    return false;
  }
  if (content.has_invalid_ttl) {
    refuse(sequences, Code::not_supported,
           "a message has at most one header " + std::string(ttl_header_name) +
               ", a number of milliseconds from 1 to " + std::to_string(limits::ttl_ms_max));
    return false;
  }
  return true;
}

void ProduceChannel::take(const Arrived& arrived) {
  switch (target_.admit(arrived.sequences)) {
    case Admission::store: break;
    case Admission::repeat:
      target_.count_duplicates(arrived.sequences.count);
      note_progress(true);
      return;
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
  if (!target_.accepting() || !store(arrived)) hold(arrived);
}

/// Returns false if there is no space.
bool ProduceChannel::store(const Arrived& arrived) {
  switch (target_.store(arrived.batch, arrived.sequences)) {
    case PublishOutcome::accepted: stored(arrived); return true;
    case PublishOutcome::held: return false;
    case PublishOutcome::refused:
      refuse(arrived.sequences, Code::too_large, "the batch is larger than the topic can store");
      return true;
    case PublishOutcome::rejected: break;
  }
  if (target_.is_held_by_disk()) {
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
  target_.hold(*this);
}

bool ProduceChannel::resume() {
  if (!held()) return true;
  if (!target_.accepting() || !store(held_batch_)) return false;
  held_ = std::vector<std::byte>();
  session_.note_resumed();
  return true;
}

void ProduceChannel::stored(const Arrived& arrived) {
  received_ = arrived.sequences.begin + arrived.sequences.count;
  next_offset_ = target_.ends().next;
  note_unflushed();
  if (level_ == ConfirmLevel::flushed || arrived.flush) target_.want_flush();
  if (is_scheduled()) note_untold();
  note_progress(is_scheduled());
}

/// Notes that the client has to learn the numbers of the batch that was stored last. If the client does not
/// read, it does not learn those of the oldest batches.
void ProduceChannel::note_untold() {
  if (untold_.size() == untold_max) untold_.pop_front();
  untold_.push_back({received_, next_offset_});
}

bool ProduceChannel::durable_moved() {
  const Offset durable = target_.ends().durable;
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
  Unflushed stored{received_, next_offset_};
  if (!untold_.empty()) {
    stored = untold_.front();
    untold_.pop_front();
  }
  confirm_due_ = !untold_.empty();
  const std::uint64_t flushed = std::min(flushed_, stored.sequence);
  told_ = level_ == ConfirmLevel::flushed ? flushed : stored.sequence;
  return {stored.sequence, flushed, stored.offset.value};
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
  target_.count_too_long(1);
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
