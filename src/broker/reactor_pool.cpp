/// Starts and stops the reactors, and passes the control thread's calls to the reactor of a topic or to all.
/// Layer: broker.
#include "broker/reactor_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include <lightq/protocol/stats_fields.hpp>

#include "broker/stats_parts.hpp"
#include "broker/wall_clock.hpp"
#include "net/socket.hpp"
#include "plain/endpoint_set.hpp"

namespace lightq::broker {

namespace {

using namespace pool_errors;

// With fewer ports, users probably count on every one. Session listeners then take their ports at the first
// session join.
constexpr std::size_t ports_for_listeners_min = 16;  // for each thread
constexpr std::size_t ports_of_listeners = 2;        // for each thread

bool opens_listeners(const ReactorPool::Settings& settings) {
  return PortBook::count_of(settings.ports) >= ports_for_listeners_min * settings.reactors;
}

constexpr std::size_t parts_with_endpoints = 2;  // of the descriptors; the rest is for connections and files

/// Returns the limits of endpoints. Endpoints take at most half of the ports that the system also gives to
/// clients.
EndpointShares::Bounds bounds_of(const ReactorPool::Settings& settings) {
  const std::size_t ports = PortBook::count_of(settings.ports);
  const std::size_t listeners = opens_listeners(settings) ? ports_of_listeners * settings.reactors : 0;
  return {.endpoints = settings.endpoints_max == 0 ? part_of_descriptors(parts_with_endpoints)
                                                   : settings.endpoints_max,
          .ports = settings.ports ? ports - listeners : ports / 2};
}

ReactorPool::Settings with_shares(ReactorPool::Settings settings, EndpointShares& shares) {
  settings.reactor.endpoints.endpoint_shares = &shares;
  return settings;
}

/// The descriptors of a shared-memory session besides its socket: they wake its two sides.
constexpr std::size_t descriptors_of_shared = 2;

}  // namespace

std::size_t part_of_descriptors(std::size_t parts) {
  const std::uint64_t limit =
      std::max<std::uint64_t>(raise_descriptor_limit(), 2 * limits::descriptors_reserved);
  return static_cast<std::size_t>((limit - limits::descriptors_reserved) / parts);
}

ReactorPool::ReactorPool(Settings settings, TopicOpener& opener, const TicketKey& tickets, EventLoop& control,
                         LogSink& sink)
    : shares_(bounds_of(settings), settings.reactor.endpoints.limits_reached),
      settings_(with_shares(std::move(settings), shares_)),
      shared_memory_(settings_.shared_bytes_total, part_of_descriptors(8 * descriptors_of_shared)),
      control_(control),
      now_(wall_clock_now),
      // Ids that start at the current time stay unique across restarts without a stored counter.
      next_endpoint_id_(static_cast<std::uint64_t>(wall_clock_now().us)),
      ports_(settings_.bind_host, settings_.ports, settings_.port_rest) {
  ports_.count_in(settings_.reactor.endpoints.limits_reached);
  const EndpointEvents events{.closed =
                                  [this](const EndpointRecord& record) {
                                    control_.post_answer([this, record] {
                                      if (observer_ != nullptr) observer_->endpoint_closed(record);
                                    });
                                  },
                              .changed =
                                  [this](const EndpointRecord& record) {
                                    control_.post_answer([this, record] {
                                      if (observer_ != nullptr) observer_->endpoint_changed(record);
                                    });
                                  }};
  for (std::size_t i = 0; i < settings_.reactors; ++i) {
    reactors_.push_back(std::make_unique<Reactor>(settings_.reactor, make_endpoint_set, opener, disk_, ports_,
                                                  sink, tickets, now_, next_endpoint_id_, events));
    Reactor& reactor = *reactors_.back();
    reactor.letters().connect(letters_);
    sessions_.push_back(std::make_unique<SessionServer>(
        reactor.context(), [&reactor](TopicId topic) { return reactor.find(topic); },
        SessionSettings{.broker = next_endpoint_id_,
                        .heartbeat_ms = static_cast<std::uint32_t>(settings_.session_heartbeat.count()),
                        .channels_max = settings_.session_channels_max,
                        .reads = settings_.session_reads,
                        .memory = &shared_memory_,
                        .tls = settings_.tls},
        "sessions" + std::to_string(i)));
  }
}

ReactorPool::~ReactorPool() {
  for (auto& reactor : reactors_) reactor->join();
}

void ReactorPool::expect(const EndpointRecord& endpoint) {
  if (next_endpoint_id_ <= endpoint.id) next_endpoint_id_ = endpoint.id + 1;  // the clock has been set back
  ports_.reserve(endpoint.port);
}

void ReactorPool::start() {
  for (std::size_t i = 0; i < reactors_.size(); ++i) {
    reactors_[i]->start();
    if (!opens_listeners(settings_)) continue;
    reactors_[i]->loop().post_answer([sessions = sessions_[i].get()] { sessions->open_doors(); });
  }
}

void ReactorPool::stop(std::chrono::steady_clock::time_point deadline) {
  if (stopped_.exchange(true)) return;
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t running = reactors_.size();
  for (std::size_t i = 0; i < reactors_.size(); ++i) {
    reactors_[i]->loop().post_answer([&, reactor = reactors_[i].get(), sessions = sessions_[i].get()] {
      sessions->begin_stop();
      reactor->begin_stop(deadline, [&] {
        // Notify under the lock: the waiter may destroy both as soon as it has seen the last one.
        const std::lock_guard lock(mutex);
        --running;
        changed.notify_one();
      });
    });
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return running == 0; });
  lock.unlock();
  for (auto& reactor : reactors_) reactor->join();
}

void ReactorPool::expect_topics(const std::vector<std::pair<TopicId, std::string>>& topics) {
  for (const auto& [id, name] : topics) letters_.add(name, id);
}

void ReactorPool::add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints,
                            Done<void> done) {
  if (stopped_) return answer<void>(done, pool_errors::stopping());
  letters_.add(definition.name.text(), definition.id);
  Reactor& reactor = reactor_of(definition.id);
  reactor.loop().post_answer([this, &reactor, definition, endpoints, done = std::move(done)] {
    const auto added = reactor.add_topic(definition, endpoints);
    if (added && definition.settings.encrypt_at_rest && definition.log_id == 0) {
      const auto log = log::log_id_of(reactor.find(definition.id)->incarnation());
      control_.post_answer([this, id = definition.id, log] {
        if (observer_ != nullptr) observer_->log_found(id, log);
      });
    }
    answer<void>(done, added);
  });
}

void ReactorPool::remove_topic(TopicId topic, Done<void> done) {
  if (stopped_) return answer<void>(done, pool_errors::stopping());
  letters_.remove(topic);
  Reactor& reactor = reactor_of(topic);
  reactor.loop().post_answer([this, &reactor, topic, done = std::move(done)] {
    reactor.remove_topic(topic, [this, done](Result<void> result) { answer<void>(done, std::move(result)); });
  });
}

namespace {
/// Joins a topic by sessions. Returns where they connect. Errors: those of SessionServer::join. Thread: the
/// topic's reactor.
Result<JoinedEndpoint> joined_session(SessionServer& sessions, TopicId topic, const JoinWish& wish) {
  const EndpointRole role = role_of(wish.type);
  const bool over_zmq = wish.connection_type == protocol::ConnectionType::zmq;
  auto joined = sessions.join({topic, role}, wish.transport,
                              over_zmq ? SessionCarrier::zmtp : SessionCarrier::stream, wish.holder);
  if (!joined) return joined.error();
  EndpointRecord record;
  record.topic = topic;
  record.role = role;
  record.transport = wish.transport;
  record.connection_type = wish.connection_type;
  return JoinedEndpoint{record, joined->bind_uri, false, joined->ticket, joined->tls};
}
}  // namespace

void ReactorPool::join(TopicId topic, const JoinWish& wish, Done<JoinedEndpoint> done) {
  SessionServer& sessions = *sessions_[reactor_index(topic, reactors_.size())];
  ask<JoinedEndpoint>(
      topic, std::move(done), [&sessions, topic, wish](TopicRuntime& runtime) -> Result<JoinedEndpoint> {
        if (wish.delivery == protocol::Delivery::session) return joined_session(sessions, topic, wish);
        auto opened = runtime.endpoints().join(wish.type, wish.transport, wish.connection_type, wish.holder);
        if (!opened) return opened.error();
        return JoinedEndpoint{opened->record, opened->bind_uri, opened->is_new, std::move(opened->ticket)};
      });
}

void ReactorPool::leave(TopicId topic, const std::string& bind_uri, const Leaver& by,
                        Done<std::uint64_t> done) {
  ask<std::uint64_t>(topic, std::move(done), [bind_uri, by](TopicRuntime& runtime) {
    return runtime.endpoints().leave(bind_uri, by);
  });
}

namespace {
/// Returns a callback that passes a result to `reply` without its number.
template <typename Reply>
TopicCommands::Answered without_number(const Reply& reply) {
  return [reply](const Result<std::uint64_t>& saved) {
    Result<void> result;
    if (!saved) result = saved.error();
    reply(std::move(result));
  };
}
}  // namespace

void ReactorPool::delete_group(TopicId topic, const std::string& group, Done<void> done) {
  begin<void>(topic, std::move(done), [group](TopicRuntime& runtime, const auto& reply) {
    runtime.commands().delete_group(group, without_number(reply));
  });
}

void ReactorPool::set_paused(TopicId topic, const std::string& group, bool paused, Done<void> done) {
  begin<void>(topic, std::move(done), [group, paused](TopicRuntime& runtime, const auto& reply) {
    const auto answered = without_number(reply);
    if (!group.empty()) return runtime.commands().set_group_paused(group, paused, answered);
    runtime.commands().set_paused(paused);
    answered(std::uint64_t{0});
  });
}

void ReactorPool::change_topic(TopicId topic, const protocol::TopicChange& change, Done<void> done) {
  ask<void>(topic, std::move(done), [=](auto& found) { return found.commands().change(change); });
}

void ReactorPool::seek_group(TopicId topic, const std::string& group, const protocol::GroupPlace& to,
                             bool preview, Done<protocol::GroupMove> done) {
  begin<protocol::GroupMove>(topic, std::move(done), [=](TopicRuntime& runtime, const auto& reply) {
    const auto move = runtime.commands().group_move(group, to);
    if (!move || preview) return reply(move);
    runtime.commands().seek_group(group, {move->offset},
                                  [reply, effect = *move](const Result<std::uint64_t>& saved) {
                                    saved ? reply(effect) : reply(saved.error());
                                  });
  });
}

void ReactorPool::purge(TopicId topic, const std::string& group, Done<std::uint64_t> done) {
  begin<std::uint64_t>(topic, std::move(done), [group](TopicRuntime& runtime, const auto& reply) {
    TopicCommands& commands = runtime.commands();
    group.empty() ? commands.purge(reply) : commands.purge_group(group, reply);
  });
}

void ReactorPool::set_group(TopicId topic, const std::string& group, const GroupSetup& setup,
                            Done<void> done) {
  begin<void>(topic, std::move(done), [group, setup](TopicRuntime& runtime, const auto& reply) {
    runtime.commands().set_group_settings(group, setup, without_number(reply));
  });
}

void ReactorPool::put_schedule(TopicId topic, const std::string& name, const RecurringSchedule& schedule,
                               Done<void> done) {
  ask<void>(topic, std::move(done), [this, name, schedule](TopicRuntime& runtime) -> Result<void> {
    reactor_of(runtime.definition().id).recurring().put(runtime, name, schedule);
    return {};
  });
}

void ReactorPool::remove_schedule(TopicId topic, const std::string& name, Done<void> done) {
  ask<void>(topic, std::move(done), [this, name](TopicRuntime& runtime) -> Result<void> {
    const TopicId id = runtime.definition().id;
    reactor_of(id).recurring().remove(id, name);
    return {};
  });
}

void ReactorPool::schedule_states(TopicId topic, Done<std::vector<ScheduleState>> done) {
  ask<std::vector<ScheduleState>>(topic, std::move(done), [this](TopicRuntime& runtime) {
    const TopicId id = runtime.definition().id;
    return Result(reactor_of(id).recurring().states(id));
  });
}

/// Makes the change on every reactor, closes connections that it no longer permits, then calls `done`.
/// `change` returns true if there may be such connections.
void ReactorPool::change_user(std::uint64_t user, std::function<bool(AccessTable&)> change,
                              const Done<void>& done) {
  if (stopped_) return answer<void>(done, pool_errors::stopping());
  auto missing = std::make_shared<std::atomic<std::size_t>>(reactors_.size());
  for (std::size_t i = 0; i < reactors_.size(); ++i) {
    Reactor& reactor = *reactors_[i];
    reactor.loop().post_answer([this, &reactor, &sessions = *sessions_[i], user, change, missing, done] {
      if (change(reactor.context().access)) {
        reactor.end_unpermitted();
        sessions.look_at_rights_of(user);
      }
      if (--*missing == 0) answer<void>(done, {});
    });
  }
}

void ReactorPool::put_user(const UserAccess& user, Done<void> done) {
  change_user(user.id, [user](AccessTable& access) { return access.put_user(user); }, done);
}

void ReactorPool::remove_user(std::uint64_t id, Done<void> done) {
  change_user(id, [id](AccessTable& access) { return access.remove_user(id); }, done);
}

void ReactorPool::set_owner(TopicId topic, std::uint64_t holder, Done<void> done) {
  if (stopped_) return answer<void>(done, pool_errors::stopping());
  Reactor& reactor = reactor_of(topic);
  reactor.loop().post_answer([this, &reactor, topic, holder, done = std::move(done)] {
    reactor.context().access.set_owner(topic, holder);
    if (TopicRuntime* const runtime = reactor.find(topic)) {
      runtime->endpoints().end_unpermitted();
      sessions_[reactor_index(topic, reactors_.size())]->look_at_rights_on(topic);
    }
    answer<void>(done, {});
  });
}

void ReactorPool::topic_stats(TopicId topic, std::uint64_t members_max, Done<protocol::TopicStats> done) {
  ask<protocol::TopicStats>(topic, std::move(done), [members_max](TopicRuntime& runtime) {
    return Result<protocol::TopicStats>(runtime.stats(members_max));
  });
}

/// The messages are not bounded, because the number of requests bounds them.
void ReactorPool::stats_of(TopicsAsked asked, Done<TopicsStats> done) {
  if (stopped_) return answer<TopicsStats>(done, pool_errors::stopping());
  const auto parts = std::make_shared<StatsParts>(std::move(asked), reactors_.size(), [this](TopicId topic) {
    return reactor_index(topic, reactors_.size());
  });
  if (parts->complete()) return answer<TopicsStats>(done, parts->joined());
  for (std::size_t i = 0; i < reactors_.size(); ++i) {
    if (!parts->asks(i)) continue;
    TopicsAsked part = parts->take_part(i);
    Reactor& reactor = *reactors_[i];
    reactor.loop().post_answer([this, &reactor, i, parts, done, part = std::move(part)]() mutable {
      reactor.stats_of(std::move(part), [this, i, parts, done](Result<TopicsStats> counted) {
        control_.post_answer([i, parts, done, counted = std::move(counted)]() mutable {
          parts->put(i, std::move(counted));  // only the control thread joins
          if (parts->complete()) done(parts->joined());
        });
      });
    });
  }
}

std::vector<ReactorContext*> ReactorPool::contexts() const {
  std::vector<ReactorContext*> contexts;
  for (const auto& reactor : reactors_) contexts.push_back(&reactor->context());
  return contexts;
}

bool ReactorPool::post_to(TopicId topic, std::function<void(std::size_t index, Reactor& reactor)> call) {
  if (stopped_) return false;
  const std::size_t index = reactor_index(topic, reactors_.size());
  Reactor& reactor = *reactors_[index];
  if (reactor.loop().post([&reactor, index, call = std::move(call)] { call(index, reactor); })) return true;
  count(settings_.reactor.endpoints.limits_reached, Limit::mailbox_entries_max);
  return false;
}

void ReactorPool::broker_stats(Done<protocol::BrokerStats> done) {
  struct Sum {
    protocol::BrokerStats stats;
    std::size_t missing = 0;
    std::optional<Error> failed;
  };
  if (stopped_) return answer<protocol::BrokerStats>(done, pool_errors::stopping());
  auto sum = std::make_shared<Sum>();
  sum->missing = reactors_.size();
  for (auto& owned : reactors_) {
    Reactor& reactor = *owned;
    reactor.loop().post_answer([this, &reactor, sum, done] {
      reactor.totals([this, sum, done](Result<protocol::BrokerStats> part) {
        control_.post_answer([part = std::move(part), sum, done] {  // only the control thread adds up
          if (part) {
            add(sum->stats, *part);
          } else {
            sum->failed = part.error();
          }
          if (--sum->missing > 0) return;
          if (sum->failed) return done(*sum->failed);
          done(sum->stats);
        });
      });
    });
  }
}

}  // namespace lightq::broker
