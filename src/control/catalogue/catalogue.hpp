/// Keeps topics, users, credentials, endpoints and recently released ports in a log, so that they survive the
/// end of the process and of the machine. Layer: control.
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

#include "base/log_sink.hpp"
#include "control/catalogue/catalogue_compaction.hpp"
#include "control/catalogue/catalogue_directory.hpp"
#include "control/catalogue/catalogue_state.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// The catalogue is stored in DIRECTORY/NNNNNNNN: a log with one JSON record per change
/// (catalogue_record.hpp). A start replays it. When most of the log is history, its state is written into a
/// new log beside it, at the start or later. The new log is named NNNNNNNN+1.new and renamed once it is
/// flushed; then the old log is removed.
///
/// A change is visible immediately. It survives a power cut once `flush` has returned. After a failed flush
/// the catalogue accepts no change until the broker restarts. One thread.
class Catalogue {
 public:
  struct Options {
    /// Opens the log in a directory, and creates both if they do not exist.
    std::function<Result<std::unique_ptr<log::Log>>(const std::filesystem::path&)> open_log;
    std::function<Timestamp()> now;
    std::chrono::milliseconds port_rest{600'000};
    std::size_t client_keys_per_topic_max = limits::client_keys_per_topic_max;
    /// A key with a later expiry is not valid (ClientKeys).
    std::chrono::milliseconds client_key_lifetime_max{limits::ticket_ms_max};
    /// Topics that have files. Their ids are not given to other topics. If there are any and the catalogue
    /// has no record, the catalogue has been lost.
    std::vector<TopicId> topics_with_files = {};
  };

  /// Opens the catalogue. Errors: io_error; corrupt if records are damaged or the catalogue has been lost;
  /// all errors of open_log. After an error, all files of earlier generations are still there.
  static Result<std::unique_ptr<Catalogue>> open(std::filesystem::path directory, Options options,
                                                 LogSink& sink);

  Catalogue(const Catalogue&) = delete;
  Catalogue& operator=(const Catalogue&) = delete;

  [[nodiscard]] const CatalogueState& state() const { return state_; }

  // Changes. Errors: no_space, io_error; in both cases nothing has changed.

  /// Records a change as it is, for changes that no function below makes (catalogue_settings.hpp,
  /// catalogue_schedules.hpp).
  Result<void> change(const CatalogueChange& change);

  Result<TopicDefinition> add_topic(const TopicName& name, const protocol::TopicSettings& settings,
                                    std::uint64_t credential_id);
  Result<void> remove_topic(TopicId topic);
  /// Forgets a removed topic once its files have been deleted. Until this call the removal is part of the
  /// state, so that the next start can delete the files.
  void forget_removed_topic(TopicId topic) { state_.forget_removed_topic(topic); }
  /// Records that the files found for a topic belong to this log. Used if the topic's log id was not
  /// recorded.
  Result<void> set_log(TopicId topic, std::uint32_t log_id);
  /// Records that the topic delivers no messages, or delivers them again. Writes nothing if that is already
  /// recorded.
  Result<void> set_paused(TopicId topic, bool paused);
  /// Returns the new credential's id.
  Result<std::uint64_t> add_credential(const std::string& user_id, const std::string& argon2);
  /// Makes another credential, which already exists, the one of the topic's own user.
  Result<void> set_topic_credential(TopicId topic, std::uint64_t credential_id);
  /// Adds `user` as a new user, and returns it with the ids that it received.
  Result<UserRecord> add_user(UserRecord user);
  /// Gives the user a new password and with it a new generation. Returns the user's new record.
  Result<UserRecord> set_user_password(const UserRecord& user, const std::string& argon2);
  Result<void> put_user(const UserRecord& user);
  Result<void> remove_user(std::uint64_t id);
  Result<void> put_endpoint(const EndpointRecord& endpoint);
  /// Records the port of the endpoint as released now. No error if the endpoint is not known.
  Result<void> remove_endpoint(std::uint64_t id);
  /// Registers a client's key, or renews it. If the topic has its maximum of keys, invalid keys are removed.
  /// If none is removed and the user already has half of the maximum, it loses its own key that expires
  /// first. Returns the removed keys. Errors also: limit_reached (catalogue_client_keys.cpp).
  Result<std::vector<ClientKeyRecord>> put_client_key(const ClientKeyRecord& record);
  /// Records the id of the ticket key. If it differs from the recorded one, all keys that clients have
  /// registered end, for all topics. Returns how many keys ended.
  Result<std::size_t> name_ticket_key(const std::string& key_id);
  /// Records the administrator's password. Keys that the administrator registered under another generation
  /// end. Returns how many keys ended.
  Result<std::size_t> put_administrator(const AdministratorRecord& administrator);

  // Compaction while the catalogue is in use (CatalogueCompactor).

  /// Returns true if a compacted log would be less than half as long and the saving is worth the work. False
  /// during a compaction.
  [[nodiscard]] bool is_mostly_history();
  /// Returns a copy of the state that any thread may write. From now on, changes are also kept for
  /// `finish_compaction`.
  [[nodiscard]] std::unique_ptr<CatalogueCompaction> begin_compaction();
  /// Call this after the compaction's `run`. Appends the changes made in the meantime to the new log, and
  /// replaces the old log with it. If that fails, the old log stays, and the sink receives the reason.
  void finish_compaction(CatalogueCompaction& compaction);
  /// Ends a compaction instead of `finish_compaction`: the old log stays.
  void give_up_compaction();

  /// Returns true if a change waits for a flush.
  [[nodiscard]] bool unflushed() const { return unflushed_; }
  /// Makes all changes so far durable. Blocks for one fdatasync.
  Result<void> flush();

 private:
  Catalogue(std::filesystem::path directory, Options options, LogSink& sink);

  Result<std::size_t> end_client_keys(const CatalogueChange& by);
  Result<void> load();
  [[nodiscard]] Result<void> check_newest_known() const;
  [[nodiscard]] Result<void> check_not_lost() const;
  Result<void> open_newest();
  Result<void> open_again();
  Result<void> replay();
  void replay(const BatchView& batch);
  void keep_topics_with_files();
  [[nodiscard]] std::uint64_t record_count() const;
  Result<void> replace_log(CatalogueCompaction& compaction);
  void stop_changes(const std::string& what, const Result<void>& why);
  [[nodiscard]] std::int64_t now_ms() const { return options_.now().us / 1000; }

  const CatalogueDirectory directory_;
  const Options options_;
  LogSink& sink_;
  std::uint64_t generation_ = 1;
  std::unique_ptr<log::Log> log_;  // null: the next change opens it again
  bool opened_once_ = false;
  CatalogueState state_;
  bool unflushed_ = false;
  std::optional<Error> failed_;   // set when a flush failed
  std::uint64_t compact_at_ = 0;  // number of records below which history is not measured
  bool compacting_ = false;
  std::vector<CatalogueChange> since_;  // changes since the compaction began
};

}  // namespace lightq::broker
