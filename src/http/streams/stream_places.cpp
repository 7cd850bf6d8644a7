/// The number of streams that are open. Layer: http.
#include "http/streams/stream_places.hpp"

#include <mutex>
#include <unordered_map>
#include <utility>

namespace lightq::broker {

class StreamPlaces::Table {
 public:
  Table(std::size_t all_max, std::size_t per_source_max) : all_max_(all_max), source_max_(per_source_max) {}

  bool take(const std::string& source) {
    const std::lock_guard lock(mutex_);
    if (all_ >= all_max_) return false;
    std::size_t& own = by_source_[source];
    if (own >= source_max_) return false;
    ++own;
    ++all_;
    return true;
  }
  void release(const std::string& source) {
    const std::lock_guard lock(mutex_);
    --all_;
    if (const auto found = by_source_.find(source); --found->second == 0) by_source_.erase(found);
  }

 private:
  const std::size_t all_max_;
  const std::size_t source_max_;
  std::mutex mutex_;
  std::size_t all_ = 0;
  std::unordered_map<std::string, std::size_t> by_source_;
};

StreamPlaces::StreamPlaces(std::size_t all_max, std::size_t per_source_max)
    : table_(std::make_shared<Table>(all_max, per_source_max)) {}

std::shared_ptr<const void> StreamPlaces::take(const std::string& source) {
  if (!table_->take(source)) return nullptr;
  return {static_cast<const void*>(table_.get()),
          [table = table_, source](const void* /*place*/) { table->release(source); }};
}

std::shared_ptr<const void> both(std::shared_ptr<const void> one, std::shared_ptr<const void> other) {
  if (one == nullptr || other == nullptr) return nullptr;
  return std::make_shared<const std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>>(
      std::move(one), std::move(other));
}

}  // namespace lightq::broker
