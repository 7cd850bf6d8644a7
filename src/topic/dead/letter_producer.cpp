/// Appends letters to a dead-letter topic, each once. Layer: topic.
#include "topic/dead/letter_producer.hpp"

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>
#include <utility>

#include <lightq/base/limits.hpp>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t batch_bytes_wanted = 256 * limits::KiB;  // a batch ends with the letter that reaches it

std::uint64_t sequence_of(std::uint64_t number) {
  return own_sequences_begin + number;
}

Error error_of(ClientError code, const std::string& why) {
  switch (code) {
    case ClientError::topic_deleted: return {ErrorCode::topic_not_found, why};
    case ClientError::shutting_down: return {ErrorCode::shutting_down, why};
    case ClientError::no_space: return {ErrorCode::no_space, why};
    case ClientError::limit_reached: return {ErrorCode::limit_reached, why};
    case ClientError::io_error: return {ErrorCode::io_error, why};
    default: return {ErrorCode::closed, why};
  }
}

}  // namespace

LetterProducer::LetterProducer(TopicRuntime& topic, std::uint64_t id, LetterRoom& room, Reports reports)
    : topic_(&topic), id_(id), room_(room), reports_(std::move(reports)) {}

LetterProducer::~LetterProducer() {
  leave_room();
  if (topic_ != nullptr) topic_->publishing().detach(*this);
}

void LetterProducer::open() {
  const auto opened = topic_->publishing().open({id_, 0}, *this, {.user = ProducerTable::brokers_own});
  if (opened.refusal == ClientError::none) {
    const std::uint64_t expected = opened.producer.expected;
    expected_ = expected < own_sequences_begin ? 0 : expected - own_sequences_begin;
    return;
  }
  topic_ = nullptr;
  reports_.ended(error_of(opened.refusal, "the topic cannot accept another producer"));
}

/// Letters that an earlier object with the same producer id has appended may not be durable yet.
void LetterProducer::admitted() {
  await_durable();
}

void LetterProducer::take(std::vector<NumberedLetter> letters) {
  if (topic_ == nullptr) return;  // `ended` was reported
  for (NumberedLetter& letter : letters) {
    if (expected_ <= letter.number) waiting_.push_back(std::move(letter));
  }
  is_held_ = false;
  store_waiting();
}

/// Stores the letters that wait. Returns false if the topic has no space for them yet.
bool LetterProducer::store_waiting() {
  leave_room();
  while (!waiting_.empty() && !refusal_) {
    switch (store_next()) {
      case Stored::yes: topic_->want_dispatch(); break;  // even if the next one finds no space
      case Stored::no_space:
        if (!keep_what_has_room()) {
          stop({ErrorCode::limit_reached, "the topic is full, and too many dead letters wait for space"});
          return true;
        }
        topic_->publishing().hold(*this);
        report_held();
        return false;
      case Stored::refused: break;
      case Stored::ended: return true;
    }
  }
  await_durable();
  return true;
}

/// Takes room for the letters that wait, and drops those behind the first one without room. Returns false if
/// no letter has room.
bool LetterProducer::keep_what_has_room() {
  std::size_t kept = 0;
  for (const NumberedLetter& letter : waiting_) {
    const std::size_t bytes = letter.letter.message_bytes();
    if (!room_.take(bytes)) break;
    room_taken_ += bytes;
    ++kept;
  }
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(kept), waiting_.end());
  return kept != 0;
}

void LetterProducer::leave_room() {
  room_.give_back(std::exchange(room_taken_, 0));
}

/// Reports once that letters wait for space.
void LetterProducer::report_held() {
  if (reports_.held && !std::exchange(is_held_, true)) reports_.held({ErrorCode::no_space, why_no_space()});
}

const char* LetterProducer::why_no_space() const {
  return topic_->publishing().is_held_by_disk() ? "the disk is full or cannot be written"
                                                : "the topic is full";
}

/// Stores the first letters that wait, in one batch.
LetterProducer::Stored LetterProducer::store_next() {
  TopicPublishing& publishing = topic_->publishing();
  if (!publishing.accepting()) {  // a direct topic drops messages that nobody can receive
    stop({ErrorCode::closed, "nobody is connected to the topic"});
    return Stored::ended;
  }
  const std::uint64_t number = waiting_.front().number;
  BatchBuilder batch;
  std::span<std::byte> bytes;
  try {
    const FallibleAllocations fallible;
    pack(batch);
    bytes = batch.finish({.producer_id = id_, .first_sequence = sequence_of(number)});
  } catch (const std::bad_alloc&) {
    stop({ErrorCode::limit_reached, "there is not enough memory for a dead letter"});
    return Stored::ended;
  }
  const std::uint32_t count = batch.record_count();
  const std::uint64_t message_bytes = batch.message_bytes();
  if (count == 1 && publishing.message_bytes_max() < message_bytes) {
    refuse(
        {ErrorCode::too_large, "with the headers of its death a message is longer than message_bytes_max"});
    return Stored::refused;
  }
  const Sequences sequences{{id_, 0}, sequence_of(number), count};
  if (topic_->producers().admit(sequences) != Admission::store) {
    stop({ErrorCode::closed, "the topic has forgotten the transfer"});
    return Stored::ended;
  }
  switch (publishing.store({bytes, count, message_bytes}, sequences)) {
    case PublishOutcome::accepted: break;
    case PublishOutcome::held: return Stored::no_space;
    case PublishOutcome::rejected: stop({ErrorCode::no_space, why_no_space()}); return Stored::ended;
    case PublishOutcome::refused:
      if (count > 1) {  // one letter of them may be small enough
        letters_max_ = 1;
        return Stored::yes;
      }
      refuse({ErrorCode::too_large, "a message is larger than the topic can store"});
      return Stored::refused;
  }
  expected_ = number + count;
  waiting_.erase(waiting_.begin(), waiting_.begin() + count);
  return Stored::yes;
}

/// Packs the first letters with consecutive numbers. A long one has its own batch, so that one which is
/// longer than message_bytes_max is refused without the others.
void LetterProducer::pack(BatchBuilder& batch) const {
  const TopicPublishing& publishing = topic_->publishing();
  const std::size_t wanted = std::min(batch_bytes_wanted, publishing.batch_bytes_target());
  std::uint64_t number = waiting_.front().number;
  for (const NumberedLetter& letter : waiting_) {
    if (letter.number != number++ || letters_max_ <= batch.record_count()) return;
    const std::size_t bytes = letter.letter.message_bytes();
    const bool is_too_long = publishing.message_bytes_max() < bytes;
    if (!batch.empty() && (is_too_long || wanted < batch.size_bytes() + bytes)) return;
    letter.letter.add_to(batch);
    if (is_too_long) return;
  }
}

/// Reports as soon as everything in the topic is durable, now or later.
void LetterProducer::await_durable() {
  awaited_ = topic_->store().next_offset();
  if (report_settled()) return;
  topic_->publishing().want_flush();
  topic_->publishing().await_durable(*this);
  topic_->want_dispatch();
}

bool LetterProducer::durable_moved() {
  return !report_settled();
}

/// Returns false if a report is due later.
bool LetterProducer::report_settled() {
  if (!awaited_) return true;
  if (needs_durable() && topic_->store().durable_offset() < *awaited_) return false;
  awaited_.reset();
  letters_max_ = letters_of_batch_max;
  if (!refusal_) {
    reports_.settled(expected_);
    return true;
  }
  const std::uint64_t number = waiting_.front().number;
  waiting_.clear();
  reports_.refused(number, *std::exchange(refusal_, std::nullopt));
  return true;
}

/// Refuses the first letter that waits. The letters before it become durable first.
void LetterProducer::refuse(const Error& why) {
  refusal_ = why;
}

/// Ends the producer at its own wish. The group's transfer tries again later.
void LetterProducer::stop(const Error& why) {
  std::exchange(topic_, nullptr)->publishing().detach(*this);
  waiting_.clear();
  reports_.ended(why);
}

void LetterProducer::end(ClientError code, const std::string& why) {
  topic_ = nullptr;
  leave_room();
  waiting_.clear();
  reports_.ended(error_of(code, why));
}

}  // namespace lightq::broker
