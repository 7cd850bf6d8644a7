/// The data plane: topics spread over reactors, controlled from the control thread. Layer: broker.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "admission/endpoint_shares.hpp"
#include "broker/dead_work.hpp"
#include "broker/letter_router.hpp"
#include "control/commands/data_plane.hpp"
#include "session/session_server.hpp"
#include "topic/reactor/reactor.hpp"

namespace lightq::broker {

/// The errors of requests that reach no topic.
namespace pool_errors {
inline Error unknown_topic() {
  return {ErrorCode::topic_not_found, "topic not found"};
}
inline Error too_busy() {
  return {ErrorCode::busy, "the broker has too many requests under way; try again"};
}
inline Error stopping() {
  return {ErrorCode::shutting_down, "the broker is stopping"};
}
}  // namespace pool_errors

/// Returns 1/`parts` of the file descriptors that the process may open, excluding the reserved ones.
std::size_t part_of_descriptors(std::size_t parts);

/// Returns the place of the reactor that runs the topic, of `reactors` ones.
inline std::size_t reactor_index(TopicId topic, std::size_t reactors) {
  return topic.value % reactors;
}

/// Owns the reactors. Thread: created, started and stopped on the composition root's thread; DataPlane's
/// functions are called on the control thread.
class ReactorPool final : public DataPlane {
 public:
  struct Settings {
    std::size_t reactors = 1;
    ReactorSettings reactor;
    std::string bind_host;  ///< a numeric address
    std::optional<PortBook::Range> ports;
    std::chrono::milliseconds port_rest{600'000};
    std::chrono::milliseconds session_heartbeat{10'000};
    std::uint32_t session_channels_max = limits::session_channels_max;
    ReadLimits session_reads;
    std::size_t shared_bytes_total = limits::shared_bytes_total_default;  ///< for all reactors
    std::size_t endpoints_max = 0;  ///< for all topics together; 0: half of the descriptors
    /// For sessions over TCP; null: they are not encrypted. Lifetime: outlives the pool.
    const TlsContext* tls = nullptr;
  };

  /// `control`: the loop to which answers and the observer's calls are posted. Lifetime: `tickets` outlives
  /// the pool, and `control` must run until `stop` has returned.
  ReactorPool(Settings settings, TopicOpener& opener, const TicketKey& tickets, EventLoop& control,
              LogSink& sink);
  ~ReactorPool() override;

  /// Sets the object that is notified of endpoints that close or move. Requires: `start` was not called.
  void set_observer(DataPlaneObserver& observer) { observer_ = &observer; }
  /// Returns the port book, to add ports that were released before the last stop. Requires: `start` was not
  /// called.
  PortBook& ports() { return ports_; }
  /// Reserves the id and the port of an endpoint that will be opened again. Requires: `start` was not called.
  void expect(const EndpointRecord& endpoint);
  void start();
  /// Stops every reactor cleanly. Returns when all have stopped: soon after `deadline` at the latest, unless
  /// a disk hangs. Thread: not the control thread.
  void stop(std::chrono::steady_clock::time_point deadline);

  void expect_topics(const std::vector<std::pair<TopicId, std::string>>& topics) override;
  void add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints,
                 Done<void> done) override;
  void remove_topic(TopicId topic, Done<void> done) override;
  void join(TopicId topic, const JoinWish& wish, Done<JoinedEndpoint> done) override;
  void leave(TopicId topic, const std::string& bind_uri, const Leaver& by, Done<std::uint64_t> done) override;
  void delete_group(TopicId topic, const std::string& group, Done<void> done) override;
  void change_topic(TopicId topic, const protocol::TopicChange& change, Done<void> done) override;
  void seek_group(TopicId topic, const std::string& group, const protocol::GroupPlace& to, bool preview,
                  Done<protocol::GroupMove> done) override;
  void set_paused(TopicId topic, const std::string& group, bool paused, Done<void> done) override;
  void purge(TopicId topic, const std::string& group, Done<std::uint64_t> done) override;
  void set_group(TopicId topic, const std::string& group, const GroupSetup& setup, Done<void> done) override;
  void list_dead(TopicId topic, const std::string& group, const DeadListWish& wish,
                 Done<protocol::DeadPage> done) override;
  void trace(TopicId topic, Offset offset, Done<WorkedTrace> done) override;
  void act_on_dead(TopicId topic, const std::string& group, const DeadWish& wish,
                   Done<protocol::DeadCount> done) override;
  void act_on_letters(TopicId topic, const DeadWish& wish, std::function<bool(std::string_view topic)> may,
                      Done<protocol::DeadCount> done) override;
  void list_delayed(TopicId topic, const DelayedListWish& wish, Done<protocol::DelayedPage> done) override;
  void act_on_delayed(TopicId topic, const DelayedWish& wish, Done<protocol::DelayedCount> done) override;
  void put_schedule(TopicId topic, const std::string& name, const RecurringSchedule& schedule,
                    Done<void> done) override;
  void remove_schedule(TopicId topic, const std::string& name, Done<void> done) override;
  void schedule_states(TopicId topic, Done<std::vector<ScheduleState>> done) override;
  void put_user(const UserAccess& user, Done<void> done) override;
  void remove_user(std::uint64_t id, Done<void> done) override;
  void set_owner(TopicId topic, std::uint64_t holder, Done<void> done) override;
  void topic_stats(TopicId topic, std::uint64_t members_max, Done<protocol::TopicStats> done) override;
  void stats_of(TopicsAsked asked, Done<TopicsStats> done) override;
  void broker_stats(Done<protocol::BrokerStats> done) override;

  /// Returns the parts of each reactor that other threads may use. Thread: any.
  [[nodiscard]] std::vector<ReactorContext*> contexts() const;
  /// Calls `call` on the thread of the topic's reactor, with the reactor's place in contexts(). Returns false
  /// if the reactor has too many tasks, or has stopped. Thread: any.
  [[nodiscard]] bool post_to(TopicId topic, std::function<void(std::size_t index, Reactor& reactor)> call);

 private:
  Reactor& reactor_of(TopicId topic) { return *reactors_[reactor_index(topic, reactors_.size())]; }
  void change_user(std::uint64_t user, std::function<bool(AccessTable&)> change, const Done<void>& done);
  template <typename T>
  void answer(const Done<T>& done, Result<T> result);
  template <typename T, typename Ask>
  void ask(TopicId topic, Done<T> done, Ask ask);
  template <typename T, typename Begin>
  void begin(TopicId topic, Done<T> done, Begin begin);

  EndpointShares shares_;
  const Settings settings_;
  MemoryBudget shared_memory_;  // shared with sessions' clients
  EventLoop& control_;
  DataPlaneObserver* observer_ = nullptr;
  const WallClock now_;
  std::atomic<std::uint64_t> next_endpoint_id_;
  PortBook ports_;
  DiskThread disk_;
  std::atomic<bool> stopped_ = false;
  LetterRouter letters_{[this](TopicId topic) -> Reactor& { return reactor_of(topic); }};
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::vector<std::unique_ptr<SessionServer>> sessions_;  // one per reactor, on its thread; destroyed first
};

template <typename T>
void ReactorPool::answer(const Done<T>& done, Result<T> result) {
  control_.post_answer([done, result = std::move(result)] { done(result); });
}

/// Runs `begin(topic runtime, reply)` on the topic's reactor. The result that it passes to `reply`, once,
/// goes to `done` on the control thread.
template <typename T, typename Begin>
void ReactorPool::begin(TopicId topic, Done<T> done, Begin begin) {
  if (stopped_) return answer<T>(done, pool_errors::stopping());
  Reactor& reactor = reactor_of(topic);
  const bool posted = reactor.loop().post([this, &reactor, topic, done, begin = std::move(begin)] {
    TopicRuntime* const runtime = reactor.find(topic);
    if (runtime == nullptr) return answer<T>(done, pool_errors::unknown_topic());
    begin(*runtime, [this, done](Result<T> result) { answer<T>(done, std::move(result)); });
  });
  if (posted) return;
  count(settings_.reactor.endpoints.limits_reached, Limit::mailbox_entries_max);
  answer<T>(done, pool_errors::too_busy());
}

/// Runs `ask(topic runtime)` on the topic's reactor, and passes the returned result to `done` on the control
/// thread.
template <typename T, typename Ask>
void ReactorPool::ask(TopicId topic, Done<T> done, Ask ask) {
  begin<T>(topic, std::move(done),
           [ask = std::move(ask)](TopicRuntime& runtime, const auto& reply) { reply(ask(runtime)); });
}

}  // namespace lightq::broker
