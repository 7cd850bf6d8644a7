/// The way out to one connected consumer, as delivery sees it. Layer: delivery.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <lightq/base/types.hpp>

namespace lightq::broker {

/// One consumer's connection. A message it has taken is *unsent* until the operating system has it; what is
/// unsent when the consumer goes away is not lost: its group hands it to somebody else. The reactor's thread.
class Outlet {
 public:
  Outlet() = default;
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;
  virtual ~Outlet() = default;

  /// Takes the message (a copy) if there is room for it; false: not now, pump again once it is writable.
  virtual bool offer(Offset offset, ByteView payload) = 0;
  /// Passes what was taken to the operating system, as far as that takes it now.
  virtual void flush() = 0;
  /// The lowest offset of all unsent messages, which is not the first one's where one came back from others.
  [[nodiscard]] virtual std::optional<Offset> first_unsent() const = 0;
  /// All unsent messages, in the order they were taken.
  [[nodiscard]] virtual std::vector<Offset> unsent() const = 0;
  /// How many those are.
  [[nodiscard]] virtual std::size_t unsent_messages() const { return unsent().size(); }
  /// What is unsent now still leaves, but nobody asks for it any more.
  virtual void forget_unsent() = 0;
};

}  // namespace lightq::broker
