/// Callbacks that wait for offsets to become durable. Layer: queue.
#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

namespace lightq::queue {

/// Callbacks, by the offset that they wait for. Thread: guarded by its owner's lock; the callbacks that
/// `take` returns are called without that lock.
class DurabilityWaits {
 public:
  using Callback = std::function<void(const Result<void>&)>;

  void add(Offset offset, Callback done) { waits_.emplace(offset, std::move(done)); }
  [[nodiscard]] bool empty() const { return waits_.empty(); }
  /// Removes and returns the callbacks for offsets up to `durable`, in order of their offsets.
  std::vector<Callback> take(Offset durable) {
    std::vector<Callback> taken;
    const auto end = waits_.upper_bound(durable);
    for (auto wait = waits_.begin(); wait != end; ++wait) taken.push_back(std::move(wait->second));
    waits_.erase(waits_.begin(), end);
    return taken;
  }
  std::vector<Callback> take_all() { return take({~std::uint64_t{0}}); }

 private:
  std::multimap<Offset, Callback> waits_;
};

}  // namespace lightq::queue
