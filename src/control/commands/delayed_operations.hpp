/// The operations on delayed messages. Layer: control.
#pragma once

#include <functional>

#include <lightq/base/types.hpp>
#include <lightq/protocol/delayed_control.hpp>

#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// Lists and changes the delayed messages of a topic. The asker's permission was checked before each call.
/// Errors of all: those of ReadyTopics::find_with_messages and of the data plane. Thread: the control thread.
/// Lifetime: the parts must outlive it.
class DelayedOperations {
 public:
  struct Parts {
    DataPlane& data_plane;
    const ReadyTopics& ready;
    const AskerRights& rights;
  };

  explicit DelayedOperations(const Parts& parts) : parts_(parts) {}

  /// Errors also: unauthorized_access (payloads are wanted, and the asker may not consume from the topic).
  void list(const Asker& asker, const TopicName& topic, const DelayedListWish& wish,
            const Done<protocol::DelayedPage>& done);
  /// Counts, cancels, hurries or reschedules messages.
  void act(const TopicName& topic, const DelayedWish& wish, const Done<protocol::DelayedCount>& done);

 private:
  const Parts parts_;
};

}  // namespace lightq::broker
