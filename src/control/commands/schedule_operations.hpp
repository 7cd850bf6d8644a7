/// The operations on recurring schedules. Layer: control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <lightq/base/types.hpp>
#include <lightq/protocol/schedules.hpp>

#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/done.hpp"
#include "control/commands/operation_settings.hpp"
#include "control/commands/ready_topics.hpp"
#include "control/rights/asker.hpp"
#include "control/rights/asker_rights.hpp"

namespace lightq::broker {

/// Which schedules to list.
struct SchedulesWanted {
  std::optional<TopicName> topic = {};  ///< nothing: those of all topics that the asker may manage
  std::string name = {};                ///< only this one, with its payload; empty: all
  std::string after = {};               ///< SchedulePage::continue_after of the page before
  std::size_t limit = 0;                ///< at least 1
  std::size_t times = 1;                ///< next times of each
};

/// A page of schedules, and the work of finding it as the length of a reply that takes as long to write.
struct ScheduleList {
  protocol::SchedulePage page;
  std::uint64_t work_bytes = 0;
};

/// Sets, pauses, resumes, removes and lists the recurring schedules of topics. The asker's permission was
/// checked before each call. Thread: the control thread. Lifetime: the parts must outlive it.
class ScheduleOperations {
 public:
  struct Parts {
    Catalogue& catalogue;
    CommitQueue& commits;
    DataPlane& data_plane;
    const ReadyTopics& ready;
    const AskerRights& rights;
    const OperationSettings& settings;
  };

  explicit ScheduleOperations(const Parts& parts) : parts_(parts) {}

  // Errors of all: those of ReadyTopics::find and of the catalogue.

  /// Sets a schedule, durably, or replaces the one of this name, which stays paused if it is. Equal settings
  /// change nothing. Errors: those of check_schedule; unauthorized_access (the asker may not produce to the
  /// topic), limit_reached.
  void set(const Asker& asker, const TopicName& topic, const std::string& name,
           const protocol::ScheduleSettings& settings, const Done<void>& done);
  /// Pauses a schedule, or resumes it, durably. Errors: schedule_not_found.
  void set_paused(const TopicName& topic, const std::string& name, bool paused, const Done<void>& done);
  /// Removes a schedule, durably. Errors: schedule_not_found.
  void remove(const TopicName& topic, const std::string& name, const Done<void>& done);
  /// Lists schedules by topic and name. Errors: schedule_not_found (the one that is named).
  void list(const Asker& asker, const SchedulesWanted& wanted, const Done<ScheduleList>& done);

 private:
  [[nodiscard]] const RecurringSchedule* find(TopicId topic, const std::string& name) const;
  void put(TopicId topic, const std::string& name, const RecurringSchedule& schedule, const Done<void>& done);
  void list_all(const Asker& asker, const SchedulesWanted& wanted, const Done<ScheduleList>& done) const;
  bool add(ScheduleList& list, const TopicEntry& entry, const SchedulesWanted& wanted,
           const std::string& behind) const;

  const Parts parts_;
};

}  // namespace lightq::broker
