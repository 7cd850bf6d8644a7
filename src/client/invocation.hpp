/// The options of each command as plain data, filled in by command_line.cpp. Layer: cli.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/codec.hpp>
#include <lightq/base/result.hpp>
#include <lightq/delayed_control.hpp>
#include <lightq/group_control.hpp>
#include <lightq/options.hpp>
#include <lightq/protocol/session_consuming.hpp>
#include <lightq/protocol/session_producing.hpp>
#include <lightq/schedule_control.hpp>

#include "client/help/command_entry.hpp"
#include "client/secret_environment.hpp"

namespace lightq::cli {

/// Exit codes, documented in `lightq --help`. exit_lost: a log was repaired with losses.
enum ExitCode : int { exit_ok = 0, exit_failure = 1, exit_usage = 2, exit_lost = 3 };

/// Options of every command that talks to a broker.
struct Common {
  std::string context;              ///< a named broker, see context_file.hpp; empty: the one in use
  std::string broker;               ///< control URI; empty: discovered
  std::string user;                 ///< topic user; empty: discovered, or the admin
  std::string password_file;        ///< of the user's password; empty: LIGHTQ_PASSWORD
  std::string admin_user;           ///< empty: lightq_admin
  std::string admin_password_file;  ///< empty: LIGHTQ_ADMIN_PASSWORD, or this machine's admin.json
  std::string server_key;           ///< the broker's public key; empty: discovered, or no encryption
  std::string client_key_file;      ///< has this client's secret key; empty: a new key
  std::string data_dir;             ///< empty: the usual places
  /// The values of LIGHTQ_PASSWORD, LIGHTQ_ADMIN_PASSWORD and LIGHTQ_NEW_PASSWORD.
  std::shared_ptr<SecretEnvironment> secrets = std::make_shared<SecretEnvironment>();
  Timeout request_timeout{5000};
  bool insecure = false;  ///< permits sending passwords and tickets unencrypted to other machines
  bool json = false;
  bool quiet = false;
};

struct TopicCreate {
  std::string topic;
  TopicSettings settings;
  protocol::GivenSettings given;
};

/// A change of a topic's settings.
struct TopicSet {
  std::string topic;
  protocol::TopicChange change;
  bool over_pending = false;  ///< the value of retention_over_pending, if it is given
};

/// An operation on a topic, or on one of its groups.
struct TopicControl {
  enum class What { pause, resume, purge };
  What what = What::pause;
  std::string topic;
  std::string group;     ///< empty: the topic
  bool yes = false;      ///< purge: do not ask
  bool delayed = false;  ///< purge of the topic: also its delayed messages
};

/// A change of a group's settings.
struct GroupSet {
  std::string topic;
  std::string group;
  GroupChange change;
  std::string target;    ///< the dead-letter topic; empty: not given
  bool parks = false;    ///< no dead-letter topic
  bool pauses = false;   ///< the value of pause_when_failing, if it is given
  bool letters = false;  ///< the value of dead_letter_expired, if it is given
};

/// A look at the groups of a topic.
struct GroupView {
  std::string topic;
  std::string group;  ///< info
};

/// A move of a group.
struct GroupReset {
  std::string topic;
  std::string group;
  GroupPlace to;
  bool preview = false;  ///< only find the effect
  bool yes = false;      ///< do not ask
};

/// An operation on dead messages.
struct DeadCommand {
  std::string topic;
  std::string group;  ///< empty: the topic is a dead-letter topic
  DeadFilter filter;
  std::uint64_t count = 100;    ///< list: the most messages
  bool preview = false;         ///< retry and purge: only count
  std::uint64_t offset = 0;     ///< show
  std::string format = "text";  ///< show: see MessageTemplate
};

/// An operation on delayed messages.
struct DelayedCommand {
  std::string topic;
  DelayedFilter filter;
  bool all = false;           ///< the filter may be empty
  std::uint64_t count = 100;  ///< list: the most messages
  bool preview = false;       ///< only count
  std::uint64_t number = 0;   ///< show
  std::int64_t due = 0;       ///< reschedule: as a record has it, see due.hpp
};
/// An operation on a recurring schedule.
struct ScheduleCommand {
  std::string name;
  std::string topic;                        ///< empty: all topics, for list
  ScheduleSettings settings;                ///< set: all but the payload
  std::optional<std::string> payload = {};  ///< set
  std::string file;                         ///< set: the file with the payload; empty: not given
  Timeout ttl{0};                           ///< set: the time to live of each message; 0: none
  std::uint64_t count = 5;                  ///< show: next times
};

/// An operation on a user.
struct UserCommand {
  std::string name;
  std::vector<std::string> produce;  ///< patterns of topic names
  std::vector<std::string> consume;
  std::vector<std::string> manage;
  bool admin = false;
  std::optional<std::uint32_t> uid;
  std::string topic;              ///< password: change that of this topic's own user
  bool yes = false;               ///< remove: do not ask
  std::string new_password_file;  ///< empty: LIGHTQ_NEW_PASSWORD, or typed
};

/// `lightq export`.
struct Export {
  std::string topic;
  std::optional<std::uint64_t> from = {};   ///< the first offset
  std::optional<std::uint64_t> until = {};  ///< one past the last offset
  std::uint64_t count = 0;                  ///< the most messages; 0: all
};

/// `lightq import`.
struct Import {
  std::string topic;
  std::vector<std::string> files;  ///< empty: standard input
  std::uint64_t skip_lines = 0;    ///< lines at the beginning of all input that are not read
  bool preview = false;            ///< only check the lines
  Timeout timeout{30'000};
  session::ConfirmLevel confirm = session::ConfirmLevel::topics_default;
};

/// `lightq mirror`. `from_...`: of the source.
struct Mirror {
  std::string topic;
  std::string from;        ///< control URI
  std::string from_topic;  ///< empty: as `topic`
  std::string from_user;
  std::string from_password_file;
  std::string from_server_key;
  std::string from_data_dir;
  std::string state_file;                    ///< empty: the usual one
  std::optional<session::Place> begin = {};  ///< begins anew there
  bool until_end = false;
  session::ConfirmLevel confirm = session::ConfirmLevel::topics_default;

  [[nodiscard]] const std::string& source_topic() const { return from_topic.empty() ? topic : from_topic; }
};

/// `lightq definitions import`.
struct DefinitionsImport {
  std::string file;
  bool preview = false;  ///< only say what would change
};

struct Produce {
  std::string cmd = "produce";  ///< the command, for messages of the program
  std::string topic;
  std::vector<std::string> files;  ///< empty: standard input, unless messages are generated
  std::uint64_t count = 0;         ///< messages to generate, or the most lines to read; 0: no limit
  std::uint64_t size_bytes = 100;  ///< of a generated message
  bool generate = false;
  char line_end = '\n';      ///< ends each message of a file
  bool whole_files = false;  ///< each file is a message
  std::uint64_t rate = 0;    ///< messages per second; 0: as fast as possible
  Timeout timeout{30'000};
  bool wait = true;                                    ///< until the broker has received everything
  bool plain = false;                                  ///< over a plain ZeroMQ socket, without confirms
  ConnectionType connection = ConnectionType::socket;  ///< of the session
  session::ConfirmLevel confirm = session::ConfirmLevel::topics_default;
  std::string key;                                           ///< the key of every message; empty: none
  std::vector<std::pair<std::string, std::string>> headers;  ///< the headers of every message
  std::string key_separator;  ///< the text before it in a line is the key; empty: no keys
  Codec compression = Codec::none;
  std::string id;                   ///< the id of every message; empty: none
  std::optional<std::int64_t> due;  ///< of every message, as a record has it; nothing: not delayed
  Timeout ttl{0};                   ///< the time to live of every message; 0: none
  bool retry_refused = false;       ///< send messages again that a full topic rejects

  /// Returns true if any of these options requires a session.
  [[nodiscard]] bool has_attributes() const {
    return ttl.count() != 0 || !key.empty() || !headers.empty() || !key_separator.empty() ||
           compression != Codec::none;
  }
};

enum class Format { raw, json, hex };

struct Consume {
  std::string topic;
  Mode mode = Mode::pull;
  std::uint64_t count = 0;  ///< 0: no limit
  bool follow = true;
  Format format = Format::raw;
  bool force = false;   ///< prints control characters to a terminal unescaped
  std::string pattern;  ///< see MessageTemplate; empty: `format`
  Timeout timeout{0};   ///< longest time without a message; 0: no limit
  bool plain = false;   ///< over a plain ZeroMQ socket, without acknowledgements
  ConnectionType connection = ConnectionType::socket;  ///< of the session
  std::string group;                   ///< of the group or, in mode sub, the cursor; empty: default, none
  std::optional<session::Place> from;  ///< start of a new group or cursor; nothing: the mode's default
};

struct Peek {
  std::string topic;
  std::optional<std::uint64_t> from;  ///< an offset; nothing: the oldest message
  bool newest = false;                ///< starts at the last `count` messages instead
  std::uint64_t count = 10;
  std::string format = "text";  ///< see MessageTemplate
  bool force = false;           ///< as in Consume
};

struct TraceRequest {
  std::string topic;
  std::uint64_t offset = 0;
};

struct StatsRequest {
  std::string topic;  ///< empty: the whole broker, or all topics
  bool all = false;   ///< all topics
  bool watch = false;
  Timeout interval{1000};
  bool with_directory = false;  ///< of a topic: also the directory of its log
};

struct TopRequest {
  Timeout interval{1000};
};

enum class BenchTransport {
  plain,    ///< ZeroMQ sockets without a session: no confirms
  session,  ///< sessions over shared memory, a socket or TLS, whichever the client chooses
  zmq,      ///< sessions over ZeroMQ sockets
};

/// `lightq bench`. Each combination of the values in lists is a row.
struct Bench {
  std::string topic;  ///< empty: a topic made for the run and deleted at the end
  BrokerType type = BrokerType::queue;
  Mode mode = Mode::pull;
  std::uint64_t count = 1'000'000;  ///< messages of each row
  std::vector<std::uint64_t> producers = {1};
  std::vector<std::uint64_t> consumers = {1};
  std::vector<std::uint64_t> sizes = {100};
  std::vector<std::uint64_t> rates = {0};  ///< messages a second; 0: as fast as possible
  std::vector<session::ConfirmLevel> confirms = {session::ConfirmLevel::topics_default};
  std::vector<BenchTransport> transports = {BenchTransport::plain};
  std::string compare_file;  ///< an earlier output; empty: none
  std::string plot_file;     ///< gets an SVG image; empty: none
};

struct LogDump {
  enum class What { messages, batches, segments, cursors };
  std::string directory;
  What what = What::messages;
  std::uint64_t from = 0;
  std::uint64_t to = ~std::uint64_t{0};  ///< exclusive
  std::uint64_t count = 0;               ///< lines; 0: no limit
  std::string format = "text";           ///< see MessageTemplate
  bool force = false;                    ///< as in Consume
  std::string key_file;                  ///< of the broker's storage keys; empty: none
};

struct LogVerify {
  std::string directory;
  std::string key_file;  ///< as in LogDump
};

struct LogRepair {
  std::string directory;
  std::string output;  ///< empty: in place, with `force`
  bool force = false;
  bool trust_batches = false;
};

// The commands. Each prints its results to standard output and everything else to standard error, and returns
// the exit code.
int run_topic_create(const Common& common, const TopicCreate& create);
int run_topic_set(const Common& common, const TopicSet& set);
int run_topic_list(const Common& common);
int run_topic_info(const Common& common, const std::string& topic);
int run_topic_delete(const Common& common, const std::string& topic, bool yes);
int run_topic_delete_group(const Common& common, const std::string& topic, const std::string& group);
int run_topic_control(const Common& common, const TopicControl& control);
int run_group_list(const Common& common, const GroupView& view);
int run_group_info(const Common& common, const GroupView& view);
int run_group_reset(const Common& common, const GroupReset& reset);
int run_group_set(const Common& common, const GroupSet& set);
int run_dead_list(const Common& common, const DeadCommand& dead);
int run_dead_show(const Common& common, const DeadCommand& dead);
int run_dead_retry(const Common& common, const DeadCommand& dead);
int run_dead_purge(const Common& common, const DeadCommand& dead);
int run_delayed_list(const Common& common, const DelayedCommand& delayed);
int run_delayed_show(const Common& common, const DelayedCommand& delayed);
int run_delayed_cancel(const Common& common, const DelayedCommand& delayed);
int run_delayed_hurry(const Common& common, const DelayedCommand& delayed);
int run_delayed_reschedule(const Common& common, const DelayedCommand& delayed);
int run_schedule_set(const Common& common, const ScheduleCommand& command);
int run_schedule_list(const Common& common, const ScheduleCommand& command);
int run_schedule_show(const Common& common, const ScheduleCommand& command);
int run_schedule_pause(const Common& common, const ScheduleCommand& command);
int run_schedule_resume(const Common& common, const ScheduleCommand& command);
int run_schedule_remove(const Common& common, const ScheduleCommand& command);
int run_user_add(const Common& common, const UserCommand& user);
int run_user_remove(const Common& common, const UserCommand& user);
int run_user_password(const Common& common, const UserCommand& user);
int run_user_grant(const Common& common, const UserCommand& user);
int run_user_revoke(const Common& common, const UserCommand& user);
int run_user_list(const Common& common);
int run_produce(const Common& common, const Produce& produce);
int run_export(const Common& common, const Export& asked);
int run_import(const Common& common, const Import& import);
int run_mirror(const Common& common, const Mirror& mirror);
int run_definitions_export(const Common& common);
int run_definitions_import(const Common& common, const DefinitionsImport& asked);
int run_consume(const Common& common, const Consume& consume);
int run_peek(const Common& common, const Peek& peek);
int run_trace(const Common& common, const TraceRequest& asked);
int run_stats(const Common& common, const StatsRequest& stats);
int run_top(const Common& common, const TopRequest& request);
int run_ping(const Common& common);
int run_reload(const Common& common);
int run_version(const Common& common);
int run_bench(const Common& common, const Bench& bench);
/// Fills in what the context in use, or the one that is named, says about the connection. Flags and variables
/// come first: a context that is not named is not used beside a broker or data directory that they name, and
/// its user not beside another user. Errors: invalid_argument (there is no such context, or its file is
/// unusable).
Result<Common> with_context(const Common& common);
int run_context_add(const Common& common, const std::string& name);
int run_context_use(const Common& common, const std::string& name);
int run_context_remove(const Common& common, const std::string& name);
int run_context_list(const Common& common);
/// Returns exit_failure if a finding is a fault.
int run_doctor(const Common& common);
// Commands that describe the program itself. Only `completion words` asks a broker, for names, and is quiet
// if that fails. `typed`: a command line without the program's name; its last word is to be completed.
int run_completion_script(const std::string& shell);
int run_completion_words(const Common& common, const CommandEntry& program,
                         const std::vector<std::string>& typed);
int run_man(const CommandEntry& program, const std::string& command, const std::string& directory);
// Commands on a client's key. They need no broker.
int run_key_new(const Common& common, const std::string& file);
int run_key_public(const Common& common, const std::string& file);
// Commands on a log's directory. They need no broker. dump and verify return exit_usage if nothing could be
// read.
int run_log_dump(const Common& common, const LogDump& dump);
int run_log_verify(const Common& common, const LogVerify& verify);
int run_log_repair(const Common& common, const LogRepair& repair);
int run_log_snapshot(const Common& common, const std::string& directory, const std::string& output);
// Commands on a whole data directory. `backup` runs beside the broker.
int run_backup(const Common& common, const std::string& output);
/// `only_check`: restores nothing.
int run_restore(const Common& common, const std::string& backup, bool only_check);

}  // namespace lightq::cli
