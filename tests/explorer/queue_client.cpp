/// A user of an embedded queue on an explored disk. It checks the queue's promises.
#include "explorer/queue_client.hpp"

#include <algorithm>
#include <utility>

#include "queue/clock.hpp"
#include "queue/reader_state.hpp"

namespace lightq::test {

namespace {

constexpr std::array<const char*, QueueClient::cursors_max> cursor_names = {"first", "second", "third"};

}  // namespace

void QueueClient::die() {
  if (engine_ == nullptr) return;
  taken_ = {};
  storage_->kill([this] { engine_.reset(); });
}

void QueueClient::open(Ending ending) {
  die();
  opened = calls_fail = flush_failed_ = log_failed_ = false;
  queue::test_now = now;
  auto engine = queue::Engine::open(directory, options, *storage_, log::DirectoryLock{});
  if (!engine) return complain("the queue does not open: " + engine.error().text());
  engine_ = std::move(*engine);
  compare(ending);
  if (violation) return;
  const bool was_opening = std::exchange(died_opening, false);
  const Offset next = engine_->next_offset();
  history.messages.resize(next.value, History::lost);
  for (const Offset offset : damaged_now_) history.messages[offset.value] = History::lost;
  history.certain_end = history.end();
  history.first = engine_->first_offset();
  told_durable_ = engine_->durable_offset();
  if (next < told_durable_) complain("durable_offset is past next_offset");
  note_durable();
  if (history.closed && !engine_->recovery().clean) complain("a queue that was closed is looked through");
  compare_cursors(ending, was_opening);
  opened = true;
}

void QueueClient::note_first() {
  if (engine_ != nullptr && history.first < engine_->first_offset()) history.first = engine_->first_offset();
}

// Dropped files may be visible again after a kill, and were never synced. So the promise begins at the
// present first offset.
void QueueClient::note_durable() {
  if (told_durable_ < history.durable) return;
  history.durable = told_durable_;
  history.durable_from = engine_->first_offset();
}

void QueueClient::note() {
  note_first();
  const Offset durable = engine_->durable_offset();
  if (durable < told_durable_) complain("durable_offset went back");
  if (log_failed_ && told_durable_ < durable) complain("confirmed after a failed sync");
  if (history.end() < durable) complain("durable_offset is past next_offset");
  told_durable_ = durable;
  note_durable();
}

template <typename Append>
void QueueClient::append(const std::vector<std::size_t>& sizes, Append&& call) {
  queue::test_now = now;
  history.closed = false;
  const std::size_t before = history.messages.size();
  const std::size_t number = payloads_.count();
  for (const std::size_t bytes : sizes) history.messages.push_back(payloads_.make(bytes));
  const Result<Offset> appended = call();
  if (appended) {
    if (appended->value != before) complain("an append was given offset " + std::to_string(appended->value));
    history.certain_end = history.end();
  } else if (calls_fail && engine_->next_offset() == history.end()) {
    return note();  // the message is in the log, but its sync has failed
  } else {
    history.messages.resize(before);
    payloads_.forget_from(number);
  }
  if (engine_->next_offset() != history.end()) complain("next_offset is not one past the last message");
  note();
}

void QueueClient::enqueue(std::size_t bytes) {
  append({bytes}, [this] { return engine_->enqueue(as_byte_view(payloads_.text(history.messages.back()))); });
}

void QueueClient::enqueue_batch(const std::vector<std::size_t>& sizes) {
  append(sizes, [&] {
    BatchBuilder builder;
    for (std::size_t i = history.messages.size() - sizes.size(); i < history.messages.size(); ++i) {
      builder.add(as_byte_view(payloads_.text(history.messages[i])));
    }
    return engine_->append(builder.finish());
  });
}

void QueueClient::flush() {
  queue::test_now = now;
  const Offset end = history.end();  // other threads may append meanwhile
  const auto asked = cursors;
  const auto flushed = engine_->flush();
  if (flushed && flush_failed_) complain("a flush returns after one that failed");
  note();
  flush_failed_ = flush_failed_ || !flushed;
  log_failed_ = log_failed_ || (!flushed && told_durable_ < end);  // otherwise the sync of the cursors failed
  if (!flushed && !calls_fail) complain("flush failed: " + flushed.error().text());
  if (!flushed) return;
  if (told_durable_ < end) complain("flush returned, and not all is durable");
  for (std::size_t i = 0; i < cursors_max; ++i) {
    auto& allowed = cursors[i].allowed;
    const auto& before = asked[i].allowed;
    if (asked[i].certain) cursors[i].in_memory = false;
    if (!asked[i].certain && !cursors[i].certain && !calls_fail) cursors[i] = {};
    // Commits made since the flush began may be on disk or not.
    if (cursors[i].certain && asked[i].certain && !before.empty())
      allowed.erase(allowed.begin(), allowed.begin() + static_cast<std::ptrdiff_t>(before.size() - 1));
  }
}

void QueueClient::settle_cursors() {
  for (CursorHistory& cursor : cursors) {
    if (cursor.certain) cursor.allowed = {cursor.last};
    if (!cursor.certain && !calls_fail) cursor = {};
    cursor.in_memory = false;
  }
}

void QueueClient::close() {
  queue::test_now = now;
  const auto closed = engine_->close();
  note();
  if (closed && flush_failed_) complain("close returns after a failed sync");
  if (!closed && !calls_fail) complain("close failed: " + closed.error().text());
  if (closed && told_durable_ != history.end()) complain("close returned, and not all is durable");
  if (closed) settle_cursors();
  die();
}

void QueueClient::trim(Offset before) {
  queue::test_now = now;
  static_cast<void>(engine_->trim(before));
  note();
}

void QueueClient::maintain() {
  queue::test_now = now;
  engine_->maintain();
  note();
}

void QueueClient::take_cursor(std::size_t which) {
  if (taken_[which] != nullptr) return;
  CursorHistory& cursor = cursors[which];
  // If making or removing a cursor failed and it still exists, a power cut may remove it.
  cursor.in_memory = cursor.in_memory || (!cursor.certain && !cursor.allowed.empty());
  if (!cursor.certain) cursor.allowed.push_back(history.first.value);
  const auto taken = engine_->take_cursor(cursor_names[which], Start::first());
  if (!taken && calls_fail) return;
  if (!taken) return complain("no cursor: " + taken.error().text());
  taken_[which] = *taken;
  if (!cursor.certain) cursor.last = taken_[which]->committed().value;
  if (!cursor.certain) cursor.allowed.push_back(cursor.last);
  cursor.certain = true;
}

// Clamps the offset to the log, as QueueCursor does.
void QueueClient::commit(std::size_t which, std::uint64_t offset) {
  queue::test_now = now;
  take_cursor(which);
  if (taken_[which] == nullptr) return;
  offset = std::clamp(offset, engine_->first_offset().value, engine_->next_offset().value);
  cursors[which].allowed.push_back(offset);
  taken_[which]->commit({offset});
  cursors[which].last = offset;
  storage_->look();
  engine_->committed(*taken_[which]);
  note();
}

void QueueClient::remove_cursor(std::size_t which) {
  queue::test_now = now;
  if (taken_[which] == nullptr) return;
  engine_->give_back(*taken_[which]);
  taken_[which] = nullptr;
  cursors[which].certain = false;  // until the removal returns, the cursor may exist or not
  const auto removed = engine_->remove_cursor(cursor_names[which]);
  if (!removed && !calls_fail) complain("a cursor is not removed: " + removed.error().text());
  if (removed) cursors[which] = {};
  note();
}

// --- Comparing ---

Offset QueueClient::promised_from(Offset floor) const {
  const bool all = history.durable < floor;  // after a kill
  return all ? history.first : std::max(history.first, history.durable_from);
}

// Returns the offset below which opening may drop messages, because all cursors may have committed them. A
// cursor that may not exist keeps no message.
Offset QueueClient::droppable() const {
  if (!options.drop_committed) return {};
  std::optional<std::uint64_t> least;
  std::uint64_t most = 0;
  for (const CursorHistory& cursor : cursors) {
    if (cursor.allowed.empty()) continue;
    const std::uint64_t furthest = *std::max_element(cursor.allowed.begin(), cursor.allowed.end());
    most = std::max(most, furthest);
    if (cursor.certain && !cursor.in_memory) least = std::min(least.value_or(furthest), furthest);
  }
  return {least.value_or(most)};
}

std::string QueueClient::cursors_text() const {
  std::string text;
  for (const CursorState& state : engine_->stats().cursors) {
    text += ", cursor " + state.name + " at " + std::to_string(state.committed.value);
  }
  for (std::size_t i = 0; i < cursors_max; ++i) {
    if (cursors[i].allowed.empty()) continue;
    text += std::string(", known ") + cursor_names[i] + (cursors[i].certain ? " at " : " perhaps at ") +
            std::to_string(cursors[i].allowed.back());
  }
  return text;
}

void QueueClient::compare(Ending ending) {
  damaged_now_.clear();
  const Offset floor = ending == Ending::kill ? history.certain_end : history.durable;
  const Offset next = engine_->next_offset();
  const Offset first = engine_->first_offset();
  const Offset from = promised_from(floor);
  if (history.end() < next) complain("ghost: next_offset is " + std::to_string(next.value));
  if (next < floor) {
    complain("lost: next_offset is " + std::to_string(next.value) + ", promised were " +
             std::to_string(floor.value));
  }
  // Opening may drop messages that the cursors have committed.
  const Offset dropped = std::max(from, droppable());
  if (dropped < floor && dropped < first) {
    complain("lost: first_offset is " + std::to_string(first.value) + ", kept was " +
             std::to_string(from.value) + cursors_text());
  }
  queue::ReaderState reader(*engine_);
  reader.place(first);
  Offset expected = first;
  while (!violation) {
    const auto taken = reader.take(64);
    if (!taken) {
      const Offset position = reader.position();
      if (taken.error().code != ErrorCode::corrupt || position <= expected)
        return complain("a read at " + std::to_string(expected.value) + ": " + taken.error().text());
      compare_error(expected, position, floor, taken.error());
      expected = position;
      continue;
    }
    if (taken->empty()) break;
    for (const QueuedMessage& message : *taken) {
      compare_message(message, expected);
      expected = expected + 1;
      if (violation) return;
    }
  }
  if (!violation && expected != next) complain("reading ends at " + std::to_string(expected.value));
}

void QueueClient::compare_message(const QueuedMessage& message, Offset expected) {
  const std::uint64_t offset = expected.value;
  if (message.offset != expected || offset >= history.messages.size()) {
    return complain("ghost: offset " + std::to_string(message.offset.value) + " is read, expected was " +
                    std::to_string(offset));
  }
  const std::int32_t number = history.messages[offset];
  if (number != History::lost && as_text(message.payload) == payloads_.text(number)) return;
  complain("ghost or garbage at offset " + std::to_string(offset));
}

void QueueClient::compare_error(Offset from, Offset next, Offset floor, const Error& error) {
  const auto& damaged = engine_->recovery().damaged;
  for (Offset offset = from; offset < next; offset = offset + 1) {
    damaged_now_.push_back(offset);
    if (offset.value >= history.messages.size() || history.messages[offset.value] == History::lost) continue;
    if (offset < promised_from(floor)) continue;
    const bool reported = std::any_of(damaged.begin(), damaged.end(), [&](const DamagedMessages& range) {
      return range.first <= offset && offset < range.next;
    });
    if (offset < floor) complain("lost: " + std::to_string(offset.value) + ": " + error.text());
    if (!died_opening && !reported) complain("recovery did not notice: " + error.text());
  }
}

void QueueClient::compare_cursors(Ending ending, bool was_opening) {
  const auto stats = engine_->stats();
  for (std::size_t i = 0; i < cursors_max; ++i) {
    const auto found = std::find_if(stats.cursors.begin(), stats.cursors.end(),
                                    [&](const CursorState& state) { return state.name == cursor_names[i]; });
    compare_cursor(i, found == stats.cursors.end() ? nullptr : &*found, ending, was_opening);
  }
}

void QueueClient::compare_cursor(std::size_t which, const CursorState* state, Ending ending,
                                 bool was_opening) {
  CursorHistory& cursor = cursors[which];
  if (state == nullptr) {
    const bool may_be_gone = cursor.in_memory && ending == Ending::power_cut;
    if (cursor.certain && !may_be_gone) complain("a cursor is lost");
    // A cursor may be on disk although its making or removal failed.
    const bool may_come_back = ending == Ending::kill && !cursor.certain;
    if (!may_come_back) cursor = {};
    return;
  }
  const std::uint64_t found = state->committed.value;
  const std::uint64_t next = engine_->next_offset().value;
  const auto& set_back = engine_->recovery().clamped_cursors;
  const bool clamped = std::find(set_back.begin(), set_back.end(), state->name) != set_back.end();
  if (next < found) return complain("the cursor stands past the end of the queue");
  const bool may_be_clamped = clamped || was_opening;  // by the previous opening or by this one
  const auto matches = [&](std::uint64_t allowed) {
    return (!clamped && found == allowed) || (may_be_clamped && found == next && next < allowed);
  };
  const bool known = ending == Ending::kill && cursor.certain
                         ? matches(cursor.last)
                         : std::any_of(cursor.allowed.begin(), cursor.allowed.end(), matches);
  if (!known) {
    std::string known_places;
    for (const std::uint64_t offset : cursor.allowed) known_places += " " + std::to_string(offset);
    complain("the cursor stands at " + std::to_string(found) + (clamped ? ", clamped" : "") + ", not at " +
             std::to_string(cursor.last) + " or one of" + known_places);
  }
  // After a power cut the position is on disk. A clamped cursor was reported and must not advance by itself
  // again.
  const bool settled = ending == Ending::power_cut || clamped;
  if (settled) cursor.allowed = {found};
  cursor.last = found;
  cursor.in_memory = ending == Ending::kill && (cursor.in_memory || !cursor.certain);
  cursor.certain = true;
}

}  // namespace lightq::test
