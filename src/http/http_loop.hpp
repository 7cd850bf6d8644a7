/// The functions of the HTTP thread that handlers use. Layer: http.
#pragma once

#include <chrono>
#include <functional>

namespace lightq::broker {

/// Runs tasks on the HTTP thread. After the server has stopped, tasks are dropped.
class HttpLoop {
 public:
  using Clock = std::chrono::steady_clock;
  using Task = std::function<void()>;

  HttpLoop() = default;
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;
  virtual ~HttpLoop() = default;

  /// Runs `task` soon, in the order of posting. Thread: any.
  virtual void post(Task task) = 0;
  /// Runs `task` after `delay`. Thread: the HTTP thread.
  virtual void after(std::chrono::milliseconds delay, Task task) = 0;
};

}  // namespace lightq::broker
