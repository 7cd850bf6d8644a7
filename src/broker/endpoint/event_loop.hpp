/// One thread's wait: descriptors through epoll, functions posted from other threads, and timers. Layer:
/// endpoint.
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

/// Everything but `post` and `wake` belongs to the thread that calls `run` (or to whoever prepares the loop
/// before).
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void()>;

  /// What a descriptor is watched for. `hang_up` tells only, and once, that the peer has closed; `arrivals`
  /// likewise, and each time that something comes, whether what came before was read or not: for an eventfd
  /// that nobody reads.
  enum class Interest { readable, writable, readable_and_writable, hang_up, arrivals };

  /// What happened to a descriptor.
  struct Readiness {
    bool readable = false;
    bool writable = false;
    bool hung_up = false;
  };

  /// Something with a descriptor, or something that wants to be called again soon.
  class Source {
   public:
    Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    virtual ~Source() = default;
    /// As on_ready, for sources that care what happened.
    virtual void on_event(Readiness) { on_ready(); }
    /// The descriptor is readable, or call_soon asked for it. Does a bounded amount of work; if more is left,
    /// it calls call_soon(*this) (a ZMQ_FD is edge-triggered: nobody would call otherwise).
    virtual void on_ready() = 0;
    /// call_last asked for it.
    virtual void on_turn_end() {}
    /// Called behind a call that found no memory: it used the reserve, or was cut short by std::bad_alloc.
    /// Returns false if the source cannot go on after one that was cut short.
    virtual bool out_of_memory() { return false; }

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

  /// Calls source.on_event() whenever `descriptor` is ready, until unwatch. The source must live until then.
  Result<void> watch(int descriptor, Source& source, Interest interest = Interest::readable);
  /// Watches for something else from now on. Cannot fail for a descriptor that is watched: where it cannot
  /// move between the two epoll instances, the one it is in watches for it.
  void set_interest(int descriptor, Interest interest);
  void unwatch(int descriptor, Source& source);

  /// The time, asked for once within a call of a source, a timer's or posted task: near enough for what is
  /// done for many topics there, as a call's work is bounded.
  [[nodiscard]] Clock::time_point call_time() {
    if (!call_time_) call_time_ = Clock::now();
    return *call_time_;
  }

  /// The number of this turn: what is bounded for each is counted anew when it changes.
  [[nodiscard]] std::uint64_t turn() const { return turn_; }

  /// Calls source.on_ready() once more in this turn or the next, without waiting.
  void call_soon(Source& source);
  /// Calls source.on_turn_end() once when all others have been called in this turn: for what is better done
  /// once for many, such as sending.
  void call_last(Source& source);
  /// Calls source.on_ready() once when it is its turn: sources are called so one after the other, and who
  /// is not called before a turn's work is done (TurnShare) comes first in the next. At least one is in each.
  void call_by_turns(Source& source);
  /// Forgets what these were asked for; for a source that is about to go.
  void cancel_soon(Source& source);

  /// Destroys the object at the end of this turn: for one that ends within its own call.
  template <typename Object>
  void destroy_later(std::unique_ptr<Object> object) {
    dying_.push_back(std::shared_ptr<void>(std::move(object)));
  }

  using TimerId = std::uint64_t;
  /// Calls `task` once at `when`. Timers are for control work: a map, not a wheel.
  TimerId at(Clock::time_point when, Task task);
  void cancel(TimerId timer);

  /// Runs `task` on the loop's thread, in the order of posting: in a turn as many as TurnShare allows one
  /// source. Any thread. False, and the task is not run, when limits::mailbox_entries_max tasks are waiting.
  [[nodiscard]] bool post(Task task);
  /// As `post`, without the bound: for answers, whose number is bounded by the questions asked.
  void post_answer(Task task);

  /// Waits and works until `stop` is requested (a request wakes it).
  void run(const std::stop_token& stop);

 private:
  [[nodiscard]] int epoll_for(Interest interest) const {
    return interest == Interest::arrivals ? arrivals_ : epoll_;
  }
  template <typename Work>
  void call(Source& source, Work&& work);
  void wake();
  void run_arrivals();
  void dispatch(int descriptor, std::uint32_t what);
  void run_mail();
  void run_timers();
  void run_soon();
  void run_by_turns();
  void run_last();
  [[nodiscard]] int wait_ms() const;

  int epoll_ = -1;
  // Those that are watched for arrivals, in an epoll instance within epoll_. A message over a socket tells
  // the system that its sender is about to sleep, which delays the thread that is woken while both processors
  // are busy. An epoll instance between them does not pass that on.
  int arrivals_ = -1;
  int wake_ = -1;
  std::uint64_t turn_ = 1;
  std::unordered_map<int, Source*> sources_;  // by descriptor; what epoll reports is looked up here
  std::vector<Source*> soon_;                 // to be called in the next run_soon; null: cancelled
  std::vector<Source*> called_;               // being called now
  std::deque<Source*> by_turns_;              // who waits for its turn; null: cancelled
  std::vector<Source*> last_;                 // to be called at the turn's end; null: cancelled
  std::vector<Source*> ending_;               // being called then
  std::vector<std::shared_ptr<void>> dying_;
  std::optional<Clock::time_point> call_time_;  // of the call that is being made
  std::map<std::pair<Clock::time_point, TimerId>, Task> timers_;
  std::unordered_map<TimerId, Clock::time_point> timer_times_;
  TimerId next_timer_ = 1;

  std::vector<Task> taken_;    // out of mail_, to be run
  std::size_t taken_run_ = 0;  // of those

  std::mutex mail_mutex_;
  std::vector<Task> mail_;      // guarded by mail_mutex_
  std::size_t taken_left_ = 0;  // likewise: of taken_, not run yet
};

}  // namespace lightq::broker
