/// The definitions of <lightq/client.hpp>. Layer: client.
#pragma once

#include <lightq/client.hpp>

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/consumer.hpp>
#include <lightq/curve_identity.hpp>
#include <lightq/detail/membership.hpp>
#include <lightq/impl/client_connector.hpp>
#include <lightq/impl/client_state.hpp>
#include <lightq/options.hpp>
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>

namespace lightq::inline v1 {

/// Joins and leaves a topic for one plain producer or consumer.
class Client::Member final : public Membership {
 public:
  Member(std::shared_ptr<ClientState> state, TopicName topic, protocol::JoinType type, Transport transport)
      : state_(std::move(state)), topic_(std::move(topic)), type_(type), transport_(transport) {}
  [[nodiscard]] const std::string& topic() const override { return topic_.text(); }
  Result<EndpointAddress> join() override { return state_->join(topic_, type_, transport_); }
  Result<std::uint64_t> leave(const std::string& bind_uri) override {
    return state_->leave(topic_, bind_uri);
  }

 private:
  std::shared_ptr<ClientState> state_;
  TopicName topic_;
  protocol::JoinType type_;
  Transport transport_;
};

template <typename T>
Result<T> Client::ask_for(const protocol::Request& request) {
  return state()->ask_for<T>(request);
}

template <typename Handle, typename Options>
Result<Handle> Client::open(std::string_view topic, protocol::JoinType type, const Options& options) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  if (Result<void> valid = Handle::check(options); !valid) return valid.error();
  auto member = std::make_unique<Member>(state(), *name, type, options.transport);
  Result<EndpointAddress> address = member->join();
  if (!address) return address.error();
  Result<Handle> handle = Handle::open(state()->context, std::move(member), *address, options);
  if (!handle) return handle;
  const Timeout timeout = state()->options.connect_timeout;
  if (handle->wait_connected(timeout)) return handle;
  if (handle->refused())
    return Error{ErrorCode::unauthorized_access,
                 "joined topic '" + name->text() + "', but its endpoint " + address->uri +
                     " refuses the ticket of the join (the user may have reached connections_per_user)"};
  return Error{ErrorCode::timeout, "joined topic '" + name->text() + "', but its endpoint " + address->uri +
                                       " does not answer within " + std::to_string(timeout.count()) +
                                       " ms (can this host be reached from here? see --advertise)"};
}

template <typename Handle, typename Options>
Result<Handle> Client::open_session(std::string_view topic, protocol::JoinType type, Options options,
                                    std::optional<Transport> transport) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  if (const Result<void> valid = options.check(); !valid) return valid.error();
  // The first join is made here, so that its error is returned at once.
  const ConnectionType over = options.connection;
  TransportChoice choice = state()->choice(transport);
  Result<SessionAddress> first = state()->join_session(*name, type, over, choice);
  if (!first) return first.error();
  auto join = [state = state(), name = *name, type, over, choice,
               known = std::make_shared<std::optional<SessionAddress>>(std::move(*first))]() mutable {
    if (*known) return Result<SessionAddress>(*std::exchange(*known, std::nullopt));
    return state->join_session(name, type, over, choice);
  };
  auto made = Handle::open(std::string(topic), std::move(join), std::move(options));
  if (!made) return made.error();
  if (Result<void> opened = made->wait_open(this->options().connect_timeout); !opened) return opened.error();
  return made;
}

LIGHTQ_INLINE Result<Client> Client::connect(const std::string& uri, ClientOptions options) {
  const ClientConnector connector(std::move(options));
  auto connected = uri.empty() ? connector.find() : connector.connect(uri);
  if (!connected) return connected.error();
  return Client(std::move(*connected));
}

LIGHTQ_INLINE Result<Client> Client::connect(ClientOptions options) {
  return connect("", std::move(options));
}

LIGHTQ_INLINE Result<void> Client::create_topic(std::string_view topic, const TopicSettings& settings) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = !options().admin.user_id.empty();
  return expect_ok(protocol::CreateTopic{state()->manager(), std::move(*name), settings,
                                         as_admin ? options().user : Credentials{}});
}

LIGHTQ_INLINE Result<void> Client::delete_topic(std::string_view topic) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  return expect_ok(protocol::DeleteTopic{state()->manager(), std::move(*name)});
}

LIGHTQ_INLINE Result<void> Client::create_user(std::string_view user_id, std::string_view password,
                                               std::vector<protocol::TopicRight> rights, bool is_admin,
                                               std::optional<std::uint32_t> uid) {
  return expect_ok(protocol::CreateUser{
      state()->manager(), {std::string(user_id), Secret(password)}, is_admin, std::move(rights), uid});
}

LIGHTQ_INLINE Result<void> Client::delete_user(std::string_view user_id) {
  return expect_ok(protocol::DeleteUser{state()->manager(), std::string(user_id)});
}

LIGHTQ_INLINE Result<void> Client::grant(std::string_view user_id, protocol::TopicRight right) {
  return expect_ok(protocol::GrantRights{state()->manager(), std::string(user_id), std::move(right)});
}

LIGHTQ_INLINE Result<void> Client::revoke(std::string_view user_id, protocol::TopicRight right) {
  return expect_ok(protocol::RevokeRights{state()->manager(), std::string(user_id), std::move(right)});
}

LIGHTQ_INLINE Result<void> Client::set_password(std::string_view user_id, std::string_view password) {
  const bool own = options().user.user_id == user_id;
  return expect_ok(protocol::SetPassword{own ? options().user : state()->manager(), !own,
                                         std::string(user_id), std::nullopt, Secret(password)});
}

LIGHTQ_INLINE Result<void> Client::set_topic_password(std::string_view topic, std::string_view password) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = state()->asks_as_admin();
  const Credentials& asker = state()->asker();
  return expect_ok(protocol::SetPassword{asker, as_admin, as_admin ? std::string() : asker.user_id,
                                         std::move(*name), Secret(password)});
}

LIGHTQ_INLINE Result<std::vector<protocol::UserListing>> Client::list_users() {
  auto reply = ask_for<protocol::UserListReply>(protocol::ListUsers{state()->manager()});
  if (!reply) return reply.error();
  return std::move(reply->users);
}

LIGHTQ_INLINE BrokerControl BrokerControl::of(const Client& client) {
  return BrokerControl(client.state());
}

LIGHTQ_INLINE Result<void> Client::delete_group(std::string_view topic, std::string_view group) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = state()->asks_as_admin();
  return expect_ok(protocol::DeleteGroup{state()->asker(), std::move(*name), std::string(group), as_admin});
}

LIGHTQ_INLINE Result<void> Client::set_topic(std::string_view topic, const protocol::TopicChange& change) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = state()->asks_as_admin();
  return expect_ok(protocol::SetTopic{state()->asker(), std::move(*name), change, as_admin});
}

LIGHTQ_INLINE Result<void> Client::pause(std::string_view topic, std::string_view group) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = state()->asks_as_admin();
  return expect_ok(protocol::Pause{state()->asker(), std::move(*name), std::string(group), as_admin});
}

LIGHTQ_INLINE Result<void> Client::resume(std::string_view topic, std::string_view group) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = state()->asks_as_admin();
  return expect_ok(protocol::Resume{state()->asker(), std::move(*name), std::string(group), as_admin});
}

LIGHTQ_INLINE Result<std::uint64_t> Client::purge(std::string_view topic, std::string_view group,
                                                  bool delayed) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = state()->asks_as_admin();
  auto reply = ask_for<protocol::OkReply>(
      protocol::Purge{state()->asker(), std::move(*name), std::string(group), as_admin, delayed});
  if (!reply) return reply.error();
  return reply->messages.value_or(0);
}

LIGHTQ_INLINE Result<GroupControl> Client::group(std::string_view topic, std::string_view group) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  return GroupControl(state(), std::move(*name), std::string(group));
}

LIGHTQ_INLINE Result<DelayedControl> Client::delayed(std::string_view topic) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  return DelayedControl(state(), std::move(*name));
}

LIGHTQ_INLINE Result<ScheduleControl> ScheduleControl::of(const Client& client, std::string_view topic) {
  if (topic.empty()) return ScheduleControl(client.state(), std::nullopt);
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  return ScheduleControl(client.state(), std::move(*name));
}

LIGHTQ_INLINE Result<TopicStats> Client::stats(std::string_view topic, std::uint64_t members_max) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  const bool as_admin = state()->asks_as_admin();
  return ask_for<TopicStats>(protocol::Stats{state()->asker(), std::move(*name), as_admin, members_max});
}

LIGHTQ_INLINE Result<BrokerStats> Client::stats() {
  return ask_for<BrokerStats>(protocol::Stats{state()->manager(), std::nullopt, true});
}

namespace detail {

/// Asks for one page after the other, and collects their topics.
template <typename Reply, typename Asked>
auto topics_of_pages(ClientState& state, Asked asked) -> Result<decltype(Reply::topics)> {
  decltype(Reply::topics) topics;
  while (true) {
    auto page = state.template ask_for<Reply>(asked);
    if (!page) return page.error();
    topics.insert(topics.end(), std::make_move_iterator(page->topics.begin()),
                  std::make_move_iterator(page->topics.end()));
    if (page->continue_after.empty()) return topics;
    Result<TopicName> last = topic_name_of(page->continue_after);
    if (!last) return last.error();
    // Without this check, a faulty broker could keep the client busy for ever.
    if (asked.after && last->text() <= asked.after->text())
      return Error{ErrorCode::internal, "a page of the broker's reply continues at an earlier topic"};
    asked.after = std::move(*last);
  }
}

}  // namespace detail

LIGHTQ_INLINE Result<std::vector<TopicListing>> Client::list_topics(ListedGroups groups) {
  if (groups == ListedGroups::none) {
    auto reply = ask_for<protocol::ListReply>(protocol::ListTopics{state()->manager()});
    if (!reply) return reply.error();
    return std::move(reply->topics);
  }
  return detail::topics_of_pages<protocol::ListReply>(*state(),
                                                      protocol::ListTopics{state()->manager(), true});
}

LIGHTQ_INLINE Result<std::vector<TopicStats>> Client::stats_of_all() {
  return detail::topics_of_pages<protocol::StatsAllReply>(
      *state(), protocol::StatsAll{state()->manager(), {}, limits::stats_page_topics_max});
}

LIGHTQ_INLINE Result<void> Client::ping() {
  return expect_ok(protocol::Ping{});
}

LIGHTQ_INLINE Result<std::string> Client::version() {
  auto reply = ask_for<protocol::VersionReply>(protocol::Version{});
  if (!reply) return reply.error();
  return std::move(reply->version);
}

LIGHTQ_INLINE Result<Producer> Client::producer(std::string_view topic, ProducerOptions options,
                                                std::optional<Transport> transport) {
  return open_session<Producer>(topic, protocol::JoinType::push, std::move(options), transport);
}

LIGHTQ_INLINE Result<Consumer> Client::consumer(std::string_view topic, ConsumerOptions options,
                                                std::optional<Transport> transport) {
  const bool shared = options.mode == ConsumeMode::group;
  return open_session<Consumer>(topic, shared ? protocol::JoinType::pull : protocol::JoinType::sub,
                                std::move(options), transport);
}

LIGHTQ_INLINE Result<Reader> Client::reader(std::string_view topic, ReaderOptions options,
                                            std::optional<Transport> transport) {
  return open_session<Reader>(topic, protocol::JoinType::sub, std::move(options), transport);
}

LIGHTQ_INLINE Result<PlainProducer> Client::plain_producer(std::string_view topic,
                                                           const PlainProducerOptions& options) {
  return open<PlainProducer>(topic, protocol::JoinType::push, options);
}

LIGHTQ_INLINE Result<PlainConsumer> Client::plain_consumer(std::string_view topic,
                                                           const PlainConsumerOptions& options) {
  const bool pull = options.mode == Mode::pull;
  return open<PlainConsumer>(topic, pull ? protocol::JoinType::pull : protocol::JoinType::sub, options);
}

LIGHTQ_INLINE Result<EndpointAddress> Client::join(std::string_view topic, protocol::JoinType type,
                                                   Transport transport) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  return state()->join(*name, type, transport);
}

LIGHTQ_INLINE Result<std::uint64_t> Client::leave(std::string_view topic, const std::string& bind_uri) {
  Result<TopicName> name = detail::topic_name_of(topic);
  if (!name) return name.error();
  return state()->leave(*name, bind_uri);
}

LIGHTQ_INLINE const std::string& Client::uri() const {
  return state()->connection.uri();
}

LIGHTQ_INLINE const ClientOptions& Client::options() const {
  return state()->options;
}

LIGHTQ_INLINE bool Client::exposed() const {
  return state()->exposed;
}

LIGHTQ_INLINE Client::Client(std::shared_ptr<ClientState> state) : state_(std::move(state)) {}

LIGHTQ_INLINE const std::shared_ptr<ClientState>& Client::state() const {
  if (state_ != nullptr) return state_;
  static const auto moved =
      std::make_shared<ClientState>(nullptr, std::string(), ClientOptions(), ClientIdentities(), false);
  return moved;
}

LIGHTQ_INLINE Result<void> Client::expect_ok(const protocol::Request& request) {
  const auto reply = state()->ask_for<protocol::OkReply>(request);
  if (!reply) return reply.error();
  return {};
}

}  // namespace lightq::inline v1
