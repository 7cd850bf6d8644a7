/// A group with dead messages, which move to a topic.
#include "endpoint/letter_world.hpp"

#include <algorithm>
#include <charconv>

#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {
constexpr int turns_max = 4000;
constexpr std::string_view payload_prefix = "message ";
}  // namespace

std::size_t ModelSource::begin(std::size_t most) {
  auto& state = group_.memory;
  if (state.target != group_.target) {
    EXPECT_EQ(state.under_way, 0U) << "messages are under way to another topic";
    state.incarnation = 0;
  }
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
  TurnWork::add(group_.read_work);
  group_.work_of_turn = std::max(group_.work_of_turn, TurnWork::in_turn());
  if (group_.too_large.contains(offset)) return {.outcome = Read::Outcome::too_large, .letter = {}};
  if (group_.damaged.contains(offset)) return {.outcome = Read::Outcome::lost, .letter = {}};
  if (const auto reads = group_.pending.find(offset); reads != group_.pending.end()) {
    if (--reads->second == 0) group_.pending.erase(reads);
    return {.outcome = Read::Outcome::pending, .letter = {}};
  }
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
  renew();
}

void ModelSource::renew() {
  group_.memory.under_way = 0;
  group_.begin_incarnation();
  group_.park_without_target();
}

LetterWorld::~LetterWorld() {
  office.reset();
  drop_others();
}

void LetterWorld::open_office() {
  office = std::make_unique<LetterOffice>(LetterOffice::Parts{
      .loop = loop(),
      .sink = sink,
      .find_topic = [this](TopicId id) { return id == others_id ? others.get() : topic.get(); },
      .waiting_groups =
          [this](TopicRuntime&) {
            return group.memory.waiting.empty() ? std::vector<std::string>()
                                                : std::vector<std::string>{"group"};
          },
      .source_of = [this](TopicRuntime&, const std::string&) { return std::make_unique<ModelSource>(group); },
      .held_bytes_max = held_bytes_max,
      .sent_bytes_max = sent_bytes_max});
  office->connect(*this);
}

bool LetterWorld::open_others() {
  has_others_ = true;
  const TopicDefinition definition{
      others_id,
      *TopicName::parse("others"),
      {.broker_type = protocol::BrokerType::file, .segment_bytes = limits::segment_bytes_min}};
  const StorageSettings settings{.topics_directory = "/topics", .flush_interval_ms = flush_ms};
  auto opened = TopicOpener(storage, *pool).open(definition, settings, wall_time(), sink);
  if (!opened) return false;
  auto store = opened->take_store(disk(), loop());
  others = std::make_unique<TopicRuntime>(context(), *this, make_endpoint_set, definition, std::move(store),
                                          std::move(opened).value_or_throw());
  return true;
}

void LetterWorld::drop_others() {
  if (others == nullptr) return;
  others->begin_stop(ClientError::shutting_down);
  EXPECT_TRUE(run_until([this] { return others->idle_on_disk(); }));
  others.reset();
  others_tick_ = false;
}

void LetterWorld::tick_wanted(TopicRuntime& wanting) {
  if (&wanting != topic.get())
    others_tick_ = true;
  else
    TopicRuntimeTest::tick_wanted(wanting);
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
    drop_others();
    drop();
    group.memory = group.disk;
    if (forgets_target && group.target != TopicId{}) group.memory.target = group.target;
    group.park_without_target();
    if (forgets_numbers) group.memory.first_number = 1;
    if (cut) storage.power_cut(keeps);
    is_dead = false;
    arm(next_end);
    if (try_start() && (!has_others_ || open_others())) break;
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
  if (std::exchange(others_tick_, false) && others != nullptr) others_tick_ = others->tick() || others_tick_;
  if (is_dead) return;
  if (!post_.empty() && event()) {
    const Task task = std::move(post_.front());
    post_.pop_front();
    task(*office);
  }
  if (!is_dead && !group.saving.empty() && !group.saves_wait) save_group();
}

bool LetterWorld::run_to_the_end() {
  for (int turns = 0; turns < turns_max; ++turns) {
    if (is_dead) return true;
    if (group.memory.waiting.empty() && post_.empty()) return true;
    step();
  }
  return false;
}

std::vector<std::uint64_t> LetterWorld::letters_in(TopicRuntime& in) {
  std::vector<std::uint64_t> letters;
  auto& store = const_cast<TopicStore&>(std::as_const(in).store());
  log::ReadPosition place{store.first_offset()};
  while (place.offset < store.next_offset()) {
    const auto read = store.read(place);
    if (read.outcome == log::ReadOutcome::damaged && place.offset < read.next) {
      place = log::ReadPosition{read.next};  // a power cut keeps parts of a message that was not synced
      continue;
    }
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
