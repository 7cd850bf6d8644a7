/// The operation that traces messages. Layer: control.
#pragma once

#include <memory>

#include <lightq/base/types.hpp>
#include <lightq/protocol/message_trace.hpp>

#include "control/catalogue/catalogue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// Finds the states of a message in all groups. The asker's permission was checked before the call. Thread:
/// the control thread. Lifetime: the parts must outlive it.
class TraceOperations {
 public:
  struct Parts {
    const Catalogue& catalogue;
    DataPlane& data_plane;
    const ReadyTopics& ready;
    const AskerRights& rights;
  };

  explicit TraceOperations(const Parts& parts) : parts_(parts) {}

  /// Returns the trace of a message. Looks for its letter in the dead-letter topics of groups that are
  /// done with it, if the asker may manage these. `letter_topic` stays set if the search was not complete.
  /// Only an asker that may manage the topic gets the names of consumers' users, and only one that may manage
  /// a group gets the deaths in it, as with list_dead. Errors: those of
  /// ReadyTopics::find_with_messages and the data plane.
  void trace(const Asker& asker, const TopicName& name, Offset offset, const Done<WorkedTrace>& done);

 private:
  struct LetterSearch;
  void show_to(const Asker& asker, protocol::MessageTrace& trace) const;
  void find_letters(const std::shared_ptr<LetterSearch>& search);

  const Parts parts_;
};

}  // namespace lightq::broker
