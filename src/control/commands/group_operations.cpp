/// The operations on consumer groups. Layer: control.
#include "control/commands/group_operations.hpp"

namespace lightq::broker {

void GroupOperations::remove(const TopicName& topic, const std::string& group, const Done<void>& done) {
  const auto id = ready_.find(topic);
  if (!id) return done(id.error());
  data_plane_.delete_group(id.value(), group, done);
}

void GroupOperations::set_paused(const TopicName& topic, const std::string& group, bool paused,
                                 const Done<void>& done) {
  const auto id = ready_.find_with_messages(topic);
  if (!id) return done(id.error());
  data_plane_.set_paused(id.value(), group, paused, done);
}

void GroupOperations::purge(const TopicName& topic, const std::string& group,
                            const Done<std::uint64_t>& done) {
  const auto id = ready_.find_with_messages(topic);
  if (!id) return done(id.error());
  data_plane_.purge(id.value(), group, done);
}

}  // namespace lightq::broker
