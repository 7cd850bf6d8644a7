/// A topic of a LightQ broker process, reached as any ZeroMQ program would. Layer: bench support.
#pragma once

#include <chrono>
#include <filesystem>
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

/// The broker binary in a process, with a free control port and a temporary data directory.
class BrokerProcess {
 public:
  /// Starts the broker and waits until DATA_DIR/broker.json names its control socket. Error: it did not
  /// start; the message contains the end of its log.
  static Result<std::unique_ptr<BrokerProcess>> start(const std::string& binary,
                                                      const std::vector<std::string>& flags = {});
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;
  /// Stops the broker with SIGTERM, and kills it after 5 s.
  ~BrokerProcess();

  /// Ends the broker with SIGTERM or SIGKILL, and waits for its end. Error: it takes longer than 30 s.
  Result<void> stop(int signal);
  /// Starts the broker again with the same data, after `stop`. Errors as for start. Its control socket has
  /// another address then.
  Result<void> start_again();

  [[nodiscard]] pid_t id() const { return process_->id(); }
  [[nodiscard]] std::filesystem::path data_directory() const { return directory_.path() / "data"; }
  [[nodiscard]] const ControlClient& control() const { return *control_; }
  [[nodiscard]] const std::string& admin_password() const { return admin_password_; }
  /// Returns the address of HTTP; empty: it is off.
  [[nodiscard]] const std::string& http_uri() const { return http_uri_; }

 private:
  BrokerProcess();
  Result<void> execute();
  Result<void> wait_until_ready();
  [[nodiscard]] std::string log_end() const;
  TempDir directory_;
  std::vector<std::string> command_;
  std::string admin_password_;
  std::string http_uri_;
  std::optional<ChildProcess> process_;
  std::optional<ControlClient> control_;
};

/// Returns the path of `lightq` in the build directory. A bench program is in that directory or in its
/// `bench/`.
std::string broker_beside(const char* program);

/// The own user of the topics below.
inline constexpr const char* bench_user = "bench";
inline constexpr const char* bench_password = "bench-only";

/// A topic of such a broker. Each `prepare` creates it again; producer and consumer join for each run.
class BrokerRoute : public Route {
 public:
  /// `topic_settings`: the fields of create_topic other than names and passwords, at least `broker_type`.
  static Result<std::unique_ptr<BrokerRoute>> start(const std::string& binary, nlohmann::json topic_settings,
                                                    const std::vector<std::string>& flags = {});

  /// Returns a route over other topics of the same broker.
  [[nodiscard]] std::unique_ptr<BrokerRoute> beside(nlohmann::json topic_settings) const;

  Result<void> prepare(const std::string& label) override;
  Result<StreamEnds> open() override;
  Result<void> close(const StreamEnds& ends) override;
  [[nodiscard]] std::optional<pid_t> process() const override { return broker_->id(); }
  [[nodiscard]] const std::string& topic() const { return topic_; }
  [[nodiscard]] const std::string& control_uri() const { return broker_->control().uri(); }
  /// Empty: the broker does not encrypt.
  [[nodiscard]] const std::string& server_key() const { return broker_->control().server_key(); }
  /// Returns the TCP address for the topic's producers. `delivery`: session or plain.
  Result<std::string> address_of(const std::string& delivery);
  /// Sets settings of a group of the topic. `settings`: fields of set_group (docs/protocol.md). Requires:
  /// prepared.
  Result<void> set_group(const std::string& group, const nlohmann::json& settings);
  /// Sends a command about the topic as the administrator, with these fields (docs/protocol.md). Requires:
  /// prepared.
  [[nodiscard]] Result<nlohmann::json> command(
      const std::string& name, const nlohmann::json& fields,
      std::chrono::milliseconds wait_max = std::chrono::seconds(10)) const;
  [[nodiscard]] BrokerProcess& broker() { return *broker_; }
  /// Creates `topics` more topics with the same settings, joined by a producer and a consumer over the Unix
  /// socket. Call it once.
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
