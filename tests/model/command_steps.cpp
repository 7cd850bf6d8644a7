/// Commands, time, restarts and crashes.
#include <algorithm>
#include <utility>

#include "model/steps.hpp"

namespace lightq::model {

using namespace broker;
using Dead = GroupMessage::Dead;
using protocol::BrokerType;

namespace {
constexpr int end_within = 12;  // steps from a call of the disk that fails to the end of the process
}

BrokerUnderTest::Catalogue Steps::catalogue_of(std::uint64_t run) {
  constexpr BrokerType types[] = {BrokerType::queue, BrokerType::file, BrokerType::queue_file};
  BrokerUnderTest::Catalogue catalogue;
  const BrokerType type = types[run % std::size(types)];
  catalogue.orders = {.broker_type = type,
                      .ring_bytes = limits::ring_bytes_min,
                      .overflow = run / 3 % 2 == 0 ? protocol::Overflow::block : protocol::Overflow::reject,
                      .segment_bytes = limits::segment_bytes_min};
  if (type != BrokerType::queue && run / 6 % 2 == 1) catalogue.orders.capacity_bytes = 256 * limits::KiB;
  const bool has_ttl = run % 4 >= 2;
  if (!has_ttl && type == BrokerType::queue) catalogue.orders.overflow = protocol::Overflow::drop_oldest;
  if (!has_ttl && type == BrokerType::file && run % 8 < 4) {
    catalogue.orders.retention_bytes = 2 * limits::segment_bytes_min;
    catalogue.orders.capacity_bytes = 0;
    catalogue.orders.retention_over_pending = run / 24 % 2 == 1;
  }
  if (!has_ttl && type == BrokerType::queue_file && run % 8 < 4) {
    catalogue.orders.retention_ms = 20'000;
    catalogue.orders.capacity_bytes = 0;
    catalogue.orders.retention_over_pending = run / 24 % 2 == 1;
  }
  catalogue.letters = {.broker_type = type == BrokerType::queue ? BrokerType::queue : BrokerType::file,
                       .ring_bytes = limits::MiB,
                       .segment_bytes = limits::segment_bytes_min};
  return catalogue;
}

void Steps::step() {
  ++step_;
  operate();
  if (is_over_) return;
  broker_.settle();
  if (is_over_) return;
  check();
}

void Steps::operate() {
  if (end_in_ > 0 && --end_in_ == 0) return end_process();
  const std::uint64_t choice = random_.below(1080);
  std::uint64_t sum = 0;
  const auto is = [&](std::uint64_t share) { return choice < (sum += share); };
  if (is(130)) return publish();
  if (is(30)) return publish_delayed();
  if (is(20)) return change_delayed();
  if (is(45)) return broker_.is_dead() ? void() : join();
  if (is(35)) return leave();
  if (is(70)) return start_some();
  if (is(25)) return extend_some();
  if (is(160)) return acknowledge_some();
  if (is(100)) return reject_some();
  if (is(110)) return give_credit();
  if (is(25)) return turn_silent();
  if (is(180)) return pass_time();
  if (is(5)) return step_wall();
  if (is(35)) return has_plain_ ? change_pullers() : publish();
  if (is(25)) return has_plain_ ? change_subscribers() : pass_time();
  if (broker_.is_dead()) return;
  if (is(15)) return change_settings();
  if (is(18)) return change_recurring();
  if (is(4)) return set_ttl();
  if (is(8)) return pause_group();
  if (is(3)) return pause_topic();
  if (is(3)) return seek_group();
  if (is(3)) return purge_group();
  if (is(16)) return act_on_dead();
  if (is(8)) return act_on_letters();
  if (is(4) && end_in_ == 0) return end_process();
  if (is(3) && is_durable()) {
    note("the disk fails soon");
    keeps_changes_ = true;
    broker_.end_before(random_.between(1, 12));
    end_in_ = end_within;
  }
}

void Steps::pass_time() {
  const std::uint64_t choice = random_.below(40);
  auto time = milliseconds(10 * random_.between(1, 12));
  if (choice < 8) time = milliseconds(10 * random_.between(1, 150));
  if (choice == 8) time = milliseconds(10 * random_.between(100, 1000));
  if (choice == 9 && random_.one_in(4)) time = std::chrono::hours(1);
  if (choice == 10 || choice == 11) {  // to about the next minute
    const std::int64_t into = broker_.wall().us % ModelRecurring::minute_us / 1000;
    time = milliseconds(10 * ((ModelRecurring::minute_us / 1000 - into) / 10 + random_.between(0, 2)));
  }
  note(std::to_string(time.count()) + " ms pass");
  broker_.pass(time);
  ++tally_["times"];
}

void Steps::step_wall() {
  const auto by = std::chrono::milliseconds(random_.below(20'000)) - std::chrono::seconds(10);
  note("the wall clock steps by " + std::to_string(by.count()) + " ms");
  has_jumped_ = true;
  if (by.count() < 0) has_stepped_ = true;
  for (std::int64_t& each : dated_us_) each = std::min(each, broker_.wall().us + by.count() * 1000);
  broker_.step_wall(by);
  for (auto& [name, schedule] : recurring_)
    schedule.started_least_us = std::min(schedule.started_least_us, broker_.wall().us);
  ++tally_["clock steps"];
}

void Steps::change_settings() {
  constexpr const char* names[] = {"a", "b", "c", "a", "b", "c", "default"};
  const std::string name = names[random_.below(std::size(names))];
  GroupSetup setup;
  if (!random_.one_in(6)) {
    setup.settings.max_attempts = static_cast<std::uint32_t>(random_.below(7));
    for (std::uint64_t i = random_.below(4); i != 0; --i)
      setup.settings.backoff_ms.push_back(static_cast<std::uint32_t>(random_.below(2500)));
    if (!random_.one_in(3)) setup.settings.dead_letter_topic = "letters";
    setup.settings.dead_waiting_max = static_cast<std::uint32_t>(random_.between(5, 40));
    setup.settings.dead_letter_expired = !setup.settings.dead_letter_topic.empty() && random_.one_in(2);
    setup.settings.pause_when_failing = random_.one_in(4);
    if (!setup.settings.dead_letter_topic.empty())
      setup.dead_letter_topic = random_.one_in(8) ? BrokerUnderTest::deleted_id : BrokerUnderTest::letters_id;
  }
  note("group " + name + " is set to " + std::to_string(setup.settings.max_attempts) + " attempts, " +
       std::to_string(setup.settings.backoff_ms.size()) + " back-offs, dead letters to " +
       std::to_string(setup.dead_letter_topic.value) +
       (setup.settings.dead_letter_expired ? ", also expired ones" : ""));
  if (is_default(setup)) {
    broker_.catalogue().groups.erase(name);
  } else {
    broker_.catalogue().groups[name] = setup;
  }
  broker_.orders().commands().set_group_settings(name, setup, [](const Result<std::uint64_t>&) {});
  if (const auto found = groups_.find(name); found != groups_.end())
    found->second->set_settings(setup.settings);
  ++tally_["settings"];
}

void Steps::set_ttl() {
  if (!has_ttl()) return;
  std::uint64_t& ttl_ms = broker_.catalogue().orders.message_ttl_ms;
  const std::uint64_t before = ttl_ms;
  ttl_ms = random_.one_in(2) ? 0 : random_.between(50, 8'000);
  if (ttl_ms == 0 || (before != 0 && before < ttl_ms)) has_stepped_ = true;
  expired_ms_.clear();
  note("the topic's time to live is " + std::to_string(ttl_ms) + " ms");
  broker_.orders().commands().change({.message_ttl_ms = ttl_ms}).value_or_throw();
  ++tally_["times to live"];
}

void Steps::pause_group() {
  ModelGroup* const group = some_group();
  if (group == nullptr) return;
  // Resuming twice as often, also after a pause by the flood brake.
  group->is_paused = random_.one_in(3);
  note("group " + group->name + (group->is_paused ? " is paused" : " is resumed"));
  broker_.orders().commands().set_group_paused(group->name, group->is_paused,
                                               [](const Result<std::uint64_t>&) {});
  ++tally_["pauses of groups"];
}

void Steps::pause_topic() {
  bool& is_paused = broker_.catalogue().is_paused;
  is_paused = !is_paused && random_.one_in(2);
  note(is_paused ? "the topic is paused" : "the topic is resumed");
  broker_.orders().commands().set_paused(is_paused);
  ++tally_["pauses of the topic"];
}

void Steps::seek_group() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr) return;
  const std::uint64_t first = broker_.orders_store().first_offset().value;
  const std::uint64_t end = log_.size();
  const std::uint64_t to = end - std::min(end - first, random_.below(40));
  note("group " + group->name + " seeks " + std::to_string(to));
  group->lost -= lost_ahead(*group);  // it never comes to them
  const auto sought = broker_.orders().consumers().seek(*member->client, {StartPosition::From::offset, to});
  demand(sought.ok() && *sought == Offset{to}, "a seek went elsewhere");
  broker_.journal().clear();
  group->seek(to, end);
  for (ModelLetter& letter : letters_)
    letter.is_passed_over |= letter.group == group->name && to <= letter.offset;
  ++tally_["seeks"];
}

void Steps::purge_group() {
  ModelGroup* const group = some_group();
  if (group == nullptr) return;
  note("group " + group->name + " is purged");
  group->lost -= lost_ahead(*group);
  broker_.orders().commands().purge_group(group->name, [](const Result<std::uint64_t>&) {});
  broker_.journal().clear();
  group->seek(log_.size(), log_.size());
  ++tally_["purges"];
}

void Steps::act_on_dead() {
  ModelGroup* const group = some_group();
  if (group == nullptr) return;
  DeadFilter filter;
  if (random_.one_in(3)) filter.state = random_.one_in(2) ? DeadState::parked : DeadState::dead_waiting;
  const bool knows_causes =
      std::ranges::none_of(group->open, [](const auto& each) { return each.second.is_vague; });
  if (random_.one_in(3) && knows_causes) filter.cause = static_cast<DeathCause>(random_.between(1, 3));
  if (random_.one_in(4)) filter.key = random_.one_in(2) ? "" : "key " + std::to_string(random_.below(7));
  const std::uint64_t choice = random_.below(3);
  const auto action = choice == 0 ? DeadAction::count : choice == 1 ? DeadAction::retry : DeadAction::purge;
  const auto under_way = under_way_of(*group);
  std::vector<std::uint64_t> meant;
  for (const auto& [offset, message] : group->open) {
    if (message.dead == Dead::no || message.is_computed || under_way.contains(offset)) continue;
    if (filter.state && (*filter.state == DeadState::parked) != (message.dead == Dead::parked)) continue;
    if (filter.cause && *filter.cause != message.cause) continue;
    if (filter.key && *filter.key != Content{log_.at(offset)}.key()) continue;
    meant.push_back(offset);
  }
  std::uint64_t messages = 0;
  for (std::optional<Offset> from = Offset{0}; from;) {
    const auto piece =
        broker_.orders().commands().act_on_dead(group->name, action, filter, *from).value_or_throw();
    // The disk of an ended process cannot be read any more.
    if (broker_.is_dead() && (piece.is_pending || piece.unreadable != 0)) {
      is_over_ = true;
      return;
    }
    demand(!piece.is_pending && piece.unreadable == 0, "dead messages cannot be read");
    messages += piece.messages;
    from = piece.next;
  }
  note("group " + group->name + ": " + std::to_string(meant.size()) + " dead messages are " +
       (choice == 0   ? "counted"
        : choice == 1 ? "retried"
                      : "purged"));
  demand(messages == meant.size(), [&] {
    return "group " + group->name + ": a command meant " + std::to_string(messages) + " dead messages";
  });
  if (choice == 0) return;
  for (const std::uint64_t offset : meant) choice == 1 ? group->retry_dead(offset) : group->finish(offset);
  tally_[choice == 1 ? "dead messages retried" : "dead messages purged"] += meant.size();
}

void Steps::act_on_letters() {
  const std::uint64_t choice = random_.below(4);
  DeadFilter filter;
  if (random_.one_in(3)) filter.cause = random_.one_in(2) ? DeathCause::attempts : DeathCause::rejected;
  if (random_.one_in(2) && !letters_.empty()) {
    const std::uint64_t from = random_.below(letters_.size());
    filter.ranges = {{{from}, {from + random_.between(1, 10)}}};
  }
  note(std::string("letters are ") + (choice == 0 ? "purged" : "given back"));
  GiveBackCommand command{filter};
  if (choice != 0) {
    for (std::size_t at = 0; at < letters_.size(); ++at) {
      ModelLetter& letter = letters_[at];
      letter.is_wanted |= !letter.is_settled && command.means(letter, at);
    }
    give_backs_.push_back(command);
  }
  broker_.office().returns().act(
      BrokerUnderTest::letters_id, choice == 0 ? LetterAction::purge : LetterAction::give_back, filter,
      [](std::string_view) { return true; },
      [is_over = command.is_over](const Result<LetterCounts>&) { *is_over = true; });
  ++tally_[choice == 0 ? "purges of letters" : "commands to give back"];
}

void Steps::end_process() {
  end_in_ = 0;
  target_ = nullptr;
  producer_.reset();
  const bool clean = !broker_.is_dead() && random_.one_in(3);
  // Messages expire meanwhile, which the model does not follow.
  const auto down =
      has_ttl() || random_.one_in(2) ? milliseconds(0) : milliseconds(10 * random_.below(20'000));
  if (down.count() != 0) ++tally_["times without the broker"];
  if (clean) {
    note("the broker stops and starts " + std::to_string(down.count()) + " ms later");
    return restart(down);
  }
  const bool cut = is_durable() && random_.one_in(2);
  note((cut ? "the power is cut, and the broker starts " : "the broker is killed, and starts ") +
       std::to_string(down.count()) + " ms later");
  crash(cut, down);
}

}  // namespace lightq::model
