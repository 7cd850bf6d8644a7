/// The dead messages of a consumer group, as its cursor saves them. Layer: log.
#include "log/saved_state/saved_dead.hpp"

#include <algorithm>
#include <limits>

namespace lightq::log {

std::size_t SavedDead::bytes() const {
  std::size_t bytes = parked.bytes() + rejected.bytes() + expired.bytes() + outbox.bytes() +
                      under_way.size() * sizeof(Offset);
  for (const SavedDeath& record : records) bytes += sizeof record + record.reason.size();
  for (const auto& [time, part] : first_failures) bytes += part.bytes();
  return bytes;
}

void SavedDead::cut_at(Offset end) {
  const OffsetRange behind{end, {std::numeric_limits<std::uint64_t>::max()}};
  parked.remove(behind);
  rejected.remove(behind);
  expired.remove(behind);
  outbox.remove(behind);
  const auto is_behind = [end](Offset message) { return end <= message; };
  // The transfer of a message that no longer exists can be neither repeated nor completed.
  if (std::ranges::any_of(under_way, is_behind)) {
    under_way.clear();
    incarnation = target = 0;
    first_number = 1;
  }
  std::erase_if(records, [&](const SavedDeath& record) { return is_behind(record.offset); });
  for (auto& [time, part] : first_failures) part.remove(behind);
  std::erase_if(first_failures, [](const auto& part) { return part.second.empty(); });
}

}  // namespace lightq::log
