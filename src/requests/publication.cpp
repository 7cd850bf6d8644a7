/// The messages of one request on their way into a topic. Layer: requests.
#include "requests/publication.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/random.hpp>
#include <lightq/base/ttl.hpp>

#include "delivery/batches/message_ids.hpp"
#include "requests/request_errors.hpp"

namespace lightq::broker {

namespace {

/// Returns why the topic cannot take these messages, or null. The limits of attributes were checked.
const char* fault_in(const HeaderContent& content) {
  if (content.has_dead_headers) return "only the broker sets headers that begin with lightq-dead-";
  if (content.has_invalid_ttl)
    return "a message has at most one header lightq-ttl-ms, a number of milliseconds from 1 to "
           "315619200000";
  return nullptr;
}

/// Returns why the topic's schedule cannot take these messages, or null.
const char* fault_in_schedule(const BatchView& batch, const ProduceTarget& schedule) {
  if (has_wrong_ids(batch))
    return "a delayed message has two ids, an empty one, or one that is longer than 128 bytes";
  return schedule.fault_of(batch);
}

/// Returns an identity that no producer has. In the log of a schedule, batches without a producer are records
/// of the schedule itself. The sequence number is that of a request, so a start does not keep many of them.
BatchIdentity identity_in_schedule(const ProduceTarget& schedule) {
  return {.producer_id = std::max<std::uint64_t>(random_number<std::uint64_t>(), 1),
          .first_sequence = request_sequences_begin + schedule.ends().next.value};
}

}  // namespace

Publication::Publication(Parts parts, MessagesToPublish messages, Done done)
    : topic_(&parts.topic),
      access_(parts.access),
      tickets_(parts.tickets),
      requester_(std::move(parts.requester)),
      messages_(std::move(messages)),
      done_(std::move(done)),
      ended_(std::move(parts.ended)) {}

Publication::~Publication() {
  if (topic_ != nullptr && target_ != nullptr) target_->detach(*this);
}

void Publication::begin() {
  if (!find_target()) return;
  const bool is_durable = target_->is_durable();
  waits_for_disk_ = is_durable && messages_.confirming != Confirming::received;
  if (messages_.confirming == Confirming::flushed && !is_durable)
    return fail({ErrorCode::not_supported, "a topic in memory cannot confirm messages as flushed"});
  if (messages_.longest_bytes > target_->message_bytes_max()) {
    messages_.are_delayed ? target_->count_too_long(1) : topic_->publishing().count_refused(1);
    return fail({ErrorCode::too_large, "a message is longer than the broker accepts, " +
                                           std::to_string(target_->message_bytes_max()) + " bytes"});
  }
  // Clients without a user cannot be told apart, so none may use up the ids of others.
  if (!messages_.request_id.empty() && !messages_.are_delayed && !requester_.is_open())
    return begin_request();
  ProduceTarget& target = *target_;
  target.attach(*this);
  begin_storing();
  target.published();
}

/// Finds the log or the schedule that takes the messages. Returns false if there is none: the answer was
/// sent.
bool Publication::find_target() {
  published_.are_delayed = messages_.are_delayed;
  if (messages_.are_delayed) {
    const auto schedule = topic_->schedule().target();
    if (!schedule) fail(schedule.error());
    if (!schedule) return false;
    target_ = *schedule;
  } else {
    target_ = &topic_->publishing();
  }
  return true;
}

/// Begins a request with an id: its message may be stored already.
void Publication::begin_request() {
  TopicPublishing& publishing = topic_->publishing();
  number_ = tickets_.number_of_request(requester_.user(), messages_.request_id);
  if (publishing.has_request(number_))
    return fail({ErrorCode::busy, "a request with this Lightq-Id is under way; try again"});
  if (const auto stored = publishing.stored_by_request(number_)) {
    publishing.count_duplicates(1);
    publishing.attach(*this);
    is_admitted_ = true;
    published_.first = *stored;
    published_.messages = 1;
    published_.is_repeated = true;
    end_ = *stored + 1;
    stored_all();
    return publishing.published();
  }
  const auto opened = publishing.open_request(number_, *this, {.user = requester_.user()});
  if (opened.refusal == ClientError::none) return;
  fail(opened.refusal == ClientError::limit_reached
           ? Error{ErrorCode::limit_reached, "the topic knows the maximum of producers"}
           : Error{ErrorCode::busy, "the Lightq-Id cannot be used; take another one"});
}

/// Called within a dispatch, so the messages are dispatched by a later one.
void Publication::admitted() {
  if (topic_ == nullptr) return;
  TopicRuntime& topic = *topic_;
  begin_storing();
  topic.want_dispatch();
}

void Publication::begin_storing() {
  is_admitted_ = true;
  ProduceTarget& target = *target_;
  if (!store_all()) target.hold(*this);
}

/// Stores batches while there is space. Returns false if the topic has none: `resume` follows.
bool Publication::store_all() {
  while (topic_ != nullptr && next_ < messages_.batches.size()) {
    const Step step = target_->accepting() ? store_next() : Step::wait;
    waits_for_space_ = step == Step::wait;
    if (waits_for_space_) return false;
  }
  if (topic_ != nullptr) stored_all();
  return true;
}

Publication::Step Publication::store_next() {
  BatchBuilder& batch = messages_.batches[next_];
  BatchIdentity identity;
  if (number_ != 0) identity = topic_->publishing().request_identity(number_);
  if (messages_.are_delayed) identity = identity_in_schedule(*target_);
  const std::span<std::byte> bytes = batch.finish(identity);
  const BatchView view = BatchView::trusted(bytes.data());
  const HeaderContent content = header_content(view);
  const char* fault = fault_in(content);
  if (fault == nullptr && messages_.are_delayed) fault = fault_in_schedule(view, *target_);
  if (fault != nullptr) {
    fail({ErrorCode::invalid_request, fault});
    return Step::over;
  }
  const OwnTtl ttl = content.has_ttl ? OwnTtl::some : OwnTtl::none;
  const std::uint32_t records = batch.record_count();
  const OfferedBatch offered{bytes, records, batch.message_bytes(), ttl, content.uniform_ttl_ms};
  const auto outcome = number_ == 0
                           ? target_->store(offered)
                           : target_->store(offered, {{number_, 0}, identity.first_sequence, records});
  switch (outcome) {
    case PublishOutcome::accepted: break;
    case PublishOutcome::held: return Step::wait;
    case PublishOutcome::refused:
      fail({ErrorCode::too_large, "the messages are larger than the topic can store"});
      return Step::over;
    case PublishOutcome::rejected:
      fail(target_->is_held_by_disk() ? Error{ErrorCode::no_space, "the disk is full or cannot be written"}
                                      : Error{ErrorCode::limit_reached, "the topic is full"});
      return Step::over;
  }
  end_ = target_->ends().next;
  if (published_.messages == 0) published_.first = {end_.value - records};
  published_.messages += records;
  ++next_;
  batch = BatchBuilder();
  return Step::on;
}

void Publication::stored_all() {
  published_.incarnation = target_->target_incarnation();
  published_.is_flushed = target_->is_durable() && target_->ends().durable >= end_;
  if (!waits_for_disk_ || published_.is_flushed) return finish(published_);
  target_->await_durable(*this);
  target_->want_flush();
}

bool Publication::resume() {
  if (topic_ == nullptr) return true;
  if (!requester_.may(access_, *topic_)) {
    fail(right_withdrawn());
    return true;
  }
  ProduceTarget& target = *target_;
  const bool stored = store_all();
  if (stored && messages_.are_delayed) target.published();  // which flushes
  return stored;
}

bool Publication::durable_moved() {
  if (topic_ == nullptr) return false;
  if (target_->ends().durable < end_) return true;
  published_.is_flushed = true;
  finish(published_);
  return false;
}

void Publication::end(ClientError error, const std::string& why) {
  topic_ = nullptr;
  fail(error_of(error, why));
}

void Publication::give_up() {
  if (!is_admitted_)
    return fail({ErrorCode::timeout, "the disk has not stored the request's id in time; nothing is stored"});
  if (!waits_for_space_) {
    return fail(
        {ErrorCode::timeout, "the messages are stored, and it is not known whether they are on disk"});
  }
  const bool by_disk = topic_ != nullptr && target_->is_held_by_disk();
  fail(by_disk ? Error{ErrorCode::no_space, "the disk is full or cannot be written"}
               : Error{ErrorCode::limit_reached, "the topic has no space for messages now"});
}

void Publication::fail(Error error) {
  if (published_.messages > 0 && waits_for_space_)
    error.message += "; the first " + std::to_string(published_.messages) + " messages are stored";
  finish(std::move(error));
}

void Publication::finish(Result<Published> result) {
  if (!done_) return;
  if (std::exchange(topic_, nullptr) != nullptr && target_ != nullptr) target_->detach(*this);
  messages_.batches.clear();
  std::exchange(done_, nullptr)(std::move(result));
  ended_();
}

}  // namespace lightq::broker
