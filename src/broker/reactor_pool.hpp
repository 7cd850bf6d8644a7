/// The data plane: topics spread over reactors, asked from the control thread. Layer: broker.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "broker/control/data_plane.hpp"
#include "broker/endpoint/endpoint_shares.hpp"
#include "broker/endpoint/reactor.hpp"
#include "broker/session/session_server.hpp"

namespace lightq::broker {

/// One of so many parts of the file descriptors that the process may have, less those that are reserved.
std::size_t part_of_descriptors(std::size_t parts);

/// Made, started and stopped on the composition root's thread; the DataPlane calls on the control thread.
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
    std::size_t shared_bytes_total = limits::shared_bytes_total_default;  ///< of all reactors
    std::size_t endpoints_max = 0;    ///< of all topics together; 0: half of the descriptors
    const TlsContext* tls = nullptr;  ///< of sessions over TCP; null: they go in clear. Outlives the pool
  };

  /// `tickets` outlives it. `control`: where answers and the observer's calls are posted. It must run until
  /// `stop` has returned.
  ReactorPool(Settings settings, StorageRoom& storage, const TicketKey& tickets, EventLoop& control,
              LogSink& sink);
  ~ReactorPool() override;

  /// Before `start`: who is told of endpoints that close or move.
  void set_observer(DataPlaneObserver& observer) { observer_ = &observer; }
  /// Before `start`: ports that rested when the broker last stopped.
  PortBook& ports() { return ports_; }
  /// Before `start`: an endpoint that will be opened again keeps its id and its port.
  void expect(const EndpointRecord& endpoint);
  void start();
  /// A clean stop of every reactor; returns when all have stopped, soon after `deadline` at the latest unless
  /// a disk hangs. Not on the control thread.
  void stop(std::chrono::steady_clock::time_point deadline);

  void add_topic(const TopicDefinition& definition, const std::vector<EndpointRecord>& endpoints,
                 Done<Result<void>> done) override;
  void remove_topic(TopicId topic, Done<Result<void>> done) override;
  void join(TopicId topic, const JoinWish& wish, Done<Result<JoinedEndpoint>> done) override;
  void leave(TopicId topic, const std::string& bind_uri, const Leaver& by,
             Done<Result<std::uint64_t>> done) override;
  void delete_group(TopicId topic, const std::string& group, Done<Result<void>> done) override;
  void set_paused(TopicId topic, const std::string& group, bool paused, Done<Result<void>> done) override;
  void purge(TopicId topic, const std::string& group, Done<Result<std::uint64_t>> done) override;
  void put_user(const UserAccess& user, Done<Result<void>> done) override;
  void remove_user(std::uint64_t id, Done<Result<void>> done) override;
  void set_owner(TopicId topic, std::uint64_t holder, Done<Result<void>> done) override;
  void topic_stats(TopicId topic, Done<Result<protocol::TopicStats>> done) override;
  void broker_stats(Done<Result<protocol::BrokerStats>> done) override;

 private:
  std::size_t index_of(TopicId topic) const { return topic.value % reactors_.size(); }
  Reactor& reactor_of(TopicId topic) { return *reactors_[index_of(topic)]; }
  void join_session(TopicId topic, const JoinWish& wish, const Done<Result<JoinedEndpoint>>& done);
  void change_user(std::uint64_t user, std::function<bool(AccessTable&)> change,
                   const Done<Result<void>>& done);
  template <typename T>
  void answer(const Done<Result<T>>& done, Result<T> result);
  template <typename T, typename Ask>
  void ask(TopicId topic, Done<Result<T>> done, Ask ask);
  template <typename T, typename Begin>
  void begin(TopicId topic, Done<Result<T>> done, Begin begin);
  EndpointEvents events();
  void tell_log_of(const HostedTopic& topic);

  EndpointShares shares_;
  const Settings settings_;
  MemoryBudget shared_memory_;  // with sessions' clients
  EventLoop& control_;
  DataPlaneObserver* observer_ = nullptr;
  const WallClock now_;
  std::atomic<std::uint64_t> next_endpoint_id_;
  PortBook ports_;
  DiskThread disk_;
  std::atomic<bool> stopped_ = false;
  std::vector<std::unique_ptr<Reactor>> reactors_;
  std::vector<std::unique_ptr<SessionServer>> sessions_;  // one a reactor, on its thread; gone before it
};

}  // namespace lightq::broker
