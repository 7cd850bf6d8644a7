/// One open stream of live statistics. Layer: http.
#include "http/streams/stats_stream.hpp"

#include <algorithm>
#include <utility>

#include "http/problem.hpp"
#include "http/streams/event_text.hpp"

namespace lightq::broker {

namespace {
constexpr std::size_t page_topics = 256;
constexpr std::size_t page_entries = 2048;
// Reading the descriptors of the process takes long with many of them.
constexpr std::uint64_t rounds_between_processes = 5;
// Rounds take at most a quarter of the time, so that a slow broker is asked less often.
constexpr int pauses_per_round = 3;
constexpr auto pause_max = std::chrono::milliseconds(10'000);
}  // namespace

void StatsStream::begin() {
  HttpResponse response{
      .content_type = "text/event-stream", .body = std::string(heartbeat_text), .is_stream = true};
  response.not_sent = [self = shared_from_this()] { self->state_ = State::over; };
  response.taken = [self = shared_from_this()] { self->on_taken(); };
  parts_.reply(std::move(response));
}

void StatsStream::on_taken() {
  if (state_ == State::over) return;
  state_ = State::open;
  if (rounds_ == 0) return begin_round();
  if (is_in_round_) return ask();
  rest();
}

void StatsStream::begin_round() {
  if (state_ != State::open) return;
  ++rounds_;
  began_ = Clock::now();
  is_in_round_ = true;
  after_.reset();
  figures_.reset();
  text_.begin_round();
  ask();
}

/// Waits for the next round.
void StatsStream::rest() {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  is_in_round_ = false;
  const auto took = duration_cast<milliseconds>(Clock::now() - began_);
  const auto pause = std::max(parts_.interval - took, std::min(pauses_per_round * took, pause_max));
  parts_.loop.after(std::max(pause, milliseconds(1)), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->begin_round();
  });
}

void StatsStream::ask() {
  const bool posted =
      parts_.at_control([self = shared_from_this()](Operations& operations) { self->ask_page(operations); });
  if (!posted) rest();
}

/// Thread: the control thread. Nothing else uses the members that it reads before `received` is called.
void StatsStream::ask_page(Operations& operations) {
  StatsOperations& stats = operations.stats();
  const auto answer = [self = shared_from_this()](Result<StatsPage> read) {
    const auto page = std::make_shared<const Result<StatsPage>>(std::move(read));
    self->parts_.loop.post([self, page] { self->received(*page); });
  };
  if (!stats.knows(parts_.asker)) return answer(Error{ErrorCode::unauthorized_access, "the login has ended"});
  TopicsWanted wanted;
  wanted.after = after_;
  wanted.topics_max = page_topics;
  wanted.entries_max = page_entries;
  if (after_ || !stats.describes_broker_to(parts_.asker)) return stats.topics(parts_.asker, wanted, answer);
  stats.broker([self = shared_from_this(), &stats, wanted, answer](Result<protocol::BrokerStats> read) {
    if (!read) return answer(read.error());
    self->figures_.emplace();
    self->figures_->stats = std::move(*read);
    self->figures_->connections.control = self->parts_.control_connections();
    stats.topics(self->parts_.asker, wanted, answer);
  });
}

void StatsStream::received(const Result<StatsPage>& page) {
  if (state_ != State::open) return;
  if (page) return take_page(*page);
  const ErrorCode code = page.error().code;
  if (code == ErrorCode::unauthorized_access || code == ErrorCode::shutting_down) return end(page.error());
  rest();
}

void StatsStream::take_page(const StatsPage& page) {
  bool has_room = true;
  for (const protocol::TopicStats& topic : page.topics) {
    has_room = has_room && text_.add(topic);
    if (!figures_) continue;
    figures_->connections.producers += topic.publishers_count;
    figures_->connections.consumers += topic.subscribers_count;
  }
  const auto next = TopicName::parse(page.continue_after);
  if (!next || !has_room) return end_round();
  after_ = *next;
  parts_.send_more(text_.take(), false);
}

void StatsStream::end_round() {
  if (figures_) {
    figures_->connections.http = parts_.http_connections();
    if (rounds_ % rounds_between_processes == 1) {
      figures_->process = process_use();
      figures_->disk = parts_.disk();
    }
  }
  is_in_round_ = false;
  parts_.send_more(text_.take_last(figures_), false);
}

void StatsStream::end(const Error& why) {
  state_ = State::over;
  const bool is_login = why.code == ErrorCode::unauthorized_access;
  parts_.send_more(end_text(is_login ? problem(401, why.code, why.message) : problem(why)), true);
}

}  // namespace lightq::broker
