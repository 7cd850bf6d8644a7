/// The names of the directories within that of a log. Layer: log. docs/log_format.md, "Files".
#pragma once

namespace lightq::log {

/// Contains copies of messages that the log has dropped: see CarriedLog.
inline constexpr const char* carried_directory_name = "carried";
/// Contains the topic's delayed messages, which are a log, too.
inline constexpr const char* delayed_directory_name = "delayed";

}  // namespace lightq::log
