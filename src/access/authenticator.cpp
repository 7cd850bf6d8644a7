/// Queues password checks for a worker thread, remembers correct passwords and delays replies to wrong ones.
/// Layer: access.
#include "access/authenticator.hpp"

#include <algorithm>
#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {

/// Digests under id 0 find the credential of a user and password. Digests under another id verify that
/// credential.
constexpr std::uint64_t any_id = 0;
/// The id of digests of computations for an unknown user. No credential has it.
constexpr std::uint64_t nobody_id = ~std::uint64_t{0} - 1;
/// The id of digests of hashes that no two requests share.
constexpr std::uint64_t alone_id = ~std::uint64_t{0} - 2;
/// The id of digests of Login::alike: source, subject, user and password of a request.
constexpr std::uint64_t alike_id = ~std::uint64_t{0} - 3;

/// A prefix for the source of passwords to be stored. Their askers are authenticated, so they do not queue
/// behind unauthenticated peers.
const std::string keeping = "keep ";

std::string subject_of(const Asking& asking, const std::string& user_id) {
  const auto part = [](const std::string& text) { return std::to_string(text.size()) + ":" + text; };
  return part(asking.source) + part(asking.subject) + part(user_id);
}

Error too_many_hashes() {
  return {ErrorCode::busy, "too many passwords are waiting to be hashed; try again"};
}

}  // namespace

Authenticator::Authenticator(EventLoop& loop, const std::string& admin_user_id, const Secret& admin_password,
                             std::size_t waiting_max, Clockwork clockwork)
    : loop_(loop),
      clockwork_(std::move(clockwork)),
      waiting_(waiting_max),
      waiting_of_source_(std::clamp<std::size_t>(waiting_max / 4, 1, limits::logins_waiting_per_source_max)),
      waiting_slowed_(std::min(waiting_of_source_, limits::logins_waiting_slowed_max)),
      keeping_of_source_(std::min(waiting_of_source_, limits::passwords_waiting_per_source_max)),
      held_(std::min(waiting_max, limits::answers_held_back_max),
            std::min(waiting_of_source_, limits::answers_held_back_per_source_max)) {
  admin_.id = admin_id;
  admin_.user_id = admin_user_id;
  admin_.argon2 = hash_password(admin_password.expose()).value_or_throw();
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
}

void Authenticator::verify(const CredentialRecord* credential, protocol::Credentials given, VerifyDone done,
                           const Asking& asking) {
  if (credential != nullptr && credential->user_id != given.user_id) credential = nullptr;
  const std::uint64_t id = credential == nullptr ? nobody_id : credential->id;
  const auto& source = asking.source;
  const Digest proof = hash_.digest(id, given.user_id, given.password.expose());
  if (recall(proof) != 0) {
    throttle_.right(source, given.user_id);
    return done(AuthOutcome::right);
  }
  const auto now = clockwork_.now();
  Login login{.source = source,
              .name = given.user_id,
              .doubtful = throttle_.has_failed(source, given.user_id, now),
              .alike = hash_.digest(alike_id, subject_of(asking, given.user_id), given.password.expose()),
              .proof = proof,
              .id = credential == nullptr ? 0 : id,
              .user_id = given.user_id,
              .password = given.password};
  // For an unknown user the password is verified against the admin's hash, and the outcome is ignored: equal
  // work.
  login.argon2 = credential == nullptr ? admin_.argon2 : credential->argon2;
  login.verify = std::move(done);
  if (throttle_.is_slowed(source, now)) {
    wait(std::move(login), waiting_slowed_, Limit::logins_waiting_slowed_max);
  } else {
    wait(std::move(login), waiting_of_source_, Limit::logins_waiting_per_source_max);
  }
}

std::uint64_t Authenticator::remembered(const protocol::Credentials& given) {
  return recall(hash_.digest(any_id, given.user_id, given.password.expose()));
}

void Authenticator::hash(Secret password, HashDone done, const std::string& source, std::string asker) {
  Login login{.source = keeping + source,
              .name = std::move(asker),
              .alike = hash_.digest(alone_id, std::to_string(++hashes_), {}),
              .user_id = {},
              .password = std::move(password)};
  login.hash = std::move(done);
  wait(std::move(login), keeping_of_source_, Limit::passwords_waiting_per_source_max);
}

void Authenticator::enrol(protocol::Credentials given, EnrolDone done, const std::string& source,
                          EnrolTiming timing, std::string asker) {
  const bool alone = timing == EnrolTiming::constant_time;
  if (const auto known = remembered(given); known != 0 && !alone) return done(Enrolment{known, {}});
  const Digest alike = alone ? hash_.digest(alone_id, std::to_string(++hashes_), {})
                             : hash_.digest(any_id, given.user_id, given.password.expose());
  Enrolling& enrolling = enrolling_[alike];
  enrolling.emplace_back(given, std::move(done));
  if (enrolling.size() > 1) return;
  wait({.source = keeping + source,
        .name = std::move(asker),
        .alike = alike,
        .user_id = {},
        .password = given.password},
       keeping_of_source_, Limit::passwords_waiting_per_source_max);
}

void Authenticator::remember(std::uint64_t id, const protocol::Credentials& given) {
  keep(hash_.digest(id, given.user_id, given.password.expose()), id);
  if (id != admin_id) keep(hash_.digest(any_id, given.user_id, given.password.expose()), id);
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
  if (recent_.size() <= remembered_max_) return;
  by_digest_.erase(recent_.back().digest);
  recent_.pop_back();
}

void Authenticator::wait(Login login, std::size_t source_max, Limit of_source) {
  auto gone = waiting_.push(std::move(login), source_max);
  compute_next();
  for (Login& each : gone.of_source) refuse(std::move(each), of_source);
  for (Login& each : gone.of_all) refuse(std::move(each), Limit::logins_waiting_max);
}

/// Fails a request for which the queue has no space.
void Authenticator::refuse(Login login, Limit reached) {
  ++throttled_;
  count(counts_, reached);
  if (login.verify) return login.verify(AuthOutcome::busy);
  if (login.hash) return login.hash(too_many_hashes());
  if (auto found = enrolling_.extract(login.alike); !found.empty())
    enrolled(std::move(found.mapped()), too_many_hashes());
}

/// Gives the worker its next task if it is idle and a source may compute now.
void Authenticator::compute_next() {
  if (at_worker_) return;
  const auto now = clockwork_.now();
  auto next = waiting_.take(
      [&](const std::string& source) { return throttle_.next_computation(source, now) <= now; });
  if (next) return begin(std::move(*next));
  if (!waiting_.empty()) wake_later();
}

/// Schedules compute_next for the time at which the first waiting source may compute.
void Authenticator::wake_later() {
  if (std::exchange(waking_, true)) return;
  const auto now = clockwork_.now();
  auto first = LoginThrottle::Time::max();
  waiting_.for_each_source(
      [&](const std::string& source) { first = std::min(first, throttle_.next_computation(source, now)); });
  const auto delay = std::chrono::ceil<std::chrono::milliseconds>(first - now);
  clockwork_.later(delay, [this] {
    waking_ = false;
    compute_next();
  });
}

void Authenticator::begin(Login login) {
  throttle_.computing(login.source, clockwork_.now());
  ++computations_;
  {
    const std::lock_guard lock(mutex_);
    next_.emplace(login.argon2, login.password);
  }
  changed_.notify_one();
  at_worker_ = std::move(login);
}

void Authenticator::work(const std::stop_token& stop) {
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return next_.has_value(); })) return;
    const Computation computation = std::move(*next_);
    next_.reset();
    lock.unlock();
    if (computation.argon2.empty()) {
      loop_.post_answer([this, argon2 = hash_password(computation.password.expose())] { hashed(argon2); });
    } else {
      const bool right = verify_password(computation.argon2, computation.password.expose());
      loop_.post_answer([this, right] { verified(right); });
    }
  }
}

void Authenticator::verified(bool right) {
  Login login = std::move(*at_worker_);
  at_worker_.reset();
  if (right && login.id != 0) {
    found_right(std::move(login));
  } else {
    found_wrong(std::move(login));
  }
}

void Authenticator::found_right(Login login) {
  remember(login.id, {login.user_id, login.password});
  auto same =
      waiting_.extract_if([&](const Login& each) { return each.verify && each.proof == login.proof; });
  compute_next();
  same.insert(same.begin(), std::move(login));
  for (const Login& each : same) {
    throttle_.right(each.source, each.user_id);
    each.verify(AuthOutcome::right);
  }
}

void Authenticator::found_wrong(Login login) {
  const auto delay = throttle_.wrong(login.source, login.user_id, clockwork_.now());
  waiting_.doubt(login.source, login.name);
  auto alike = waiting_.extract_if([&](const Login& each) { return each.alike == login.alike; });
  compute_next();
  alike.insert(alike.begin(), std::move(login));
  for (const Login& each : alike) hold_back(each, delay);
}

/// Delays the reply to a wrong password. Keeps only the request's callback until then.
void Authenticator::hold_back(const Login& login, std::chrono::milliseconds delay) {
  if (delay.count() == 0) return login.verify(AuthOutcome::wrong);
  auto added = held_.add(login.source, [done = login.verify] { done(AuthOutcome::wrong); });
  clockwork_.later(delay, [this, number = added.number] {
    if (const auto answer = held_.take(number)) (*answer)();
  });
  for (const auto& early : added.early) early();
}

void Authenticator::hashed(const Result<std::string>& argon2) {
  const Login login = std::move(*at_worker_);
  at_worker_.reset();
  compute_next();
  if (login.hash) return login.hash(argon2);
  if (auto found = enrolling_.extract(login.alike); !found.empty())
    enrolled(std::move(found.mapped()), argon2);
}

void Authenticator::enrolled(Enrolling enrolling, const Result<std::string>& argon2) {
  for (auto& [given, done] : enrolling) {
    // The first callback stores the hash and calls remember(). The others then refer to that credential.
    if (const auto known = remembered(given); known != 0) {
      done(Enrolment{known, {}});
    } else if (argon2) {
      done(Enrolment{0, argon2.value()});
    } else {
      done(argon2.error());
    }
  }
}

}  // namespace lightq::broker
