/// The operation that traces messages. Layer: control.
#include "control/commands/trace_operations.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {

/// The work of looking at a letter that was found: as long as its entry in a reply to list_dead.
constexpr std::uint64_t letter_work_bytes = 256;

}  // namespace

/// A search for the letters of a message, in one page of a dead-letter topic after the other.
struct TraceOperations::LetterSearch {
  Asker asker;
  Done<WorkedTrace> done;
  protocol::MessageTrace trace;
  std::uint64_t work_bytes = 0;
  std::size_t group = 0;                    // the letter of this group is looked for
  std::optional<std::uint64_t> after = {};  // its next page begins behind this offset
  unsigned pages_left = limits::trace_letter_pages_max;

  /// Notes the letter if the page has it. Returns false if there may be further pages with it.
  bool take(const protocol::DeadPage& page) {
    protocol::GroupTrace& of_group = trace.groups[group];
    work_bytes += page.messages.size() * letter_work_bytes;
    for (const protocol::DeadMessage& letter : page.messages) {
      if (letter.source_offset != trace.offset || letter.source_group != of_group.group ||
          letter.source_topic != trace.topic || died_before_it_was_stored(letter))
        continue;
      of_group.state = protocol::MessageState::dead_letter;
      of_group.letter_offset = letter.offset;
      of_group.death = letter;
      of_group.death->offset = trace.offset;
      of_group.death->source_topic.clear();
      return true;
    }
    after = page.continue_after;
    if (after) return false;
    of_group.letter_topic.clear();
    return true;
  }
  /// Goes on with the next group.
  void next_group() {
    ++group;
    after.reset();
  }

 private:
  /// Returns true for a letter from an earlier topic of this name.
  [[nodiscard]] bool died_before_it_was_stored(const protocol::DeadMessage& letter) const {
    return letter.last_failure_ms != 0 && letter.last_failure_ms < trace.stored_us / 1000;
  }
};

void TraceOperations::trace(const Asker& asker, const TopicName& name, Offset offset,
                            const Done<WorkedTrace>& done) {
  const auto id = parts_.ready.find_with_messages(name);
  if (!id) return done(id.error());
  parts_.data_plane.trace(id.value(), offset, [this, asker, done](Result<WorkedTrace> traced) {
    if (!traced) return done(traced.error());
    const auto search = std::make_shared<LetterSearch>(
        LetterSearch{asker, done, std::move(traced->trace), traced->work_bytes});
    show_to(asker, search->trace);
    find_letters(search);
  });
}

/// Adds names of users and removes deaths, by the rights of the asker.
void TraceOperations::show_to(const Asker& asker, protocol::MessageTrace& trace) const {
  const bool names_users = parts_.rights.manages(asker, trace.topic);
  for (protocol::GroupTrace& group : trace.groups) {
    const UserRecord* const user = parts_.catalogue.state().user_of_id(group.user);
    if (names_users && group.consumer && user != nullptr) group.user_id = user->name();
    if (group.death && !parts_.rights.manages_group(asker, trace.topic, group.group)) group.death.reset();
  }
}

void TraceOperations::find_letters(const std::shared_ptr<LetterSearch>& search) {
  for (; search->group < search->trace.groups.size(); search->next_group()) {
    protocol::GroupTrace& group = search->trace.groups[search->group];
    if (group.state != protocol::MessageState::done || group.letter_topic.empty()) continue;
    if (search->pages_left == 0 || !parts_.rights.manages(search->asker, group.letter_topic)) continue;
    const auto target = TopicName::parse(group.letter_topic);
    if (!target) continue;
    const auto id = parts_.ready.find_with_messages(*target);
    if (!id) continue;
    --search->pages_left;
    const DeadListWish wish{.filter = {.key = search->trace.key},
                            .after = search->after,
                            .limit = protocol::DeadPage::messages_max};
    return parts_.data_plane.list_dead(id.value(), {}, wish, [this, search](const auto& page) {
      if (!page || search->take(*page)) search->next_group();
      find_letters(search);
    });
  }
  search->done(WorkedTrace{std::move(search->trace), search->work_bytes});
}

}  // namespace lightq::broker
