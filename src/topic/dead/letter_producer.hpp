/// The producer through which a dead-letter topic receives the letters of one group. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

#include "topic/dead/letter_source.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// The memory of the letters that wait for space in the topics of one reactor. Thread: the reactor's.
class LetterRoom {
 public:
  explicit LetterRoom(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  /// Takes memory for a letter. Returns false if there is none left. The only letter that waits always has
  /// room, however long it is.
  bool take(std::size_t bytes) {
    if (bytes_max_ < used_ + bytes && (used_ != 0 || bytes_max_ == 0)) return false;
    used_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) { used_ -= bytes; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  const std::size_t bytes_max_;
  std::size_t used_ = 0;
};

/// Appends letters to a topic, each number once, and reports when they are as durable as the topic can make
/// them. Letters that wait for space have their place in `LetterRoom`; those that find none there are
/// dropped, and the group's transfer sends them again. It is a producer of the topic like those of sessions:
/// its id is known durably before it begins, it waits for space as they do, and it ends with the topic. Its
/// id is the incarnation of the group's outbox, and it is the broker's own (ProducerTable::brokers_own).
/// LetterOffice owns it. Thread: the reactor's.
class LetterProducer final : public SessionProducer {
 public:
  /// The reports, each called within a call of the topic or of the producer. The receiver may not destroy the
  /// producer within a report.
  struct Reports {
    /// All letters with numbers below `expected` are in the topic, as durable as it can make them; no other
    /// letter is.
    std::function<void(std::uint64_t expected)> settled;
    /// The letter with this number can never be stored. The letters before it are settled; those behind it
    /// were dropped.
    std::function<void(std::uint64_t number, const Error& why)> refused;
    /// The producer does nothing more. Which letters are in the topic is not known.
    std::function<void(const Error& why)> ended;
    /// Letters begin to wait for space. Another report follows. May be empty.
    std::function<void(const Error& why)> held = nullptr;
  };

  /// `id`: not 0. Lifetime: the topic ends the producer before it is destroyed, or the producer is destroyed
  /// first; `room` outlives the producer.
  LetterProducer(TopicRuntime& topic, std::uint64_t id, LetterRoom& room, Reports reports);
  ~LetterProducer() override;

  /// Opens the producer. `settled` or `ended` follows.
  void open();
  /// Stores letters with ascending numbers. `settled` or `refused` or `ended` follows. Requires: an earlier
  /// call was answered.
  void take(std::vector<NumberedLetter> letters);

  [[nodiscard]] std::uint64_t producer_id() const override { return id_; }
  [[nodiscard]] bool needs_durable() const override { return topic_->store().is_durable(); }
  void admitted() override;
  bool resume() override { return store_waiting(); }
  bool durable_moved() override;
  void end(ClientError code, const std::string& why) override;

 private:
  enum class Stored : std::uint8_t { yes, no_space, refused, ended };

  bool store_waiting();
  Stored store_next();
  void pack(BatchBuilder& batch) const;
  bool keep_what_has_room();
  void leave_room();
  void report_held();
  [[nodiscard]] const char* why_no_space() const;
  void await_durable();
  bool report_settled();
  void refuse(const Error& why);
  void stop(const Error& why);

  static constexpr std::size_t letters_of_batch_max = 1024;

  TopicRuntime* topic_;  // null once it has ended
  const std::uint64_t id_;
  LetterRoom& room_;
  const Reports reports_;
  std::uint64_t expected_ = 0;  // the number of the next letter; every lower one is stored or left out
  std::deque<NumberedLetter> waiting_;              // to be stored
  std::size_t room_taken_ = 0;                      // of room_, while letters wait for space
  bool is_held_ = false;                            // `held` was reported since the last call of `take`
  std::optional<Offset> awaited_;                   // `settled` is due when the topic is durable up to here
  std::size_t letters_max_ = letters_of_batch_max;  // of one batch
  std::optional<Error> refusal_;                    // of the first letter that waits; due after `settled`
};

}  // namespace lightq::broker
