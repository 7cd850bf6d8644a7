/// A thread's event loop: descriptors through epoll, tasks from other threads, and timers. Layer: net.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Calls sources when their descriptors are ready, and runs timers and posted tasks. A turn is one pass of
/// the loop. Thread: the one that calls `run`, or that prepares the loop before. Any thread may call `post`
/// and `post_answer`.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void()>;

  /// The events that a descriptor is watched for. `hang_up` reports only, and once, that the peer has closed.
  enum class Interest { readable, writable, readable_and_writable, hang_up };

  /// The events that have happened to a descriptor.
  struct Readiness {
    bool readable = false;
    bool writable = false;
    bool hung_up = false;
  };

  /// An object with a descriptor, or one that asks to be called again soon.
  class Source {
   public:
    Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    virtual ~Source() = default;
    /// Called when the descriptor is ready, for sources that need to know the events. Calls on_ready by
    /// default.
    virtual void on_event(Readiness) { on_ready(); }
    /// Called when the descriptor is readable, or after call_soon or call_by_turns. Does a bounded amount of
    /// work. If more is left, it calls call_soon(*this): bytes that were already received cause no further
    /// call.
    virtual void on_ready() = 0;
    /// Called after call_last.
    virtual void on_turn_end() {}
    /// Called after a call that found no memory: it used the reserve, or was cut short by std::bad_alloc.
    /// Returns false if the source cannot continue after a call that was cut short.
    virtual bool out_of_memory() { return false; }
    /// Returns true if the peer has woken this source; costs no system call. The loop asks every source of
    /// watch_arrivals when bytes arrive for one of them, and calls those that return true as readable. With
    /// many sources it asks the system instead.
    virtual bool take_woken() { return false; }

   private:
    friend class EventLoop;
    bool soon_ = false;
    bool last_ = false;
    bool by_turns_ = false;
  };

  EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop();

  /// Calls source.on_event() whenever `descriptor` is ready, until unwatch. Lifetime: the source exists until
  /// then. Errors: io_error.
  Result<void> watch(int descriptor, Source& source, Interest interest = Interest::readable);
  /// Changes the events that a watched descriptor is watched for.
  void set_interest(int descriptor, Interest interest);
  void unwatch(int descriptor, Source& source);

  /// Calls source.on_event() as readable for each arrival of bytes at `descriptor`, whether or not earlier
  /// bytes were read, until unwatch_arrivals. `watch` may watch the same descriptor too. Lifetime: as for
  /// `watch`. Errors: io_error.
  Result<void> watch_arrivals(int descriptor, Source& source);
  void unwatch_arrivals(int descriptor);

  /// Returns the time, read once in each call of a source, timer or posted task. It is precise enough for
  /// work on many topics in one call, because a call's work is bounded.
  [[nodiscard]] Clock::time_point call_time() {
    if (!call_time_) call_time_ = Clock::now();
    return *call_time_;
  }

  /// Returns the number of this turn. Limits per turn start anew when it changes.
  [[nodiscard]] std::uint64_t turn() const { return turn_; }

  /// Calls source.on_ready() once more in this turn or the next, without waiting.
  void call_soon(Source& source);
  /// Calls source.on_turn_end() once, after all other calls of this turn: for work that is better done once
  /// for many, such as sending.
  void call_last(Source& source);
  /// Calls source.on_ready() once when its turn comes. Sources are called in the order in which they asked,
  /// at least one in each turn. Sources that remain when a turn's work is done (TurnShare) come first in the
  /// next turn.
  void call_by_turns(Source& source);
  /// Cancels all calls that the source asked for. Call it before the source is destroyed.
  void cancel_soon(Source& source);

  /// Destroys the object at the end of this turn: for an object that ends within its own call.
  template <typename Object>
  void destroy_later(std::unique_ptr<Object> object) {
    dying_.push_back(std::shared_ptr<void>(std::move(object)));
  }

  using TimerId = std::uint64_t;
  /// Calls `task` once at `when`. Timers are for control work, so they are in a map, not in a timer wheel.
  TimerId at(Clock::time_point when, Task task);
  void cancel(TimerId timer);

  /// Runs `task` on the loop's thread, in the order of posting. One turn runs as many tasks as TurnShare
  /// allows one source. Returns false, and does not run the task, if limits::mailbox_entries_max tasks are
  /// waiting. Thread: any.
  [[nodiscard]] bool post(Task task);
  /// Posts a task as `post` does, without the bound: for replies, because the number of requests bounds them.
  /// Thread: any.
  void post_answer(Task task);

  /// Returns the number of tasks that `post` and `post_answer` have accepted so far. Thread: any.
  [[nodiscard]] std::uint64_t posted();

  /// Runs the loop until `stop` is requested. The request wakes the loop.
  void run(const std::stop_token& stop);

 private:
  // The loop calls take_woken of up to this many sources. With more, it asks the system for the arrivals.
  static constexpr std::size_t sources_asked_max = 8;
  // After this many arrivals in a row that sources knew of, the system is asked. So no source that claims to
  // be woken each time keeps the arrivals of others from being told.
  static constexpr unsigned known_in_a_row_max = 8;

  template <typename Work>
  void call(Source& source, Work&& work);
  void wake();
  void run_arrivals();
  bool run_woken();
  void dispatch(int descriptor, std::uint32_t what);
  void dispatch_arrival(int descriptor);
  void run_mail();
  void run_timers();
  void run_soon();
  void run_by_turns();
  void run_last();
  [[nodiscard]] int wait_ms() const;

  int epoll_ = -1;
  // Watches descriptors for arrivals, in an epoll instance within epoll_. A message over a socket tells the
  // system that its sender is about to sleep. While both processors are busy, this delays the thread that is
  // woken. An epoll instance in between does not pass that on.
  int arrivals_ = -1;
  bool arrivals_left_ = false;  // arrivals_ may have more events
  unsigned known_in_a_row_ = 0;
  int wake_ = -1;
  std::uint64_t turn_ = 1;
  std::unordered_map<int, Source*> sources_;          // by descriptor; looked up for each event of epoll
  std::unordered_map<int, Source*> arrival_sources_;  // by descriptor of watch_arrivals
  std::vector<Source*> soon_;                         // to call in the next run_soon; null: cancelled
  std::vector<Source*> called_;                       // to call in the present run_soon
  std::deque<Source*> by_turns_;                      // waiting for their turn; null: cancelled
  std::vector<Source*> last_;                         // to call at the turn's end; null: cancelled
  std::vector<Source*> ending_;                       // to call in the present run_last
  std::vector<std::shared_ptr<void>> dying_;
  std::optional<Clock::time_point> call_time_;  // of the present call
  std::map<std::pair<Clock::time_point, TimerId>, Task> timers_;
  std::unordered_map<TimerId, Clock::time_point> timer_times_;
  TimerId next_timer_ = 1;

  std::vector<Task> taken_;    // taken out of mail_ to run
  std::size_t taken_run_ = 0;  // how many of taken_ have run

  std::mutex mail_mutex_;
  std::vector<Task> mail_;      // guarded by mail_mutex_
  std::uint64_t posted_ = 0;    // guarded by mail_mutex_
  std::size_t taken_left_ = 0;  // guarded by mail_mutex_: how many of taken_ have not run
};

}  // namespace lightq::broker
