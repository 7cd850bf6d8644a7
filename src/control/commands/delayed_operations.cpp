/// The operations on delayed messages. Layer: control.
#include "control/commands/delayed_operations.hpp"

namespace lightq::broker {

void DelayedOperations::list(const Asker& asker, const TopicName& topic, const DelayedListWish& wish,
                             const Done<protocol::DelayedPage>& done) {
  if (wish.payload_bytes != 0 && !parts_.rights.consumes(asker, topic.text())) {
    return done(
        Error{ErrorCode::unauthorized_access, "payloads also need the right to consume from the topic"});
  }
  const auto id = parts_.ready.find_with_messages(topic);
  if (!id) return done(id.error());
  parts_.data_plane.list_delayed(id.value(), wish, done);
}

void DelayedOperations::act(const TopicName& topic, const DelayedWish& wish,
                            const Done<protocol::DelayedCount>& done) {
  const auto id = parts_.ready.find_with_messages(topic);
  if (!id) return done(id.error());
  parts_.data_plane.act_on_delayed(id.value(), wish, done);
}

}  // namespace lightq::broker
