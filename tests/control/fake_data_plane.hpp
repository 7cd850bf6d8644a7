/// A data plane that does nothing but record the calls. Tests only.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/commands/data_plane.hpp"
#include "net/event_loop.hpp"

namespace lightq::broker::test {

/// Replies through the loop, like the real data plane.
class FakeDataPlane final : public DataPlane {
 public:
  explicit FakeDataPlane(EventLoop& loop) : loop_(loop) {}

  void expect_topics(const std::vector<std::pair<TopicId, std::string>>& all) override { expected = all; }
  void add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints,
                 Done<void> done) override {
    if (refuse_add && (refuse_name.empty() || refuse_name == definition.name.text())) {
      return answer<void>(done, *refuse_add);
    }
    topics.emplace(definition.id.value, definition.name.text());
    for (const auto& [group, setup] : definition.groups)
      groups.insert_or_assign(std::to_string(definition.id.value) + "/" + group, setup);
    if (definition.paused) paused.insert(std::to_string(definition.id.value) + "/");
    for (const auto& [schedule, put] : definition.schedules)
      schedules.insert_or_assign(std::to_string(definition.id.value) + "/" + schedule, put);
    for (const auto& endpoint : endpoints) endpoints_[endpoint.topic.value].push_back(endpoint);
    answer<void>(done, {});
  }
  void remove_topic(TopicId topic, Done<void> done) override {
    topics.erase(topic.value);
    answer<void>(done, {});
  }
  void join(TopicId topic, const JoinWish& wish, Done<JoinedEndpoint> done) override {
    if (refuse_join) return answer<JoinedEndpoint>(done, *refuse_join);
    JoinedEndpoint joined;
    joined.is_new = true;
    joined.record = {next_id++,
                     topic,
                     wish.type == protocol::JoinType::sub    ? EndpointRole::sub
                     : wish.type == protocol::JoinType::pull ? EndpointRole::pull
                                                             : EndpointRole::produce,
                     wish.transport,
                     static_cast<std::uint16_t>(6000 + next_id),
                     wish.connection_type};
    holders.push_back(wish.holder);
    joined.bind_uri = "tcp://127.0.0.1:" + std::to_string(joined.record.port);
    joined.ticket = ticket;
    answer<JoinedEndpoint>(done, joined);
  }
  void leave(TopicId, const std::string& bind_uri, const Leaver& by, Done<std::uint64_t> done) override {
    left.insert(bind_uri);
    leavers.push_back(by);
    if (bind_uri == "tcp://unknown:1") {
      return answer<std::uint64_t>(done, Error{ErrorCode::endpoint_not_found, "endpoint not found"});
    }
    answer<std::uint64_t>(done, std::uint64_t{42});
  }
  void delete_group(TopicId, const std::string& group, Done<void> done) override {
    if (group == "default") return answer<void>(done, {});
    answer<void>(done, Error{ErrorCode::group_not_found, "group not found"});
  }
  void change_topic(TopicId topic, const protocol::TopicChange& change, Done<void> done) override {
    topic_changes[topic.value] = change;
    answer<void>(done, {});
  }
  void seek_group(TopicId, const std::string& group, const protocol::GroupPlace& to, bool preview,
                  Done<protocol::GroupMove> done) override {
    if (group != "default")
      return answer<protocol::GroupMove>(done, Error{ErrorCode::group_not_found, "group not found"});
    if (!preview) group_places[group] = to;
    answer<protocol::GroupMove>(done, protocol::GroupMove{7, to.value, 3, 10});
  }
  void trace(TopicId, Offset offset, Done<WorkedTrace> done) override {
    protocol::MessageTrace shown = traced;
    shown.offset = offset.value;
    answer<WorkedTrace>(done, WorkedTrace{std::move(shown), 1});
  }
  void set_paused(TopicId topic, const std::string& group, bool pause, Done<void> done) override {
    if (!group.empty() && group != "default")
      return answer<void>(done, Error{ErrorCode::group_not_found, "group not found"});
    const std::string what = std::to_string(topic.value) + "/" + group;
    pause ? static_cast<void>(paused.insert(what)) : static_cast<void>(paused.erase(what));
    answer<void>(done, {});
  }
  void purge(TopicId, const std::string& group, Done<std::uint64_t> done) override {
    if (!group.empty() && group != "default")
      return answer<std::uint64_t>(done, Error{ErrorCode::group_not_found, "group not found"});
    answer<std::uint64_t>(done, std::uint64_t{group.empty() ? 7U : 5U});
  }
  void set_group(TopicId topic, const std::string& group, const GroupSetup& setup, Done<void> done) override {
    groups.insert_or_assign(std::to_string(topic.value) + "/" + group, setup);
    answer<void>(done, {});
  }
  void list_dead(TopicId, const std::string& group, const DeadListWish& wish,
                 Done<protocol::DeadPage> done) override {
    if (group.empty() && !letters.empty()) {
      protocol::DeadPage page;
      page.messages = letters;
      return answer<protocol::DeadPage>(done, std::move(page));
    }
    if (group != "default")
      return answer<protocol::DeadPage>(done, Error{ErrorCode::group_not_found, "group not found"});
    protocol::DeadPage page;
    for (std::uint64_t offset = wish.after ? *wish.after + 1 : 0; offset < dead; ++offset) {
      if (page.messages.size() == wish.limit) {
        page.continue_after = offset - 1;
        break;
      }
      page.messages.push_back({.offset = offset, .attempts = 5});
    }
    answer<protocol::DeadPage>(done, std::move(page));
  }
  void act_on_dead(TopicId, const std::string& group, const DeadWish& wish,
                   Done<protocol::DeadCount> done) override {
    if (group != "default")
      return answer<protocol::DeadCount>(done, Error{ErrorCode::group_not_found, "group not found"});
    dead_wishes.push_back(wish);
    answer<protocol::DeadCount>(done, protocol::DeadCount{dead, 2});
  }
  void act_on_letters(TopicId, const DeadWish& wish, std::function<bool(std::string_view topic)> may,
                      Done<protocol::DeadCount> done) override {
    dead_wishes.push_back(wish);
    protocol::DeadCount count{.messages = dead};
    for (const std::string& source : sources_of_letters) {
      protocol::ReturnedLetters& returned = count.returned ? *count.returned : count.returned.emplace();
      ++(may(source) ? returned.given_back : returned.not_allowed);
    }
    answer<protocol::DeadCount>(done, count);
  }
  void list_delayed(TopicId, const DelayedListWish& wish, Done<protocol::DelayedPage> done) override {
    protocol::DelayedPage page;
    for (std::uint64_t number = wish.after ? wish.after->number + 1 : 0; number < delayed; ++number) {
      if (page.messages.size() == wish.limit) {
        page.continue_after = {page.messages.back().due, page.messages.back().number};
        break;
      }
      page.messages.push_back({.number = number, .due = {1000}, .bytes = 5});
    }
    answer<protocol::DelayedPage>(done, std::move(page));
  }
  void act_on_delayed(TopicId, const DelayedWish& wish, Done<protocol::DelayedCount> done) override {
    delayed_wishes.push_back(wish);
    answer<protocol::DelayedCount>(
        done,
        protocol::DelayedCount{
            .messages = delayed, .too_late = 1, .untouched = {{7, protocol::DelayedRefusal::too_late}}});
  }
  void put_schedule(TopicId topic, const std::string& schedule, const RecurringSchedule& put,
                    Done<void> done) override {
    schedules.insert_or_assign(std::to_string(topic.value) + "/" + schedule, put);
    answer<void>(done, {});
  }
  void remove_schedule(TopicId topic, const std::string& schedule, Done<void> done) override {
    schedules.erase(std::to_string(topic.value) + "/" + schedule);
    answer<void>(done, {});
  }
  void schedule_states(TopicId, Done<std::vector<ScheduleState>> done) override {
    answer<std::vector<ScheduleState>>(done, states);
  }
  void put_user(const UserAccess& user, Done<void> done) override {
    users.insert_or_assign(user.id, user);
    answer<void>(done, {});
  }
  void remove_user(std::uint64_t id, Done<void> done) override {
    users.erase(id);
    answer<void>(done, {});
  }
  void set_owner(TopicId topic, std::uint64_t holder, Done<void> done) override {
    owners[topic.value] = holder;
    answer<void>(done, {});
  }
  void topic_stats(TopicId topic, std::uint64_t /*members_max*/, Done<protocol::TopicStats> done) override {
    protocol::TopicStats stats;
    stats.topic = topics.at(topic.value);
    answer<protocol::TopicStats>(done, stats);
  }
  void stats_of(TopicsAsked asked, Done<TopicsStats> done) override {
    ++bulk_questions;
    TopicsStats counted;
    std::size_t entries = 0;
    for (const TopicId topic : asked.topics) {
      if (entries >= asked.entries_max) break;
      auto& stats = counted.topics.emplace_back();
      const auto found = topics.find(topic.value);
      if (found == topics.end()) continue;
      stats.emplace().topic = found->second;
      stats->groups.resize(groups_of_each);
      entries += entries_of(*stats);
    }
    answer<TopicsStats>(done, std::move(counted));
  }
  void broker_stats(Done<protocol::BrokerStats> done) override {
    protocol::BrokerStats stats;
    stats.messages_received = 77;
    answer<protocol::BrokerStats>(done, stats);
  }

  std::map<std::uint64_t, std::string> topics;
  std::map<std::uint64_t, std::vector<EndpointRecord>> endpoints_;
  std::set<std::string> left;
  std::vector<Leaver> leavers;  // for the entries of `left`
  std::map<std::uint64_t, UserAccess> users;
  std::map<std::uint64_t, std::uint64_t> owners;                 // topic → its own user
  std::vector<TicketHolder> holders;                             // of the joins
  std::optional<protocol::Ticket> ticket;                        // given to each join; nothing: no ticket
  std::set<std::string> paused;                                  // TOPIC_ID/GROUP
  std::size_t bulk_questions = 0;                                // calls of stats_of
  std::map<std::string, GroupSetup> groups;                      // TOPIC_ID/GROUP
  std::map<std::uint64_t, protocol::TopicChange> topic_changes;  // topic → its last change
  std::map<std::string, protocol::GroupPlace> group_places;  // group → the place to which it was moved last
  std::vector<std::pair<TopicId, std::string>> expected;
  std::map<std::string, RecurringSchedule> schedules;  // TOPIC_ID/NAME
  std::vector<ScheduleState> states;
  protocol::MessageTrace traced;               // the reply to each trace, with the offset that was asked for
  std::vector<protocol::DeadMessage> letters;  // of every dead-letter topic; empty: none has any
  std::uint64_t dead = 3;                      // messages of the group `default`
  std::vector<DeadWish> dead_wishes;
  std::uint64_t delayed = 3;  // messages in the schedule
  std::vector<DelayedWish> delayed_wishes;
  std::vector<std::string> sources_of_letters;
  std::size_t groups_of_each = 0;  // groups of each topic in stats_of
  std::optional<Error> refuse_add;
  std::string refuse_name;
  std::optional<Error> refuse_join;
  std::uint64_t next_id = 1;

 private:
  template <typename T>
  void answer(Done<T> done, Result<T> result) {
    loop_.post_answer([done = std::move(done), result = std::move(result)] { done(result); });
  }
  EventLoop& loop_;
};

}  // namespace lightq::broker::test
