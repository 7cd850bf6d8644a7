/// Runs the event loop over epoll. Layer: net.
#include "net/event_loop.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <string>
#include <utility>

#include <lightq/base/limits.hpp>

#include "admission/memory_reserve.hpp"
#include "admission/turn_share.hpp"
#include "admission/turn_work.hpp"

namespace lightq::broker {

namespace {
constexpr int events_per_wait = 64;

std::uint32_t epoll_events(EventLoop::Interest interest) {
  switch (interest) {
    case EventLoop::Interest::readable: return EPOLLIN;
    case EventLoop::Interest::readable_and_writable: return EPOLLIN | EPOLLOUT;
    case EventLoop::Interest::writable: return EPOLLOUT;
    case EventLoop::Interest::hang_up: break;
  }
  return EPOLLRDHUP | EPOLLET;
}
}  // namespace

EventLoop::EventLoop()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)),
      arrivals_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (epoll_ < 0 || arrivals_ < 0 || wake_ < 0) {
    throw Exception({ErrorCode::io_error, "event loop: no descriptor for epoll or eventfd", errno});
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wake_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_, &event);
  // Edge-triggered, so that arrivals_ need not be asked: it reports each arrival once, whatever it was asked
  // before.
  event.events = EPOLLIN | EPOLLET;
  event.data.fd = arrivals_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, arrivals_, &event);
}

EventLoop::~EventLoop() {
  dying_.clear();  // while the members that their destructors use exist
  if (epoll_ >= 0) close(epoll_);
  if (arrivals_ >= 0) close(arrivals_);
  if (wake_ >= 0) close(wake_);
}

Result<void> EventLoop::watch(int descriptor, Source& source, Interest interest) {
  epoll_event event{};
  event.events = epoll_events(interest);
  event.data.fd = descriptor;
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    return Error{ErrorCode::io_error, "event loop: cannot watch descriptor " + std::to_string(descriptor),
                 errno};
  }
  sources_[descriptor] = &source;
  return {};
}

void EventLoop::set_interest(int descriptor, Interest interest) {
  epoll_event event{};
  event.events = epoll_events(interest);
  event.data.fd = descriptor;
  epoll_ctl(epoll_, EPOLL_CTL_MOD, descriptor, &event);
}

void EventLoop::unwatch(int descriptor, Source& source) {
  epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  sources_.erase(descriptor);
  cancel_soon(source);
}

Result<void> EventLoop::watch_arrivals(int descriptor, Source& source) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.fd = descriptor;
  if (epoll_ctl(arrivals_, EPOLL_CTL_ADD, descriptor, &event) != 0) {
    return Error{ErrorCode::io_error,
                 "event loop: cannot watch descriptor " + std::to_string(descriptor) + " for arrivals",
                 errno};
  }
  arrival_sources_[descriptor] = &source;
  return {};
}

void EventLoop::unwatch_arrivals(int descriptor) {
  epoll_ctl(arrivals_, EPOLL_CTL_DEL, descriptor, nullptr);
  arrival_sources_.erase(descriptor);
}

void EventLoop::call_soon(Source& source) {
  if (source.soon_) return;
  source.soon_ = true;
  soon_.push_back(&source);
}

void EventLoop::call_last(Source& source) {
  if (source.last_) return;
  source.last_ = true;
  last_.push_back(&source);
}

void EventLoop::call_by_turns(Source& source) {
  if (source.by_turns_) return;
  source.by_turns_ = true;
  by_turns_.push_back(&source);
}

void EventLoop::cancel_soon(Source& source) {
  const auto forget = [&source](auto& from) {
    std::replace(from.begin(), from.end(), &source, static_cast<Source*>(nullptr));
  };
  if (std::exchange(source.soon_, false)) {
    forget(soon_);
    forget(called_);
  }
  if (std::exchange(source.last_, false)) {
    forget(last_);
    forget(ending_);
  }
  if (std::exchange(source.by_turns_, false)) forget(by_turns_);
}

EventLoop::TimerId EventLoop::at(Clock::time_point when, Task task) {
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(when, id), std::move(task));
  timer_times_.emplace(id, when);
  return id;
}

void EventLoop::cancel(TimerId timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, timer});
  timer_times_.erase(found);
}

bool EventLoop::post(Task task) {
  {
    const std::lock_guard lock(mail_mutex_);
    if (mail_.size() + taken_left_ >= limits::mailbox_entries_max) return false;
    mail_.push_back(std::move(task));
    ++posted_;
  }
  wake();
  return true;
}

void EventLoop::post_answer(Task task) {
  {
    const std::lock_guard lock(mail_mutex_);
    mail_.push_back(std::move(task));
    ++posted_;
  }
  wake();
}

std::uint64_t EventLoop::posted() {
  const std::lock_guard lock(mail_mutex_);
  return posted_;
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);  // full: the loop is awake already
}

void EventLoop::run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [this] { wake(); });
  std::array<epoll_event, events_per_wait> events{};
  while (!stop.stop_requested()) {
    const int count = epoll_wait(epoll_, events.data(), events_per_wait, wait_ms());
    ++turn_;
    TurnWork::begin_turn();
    bool has_mail = !taken_.empty();
    if (arrivals_left_) run_arrivals();
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      if (event.data.fd == wake_) {
        std::uint64_t wakes = 0;
        [[maybe_unused]] const auto got = read(wake_, &wakes, sizeof wakes);
        has_mail = true;
      } else if (event.data.fd == arrivals_) {
        run_arrivals();
      } else {
        dispatch(event.data.fd, event.events);
      }
    }
    if (has_mail) run_mail();
    run_timers();
    run_soon();
    run_by_turns();
    run_last();
    dying_.clear();
    if (MemoryReserve::take_used()) MemoryReserve::refill();  // used by a timer or a posted task
  }
}

/// Calls a source. If there is no memory, only the source that needed it ends.
template <typename Work>
void EventLoop::call(Source& source, Work&& work) {
  call_time_.reset();
  if (MemoryReserve::take_used()) MemoryReserve::refill();  // used by earlier work, not by this source
  try {
    work();
  } catch (const std::bad_alloc&) {
    if (!source.out_of_memory()) MemoryReserve::give_up();
    MemoryReserve::refill();
  }
  if (!MemoryReserve::take_used()) return;
  source.out_of_memory();
  MemoryReserve::refill();
}

/// Calls the sources for which bytes have arrived. Asks the system for them only if no source knows of its
/// arrival by itself (take_woken).
void EventLoop::run_arrivals() {
  if (run_woken()) return;
  std::array<epoll_event, events_per_wait> events{};
  const int count = epoll_wait(arrivals_, events.data(), events_per_wait, 0);
  arrivals_left_ = count == events_per_wait;
  for (int i = 0; i < count; ++i) dispatch_arrival(events[static_cast<std::size_t>(i)].data.fd);
}

/// Calls the sources that know that they are woken, if there are few sources. Returns true if there was one.
/// The events of arrivals_ then stay unread for a while. A source knows of its wake before the byte arrives.
/// So the call for any byte finds every source that was woken before.
bool EventLoop::run_woken() {
  if (arrivals_left_ || arrival_sources_.size() > sources_asked_max) return false;
  if (known_in_a_row_++ == known_in_a_row_max) {
    known_in_a_row_ = 0;
    return false;
  }
  std::array<int, sources_asked_max> woken{};
  std::size_t count = 0;
  for (const auto& [descriptor, source] : arrival_sources_)
    if (source->take_woken()) woken[count++] = descriptor;
  for (std::size_t i = 0; i < count; ++i) dispatch_arrival(woken[i]);
  if (count == 0) known_in_a_row_ = 0;
  return count > 0;
}

void EventLoop::dispatch_arrival(int descriptor) {
  const auto found = arrival_sources_.find(descriptor);
  if (found == arrival_sources_.end()) return;  // an earlier event of this turn has closed it
  Source& source = *found->second;
  call(source, [&source] { source.on_event({.readable = true}); });
}

void EventLoop::dispatch(int descriptor, std::uint32_t what) {
  // Looked up again for each event: an earlier event of this turn may have closed this descriptor.
  const auto found = sources_.find(descriptor);
  if (found == sources_.end()) return;
  Source& source = *found->second;
  call(source, [&source, what] {
    source.on_event({.readable = (what & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0,
                     .writable = (what & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0,
                     .hung_up = (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0});
  });
}

/// Runs posted tasks. The tasks that exceed the turn's share run in the next turn, before tasks that are
/// posted meanwhile.
void EventLoop::run_mail() {
  if (taken_.empty()) {
    const std::lock_guard lock(mail_mutex_);
    taken_.swap(mail_);
    taken_left_ = taken_.size();
  }
  TurnShare share;
  share.begin();
  while (taken_run_ < taken_.size() && !share.is_spent()) {
    call_time_.reset();
    const Task task = std::move(taken_[taken_run_++]);
    task();
    TurnWork::add(TurnWork::task_run);
  }
  const std::lock_guard lock(mail_mutex_);
  taken_left_ = taken_.size() - taken_run_;
  if (taken_left_ > 0) return;
  taken_.clear();
  taken_run_ = 0;
  taken_.swap(mail_);  // this turn may have consumed their wake-up
  taken_left_ = taken_.size();
}

void EventLoop::run_timers() {
  if (timers_.empty()) return;
  const auto now = Clock::now();
  while (!timers_.empty() && timers_.begin()->first.first <= now) {
    const auto first = timers_.begin();
    const Task task = std::move(first->second);
    timer_times_.erase(first->first.second);
    timers_.erase(first);
    call_time_.reset();
    task();
  }
}

void EventLoop::run_soon() {
  called_.swap(soon_);
  for (std::size_t i = 0; i < called_.size(); ++i) {
    Source* const source = called_[i];
    if (source == nullptr || !source->soon_) continue;
    source->soon_ = false;
    call(*source, [source] { source->on_ready(); });
  }
  called_.clear();
}

void EventLoop::run_by_turns() {
  // A source that asks again while it is called waits for the next turn.
  for (std::size_t left = by_turns_.size(); left > 0; --left) {
    Source* const source = by_turns_.front();
    by_turns_.pop_front();
    if (source == nullptr) continue;
    source->by_turns_ = false;
    call(*source, [source] { source->on_ready(); });
    if (TurnShare::turn_is_over()) return;
  }
}

void EventLoop::run_last() {
  ending_.swap(last_);
  for (std::size_t i = 0; i < ending_.size(); ++i) {
    Source* const source = ending_[i];
    if (source == nullptr || !source->last_) continue;
    source->last_ = false;
    call(*source, [source] { source->on_turn_end(); });
  }
  ending_.clear();
}

int EventLoop::wait_ms() const {
  if (!soon_.empty() || !last_.empty() || !by_turns_.empty() || !taken_.empty() || arrivals_left_) return 0;
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first.first - Clock::now();
  if (left <= Clock::duration::zero()) return 0;
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
}

}  // namespace lightq::broker
