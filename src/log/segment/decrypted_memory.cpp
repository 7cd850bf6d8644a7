/// A bounded cache of decrypted batches that all logs share. Layer: log.
#include "log/segment/decrypted_memory.hpp"

#include <iterator>

namespace lightq::log {

namespace {

constexpr std::size_t entry_overhead_bytes = 256;  // about

}  // namespace

std::size_t DecryptedMemory::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

std::size_t DecryptedMemory::cost_of(const DecryptedBatch& batch) {
  return batch.bytes().size() + entry_overhead_bytes;
}

void DecryptedMemory::drop(Entries::iterator entry) {
  bytes_ -= cost_of(*entry->batch);
  entry->part->kept_.erase(entry->base.value);
  entries_.erase(entry);
}

DecryptedMemory::Batch DecryptedMemory::Part::find(Offset base) {
  const std::lock_guard lock(memory_.mutex_);
  const auto found = kept_.find(base.value);
  if (found == kept_.end()) return nullptr;
  memory_.entries_.splice(memory_.entries_.end(), memory_.entries_, found->second);
  return found->second->batch;
}

void DecryptedMemory::Part::keep(Offset base, const Batch& batch) {
  const std::size_t cost = cost_of(*batch);
  if (memory_.bytes_max_ < cost) return;
  const std::lock_guard lock(memory_.mutex_);
  while (memory_.bytes_max_ < memory_.bytes_ + cost) memory_.drop(memory_.entries_.begin());
  memory_.entries_.push_back({this, base, batch});
  kept_[base.value] = std::prev(memory_.entries_.end());
  memory_.bytes_ += cost;
}

void DecryptedMemory::Part::forget() {
  const std::lock_guard lock(memory_.mutex_);
  while (!kept_.empty()) memory_.drop(kept_.begin()->second);
}

}  // namespace lightq::log
