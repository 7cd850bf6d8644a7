/// Wakes a client that shares memory with the broker, by its socket or by a timerfd. Layer: net.
#include "net/shared_wake.hpp"

#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <cerrno>

#include <lightq/base/socket_wake.hpp>

namespace lightq::broker {

Result<SharedWake> SharedWake::by_descriptors() {
  SharedWake made;
  made.of_broker_ = UniqueFd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // The client's descriptor is no eventfd. The client could clear O_NONBLOCK, which both processes'
  // descriptors share, and fill the count: then a write would wait. Setting a timer never waits.
  made.of_client_ = UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (made.of_broker_.valid() && made.of_client_.valid()) return made;
  const bool full = errno == EMFILE || errno == ENFILE;
  return Error{full ? ErrorCode::limit_reached : ErrorCode::io_error,
               "cannot create an eventfd and a timerfd", errno};
}

void SharedWake::wake_client() const {
  if (by_socket()) return send_wake(socket_);
  itimerspec long_ago{};
  long_ago.it_value.tv_nsec = 1;
  timerfd_settime(of_client_.get(), TFD_TIMER_ABSTIME, &long_ago, nullptr);
}

}  // namespace lightq::broker
