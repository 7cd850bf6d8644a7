/// Compacts the catalogue while the broker runs. Layer: control.
#pragma once

#include <memory>
#include <thread>

#include "control/catalogue/catalogue.hpp"
#include "net/event_loop.hpp"

namespace lightq::broker {

/// Writes the new log on a separate thread, so the control thread is blocked only while it adds the changes
/// made meanwhile. Thread: all calls on the loop's thread.
class CatalogueCompactor {
 public:
  CatalogueCompactor(EventLoop& loop, Catalogue& catalogue) : loop_(loop), catalogue_(catalogue) {}
  CatalogueCompactor(const CatalogueCompactor&) = delete;
  CatalogueCompactor& operator=(const CatalogueCompactor&) = delete;
  /// Cancels a compaction under way. The existing log stays.
  ~CatalogueCompactor();

  /// Starts a compaction if that is worth the work and no compaction is under way.
  void look();

 private:
  EventLoop& loop_;
  Catalogue& catalogue_;
  std::shared_ptr<CatalogueCompaction> under_way_;  // null: no compaction is under way
  std::jthread writer_;                             // last: ends before the other members are destroyed
};

}  // namespace lightq::broker
