/// Lets changes that wait at once share one flush of the catalogue. Layer: control.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "broker/control/catalogue.hpp"
#include "broker/control/catalogue_compactor.hpp"
#include "broker/endpoint/event_loop.hpp"

namespace lightq::broker {

/// One flush per turn of the loop, however many asked for it; then it is looked whether the catalogue is to
/// be compacted. Everything on the loop's thread.
class CommitQueue final : public EventLoop::Source {
 public:
  using Done = std::function<void(const Result<void>&)>;

  CommitQueue(EventLoop& loop, Catalogue& catalogue)
      : loop_(loop), catalogue_(catalogue), compactor_(loop, catalogue) {}
  ~CommitQueue() override { loop_.cancel_soon(*this); }

  /// Calls `done` once everything changed so far is durable (or could not be made so): at once if it is.
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
