/// Publishes the messages of one recurring schedule. Layer: topic.
#include "topic/recurring/schedule_firings.hpp"

#include <algorithm>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "admission/memory_reserve.hpp"
#include "recurring/schedule_rules.hpp"

namespace lightq::broker {

namespace {

constexpr std::int64_t us_per_firing_second = 1'000'000;
constexpr std::chrono::seconds retry_after_max{5};

std::uint64_t sequence_of_firing(Timestamp firing) {
  return own_sequences_begin + static_cast<std::uint64_t>(firing.us / us_per_firing_second);
}

/// Returns the last firing that a producer has stored, by the sequence number that is expected next.
std::optional<Timestamp> last_firing_before(std::uint64_t expected) {
  if (expected <= own_sequences_begin) return std::nullopt;
  return Timestamp{static_cast<std::int64_t>(expected - own_sequences_begin - 1) * us_per_firing_second};
}

}  // namespace

ScheduleFirings::ScheduleFirings(ReactorContext& context, TopicRuntime& topic, std::string name,
                                 RecurringSchedule schedule)
    : context_(context),
      topic_(topic),
      name_(std::move(name)),
      schedule_(std::move(schedule)),
      after_(schedule_.since) {}

ScheduleFirings::~ScheduleFirings() {
  stop_timers();
  context_.wall_timers.forget(this);
  if (is_open_) topic_.publishing().detach(*this);
}

std::string ScheduleFirings::where() const {
  return "topic " + topic_.definition().name.text() + ": schedule " + name_ + ": ";
}

void ScheduleFirings::begin(Begins begins) {
  auto times = FiringTimes::of(schedule_.settings.cron, schedule_.settings.zone);
  if (!times) {
    waiting_by_ = times.error().message;
    return context_.sink.error(where() + "it does not fire: " + waiting_by_);
  }
  times_ = *std::move(times);
  if (begins == Begins::at_start && schedule_.settings.missed == protocol::MissedFirings::skip) {
    started_ = context_.now();
    context_.wall_timers.when_set_back(this, [this] { clock_was_set_back(); });
  }
  open();
}

void ScheduleFirings::open() {
  const auto opened =
      topic_.publishing().open({schedule_.incarnation, 0}, *this, {.user = ProducerTable::brokers_own});
  if (opened.refusal != ClientError::none) {
    waiting_by_ = "the topic cannot accept another producer";
    return try_later();
  }
  is_open_ = true;
  if (const auto last = last_firing_before(opened.producer.expected)) {
    last_ = last;
    after_ = std::max(after_, *last);
  }
}

void ScheduleFirings::admitted() {
  is_admitted_ = true;
  waiting_by_.clear();
  if (!std::exchange(has_begun_, true) && started_) skip_missed();
  publish_newest();
}

void ScheduleFirings::skip_missed() {
  after_missed_ = after_;
  after_ = std::max(after_, *started_);
}

/// At the start the clock was perhaps years ahead: the schedule does not wait for that time.
void ScheduleFirings::clock_was_set_back() {
  const Timestamp now = context_.now();
  if (!has_begun_ || after_ != *started_ || *started_ <= now) return;
  started_ = now;
  after_ = after_missed_;
  skip_missed();
  if (is_admitted_) arm();
}

/// Waits for the next firing.
void ScheduleFirings::arm() {
  const auto next = times_->next_after(after_);
  if (!next) return;
  context_.wall_timers.cancel(std::exchange(due_, 0));
  due_ = context_.wall_timers.at(*next, [this] {
    due_ = 0;
    publish_newest();
  });
}

/// Publishes the newest firing that is due, if there is one. Returns false if it waits for space.
bool ScheduleFirings::publish_newest() {
  if (!is_admitted_ || !topic_.publishing().accepting()) return true;
  context_.loop.cancel(std::exchange(retry_, 0));
  if (const auto firing = times_->last_within(after_, context_.now())) return store(*firing);
  arm();
  return true;
}

bool ScheduleFirings::store(Timestamp firing) {
  TopicPublishing& publishing = topic_.publishing();
  const std::string id = firing_id(name_, firing);
  std::vector<Header> headers{{id_header_name, id}};
  for (const auto& [name, value] : schedule_.settings.headers) headers.push_back({name, value});
  BatchBuilder batch;
  std::span<std::byte> bytes;
  try {
    const FallibleAllocations fallible;
    batch.add(as_byte_view(schedule_.settings.payload),
              {.key = schedule_.settings.key, .headers = headers, .time = firing});
    bytes =
        batch.finish({.producer_id = schedule_.incarnation, .first_sequence = sequence_of_firing(firing)});
  } catch (const std::bad_alloc&) {
    wait(firing, "there is not enough memory");
    try_later();
    return true;
  }
  if (publishing.message_bytes_max() < batch.message_bytes()) {
    give_up(firing, "the message is longer than message_bytes_max");
    return true;
  }
  const Sequences sequences{{schedule_.incarnation, 0}, sequence_of_firing(firing), 1};
  if (topic_.producers().admit(sequences) != Admission::store) {
    give_up(firing, "the topic has it, or does not know the schedule any more");
    return true;
  }
  switch (publishing.store_own({bytes, 1, batch.message_bytes()}, sequences)) {
    case PublishOutcome::accepted: stored(firing); return true;
    case PublishOutcome::held:
      wait(firing,
           publishing.is_held_by_disk() ? "the disk is full or cannot be written" : "the topic is full");
      publishing.hold(*this);
      return false;
    case PublishOutcome::rejected:
      wait(firing,
           publishing.is_held_by_disk() ? "the disk is full or cannot be written" : "the topic is full");
      try_later();
      return true;
    case PublishOutcome::refused: give_up(firing, "the message is larger than the topic can store");
  }
  return true;
}

void ScheduleFirings::stored(Timestamp firing) {
  after_ = firing;
  last_ = firing;
  ++fired_;
  waiting_by_.clear();
  retry_after_ = std::chrono::seconds(1);
  topic_.publishing().want_flush();
  topic_.want_dispatch();
  arm();
}

/// Leaves out a firing that can never be stored.
void ScheduleFirings::give_up(Timestamp firing, const std::string& why) {
  context_.sink.error(where() + "the message of " + firing_text(firing) + " was not published: " + why);
  after_ = firing;
  waiting_by_.clear();
  arm();
}

/// Reports once that a firing waits.
void ScheduleFirings::wait(Timestamp firing, const std::string& why) {
  if (waiting_by_.empty())
    context_.sink.warn(where() + "the message of " + firing_text(firing) + " waits: " + why);
  waiting_by_ = why;
}

/// Tries again after a while: to open the producer, or to publish the newest firing.
void ScheduleFirings::try_later() {
  context_.loop.cancel(retry_);
  retry_ = context_.loop.at(EventLoop::Clock::now() + retry_after_, [this] {
    retry_ = 0;
    if (is_open_) {
      publish_newest();
    } else {
      open();
    }
  });
  retry_after_ = std::min(2 * retry_after_, retry_after_max);
}

void ScheduleFirings::stop_timers() {
  context_.wall_timers.cancel(std::exchange(due_, 0));
  context_.loop.cancel(std::exchange(retry_, 0));
}

void ScheduleFirings::end(ClientError code, const std::string& why) {
  is_open_ = is_admitted_ = false;
  stop_timers();
  if (code == ClientError::topic_deleted || code == ClientError::shutting_down) return;
  waiting_by_ = why;
  try_later();
}

ScheduleState ScheduleFirings::state() const {
  return {.name = name_, .fired = fired_, .last = last_, .waiting_by = waiting_by_};
}

}  // namespace lightq::broker
