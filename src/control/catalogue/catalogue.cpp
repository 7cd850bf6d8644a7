/// Opens, checks and replays the catalogue's log, appends changes to it and replaces it by a compacted one.
/// Layer: control.
#include "control/catalogue/catalogue.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <system_error>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/random.hpp>

#include "control/catalogue/catalogue_version.hpp"
#include "log/storage/posix_storage.hpp"

namespace lightq::broker {

namespace {

namespace fs = std::filesystem;

/// Below this number of records, the history is not compacted.
constexpr std::uint64_t compact_records_min = 4096;
/// Returns a random log id that no topic has.
std::uint32_t new_log_id(const CatalogueState& state) {
  std::uint32_t id = 0;
  while (id == 0 || state.topic_of_log(id) != nullptr) {
    id = random_number<std::uint32_t>();
  }
  return id;
}

/// Returns the error for damaged records. The broker must not skip them: one may be a topic, or the removal
/// of a user or of a right.
Error damaged_records(Offset first, Offset next, const log::Log& log, const std::string& directory) {
  return {ErrorCode::corrupt,
          "catalogue: " + std::to_string(distance(first, next)) +
              " records of topics, users or rights are damaged: " + log.last_error().text() +
              ". Nothing was removed. Restore " + directory +
              " from a backup, or give these records up with `lightq log repair " + directory +
              " --force`; files of topics stay",
          0};
}

}  // namespace

Catalogue::Catalogue(fs::path directory, Options options, LogSink& sink)
    : directory_(std::move(directory)), options_(std::move(options)), sink_(sink) {}

Result<std::unique_ptr<Catalogue>> Catalogue::open(fs::path directory, Options options, LogSink& sink) {
  std::unique_ptr<Catalogue> catalogue(new Catalogue(std::move(directory), std::move(options), sink));
  if (auto loaded = catalogue->load(); !loaded) return loaded.error();
  return catalogue;
}

Result<void> Catalogue::load() {
  if (auto known = check_newest_known(); !known) return known;
  if (auto opened = open_newest(); !opened) return opened;
  if (auto replayed = replay(); !replayed) return replayed;
  if (auto there = check_not_lost(); !there) return there;
  if (auto removed = directory_.remove_all_but(generation_); !removed) return removed;
  keep_topics_with_files();
  state_.forget_ports_released_before(now_ms() - options_.port_rest.count());
  state_.forget_client_keys_expired_before(now_ms());
  state_.forget_unused_credentials();
  compact_at_ = compact_records_min;
  if (!is_mostly_history()) return {};
  const auto compaction = begin_compaction();
  compaction->run({});
  finish_compaction(*compaction);
  if (failed_) return *failed_;
  return {};
}

/// Fails if a newer version wrote the newest log. Called before anything is created, opened or removed.
Result<void> Catalogue::check_newest_known() const {
  const auto newest = directory_.newest();
  if (!newest) return newest.error();
  if (!*newest) return options_.topics_with_files.empty() ? Result<void>{} : check_not_lost();
  return check_catalogue_known(directory_.log(**newest));
}

/// Fails if the catalogue has been lost. A topic's record is durable before its files are created, and a
/// later generation begins with records, so an empty catalogue then means a loss. Starting with an empty one
/// would omit these topics and restore rights that users no longer have.
Result<void> Catalogue::check_not_lost() const {
  const bool has_records = log_ != nullptr && record_count() > 0;
  if (has_records || (options_.topics_with_files.empty() && generation_ == 1)) return {};
  const std::string files = options_.topics_with_files.empty()
                                ? std::string()
                                : ", but there are files of " +
                                      std::to_string(options_.topics_with_files.size()) + " topics (topics/" +
                                      std::to_string(options_.topics_with_files.front().value) + ")";
  return Error{ErrorCode::corrupt,
               "catalogue: " + directory_.path().string() + " has lost its records" + files +
                   ". Nothing was removed. Restore it from a backup; to begin without these topics and "
                   "users, move topics and catalogue out of the data directory",
               0};
}

/// Opens the newest complete log. The first call creates one if there is none.
Result<void> Catalogue::open_newest() {
  if (!opened_once_) {
    if (auto made = directory_.make(); !made) return made;
  }
  const auto newest = directory_.newest();
  if (!newest) return newest.error();
  if (opened_once_ && !*newest)
    return Error{ErrorCode::io_error, "catalogue: cannot find " + directory_.path().string(), ENOENT};
  if (*newest) generation_ = **newest;
  auto opened = options_.open_log(directory_.log(generation_));
  if (!opened) return opened.error();
  if (auto synced = directory_.sync(); !synced) return synced;
  log_ = std::move(opened).value();
  opened_once_ = true;
  return {};
}

/// Applies every record. Errors: io_error if part of it cannot be read now; corrupt if part of it is damaged.
Result<void> Catalogue::replay() {
  log::ReadPosition place{Offset{}};
  while (true) {
    const auto result = log_->read(place);
    switch (result.outcome) {
      case log::ReadOutcome::end: return {};
      case log::ReadOutcome::pending:  // no log in files returns this
      case log::ReadOutcome::unavailable: return log_->last_error();
      case log::ReadOutcome::batch:
        replay(result.batch);
        place.offset = result.batch.end_offset();
        break;
      case log::ReadOutcome::damaged:
        return damaged_records(place.offset, result.next, *log_, directory_.log(generation_).string());
      case log::ReadOutcome::trimmed:
        sink_.error("catalogue: " + std::to_string(distance(place.offset, result.next)) +
                    " records from record " + std::to_string(place.offset.value) +
                    " on are missing: a repair gave them up, or their file is gone");
        place = log::ReadPosition{result.next};
    }
  }
}

/// Remembers only those removed topics that have files. Reserves the ids of all topics with files, whether or
/// not the catalogue knows the topics.
void Catalogue::keep_topics_with_files() {
  std::set<std::uint64_t> ids;
  for (const TopicId topic : options_.topics_with_files) ids.insert(topic.value);
  state_.keep_removed_topics(ids);
  if (!ids.empty()) state_.apply(CatalogueChange(NextIds{*ids.rbegin() + 1, 1, 1}));
}

void Catalogue::replay(const BatchView& batch) {
  if (batch.is_compressed())
    return sink_.error(
        "catalogue: skipped a compressed batch, because no batch of a catalogue is ever compressed");
  for (auto record = batch.records(); !record.done(); record.next()) {
    const auto change = decode_change(as_text(record.payload()));
    if (change) {
      state_.apply(change.value());
    } else {
      sink_.error(change.error().text());
    }
  }
}

std::uint64_t Catalogue::record_count() const {
  return distance(log_->first_offset(), log_->next_offset());
}

bool Catalogue::is_mostly_history() {
  if (failed_ || compacting_ || log_ == nullptr || record_count() < compact_at_) return false;
  compact_at_ = std::max(compact_records_min, 2 * state_.record_count());
  return record_count() >= compact_at_;
}

std::unique_ptr<CatalogueCompaction> Catalogue::begin_compaction() {
  state_.forget_ports_released_before(now_ms() - options_.port_rest.count());
  state_.forget_unused_credentials();
  state_.forget_client_keys_expired_before(now_ms());
  compacting_ = true;
  return std::make_unique<CatalogueCompaction>(directory_.unfinished_log(generation_ + 1), state_.snapshot(),
                                               options_.open_log, options_.now());
}

void Catalogue::finish_compaction(CatalogueCompaction& compaction) {
  const auto replaced = replace_log(compaction);
  give_up_compaction();
  if (!replaced) {  // the old log stays in use: a full disk, say, must not end the broker
    sink_.warn("catalogue: not compacted: " + replaced.error().text());
    std::error_code ignored;  // the next attempt or start removes it
    fs::remove_all(compaction.directory(), ignored);
  }
  if (failed_) return;
  if (const auto opened = open_again(); !opened) {
    sink_.error("catalogue: cannot be opened again; the next change retries: " + opened.error().text());
    return;
  }
  // After a failure, try again only when the log has grown to twice its length.
  compact_at_ = replaced ? compact_records_min : 2 * record_count();
}

/// Opens the newest log if none is open. Whichever log is the newest now contains all changes, synced.
Result<void> Catalogue::open_again() {
  return log_ != nullptr ? Result<void>{} : open_newest();
}

void Catalogue::give_up_compaction() {
  compacting_ = false;
  since_ = {};
}

Result<void> Catalogue::replace_log(CatalogueCompaction& compaction) {
  // Flush first: then each log that a crash may leave contains every change that was confirmed.
  if (auto flushed = flush(); !flushed) return flushed;
  if (auto added = compaction.add(since_); !added) return added;
  // Open the directory first: failing to open it is not a failed sync.
  log::PosixStorage storage;
  const auto directory = storage.open_directory(directory_.path().string());
  if (!directory) return directory.error();
  log_.reset();  // from here on open_newest finds the complete one
  if (auto completed = directory_.complete(generation_ + 1); !completed) return completed;
  if (auto synced = (*directory)->sync(); !synced) {
    stop_changes("the rename of its new log could not be synced", synced);
    return synced;
  }
  if (auto opened = open_newest(); !opened) return opened;
  return directory_.remove_all_but(generation_);
}

/// Refuses all later changes, because the contents of the disk are unknown.
void Catalogue::stop_changes(const std::string& what, const Result<void>& why) {
  failed_ = why.error();
  sink_.error("catalogue: " + what + "; no change is accepted until a restart: " + failed_->text());
}

Result<void> Catalogue::change(const CatalogueChange& change) {
  if (failed_) return *failed_;
  if (auto opened = open_again(); !opened) return opened;
  if (auto appended = append_changes(*log_, {&change, 1}, options_.now()); !appended) return appended;
  state_.apply(change);
  if (compacting_) since_.push_back(change);
  unflushed_ = true;
  return {};
}

Result<TopicDefinition> Catalogue::add_topic(const TopicName& name, const protocol::TopicSettings& settings,
                                             std::uint64_t credential_id) {
  TopicDefinition definition{{state_.next_ids().topic}, name, settings};
  if (settings.encrypt_at_rest) definition.log_id = new_log_id(state_);
  if (auto changed = change(TopicAdded{{definition, credential_id}}); !changed) return changed.error();
  return definition;
}

Result<void> Catalogue::remove_topic(TopicId topic) {
  return change(TopicRemoved{topic, now_ms()});
}

Result<void> Catalogue::set_log(TopicId topic, std::uint32_t log_id) {
  return change(TopicLog{topic, log_id});
}

Result<void> Catalogue::set_paused(TopicId topic, bool paused) {
  const TopicEntry* const entry = state_.find(topic);
  if (entry == nullptr || entry->definition.paused == paused) return {};
  return change(TopicPaused{topic, paused});
}

Result<std::uint64_t> Catalogue::add_credential(const std::string& user_id, const std::string& argon2) {
  const auto id = state_.next_ids().credential;
  if (auto changed = change(CredentialAdded{{id, user_id, argon2}}); !changed) return changed.error();
  return id;
}

Result<void> Catalogue::set_topic_credential(TopicId topic, std::uint64_t credential_id) {
  return change(TopicCredential{topic, credential_id});
}

Result<UserRecord> Catalogue::add_user(UserRecord user) {
  user.id = state_.next_ids().credential;
  user.generation = 1;
  user.credential.id = user.id;
  if (auto changed = change(UserPut{user}); !changed) return changed.error();
  return user;
}

Result<UserRecord> Catalogue::set_user_password(const UserRecord& user, const std::string& argon2) {
  UserRecord changed_user = user;
  ++changed_user.generation;
  changed_user.credential.id = state_.next_ids().credential;
  changed_user.credential.argon2 = argon2;
  if (auto changed = change(UserPut{changed_user}); !changed) return changed.error();
  return changed_user;
}

Result<void> Catalogue::put_user(const UserRecord& user) {
  return change(UserPut{user});
}

Result<void> Catalogue::remove_user(std::uint64_t id) {
  return change(UserRemoved{id});
}

Result<void> Catalogue::put_endpoint(const EndpointRecord& endpoint) {
  return change(EndpointPut{endpoint});
}

Result<void> Catalogue::remove_endpoint(std::uint64_t id) {
  if (state_.endpoint(id) == nullptr) return {};
  return change(EndpointRemoved{id, now_ms()});
}

Result<void> Catalogue::flush() {
  if (failed_) return *failed_;
  if (!unflushed_) return {};
  if (auto flushed = log_->flush(); !flushed) {
    if (!log_->may_flush_again()) stop_changes("a flush failed", flushed);
    return flushed;
  }
  unflushed_ = false;
  // Prepares the next segment before it is needed.
  if (auto job = log_->take_disk_job(options_.now()); job != nullptr) {
    job->run();
    job->finish();
  }
  return {};
}

}  // namespace lightq::broker
