/// Topics, users, credentials, endpoints and resting ports, kept in a log of their own so that they survive
/// the end of the process and of the machine. Layer: control.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <lightq/base/result.hpp>

#include "broker/control/catalogue_compaction.hpp"
#include "broker/control/catalogue_state.hpp"
#include "broker/endpoint/log_sink.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// The catalogue lies in DIRECTORY/NNNNNNNN, a log with one JSON record per change (catalogue_record.hpp). It
/// is replayed at the start; when most of it is history, then or later, its state is written into a new log
/// beside it (NNNNNNNN+1.new, renamed when it is flushed), and the old one is removed.
///
/// A change is seen at once; it survives a power cut once `flush` has returned. After a failed flush nothing
/// is accepted any more until the broker starts again. One thread.
class Catalogue {
 public:
  struct Options {
    /// Opens the log of a directory, and makes both where there is none.
    std::function<Result<std::unique_ptr<log::Log>>(const std::filesystem::path&)> open_log;
    std::function<Timestamp()> now;
    std::chrono::milliseconds port_rest{600'000};
    std::size_t client_keys_per_topic_max = limits::client_keys_per_topic_max;
    /// Those that end later are good no more (ClientKeys).
    std::chrono::milliseconds client_key_lifetime_max{limits::ticket_ms_max};
    /// Topics that have files. Their ids are given to no other topic; if there are any, a catalogue without a
    /// record has been lost.
    std::vector<TopicId> topics_with_files = {};
  };

  /// Errors: io_error; corrupt if records are damaged or the catalogue has been lost; whatever open_log says.
  /// After an error nothing of an earlier generation is removed.
  static Result<std::unique_ptr<Catalogue>> open(std::filesystem::path directory, Options options,
                                                 LogSink& sink);

  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  [[nodiscard]] const CatalogueState& state() const { return state_; }

  // Changes. Errors: no_space, io_error; then nothing has changed.

  Result<TopicDefinition> add_topic(const TopicName& name, const protocol::TopicSettings& settings,
                                    std::uint64_t credential_id);
  Result<void> remove_topic(TopicId topic);
  /// The files of a removed topic are gone. Until then the removal is part of the state, so that the next
  /// start may remove them.
  void forget_removed_topic(TopicId topic) { state_.forget_removed_topic(topic); }
  /// Files of this log were found in the place of a topic of which it was not known.
  Result<void> set_log(TopicId topic, std::uint32_t log_id);
  /// Nothing is handed out of the topic; no change if that is known.
  Result<void> set_paused(TopicId topic, bool paused);
  /// Answers the new credential's id.
  Result<std::uint64_t> add_credential(const std::string& user_id, const std::string& argon2);
  /// The topic's own user is another credential, which is there.
  Result<void> set_topic_credential(TopicId topic, std::uint64_t credential_id);
  /// A new user: `user` with ids of its own, which are answered with it.
  Result<UserRecord> add_user(UserRecord user);
  /// The user has another password, and another generation. Answers what it is now.
  Result<UserRecord> set_user_password(const UserRecord& user, const std::string& argon2);
  Result<void> put_user(const UserRecord& user);
  Result<void> remove_user(std::uint64_t id);
  Result<void> put_endpoint(const EndpointRecord& endpoint);
  /// Remembers its port as released now. No error if it is not known.
  Result<void> remove_endpoint(std::uint64_t id);
  /// Registers a client's key, or renews it. Where a topic has as many as it may have, those that are good no
  /// more go, and of a user who has half of them its own that ends first. Answers those that went. Errors
  /// also: limit_reached (catalogue_client_keys.cpp).
  Result<std::vector<ClientKeyRecord>> put_client_key(const ClientKeyRecord& record);
  /// Tickets are made with the key of this id. If that is another one, the keys that clients have registered
  /// end, of all topics. How many those were.
  Result<std::size_t> name_ticket_key(const std::string& key_id);
  /// The administrator's password is this one. What he has registered under another generation ends. How many
  /// keys those were.
  Result<std::size_t> put_administrator(const AdministratorRecord& administrator);

  // Compaction while the catalogue is in use (CatalogueCompactor).

  /// Whether a new log would be less than half as long, and is worth it; false while one is being written.
  [[nodiscard]] bool is_mostly_history();
  /// A copy of the state, to be written anywhere; changes from now on are kept for `finish_compaction`.
  [[nodiscard]] std::unique_ptr<CatalogueCompaction> begin_compaction();
  /// After its `run`: the new log, with what has changed meanwhile, takes the old one's place; if that was
  /// not possible, the old one stays, and the sink is told why.
  void finish_compaction(CatalogueCompaction& compaction);
  /// Instead: the old log stays.
  void give_up_compaction();

  /// Whether a change waits for a flush.
  [[nodiscard]] bool unflushed() const { return unflushed_; }
  /// Makes all changes so far durable; blocks for one fdatasync.
  Result<void> flush();

 private:
  Catalogue(std::filesystem::path directory, Options options, LogSink& sink);

  [[nodiscard]] std::vector<ClientKeyRecord> keys_in_the_way_of(const ClientKeyRecord& record) const;
  Result<std::size_t> end_client_keys(const CatalogueChange& by);
  Result<void> load();
  [[nodiscard]] Result<void> check_newest_known() const;
  [[nodiscard]] Result<void> check_not_lost() const;
  Result<void> open_newest();
  Result<void> open_again();
  Result<void> remove_leftovers();
  Result<void> replay();
  void replay(const BatchView& batch);
  [[nodiscard]] Error damaged_records(Offset first, Offset next) const;
  void keep_topics_with_files();
  [[nodiscard]] std::uint64_t record_count() const;
  Result<void> replace_log(CatalogueCompaction& compaction);
  void stop_changes(const std::string& what, const Result<void>& why);
  Result<void> change(const CatalogueChange& change);
  [[nodiscard]] std::int64_t now_ms() const { return options_.now().us / 1000; }
  [[nodiscard]] std::filesystem::path directory_of(std::uint64_t generation) const;

  const std::filesystem::path directory_;
  const Options options_;
  LogSink& sink_;
  std::uint64_t generation_ = 1;
  std::unique_ptr<log::Log> log_;  // null: to be opened again by the next change
  bool opened_once_ = false;
  CatalogueState state_;
  bool unflushed_ = false;
  std::optional<Error> failed_;   // a flush failed
  std::uint64_t compact_at_ = 0;  // records: below, it is not looked at whether most are history
  bool compacting_ = false;
  std::vector<CatalogueChange> since_;  // since it began
};

}  // namespace lightq::broker
