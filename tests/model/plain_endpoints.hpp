/// A topic's plain endpoints without sockets: subscribers, and access to the topic for plain consumers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topic/topic_endpoints.hpp"

namespace lightq::model {

/// Keeps the subscribers by their endpoints' numbers, and states their cursors for saves.
class PlainEndpoints final : public broker::TopicEndpoints {
 public:
  PlainEndpoints(broker::Topic& of_topic, broker::EndpointsListener& its_listener)
      : topic(of_topic), listener(its_listener) {}

  broker::Subscriber& add(std::uint64_t endpoint, std::optional<Offset> from) {
    broker::Subscriber& added = topic.subscribers().add(from);
    subscribers_[endpoint] = &added;
    return added;
  }
  void remove(std::uint64_t endpoint) {
    topic.subscribers().remove(*subscribers_.at(endpoint));
    subscribers_.erase(endpoint);
  }
  [[nodiscard]] broker::Subscriber& at(std::uint64_t endpoint) { return *subscribers_.at(endpoint); }

  // Implements TopicEndpoints.
  Result<broker::OpenedEndpoint> join(protocol::JoinType, protocol::Transport, protocol::ConnectionType,
                                      const broker::TicketHolder&) override {
    return Error{ErrorCode::not_supported, "there are no sockets"};
  }
  Result<void> reopen(const broker::EndpointRecord& record, std::optional<Offset> from) override {
    add(record.id, from);
    return {};
  }
  Result<std::uint64_t> leave(const std::string&, const broker::Leaver&) override {
    return Error{ErrorCode::not_supported, "there are no sockets"};
  }
  bool resume_inlets() override { return true; }
  void tend_held(bool) override {}
  void end_unpermitted() override {}
  void close_all(bool) override {}
  void make_room(const broker::EndpointShares::Place&) override {}
  void stop_accepting() override {}
  [[nodiscard]] bool all_sent() override { return true; }
  void release_idle_memory() override {}
  void add_stats(protocol::TopicStats&) override {}
  [[nodiscard]] std::vector<log::NamedCursor> subscriber_cursors() const override {
    std::vector<log::NamedCursor> cursors;
    for (const auto& [endpoint, subscriber] : subscribers_)
      cursors.push_back({subscriber_cursor_name(endpoint), subscriber->committed()});
    return cursors;
  }

  broker::Topic& topic;
  broker::EndpointsListener& listener;

 private:
  std::map<std::uint64_t, broker::Subscriber*> subscribers_;
};

}  // namespace lightq::model
