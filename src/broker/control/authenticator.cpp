/// Layer: control.
#include "broker/control/authenticator.hpp"

#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/wipe_registers.hpp>

namespace lightq::broker {

namespace {

/// Digests under id 0 answer "which credential is this?", those under another "is it that one?".
constexpr std::uint64_t any_id = 0;
/// Digests of computations that verify nobody's credential; apart from all ids in use.
constexpr std::uint64_t nobody_id = ~std::uint64_t{0} - 1;
/// Digests of hashes, each of which is made for one alone.
constexpr std::uint64_t hash_id = ~std::uint64_t{0} - 2;

Error too_many_hashes() {
  return {ErrorCode::busy, "too many passwords are waiting to be hashed; try again"};
}

}  // namespace

Authenticator::Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                             std::size_t jobs_max, Clockwork clockwork)
    : loop_(loop), jobs_max_(jobs_max), clockwork_(std::move(clockwork)) {
  admin_.id = admin_id;
  admin_.user_id = admin_user_id;
  admin_.argon2 = hash_password(admin_password.expose()).value_or_throw();
  wipe_registers();
  wipe_stack();
  worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

Authenticator::Clockwork Authenticator::clockwork_of(EventLoop& loop) {
  return {.now = EventLoop::Clock::now,
          .later = [&loop](std::chrono::milliseconds delay, std::function<void()> task) {
            loop.at(EventLoop::Clock::now() + delay, std::move(task));
          }};
}

Authenticator::~Authenticator() {
  worker_.request_stop();
  worker_.join();
  for (auto& [key, waiting] : waiting_) {
    wipe_text(waiting.given.password);
    for (auto& [given, done] : waiting.enrol) wipe_text(given.password);
  }
}

void Authenticator::verify_admin(protocol::Credentials given, VerifyDone done, const std::string& source) {
  const CredentialRecord* credential = is_admin(given.user_id) ? &admin_ : nullptr;
  verify(credential, std::move(given), std::move(done), source);
}

void Authenticator::verify(const CredentialRecord* credential, protocol::Credentials given, VerifyDone done,
                           const std::string& source) {
  if (credential != nullptr && credential->user_id != given.user_id) credential = nullptr;
  const std::uint64_t id = credential == nullptr ? nobody_id : credential->id;
  const Digest key = hash_.digest(id, given.user_id, given.password);
  if (recall(key) != 0) {
    wipe_text(given.password);
    throttle_.right(source, given.user_id);
    return done(AuthOutcome::right);
  }
  auto& waiting = waiting_[key];
  waiting.verify.push_back(std::move(done));
  if (waiting.verify.size() > 1) {
    wipe_text(given.password);
    // Many programs may begin with one right password; who has had many wrong ones does not.
    if (waiting.verify.size() <= limits::logins_waiting_per_source_max || !throttle_.is_slowed(source))
      return;
    const auto refused = std::move(waiting.verify.back());
    waiting.verify.pop_back();
    ++throttled_;
    return refused(AuthOutcome::busy);
  }
  // Nobody's password is verified against the admin's hash, and the outcome thrown away: equal work.
  const auto& argon2 = credential == nullptr ? admin_.argon2 : credential->argon2;
  waiting.id = credential == nullptr ? 0 : id;
  waiting.source = source;
  if (begin({key, Secret(given.password), argon2}, source)) {
    waiting.given = std::move(given);
    return;
  }
  const auto refused = std::move(waiting.verify.front());
  waiting_.erase(key);
  wipe_text(given.password);
  refused(AuthOutcome::busy);
}

std::uint64_t Authenticator::remembered(const protocol::Credentials& given) {
  return recall(hash_.digest(any_id, given.user_id, given.password));
}

void Authenticator::hash(Secret password, HashDone done, const std::string& source) {
  const Digest key = hash_.digest(hash_id, std::to_string(++hashes_), {});
  Waiting& waiting = waiting_[key];
  waiting.hash = std::move(done);
  waiting.source = source;
  if (begin({key, std::move(password), {}}, source)) return;
  const auto refused = waiting_.extract(key);
  refused.mapped().hash(too_many_hashes());
}

void Authenticator::enrol(protocol::Credentials given, EnrolDone done, const std::string& source,
                          Telling telling) {
  const bool alone = telling == Telling::after_equal_work;
  if (const auto known = remembered(given); known != 0 && !alone) {
    wipe_text(given.password);
    return done(Enrolment{known, {}});
  }
  const Digest key = alone ? hash_.digest(hash_id, std::to_string(++hashes_), {})
                           : hash_.digest(any_id, given.user_id, given.password);
  auto& waiting = waiting_[key];
  const bool first = waiting.enrol.empty();
  Secret password(given.password);
  waiting.enrol.emplace_back(std::move(given), std::move(done));
  if (!first) return;
  waiting.source = source;
  if (begin({key, std::move(password), {}}, source)) return;
  auto refused = std::move(waiting.enrol.front());
  waiting_.erase(key);
  wipe_text(refused.first.password);
  refused.second(too_many_hashes());
}

void Authenticator::remember(std::uint64_t id, const protocol::Credentials& given) {
  keep(hash_.digest(id, given.user_id, given.password), id);
  if (id != admin_id) keep(hash_.digest(any_id, given.user_id, given.password), id);
}

void Authenticator::forget(std::uint64_t id) {
  std::erase_if(recent_, [this, id](const Remembered& each) {
    if (each.id != id) return false;
    by_digest_.erase(each.digest);
    return true;
  });
}

std::uint64_t Authenticator::recall(const Digest& digest) {
  const auto found = by_digest_.find(digest);
  if (found == by_digest_.end()) return 0;
  recent_.splice(recent_.begin(), recent_, found->second);
  return found->second->id;
}

void Authenticator::keep(const Digest& digest, std::uint64_t id) {
  if (recall(digest) != 0) {
    recent_.front().id = id;
    return;
  }
  recent_.push_front({digest, id});
  by_digest_.emplace(digest, recent_.begin());
  if (recent_.size() <= limits::credentials_remembered_max) return;
  by_digest_.erase(recent_.back().digest);
  recent_.pop_back();
}

/// Ends with LoginThrottle::end. False: too many are waiting, of this source or in all.
bool Authenticator::begin(Job job, const std::string& source) {
  if (!throttle_.begin(source)) {
    ++throttled_;
    return false;
  }
  if (submit(std::move(job), source)) return true;
  throttle_.end(source);
  return false;
}

bool Authenticator::submit(Job job, const std::string& source) {
  {
    const std::lock_guard lock(mutex_);
    if (jobs_waiting_ >= jobs_max_) return false;
    auto& of_source = jobs_[source];
    if (of_source.empty()) turns_.push_back(source);
    of_source.push_back(std::move(job));
    ++jobs_waiting_;
  }
  ++computations_;
  changed_.notify_one();
  return true;
}

/// Under the lock, and where there is one: of the source whose turn it is.
Authenticator::Job Authenticator::next_job() {
  const auto of_source = jobs_.find(turns_.front());
  Job job = std::move(of_source->second.front());
  of_source->second.pop_front();
  --jobs_waiting_;
  if (of_source->second.empty()) {
    jobs_.erase(of_source);
  } else {
    turns_.push_back(turns_.front());
  }
  turns_.pop_front();
  return job;
}

void Authenticator::work(const std::stop_token& stop) {
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !turns_.empty(); })) return;
    const Job job = next_job();
    lock.unlock();
    if (job.argon2.empty()) {
      loop_.post_answer(
          [this, key = job.key, argon2 = hash_password(job.password.expose())] { enrolled(key, argon2); });
    } else {
      const bool right = verify_password(job.argon2, job.password.expose());
      loop_.post_answer([this, key = job.key, right] { verified(key, right); });
    }
    wipe_registers();
    wipe_stack();  // of what hashing has left there
  }
}

void Authenticator::verified(const Digest& key, bool right) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  right = right && waiting.id != 0;
  const std::string& user = waiting.given.user_id;
  if (right) {
    remember(waiting.id, waiting.given);
    throttle_.right(waiting.source, user);
  }
  wipe_text(waiting.given.password);
  const auto delay =
      right ? std::chrono::milliseconds(0) : throttle_.wrong(waiting.source, user, clockwork_.now());
  const auto answer = [this, right, source = waiting.source, verify = std::move(waiting.verify)] {
    throttle_.end(source);
    for (const auto& done : verify) done(right ? AuthOutcome::right : AuthOutcome::wrong);
  };
  if (delay.count() == 0) return answer();
  clockwork_.later(delay, answer);
}

void Authenticator::enrolled(const Digest& key, const Result<std::string>& argon2) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  Waiting waiting = std::move(found->second);
  waiting_.erase(found);
  throttle_.end(waiting.source);
  if (waiting.hash) waiting.hash(argon2);
  for (auto& [given, done] : waiting.enrol) {
    // The first to be told keeps the hash and says so with remember(); the others then refer to it.
    if (const auto known = remembered(given); known != 0) {
      done(Enrolment{known, {}});
    } else if (argon2) {
      done(Enrolment{0, argon2.value()});
    } else {
      done(argon2.error());
    }
    wipe_text(given.password);
  }
}

}  // namespace lightq::broker
