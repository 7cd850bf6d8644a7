/// Runs two topics as a reactor does.
#include "model/broker_under_test.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "topic/dead/group_letters.hpp"

namespace lightq::model {

using namespace broker;
using test::FaultyStorage;

namespace {
constexpr milliseconds tick_interval{100};
constexpr int steps_max = 12;   // with ticks, of a time that passes
constexpr int quiet_turns = 3;  // after so many turns without an event nothing happens without time
constexpr int rounds_max = 20'000;
constexpr std::chrono::microseconds clock_at_start = std::chrono::hours(1000);
}  // namespace

void BrokerUnderTest::Turns::run(int turns) {
  left_ = turns;
  stop_ = {};
  loop_.call_soon(*this);
  loop_.run(stop_.get_token());
}

void BrokerUnderTest::Turns::on_ready() {
  if (--left_ > 0) return loop_.call_soon(*this);
  stop_.request_stop();
}

Offset BrokerUnderTest::DropWatch::before_drop(OffsetRange range, Reason reason) {
  if (broker != nullptr && broker->dropping) broker->dropping();
  return asked == nullptr ? range.end : asked->before_drop(range, reason);
}

BrokerUnderTest::BrokerUnderTest(Catalogue catalogue)
    : catalogue_(std::move(catalogue)),
      context_{loop_, disk_, ports_, sink_, tickets_, settings_, wall_clock_, next_id_, {}, {}, {}} {
  test::SimulatedClock::us = clock_at_start.count();
  storage.on_call = [this](FaultyStorage::Call call, const std::string&) {
    const bool changes = call != FaultyStorage::Call::read && call != FaultyStorage::Call::map;
    if (changes && !is_dead_ && ++calls_ == end_at_) is_dead_ = true;
    return FaultyStorage::Fault{is_dead_ ? EIO : 0};
  };
  start();
}

BrokerUnderTest::~BrokerUnderTest() {
  drop(false);
  loop_.cancel_soon(turns_);
}

void BrokerUnderTest::end_before(std::uint64_t call) {
  calls_ = 0;
  end_at_ = call;
}

Result<void> BrokerUnderTest::open(Hosted& hosted, const protocol::TopicSettings& settings) {
  TopicDefinition definition{hosted.id, *TopicName::parse(hosted.name), settings};
  if (hosted.id == orders_id) {
    definition.paused = catalogue_.is_paused;
    definition.groups = catalogue_.groups;
    definition.schedules = catalogue_.schedules;
  }
  const StorageSettings storage_settings{.topics_directory = "/topics",
                                         .flush_interval_ms = flush_interval_ms};
  auto opened = opener_->open(definition, storage_settings, wall(), sink_);
  if (!opened) return opened.error();
  auto store = opened->take_store(disk_, loop_);
  hosted.store = store.get();
  const auto make_plain = [this](ReactorContext&, Topic& topic, PlainProducerHost&,
                                 EndpointsListener& listener) {
    auto made = std::make_unique<PlainEndpoints>(topic, listener);
    plain_ = made.get();
    return made;
  };
  const MakeEndpoints make = hosted.id == orders_id ? MakeEndpoints(make_plain) : make_endpoint_set;
  hosted.runtime = std::make_unique<TopicRuntime>(context_, *this, make, definition, std::move(store),
                                                  std::move(opened).value_or_throw());
  hosted.at = hosted.runtime.get();
  if (hosted.id == orders_id) {
    drops_.asked = hosted.store->carried() == nullptr ? nullptr : &plain_->topic.carry_over();
    hosted.store->guard_drops(&drops_);
  }
  return {};
}

void BrokerUnderTest::start() {
  pool_.emplace(log::SegmentPoolOptions{"/pool"}, storage);
  opener_.emplace(storage, *pool_);
  office_ = std::make_unique<LetterOffice>(LetterOffice::Parts{.loop = loop_,
                                                               .sink = sink_,
                                                               .find_topic =
                                                                   [this](TopicId id) {
                                                                     return id == orders_id    ? orders_.at
                                                                            : id == letters_id ? letters_.at
                                                                                               : nullptr;
                                                                   },
                                                               .waiting_groups = groups_with_letters,
                                                               .source_of = letters_of_group});
  office_->connect(*this);
  recurring_ = std::make_unique<RecurringOffice>(context_);
  orders_.ticks = letters_.ticks = true;
  open(letters_, catalogue_.letters).value_or_throw();
  open(orders_, catalogue_.orders).value_or_throw();
  orders_.ticks = letters_.ticks = true;
  if (!groups_with_letters(orders()).empty()) office_->wake(orders_id);
  recurring_->begin(orders());
  for (const std::uint64_t endpoint : catalogue_.subscribers) {
    const EndpointRecord record{.id = endpoint, .topic = orders_id, .role = EndpointRole::sub};
    orders().reopen(record).value_or_throw();
  }
  if (letters().letter_book().run() != 0) office_->returns().resume(letters_id);
  drops_.broker = this;
}

void BrokerUnderTest::drop(bool cleanly) {
  drops_.broker = nullptr;
  office_->stop();
  recurring_->stop();
  for (Hosted* const each : {&orders_, &letters_}) each->runtime->begin_stop(ClientError::shutting_down);
  while (!is_idle()) run_turns(1);
  for (Hosted* const each : {&orders_, &letters_}) {
    if (cleanly) each->runtime->flush_for_stop();
  }
  office_.reset();
  recurring_.reset();
  post_.clear();
  for (Hosted* const each : {&orders_, &letters_}) {
    each->at = nullptr;
    each->runtime.reset();
    each->store = nullptr;
  }
  turns_.run(1);
  opener_.reset();
  pool_.reset();
}

void BrokerUnderTest::stay_down(milliseconds time) {
  test::SimulatedClock::us += std::chrono::microseconds(time).count();
  wall_us_ += std::chrono::microseconds(time).count();
}

void BrokerUnderTest::restart(milliseconds down) {
  end_before(0);
  drop(true);
  stay_down(down);
  start();
}

void BrokerUnderTest::crash(bool cut, const std::function<bool()>& keeps, milliseconds down) {
  is_dead_ = true;
  drop(false);
  if (cut) storage.power_cut(keeps);
  end_before(0);
  is_dead_ = false;
  stay_down(down);
  start();
}

/// Runs turns of the loop, and then the jobs of the disk.
void BrokerUnderTest::run_turns(int turns) {
  turns_.run(turns);
  while (test::run_waiting_job(disk_)) {
  }
}

bool BrokerUnderTest::is_idle() const {
  return orders_.runtime->idle_on_disk() && letters_.runtime->idle_on_disk();
}

void BrokerUnderTest::settle() {
  for (int round = 0; round < rounds_max; ++round) {
    const std::size_t told = journal_.size();
    const std::uint64_t posted = loop_.posted();
    run_turns(quiet_turns);
    if (turned) turned();
    const bool had_post = !post_.empty();
    for (std::size_t left = post_.size(); left > 0; --left) {
      const Task task = std::move(post_.front());
      post_.pop_front();
      task(*office_);
    }
    if (!had_post && is_idle() && journal_.size() == told && loop_.posted() == posted) break;
  }
  if (settled) settled();
}

void BrokerUnderTest::tick(Hosted& hosted) {
  if (!std::exchange(hosted.ticks, false)) return;
  hosted.ticks = hosted.runtime->tick() || hosted.ticks;
}

void BrokerUnderTest::pass(milliseconds time) {
  for (int step = 0; time.count() > 0; ++step) {
    const milliseconds now = step < steps_max ? std::min(time, tick_interval) : time;
    time -= now;
    test::SimulatedClock::us += std::chrono::microseconds(now).count();
    wall_us_ += std::chrono::microseconds(now).count();
    ticked_ms_ += std::min(now, tick_interval).count();
    context_.wall_timers.clock_was_set();
    tick(orders_);
    tick(letters_);
    settle();
  }
}

/// A little time passes too: the loop reads the wall clock once in each call, and tells calls apart by their
/// times.
void BrokerUnderTest::step_wall(std::chrono::microseconds by) {
  wall_us_ += by.count();
  pass(milliseconds(10));
}

}  // namespace lightq::model
