/// Operations of producers, and of commands on delayed messages.
#include <algorithm>
#include <utility>

#include "model/steps.hpp"

namespace lightq::model {

using namespace broker;

/// A producer of delayed messages.
class Steps::Producer final : public SessionProducer {
 public:
  [[nodiscard]] std::uint64_t producer_id() const override { return id; }
  [[nodiscard]] bool needs_durable() const override { return false; }
  void admitted() override { is_admitted = true; }
  bool resume() override { return true; }
  bool durable_moved() override { return false; }
  void end(ClientError, const std::string&) override { has_ended = true; }

  std::uint64_t id = 0;
  std::uint16_t epoch = 0;
  bool is_admitted = false;
  bool has_ended = false;
};

void Steps::publish() {
  const std::uint64_t count = random_.one_in(4) ? random_.between(1, 30) : random_.between(1, 3);
  BatchBuilder batch;
  for (std::uint64_t i = 0; i < count; ++i) Content{next_content_ + i}.add_to(batch);
  demand(broker_.orders_store().next_offset() == Offset{log_.size()}, "the log has unknown messages");
  const auto outcome = broker_.orders().publishing().publish(batch);
  note("publish " + std::to_string(count) + " from " + std::to_string(next_content_) + " at " +
       std::to_string(log_.size()) + ": outcome " + std::to_string(static_cast<int>(outcome)));
  if (outcome == PublishOutcome::accepted) {
    for (std::uint64_t i = 0; i < count; ++i) append(next_content_ + i);
    ++tally_["publishes"];
  } else {
    ++tally_["publishes without room"];
  }
  next_content_ += count;
  if (random_.one_in(3)) broker_.orders().publishing().want_flush();
  broker_.orders().publishing().published();
}

void Steps::publish_delayed() {
  if (broker_.is_dead()) return;
  if (target_ == nullptr) {
    const auto target = broker_.orders().schedule().target();
    demand(target.ok() || broker_.is_dead(), "a topic has no schedule");
    if (!target) return;
    target_ = *target;
    producer_ = std::make_shared<Producer>();
    producers_.push_back(producer_);
    const auto opened = target_->open({}, *producer_, {.user = 0});
    demand(opened.refusal == ClientError::none, "a producer was refused");
    producer_->id = opened.producer.identity.id;
    producer_->epoch = opened.producer.identity.epoch;
    sequence_ = opened.producer.expected;
    note("a producer of delayed messages opens");
    return;
  }
  if (!producer_->is_admitted) return;
  if (schedule_.waiting.size() > 60) return;
  const std::uint64_t count = random_.between(1, 4);
  BatchBuilder batch;
  std::vector<std::int64_t> dues;
  const std::int64_t now = broker_.wall().us;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t choice = random_.below(8);
    std::int64_t due = -1 - static_cast<std::int64_t>(random_.below(2'000'000));
    if (choice == 0) due = now - 5;
    if (choice == 1) due = now + static_cast<std::int64_t>(random_.below(60'000'000));
    if (choice == 2) due = now + 100'000 * static_cast<std::int64_t>(random_.between(1, 3));
    Content{next_content_ + i}.add_to(batch, due, true);
    dues.push_back(due < 0 ? now - due : std::max(due, now));
  }
  const auto bytes = batch.finish({producer_->id, sequence_, producer_->epoch});
  const Sequences sequences{{producer_->id, producer_->epoch}, sequence_, static_cast<std::uint32_t>(count)};
  demand(target_->admit(sequences) == Admission::store, "a batch of delayed messages is not admitted");
  const std::uint64_t number = target_->ends().next.value;
  const auto outcome =
      target_->store({bytes, static_cast<std::uint32_t>(count), batch.message_bytes()}, sequences);
  note("publish " + std::to_string(count) + " delayed from " + std::to_string(next_content_) + ": outcome " +
       std::to_string(static_cast<int>(outcome)));
  if (outcome == PublishOutcome::accepted) {
    sequence_ += count;
    for (std::uint64_t i = 0; i < count; ++i) schedule_.add(number + i, next_content_ + i, dues[i]);
    demand(target_->admit(sequences) == Admission::repeat,
           "a batch that is sent again would be stored twice");
    ++tally_["delayed publishes"];
  }
  next_content_ += count;
  if (random_.one_in(2)) target_->want_flush();
  target_->published();
}

void Steps::change_delayed() {
  if (schedule_.waiting.empty() || broker_.is_dead()) return;
  DelayedFilter filter;
  for (std::uint64_t left = random_.between(1, 3); left > 0; --left) {
    auto at = schedule_.waiting.begin();
    std::advance(at, static_cast<std::ptrdiff_t>(random_.below(schedule_.waiting.size())));
    filter.numbers.push_back({at->first, at->first + 1});
  }
  std::ranges::sort(filter.numbers, {}, &NumberRange::begin);
  const auto twice = std::ranges::unique(filter.numbers, {}, &NumberRange::begin);
  filter.numbers.erase(twice.begin(), twice.end());
  const std::uint64_t choice = random_.below(3);
  const auto action = choice == 0   ? DelayedAction::cancel
                      : choice == 1 ? DelayedAction::hurry
                                    : DelayedAction::reschedule;
  const std::int64_t now = broker_.wall().us;
  const std::int64_t due = choice == 2 ? now + static_cast<std::int64_t>(random_.below(5'000'000)) : now;
  auto& schedule = broker_.orders().schedule();
  const auto acted = schedule.act(action, filter, {}, {due});
  demand(acted.ok() || broker_.is_dead(), "delayed messages cannot be changed");
  if (!acted) return;
  const DelayedPiece& piece = *acted;
  demand(!piece.more && piece.answers.size() == filter.numbers.size(), "a number has no answer");
  for (const auto& answer : piece.answers) {
    const auto message = schedule_.waiting.find(answer.number);
    demand(message != schedule_.waiting.end(), "a number was not asked for");
    const std::string name = "delayed message " + std::to_string(message->second.content) + ": ";
    note(name +
         (choice == 0   ? "cancel"
          : choice == 1 ? "hurry"
                        : "reschedule") +
         ", outcome " + std::to_string(static_cast<int>(answer.outcome)));
    if (answer.outcome == DelayedOutcome::too_late) {
      demand(choice != 0 && message->second.may_be_planned, [&] { return name + "too late"; });
      continue;
    }
    demand(answer.outcome == DelayedOutcome::done, [&] { return name + "it is unknown"; });
    if (choice == 0)
      schedule_.cancel(answer.number, false);
    else if (choice == 2 || due < message->second.due())
      schedule_.set_due(answer.number, due);
  }
  const auto answered = std::make_shared<bool>(false);
  schedule.answer_when_durable(0,
                               [answered](const Result<std::uint64_t>& result) { *answered = result.ok(); });
  broker_.settle();
  if (*answered) {
    schedule_.unsure.clear();
    for (auto& [number, message] : schedule_.waiting) message.dues = {message.due()};
  }
  ++tally_["changes of delayed messages"];
}

}  // namespace lightq::model
