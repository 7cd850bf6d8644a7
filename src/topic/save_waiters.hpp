/// Callbacks that wait until a change has been saved to disk. Layer: topic.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Calls each callback at the end of the first save that begins after the callback was added. A callback may
/// add others. Thread: the reactor's.
class SaveWaiters {
 public:
  using Done = std::function<void(const Result<void>&)>;

  void add(Done done) { waiting_.push_back(std::move(done)); }
  /// Returns true if a callback waits for a save to begin.
  [[nodiscard]] bool want_save() const { return !waiting_.empty(); }
  /// Called when a save begins that covers the changes of all callbacks added so far.
  void save_begun() {
    for (Done& done : std::exchange(waiting_, {})) saving_.push_back(std::move(done));
  }
  /// Called when that save has ended. Calls its callbacks with the result.
  void save_ended(const Result<void>& result) {
    for (const Done& done : std::exchange(saving_, {})) done(result);
  }
  /// Calls all callbacks with the error `why`.
  void end(const Error& why) {
    save_begun();
    save_ended(why);
  }

 private:
  std::vector<Done> waiting_;
  std::vector<Done> saving_;
};

}  // namespace lightq::broker
