/// Runs a schedule against its model.
#include "delayed/schedule_world.hpp"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

namespace lightq::test {

using broker::DelayedAction;
using broker::DelayedFilter;
using broker::DelayedQuery;
using broker::DuePosition;
using broker::MoveBatch;
using broker::NumberRange;
using broker::Schedule;

namespace {

constexpr std::uint64_t own_base = std::uint64_t{1} << 63;
constexpr std::uint64_t client_id = 77;

void run_jobs(log::SegmentLog& log, std::int64_t now) {
  while (auto job = log.take_disk_job({now})) {
    job->run();
    job->finish();
  }
}

}  // namespace

ScheduleWorld::ScheduleWorld(std::uint64_t seed, Options options) : random(seed), options_(options) {
  open();
}

ScheduleWorld::~ScheduleWorld() = default;

void ScheduleWorld::fail(const std::string& what) {
  if (wrong_.empty()) wrong_ = what;
}

void ScheduleWorld::open() {
  pool_.emplace(log::SegmentPoolOptions{"/pool"}, storage);
  const auto options = [&](const char* directory) {
    log::SegmentLogOptions made;
    made.directory = directory;
    made.segment_bytes = options_.segment_bytes;
    made.first_segment_bytes = 4096;
    made.flush_interval_ms = 0;
    return made;
  };
  log_ = log::SegmentLog::open(options("/log"), storage, *pool_, {now_}).value_or_throw();
  schedule_log_ = log::SegmentLog::open(options("/log/delayed"), storage, *pool_, {now_}).value_or_throw();
  schedule_ =
      std::make_unique<Schedule>(*schedule_log_, broker::ScheduleLimits{.garbage_bytes = 64 * limits::KiB,
                                                                        .copy_bytes = 8 * limits::KiB,
                                                                        .planned = options_.planned,
                                                                        .mended_at_once = 8});
  schedule_->restore({*log_, schedule_log_->incarnation(), own_base, expected_in_log()}).value_or_throw();
}

std::uint64_t ScheduleWorld::expected_in_log() {
  std::uint64_t expected = 0;
  log::ReadPosition place{log_->first_offset()};
  for (auto read = log_->read(place); read.outcome != log::ReadOutcome::end; read = log_->read(place)) {
    if (read.outcome != log::ReadOutcome::batch) {
      place.offset = read.next;
      continue;
    }
    if (read.batch.producer_id() == schedule_log_->incarnation())
      expected = read.batch.first_sequence() - own_base + read.batch.record_count();
    place.offset = read.batch.end_offset();
  }
  return expected;
}

std::map<std::string, int> ScheduleWorld::payloads_in_log() {
  std::map<std::string, int> found;
  log::ReadPosition place{log_->first_offset()};
  for (auto read = log_->read(place); read.outcome != log::ReadOutcome::end; read = log_->read(place)) {
    if (read.outcome != log::ReadOutcome::batch) {
      place.offset = read.next;
      continue;
    }
    for (auto record = read.batch.records(); !record.done(); record.next())
      ++found[std::string(as_text(record.payload()))];
    place.offset = read.batch.end_offset();
  }
  return found;
}

void ScheduleWorld::publish(std::size_t messages) {
  std::vector<std::int64_t> dues;
  for (std::size_t each = 0; each < messages; ++each) {
    switch (some(6)) {
      case 0: dues.push_back(now_ - static_cast<std::int64_t>(some(1'000'000))); break;  // in the past
      case 1: dues.push_back(0); break;
      case 2: dues.push_back(now_ + 3'600'000'000LL * static_cast<std::int64_t>(1 + some(1000))); break;
      case 3: dues.push_back(now_ + 10'000 * static_cast<std::int64_t>(some(8))); break;  // often the same
      default: dues.push_back(-1 - static_cast<std::int64_t>(some(200'000))); break;
    }
  }
  publish_due(dues);
}

void ScheduleWorld::publish_alike(std::size_t messages) {
  constexpr std::size_t longest_name = 12;
  const std::int64_t due = some(3) == 0 ? now_ + 10'000 * static_cast<std::int64_t>(some(4))
                                        : -1 - static_cast<std::int64_t>(some(60'000));
  std::vector<std::int64_t> dues(messages, due);
  // One in the middle may be due at another time.
  if (some(3) == 0) dues[some(messages)] = -1 - static_cast<std::int64_t>(some(60'000));
  publish_due(dues, longest_name + some(100));
}

void ScheduleWorld::publish_due(const std::vector<std::int64_t>& dues, std::size_t payload_bytes) {
  BatchBuilder builder;
  std::vector<Message> made;
  const bool has_keys = some(4) == 0;
  for (const std::int64_t due : dues) {
    Message message;
    message.payload = "m" + std::to_string(messages_.size() + made.size());
    const std::size_t more =
        payload_bytes == 0 ? some(200) : payload_bytes - std::min(payload_bytes, message.payload.size());
    message.payload.append(more, 'x');
    Attributes attributes;
    if (has_keys) attributes.key = "key";
    attributes.delay = std::chrono::microseconds(due < 0 ? -due : 0);
    attributes.deliver_at = {due > 0 ? due : 0};
    builder.add(as_byte_view(message.payload), attributes,
                AttributeKinds(static_cast<std::uint16_t>(AttributeKinds::dues)));
    message.dues = {{due < 0 ? now_ - due : std::max(due, now_), {}}};  // a past time means now
    made.push_back(std::move(message));
  }
  const auto batch = builder.finish({.producer_id = client_id, .first_sequence = next_sequence_of_producer_});
  const auto appended = schedule_->append(batch, {now_});
  if (appended.outcome != log::AppendOutcome::appended) return;
  next_sequence_of_producer_ += dues.size();
  std::uint64_t number = appended.base.value;
  for (Message& message : made) {
    message.dues.back().end = schedule_log_->next_offset();
    waiting_[number] = messages_.size();
    by_due_.insert({message.dues.back().due, number++});
    messages_.push_back(std::move(message));
  }
}

void ScheduleWorld::pump() {
  schedule_->durable_moved();
  schedule_->log_durable(log_->durable_offset());
  schedule_->log_begins(log_->first_offset());
  static_cast<void>(schedule_->plan({now_}, log_->next_offset()));
  move_due();
}

/// Appends due messages to the log, sometimes not all of it.
void ScheduleWorld::move_due() {
  MoveBatch batch;
  for (int left = 1 + static_cast<int>(some(8)); left > 0; --left) {
    if (!schedule_->take_due(batch, {now_}, 1 + some(4096))) return;
    const auto bytes = batch.finish(schedule_log_->incarnation(), own_base + batch.first_sequence);
    if (BatchView::check_produced(bytes).fault) fail("a batch that leaves is not valid");
    if (log_->append(bytes, {now_}).outcome != log::AppendOutcome::appended) return;
    for (auto record = BatchView::trusted(bytes.data()).records(); !record.done(); record.next()) {
      if (by_due_.empty()) return fail("a message leaves although none waits");
      const auto first = *by_due_.begin();
      Message& message = messages_[waiting_.at(first.second)];
      const std::string payload(as_text(record.payload()));
      if (payload != message.payload)
        return fail(payload.substr(0, 9) + " leaves before " + message.payload.substr(0, 9));
      if (now_ < first.first) return fail("a message leaves early");
      message.is_moved = true;
      ++in_log_;
      waiting_.erase(first.second);
      by_due_.erase(by_due_.begin());
    }
    schedule_->moved(batch, log_->next_offset(), {now_});
  }
}

void ScheduleWorld::note_durable() {
  const Offset durable = schedule_log_->durable_offset();
  for (Message& message : messages_) {
    if (message.is_gone) continue;
    while (message.dues.size() > 1 && message.dues[1].end <= durable)
      message.dues.erase(message.dues.begin());
    message.is_durable |= message.dues.front().end <= durable;
    if (message.cancelled && *message.cancelled <= durable) message.is_gone = true;
  }
}

void ScheduleWorld::sync_schedule() {
  static_cast<void>(schedule_log_->flush());
  note_durable();
  schedule_->durable_moved();
}

void ScheduleWorld::sync_log() {
  static_cast<void>(log_->flush());
  schedule_->log_durable(log_->durable_offset());
}

std::vector<std::uint64_t> ScheduleWorld::some_numbers() {
  std::vector<std::uint64_t> numbers;
  if (some(3) == 0) {  // neighbours: a part of a run, or parts of several
    auto at = waiting_.lower_bound(some(schedule_log_->next_offset().value + 1));
    for (std::size_t left = 1 + some(30); left > 0 && at != waiting_.end(); --left, ++at)
      numbers.push_back(at->first);
    return numbers;
  }
  for (std::size_t left = 1 + some(3); left > 0 && !waiting_.empty(); --left) {
    const auto found = waiting_.lower_bound(some(schedule_log_->next_offset().value + 1));
    if (found != waiting_.end()) numbers.push_back(found->first);
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

void ScheduleWorld::cancel_some() {
  DelayedFilter filter;
  for (const std::uint64_t number : some_numbers()) filter.numbers.push_back({number, number + 1});
  if (filter.numbers.empty()) return;
  const auto piece = DelayedQuery(*schedule_, filter).act(DelayedAction::cancel, {}, {}, {now_});
  if (!piece) return;
  if (piece->done != filter.numbers.size()) return fail("a message that waits cannot be cancelled");
  for (const NumberRange& range : filter.numbers) {
    Message& message = messages_[waiting_.at(range.begin)];
    message.cancelled = schedule_log_->next_offset();
    by_due_.erase({message.dues.back().due, range.begin});
    waiting_.erase(range.begin);
  }
  const auto again = DelayedQuery(*schedule_, filter).act(DelayedAction::cancel, {}, {}, {now_});
  if (!again || again->done != filter.numbers.size()) fail("cancelling again is not the same");
}

void ScheduleWorld::reschedule_some() {
  DelayedFilter filter;
  for (const std::uint64_t number : some_numbers()) filter.numbers.push_back({number, number + 1});
  if (filter.numbers.empty()) return;
  const bool hurries = some(2) == 0;
  const std::int64_t due = hurries ? now_ : now_ + static_cast<std::int64_t>(some(300'000));
  const auto piece = DelayedQuery(*schedule_, filter)
                         .act(hurries ? DelayedAction::hurry : DelayedAction::reschedule, {}, {due}, {now_});
  if (!piece) return;
  if (piece->answers.size() != filter.numbers.size()) return fail("a number has no answer");
  for (const auto& answer : piece->answers) {
    Message& message = messages_[waiting_.at(answer.number)];
    const auto found = schedule_->waiting().find(answer.number);
    if (!found) return fail("a rescheduled message does not wait");
    if (answer.outcome == broker::DelayedOutcome::too_late) continue;
    const std::int64_t before = message.dues.back().due;
    if (hurries && before <= now_) continue;
    if (found->due_us != due) return fail("a rescheduled message has another due time");
    by_due_.erase({before, answer.number});
    by_due_.insert({due, answer.number});
    message.dues.push_back({due, schedule_log_->next_offset()});
  }
}

void ScheduleWorld::list_some() {
  DuePosition from{now_ + static_cast<std::int64_t>(some(200'000)) - 100'000,
                   some(schedule_log_->next_offset().value + 1)};
  if (const auto any = waiting_.lower_bound(from.number); some(2) == 0 && any != waiting_.end())
    from = {messages_[any->second].dues.back().due, any->first};  // often within a run
  const DelayedFilter all;
  const auto list = DelayedQuery(*schedule_, all).list(from, 50);
  auto expected = by_due_.lower_bound({from.due_us, from.number});
  for (const auto& message : list.messages) {
    if (expected == by_due_.end()) return fail("a message is listed that does not wait");
    if (expected->second != message.number || expected->first != message.due.us)
      return fail("a message is listed in the wrong place");
    const std::string& payload = messages_[waiting_.at(message.number)].payload;
    if (as_text(message.payload()) != payload) return fail("another message is listed");
    if (message.bytes != message.message.size()) return fail("a message is listed with a wrong length");
    ++expected;
  }
  if (!list.more && expected != by_due_.end()) fail("a message that waits is not listed");
}

/// Compares the sums of the index with those of the model.
void ScheduleWorld::check_sums() {
  const auto& index = schedule_->waiting();
  std::uint64_t bytes = 0;
  std::size_t messages = 0;
  for (auto walk = index.walk(); walk.get() != nullptr; walk.next(), ++messages)
    bytes += index.find(walk.get()->number)->bytes;
  if (messages != waiting_.size() || index.size() != messages)
    fail("the index has another number of messages");
  if (index.bytes() != bytes) fail("the index has another sum of bytes");
}

void ScheduleWorld::maintain() {
  static_cast<void>(schedule_->maintain({now_}));
  run_jobs(*schedule_log_, now_);
  run_jobs(*log_, now_);
}

void ScheduleWorld::restart(bool power_is_cut) {
  schedule_.reset();
  schedule_log_.reset();
  log_.reset();
  pool_.reset();
  if (power_is_cut) storage.power_cut([this] { return some(2) == 0; });
  open();
  check_restart(power_is_cut);
}

void ScheduleWorld::check_restart(bool power_is_cut) {
  const auto in_log = payloads_in_log();
  std::map<std::string, std::pair<std::uint64_t, std::int64_t>> waits;
  for (auto walk = schedule_->waiting().walk(); walk.get() != nullptr; walk.next()) {
    const auto message = schedule_->waiting().find(walk.get()->number);
    const auto body = schedule_->body_of(*message);
    if (body.outcome != broker::DelayedBody::Outcome::found) return fail("a message cannot be read");
    const std::string payload(as_text(payload_of(body.kinds, body.message)));
    if (!waits.emplace(payload, std::pair(message->number, message->due_us)).second)
      return fail("a message waits twice");
  }
  waiting_.clear();
  by_due_.clear();
  in_log_ = 0;
  for (std::size_t index = 0; index < messages_.size(); ++index) {
    Message& message = messages_[index];
    const auto logged = in_log.find(message.payload);
    const int count = logged == in_log.end() ? 0 : logged->second;
    const auto waiting = waits.find(message.payload);
    const int total = count + (waiting == waits.end() ? 0 : 1);
    const std::string name = message.payload.substr(0, 9);
    if (total > 1) return fail(name + " is there twice");
    if (message.is_gone && total != 0) return fail(name + " was cancelled or lost, and is there again");
    // All writes survive the end of the process, and all synced ones a power cut.
    const bool survives = !power_is_cut || message.is_durable;
    if (!message.is_gone && survives && !message.cancelled && total != 1) return fail(name + " is lost");
    if (!power_is_cut && message.cancelled && total != 0)
      return fail(name + " was cancelled, and is there again");
    if (!power_is_cut && message.is_moved && count != 1)
      return fail(name + " left the log without a power cut");
    in_log_ += static_cast<std::size_t>(count);
    message.is_moved = count == 1;
    if (message.is_gone || (!power_is_cut && message.cancelled)) continue;
    if (total == 0) {
      message.is_gone = true;
      ++lost_;
      continue;
    }
    if (power_is_cut) {
      message.cancelled.reset();
      message.is_durable = true;
    }
    if (waiting == waits.end()) continue;
    const auto [number, due] = waiting->second;
    const bool is_possible =
        power_is_cut
            ? std::ranges::any_of(message.dues, [&](const Change& change) { return change.due == due; })
            : message.dues.back().due == due;
    if (!is_possible) return fail(name + " has a due time that it never had");
    if (power_is_cut) message.dues = {{due, {}}};
    waiting_[number] = index;
    by_due_.insert({due, number});
  }
  if (waits.size() != waiting_.size()) fail("an unknown message waits");
}

void ScheduleWorld::step() {
  switch (some(26)) {
    case 0:
    case 1:
    case 2:
    case 3: publish(1 + some(6)); break;
    case 24: publish_alike(1 + some(40)); break;
    case 25: some(4) == 0 ? check_sums() : list_some(); break;
    case 4: cancel_some(); break;
    case 5: reschedule_some(); break;
    case 6: maintain(); break;
    case 7:
    case 8:
    case 9: sync_schedule(); break;
    case 10: sync_log(); break;
    case 11: step_clock(static_cast<std::int64_t>(some(30'000))); break;
    case 12: step_clock(static_cast<std::int64_t>(some(3'000))); break;
    case 13:
      if (some(20) == 0) step_clock(static_cast<std::int64_t>(some(20'000'000)) - 10'000'000);
      break;
    default: pump(); break;
  }
}

void ScheduleWorld::finish(std::int64_t us) {
  const std::int64_t until = now_ + us;
  for (int left = 1'000'000; left > 0 && wrong_.empty(); --left) {
    pump();
    sync_schedule();
    sync_log();
    pump();
    maintain();
    const bool any = !by_due_.empty() && by_due_.begin()->first <= until;
    if (!any) return sync_log();
    if (now_ < by_due_.begin()->first) now_ = by_due_.begin()->first;
  }
  fail("messages that are due do not leave");
}

}  // namespace lightq::test
