/// Checks passwords without holding up the control thread: argon2id on a worker, and a memory of what was
/// seen to be right. Layer: control.
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
#include <lightq/protocol/control.hpp>

#include "broker/control/fair_queue.hpp"
#include "broker/control/held_answers.hpp"
#include "broker/control/login_throttle.hpp"
#include "broker/control/password_hash.hpp"
#include "broker/control/secret.hpp"
#include "broker/endpoint/event_loop.hpp"
#include "broker/endpoint/limit_counts.hpp"

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

/// Whom a password came from, and what was asked with it.
struct Asking {
  std::string source = {};  ///< RequestSource::key
  /// All that the request says of what its credentials have to be right for, and nothing that the broker
  /// knows: requests that are alike in this, in source, user and password share a computation, and no others.
  std::string subject = {};
};

/// Every call is made on the loop's thread; `done` is called there exactly once, at once when the answer is
/// remembered or there is no room, else later (never, if the loop ends first). The object must outlive the
/// loop's run. A wrong password, an unknown user and an unknown topic take the same work. Passwords are wiped
/// once used.
///
/// What waits to be computed is bounded in all and for each source, less for one that LoginThrottle slows
/// down; sources and user names share the worker and the room (FairQueue). Passwords to be kept have room and
/// turns of their own. The answers to wrong passwords are held back as LoginThrottle says, and are in
/// nobody's way then; right ones never are.
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

  /// `waiting_max`: requests that may wait for a computation at once; of one source a quarter, at most
  /// limits::logins_waiting_per_source_max. As many answers to wrong ones may be held back besides.
  Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                std::size_t waiting_max = limits::logins_waiting_max)
      : Authenticator(loop, admin_user_id, admin_password, waiting_max, clockwork_of(loop)) {}
  Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                std::size_t waiting_max, Clockwork clockwork);
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;
  ~Authenticator();

  // Before anything is asked.
  /// Keyed hashes that are remembered; most credentials take two.
  void remember_at_most(std::size_t hashes) { remembered_max_ = hashes; }
  /// Where what is refused for want of room is counted, which outlives it.
  void count_in(LimitCounts& counts) { counts_ = &counts; }

  [[nodiscard]] bool is_admin(const std::string& user_id) const { return user_id == admin_.user_id; }
  /// The administrator's credential, if it is the administrator's name; else null.
  [[nodiscard]] const CredentialRecord* admin_credential(const std::string& user_id) const {
    return is_admin(user_id) ? &admin_ : nullptr;
  }
  void verify_admin(protocol::Credentials given, VerifyDone done, const Asking& asking = {});
  /// Null: nobody's credential; the answer is `wrong` after the same work.
  void verify(const CredentialRecord* credential, protocol::Credentials given, VerifyDone done,
              const Asking& asking = {});
  /// The id of the credential that was last seen to be exactly this user and password; 0 if none.
  [[nodiscard]] std::uint64_t remembered(const protocol::Credentials& given);

  using HashDone = std::function<void(Result<std::string>)>;
  /// Hashes a password to keep, whatever is known. `asker`: who of the source's askers take turns. Errors:
  /// busy, internal.
  void hash(Secret password, HashDone done, const std::string& source = {}, std::string asker = {});
  /// When it is told that a password is kept already.
  enum class Telling {
    at_once,
    after_equal_work,  ///< so that the time tells nobody whether a password that is tried is somebody's
  };
  /// Hashes a password to keep, or finds that it is kept already. Errors: busy, internal.
  void enrol(protocol::Credentials given, EnrolDone done, const std::string& source = {},
             Telling telling = Telling::at_once, std::string asker = {});
  /// These credentials are right for `id`.
  void remember(std::uint64_t id, const protocol::Credentials& given);
  /// Nothing is right for `id` any more. Looks at everything that is remembered.
  void forget(std::uint64_t id);

  /// Refused credentials since the start.
  [[nodiscard]] std::uint64_t failures() const { return failures_; }
  void count_failure() { ++failures_; }
  /// Passwords that were not looked at since the start, because too many were waiting.
  [[nodiscard]] std::uint64_t throttled() const { return throttled_; }
  [[nodiscard]] bool is_computing() const { return at_worker_.has_value(); }
  /// argon2 computations begun since the start.
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
  /// A request that waits for a computation. Two that are `alike` have the same outcome.
  struct Login {
    std::string source;
    std::string name;  ///< of its user, for its turn
    bool doubtful = false;
    Digest alike{};
    Digest proof{};  ///< of the very credential, user and password: right for one, right for all
    std::uint64_t id = 0;
    std::string user_id;
    Secret password;
    std::string argon2 = {};  ///< to verify against; empty: hash
    VerifyDone verify = {};
    HashDone hash = {};  ///< of a hash for one alone
  };
  /// What the worker is to do.
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
  const std::size_t waiting_of_source_;    // a quarter of what may wait in all
  const std::size_t waiting_slowed_;       // of a source that is slowed down
  const std::size_t keeping_of_source_;    // passwords to be kept
  std::map<Digest, Enrolling> enrolling_;  // by what their logins are alike in
  HeldAnswers held_;
  std::optional<Login> at_worker_;
  bool waking_ = false;  // compute_next will be called

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Computation> next_;  // guarded by mutex_

  std::jthread worker_;  // last: stops before the rest goes
};

}  // namespace lightq::broker
