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
constexpr std::chrono::seconds firing_pause_min{1};
constexpr std::chrono::seconds firing_pause_max{5};

std::uint64_t number_of_firing(Timestamp firing) {
  return static_cast<std::uint64_t>(firing.us / us_per_firing_second);
}

}  // namespace

ScheduleFirings::ScheduleFirings(ReactorContext& context, TopicRuntime& topic, std::string name,
                                 RecurringSchedule schedule)
    : context_(context),
      topic_(topic),
      name_(std::move(name)),
      schedule_(std::move(schedule)),
      producer_(context.loop, topic.publishing(),
                {.id = schedule_.incarnation, .pause_min = firing_pause_min, .pause_max = firing_pause_max},
                *this),
      after_(schedule_.since) {}

ScheduleFirings::~ScheduleFirings() {
  stop_timer();
  context_.wall_timers.forget(this);
}

std::string ScheduleFirings::where() const {
  return "topic " + topic_.definition().name.text() + ": schedule " + name_ + ": ";
}

void ScheduleFirings::begin(Begins begins) {
  auto times = FiringTimes::of(schedule_.settings.cron, schedule_.settings.zone);
  if (!times) {
    producer_.set_waiting_by(times.error().message);
    return context_.sink.error(where() + "it does not fire: " + times.error().message);
  }
  times_ = *std::move(times);
  if (begins == Begins::at_start && schedule_.settings.missed == protocol::MissedFirings::skip) {
    started_ = context_.now();
    context_.wall_timers.when_set_back(this, [this] { clock_was_set_back(); });
  }
  producer_.open();
}

/// `expected` follows the last firing that the topic has, if it has any.
void ScheduleFirings::opened(std::uint64_t expected) {
  if (expected == 0) return;
  last_ = Timestamp{static_cast<std::int64_t>(expected - 1) * us_per_firing_second};
  after_ = std::max(after_, *last_);
}

void ScheduleFirings::admitted() {
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
  if (producer_.is_ready()) arm();
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

/// Publishes the newest firing that is due, if there is one.
void ScheduleFirings::publish_newest() {
  if (!producer_.is_ready() || !topic_.publishing().accepting()) return;
  if (const auto firing = times_->last_within(after_, context_.now())) return store(*firing);
  arm();
}

void ScheduleFirings::store(Timestamp firing) {
  const std::uint64_t number = number_of_firing(firing);
  const std::string id = firing_id(name_, firing);
  std::vector<Header> headers{{id_header_name, id}};
  for (const auto& [name, value] : schedule_.settings.headers) headers.push_back({name, value});
  BatchBuilder batch;
  std::span<std::byte> bytes;
  try {
    const FallibleAllocations fallible;
    batch.add(as_byte_view(schedule_.settings.payload),
              {.key = schedule_.settings.key, .headers = headers, .time = firing});
    bytes = batch.finish(
        {.producer_id = schedule_.incarnation, .first_sequence = OwnProducer::sequence_of(number)});
  } catch (const std::bad_alloc&) {
    const char* const why = "there is not enough memory";
    if (producer_.set_waiting_by(why).empty()) report_waiting("the message of " + firing_text(firing), why);
    return producer_.try_later();
  }
  if (topic_.publishing().message_bytes_max() < batch.message_bytes())
    return give_up(firing, "the message is longer than message_bytes_max");
  const std::string waited_by = producer_.waiting_by();
  switch (producer_.store({bytes, 1, batch.message_bytes()}, number)) {
    case OwnProducer::Stored::yes: return stored(firing);
    case OwnProducer::Stored::repeat:
    case OwnProducer::Stored::out_of_sequence: return give_up(firing, "the topic has it");
    case OwnProducer::Stored::too_large:
      return give_up(firing, "the message is larger than the topic can store");
    case OwnProducer::Stored::no_space:
      if (waited_by.empty()) report_waiting("the message of " + firing_text(firing), producer_.waiting_by());
      return;
    case OwnProducer::Stored::forgotten: return;
  }
}

void ScheduleFirings::stored(Timestamp firing) {
  after_ = firing;
  last_ = firing;
  ++fired_;
  topic_.publishing().want_flush();
  topic_.want_dispatch();
  arm();
}

/// Leaves out a firing that can never be stored.
void ScheduleFirings::give_up(Timestamp firing, const std::string& why) {
  context_.sink.error(where() + "the message of " + firing_text(firing) + " was not published: " + why);
  after_ = firing;
  producer_.set_waiting_by({});
  arm();
}

void ScheduleFirings::cannot_open(const std::string& why) {
  if (producer_.waiting_by() != why) report_waiting("it", why);
}

void ScheduleFirings::report_waiting(const std::string& message, const std::string& why) {
  context_.sink.warn(where() + message + " waits: " + why);
}

void ScheduleFirings::stop_timer() {
  context_.wall_timers.cancel(std::exchange(due_, 0));
}

ScheduleState ScheduleFirings::state() const {
  return {.name = name_, .fired = fired_, .last = last_, .waiting_by = producer_.waiting_by()};
}

}  // namespace lightq::broker
