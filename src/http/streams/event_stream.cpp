/// One open stream of server-sent events. Layer: http.
#include "http/streams/event_stream.hpp"

#include <chrono>
#include <utility>

#include "http/messages/message_text.hpp"
#include "http/problem.hpp"
#include "http/streams/event_text.hpp"

namespace lightq::broker {

namespace {
// Between two attempts to reach a reactor that has too many tasks.
constexpr auto retry_pause = std::chrono::milliseconds(500);
}  // namespace

void EventStream::opened(const StreamOpened& opened) {
  parts_.loop.post([self = shared_from_this(), opened] { self->begin(opened); });
}

void EventStream::sent(StreamedMessages messages) {
  const auto kept = std::make_shared<const StreamedMessages>(std::move(messages));
  parts_.loop.post([self = shared_from_this(), kept] { self->add(*kept); });
}

void EventStream::ended(const Error& why) {
  parts_.loop.post([self = shared_from_this(), why] { self->end(why); });
}

void EventStream::begin(const StreamOpened& opened) {
  if (state_ != State::opening) return;
  state_ = State::beginning;
  is_sending_ = true;
  stream_ = opened.stream;
  HttpResponse response{.content_type = "text/event-stream",
                        .body = first_text(opened.lease == 0 ? std::string() : name_of_lease(opened.lease)),
                        .is_stream = true};
  response.not_sent = [self = shared_from_this()] { self->on_closed(); };
  response.taken = [self = shared_from_this()] { self->on_taken(); };
  parts_.reply(std::move(response));
}

void EventStream::add(const StreamedMessages& messages) {
  if (state_ == State::over) return;
  append_events(messages, waiting_);
  waiting_amount_ += messages.amount;
  waiting_held_.push_back(messages.held);
  send_waiting();
}

void EventStream::end(const Error& why) {
  const HttpResponse shown = problem(why);
  if (state_ == State::opening) {
    state_ = State::over;
    return parts_.reply(shown);
  }
  if (state_ == State::over) return;
  waiting_ += end_text(shown);
  ends_ = true;
  send_waiting();
}

void EventStream::on_taken() {
  if (state_ == State::over) return;
  if (state_ == State::beginning) {
    state_ = State::open;
    parts_.loop.after(parts_.heartbeat, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->beat();
    });
  }
  is_sending_ = false;
  sent_held_.clear();
  taken_amount_ += std::exchange(sent_amount_, {});
  report();
  send_waiting();
}

void EventStream::on_closed() {
  if (std::exchange(state_, State::over) == State::over) return;
  waiting_ = {};
  waiting_held_.clear();
  sent_held_.clear();
  leave_desk();
}

void EventStream::send_waiting() {
  if (state_ != State::open || is_sending_ || waiting_.empty()) return;
  is_sending_ = true;
  sent_amount_ = std::exchange(waiting_amount_, {});
  sent_held_ = std::exchange(waiting_held_, {});
  const std::string text = std::exchange(waiting_, {});
  if (ends_) state_ = State::over;
  parts_.send_more(text, ends_);
}

void EventStream::report() {
  if (taken_amount_.messages == 0) return;
  // If the reactor has too many tasks, the next heartbeat tries again.
  const bool told = parts_.at_desk(
      [stream = stream_, taken = taken_amount_](MessageDesk& desk) { desk.written(stream, taken); });
  if (told) taken_amount_ = {};
}

/// Gives the messages in flight to others. Tries again while the reactor has too many tasks.
void EventStream::leave_desk() {
  const bool told = parts_.at_desk([stream = stream_](MessageDesk& desk) { desk.end_stream(stream); });
  if (told) return;
  parts_.loop.after(retry_pause, [self = shared_from_this()] { self->leave_desk(); });
}

void EventStream::beat() {
  if (state_ != State::open) return;
  report();
  if (!is_sending_) {
    is_sending_ = true;
    parts_.send_more(heartbeat_text, false);
  }
  parts_.loop.after(parts_.heartbeat, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->beat();
  });
}

}  // namespace lightq::broker
