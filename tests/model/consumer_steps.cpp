/// Operations of consumers.
#include <algorithm>
#include <utility>

#include "model/steps.hpp"

namespace lightq::model {

using namespace broker;

namespace {
constexpr std::size_t members_max = 4;
constexpr const char* group_names[] = {"a", "b", "c"};
std::string text_of(OffsetRange range) {
  return "[" + std::to_string(range.begin.value) + ", " + std::to_string(range.end.value) + ")";
}
}  // namespace

ModelGroup* Steps::some_group() {
  if (groups_.empty()) return nullptr;
  auto at = groups_.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random_.below(groups_.size())));
  return at->second.get();
}

ModelMember* Steps::some_member(ModelGroup*& group) {
  group = some_group();
  if (group == nullptr || group->members.empty()) return nullptr;
  auto at = group->members.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(random_.below(group->members.size())));
  return &at->second;
}

OffsetRange Steps::some_range(const ModelGroup& group) {
  std::vector<std::uint64_t> held;
  for (const auto& [offset, message] : group.open) {
    if (message.holder != 0) held.push_back(offset);
  }
  const std::uint64_t from = held.empty() ? 0 : held[random_.below(held.size())];
  return {{from}, {from + random_.between(1, random_.one_in(3) ? 30 : 3)}};
}

/// Returns the number of the last hand-out, and sometimes of an earlier one.
std::uint32_t Steps::some_hand_out(const ModelMember& member) {
  if (!member.leases) return 0;
  if (member.last_hand_out > 1 && random_.one_in(8)) return member.last_hand_out - 1;
  return member.last_hand_out;
}

void Steps::join() {
  std::string name = group_names[random_.below(std::size(group_names))];
  if (has_plain_ && random_.one_in(8)) name = protocol::default_group;
  const auto known = groups_.find(name);
  if (known != groups_.end() && known->second->members.size() >= members_max) return;
  const auto end = broker_.orders_store().next_offset().value;
  const auto first = broker_.orders_store().first_offset().value;
  const std::uint64_t start = end - std::min(end - first, random_.below(20));
  ConsumeRequest asked;
  if (name != protocol::default_group) asked.group = name;
  asked.start = {StartPosition::From::offset, start};
  asked.credit = {random_.below(30), 1'000'000'000};
  asked.leases = random_.one_in(2);
  asked.acknowledgement = !asked.leases && random_.one_in(8) ? AckMode::automatic : AckMode::by_consumer;
  // The broker rounds longer ones, and does not tell a consumer without leases when they end.
  asked.ack_timeout_ms =
      asked.leases && random_.one_in(4) ? 0 : static_cast<std::uint32_t>(10 * random_.between(1, 300));
  ModelMember member;
  member.leases = asked.leases;
  member.automatic = asked.acknowledgement == AckMode::automatic;
  member.hears_late = !member.leases && random_.one_in(2);
  member.asked_timeout_ms = asked.ack_timeout_ms;
  member.credit = asked.credit.messages;
  const int number = ++last_client_;
  member.client = std::make_unique<Client>(broker_.journal(), number, member.hears_late);
  note("consumer " + std::to_string(number) + " joins group " + name + (member.leases ? " with leases" : "") +
       (member.automatic ? ", automatic" : "") + ", credit " + std::to_string(member.credit) + ", timeout " +
       std::to_string(asked.ack_timeout_ms));
  if (known == groups_.end()) {
    ModelGroup& made = add_group(name, start);
    for (std::uint64_t at = start; at < log_.size(); ++at) made.appended(at);
  }
  Client& client = *member.client;
  groups_.at(name)->members[number] = std::move(member);
  const auto refusal = broker_.orders().open_consumer(asked, client);
  demand(refusal.code == ClientError::none, "a consumer was refused");
  ++tally_["joins"];
}

void Steps::leave() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr) return;
  const int number = member->client->number;
  const MemberEnd end = random_.one_in(3) ? MemberEnd::closed : MemberEnd::lost;
  note("consumer " + std::to_string(number) + (end == MemberEnd::closed ? " closes" : " is lost"));
  const auto client = std::move(member->client);
  if (end == MemberEnd::closed) TopicConsumers::ends_by(*client, end);
  broker_.orders().detach_consumer(*client);
  group->leave(number, end);
  ++tally_[end == MemberEnd::closed ? "closes" : "sessions lost"];
}

void Steps::start_some() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr || !member->leases) return;
  const OffsetRange range = some_range(*group);
  const std::uint32_t hand_out = some_hand_out(*member);
  note("consumer " + std::to_string(member->client->number) + " starts " + text_of(range) + " of hand-out " +
       std::to_string(hand_out));
  broker::start(broker_.orders(), *member->client, {std::nullopt, {range}, hand_out}, broker_.now());
  group->start_work(*member, range, hand_out);
  ++tally_["starts"];
}

void Steps::extend_some() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr) return;
  const OffsetRange range = some_range(*group);
  const std::uint32_t hand_out = some_hand_out(*member);
  const auto ms = static_cast<std::uint32_t>(10 * random_.between(1, 500));
  note("consumer " + std::to_string(member->client->number) + " extends " + text_of(range) + " by " +
       std::to_string(ms));
  broker::extend(broker_.orders(), *member->client, {ms, {range}, hand_out}, broker_.now());
  group->extend(*member, range, hand_out, ms);
  ++tally_["extensions"];
}

void Steps::acknowledge_some() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr || member->has_many_overdue) return;
  OffsetRange range = some_range(*group);
  if (!member->overdue.empty() && random_.one_in(2)) {
    range.begin = {*member->overdue.begin()};
    range.end = range.begin + random_.between(1, 5);
    ++tally_["late acknowledgements"];
  }
  const std::uint32_t hand_out = some_hand_out(*member);
  Ack ack{std::nullopt, {range}, hand_out};
  if (random_.one_in(6)) {
    ack = {range.end, {}, hand_out};
    range.begin = {0};
  }
  note("consumer " + std::to_string(member->client->number) + " acknowledges " + text_of(range) +
       " of hand-out " + std::to_string(hand_out));
  const auto under_way = under_way_of(*group);
  broker::acknowledge(broker_.orders(), *member->client, ack);
  const std::uint64_t before = group->counters.acknowledged;
  group->acknowledge(*member, range, hand_out, under_way);
  tally_["acknowledged"] += group->counters.acknowledged - before;
}

void Steps::reject_some() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr) return;
  const OffsetRange range = some_range(*group);
  Rejection rejection{0, {range}, some_hand_out(*member)};
  const std::uint64_t choice = random_.below(10);
  rejection.kind = choice == 0 ? RejectKind::dead : choice < 4 ? RejectKind::release : RejectKind::retry;
  if (rejection.kind == RejectKind::dead && random_.one_in(2))
    rejection.reason = "r" + std::to_string(range.begin.value);
  if (rejection.kind == RejectKind::retry && random_.one_in(3))
    rejection.delay_ms = static_cast<std::uint32_t>(random_.below(3000));
  const char* const words[] = {" retries ", " releases ", " gives up "};
  note("consumer " + std::to_string(member->client->number) + words[static_cast<int>(rejection.kind)] +
       text_of(range) + " of hand-out " + std::to_string(rejection.hand_out) + ", delay " +
       std::to_string(rejection.delay_ms));
  broker::reject(broker_.orders(), *member->client, rejection, broker_.now());
  group->reject(*member, range, rejection);
  ++tally_["rejections"];
}

void Steps::give_credit() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr) return;
  const std::uint64_t more = random_.below(30);
  note("consumer " + std::to_string(member->client->number) + " gets credit " + std::to_string(more));
  demand(broker_.orders().consumers().add_credit(*member->client, {more, 0}), "credit was refused");
  member->credit += more;
}

void Steps::turn_silent() {
  ModelGroup* group = nullptr;
  ModelMember* const member = some_member(group);
  if (member == nullptr) return;
  member->is_silent = !member->is_silent;
  member->client->is_writable = !member->is_silent;
  note("consumer " + std::to_string(member->client->number) +
       (member->is_silent ? " is silent" : " is heard"));
  broker_.orders().consumers().set_silent(*member->client, member->is_silent);
  if (!member->is_silent) broker_.orders().consumers().wake(*member->client);
  ++tally_["silences"];
}

}  // namespace lightq::model
