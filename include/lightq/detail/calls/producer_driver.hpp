/// Does the work that is due in a producer's calls: connects, reads confirms, closes batches, sends and
/// waits. Layer: client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <lightq/base/attributes.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/separate.hpp>
#include <lightq/detail/calls/producer_packing.hpp>
#include <lightq/detail/producer_pace.hpp>
#include <lightq/detail/session_address.hpp>
#include <lightq/detail/session_clock.hpp>
#include <lightq/detail/session_reports.hpp>
#include <lightq/producer_options.hpp>

namespace lightq::inline v1 {

class ProducerErrors;
class SessionBatches;
class SessionProduceLink;

/// Drives a producer's channel inside the program's calls. Owns the channel, the packing of messages and the
/// reports. Owned by a Producer. Sending a message touches only this object and the open batch, unless the
/// call looks at the connection (ProducerPace). Movable: the object that was moved from has a closed channel.
/// For one thread.
class ProducerDriver {
 public:
  ProducerDriver(std::string topic, SessionJoin join, ProducerOptions options);
  ProducerDriver(ProducerDriver&&) noexcept;
  ProducerDriver& operator=(ProducerDriver&&) noexcept;
  /// Ends the connection without waiting and without callbacks.
  ~ProducerDriver();

  // --- Parts. After a move, the channel is closed, and there are no messages.

  [[nodiscard]] ProducerPacking& packing() { return packing_; }
  [[nodiscard]] const ProducerPacking& packing() const { return packing_; }
  [[nodiscard]] SessionProduceLink& link() const;
  [[nodiscard]] SendReports& reports() const;
  [[nodiscard]] const ProducerErrors& errors() const;
  [[nodiscard]] bool was_moved() const { return parts_ == nullptr; }

  // --- Sending.

  /// Makes room for a message in the open batch; waits for it if the options say so. Errors: those of
  /// Producer::send.
  Result<void> make_room(std::size_t payload_bytes, const Attributes& attributes);
  /// Counts a message that was packed, and drives the channel after some of them. Returns `number`.
  std::uint64_t packed(std::uint64_t number) {
    if (pace_.message_taken()) drive(true);
    return number;
  }

  // --- Working and waiting. Callbacks may run in each of these calls.

  /// Connects, reads, closes the open batch if it should leave, and sends. Then plans after how many messages
  /// to repeat it. `by_the_way`: does not read if it has read a moment ago.
  void drive(bool by_the_way = false);
  /// Drives the channel. If that changes nothing, waits for input, up to `timeout` or the next timer, and
  /// does it once more. Errors: those of ProducerErrors::usable.
  Result<void> poll(Timeout timeout);
  /// Drives the channel until `done()` returns true. Errors: timeout (`otherwise` begins its text); those of
  /// ProducerErrors::usable.
  template <typename Done>
  Result<void> wait_until(Done done, Timeout timeout, const char* otherwise);
  /// Waits until the message `number` and all before it are settled; the open batch leaves meanwhile, even if
  /// it is not full. Errors: those of wait_until.
  Result<void> wait_settled(std::uint64_t number, Timeout timeout);
  /// Sends everything and waits until it is settled. Errors: those of wait_until; the refusal or loss of a
  /// message since the last such error.
  Result<void> flush(Timeout timeout);
  /// Flushes and closes the channel. Errors: those of flush.
  Result<void> close(Timeout timeout);
  /// Changes ProducerOptions::send_timeout.
  void set_send_timeout(Timeout timeout);
  /// Ends SessionState::in_doubt, see Producer::resolve.
  void resolve(bool resend);

  // --- State.

  /// Returns true in a callback or while a message is written in place: calls that wait are refused then.
  [[nodiscard]] bool is_inside() const { return inside_ || packing_.is_writing(); }
  /// Returns the number of messages that are not settled yet.
  [[nodiscard]] std::uint64_t unconfirmed() const;
  /// Returns the time at which to call `drive` even if the descriptor reports nothing.
  [[nodiscard]] SessionTime next_timer() const;

 private:
  struct Parts;

  [[nodiscard]] Parts& parts() const;
  [[nodiscard]] SessionBatches& batches() const;
  [[nodiscard]] SessionTime now() const;

  /// Checks that the message may have a delay or due time. Errors: invalid_argument.
  [[nodiscard]] Result<void> check_due(const Attributes& attributes) const;
  /// Reads confirms, closes the open batch if it should leave, and sends.
  void exchange(SessionTime time, bool by_the_way);
  /// Returns true if the open batch should leave although it is not full.
  [[nodiscard]] bool is_ripe(SessionTime time) const;
  /// Closes the open batch. Requires: it is not empty.
  void roll();
  /// Tells the packing how much room there is. Returns how many bytes of records the open batch takes.
  std::size_t refresh_room();

  [[nodiscard]] bool has_settled_all() const;
  [[nodiscard]] std::uint64_t first_unsettled() const;
  /// Returns a number that changes with every event for which a caller of poll may wait.
  [[nodiscard]] std::uint64_t changes() const;
  void wait_for_io(SessionTime until);

  std::unique_ptr<Parts> parts_;  // null after a move: use parts()
  ProducerPacking packing_;       // refers to `parts_`
  ProducerPace pace_;
  bool inside_ = false;  // in drive or a callback
  bool flushing_ = false;
  SessionTime linger_ends_ = session_never;  // when the open batch leaves
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/producer_driver.hpp>  // IWYU pragma: export
#endif
