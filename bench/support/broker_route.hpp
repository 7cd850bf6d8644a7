/// LightQ: a topic of a broker process, reached as any ZeroMQ program would. Layer: bench support.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/control_client.hpp"
#include "support/route.hpp"
#include "support/temp_dir.hpp"
#include "support/topic_fan.hpp"

namespace lightq::bench {

/// The real broker binary on a control port of the system's choice, with a data directory of its own.
class BrokerProcess {
 public:
  /// Starts it and waits until DATA_DIR/broker.json names its control socket. Error: it did not come up; the
  /// end of its log is in the message.
  static Result<std::unique_ptr<BrokerProcess>> start(const std::string& binary,
                                                      const std::vector<std::string>& flags = {});
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;
  /// Stops it as an operator would, by force after 5 s.
  ~BrokerProcess();

  [[nodiscard]] pid_t id() const { return process_->id(); }
  [[nodiscard]] const ControlClient& control() const { return *control_; }
  [[nodiscard]] const std::string& admin_password() const { return admin_password_; }

 private:
  BrokerProcess();
  Result<void> wait_until_ready();
  [[nodiscard]] std::string log_end() const;
  TempDir directory_;
  std::string admin_password_;
  std::optional<ChildProcess> process_;
  std::optional<ControlClient> control_;
};

/// `lightq` in the build directory: a bench program lies in it, or in its `bench/`.
std::string broker_beside(const char* program);

/// Who the topics below belong to.
inline constexpr const char* bench_user = "bench";
inline constexpr const char* bench_password = "bench-only";

/// A topic of such a broker, made anew by each `prepare`; producer and consumer join anew for each run.
class BrokerRoute : public Route {
 public:
  /// `topic_settings`: the create_topic fields beyond names and passwords, `broker_type` at least.
  static Result<std::unique_ptr<BrokerRoute>> start(const std::string& binary, nlohmann::json topic_settings,
                                                    const std::vector<std::string>& flags = {});

  /// Other topics of the same broker.
  [[nodiscard]] std::unique_ptr<BrokerRoute> beside(nlohmann::json topic_settings) const;

  Result<void> prepare(const std::string& label) override;
  Result<StreamEnds> open() override;
  Result<void> close(const StreamEnds& ends) override;
  [[nodiscard]] std::optional<pid_t> process() const override { return broker_->id(); }
  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] const std::string& control_uri() const { return broker_->control().uri(); }
  /// Empty: the broker does not encrypt.
  [[nodiscard]] const std::string& server_key() const { return broker_->control().server_key(); }
  /// Where the topic's producers connect, over TCP. `delivery`: session or plain.
  Result<std::string> address_of(const std::string& delivery);
  /// So many topics more, with the same settings, joined by a producer and a consumer at their Unix socket.
  /// Once.
  Result<TopicFan> make_fan(std::size_t topics);

 private:
  BrokerRoute(std::shared_ptr<BrokerProcess> broker, nlohmann::json topic_settings)
      : broker_(std::move(broker)), topic_settings_(std::move(topic_settings)) {}
  Result<void> delete_topic();
  struct Joined {
    std::string uri;
    StreamTicket ticket;
    StreamKeys keys;
  };
  Result<Joined> join(const std::string& type);
  Result<Joined> join_session(const std::string& topic, const std::string& type) const;
  Result<void> leave(const std::string& uri);
  [[nodiscard]] nlohmann::json admin_request(const std::string& command) const;
  [[nodiscard]] nlohmann::json user_request(const std::string& command) const;

  std::shared_ptr<BrokerProcess> broker_;
  nlohmann::json topic_settings_;
  std::string topic_;  // empty: none yet
};

}  // namespace lightq::bench
