/// The steps that give letters back. Layer: topic.
#include "topic/dead/letter_returns.hpp"

#include <algorithm>

#include <lightq/base/random.hpp>

#include "topic/dead/letter_office.hpp"

namespace lightq::broker {

namespace {

constexpr auto soon = std::chrono::milliseconds(20);  // to read again, or ask again
constexpr int attempts_max = 100;
constexpr int failures_of_wish_max = 3;
constexpr std::size_t gone_max = 1000;
// A start adds topics one after the other. So a run that it has found waits for about a minute before its
// source topic counts as deleted.
constexpr int failures_of_start = 7;

DeadFilter letters_in(const log::OffsetSet& run) {
  DeadFilter filter;
  run.for_each([&](const OffsetRange& range) { filter.ranges.push_back(range); });
  return filter;
}

}  // namespace

/// Returns a function that makes the call if this object exists and was not ended.
template <typename Call>
auto LetterReturns::if_alive(Call call) {
  return [weak = weak_from_this(), call](const auto&... arguments) {
    const auto self = weak.lock();
    if (self != nullptr && self->step_ != Step::ended) call(*self, arguments...);
  };
}

void LetterReturns::add(Wish wish) {
  if (wishes_.size() >= wishes_max)
    return wish.done(Error{ErrorCode::busy, "too many commands on the topic give letters back"});
  wishes_.push_back(std::move(wish));
  if (step_ == Step::idle) read_next();
}

void LetterReturns::end(const Error& why) {
  step_ = Step::ended;
  parts_.loop.cancel(timer_);
  for (const Wish& wish : std::exchange(wishes_, {}))
    if (wish.done) wish.done(why);
}

void LetterReturns::work() {
  if (step_ != Step::idle) return;
  if (is_chosen_) return send();
  if (book().run() != 0 && !is_recovering_) {
    is_recovering_ = true;
    from_ = Offset{0};
  }
  if (is_recovering_ || !wishes_.empty()) read();
}

/// Chooses letters for a run, a piece in each turn.
void LetterReturns::read() {
  if (chosen_.empty() && from_) run_from_ = *from_;
  book().forget_before(parts_.topic.store().first_offset());
  if (is_recovering_ && book().run() == 0) return end_run();
  // A run that a start has found is sent whole. Its letters are in other pieces now, which make no bound.
  const bool has_room = chosen_.size() < run_letters_max && chosen_bytes_ < run_bytes_max;
  if (from_ && (has_room || is_recovering_)) {
    const DeadFilter filter = is_recovering_ ? letters_in(book().under_way()) : wishes_.front().filter;
    const std::size_t most =
        is_recovering_ ? run_letters_max : run_letters_max - static_cast<std::size_t>(chosen_.size());
    LetterPiece piece = scan_letters(parts_.topic, filter, {*from_, most, true});
    for (FoundLetter& found : piece.letters) take(found);
    from_ = piece.next;
    if (piece.is_pending && !piece.is_reading && ++pending_reads_ >= attempts_max) {
      pending_reads_ = 0;
      if (!is_recovering_) {
        clear_choice();
        end_wish(Error{ErrorCode::io_error, "letters cannot be read now"});
      }
      return rest("letters cannot be read");
    }
    if (!piece.is_pending) pending_reads_ = 0;
    if (from_) return piece.is_pending ? work_at(EventLoop::Clock::now() + soon) : read_next();
  }
  begin_run();
}

/// Takes a letter into the run, or counts why it stays.
void LetterReturns::take(FoundLetter& found) {
  const OffsetRange range{found.offset, found.offset + 1};
  Address address{found.death.topic, found.death.group};
  if (!is_recovering_) {
    if (passed_.contains(found.offset) || found.is_under_way) return;
    std::uint64_t* stays = nullptr;
    if (!wishes_.front().may(found.death.topic))
      stays = &counts_.not_allowed;
    else if (!parts_.post.find(found.death.topic))
      stays = &counts_.topic_gone;
    else if (gone_.contains(address))
      stays = &counts_.group_gone;
    else if (!found.original || book().is_full())
      stays = &counts_.failed;
    if (stays != nullptr) {
      ++*stays;
      return passed_.add(range);
    }
  }
  if (!found.original) return;
  auto& parcel = parcels_[std::move(address)];
  if (parcel.letters == nullptr) {
    parcel.letters = std::make_shared<ReturnParcel>();
    parcel.letters->letters = parts_.topic.definition().id;
    parcel.letters->group = found.death.group;
  }
  chosen_.add(range);
  chosen_bytes_ += found.original->message_bytes();
  parcel.letters->returned.push_back(
      {found.offset, found.death.incarnation, found.death.offset, std::move(*found.original)});
}

/// Leaves out letters that a command has given up since they were chosen.
void LetterReturns::leave_out_settled() {
  const log::OffsetSet& settled = book().settled();
  for (auto& [address, parcel] : parcels_) {
    std::erase_if(parcel.letters->returned, [&](const ReturnedLetter& each) {
      if (!settled.contains(each.letter)) return false;
      chosen_.remove({each.letter, each.letter + 1});
      chosen_bytes_ -= each.original.message_bytes();
      return true;
    });
  }
  std::erase_if(parcels_, [](const auto& entry) { return entry.second.letters->returned.empty(); });
}

void LetterReturns::clear_choice() {
  is_chosen_ = false;
  parcels_.clear();
  chosen_.clear();
  chosen_bytes_ = 0;
}

void LetterReturns::begin_run() {
  if (is_recovering_) {
    for (auto& [address, parcel] : parcels_) parcel.letters->run = book().run();
    is_chosen_ = true;
    return send();
  }
  leave_out_settled();
  if (chosen_.empty()) return from_ ? read_next() : finish_wish();
  const std::uint64_t run = std::max<std::uint64_t>(random_number<std::uint64_t>(), 1);
  for (auto& [address, parcel] : parcels_) parcel.letters->run = run;
  book().begin(run, chosen_);
  parts_.topic.letters().changed();
  step_ = Step::saving;
  parts_.topic.letters().save(
      if_alive([](LetterReturns& self, const Result<std::uint64_t>& result) { self.saved(result); }));
}

void LetterReturns::saved(const Result<std::uint64_t>& result) {
  if (step_ != Step::saving) return;
  step_ = Step::idle;
  is_chosen_ = result.ok();
  if (is_chosen_) return send();
  book().end_run();  // nothing was sent yet
  clear_choice();
  end_wish(result.error());
  read_next();
}

/// Sends the next letters of one group.
void LetterReturns::send() {
  step_ = Step::idle;
  while (!parcels_.empty()) {
    const auto& [address, parcel] = *parcels_.begin();
    const auto target = parts_.post.find(address.first);
    if (!target && is_recovering_ && failures_ < failures_of_start) return rest("there is no such topic");
    if (!target) {
      drop_parcel(parcels_.begin()->second, counts_.topic_gone, true);
      parcels_.erase(parcels_.begin());
      continue;
    }
    const LetterChannel channel{parts_.topic.definition().id, parts_.number, ++attempt_};
    const auto task = [channel, letters = parcel.letters, to = *target, first = parcel.first](
                          LetterOffice& there) { there.returns().receive(channel, letters, to, first); };
    if (!parts_.post.send(*target, task)) return rest("its thread has too much work");
    step_ = Step::sending;
    return await_answer();
  }
  end_run();
}

void LetterReturns::answered(LetterChannel channel, const ReturnAnswer& answer) {
  if (step_ != Step::sending || channel.transfer != parts_.number || channel.attempt != attempt_) return;
  using Stop = ReturnAnswer::Stop;
  parts_.loop.cancel(timer_);
  step_ = Step::idle;
  const auto at = parcels_.begin();
  Parcel& parcel = at->second;
  settle(parcel, answer);
  bool is_over = parcel.first == parcel.letters->returned.size();
  switch (answer.stop) {
    case Stop::none: break;
    case Stop::group_gone:
      if (gone_.size() < gone_max) gone_.insert(at->first);
      drop_parcel(parcel, counts_.group_gone, true);
      is_over = true;
      break;
    case Stop::topic_gone:
      if (is_recovering_) return rest("the topic is not open");
      drop_parcel(parcel, counts_.topic_gone, true);
      is_over = true;
      break;
    case Stop::later:
      if (++laters_ < attempts_max) return work_at(EventLoop::Clock::now() + soon);
      [[fallthrough]];
    case Stop::impossible:
      drop_parcel(parcel, counts_.failed, false);
      is_over = true;
      break;
    case Stop::failed: return rest(answer.why);
  }
  laters_ = 0;
  if (is_over) parcels_.erase(at);
  send();
}

/// Settles the letters that are done.
void LetterReturns::settle(Parcel& parcel, const ReturnAnswer& answer) {
  const auto& letters = parcel.letters->returned;
  const std::size_t from = parcel.first;
  for (; parcel.first < letters.size() && letters[parcel.first].letter < answer.end; ++parcel.first)
    book().settle({letters[parcel.first].letter, letters[parcel.first].letter + 1});
  if (from == parcel.first) return;
  parts_.topic.letters().changed();
  failures_ = laters_ = 0;
  counts_.messages += parcel.first - from;
  counts_.given_back += answer.given_back;
  counts_.published += answer.published;
}

/// Counts letters that stay: the next one, or with `whole` all that are left. The others have another run.
void LetterReturns::drop_parcel(Parcel& parcel, std::uint64_t& count, bool whole) {
  const auto& letters = parcel.letters->returned;
  const std::size_t end = whole ? letters.size() : std::min(letters.size(), parcel.first + 1);
  for (std::size_t i = parcel.first; i < end; ++i) {
    ++count;
    if (!is_recovering_) passed_.add({letters[i].letter, letters[i].letter + 1});
  }
  again_ = again_ || end < letters.size();
}

void LetterReturns::end_run() {
  book().end_run();
  parts_.topic.letters().changed();
  clear_choice();
  const bool again = std::exchange(again_, false);
  if (std::exchange(is_recovering_, false)) {
    from_ = Offset{0};
    counts_ = {};
  } else if (again) {
    from_ = run_from_;
  }
  if (!wishes_.empty() && !wishes_.front().done) end_wish(Error{ErrorCode::closed, ""});
  read_next();
}

/// Answers the command when its effect survives a crash.
void LetterReturns::finish_wish() {
  const LetterCounts counts = counts_;
  const auto done = wishes_.front().done;
  wishes_.front().done = nullptr;
  if (done) {
    parts_.topic.letters().save(
        [counts, done](const Result<std::uint64_t>& saved) { saved ? done(counts) : done(saved.error()); });
  }
  end_wish(Error{ErrorCode::closed, ""});
  read_next();
}

/// Answers the present command unless it was answered, and ends it. A run that is under way goes on.
void LetterReturns::end_wish(const Result<LetterCounts>& result) {
  if (wishes_.empty()) return;
  const auto done = std::exchange(wishes_.front().done, nullptr);
  if (done) done(result);
  if (book().run() != 0 && !is_recovering_) return;  // its end removes the command
  wishes_.pop_front();
  if (!is_recovering_) reset_search();
}

void LetterReturns::reset_search() {
  counts_ = {};
  passed_.clear();
  gone_.clear();
  from_ = Offset{0};
}

/// Answers all commands that wait for the letters under way.
void LetterReturns::end_waiting(const std::string& why) {
  const Error busy{ErrorCode::busy, "letters cannot be given back now; the broker continues to try: " + why};
  for (Wish& wish : wishes_) {
    if (const auto done = std::exchange(wish.done, nullptr)) done(busy);
  }
  // The command whose letters are under way stays until the run ends.
  const bool keeps_first = !wishes_.empty() && !is_recovering_ && book().run() != 0;
  wishes_.erase(wishes_.begin() + (keeps_first ? 1 : 0), wishes_.end());
  if (!keeps_first && !is_recovering_) reset_search();
}

/// Continues later, because the source topic has failed.
void LetterReturns::rest(const std::string& why) {
  if (failures_ == 0) parts_.sink.error(name() + ": letters cannot be given back now: " + why);
  ++failures_;
  if (failures_ >= failures_of_wish_max) end_waiting(why);
  constexpr int doublings_max = 6;
  const auto time =
      std::min<std::chrono::seconds>(rest_min * (1 << std::min(failures_ - 1, doublings_max)), rest_max);
  work_at(EventLoop::Clock::now() + time);
}

void LetterReturns::await_answer() {
  parts_.loop.cancel(timer_);
  timer_ = parts_.loop.at(EventLoop::Clock::now() + answer_wait,
                          if_alive([](LetterReturns& self) { self.timed(); }));
}

void LetterReturns::work_at(EventLoop::Clock::time_point when) {
  step_ = Step::resting;
  parts_.loop.cancel(timer_);
  timer_ = parts_.loop.at(when, if_alive([](LetterReturns& self) { self.timed(); }));
}

/// Continues when it is its turn to read.
void LetterReturns::read_next() {
  step_ = Step::resting;
  parts_.loop.cancel(timer_);
  parts_.want_turn(if_alive([](LetterReturns& self) { self.timed(); }));
}

/// Continues after a rest. While an answer is awaited, only commands end.
void LetterReturns::timed() {
  if (step_ == Step::sending) {
    end_waiting("their topic has not taken them yet");
    return await_answer();
  }
  if (step_ != Step::resting) return;
  step_ = Step::idle;
  work();
}

}  // namespace lightq::broker
