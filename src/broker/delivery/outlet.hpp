/// The way out to one connected consumer, as delivery sees it. Layer: delivery.
#pragma once

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
  /// The oldest unsent message.
  [[nodiscard]] virtual std::optional<Offset> first_unsent() const = 0;
  /// All unsent messages, oldest first.
  [[nodiscard]] virtual std::vector<Offset> unsent() const = 0;
};

}  // namespace lightq::broker
