/// Has the catalogue compacted while the broker runs. Layer: control.
#pragma once

#include <memory>
#include <thread>

#include "broker/control/catalogue.hpp"
#include "broker/endpoint/event_loop.hpp"

namespace lightq::broker {

/// Writes the new log on a thread of its own, so that the control thread waits only for what has changed
/// meanwhile. Everything on the loop's thread.
class CatalogueCompactor {
 public:
  CatalogueCompactor(EventLoop& loop, Catalogue& catalogue) : loop_(loop), catalogue_(catalogue) {}
  CatalogueCompactor(const CatalogueCompactor&) = delete;
  CatalogueCompactor& operator=(const CatalogueCompactor&) = delete;
  /// Gives up what is under way: the log that there is stays.
  ~CatalogueCompactor();

  /// Begins, if it is worth it and none is under way.
  void look();

 private:
  EventLoop& loop_;
  Catalogue& catalogue_;
  std::shared_ptr<CatalogueCompaction> under_way_;  // null: none is
  std::jthread writer_;                             // last: ends before the rest goes
};

}  // namespace lightq::broker
