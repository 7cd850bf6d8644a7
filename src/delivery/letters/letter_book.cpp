/// Keeps, saves and restores which letters are settled. Layer: delivery.
#include "delivery/letters/letter_book.hpp"

#include <string>
#include <utility>

#include "delivery/letters/give_back_mark.hpp"

namespace lightq::broker {

namespace {

log::NamedCursor cursor_of(std::string name, const log::OffsetSet& letters) {
  const Offset first = letters.first();
  return {std::move(name), first, {.next = letters.end(), .messages = letters}};
}

}  // namespace

LetterBook::LetterBook(const std::vector<log::NamedCursor>& stored, OffsetRange log) {
  for (const log::NamedCursor& cursor : stored) {
    log::NamedCursor cut = cursor;
    if (cursor.name == settled_cursor) {
      cut.cut_at(log.end);
      settled_ = cut.unfinished.messages;
    } else if (cursor.name.starts_with(run_cursor_prefix)) {
      const auto run = run_in(std::string_view(cursor.name).substr(run_cursor_prefix.size()));
      if (!run) continue;
      cut.cut_at(log.end);
      run_ = *run;
      under_way_ = cut.unfinished.messages;
    }
  }
  forget_before(log.begin);
}

void LetterBook::begin(std::uint64_t run, const log::OffsetSet& letters) {
  run_ = run;
  under_way_ = letters;
}

void LetterBook::settle(OffsetRange letters) {
  settled_.add(letters);
  under_way_.remove(letters);
}

void LetterBook::forget_before(Offset first) {
  if (!settled_.empty() && settled_.first() < first) settled_.remove({{0}, first});
  if (!under_way_.empty() && under_way_.first() < first) under_way_.remove({{0}, first});
}

std::vector<log::NamedCursor> LetterBook::cursors() const {
  std::vector<log::NamedCursor> cursors;
  if (!under_way_.empty())
    cursors.push_back(cursor_of(std::string(run_cursor_prefix) + run_text(run_), under_way_));
  if (!settled_.empty()) cursors.push_back(cursor_of(std::string(settled_cursor), settled_));
  return cursors;
}

}  // namespace lightq::broker
