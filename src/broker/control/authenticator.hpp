/// Checks passwords without holding up the control thread: argon2id on a worker, and a memory of what was
/// seen to be right. Layer: control.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/protocol/control.hpp>

#include "broker/control/login_throttle.hpp"
#include "broker/control/password_hash.hpp"
#include "broker/control/secret.hpp"
#include "broker/endpoint/event_loop.hpp"

namespace lightq::broker {

/// A user and the hash of the password; many topics may refer to one. Id 0 is nobody's.
struct CredentialRecord {
  std::uint64_t id = 0;
  std::string user_id;
  std::string argon2;
};

enum class AuthOutcome {
  right,
  wrong,
  busy,  ///< too many passwords are waiting to be checked, in all or of this source
};

/// What became of a password that is to be kept.
struct Enrolment {
  std::uint64_t known_id = 0;  ///< the credential that is exactly this user and password; 0: none is known
  std::string argon2;          ///< the hash to keep, if none is known
};

/// Every call is made on the loop's thread; `done` is called there exactly once, at once when the answer is
/// remembered, else later (never, if the loop ends first). The object must outlive the loop's run.
/// A wrong password, an unknown user and an unknown topic take the same work. Passwords are wiped once used.
///
/// `source`: whom the password came from (RequestSource::key). It has only a few computations under way,
/// whether to check or to keep passwords; the worker takes turns between sources, and the answers to wrong
/// passwords are held back as LoginThrottle says; one that is remembered, or right,
/// never is.
class Authenticator {
 public:
  using VerifyDone = std::function<void(AuthOutcome)>;
  using EnrolDone = std::function<void(Result<Enrolment>)>;

  /// The time, and how something is done later; tests have their own.
  struct Clockwork {
    std::function<LoginThrottle::Time()> now;
    std::function<void(std::chrono::milliseconds, std::function<void()>)> later;
  };
  static Clockwork clockwork_of(EventLoop& loop);

  /// `jobs_max`: argon2 computations that may wait at once.
  Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                std::size_t jobs_max = 1024)
      : Authenticator(loop, admin_user_id, admin_password, jobs_max, clockwork_of(loop)) {}
  Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                std::size_t jobs_max, Clockwork clockwork);
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;
  ~Authenticator();

  [[nodiscard]] bool is_admin(const std::string& user_id) const { return user_id == admin_.user_id; }
  void verify_admin(protocol::Credentials given, VerifyDone done, const std::string& source = {});
  /// Null: nobody's credential; the answer is `wrong` after the same work.
  void verify(const CredentialRecord* credential, protocol::Credentials given, VerifyDone done,
              const std::string& source = {});
  /// The id of the credential that was last seen to be exactly this user and password; 0 if none.
  [[nodiscard]] std::uint64_t remembered(const protocol::Credentials& given);

  using HashDone = std::function<void(Result<std::string>)>;
  /// Hashes a password to keep, whatever is known. Errors: busy, internal.
  void hash(Secret password, HashDone done, const std::string& source = {});
  /// When it is told that a password is kept already.
  enum class Telling {
    at_once,
    after_equal_work,  ///< so that the time tells nobody whether a password that is tried is somebody's
  };
  /// Hashes a password to keep, or finds that it is kept already. Errors: busy, internal.
  void enrol(protocol::Credentials given, EnrolDone done, const std::string& source = {},
             Telling telling = Telling::at_once);
  /// These credentials are right for `id`.
  void remember(std::uint64_t id, const protocol::Credentials& given);
  /// Nothing is right for `id` any more. Looks at everything that is remembered.
  void forget(std::uint64_t id);

  /// Refused credentials since the start.
  [[nodiscard]] std::uint64_t failures() const { return failures_; }
  void count_failure() { ++failures_; }
  /// Passwords that were not looked at since the start, because too many of their source were under way.
  [[nodiscard]] std::uint64_t throttled() const { return throttled_; }
  /// argon2 computations asked for since the start.
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
  /// One computation for the worker.
  struct Job {
    Digest key;
    Secret password;
    std::string argon2;  ///< to verify against; empty: hash
  };
  struct Waiting {
    std::vector<VerifyDone> verify;
    std::vector<std::pair<protocol::Credentials, EnrolDone>> enrol;
    HashDone hash;                ///< of a computation that is not shared
    protocol::Credentials given;  ///< of a verification, to be remembered if right
    std::uint64_t id = 0;
    std::string source;  ///< of the first who asked
  };

  static constexpr std::uint64_t admin_id = ~std::uint64_t{0};

  std::uint64_t recall(const Digest& digest);
  void keep(const Digest& digest, std::uint64_t id);
  bool begin(Job job, const std::string& source);
  bool submit(Job job, const std::string& source);
  Job next_job();
  void work(const std::stop_token& stop);
  void verified(const Digest& key, bool right);
  void enrolled(const Digest& key, const Result<std::string>& argon2);

  EventLoop& loop_;
  const std::size_t jobs_max_;
  const KeyedHash hash_;
  CredentialRecord admin_;
  std::uint64_t failures_ = 0;
  std::uint64_t computations_ = 0;
  std::uint64_t hashes_ = 0;
  std::uint64_t throttled_ = 0;
  const Clockwork clockwork_;
  LoginThrottle throttle_;

  std::list<Remembered> recent_;  // newest first, at most credentials_remembered_max
  std::unordered_map<Digest, std::list<Remembered>::iterator, DigestHash> by_digest_;
  std::map<Digest, Waiting> waiting_;  // one computation serves all who ask the same

  std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  std::unordered_map<std::string, std::deque<Job>> jobs_;  // by source
  std::deque<std::string> turns_;                          // sources with jobs
  std::size_t jobs_waiting_ = 0;

  std::jthread worker_;  // last: stops before the rest goes
};

}  // namespace lightq::broker
