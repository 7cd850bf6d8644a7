/// Those who are told when something is on the disk. Layer: endpoint.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>

namespace lightq::broker {

/// Each waits for the first save that begins after it came. The reactor's thread; who is told may add others.
class SaveWaiters {
 public:
  using Done = std::function<void(const Result<void>&)>;

  void add(Done done) { waiting_.push_back(std::move(done)); }
  /// Somebody waits for a save to begin.
  [[nodiscard]] bool want_save() const { return !waiting_.empty(); }
  /// What everybody waits for until now is on its way to the disk.
  void save_begun() {
    for (Done& done : std::exchange(waiting_, {})) saving_.push_back(std::move(done));
  }
  void save_ended(const Result<void>& result) {
    for (const Done& done : std::exchange(saving_, {})) done(result);
  }
  /// Nobody waits any longer.
  void end(const Error& why) {
    save_begun();
    save_ended(why);
  }

 private:
  std::vector<Done> waiting_;
  std::vector<Done> saving_;
};

}  // namespace lightq::broker
