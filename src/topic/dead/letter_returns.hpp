/// Gives letters of one dead-letter topic back to the groups in which they died. Layer: topic.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "log/offsets/offset_set.hpp"
#include "net/event_loop.hpp"
#include "topic/dead/letter_post.hpp"
#include "topic/dead/letter_scan.hpp"
#include "topic/dead/returned_letter.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Returns true if the asker of a command may give letters back to this topic. Thread: any.
using MayReturn = std::function<bool(std::string_view topic)>;

/// Executes commands that give letters back, one after the other. The steps, for at most run_letters_max
/// letters at a time:
///
/// 1. Choose letters, and save them as a run under a random number (LetterBook).
/// 2. Send the letters of each group to the source topic, in the order of their offsets (LetterReceiver). It
///    does each of them once for this number, and answers when that is durable.
/// 3. Settle the letters that are done. The next save of the cursors contains that. The next run is saved
///    with it, before it is sent.
///
/// After a crash, a start finds the run and continues with step 2. So a letter that was sent is given back
/// once, and one that was not sent waits still, or is given back then. docs/adr/0062-*.md has the argument.
///
/// The source topic may be full or failing. Then the run waits, a second at first and a minute at most. The
/// command ends with an error after three attempts, or when answer_wait is over. Other topics are not
/// affected.
/// ReturnOffice owns it. Thread: the reactor's of the dead-letter topic.
class LetterReturns final : public std::enable_shared_from_this<LetterReturns> {
 public:
  static constexpr std::size_t run_letters_max = 256;
  static constexpr std::uint64_t run_bytes_max = 256 * limits::KiB;  ///< one letter may be longer
  static constexpr std::size_t wishes_max = 16;  ///< commands at a time; further ones are answered `busy`
  static constexpr std::chrono::seconds rest_min{1};
  static constexpr std::chrono::seconds rest_max{60};
  static constexpr std::chrono::seconds answer_wait{10};  ///< then the command ends with an error

  /// A command. `done` is called once.
  struct Wish {
    DeadFilter filter;
    MayReturn may;
    std::function<void(const Result<LetterCounts>&)> done;
  };
  /// Lifetime: all of them outlive this.
  struct Parts {
    EventLoop& loop;
    LogSink& sink;
    LetterPost& post;
    TopicRuntime& topic;
    std::uint64_t number;  ///< of this object; not used again while the process runs
    /// Calls the function in a turn in which no other letters are read.
    std::function<void(std::function<void()>)> want_turn;
  };

  explicit LetterReturns(const Parts& parts) : parts_(parts) {}
  LetterReturns(const LetterReturns&) = delete;
  LetterReturns& operator=(const LetterReturns&) = delete;
  ~LetterReturns() { parts_.loop.cancel(timer_); }

  /// Adds a command.
  void add(Wish wish);
  /// Continues a run that a start has found, or the present command.
  void work();
  /// Called with the answer of the source topic.
  void answered(LetterChannel channel, const ReturnAnswer& answer);
  /// Ends all commands with an error. Nothing else is called afterwards.
  void end(const Error& why);

 private:
  enum class Step : std::uint8_t { idle, saving, sending, resting, ended };
  /// The source topic and the group of letters.
  using Address = std::pair<std::string, std::string>;
  struct Parcel {
    std::shared_ptr<ReturnParcel> letters;
    std::size_t first = 0;  // the letters before are done
  };

  void read();
  void take(FoundLetter& found);
  void leave_out_settled();
  void clear_choice();
  void begin_run();
  void saved(const Result<std::uint64_t>& result);
  void send();
  void settle(Parcel& parcel, const ReturnAnswer& answer);
  void drop_parcel(Parcel& parcel, std::uint64_t& count, bool whole);
  void end_run();
  void finish_wish();
  void end_wish(const Result<LetterCounts>& result);
  void end_waiting(const std::string& why);
  void reset_search();
  void rest(const std::string& why);
  void await_answer();
  void work_at(EventLoop::Clock::time_point when);
  void read_next();
  void timed();
  template <typename Call>
  auto if_alive(Call call);
  [[nodiscard]] LetterBook& book() const { return parts_.topic.letter_book(); }
  [[nodiscard]] std::string name() const { return "topic " + parts_.topic.definition().name.text(); }

  const Parts parts_;
  Step step_ = Step::idle;
  EventLoop::TimerId timer_ = 0;

  // The present command.
  std::deque<Wish> wishes_;  // the first one is under way
  LetterCounts counts_;
  log::OffsetSet passed_;   // letters that stay where they are
  std::set<Address> gone_;  // groups that do not exist

  // The run, or the one that is being chosen.
  std::optional<Offset> from_ = Offset{0};  // the place of the search; nothing: at the end
  Offset run_from_;                         // its place when this run was begun
  bool is_recovering_ = false;              // the run was found by the start
  bool is_chosen_ = false;                  // the run is complete, and saved
  bool again_ = false;  // letters of this run were left out: the next one begins with them
  std::map<Address, Parcel> parcels_;
  log::OffsetSet chosen_;
  std::uint64_t chosen_bytes_ = 0;
  std::uint64_t attempt_ = 0;
  int pending_reads_ = 0;
  int laters_ = 0;
  int failures_ = 0;  // one after the other
};

}  // namespace lightq::broker
