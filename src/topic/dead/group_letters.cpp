/// Reads and changes the outbox of a consumer group. Layer: topic.
#include "topic/dead/group_letters.hpp"

#include <utility>

#include "delivery/group_dead.hpp"
#include "log/elapsed.hpp"

namespace lightq::broker {

namespace {

class GroupLetters final : public LetterSource {
 public:
  GroupLetters(TopicRuntime& topic, std::string group) : topic_(topic), group_(std::move(group)) {}

  [[nodiscard]] std::string name() const override {
    return "topic " + topic_.definition().name.text() + ", group " + group_;
  }
  [[nodiscard]] Target target() const override {
    const ConsumerGroup* const group = find();
    if (group == nullptr) return {};
    return {group->failures().target(), group->failures().settings().dead_letter_topic};
  }
  [[nodiscard]] std::uint64_t incarnation() const override {
    ConsumerGroup* const group = find();
    return group == nullptr ? 0 : group->dead().incarnation();
  }
  [[nodiscard]] TopicId bound_to() const override {
    ConsumerGroup* const group = find();
    if (group == nullptr || group->dead().messages().outbox().under_way().empty()) return {};
    return group->dead().target();
  }
  [[nodiscard]] std::uint64_t next_number() const override {
    ConsumerGroup* const group = find();
    if (group == nullptr || group->dead().incarnation() == 0) return 0;
    if (group->dead().target() != group->failures().target()) return 0;
    const Outbox& outbox = group->dead().messages().outbox();
    return outbox.first_number() + outbox.under_way().size();
  }
  std::size_t begin(std::size_t most) override {
    ConsumerGroup* const group = find();
    if (group == nullptr) return 0;
    const TopicId target = group->failures().target();
    const TopicStore& store = topic_.store();
    if (!store.is_durable()) return group->dead().begin(most, target);
    const std::size_t begun = group->dead().begin(most, target, store.durable_offset());
    if (begun == 0) topic_.letters().want_flush();
    return begun;
  }
  [[nodiscard]] bool has_any() const override {
    ConsumerGroup* const group = find();
    return group != nullptr && !group->dead().messages().outbox().empty();
  }
  [[nodiscard]] std::vector<Message> under_way() const override {
    std::vector<Message> messages;
    ConsumerGroup* const group = find();
    if (group == nullptr) return messages;
    for (const Transfer& transfer : group->dead().under_way())
      messages.push_back({transfer.number, account_of(transfer.message)});
    return messages;
  }
  void save(Saved saved) override {
    topic_.letters().save([saved = std::move(saved)](const Result<std::uint64_t>& answer) {
      saved(answer ? Result<void>() : Result<void>(answer.error()));
    });
  }
  Read read(const Message& message) override {
    auto read = topic_.letters().read(message.death);
    if (read.is_pending) return {.outcome = Read::Outcome::pending, .letter = {}};
    if (read.is_lost) return {.outcome = Read::Outcome::lost, .letter = {}};
    if (!read.letter) return {.outcome = Read::Outcome::later, .letter = {}};
    if (!*read.letter) return {.outcome = Read::Outcome::too_large, .letter = {}};
    return {.outcome = Read::Outcome::letter, .letter = std::move(**read.letter)};
  }
  void done(std::uint64_t incarnation, std::uint64_t number) override {
    ConsumerGroup* const group = find();
    if (group != nullptr && group->dead().done(incarnation, number)) topic_.letters().changed();
  }
  void lose(std::uint64_t incarnation, std::uint64_t number) override {
    ConsumerGroup* const group = find();
    if (group != nullptr && group->dead().lose(incarnation, number)) topic_.letters().changed();
  }
  void give_up(std::uint64_t incarnation, std::uint64_t number) override {
    ConsumerGroup* const group = find();
    if (group != nullptr && group->dead().give_up(incarnation, number)) topic_.letters().changed();
  }
  void renew() override {
    ConsumerGroup* const group = find();
    if (group == nullptr) return;
    group->dead().renew();
    topic_.letters().changed();
  }
  void set_trouble(const std::string& why) override {
    if (ConsumerGroup* const group = find()) group->dead().set_trouble(why);
  }

 private:
  [[nodiscard]] ConsumerGroup* find() const { return topic_.letters().groups().find(group_); }
  [[nodiscard]] DeathAccount account_of(const DeadMessage& message) const {
    DeathAccount account{.cause = message.cause,
                         .topic = topic_.definition().name.text(),
                         .group = group_,
                         .incarnation = topic_.incarnation(),
                         .offset = message.offset,
                         .attempts = message.attempts};
    if (!message.record) return account;
    account.first_failure_ms = log::ms_since_1970(message.record->first_failure);
    account.last_failure_ms = log::ms_since_1970(message.record->last_failure);
    account.reason = message.record->reason;
    return account;
  }

  TopicRuntime& topic_;
  const std::string group_;
};

}  // namespace

std::vector<std::string> groups_with_letters(TopicRuntime& topic) {
  std::vector<std::string> names;
  for (ConsumerGroup* const group : topic.letters().groups().list(ConsumerGroups::Listed::named)) {
    if (group->dead().waiting() > 0) names.push_back(group->name());
  }
  return names;
}

std::unique_ptr<LetterSource> letters_of_group(TopicRuntime& topic, const std::string& group) {
  return std::make_unique<GroupLetters>(topic, group);
}

}  // namespace lightq::broker
