/// Executes control requests: checks permissions, changes the catalogue and instructs the data plane. Layer:
/// control. The commands are implemented by subject: topic_commands.cpp, endpoint_commands.cpp,
/// client_key_commands.cpp, group_commands.cpp, user_commands.cpp, stats_commands.cpp.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <lightq/protocol/control.hpp>

#include "access/authenticator.hpp"
#include "admission/limit_counts.hpp"
#include "base/log_sink.hpp"
#include "control/answer.hpp"
#include "control/catalogue/catalogue.hpp"
#include "control/catalogue/commit_queue.hpp"
#include "control/commands/data_plane.hpp"
#include "control/commands/topic_makers.hpp"

namespace lightq::broker {

/// Executes requests. Thread: everything on the control loop's thread. Credentials are checked before
/// existence: a client without correct credentials receives `unauthorized_access`, whether or not the topic
/// exists.
class CommandHandler final : public DataPlaneObserver {
 public:
  using Answer = broker::Answer;

  /// The objects that the handler works with. Lifetime: all must outlive it.
  struct Parts {
    EventLoop& loop;
    Catalogue& catalogue;
    Authenticator& authenticator;
    DataPlane& data_plane;
    LogSink& sink;
  };
  struct Settings {
    std::string data_dir;  ///< as stats report it
    std::function<Timestamp()> now;
    std::size_t topics_max = limits::topics_max;
    std::size_t users_max = limits::users_max;
    std::size_t rights_per_user_max = limits::rights_per_user_max;
    std::uint64_t ring_bytes_max = limits::ring_bytes_max;  ///< per topic
    std::uint64_t memory_bytes_max = 0;                     ///< for all rings; 0: unlimited
    bool open_topics = false;  ///< every topic accepts plain clients without a ticket
    /// Returns the number of requests that the control socket refused because their source asked too much.
    std::function<std::uint64_t()> throttled = [] { return std::uint64_t{0}; };
    std::string server_key = {};            ///< Z85, sent in replies to join; empty: no encryption
    ClientKeys* client_keys = nullptr;      ///< registered at a join, with server_key; outlives the handler
    bool insecure = false;                  ///< as stats report it
    std::uint32_t admin_generation = 0;     ///< the generation of the administrator's tickets and keys
    LimitCounts* limits_reached = nullptr;  ///< null: not counted; outlives the handler
    /// Returns the number of connections that the control socket evicted.
    std::function<std::uint64_t()> evicted = [] { return std::uint64_t{0}; };
  };

  CommandHandler(Parts parts, Settings settings);

  /// Passes every topic of the catalogue to the data plane, then calls `done`. A topic that cannot be started
  /// is reported to the sink. Requests for it receive the reason as an error, and it can be deleted.
  void bring_up(std::function<void()> done);

  /// Executes a request. Calls `answer` exactly once, immediately or later, but never if the loop ends first.
  void handle(protocol::Request request, Answer answer);

  /// Makes every later request fail with `shutting_down`.
  void stop_accepting() { stopping_ = true; }

  void endpoint_closed(const EndpointRecord& record) override;
  void endpoint_changed(const EndpointRecord& record) override;
  void log_found(TopicId topic, std::uint32_t log_id) override;

 private:
  using Permitted = std::function<void()>;
  /// Called with the user that asks; null: the administrator.
  using WithUser = std::function<void(const UserRecord*)>;
  /// Called with a topic that exists and runs, and with the holder that its tickets will name.
  using WithTopic = std::function<void(TopicId, const TicketHolder&)>;
  /// The right that a command needs on a topic or its groups. No right: any right is sufficient.
  struct Need {
    std::optional<protocol::Right> right;
    GroupScope scope = GroupScope::whole_topic();
  };
  /// Returns the right to manage a group or, with `group` empty, the whole topic.
  static Need to_manage(std::string_view group) {
    return {protocol::Right::manage, group.empty() ? GroupScope::whole_topic() : GroupScope::of(group)};
  }

  void execute(protocol::CreateTopic request, const Answer& answer);
  void execute(protocol::DeleteTopic request, const Answer& answer);
  void execute(protocol::ListTopics request, const Answer& answer);
  void execute(protocol::Join request, const Answer& answer);
  void execute(protocol::Leave request, const Answer& answer);
  void execute(protocol::Stats request, const Answer& answer);
  void execute(protocol::DeleteGroup request, const Answer& answer);
  void execute(protocol::Pause request, const Answer& answer);
  void execute(protocol::Resume request, const Answer& answer);
  void execute(protocol::Purge request, const Answer& answer);
  void execute(protocol::CreateUser request, const Answer& answer);
  void execute(protocol::DeleteUser request, const Answer& answer);
  void execute(protocol::SetPassword request, const Answer& answer);
  void execute(protocol::GrantRights request, const Answer& answer);
  void execute(protocol::RevokeRights request, const Answer& answer);
  void execute(protocol::ListUsers request, const Answer& answer);
  void execute(protocol::Ping request, const Answer& answer);
  void execute(protocol::Version request, const Answer& answer);

  // Permission checks (command_handler.cpp). If they refuse a request, they send the error themselves.
  /// Permits the administrator and every user.
  void permit_someone(std::string_view cmd, protocol::Credentials given, const Answer& answer, WithUser then,
                      const std::string& subject = {});
  /// Permits the administrator and users that are administrators.
  void permit_admin(std::string_view cmd, protocol::Credentials given, const Answer& answer,
                    Permitted permitted);
  /// Permits administrators, and users that may manage a topic of this name, whether or not it exists.
  void permit_manager(std::string_view cmd, protocol::Credentials given, const TopicName& topic,
                      const Answer& answer, WithUser then);
  /// Permits administrators, the topic's own user, and users that have the needed right.
  void permit_topic(std::string_view cmd, protocol::Credentials given, bool as_admin, Need need,
                    const TopicName& topic, const Answer& answer, WithTopic then);
  // Identify the asker of a permitted request that had to wait. Its permission is checked again before
  // execution.
  static TicketHolder asker_of(const UserRecord* user) {
    return user == nullptr ? TicketHolder{} : TicketHolder{user->id, user->generation};
  }
  [[nodiscard]] bool is_still_admin(const TicketHolder& asker) const;
  /// Returns the key by which the authenticator tells askers of one source apart.
  static std::string name_of(const TicketHolder& asker) { return std::to_string(asker.user); }
  [[nodiscard]] bool still_manages(const TicketHolder& asker, const std::string& topic) const;
  [[nodiscard]] const UserRecord* user_of_peer(const protocol::Credentials& given,
                                               const Answer& answer) const;
  void permit_topics_own(std::string_view cmd, protocol::Credentials given, const TopicName& topic,
                         const Answer& answer, WithTopic then);
  void verify_user(std::string_view cmd, const UserRecord& user, protocol::Credentials given,
                   const Answer& answer, const std::string& subject, WithUser then);
  /// `subject`: Asking::subject.
  void verify(const CredentialRecord* credential, protocol::Credentials given, const Answer& answer,
              const std::string& subject, Authenticator::VerifyDone done);
  /// Calls `then` for an existing topic, or replies with an error. Call it only after the asker's credentials
  /// were verified: the reply reveals whether the topic exists.
  void with_topic(std::string_view cmd, const TopicName& topic, const TicketHolder& holder,
                  const Answer& answer, const WithTopic& then);
  void refuse(std::string_view cmd, AuthOutcome outcome, const Answer& answer);
  /// Refuses a user whose password was correct. The reply names the user, the missing right and the way to
  /// obtain it. It contains only names from the request, so it is the same whether or not the topic exists.
  void refuse_without_right(std::string_view cmd, const UserRecord& user, const Need& need,
                            const std::string& topic, const Answer& answer);
  /// Refuses a user whose password was correct a command that only administrators may execute.
  void refuse_without_admin(std::string_view cmd, const UserRecord& user, const Answer& answer);

  // Topics (topic_commands.cpp).
  void create_named(const protocol::CreateTopic& request, const TicketHolder& asker, const Answer& answer);
  /// Hashes the password of a topic's own user, or finds the credential that already has it. For askers other
  /// than an administrator, both cases take equal time.
  void enrol(const protocol::Credentials& given, const TicketHolder& asker, Authenticator::EnrolDone done,
             const Answer& answer);
  [[nodiscard]] std::optional<Error> objection_to_ring(const protocol::TopicSettings& settings) const;
  [[nodiscard]] std::optional<Error> no_memory_for(const protocol::TopicSettings& settings,
                                                   std::uint64_t maker) const;
  [[nodiscard]] std::optional<Error> no_place_for_topic(std::uint64_t maker) const;
  void create_enrolled(const protocol::CreateTopic& request, std::uint64_t maker, const Enrolment& enrolment,
                       const Answer& answer);
  [[nodiscard]] std::optional<Error> objection_to_user(const std::string& user_id) const;
  void create_with(const protocol::CreateTopic& request, std::uint64_t maker, std::uint64_t credential_id,
                   const Answer& answer);
  void add_to_data_plane(const TopicDefinition& definition, const Answer& answer);
  void undo_create(TopicId topic, const Error& error, const Answer& answer);
  void remove_files(TopicId topic, std::function<void(const Result<void>&)> done);
  void warn_of_open_topics();
  void bring_up_next();

  // Endpoints (endpoint_commands.cpp).
  void keep_joined(const TopicName& topic, const JoinedEndpoint& joined,
                   const std::optional<ClientKeyRecord>& key, const Answer& answer);
  void answer_left(std::uint64_t handed, const Answer& answer);

  // Encryption (client_key_commands.cpp).
  [[nodiscard]] bool wants_client_key(const JoinWish& wish, bool open) const;
  [[nodiscard]] std::optional<Error> objection_to(const std::optional<CurvePublicKey>& key,
                                                  const Grant& grant, const TicketHolder& holder) const;
  [[nodiscard]] static ClientKeyRecord record_of(const CurvePublicKey& key, const JoinedEndpoint& joined,
                                                 const TicketHolder& holder);
  [[nodiscard]] protocol::JoinReply join_reply(const TopicName& topic, const JoinedEndpoint& joined) const;

  [[nodiscard]] Leaver leaver_of(const TicketHolder& holder, const TopicName& topic) const;

  // Users (user_commands.cpp).
  [[nodiscard]] std::optional<Error> objection_to(const protocol::CreateUser& request) const;
  void create_user(const protocol::CreateUser& request, const std::string& argon2, const Answer& answer);
  void set_user_password(const protocol::SetPassword& request, const TicketHolder& asker,
                         const Answer& answer);
  void set_topic_password(TopicId topic, const protocol::SetPassword& request, const TicketHolder& asker,
                          const Answer& answer);
  void replace_credential(TopicId topic, const protocol::Credentials& user, const Enrolment& enrolment,
                          const Answer& answer);
  void put_user(std::string_view cmd, const Result<UserRecord>& changed, const Answer& answer);
  /// Passes a durable change of users to the data plane, then sends the reply.
  void bring_into_force(std::string_view cmd, const std::function<void(DataPlane::Done<Result<void>>)>& apply,
                        const Answer& answer);

  // Groups and whole topics (group_commands.cpp).
  template <typename Asked>
  void set_paused(std::string_view cmd, Asked request, bool paused, const Answer& answer);
  void set_topic_paused(std::string_view cmd, TopicId topic, bool paused, const Answer& answer);
  [[nodiscard]] std::optional<Error> nothing_kept(TopicId topic) const;

  void broker_stats(const Answer& answer);

  EventLoop& loop_;
  Catalogue& catalogue_;
  Authenticator& authenticator_;
  DataPlane& data_plane_;
  LogSink& sink_;
  const Settings settings_;
  const std::int64_t since_ms_;
  CommitQueue commits_;
  bool stopping_ = false;

  TopicMakers makers_;
  std::unordered_set<std::string> coming_;           // names of topics that are being created
  std::unordered_set<std::uint64_t> not_ready_;      // topics that the data plane does not have yet
  std::unordered_map<std::uint64_t, Error> failed_;  // topics that the data plane could not start
  std::vector<TopicId> to_bring_up_;
  std::size_t being_brought_up_ = 0;
  std::function<void()> brought_up_;
};

/// Returns an ErrorReply to `cmd`.
protocol::Reply error_reply(std::string_view cmd, const Error& error);

}  // namespace lightq::broker
