/// A group with dead messages, which move to a topic, on a disk and in a process that fail when a test asks
/// for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "endpoint/topic_runtime_harness.hpp"
#include "topic/dead/letter_office.hpp"

namespace lightq::broker {

/// A group with an outbox, and its cursor file. Follows the rules of the outbox of a real group: numbers
/// ascend without gaps in an incarnation, and are given when a transfer begins.
class ModelGroup {
 public:
  /// The part that is saved.
  struct State {
    std::deque<std::uint64_t> waiting;  ///< offsets in the order of their transfer
    std::size_t under_way = 0;
    std::uint64_t first_number = 1;
    std::uint64_t incarnation = 0;
    TopicId target;  ///< of the incarnation
    std::set<std::uint64_t> finished;
    std::set<std::uint64_t> parked;
    std::uint64_t next_offset = 0;
  };

  /// Adds a dead message.
  void die() {
    memory.waiting.push_back(memory.next_offset++);
    park_without_target();
  }
  /// Removes all messages, as a purge of the group does.
  void purge() {
    memory.finished.insert(memory.waiting.begin(), memory.waiting.end());
    memory.waiting.clear();
    if (std::exchange(memory.under_way, 0) > 0) begin_incarnation();
  }
  void begin_incarnation() {
    memory.first_number = 1;
    memory.incarnation = ++last_incarnation;
    memory.target = target;
  }
  /// Sets the dead-letter topic, as a command does. 0: none.
  void set_target(TopicId topic) {
    target = topic;
    park_without_target();
  }
  /// Parks messages that wait for no topic, but for those under way.
  void park_without_target() {
    if (target != TopicId{}) return;
    memory.parked.insert(memory.waiting.begin() + static_cast<std::ptrdiff_t>(memory.under_way),
                         memory.waiting.end());
    memory.waiting.resize(memory.under_way);
  }

  State memory;
  State disk;
  std::uint64_t last_incarnation = 1000;  ///< not reused after a crash, as random numbers are not
  TopicId target{1};                      ///< kept over crashes, as the catalogue does
  std::string trouble;
  std::set<std::uint64_t> too_large;  ///< messages that cannot be letters
  std::set<std::uint64_t> huge;       ///< messages with a payload of 2 MiB
  std::set<std::uint64_t> damaged;
  std::set<std::uint64_t> unavailable;
  std::map<std::uint64_t, int> pending;     ///< messages that the disk reads, and how many reads find that
  std::uint64_t durable_end = UINT64_MAX;   ///< messages from here on get no numbers yet
  std::vector<LetterSource::Saved> saving;  ///< callers that wait for the next save
  std::uint64_t read_work = 0;              ///< of reading a message, in bytes of TurnWork
  std::uint64_t work_of_turn = 0;           ///< the most of one turn, when a message was read
  bool saves_fail = false;
  bool saves_wait = false;  ///< no save ends
};

/// The group as its transfer sees it.
class ModelSource final : public LetterSource {
 public:
  explicit ModelSource(ModelGroup& group) : group_(group) {}
  [[nodiscard]] std::string name() const override { return "group"; }
  [[nodiscard]] Target target() const override { return {group_.target, name_of(group_.target)}; }
  [[nodiscard]] TopicId bound_to() const override {
    return group_.memory.under_way == 0 ? TopicId{} : group_.memory.target;
  }
  [[nodiscard]] std::uint64_t incarnation() const override { return group_.memory.incarnation; }
  [[nodiscard]] std::uint64_t next_number() const override {
    const auto& state = group_.memory;
    const bool goes_on = state.incarnation != 0 && state.target == group_.target;
    return goes_on ? state.first_number + state.under_way : 0;
  }
  std::size_t begin(std::size_t most) override;
  [[nodiscard]] bool has_any() const override { return !group_.memory.waiting.empty(); }
  [[nodiscard]] std::vector<Message> under_way() const override;
  void save(Saved saved) override { group_.saving.push_back(std::move(saved)); }
  Read read(const Message& message) override;
  void done(std::uint64_t incarnation, std::uint64_t number) override;
  void lose(std::uint64_t incarnation, std::uint64_t number) override { done(incarnation, number); }
  void give_up(std::uint64_t incarnation, std::uint64_t number) override;
  void renew() override;
  void set_trouble(const std::string& why) override { group_.trouble = why; }
  static std::string name_of(TopicId topic) {
    if (topic == TopicId{}) return {};
    return topic == TopicId{1} ? "orders" : "others";
  }

 private:
  [[nodiscard]] bool is_first(std::uint64_t incarnation, std::uint64_t number) const;

  ModelGroup& group_;
};

/// Runs the group, its office and the topic "orders", which receives the letters, and perhaps another topic
/// that may receive them. Each step of the group, the
/// post and the disk is an event; the world can end before any of them.
class LetterWorld : public TopicRuntimeTest, public LetterPost {
 protected:
  explicit LetterWorld(const protocol::TopicSettings& settings) : TopicRuntimeTest(settings, flush_ms) {
    open_office();
  }
  ~LetterWorld() override;

  void open_office();
  /// Opens the topic "others", too, from now on. Returns false if it cannot be opened.
  bool open_others();
  /// Ends the process before event number `event` from now on. 0: never.
  void arm(std::uint64_t event);
  /// Ends the process now, and starts it again. With `cut` the power fails too, and `keeps` says which of the
  /// bytes that were not synced stay. The next process ends before its event number `next_end`, perhaps while
  /// it starts; then another one starts.
  void crash(bool cut, const std::function<bool()>& keeps, std::uint64_t next_end);
  /// Runs one turn: passes letters and answers on, and saves the group.
  void step();
  /// Lets messages die.
  void die(int messages) {
    for (; messages > 0; --messages) group.die();
  }
  /// Runs some turns, in which everything that can happen without a rest happens.
  void run_a_while() {
    for (int turns = 0; turns < 60; ++turns) step();
  }
  /// Runs turns until nothing waits, or the process has ended. Returns false after too many turns.
  bool run_to_the_end();
  /// Returns the offsets of the letters that the topic has, in its order.
  std::vector<std::uint64_t> letters_in_topic() { return letters_in(*topic); }
  static std::vector<std::uint64_t> letters_in(TopicRuntime& in);
  void tick_wanted(TopicRuntime& wanting) override;
  /// Returns the payload of the message at an offset.
  static std::string payload_of_offset(std::uint64_t offset) { return "message " + std::to_string(offset); }

  // Implements LetterPost.
  [[nodiscard]] std::optional<TopicId> find(const std::string& name) const override {
    if (name == "orders" && has_new_topic) return TopicId{9};
    return name == "orders" && has_topic ? std::optional(TopicId{1}) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> name_of(TopicId id) const override {
    const bool exists = id == TopicId{1} ? has_topic : id == others_id && others != nullptr;
    return exists ? std::optional(ModelSource::name_of(id)) : std::nullopt;
  }
  [[nodiscard]] bool send(TopicId, Task task) override {
    if (is_busy) return false;
    post_.push_back(std::move(task));
    return true;
  }
  void answer(TopicId, Task task) override { post_.push_back(std::move(task)); }

  static constexpr std::int64_t flush_ms = 300;

  ModelGroup group;
  std::unique_ptr<LetterOffice> office;
  static constexpr TopicId others_id{3};
  std::unique_ptr<TopicRuntime> others;  ///< null: there is none
  // Offices that are opened from now on have these.
  std::size_t held_bytes_max = 4 * limits::MiB;
  std::size_t sent_bytes_max = limits::letters_sent_bytes_max;
  bool has_topic = true;       ///< "orders" was not deleted
  bool has_new_topic = false;  ///< another topic has its name
  bool is_busy = false;
  bool saves_at_once = false;    ///< a fault: a save is reported, and nothing is on disk
  bool forgets_numbers = false;  ///< a fault: a restart gives the numbers of an incarnation again
  bool forgets_target = false;   ///< a fault: the group does not know to which topic its numbers belong
  std::atomic<bool> is_dead = false;
  std::atomic<std::uint64_t> events = 0;

 private:
  bool event();
  void save_group();
  void drop_others();

  std::atomic<std::uint64_t> end_at_ = 0;
  std::deque<Task> post_;
  bool has_others_ = false;
  bool others_tick_ = false;
};

}  // namespace lightq::broker
