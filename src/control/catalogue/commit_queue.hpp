/// Lets changes that are made at the same time share one flush of the catalogue. Layer: control.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/catalogue_compactor.hpp"
#include "net/event_loop.hpp"

namespace lightq::broker {

/// Flushes the catalogue at most once per turn of the loop, for any number of callers. Then starts a
/// compaction of the catalogue if it is due. Thread: everything on the loop's thread.
class CommitQueue final : public EventLoop::Source {
 public:
  using Done = std::function<void(const Result<void>&)>;

  CommitQueue(EventLoop& loop, Catalogue& catalogue)
      : loop_(loop), catalogue_(catalogue), compactor_(loop, catalogue) {}
  ~CommitQueue() override { loop_.cancel_soon(*this); }

  /// Calls `done` when all changes so far are durable, or with the error. Calls it immediately if they
  /// already are.
  void commit(Done done) {
    if (!catalogue_.unflushed()) return done({});
    waiting_.push_back(std::move(done));
    loop_.call_soon(*this);
  }

  void on_ready() override {
    const auto flushed = catalogue_.flush();
    std::vector<Done> waiting;
    waiting.swap(waiting_);
    for (const auto& done : waiting) done(flushed);
    compactor_.look();
  }

 private:
  EventLoop& loop_;
  Catalogue& catalogue_;
  CatalogueCompactor compactor_;
  std::vector<Done> waiting_;
};

}  // namespace lightq::broker
