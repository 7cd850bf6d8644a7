/// Takes letters back in the topic in which they died. Layer: topic.
#include "topic/dead/letter_receiver.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "admission/memory_reserve.hpp"

namespace lightq::broker {

namespace {

constexpr std::size_t letters_of_turn = 32;

/// The number of a letter in a producer.
std::uint64_t number_of(Offset letter) {
  return run_sequences_begin - own_sequences_begin + letter.value + 1;
}

/// A turn that takes one message, and tells whether it is a letter's.
class ProbeTurn {
 public:
  explicit ProbeTurn(const ReturnedLetter& letter) : letter_(letter) {}
  [[nodiscard]] bool has_budget() const { return !found_; }
  [[nodiscard]] static bool can_take() { return true; }
  [[nodiscard]] SliceLimits limits() const { return {.end = letter_.message + 1, .records = 1}; }
  void take(SliceSource& source, const DeliveredSlice& delivered) {
    found_ = true;
    const AttributeKinds kinds = delivered.slice.batch.kinds();
    const ByteView message = delivered.slice.records.subspan(record_bytes(0));
    is_same_ =
        letter_.original.is_same(AttributesView::trusted(kinds, message.data()), payload_of(kinds, message));
    source.taken(1, delivered.slice.records.size());
  }
  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] bool is_same() const { return is_same_; }

 private:
  const ReturnedLetter& letter_;
  bool found_ = false;
  bool is_same_ = false;
};

/// Returns true if both incarnations are lives of one log: see LogLives.
bool are_of_one_log(std::uint64_t one, std::uint64_t other) {
  constexpr int half = 32;
  return one >> half == other >> half;
}

}  // namespace

/// Returns `given` if the log or the carried copies have the message and it can be read; with `compare`, if
/// it is the letter's.
LetterReceiver::Fate LetterReceiver::readable(const ReturnedLetter& letter, bool compare) {
  RecordReader reader(letter.message);
  ProbeTurn turn(letter);
  topic_.reads().read(reader, turn);
  if (turn.found()) return !compare || turn.is_same() ? Fate::given : Fate::published;
  return reader.lost() > 0 ? Fate::published : Fate::later;
}

/// Returns true if the log has the letter's message from this run, perhaps not yet durably.
bool LetterReceiver::is_published(const ReturnedLetter& letter) const {
  const Sequences sequences{{producer_id(), 0}, own_sequences_begin + number_of(letter.letter), 1};
  return topic_.producers().admit(sequences) == Admission::repeat;
}

/// Returns the fate of a letter, which may be done already.
LetterReceiver::Fate LetterReceiver::fate_of(ConsumerGroup& group, const ReturnedLetter& letter) {
  if (letter.letter < GroupGiveBack(group).end_of(parcel_->letters, parcel_->run)) return Fate::given;
  if (is_published(letter)) return Fate::published;
  const auto same = topic_.same_up_to(letter.incarnation);
  if (topic_.store().next_offset() <= letter.message) return Fate::published;
  if (same) return letter.message < *same ? readable(letter, false) : Fate::published;
  if (!are_of_one_log(letter.incarnation, topic_.incarnation())) return Fate::published;
  return readable(letter, true);
}

/// Returns the id of the producer of this run and group: the same after a start, and hardly that of another
/// one.
std::uint64_t LetterReceiver::producer_id() const {
  std::uint64_t id = 0xcbf29ce484222325 ^ parcel_->run;
  for (const char each : parcel_->group) id = (id ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  id ^= id >> 31;
  return id == 0 ? parcel_->run : id;
}

void LetterReceiver::work() {
  ConsumerGroup* const group = topic_.letters().groups().find(parcel_->group);
  if (group == nullptr) {
    for (at_ = first_; at_ < parcel_->returned.size() && is_published(parcel_->returned[at_]);) ++at_;
    if (at_ == first_) return answer(ReturnAnswer::Stop::group_gone);
    fate_ = Fate::published;
    return publish();
  }
  GroupGiveBack back(*group);
  for (std::size_t left = letters_of_turn; at_ < parcel_->returned.size(); --left) {
    if (left == 0) {
      timer_ = loop_.at(EventLoop::Clock::now(), [weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->work();
      });
      return;
    }
    const ReturnedLetter& letter = parcel_->returned[at_];
    Fate fate = fate_of(*group, letter);
    if (fate_ != Fate::none && fate != fate_) return finish();
    const bool is_done = letter.letter < back.end_of(parcel_->letters, parcel_->run);
    if (fate == Fate::given && !is_done) {
      if (!back.give_back(letter.message)) return finish();
      // In the same turn as the message, so that each save has both.
      back.mark({parcel_->letters, parcel_->run, letter.letter + 1});
      topic_.letters().changed();
    }
    if (fate == Fate::later) return finish();
    fate_ = fate;
    ++at_;
  }
  finish();
}

/// Makes the letters so far durable, and answers.
void LetterReceiver::finish() {
  if (fate_ == Fate::none) return answer(ReturnAnswer::Stop::later);
  if (fate_ == Fate::published) return publish();
  topic_.letters().save([weak = weak_from_this()](const Result<std::uint64_t>& saved) {
    const auto self = weak.lock();
    if (self == nullptr) return;
    if (saved) return self->answer(ReturnAnswer::Stop::none);
    self->at_ = self->first_;
    self->answer(ReturnAnswer::Stop::failed, saved.error().text());
  });
}

void LetterReceiver::publish() {
  producer_ = std::make_unique<LetterProducer>(
      topic_, producer_id(), room_,
      LetterProducer::Reports{.settled = [this](std::uint64_t expected) { settled(expected); },
                              .refused =
                                  [this](std::uint64_t number, const Error& why) {
                                    const auto refused = std::ranges::find(
                                        parcel_->returned, number,
                                        [](const ReturnedLetter& each) { return number_of(each.letter); });
                                    at_ = static_cast<std::size_t>(refused - parcel_->returned.begin());
                                    answer(ReturnAnswer::Stop::impossible, why.text());
                                  },
                              .ended =
                                  [this](const Error& why) {
                                    at_ = first_;
                                    answer(ReturnAnswer::Stop::failed, why.text());
                                  }});
  producer_->open();
}

/// The producer has stored all letters below `expected`, durably. The others found no room.
void LetterReceiver::settled(std::uint64_t expected) {
  if (std::exchange(is_sent_, true)) {
    while (at_ > first_ && number_of(parcel_->returned[at_ - 1].letter) >= expected) --at_;
    if (at_ == first_)
      return answer(ReturnAnswer::Stop::failed, "too many letters wait for space in topics already");
    return answer(ReturnAnswer::Stop::none);
  }
  std::vector<NumberedLetter> letters;
  try {
    const FallibleAllocations fallible;
    for (std::size_t i = first_; i < at_; ++i) {
      letters.push_back({number_of(parcel_->returned[i].letter), parcel_->returned[i].original});
      letters.back().letter.forget_ttl();
    }
  } catch (const std::bad_alloc&) {
    at_ = first_;
    return answer(ReturnAnswer::Stop::failed, "there is not enough memory for letters");
  }
  producer_->take(std::move(letters));
}

void LetterReceiver::answer(ReturnAnswer::Stop stop, const std::string& why) {
  if (answered_ == nullptr) return;
  const auto& letters = parcel_->returned;
  ReturnAnswer answer{.end = at_ < letters.size() ? letters[at_].letter : letters.back().letter + 1,
                      .stop = stop,
                      .why = why};
  (fate_ == Fate::published ? answer.published : answer.given_back) = at_ - first_;
  std::exchange(answered_, nullptr)(answer);
}

}  // namespace lightq::broker
