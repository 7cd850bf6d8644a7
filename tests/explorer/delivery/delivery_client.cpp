/// Uses a durable topic as producers, consumers and administrators do. delivery_compare.cpp has the
/// comparison with the history.
#include "explorer/delivery/delivery_client.hpp"

#include <algorithm>
#include <utility>

#include "delivery/consumer_group_harness.hpp"
#include "topic/runtime/member_acks.hpp"

namespace lightq::test {

using broker::Admission;
using broker::ClientError;
using broker::DelayedAction;
using broker::DelayedOutcome;
using broker::PublishOutcome;
using Message = DeliveryHistory::Message;

namespace {
constexpr int turns_to_finish_max = 4000;
constexpr std::int64_t second_us = 1'000'000;
constexpr std::uint32_t short_retry_ms = 50;
constexpr std::uint32_t long_retry_ms = 5000;  // retention comes before its end
}  // namespace

void DeliveryClient::start(ExplorerStorage& storage, LifeEnd end) {
  stop();
  const auto started = life_.start(storage, mix, now);
  if (!started) {
    if (!calls_fail) fail("the topics do not open: " + started.error().text());
    return;
  }
  compare(end);
}

void DeliveryClient::stop() {
  if (!life_.is_open()) return;
  now = life_.wall();
  detach_producer();
  held_.clear();
  const std::uint32_t unanswered = history.give_backs;  // the stop answers them
  life_.stop();
  history.give_backs = unanswered;
}

void DeliveryClient::detach_producer() {
  if (std::exchange(producer_.is_open, false)) {
    if (auto target = life_.source->schedule().target()) (*target)->detach(producer_);
  }
}

std::int32_t DeliveryClient::add_message(std::uint32_t bytes, bool delayed) {
  const auto number = static_cast<std::int32_t>(history.messages.size());
  Message& message = history.messages.emplace_back();
  message.bytes = bytes;
  message.is_delayed = delayed;
  return number;
}

void DeliveryClient::do_publish(std::size_t messages, std::uint32_t bytes) {
  BatchBuilder batch;
  const std::size_t from = history.messages.size();
  for (std::size_t i = 0; i < messages; ++i)
    batch.add(as_byte_view(history.text(add_message(bytes, false))), Attributes{});
  const auto outcome = life_.source->publishing().publish(batch);
  if (outcome == PublishOutcome::accepted) {
    for (std::size_t i = from; i < history.messages.size(); ++i) history.messages[i].is_stored = true;
    if (from % 2 == 0) life_.source->publishing().want_flush();  // the others wait for the log's interval
  }
  life_.source->dispatch().published();
  look();
}

void DeliveryClient::do_publish_delayed(SmallRandom& random, std::size_t messages, std::uint32_t bytes) {
  auto target = life_.source->schedule().target();
  if (!target) {
    if (!calls_fail) fail("the schedule does not open: " + target.error().text());
    return;
  }
  if (!producer_.is_open) {
    producer_.is_admitted = false;
    const auto opened = (*target)->open({}, producer_, {.user = 0});
    if (opened.refusal != ClientError::none) return;
    producer_.is_open = true;
    producer_.identity = opened.producer.identity;
    producer_.sequence = opened.producer.expected;
  }
  if (!producer_.is_admitted) return;
  const std::int64_t wall = life_.wall().us;
  BatchBuilder batch;
  const std::size_t from = history.messages.size();
  std::uint64_t number = (*target)->ends().next.value;
  for (std::size_t i = 0; i < messages; ++i) {
    const std::int32_t index = add_message(bytes, true);
    Message& message = history.messages.back();
    const std::int64_t us = random.one_in(3) ? 0 : static_cast<std::int64_t>(random.below(400'000));
    message.dues = 1;
    message.due[0] = wall + us;
    message.number = number++;
    batch.add(as_byte_view(history.text(index)), Attributes{.delay = std::chrono::microseconds(us)},
              AttributeKinds(AttributeKinds::dues));
  }
  const auto stored = batch.finish({producer_.identity.id, producer_.sequence, producer_.identity.epoch});
  const broker::Sequences sequences{producer_.identity, producer_.sequence, batch.record_count()};
  if ((*target)->admit(sequences) != Admission::store) return;
  const auto outcome = (*target)->store({stored, batch.record_count(), batch.message_bytes()}, sequences);
  if (outcome == PublishOutcome::accepted) {
    producer_.sequence += messages;
    for (std::size_t i = from; i < history.messages.size(); ++i) history.messages[i].is_stored = true;
    (*target)->want_flush();
  }
  (*target)->published();
  look();
}

void DeliveryClient::do_consume(SmallRandom& random, bool acknowledges_all) {
  if (!life_.join()) return;
  FakeConsumer& consumer = *life_.consumer;
  std::vector<OffsetRange> taken = std::exchange(held_, {});
  for (const auto& frame : std::exchange(consumer.frames, {})) {
    for (std::size_t i = 0; i < frame.payloads.size(); ++i) {
      const Offset offset = frame.range.begin + i;
      const bool is_known = offset.value < history.places.size();
      const auto number = history.number_of(frame.payloads[i]);
      if (!is_known && calls_fail) continue;  // the model could not read it
      if (!is_known || number == DeliveryHistory::unknown || history.places[offset.value].message != number)
        return fail("the consumer receives another message at offset " + std::to_string(offset.value));
      taken.push_back({offset, offset + 1});
    }
  }
  for (const OffsetRange& range : taken) {
    DeliveryHistory::Place& place = history.places[range.begin.value];
    Message& message = history.messages[static_cast<std::size_t>(place.message)];
    const std::uint64_t way = acknowledges_all ? 0 : random.below(10);
    const auto steady = broker::EventLoop::Clock::now();
    if (way < 5) {
      message.is_acknowledged = place.is_acknowledged = true;
      broker::acknowledge(*life_.source, consumer, {.before = {}, .ranges = {range}});
    } else if (way < 6) {
      const bool waits_long = mix.source.retention_bytes != 0 && random.one_in(2);
      const std::uint32_t delay_ms = waits_long ? long_retry_ms : short_retry_ms;
      history.retry_after(place, delay_ms * std::int64_t{1000});
      broker::reject(*life_.source, consumer, {.delay_ms = delay_ms, .ranges = {range}}, steady);
    } else if (way < 7) {
      broker::reject(*life_.source, consumer, {.ranges = {range}, .kind = broker::RejectKind::release},
                     steady);
    } else if (way < 8) {
      broker::reject(*life_.source, consumer, {.ranges = {range}, .kind = broker::RejectKind::dead}, steady);
    } else {
      held_.push_back(range);
    }
  }
  look();
}

void DeliveryClient::do_save() {
  if (history.save_is_due || life_.group() == nullptr) return;
  look();
  history.ask_for_save();
  const auto answered = [this](const Result<std::uint64_t>& result) {
    if (!history.save_is_due) return;
    if (result) {
      // If the save that makes a group durable fails, the group is removed, and a later save is without it.
      history.saved(life_.group() != nullptr);
    } else {
      history.save_is_due = false;
      if (!calls_fail && result.error().code != ErrorCode::shutting_down)
        fail("a save fails: " + result.error().text());
    }
  };
  life_.source->commands().answer_when_saved(0, answered);
}

void DeliveryClient::do_change_delayed(SmallRandom& random) {
  broker::TopicSchedule& schedule = life_.source->schedule();
  if (!schedule.is_made()) return;
  std::vector<std::size_t> chosen;
  broker::DelayedFilter filter;
  for (std::size_t i = 0; i < history.messages.size(); ++i) {
    const Message& message = history.messages[i];
    const bool waits = message.is_delayed && message.is_stored && !message.is_placed &&
                       message.cancelled == Message::Cancelled::no && message.dues < Message::dues_max;
    if (!waits || !random.one_in(4)) continue;
    chosen.push_back(i);
    filter.numbers.push_back({message.number, message.number + 1});
  }
  if (chosen.empty()) return;
  const std::int64_t due = life_.wall().us + static_cast<std::int64_t>(random.below(300'000));
  const DelayedAction actions[] = {DelayedAction::cancel, DelayedAction::hurry, DelayedAction::reschedule};
  const DelayedAction action = actions[random.below(3)];
  // While the call is under way, both states are possible.
  const auto before = history.messages;
  for (const std::size_t i : chosen) {
    Message& message = history.messages[i];
    if (action == DelayedAction::cancel) message.cancelled = Message::Cancelled::perhaps;
    if (action != DelayedAction::cancel)
      message.due[message.dues++] = action == DelayedAction::hurry ? life_.wall().us : due;
  }
  const auto piece = schedule.act(action, filter, {}, {due});
  if (!piece) {
    if (!calls_fail) fail("a command on delayed messages fails: " + piece.error().text());
    return;  // the record may be on disk
  }
  std::vector<std::size_t> changed;
  for (const std::size_t i : chosen) {
    const auto answer = std::ranges::find(piece->answers, history.messages[i].number,
                                          [](const auto& each) { return each.number; });
    if (answer == piece->answers.end()) return fail(name(static_cast<std::int32_t>(i)) + " has no answer");
    if (answer->outcome == DelayedOutcome::done) {
      changed.push_back(i);
    } else {
      history.messages[i] = before[i];
    }
  }
  const auto answered = [this, changed, action, due](const Result<std::uint64_t>& result) {
    if (!result) return;
    for (const std::size_t i : changed) {
      Message& message = history.messages[i];
      if (action == DelayedAction::cancel) message.cancelled = Message::Cancelled::yes;
      // A message that was already due keeps its time when it is hurried, and later commands may have changed
      // it.
      if (action != DelayedAction::reschedule || message.dues < 2 || message.due[message.dues - 1U] != due)
        continue;
      message.due[0] = due;
      message.dues = 1;
    }
  };
  schedule.answer_when_durable(changed.size(), answered);
  look();
}

void DeliveryClient::do_act_on_dead(SmallRandom& random) {
  if (life_.group() == nullptr || mix.letters) return;
  look();
  const bool purges = random.one_in(3);
  for (const DeliveryHistory::Place& place : history.places) {
    if (place.now != DeliveryHistory::dead || place.message < 0) continue;
    Message& message = history.messages[static_cast<std::size_t>(place.message)];
    if (purges) message.is_excused = true;
    if (!purges) message.returns = std::uint8_t(message.returns + 1);
  }
  const auto action = purges ? broker::DeadAction::purge : broker::DeadAction::retry;
  for (std::optional<Offset> from = Offset{0}; from;) {
    const auto piece = life_.source->commands().act_on_dead(BrokerLife::group_name, action, {}, *from);
    if (!piece) return fail("a command on dead messages fails: " + piece.error().text());
    from = piece->next;
  }
  look();
}

void DeliveryClient::do_give_back() {
  if (!mix.letters) return;
  look();
  history.note_returns();
  ++history.give_backs;
  life_.office->returns().act(
      BrokerLife::letters_id, broker::LetterAction::give_back, {}, [](std::string_view) { return true; },
      [this](const Result<broker::LetterCounts>&) {
        if (history.give_backs != 0) --history.give_backs;
      });
}

void DeliveryClient::turn(std::int64_t us) {
  history.passed_us += us;
  life_.turn(us);
  look();
}

bool DeliveryClient::run_job(SmallRandom& random) {
  const bool ran = life_.run_job(mix.letters && random.one_in(2));
  look();
  return ran;
}

void DeliveryClient::finish(SmallRandom& random) {
  int quiet = 0;
  for (int turns = 0; turns < turns_to_finish_max && quiet < 12 && !violation; ++turns) {
    turn(20'000);
    if (turns % 4 == 0) turn(second_us);
    while (run_job(random)) {
    }
    consume(random, true);
    if (turns % 32 == 8) mix.letters ? give_back() : act_on_dead(random);
    broker::ConsumerGroup* const group = life_.group();
    if (group == nullptr) continue;
    const bool is_done = group->committed() == life_.store().next_offset() &&
                         life_.source->schedule().stats().messages == 0 && life_.is_quiet() &&
                         (life_.letters == nullptr || life_.letters->letter_book().run() == 0);
    bool all = is_done;
    for (std::size_t i = 0; all && i < history.messages.size(); ++i) {
      const Message& message = history.messages[i];
      all = !message.is_needed();
    }
    quiet = all ? quiet + 6 : is_done && turns > 300 ? quiet + 1 : 0;
  }
  if (violation) return;
  if (quiet < 12) return fail("the topic does not become quiet");
  for (std::size_t i = 0; i < history.messages.size(); ++i) {
    const Message& message = history.messages[i];
    if (message.is_needed())
      return fail(name(static_cast<std::int32_t>(i)) + " has never reached the consumer");
  }
}

}  // namespace lightq::test
