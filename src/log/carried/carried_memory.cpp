/// Carried records in memory. Layer: log.
#include "log/carried/carried_memory.hpp"

#include <string>

namespace lightq::log {

bool CarriedMemory::add(ByteView record) {
  const Offset offset = BatchView::trusted(record.data()).base_offset();
  remove({offset, offset + 1});
  const std::uint64_t more = record.size() + bytes_each;
  if (more > bytes_max_ || bytes_ > bytes_max_ - more) {
    last_error_ = {ErrorCode::limit_reached, "messages that wait have filled the " +
                                                 std::to_string(bytes_max_) +
                                                 " bytes of memory for those that the log has dropped"};
    return false;
  }
  records_.emplace(offset.value, std::vector<std::byte>(record.begin(), record.end()));
  offsets_.add({offset, offset + 1});
  bytes_ += more;
  return true;
}

void CarriedMemory::remove(OffsetRange range) {
  const auto begin = records_.lower_bound(range.begin.value);
  auto end = begin;
  for (; end != records_.end() && end->first < range.end.value; ++end)
    bytes_ -= end->second.size() + bytes_each;
  if (begin == end) return;
  records_.erase(begin, end);
  offsets_.remove(range);
}

ReadResult CarriedMemory::read(Offset offset) {
  return {ReadOutcome::batch, BatchView::trusted(records_.find(offset.value)->second.data()), {}};
}

}  // namespace lightq::log
