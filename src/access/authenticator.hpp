/// Checks passwords without blocking the control thread: argon2id runs on a worker thread, and recent correct
/// passwords are remembered. Layer: access.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <lightq/base/limits.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/secret.hpp>
#include <lightq/protocol/control.hpp>

#include "access/delayed_replies.hpp"
#include "access/login_throttle.hpp"
#include "access/password_hash.hpp"
#include "admission/fair_queue.hpp"
#include "admission/limit_counts.hpp"
#include "net/event_loop.hpp"

namespace lightq::broker {

/// A user name and the hash of its password. Several topics may refer to one credential. Id 0 means no
/// credential.
struct CredentialRecord {
  std::uint64_t id = 0;
  std::string user_id;
  std::string argon2;
};

enum class AuthOutcome {
  right,
  wrong,
  busy,  ///< too many passwords wait to be checked, in total or from this source
};

/// The result of enrolling a password, that is, of preparing it to be stored.
struct Enrolment {
  std::uint64_t known_id = 0;  ///< an existing credential with this user and password; 0: none is known
  std::string argon2;          ///< the hash to store, if no credential is known
};

/// The origin of a password, and the purpose it was given for.
struct Asking {
  std::string source = {};  ///< the client's address, RequestSource::key
  /// Everything in the request that decides which credentials are correct for it, and nothing that only the
  /// broker knows. Requests share a computation only if they are equal in subject, source, user and password.
  std::string subject = {};
};

/// Verifies and hashes passwords. Thread: every call is made on the loop's thread. `done` is called there
/// exactly once: immediately if the outcome is remembered or the queue is full, otherwise later. It is never
/// called if the loop ends first. Lifetime: the object must outlive the loop's run. A wrong password, an
/// unknown user and an unknown topic take the same work.
///
/// The queue of computations is bounded in total and per source; the bound is lower for a source that
/// LoginThrottle slows down. Sources and user names take turns and share the queue (FairQueue). Passwords to
/// be stored have a separate bound and separate turns. Replies to wrong passwords are delayed as
/// LoginThrottle says; a delayed reply blocks no other request. Replies to correct passwords are never
/// delayed.
class Authenticator {
 public:
  using VerifyDone = std::function<void(AuthOutcome)>;
  using EnrolDone = std::function<void(Result<Enrolment>)>;

  /// The time source and the timer. Tests replace both.
  struct Clockwork {
    std::function<LoginThrottle::Time()> now;
    std::function<void(std::chrono::milliseconds, std::function<void()>)> later;
  };
  static Clockwork clockwork_of(EventLoop& loop);

  /// `waiting_max`: the number of requests that may wait for a computation. One source may have a quarter of
  /// them, at most limits::logins_waiting_per_source_max. The same number of replies to wrong passwords may
  /// be delayed in addition.
  Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                std::size_t waiting_max = limits::logins_waiting_max)
      : Authenticator(loop, admin_user_id, admin_password, waiting_max, clockwork_of(loop)) {}
  Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                std::size_t waiting_max, Clockwork clockwork);
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;
  ~Authenticator();

  // Call these before the first request.
  /// Sets the number of keyed hashes that are remembered. Most credentials take two.
  void remember_at_most(std::size_t hashes) { remembered_max_ = hashes; }
  /// Counts refusals for lack of space in `counts`, which must outlive this object.
  void count_in(LimitCounts& counts) { counts_ = &counts; }

  [[nodiscard]] bool is_admin(const std::string& user_id) const { return user_id == admin_.user_id; }
  /// Returns the administrator's credential if `user_id` is the administrator's name, otherwise null.
  [[nodiscard]] const CredentialRecord* admin_credential(const std::string& user_id) const {
    return is_admin(user_id) ? &admin_ : nullptr;
  }
  /// Verifies `given` against `credential`. Null stands for an unknown user: the outcome is `wrong` after the
  /// same work.
  void verify(const CredentialRecord* credential, protocol::Credentials given, VerifyDone done,
              const Asking& asking = {});
  /// Returns the id of the credential that most recently matched this user and password; 0 if none is
  /// remembered.
  [[nodiscard]] std::uint64_t remembered(const protocol::Credentials& given);

  using HashDone = std::function<void(Result<std::string>)>;
  /// Hashes a password to be stored, without looking for a known credential. `asker`: the key by which
  /// several users of one source take turns. Errors: busy, internal.
  void hash(Secret password, HashDone done, const std::string& source = {}, std::string asker = {});
  /// When `enrol` reports that a password is already known.
  enum class EnrolTiming {
    at_once,
    /// After the work of hashing in every case: the duration does not reveal that a password is known.
    constant_time,
  };
  /// Hashes a password to be stored, or finds that a known credential has it. Errors: busy, internal.
  void enrol(protocol::Credentials given, EnrolDone done, const std::string& source = {},
             EnrolTiming timing = EnrolTiming::at_once, std::string asker = {});
  /// Remembers that these credentials are correct for `id`.
  void remember(std::uint64_t id, const protocol::Credentials& given);
  /// Forgets all passwords that are correct for `id`. Scans everything that is remembered.
  void forget(std::uint64_t id);

  /// Returns the number of refused credentials since the start.
  [[nodiscard]] std::uint64_t failures() const { return failures_; }
  void count_failure() { ++failures_; }
  /// Returns the number of passwords since the start that were not checked because too many were waiting.
  [[nodiscard]] std::uint64_t throttled() const { return throttled_; }
  [[nodiscard]] bool is_computing() const { return at_worker_.has_value(); }
  /// Returns the number of argon2 computations begun since the start.
  [[nodiscard]] std::uint64_t computations() const { return computations_; }

 private:
  using Digest = KeyedHash::Digest;
  struct DigestHash {
    std::size_t operator()(const Digest& digest) const {
      std::size_t value = 0;
      std::memcpy(&value, digest.data(), sizeof value);
      return value;
    }
  };
  struct Remembered {
    Digest digest;
    std::uint64_t id;
  };
  /// A request that waits for a computation. Two requests with equal `alike` have the same outcome.
  struct Login {
    std::string source;
    std::string name;  ///< the user name, for taking turns
    bool doubtful = false;
    Digest alike{};
    /// Identifies credential, user and password. If it is correct for one request, it is correct for every
    /// equal one.
    Digest proof{};
    std::uint64_t id = 0;
    std::string user_id;
    Secret password;
    std::string argon2 = {};  ///< the hash to verify against; empty: compute a new hash
    VerifyDone verify = {};
    HashDone hash = {};  ///< the callback of a hash that no other request shares
  };
  /// The next task of the worker.
  struct Computation {
    std::string argon2;
    Secret password;
  };
  using Enrolling = std::vector<std::pair<protocol::Credentials, EnrolDone>>;

  static constexpr std::uint64_t admin_id = ~std::uint64_t{0};

  std::uint64_t recall(const Digest& digest);
  void keep(const Digest& digest, std::uint64_t id);
  void wait(Login login, std::size_t source_max, Limit of_source);
  void refuse(Login login, Limit reached);
  void compute_next();
  void wake_later();
  void begin(Login login);
  void work(const std::stop_token& stop);
  void verified(bool right);
  void found_right(Login login);
  void found_wrong(Login login);
  void hold_back(const Login& login, std::chrono::milliseconds delay);
  void hashed(const Result<std::string>& argon2);
  void enrolled(Enrolling enrolling, const Result<std::string>& argon2);

  EventLoop& loop_;
  const KeyedHash hash_;
  CredentialRecord admin_;
  std::uint64_t failures_ = 0;
  std::uint64_t computations_ = 0;
  std::uint64_t hashes_ = 0;
  std::uint64_t throttled_ = 0;
  std::size_t remembered_max_ = limits::credentials_remembered_max;
  LimitCounts* counts_ = nullptr;
  const Clockwork clockwork_;
  LoginThrottle throttle_;

  std::list<Remembered> recent_;  // newest first, at most remembered_max_
  std::unordered_map<Digest, std::list<Remembered>::iterator, DigestHash> by_digest_;
  FairQueue<Login> waiting_;
  const std::size_t waiting_of_source_;    // a quarter of the total
  const std::size_t waiting_slowed_;       // for a source that is slowed down
  const std::size_t keeping_of_source_;    // for passwords to be stored
  std::map<Digest, Enrolling> enrolling_;  // the key is Login::alike
  DelayedReplies held_;
  std::optional<Login> at_worker_;
  bool waking_ = false;  // true while a call of compute_next is scheduled

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Computation> next_;  // guarded by mutex_

  std::jthread worker_;  // last: stops before the other members are destroyed
};

}  // namespace lightq::broker
