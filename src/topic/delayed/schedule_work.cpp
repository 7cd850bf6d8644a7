/// Connects the parts of a schedule, and runs its store. Layer: topic.
#include "topic/delayed/schedule_work.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/random.hpp>

#include "log/elapsed.hpp"
#include "store/durable_store.hpp"

namespace lightq::broker {

namespace {

std::unique_ptr<DurableProducers> producers_in_memory() {
  constexpr std::int64_t day_us = 24LL * 3600 * 1'000'000;
  return std::make_unique<DurableProducers>(
      DurableProducers::Kept::in_memory,
      ProducerTable(producer_file_entries_max, limits::producer_idle_days_max * day_us));
}

}  // namespace

Schedule ScheduleWork::schedule_over(TopicStore* store) {
  return store == nullptr ? Schedule() : Schedule(*store);
}

ScheduleWork::ScheduleWork(const ScheduleOwner& owner, std::unique_ptr<TopicStore> store,
                           std::unique_ptr<DurableProducers> known, std::uint64_t incarnation)
    : owner_(owner),
      store_(std::move(store)),
      known_(std::move(known)),
      schedule_(schedule_over(store_.get())),
      producers_(*known_, owner_.context.now),
      parts_{owner_, schedule_, store_.get(), *known_, producers_, incarnation},
      mover_(parts_),
      publishing_(parts_, mover_) {
  mover_.call_first([this] { save(owner_.activity.now()); });
  if (store_ == nullptr) return;
  reports_ = std::make_unique<TopicReports>(owner_.context.sink, owner_.topic, *store_,
                                            owner_.context.settings.message_bytes_max);
  saves_ = std::make_unique<ProducerSaves>(
      ProducerSaves::Parts{*store_, *known_, producers_, owner_.activity, *reports_});
  store_->report_to(*this);
  saves_->hurry();
}

Result<std::unique_ptr<ScheduleWork>> ScheduleWork::open(const ScheduleOwner& owner,
                                                         std::unique_ptr<FoundSchedule> found,
                                                         const DurableProducers& known_of_topic) {
  std::unique_ptr<ScheduleWork> work;
  if (found == nullptr) {
    work.reset(new ScheduleWork(owner, nullptr, producers_in_memory(), random_number<std::uint64_t>() | 1));
  } else {
    const std::uint64_t incarnation = found->segments->incarnation();
    StateFiles files{found->directory.string(), std::move(found->cursor_file),
                     std::move(*found->producer_file).take_slots()};
    auto store = std::make_unique<FileStore>(std::move(found->segments), std::move(files), owner.context.disk,
                                             owner.context.loop);
    work.reset(new ScheduleWork(owner, std::move(store), std::move(found->producers), incarnation));
    const KnownProducer* const mover = known_of_topic.find(incarnation);
    const std::uint64_t expected = mover == nullptr ? 0 : mover->expected;
    const Schedule::TopicLog topic{owner.store, incarnation, own_sequences_begin,
                                   expected < own_sequences_begin ? 0 : expected - own_sequences_begin};
    if (auto restored = work->schedule_.restore(topic); !restored) {
      // Its messages keep a share of the topic's capacity, as far as its files tell.
      DelayedRoom(owner.topic).set_bytes(ScheduleLimits().least_charge(work->store_->stored_bytes()));
      return restored.error();
    }
    work->parts_.count_bytes();
  }
  work->mover_.open();
  owner.activity.want_dispatch();
  owner.activity.want_ticks();
  return work;
}

ScheduleWork::~ScheduleWork() {
  mover_.stop();
}

void ScheduleWork::changed() {
  parts_.count_bytes();
  mover_.wake();
  owner_.activity.want_ticks();
}

void ScheduleWork::answer_when_durable(std::uint64_t messages, const Answered& answered) {
  if (owner_.activity.is_stopping())
    return answered(Error{ErrorCode::shutting_down, "the broker is stopping"});
  if (store_ == nullptr || store_->next_offset() <= store_->durable_offset()) return answered(messages);
  waiting_.push_back({store_->next_offset(), messages, answered});
  parts_.start_flush();
  owner_.activity.want_ticks();
}

/// Answers the commands that are durable now.
void ScheduleWork::answer_durable() {
  if (store_ == nullptr || waiting_.empty()) return;
  const Error* const fault = store_->sync_fault();
  std::vector<Waiting> ready;
  std::erase_if(waiting_, [&](Waiting& each) {
    if (fault == nullptr && store_->durable_offset() < each.end) return false;
    ready.push_back(std::move(each));
    return true;
  });
  for (const Waiting& each : ready) {
    if (each.end <= store_->durable_offset()) {
      each.answered(each.messages);
    } else {
      each.answered(*fault);
    }
  }
}

DelayedStats ScheduleWork::stats() const {
  DelayedStats stats = schedule_.stats();
  stats.waiting_by = mover_.waiting_by();
  return stats;
}

/// Called when the topic may have space, or more of its log is durable.
void ScheduleWork::log_moved() {
  if (schedule_.awaits_log() && owner_.store.is_durable())
    schedule_.log_durable(owner_.store.durable_offset());
  if (publishing_.has_held()) publishing_.resume();
}

/// Saves and admits producers, and starts work on the disk that is due.
void ScheduleWork::save(Timestamp now) {
  if (owner_.activity.is_stopping()) return;
  if (store_ == nullptr) return producers_.admit_settled();
  saves_->hurry();
  static_cast<void>(saves_->admit());
  saves_->save(now);
  if (const auto end = known_->wants_flush(LogEnds::of(*store_))) store_->request_flush(*end);
  if (publishing_.take_wanted_flush())
    store_->request_flush(store_->next_offset());  // of an admitted producer
  store_->start_work(now);
}

bool ScheduleWork::tick(Timestamp now) {
  log_moved();
  bool more = false;
  if (store_ != nullptr) {
    store_->maintain(now);
    more = schedule_.maintain(now);
    if (schedule_.wants_flush()) store_->request_flush(store_->next_offset());
  }
  save(now);
  answer_durable();
  constexpr std::int64_t report_interval_us = 5'000'000;
  const std::uint64_t corrupt = schedule_.stats().corrupt;
  if (damaged_ < corrupt && log::has_passed(damage_reported_, report_interval_us, now)) {
    owner_.context.sink.error("topic " + owner_.topic.definition().name.text() + ": " +
                              std::to_string(corrupt - damaged_) +
                              " delayed messages cannot be read and were skipped");
    damaged_ = corrupt;
    damage_reported_ = now;
  }
  return more || publishing_.has_held() || !waiting_.empty() || schedule_.awaits_log() ||
         damaged_ < corrupt || known_->wants_save() || (store_ != nullptr && store_->wants_work());
}

void ScheduleWork::on_durable() {
  if (owner_.activity.is_stopping()) return;
  schedule_.durable_moved();
  producers_.durable_moved();
  answer_durable();
  mover_.wake();
  save(owner_.activity.now());
}

void ScheduleWork::on_saved(StoredState what, const Result<void>& result) {
  if (what == StoredState::producers) saves_->saved(result);
  if (!owner_.activity.is_stopping()) save(owner_.activity.now());
}

void ScheduleWork::begin_stop(ClientError why, const char* sentence) {
  mover_.stop();
  const Error error{why == ClientError::topic_deleted ? ErrorCode::topic_not_found : ErrorCode::shutting_down,
                    sentence};
  for (const Waiting& each : std::exchange(waiting_, {})) each.answered(error);
  producers_.end(why, sentence);
}

void ScheduleWork::flush_for_stop() {
  if (store_ == nullptr) return;
  if (schedule_.awaits_log() && owner_.store.is_durable())
    schedule_.log_durable(owner_.store.durable_offset());
  schedule_.maintain(owner_.activity.now());
  auto flushed = store_->flush();
  saves_->save_for_stop();
  if (flushed) flushed = store_->close();
  if (!flushed) reports_->not_flushed(flushed.error());
}

}  // namespace lightq::broker
