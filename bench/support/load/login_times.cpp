/// Runs the broker's authenticator in a separate process and times each check of a password. Layer: bench
/// support.
#include "support/load/login_times.hpp"

#include <stdexcept>
#include <vector>

#include "access/authenticator.hpp"
#include "support/child_process.hpp"
#include "support/shared_memory.hpp"
#include "support/statistics.hpp"

namespace lightq::bench {
namespace {

constexpr const char* user = "bench";
constexpr const char* password = "a password of some length";

/// Verifies the password once and returns the time in µs. Throws unless the outcome is `right`.
double verify(broker::EventLoop& loop, broker::Authenticator& authenticator,
              const broker::CredentialRecord& credential) {
  std::stop_source stop;
  bool right = false;
  bool at_once = true;
  bool answered = false;
  protocol::Credentials given{user, password};
  const std::uint64_t began = now_ns();
  authenticator.verify(&credential, std::move(given), [&](broker::AuthOutcome outcome) {
    right = outcome == broker::AuthOutcome::right;
    answered = true;
    if (!at_once) stop.request_stop();
  });
  at_once = false;
  if (!answered) loop.run(stop.get_token());
  const std::uint64_t ended = now_ns();
  if (!right) throw std::runtime_error("a right password was refused");
  return static_cast<double>(ended - began) / 1e3;
}

int work(SharedArray<double>& times) {
  broker::EventLoop loop;
  broker::Authenticator authenticator(loop, "admin", Secret("another password"));
  const auto hashed = broker::hash_password(password);
  if (!hashed) return 1;
  const broker::CredentialRecord credential{1, user, *hashed};
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = verify(loop, authenticator, credential);
  return 0;
}

}  // namespace

Result<LoginTimes> measure_logins(int count) {
  SharedArray<double> times(static_cast<std::size_t>(count) + 1);
  Result<ChildProcess> child = ChildProcess::start([&] { return work(times); });
  if (!child) return child.error();
  std::vector<ChildProcess> children;
  children.push_back(std::move(child).value());
  const auto ended = wait_for_all(children, {"the authenticator"}, Clock::now() + std::chrono::seconds(30));
  if (!ended) return ended.error();
  const std::vector<double> again(&times[0] + 1, &times[0] + times.size());
  return LoginTimes{times[0], percentile(again, 0.5), percentile(again, 0.99)};
}

}  // namespace lightq::bench
