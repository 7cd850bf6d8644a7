/// A broker's process on a simulated disk.
#include "explorer/delivery/broker_life.hpp"

#include <stdexcept>
#include <stop_token>
#include <utility>

#include "delivery/consumer_group_harness.hpp"
#include "explorer/delivery/simulated_threads.hpp"
#include "plain/endpoint_set.hpp"
#include "topic/dead/group_letters.hpp"

namespace lightq::test {

using broker::ClientError;
using broker::LetterOffice;
using broker::TopicDefinition;
using broker::TopicRuntime;

namespace {
constexpr std::int64_t flush_ms = 100;
constexpr int turns_to_stop_max = 10'000;
}  // namespace

Result<std::unique_ptr<TopicRuntime>> BrokerLife::open(const TopicDefinition& definition, Reactor& reactor) {
  const broker::StorageSettings settings{.topics_directory = "/topics", .flush_interval_ms = flush_ms};
  auto opened = opener_->open(definition, settings, wall(), sink_);
  if (!opened) return opened.error();
  auto store = opened->take_store(reactor.disk, loop_);
  return std::make_unique<TopicRuntime>(reactor.context, reactor.ticker, broker::make_endpoint_set,
                                        definition, std::move(store), std::move(opened).value_or_throw());
}

Result<void> BrokerLife::start(ExplorerStorage& storage, const TopicMix& mix, Timestamp now) {
  wall_us_ = now.us;
  source_reactor_.ticker = {};
  letters_reactor_.ticker = {};
  pool_.emplace(log::SegmentPoolOptions{"/pool"}, storage);
  opener_.emplace(storage, *pool_);
  if (mix.letters) {
    protocol::TopicSettings settings{.broker_type = protocol::BrokerType::file,
                                     .segment_bytes = mix.source.segment_bytes};
    auto opened = open({letters_id, *TopicName::parse("letters"), settings}, letters_reactor_);
    if (!opened) return opened.error();
    letters = std::move(*opened);
  }
  TopicDefinition definition{source_id, *TopicName::parse("source"), mix.source};
  protocol::GroupSettings group;
  group.max_attempts = mix.attempts_max;
  if (mix.letters) group.dead_letter_topic = "letters";
  definition.groups.emplace(group_name, broker::GroupSetup(group, mix.letters ? letters_id : TopicId{}));
  auto opened = open(definition, source_reactor_);
  if (!opened) {
    const Error error = opened.error();
    stop();
    return error;
  }
  source = std::move(*opened);
  if (!mix.letters) return {};
  office = std::make_unique<LetterOffice>(LetterOffice::Parts{
      .loop = loop_,
      .sink = sink_,
      .find_topic = [this](TopicId id) { return id == source_id ? source.get() : letters.get(); },
      .waiting_groups = broker::groups_with_letters,
      .source_of = broker::letters_of_group});
  office->connect(*this);
  source_reactor_.ticker.office = letters_reactor_.ticker.office = office.get();
  if (!broker::groups_with_letters(*source).empty()) office->wake(source_id);
  if (letters->letter_book().run() != 0) office->returns().resume(letters_id);
  return {};
}

void BrokerLife::stop() {
  source_reactor_.ticker.office = letters_reactor_.ticker.office = nullptr;
  if (source != nullptr) leave();
  office.reset();
  post_.clear();
  for (auto* topic : {&source, &letters}) {
    if (*topic == nullptr) continue;
    (*topic)->begin_stop(ClientError::shutting_down);
    int turns = 0;
    while (!(*topic)->idle_on_disk()) {
      if (++turns > turns_to_stop_max) throw std::logic_error("a topic does not stop");
      run_job();
      run_loop();
    }
    topic->reset();
  }
  opener_.reset();
  pool_.reset();
}

bool BrokerLife::run_job(bool letters_first) {
  const Reactor& first = letters_first ? letters_reactor_ : source_reactor_;
  const Reactor& second = letters_first ? source_reactor_ : letters_reactor_;
  return run_waiting_job(first.disk) || run_waiting_job(second.disk);
}

void BrokerLife::run_loop() {
  std::stop_source stop;
  loop_.at(broker::EventLoop::Clock::now(), [&] { stop.request_stop(); });
  loop_.run(stop.get_token());
}

// The clock of calls is read once for each time of the steady clock.
void BrokerLife::call(const std::function<void()>& task) {
  ++SimulatedClock::us;
  loop_.at(broker::EventLoop::Clock::now(), task);
  run_loop();
}

void BrokerLife::tick(TopicRuntime* topic, Ticker& ticker) {
  if (topic != nullptr && std::exchange(ticker.wanted, false)) ticker.wanted = topic->tick() || ticker.wanted;
}

void BrokerLife::turn(std::int64_t us) {
  SimulatedClock::us += us;
  wall_us_ += us;
  run_loop();
  tick(source.get(), source_reactor_.ticker);
  tick(letters.get(), letters_reactor_.ticker);
  if (post_.empty()) return;
  const Task task = std::move(post_.front());
  post_.pop_front();
  task(*office);
}

void BrokerLife::step_clock(std::int64_t us) {
  SimulatedClock::us += us > 0 ? us : 0;
  wall_us_ += us;
  for (Reactor* const reactor : {&source_reactor_, &letters_reactor_})
    reactor->context.wall_timers.clock_was_set();
}

bool BrokerLife::join() {
  if (consumer != nullptr) return true;
  consumer = std::make_unique<FakeConsumer>();
  if (source->open_consumer(asked(group_name), *consumer).code == ClientError::none) return true;
  consumer.reset();
  return false;
}

void BrokerLife::leave() {
  if (consumer != nullptr) source->detach_consumer(*consumer);
  consumer.reset();
}

std::optional<TopicId> BrokerLife::find(const std::string& name) const {
  if (name == "source") return source_id;
  return name == "letters" && letters != nullptr ? std::optional(letters_id) : std::nullopt;
}

std::optional<std::string> BrokerLife::name_of(TopicId id) const {
  return id == source_id ? "source" : "letters";
}

}  // namespace lightq::test
