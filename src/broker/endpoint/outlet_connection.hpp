/// One consumer's connection, whatever it speaks: what it was handed, and what of it has not left. Layer:
/// endpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "broker/delivery/outlet.hpp"
#include "broker/endpoint/connection.hpp"

namespace lightq::broker {

class OutletConnection;

/// What an outlet needs of its topic's host. The reactor's thread.
class OutletHost {
 public:
  virtual ~OutletHost() = default;
  /// The consumer wants messages from now on; it wants none any more, but stays.
  virtual void consumer_ready(OutletConnection& outlet) = 0;
  virtual void consumer_unready(OutletConnection& outlet) = 0;
  /// There is room again.
  virtual void consumer_writable() = 0;
};

/// Keeps at most one buffer and one message that the operating system has not taken. A message of which it
/// has not taken every byte is unsent. The reactor's thread.
class OutletConnection : public Connection, public Outlet {
 public:
  OutletConnection(EventLoop& loop, UniqueFd descriptor, Owner& owner, std::vector<std::byte>& scratch,
                   OutletHost& host)
      : Connection(loop, std::move(descriptor), owner, scratch), host_(host) {}

  /// Takes nothing more; what it has is still sent.
  void retire() { retired_ = true; }
  /// Messages handed to this consumer and, as far as known, sent.
  [[nodiscard]] std::uint64_t handed() const { return handed_; }
  /// Wants messages and is open.
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] bool all_sent() const { return output().buffered() == 0; }

  bool offer(Offset offset, ByteView payload) override;
  void flush() override;
  [[nodiscard]] std::optional<Offset> first_unsent() const override;
  [[nodiscard]] std::vector<Offset> unsent() const override;
  void forget_unsent() override { taken_head_ = taken_.size(); }

 protected:
  /// Appends the message to the output, as the consumer is to receive it.
  virtual void encode(ByteView payload) = 0;
  void set_ready(bool ready);
  void on_writable() override {
    forget_sent();
    host_.consumer_writable();
  }

 private:
  struct Taken {
    Offset offset;
    std::uint64_t end = 0;  // position in the output where its last byte lies
  };
  void forget_sent() const;

  OutletHost& host_;
  bool ready_ = false;
  bool retired_ = false;
  std::uint64_t handed_ = 0;
  mutable std::vector<Taken> taken_;  // what may be unsent, oldest first, from taken_head_ on
  mutable std::size_t taken_head_ = 0;
  mutable bool ascending_ = true;  // as long as nothing of it was handed to somebody else before
};

}  // namespace lightq::broker
