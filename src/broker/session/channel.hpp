/// One channel of a session, of either kind. Layer: session.
#pragma once

#include <cstdint>

namespace lightq::broker {

/// A producer or a consumer of one topic. The reactor's thread.
class Channel {
 public:
  enum class Kind { produces, consumes };

  Channel(Kind kind, std::uint32_t number) : kind_(kind), number_(number) {}
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  virtual ~Channel() = default;

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  /// The session is not to be read from.
  [[nodiscard]] virtual bool held() const = 0;
  /// Of what is held.
  [[nodiscard]] virtual std::size_t held_bytes() const { return 0; }
  /// Nothing that came on it waits for a word of ours.
  [[nodiscard]] virtual bool settled() const = 0;
  /// Nothing more comes from the topic, and nothing more may be asked but destruction.
  virtual void leave() = 0;
  /// A frame for it is going to be taken: a step of fetch_ahead, whose first finds this object fetched.
  virtual void fetch_ahead_for_input(unsigned step) const = 0;

 private:
  const Kind kind_;
  const std::uint32_t number_;
};

}  // namespace lightq::broker
