/// The interface through which delivery sends single messages to a plain consumer's connection.
/// Layer: delivery.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// One consumer's connection. A message that it has taken is *unsent* until the operating system has it.
/// Unsent messages are not lost when the consumer disconnects: its group delivers them to another consumer.
/// Thread: the reactor's.
class RecordSink {
 public:
  RecordSink() = default;
  RecordSink(const RecordSink&) = delete;
  RecordSink& operator=(const RecordSink&) = delete;
  virtual ~RecordSink() = default;

  /// Copies the message if there is space for it. Returns false if there is none; dispatch tries again once
  /// the connection is writable.
  virtual bool offer(Offset offset, ByteView payload) = 0;
  /// Passes taken messages to the operating system, as many as it accepts now.
  virtual void flush() = 0;
  /// Returns the lowest unsent offset. It need not belong to the message taken first, because a redelivered
  /// message can follow newer ones.
  [[nodiscard]] virtual std::optional<Offset> first_unsent() const = 0;
  /// Returns the offsets of all unsent messages, in the order in which they were taken.
  [[nodiscard]] virtual std::vector<Offset> unsent() const = 0;
  /// Returns the number of unsent messages.
  [[nodiscard]] virtual std::size_t unsent_messages() const { return unsent().size(); }
  /// Stops tracking the present unsent messages. They are still sent.
  virtual void forget_unsent() = 0;
};

}  // namespace lightq::broker
