/// The messages of a producer that libzmq has not sent yet, for one connection. Layer: client.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <lightq/base/separate.hpp>
#include <lightq/base/types.hpp>

namespace zmq {
class socket_t;
}

namespace lightq::inline v1 {

/// Gives libzmq copies of messages, and keeps each one until the owner knows that libzmq has sent it. libzmq
/// frees messages in order, both when it passes them to the operating system and when it drops them; it does
/// not report which. So call forget_passed() only if it has dropped nothing.
///
/// Copies that libzmq still uses at destruction are kept until it frees them. Socket, producer and context
/// may therefore end in any order. Move-only. Thread: one at a time; libzmq's own thread runs beside it.
class UnsentMessages {
 public:
  UnsentMessages();

  /// Offers libzmq a copy without waiting. Returns false if it was not accepted; zmq_errno() has the reason
  /// (also ENOMEM).
  bool send(zmq::socket_t& socket, ByteView payload);

  /// Forgets the messages that libzmq has freed.
  void forget_passed();

  /// Returns the bytes of unsent messages of at least limits::counted_message_bytes_min each. 0 after a move.
  [[nodiscard]] std::size_t bytes() const;
  /// Returns true if bytes() is below `bytes`.
  [[nodiscard]] bool is_below(std::size_t bytes) const;

  /// Appends copies of all messages that are not forgotten, the oldest first. Throws std::bad_alloc.
  void copy_to(std::deque<std::vector<std::byte>>& messages) const;

  /// Waits until bytes() is below `bytes`. Returns false at the deadline.
  bool wait_below(std::size_t bytes, std::chrono::steady_clock::time_point deadline);
  /// Waits until libzmq has freed all messages. Returns false at the deadline.
  bool wait_gone(std::chrono::steady_clock::time_point deadline);

 private:
  struct Entry;
  struct State;
  struct Abandon {
    void operator()(State* state) const;
  };

  static std::size_t counted(std::size_t size);

  bool hand_over(zmq::socket_t& socket, std::byte* copy, std::size_t size);

  template <typename Condition>
  bool wait(std::chrono::steady_clock::time_point deadline, Condition&& condition);

  std::unique_ptr<State, Abandon> state_;
};

}  // namespace lightq::inline v1

#if defined(LIGHTQ_WITH_DEFINITIONS)
#include <lightq/impl/unsent_messages.hpp>  // IWYU pragma: export
#endif
