/// The messages of one request on their way into a topic. Layer: requests.
#include "requests/publication.hpp"

#include <span>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/ttl.hpp>

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

}  // namespace

Publication::Publication(TopicRuntime& topic, const AccessTable& access, Requester requester,
                         MessagesToPublish messages, Done done, std::function<void()> ended)
    : topic_(&topic),
      access_(access),
      requester_(std::move(requester)),
      messages_(std::move(messages)),
      done_(std::move(done)),
      ended_(std::move(ended)) {}

Publication::~Publication() {
  if (topic_ != nullptr) topic_->publishing().detach(*this);
}

void Publication::begin() {
  TopicPublishing& publishing = topic_->publishing();
  const bool is_durable = publishing.is_durable();
  waits_for_disk_ = is_durable && messages_.confirming != Confirming::received;
  if (messages_.confirming == Confirming::flushed && !is_durable)
    return fail({ErrorCode::not_supported, "a topic in memory cannot confirm messages as flushed"});
  if (messages_.longest_bytes > publishing.message_bytes_max()) {
    publishing.count_refused(1);
    return fail({ErrorCode::too_large, "a message is longer than the broker accepts, " +
                                           std::to_string(publishing.message_bytes_max()) + " bytes"});
  }
  publishing.attach(*this);
  if (!store_all()) publishing.hold(*this);
  publishing.published();
}

/// Stores batches while there is space. Returns false if the topic has none: `resume` follows.
bool Publication::store_all() {
  while (topic_ != nullptr && next_ < messages_.batches.size()) {
    const Step step = topic_->publishing().accepting() ? store_next() : Step::wait;
    waits_for_space_ = step == Step::wait;
    if (waits_for_space_) return false;
  }
  if (topic_ != nullptr) stored_all();
  return true;
}

Publication::Step Publication::store_next() {
  TopicPublishing& publishing = topic_->publishing();
  BatchBuilder& batch = messages_.batches[next_];
  const std::span<std::byte> bytes = batch.finish();
  const HeaderContent content = header_content(BatchView::trusted(bytes.data()));
  if (const char* const fault = fault_in(content)) {
    fail({ErrorCode::invalid_request, fault});
    return Step::over;
  }
  const OwnTtl ttl = content.has_ttl ? OwnTtl::some : OwnTtl::none;
  const std::uint32_t records = batch.record_count();
  switch (publishing.store({bytes, records, batch.message_bytes(), ttl, content.uniform_ttl_ms})) {
    case PublishOutcome::accepted: break;
    case PublishOutcome::held: return Step::wait;
    case PublishOutcome::refused:
      fail({ErrorCode::too_large, "the messages are larger than the topic can store"});
      return Step::over;
    case PublishOutcome::rejected:
      fail(publishing.is_held_by_disk() ? Error{ErrorCode::no_space, "the disk is full or cannot be written"}
                                        : Error{ErrorCode::limit_reached, "the topic is full"});
      return Step::over;
  }
  end_ = publishing.ends().next;
  if (published_.messages == 0) published_.first = {end_.value - records};
  published_.messages += records;
  ++next_;
  batch = BatchBuilder();
  return Step::on;
}

void Publication::stored_all() {
  TopicPublishing& publishing = topic_->publishing();
  published_.incarnation = publishing.target_incarnation();
  published_.is_flushed = publishing.is_durable() && publishing.ends().durable >= end_;
  if (!waits_for_disk_ || published_.is_flushed) return finish(published_);
  publishing.await_durable(*this);
  publishing.want_flush();
}

bool Publication::resume() {
  if (topic_ == nullptr) return true;
  if (requester_.may(access_, *topic_)) return store_all();
  fail(right_withdrawn());
  return true;
}

bool Publication::durable_moved() {
  if (topic_ == nullptr) return false;
  if (topic_->publishing().ends().durable < end_) return true;
  published_.is_flushed = true;
  finish(published_);
  return false;
}

void Publication::end(ClientError error, const std::string& why) {
  topic_ = nullptr;
  fail(error_of(error, why));
}

void Publication::give_up() {
  if (!waits_for_space_) {
    return fail(
        {ErrorCode::timeout, "the messages are stored, and it is not known whether they are on disk"});
  }
  const bool by_disk = topic_ != nullptr && topic_->publishing().is_held_by_disk();
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
  if (TopicRuntime* const topic = std::exchange(topic_, nullptr)) topic->publishing().detach(*this);
  messages_.batches.clear();
  std::exchange(done_, nullptr)(std::move(result));
  ended_();
}

}  // namespace lightq::broker
