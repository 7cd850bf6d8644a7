/// Reads one message of a topic and makes a dead letter of it. Layer: topic.
#include "topic/runtime/topic_letters.hpp"

#include <new>

#include <lightq/base/batch.hpp>

#include "admission/memory_reserve.hpp"
#include "delivery/record_reader.hpp"

namespace lightq::broker {

namespace {

/// A turn that takes one message and makes a letter of it.
class LetterTurn {
 public:
  explicit LetterTurn(const DeathAccount& death) : death_(death) {}

  [[nodiscard]] bool has_budget() const { return !letter_.has_value(); }
  [[nodiscard]] static bool can_take() { return true; }
  [[nodiscard]] SliceLimits limits() const { return {.end = death_.offset + 1, .records = 1}; }
  void take(SliceSource& source, DeliveredSlice& delivered) {
    const BatchSlice& slice = delivered.slice;
    const ByteView message = slice.records.subspan(record_bytes(0));
    const AttributeKinds kinds = slice.batch.kinds();
    letter_ =
        DeadLetter::of(AttributesView::trusted(kinds, message.data()), payload_of(kinds, message), death_);
    source.taken(1, slice.records.size());
  }
  [[nodiscard]] std::optional<Result<DeadLetter>>& letter() { return letter_; }

 private:
  const DeathAccount& death_;
  std::optional<Result<DeadLetter>> letter_;
};

}  // namespace

TopicLetters::Read TopicLetters::read(const DeathAccount& death) {
  RecordReader reader(death.offset);
  LetterTurn turn(death);
  const FallibleAllocations fallible;
  try {
    reads_.read(reader, turn);
  } catch (const std::bad_alloc&) {
    return {};  // later
  }
  return {.is_pending = reader.pending(), .is_lost = reader.lost() > 0, .letter = std::move(turn.letter())};
}

}  // namespace lightq::broker
