/// The part of a topic's groups that is saved on disk. Layer: delivery.
#include "delivery/saves/group_cursors.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <system_error>
#include <utility>

namespace lightq::broker {

namespace {

// Prefixes of cursor names on disk; the group's name follows. docs/log_format.md, "Cursor file".
struct CursorPrefix {
  std::string_view text;
  GroupTerms terms;
};
constexpr CursorPrefix cursor_prefixes[] = {{"group:", {GroupMode::group, true}},
                                            {"own:", {GroupMode::own, false}},
                                            {"holds:", {GroupMode::own, true}}};
// A paused group has a second cursor with this prefix. Its offset says why the group is paused.
constexpr std::string_view paused_prefix = "paused:";
// A group has a cursor for each mark of letters that were given back to it: `given:RUN:TOPIC:GROUP`, at the
// mark's end. RUN is in hexadecimal digits, TOPIC the number of the dead-letter topic.
constexpr std::string_view given_prefix = "given:";
constexpr Offset paused_by_command{0};
constexpr Offset paused_because_failing{1};
// Finding a group costs as much as visiting so many ranges.
constexpr std::size_t ranges_of_group = 16;

const CursorPrefix* prefix_of(std::string_view cursor_name) {
  const auto* const found = std::ranges::find_if(
      cursor_prefixes, [&](const CursorPrefix& each) { return cursor_name.starts_with(each.text); });
  return found == std::end(cursor_prefixes) ? nullptr : found;
}

std::string cursor_name_of(const ConsumerGroup& group) {
  const auto& terms = group.terms();
  const auto* const prefix = std::ranges::find_if(cursor_prefixes, [&](const CursorPrefix& each) {
    return each.terms.mode == terms.mode && each.terms.holds == terms.holds;
  });
  return std::string(prefix->text) + group.name();
}

std::string cursor_name_of(const ConsumerGroup& group, const GiveBackMark& mark) {
  return std::string(given_prefix) + run_text(mark.run) + ":" + std::to_string(mark.letters.value) + ":" +
         group.name();
}

/// Restores a mark from a stored cursor of any kind.
void restore_mark(ConsumerGroups& groups, const log::NamedCursor& stored) {
  if (!stored.name.starts_with(given_prefix)) return;
  const std::string_view name = std::string_view(stored.name).substr(given_prefix.size());
  const std::size_t run_end = name.find(':');
  const std::size_t topic_end = run_end == name.npos ? run_end : name.find(':', run_end + 1);
  if (topic_end == name.npos) return;
  const auto run = run_in(name.substr(0, run_end));
  std::uint64_t topic = 0;
  const auto read = std::from_chars(name.data() + run_end + 1, name.data() + topic_end, topic);
  ConsumerGroup* const group = groups.find(name.substr(topic_end + 1));
  if (!run || read.ec != std::errc() || read.ptr != name.data() + topic_end || group == nullptr) return;
  group->messages().redelivery().give_back_marks().set({{topic}, *run, stored.offset});
}

}  // namespace

std::vector<log::NamedCursor> CursorsSnapshot::finished() const {
  std::vector<log::NamedCursor> cursors = plain;
  for (const Group& group : groups)
    cursors.push_back({group.name, group.state.committed, group.state.unfinished()});
  std::ranges::sort(cursors, {}, &log::NamedCursor::name);
  return cursors;
}

bool GroupCursors::is_of_group(const std::string& cursor_name) {
  return prefix_of(cursor_name) != nullptr || cursor_name.starts_with(paused_prefix) ||
         cursor_name.starts_with(given_prefix);
}

void GroupCursors::restore(const std::vector<log::NamedCursor>& stored, Offset log_end,
                           const ClockReading& clocks) {
  bool same = true;
  for (const log::NamedCursor& cursor : stored) same &= restore_cursor(cursor, log_end, clocks);
  for (const log::NamedCursor& mark : stored) {
    restore_mark(groups_, mark);
    if (!mark.name.starts_with(paused_prefix)) continue;
    ConsumerGroup* const group = groups_.find(std::string_view(mark.name).substr(paused_prefix.size()));
    if (group == nullptr) continue;
    group->set_paused(true,
                      mark.offset == paused_because_failing ? PauseCause::failing : PauseCause::command);
  }
  if (same) known_ = present();
}

/// Returns false if the group is not as it was stored.
bool GroupCursors::restore_cursor(const log::NamedCursor& stored, Offset log_end,
                                  const ClockReading& clocks) {
  const CursorPrefix* const prefix = prefix_of(stored.name);
  if (prefix == nullptr) return true;
  std::string name = stored.name.substr(prefix->text.size());
  if (groups_.find(name) != nullptr) return false;
  log::NamedCursor cursor = stored;
  const bool cut = cursor.cut_at(log_end);
  groups_.add_restored(std::move(name), prefix->terms, cursor.offset).restore(cursor.unfinished, clocks);
  return !cut;
}

std::vector<GroupCursors::Known> GroupCursors::present() const {
  std::vector<Known> present;
  for (ConsumerGroup* const group : groups_.list(ConsumerGroups::Listed::named))
    present.push_back({cursor_name_of(*group), group->is_paused(), group->messages().version()});
  return present;
}

bool GroupCursors::changed() const {
  return present() != known_;
}

void GroupCursors::begin() {
  known_ = present();
  snapshot_ = {};
  left_.clear();
  for (ConsumerGroup* const group : groups_.list(ConsumerGroups::Listed::named)) {
    group->messages().drop_snapshot();
    left_.push_back(group->name());
  }
  std::ranges::reverse(left_);
}

bool GroupCursors::collect(std::size_t ranges_max, const ClockReading& clocks) {
  std::size_t ranges_left = ranges_max;
  for (; !left_.empty(); left_.pop_back()) {
    if (ranges_left == 0) return false;
    ranges_left -= std::min(ranges_left, ranges_of_group);
    ConsumerGroup* const group = groups_.find(left_.back());
    if (group == nullptr) continue;  // it was removed meanwhile
    auto state = group->messages().snapshot(ranges_left, clocks);
    if (!state) return false;
    std::size_t copied = state->waiting.due().sets().size();
    if (state->dead != nullptr) copied += state->dead->copied_parts();
    ranges_left -= std::min(ranges_left, copied);
    snapshot_.groups.push_back({cursor_name_of(*group), std::move(*state)});
    for (const GiveBackMark& mark : group->messages().redelivery().give_back_marks().all())
      snapshot_.plain.push_back({cursor_name_of(*group, mark), mark.end});
    if (!group->is_paused()) continue;
    const bool failing = group->pause_cause() == PauseCause::failing;
    snapshot_.plain.push_back(
        {std::string(paused_prefix) + group->name(), failing ? paused_because_failing : paused_by_command});
  }
  return true;
}

CursorsSnapshot GroupCursors::take() {
  return std::exchange(snapshot_, {});
}

}  // namespace lightq::broker
