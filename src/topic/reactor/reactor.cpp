/// Opens, ticks, stops and removes the topics of one reactor. Layer: topic.
#include "topic/reactor/reactor.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <utility>

#include <lightq/protocol/stats_fields.hpp>

#include "topic/dead/group_letters.hpp"

namespace lightq::broker {

namespace {
constexpr auto tick_interval = std::chrono::milliseconds(100);
constexpr auto stop_check_interval = std::chrono::milliseconds(10);
}  // namespace

Reactor::Reactor(const ReactorSettings& settings, MakeEndpoints make_endpoints, TopicOpener& opener,
                 DiskThread& disk, PortBook& ports, LogSink& sink, const TicketKey& tickets,
                 const WallClock& now, std::atomic<std::uint64_t>& next_endpoint_id, EndpointEvents events)
    : context_{loop_,
               disk,
               ports,
               sink,
               tickets,
               settings.endpoints,
               now,
               next_endpoint_id,
               std::move(events),
               {},
               {}},
      settings_(settings),
      make_endpoints_(std::move(make_endpoints)),
      opener_(opener),
      letters_({.loop = loop_,
                .sink = sink,
                .find_topic = [this](TopicId id) { return find(id); },
                .waiting_groups = groups_with_letters,
                .source_of = letters_of_group}),
      stats_walk_(loop_,
                  [this](TopicId id) -> std::optional<protocol::TopicStats> {
                    TopicRuntime* const topic = find(id);
                    if (topic == nullptr) return std::nullopt;
                    return topic->stats();
                  }),
      history_(
          &loop_,
          [this](TopicId id) -> std::optional<TopicFlow> {
            const TopicRuntime* const topic = find(id);
            return topic == nullptr ? std::nullopt : std::optional(topic->flow());
          },
          settings.history_topics_max) {
  context_.scratch.resize(256 * limits::KiB);
  context_.access.set_admin_generation(settings.endpoints.admin_generation);
  context_.make_room = [this](const EndpointShares::Place& lost) {
    if (TopicRuntime* const runtime = find(lost.topic)) runtime->endpoints().make_room(lost);
  };
}

Reactor::~Reactor() {
  join();
  letters_.stop();
}

void Reactor::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { loop_.run(stop); });
}

void Reactor::join() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

Result<void> Reactor::add_topic(const TopicDefinition& definition,
                                const std::vector<EndpointRecord>& endpoints) {
  auto found = opener_.open(definition, settings_.storage, context_.now(), context_.sink);
  if (!found) return found.error();
  auto store = found->take_store(context_.disk, loop_);
  auto topic = std::make_unique<TopicRuntime>(context_, *this, make_endpoints_, definition, std::move(store),
                                              std::move(*found));
  TopicRuntime& runtime = *topic;
  topics_[definition.id.value] = std::move(topic);
  if (!groups_with_letters(runtime).empty()) letters_.wake(definition.id);
  recurring_.begin(runtime);
  if (runtime.letter_book().run() != 0) letters_.returns().resume(definition.id);
  for (const auto& record : endpoints) {
    if (auto opened = runtime.reopen(record); !opened) {
      context_.sink.error("topic " + definition.name.text() + ": cannot reopen an endpoint, " +
                          "retrying until it works: " + opened.error().text());
    }
  }
  return {};
}

TopicRuntime* Reactor::find(TopicId id) {
  const auto found = topics_.find(id.value);
  return found == topics_.end() ? nullptr : found->second.get();
}

void Reactor::end_unpermitted() {
  for (auto& [id, topic] : topics_) topic->endpoints().end_unpermitted();
}

void Reactor::remove_topic(TopicId id, std::function<void(Result<void>)> done) {
  context_.access.forget_topic(id);
  const auto found = topics_.find(id.value);
  if (found == topics_.end()) return remove_files_of(id, std::move(done));
  std::unique_ptr<TopicRuntime> topic = std::move(found->second);
  topics_.erase(found);
  letters_.forget(id);
  recurring_.forget(id);
  history_.forget(id);
  topic->begin_stop(ClientError::topic_deleted);
  topic->endpoints().close_all(true);
  topic->pass_store_to([this, done = std::move(done)](std::unique_ptr<TopicStore> store) mutable {
    --removals_out_;
    submit_removal(std::make_unique<StoreRemovalJob>(std::move(store)), std::move(done));
  });
  bury_when_idle(std::move(topic), [this] { ++removals_out_; });
}

void Reactor::remove_files_of(TopicId id, std::function<void(Result<void>)> done) {
  submit_removal(std::make_unique<DirectoryRemovalJob>(topic_directory(settings_.storage, id)),
                 std::move(done));
}

/// Removes files on the disk's thread, because a topic may have thousands. Calls `done` on the reactor's
/// thread.
void Reactor::submit_removal(std::unique_ptr<RemovalJob> job, std::function<void(Result<void>)> done) {
  ++removals_out_;
  context_.disk.submit(std::move(job), [this, done = std::move(done)](std::unique_ptr<log::DiskJob> ran) {
    const auto& removal = static_cast<const RemovalJob&>(*ran);
    loop_.post_answer([this, done, result = removal.result()] {
      --removals_out_;
      done(result);
    });
  });
}

/// Calls `last` and destroys the topic at the end of a turn, once none of its disk jobs is running.
void Reactor::bury_when_idle(std::unique_ptr<TopicRuntime> topic, std::function<void()> last) {
  std::erase(ticking_, topic.get());
  TopicRuntime* const key = topic.get();
  dying_.emplace(key, std::move(topic));
  auto bury = [this, key, last = std::move(last)] {
    last();
    const auto found = dying_.find(key);
    std::erase(ticking_, key);
    loop_.destroy_later(std::move(found->second));
    dying_.erase(found);
  };
  if (key->idle_on_disk()) return bury();
  key->when_idle_on_disk(std::move(bury));
}

void Reactor::totals(std::function<void(Result<protocol::BrokerStats>)> done) {
  std::vector<TopicId> topics;
  topics.reserve(topics_.size());
  for (const auto& [id, topic] : topics_) topics.push_back({id});
  const auto sum = std::make_shared<protocol::BrokerStats>();
  const auto visit = [sum](const std::optional<protocol::TopicStats>& stats) {
    if (stats) add(*sum, *stats);
    return true;
  };
  const auto sum_up = [this, sum, done = std::move(done)](const Result<void>& walked) {
    if (!walked) return done(walked.error());
    sum->refused_connections = context_.refused_connections;
    sum->evicted_connections = context_.handshakes.evicted();
    done(std::move(*sum));
  };
  stats_walk_.begin(std::move(topics), visit, sum_up);
}

void Reactor::stats_of(TopicsAsked asked, std::function<void(Result<TopicsStats>)> done) {
  struct Answer {
    TopicsStats counted;
    std::size_t entries = 0;
  };
  const auto answer = std::make_shared<Answer>();
  const auto visit = [answer, most = asked.entries_max](std::optional<protocol::TopicStats> stats) {
    if (stats) answer->entries += entries_of(*stats);
    answer->counted.topics.push_back(std::move(stats));
    return answer->entries < most;
  };
  stats_walk_.begin(
      std::move(asked.topics), visit, [this, answer, done = std::move(done)](const Result<void>& walked) {
        if (!walked) return done(walked.error());
        answer->counted.connections = {context_.refused_connections, context_.handshakes.evicted()};
        done(std::move(answer->counted));
      });
}

void Reactor::tick_wanted(TopicRuntime& topic) {
  ticking_.push_back(&topic);
  history_.moved(topic.definition().id, EventLoop::Clock::now());
  arm_tick();
}

void Reactor::arm_tick() {
  if (std::exchange(tick_armed_, true)) return;
  loop_.at(EventLoop::Clock::now() + tick_interval, [this] { tick_all(); });
}

void Reactor::tick_all() {
  tick_armed_ = false;
  // The list is taken first, because a tick may ask for the next one immediately.
  const auto topics = std::exchange(ticking_, {});
  const auto now = EventLoop::Clock::now();
  for (TopicRuntime* const topic : topics) {
    history_.moved(topic->definition().id, now);
    if (topic->tick()) ticking_.push_back(topic);
  }
  if (!ticking_.empty()) arm_tick();
}

void Reactor::begin_stop(EventLoop::Clock::time_point deadline, std::function<void()> done) {
  stats_walk_.stop();
  history_.stop();
  letters_.stop();
  recurring_.stop();
  for (auto& [id, topic] : topics_) topic->begin_stop(ClientError::shutting_down);
  try_stop(deadline, done);
}

void Reactor::try_stop(EventLoop::Clock::time_point deadline, const std::function<void()>& done) {
  const bool all_sent =
      std::all_of(topics_.begin(), topics_.end(), [](const auto& entry) { return entry.second->all_sent(); });
  const bool idle = dying_.empty() && removals_out_ == 0 &&
                    std::all_of(topics_.begin(), topics_.end(),
                                [](const auto& entry) { return entry.second->idle_on_disk(); });
  const auto now = EventLoop::Clock::now();
  // Waits for disk jobs even past the deadline: destroying a topic under its running job would be worse.
  if (idle && (all_sent || now >= deadline)) return finish_stop(done);
  loop_.at(now + stop_check_interval, [this, deadline, done] { try_stop(deadline, done); });
}

void Reactor::finish_stop(const std::function<void()>& done) {
  for (auto& [id, topic] : topics_) {
    topic->flush_for_stop();
    topic->endpoints().close_all(false);
  }
  ticking_.clear();
  for (auto& [id, topic] : topics_) loop_.destroy_later(std::move(topic));
  topics_.clear();
  done();
}

}  // namespace lightq::broker
