/// A group with dead messages, which move to a topic.
#include "endpoint/letter_world.hpp"

#include <algorithm>
#include <charconv>

namespace lightq::broker {

namespace {
constexpr int turns_max = 4000;
constexpr std::string_view payload_prefix = "message ";
}  // namespace

std::size_t ModelSource::begin(std::size_t most) {
  auto& state = group_.memory;
  std::size_t begun = state.under_way;
  while (begun < std::min(most, state.waiting.size()) && state.waiting[begun] < group_.durable_end) ++begun;
  if (begun > 0 && state.incarnation == 0) group_.begin_incarnation();
  return state.under_way = begun;
}

std::vector<LetterSource::Message> ModelSource::under_way() const {
  std::vector<Message> messages;
  const auto& state = group_.memory;
  for (std::size_t i = 0; i < state.under_way; ++i) {
    DeathAccount death{.topic = "source", .group = "group", .incarnation = 7, .offset = {state.waiting[i]}};
    messages.push_back({state.first_number + i, std::move(death)});
  }
  return messages;
}

LetterSource::Read ModelSource::read(const Message& message) {
  const std::uint64_t offset = message.death.offset.value;
  if (group_.too_large.contains(offset)) return {.outcome = Read::Outcome::too_large, .letter = {}};
  if (group_.damaged.contains(offset)) return {.outcome = Read::Outcome::lost, .letter = {}};
  if (group_.unavailable.contains(offset)) return {.outcome = Read::Outcome::later, .letter = {}};
  std::string payload = std::string(payload_prefix) + std::to_string(offset);
  if (group_.huge.contains(offset)) payload.resize(2 * limits::MiB, ' ');
  auto letter = DeadLetter::of(AttributesView(), as_byte_view(payload), message.death);
  return {.outcome = Read::Outcome::letter, .letter = std::move(letter).value_or_throw()};
}

bool ModelSource::is_first(std::uint64_t incarnation, std::uint64_t number) const {
  const auto& state = group_.memory;
  return state.under_way > 0 && state.incarnation == incarnation && state.first_number == number;
}

void ModelSource::done(std::uint64_t incarnation, std::uint64_t number) {
  auto& state = group_.memory;
  if (!is_first(incarnation, number)) return;
  state.finished.insert(state.waiting.front());
  state.waiting.pop_front();
  --state.under_way;
  ++state.first_number;
}

void ModelSource::give_up(std::uint64_t incarnation, std::uint64_t number) {
  auto& state = group_.memory;
  if (!is_first(incarnation, number)) return;
  state.parked.insert(state.waiting.front());
  state.waiting.pop_front();
  state.under_way = 0;
}

void LetterWorld::open_office() {
  office = std::make_unique<LetterOffice>(LetterOffice::Parts{
      .loop = loop(),
      .sink = sink,
      .find_topic = [this](TopicId) { return topic.get(); },
      .waiting_groups =
          [this](TopicRuntime&) {
            return group.memory.waiting.empty() ? std::vector<std::string>()
                                                : std::vector<std::string>{"group"};
          },
      .source_of = [this](TopicRuntime&,
                          const std::string&) { return std::make_unique<ModelSource>(group); }});
  office->connect(*this);
}

/// Counts an event. Returns false if the process has ended before it.
bool LetterWorld::event() {
  if (is_dead) return false;
  if (++events == end_at_) is_dead = true;
  return !is_dead;
}

void LetterWorld::arm(std::uint64_t event_number) {
  events = 0;
  end_at_ = event_number;
  fail(EIO, [this](FaultyStorage::Call call, const std::string&) {
    const bool changes = call != FaultyStorage::Call::read && call != FaultyStorage::Call::map;
    return changes ? !event() : is_dead.load();
  });
}

void LetterWorld::crash(bool cut, const std::function<bool()>& keeps, std::uint64_t next_end) {
  for (;; next_end = 0) {
    is_dead = true;
    office.reset();
    post_.clear();
    group.saving.clear();
    drop();
    group.memory = group.disk;
    if (forgets_numbers) group.memory.first_number = 1;
    if (cut) storage.power_cut(keeps);
    is_dead = false;
    arm(next_end);
    if (try_start()) break;
    ASSERT_TRUE(is_dead) << "the topic does not open";
  }
  open_office();
}

/// Saves the group. Everything that was in memory when the save began is on disk when it ends.
void LetterWorld::save_group() {
  if (group.saves_fail) {
    for (const auto& saved : std::exchange(group.saving, {})) saved(Error{ErrorCode::io_error, "no disk"});
    return;
  }
  if (saves_at_once) {
    for (const auto& saved : std::exchange(group.saving, {})) saved({});
    return;
  }
  const auto waiting = std::exchange(group.saving, {});
  const auto state = group.memory;
  if (!event()) return;
  group.disk = state;
  if (!event()) return;
  for (const auto& saved : waiting) saved({});
}

void LetterWorld::step() {
  office->wake({1});
  turn(std::chrono::microseconds(100));
  if (is_dead) return;
  if (!post_.empty() && event()) {
    const Task task = std::move(post_.front());
    post_.pop_front();
    task(*office);
  }
  if (!is_dead && !group.saving.empty()) save_group();
}

bool LetterWorld::run_to_the_end() {
  for (int turns = 0; turns < turns_max; ++turns) {
    if (is_dead) return true;
    if (group.memory.waiting.empty() && post_.empty()) return true;
    step();
  }
  return false;
}

std::vector<std::uint64_t> LetterWorld::letters_in_topic() {
  std::vector<std::uint64_t> letters;
  auto& store = const_cast<TopicStore&>(topic->store());
  log::ReadPosition place{store.first_offset()};
  while (place.offset < store.next_offset()) {
    const auto read = store.read(place);
    if (read.outcome != log::ReadOutcome::batch) {
      ADD_FAILURE() << "the topic cannot be read";
      break;
    }
    for (const std::string& payload : test::payloads_of(read.batch)) {
      if (!payload.starts_with(payload_prefix)) continue;
      std::uint64_t offset = 0;
      std::from_chars(payload.data() + payload_prefix.size(), payload.data() + payload.size(), offset);
      letters.push_back(offset);
    }
    place.offset = read.batch.end_offset();
  }
  return letters;
}

}  // namespace lightq::broker
