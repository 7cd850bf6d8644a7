/// A command on dead or delayed messages that takes several turns of its topic's loop. Layer: broker.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <lightq/base/result.hpp>

#include "net/event_loop.hpp"
#include "topic/runtime/topic_reads.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// Calls a function in turns of the loop until it has done all. It lives as long as it has work: it owns
/// itself through the tasks that it posts, or while it waits for the store. Thread: the reactor's of the
/// topic.
class DeadWork final : public ReadWaiter, public std::enable_shared_from_this<DeadWork> {
 public:
  /// When to call the function again.
  enum class Then {
    done,       ///< never
    next_turn,  ///< in the next turn
    readable,   ///< when the topic's store reports that pending messages can be read
  };
  using Piece = std::function<Then(TopicRuntime&)>;
  using Failed = std::function<void(const Error&)>;

  /// Lifetime: the loop outlives the work.
  struct Parts {
    EventLoop& loop;
    /// Returns the topic. Errors: it is gone, or the broker stops.
    std::function<Result<TopicRuntime*>()> find;
    Piece piece;
    Failed failed;  ///< called once if `find` returns an error; the function is not called any more
  };

  explicit DeadWork(Parts parts) : parts_(std::move(parts)) {}

  /// Calls the function for `topic` now, and later as often as it returns.
  static void begin(Parts parts, TopicRuntime& topic) {
    std::make_shared<DeadWork>(std::move(parts))->work(topic);
  }
  void readable() override {
    post();
    self_.reset();
  }

 private:
  void work(TopicRuntime& topic) {
    switch (parts_.piece(topic)) {
      case Then::done: return;
      case Then::next_turn: return post();
      case Then::readable:
        if (const auto found = parts_.find(); !found) return parts_.failed(found.error());
        self_ = shared_from_this();
        topic.reads().await(*this);
    }
  }
  void post() {
    parts_.loop.post_answer([self = shared_from_this()] {
      const auto topic = self->parts_.find();
      topic ? self->work(**topic) : self->parts_.failed(topic.error());
    });
  }

  const Parts parts_;
  std::shared_ptr<DeadWork> self_;  // while it waits for the store, which calls it back
};

}  // namespace lightq::broker
