/// The boundary between C and C++: codes for errors and exceptions, and one thread at a time for each handle.
/// Layer: capi.
#pragma once

#include <cxxabi.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <string_view>
#include <utility>

#include <lightq/lightq.h>
#include <lightq/base/error.hpp>
#include <lightq/base/home_process.hpp>
#include <lightq/base/result.hpp>
#include <lightq/options.hpp>

namespace lightq::capi {

/// Thrown in place of an exception that left a callback of the program.
struct CallbackThrew {};

/// Returns the C code of an error code.
int code_of(ErrorCode code) noexcept;

/// Sets the error of this thread, and returns its code.
int fail(int code, std::string_view text, int system_error = 0) noexcept;
int fail(const Error& error) noexcept;
int fail_argument(std::string_view text) noexcept;
/// Sets the error for the exception that is being handled. Requires: it is called in a catch block.
int fail_by_exception() noexcept;
/// Returns LIGHTQ_OK or the code of the error, which it sets.
inline int code_of(const Result<void>& done) noexcept {
  return done ? LIGHTQ_OK : fail(done.error());
}

/// Returns what `call` returns, or the code of the exception that it throws. Lets the cancellation of a
/// thread pass, because the C library ends a process that stops it.
template <typename Call>
int guarded(Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return fail_by_exception();
  }
}

/// Calls a callback of the program. Throws CallbackThrew if it throws.
template <typename Call>
void call_back(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    throw CallbackThrew();
  }
}

/// The thread that is in a call on a handle. Thread: any.
class Occupant {
 public:
  enum class Entry { first, nested, refused };

  Entry enter() noexcept {
    const pthread_t me = pthread_self();
    pthread_t found{};
    if (thread_.compare_exchange_strong(found, me, std::memory_order_acquire, std::memory_order_relaxed))
      return Entry::first;
    return pthread_equal(found, me) != 0 ? Entry::nested : Entry::refused;
  }
  /// Returns false in a child of the process that made the handle.
  [[nodiscard]] bool is_here() const noexcept { return home_.is_here(); }
  void leave() noexcept { thread_.store({}, std::memory_order_release); }

 private:
  std::atomic<pthread_t> thread_{};  // zero: none
  HomeProcess home_;
};

/// One call on a handle.
class Turn {
 public:
  explicit Turn(Occupant& occupant) noexcept : occupant_(occupant), entry_(occupant.enter()) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (entry_ == Occupant::Entry::first) occupant_.leave();
  }
  [[nodiscard]] bool is_first() const { return entry_ == Occupant::Entry::first; }
  /// Returns true if this call, or an outer one of the same thread, has the handle.
  [[nodiscard]] bool is_own() const { return entry_ != Occupant::Entry::refused; }

 private:
  Occupant& occupant_;
  const Occupant::Entry entry_;
};

/// Sets the error for a handle that is null, that the parent process has opened, or that a call uses already.
int fail_null_handle() noexcept;
int fail_forked() noexcept;
int fail_in_use() noexcept;

/// Makes a call on a handle: `call(*handle)`, within `guarded`. `may_nest`: also inside its callbacks.
template <typename Handle, typename Call>
int in_turn(Handle* handle, Call&& call, bool may_nest = false) {
  if (handle == nullptr) [[unlikely]]
    return fail_null_handle();
  if (!handle->occupant.is_here()) [[unlikely]]
    return fail_forked();
  const Turn turn(handle->occupant);
  if (!(may_nest ? turn.is_own() : turn.is_first())) [[unlikely]]
    return fail_in_use();
  return guarded([&] { return std::forward<Call>(call)(*handle); });
}

/// Destroys a handle that no call uses.
template <typename Handle>
int free_handle(Handle* handle) {
  if (handle == nullptr) return LIGHTQ_OK;
  if (handle->occupant.enter() != Occupant::Entry::first) {
    return fail_in_use();  // a nested entry has nothing to leave
  }
  return guarded([&] {
    delete handle;
    return LIGHTQ_OK;
  });
}

/// Returns a timeout that C has given: negative ones mean without limit.
inline Timeout timeout_of(int milliseconds) {
  constexpr Timeout without_limit = std::chrono::hours(24 * 400);
  return milliseconds < 0 ? without_limit : Timeout(milliseconds);
}

}  // namespace lightq::capi
