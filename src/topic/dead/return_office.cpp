/// Executes commands on letters, and takes letters back. Layer: topic.
#include "topic/dead/return_office.hpp"

#include <algorithm>
#include <chrono>

#include "topic/dead/letter_office.hpp"

namespace lightq::broker {

namespace {

constexpr auto letters_again_after = std::chrono::milliseconds(20);
constexpr int failed_reads_max = 100;

Error no_topic() {
  return {ErrorCode::topic_not_found, "topic not found"};
}
Error stopping() {
  return {ErrorCode::shutting_down, "the broker is stopping"};
}

}  // namespace

// --- Commands that read. ---

void ReturnOffice::list(TopicId topic, DeadFilter filter, Offset from, std::size_t most, Listed listed) {
  begin({.topic = topic,
         .filter = std::move(filter),
         .from = from,
         .most = most,
         .listed = std::move(listed),
         .acted = {}});
}

void ReturnOffice::act(TopicId topic, LetterAction action, DeadFilter filter, MayReturn may, Acted acted) {
  if (filter.state == DeadState::dead_waiting) return acted(LetterCounts());  // nothing acts on these
  filter.state = DeadState::parked;
  if (action != LetterAction::give_back) {
    return begin({.topic = topic,
                  .filter = std::move(filter),
                  .purges = action == LetterAction::purge,
                  .from = Offset{0},
                  .most = 0,
                  .listed = {},
                  .acted = std::move(acted)});
  }
  if (stopped_) return acted(stopping());
  LetterReturns* const returns = returns_of(topic);
  if (returns == nullptr) return acted(no_topic());
  returns->add({std::move(filter), std::move(may), std::move(acted)});
}

void ReturnOffice::begin(Walk walk_begun) {
  const std::uint64_t number = ++last_number_;
  const auto of_topic = std::ranges::count_if(
      walks_, [&](const auto& entry) { return entry.second.topic == walk_begun.topic; });
  const bool is_free = static_cast<std::size_t>(of_topic) < walks_of_topic_max && walks_.size() < walks_max;
  walks_.emplace(number, std::move(walk_begun));
  if (stopped_) return end_walk(number, stopping());
  if (!is_free) return end_walk(number, Error{ErrorCode::busy, "too many commands read letters"});
  want_piece(number);
}

/// Does a piece of reading when it is its turn.
void ReturnOffice::want_turn(std::function<void()> piece) {
  due_.push_back(std::move(piece));
  if (due_timer_ != 0) return;
  due_timer_ = parts_.loop.at(EventLoop::Clock::now(), [this] { next_piece(); });
}

void ReturnOffice::want_piece(std::uint64_t number) {
  want_turn([this, number] { walk(number); });
}

/// Does the next one of the pieces that wait.
void ReturnOffice::next_piece() {
  due_timer_ = 0;
  const auto piece = std::move(due_.front());
  due_.pop_front();
  if (!due_.empty()) due_timer_ = parts_.loop.at(EventLoop::Clock::now(), [this] { next_piece(); });
  piece();
}

/// Does the next piece of a command.
void ReturnOffice::walk(std::uint64_t number) {
  const auto found = walks_.find(number);
  if (found == walks_.end()) return;
  Walk& walk = found->second;
  walk.timer = 0;
  TopicRuntime* const topic = parts_.find_topic(walk.topic);
  if (topic == nullptr) return end_walk(number, no_topic());
  topic->letter_book().forget_before(topic->store().first_offset());
  constexpr std::size_t letters_of_piece = 256;
  const std::size_t most = walk.most == 0 ? letters_of_piece : walk.most - walk.list.letters.size();
  LetterPiece piece = scan_letters(*topic, walk.filter, {.from = *walk.from, .letters = most});
  const bool has_moved = piece.next != walk.from;
  walk.from = piece.next;
  walk.messages += piece.letters.size();
  if (walk.purges) {
    if (topic->letter_book().is_full())
      return end_walk(number, Error{ErrorCode::limit_reached, "the topic has too many settled letters"});
    for (const FoundLetter& letter : piece.letters)
      topic->letter_book().settle({letter.offset, letter.offset + 1});
    if (!piece.letters.empty()) topic->letters().changed();
  }
  if (walk.most != 0) {
    for (FoundLetter& letter : piece.letters) walk.list.letters.push_back(std::move(letter));
    if (has_moved) --walk.pieces_left;
    if (walk.list.letters.size() >= walk.most || walk.pieces_left == 0) return end_walk(number, {});
  }
  if (!walk.from) return end_walk(number, {});
  if (!piece.is_pending) {
    walk.failed_reads = 0;
    return want_piece(number);
  }
  if (!piece.is_reading && ++walk.failed_reads > failed_reads_max)
    return end_walk(number, Error{ErrorCode::io_error, "letters cannot be read now"});
  walk.timer =
      parts_.loop.at(EventLoop::Clock::now() + letters_again_after, [this, number] { want_piece(number); });
}

void ReturnOffice::end_walk(std::uint64_t number, const Result<void>& result) {
  auto node = walks_.extract(number);
  Walk& walk = node.mapped();
  parts_.loop.cancel(walk.timer);
  if (walk.most != 0) {
    if (!result) return walk.listed(result.error());
    walk.list.next = walk.from;
    return walk.listed(std::move(walk.list));
  }
  if (!result) return walk.acted(result.error());
  const LetterCounts counts{.messages = walk.messages};
  if (!walk.purges) return walk.acted(counts);
  parts_.find_topic(walk.topic)
      ->letters()
      .save([counts, acted = walk.acted](const Result<std::uint64_t>& saved) {
        saved ? acted(counts) : acted(saved.error());
      });
}

// --- Giving back. ---

LetterReturns* ReturnOffice::returns_of(TopicId topic) {
  if (const auto found = returns_.find(topic); found != returns_.end()) return found->second.get();
  TopicRuntime* const runtime = parts_.find_topic(topic);
  if (runtime == nullptr || post_ == nullptr) return nullptr;
  auto& returns = returns_[topic];
  returns = std::make_shared<LetterReturns>(
      LetterReturns::Parts{.loop = parts_.loop,
                           .sink = parts_.sink,
                           .post = *post_,
                           .topic = *runtime,
                           .number = ++last_number_,
                           .want_turn = [this](auto piece) { want_turn(std::move(piece)); }});
  return returns.get();
}

void ReturnOffice::resume(TopicId topic) {
  if (stopped_) return;
  if (LetterReturns* const returns = returns_of(topic)) returns->work();
}

void ReturnOffice::receive(LetterChannel channel, const std::shared_ptr<const ReturnParcel>& parcel,
                           TopicId topic, std::size_t first) {
  TopicRuntime* const runtime = stopped_ ? nullptr : parts_.find_topic(topic);
  if (runtime == nullptr)
    return answer(channel, {.end = parcel->returned[first].letter, .stop = ReturnAnswer::Stop::topic_gone});
  const auto receiver = std::make_shared<LetterReceiver>(
      parts_.loop, *runtime, parts_.room, parcel, first,
      [this, channel](const ReturnAnswer& result) { answer(channel, result); });
  receivers_[channel] = {topic, receiver};
  receiver->work();
}

/// Sends the answer, and destroys the receiver in a later turn.
void ReturnOffice::answer(LetterChannel channel, const ReturnAnswer& answer) {
  if (const auto done = receivers_.extract(channel))
    parts_.loop.destroy_later(std::make_unique<Receiving>(std::move(done.mapped())));
  post_->answer(channel.source,
                [channel, answer](LetterOffice& there) { there.returns().answered(channel, answer); });
}

void ReturnOffice::answered(LetterChannel channel, const ReturnAnswer& answer) {
  const auto found = returns_.find(channel.source);
  if (found == returns_.end()) return;
  const auto returns = found->second;  // it may be forgotten meanwhile
  returns->answered(channel, answer);
}

// --- Ends. ---

void ReturnOffice::forget(TopicId topic) {
  if (const auto gone = returns_.extract(topic)) gone.mapped()->end(no_topic());
  std::vector<std::uint64_t> walks;
  for (const auto& [number, walk] : walks_)
    if (walk.topic == topic) walks.push_back(number);
  for (const std::uint64_t number : walks) end_walk(number, no_topic());
  std::vector<LetterChannel> channels;
  for (const auto& [channel, receiving] : receivers_)
    if (receiving.topic == topic) channels.push_back(channel);
  for (const LetterChannel& channel : channels)
    answer(channel, {.end = Offset{0}, .stop = ReturnAnswer::Stop::topic_gone});
}

void ReturnOffice::stop() {
  stopped_ = true;
  for (const auto& [topic, returns] : std::exchange(returns_, {})) returns->end(stopping());
  while (!walks_.empty()) end_walk(walks_.begin()->first, stopping());
  parts_.loop.cancel(std::exchange(due_timer_, 0));
  due_.clear();
  receivers_.clear();
}

}  // namespace lightq::broker
