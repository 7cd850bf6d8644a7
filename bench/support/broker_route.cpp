/// Starts the broker, creates topics and joins them. Layer: bench support.
#include "support/broker_route.hpp"

#include <csignal>
#include <filesystem>
#include <random>
#include <sstream>
#include <thread>

#include "support/text_file.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds start_time_max{15};
constexpr std::chrono::seconds stop_time_max{5};
constexpr std::chrono::seconds restart_stop_time_max{30};
constexpr std::chrono::milliseconds look_interval{2};
constexpr std::size_t log_end_bytes = 1000;

std::string random_password() {
  std::random_device random;
  std::ostringstream text;
  for (int i = 0; i < 4; ++i) text << std::hex << random();
  return text.str();
}

}  // namespace

std::string broker_beside(const char* program) {
  const std::filesystem::path directory = std::filesystem::path(program).parent_path();
  for (const char* candidate : {"lightq", "../lightq"}) {
    if (std::filesystem::exists(directory / candidate)) return (directory / candidate).string();
  }
  return (directory / "lightq").string();
}

BrokerProcess::BrokerProcess() : admin_password_(random_password()) {}

BrokerProcess::~BrokerProcess() {
  if (!process_) return;
  process_->signal(SIGTERM);
  process_->wait_until(Clock::now() + stop_time_max);
  process_->kill();  // before the data directory is removed
}

Result<std::unique_ptr<BrokerProcess>> BrokerProcess::start(const std::string& binary,
                                                            const std::vector<std::string>& flags) {
  std::unique_ptr<BrokerProcess> broker(new BrokerProcess());
  const std::filesystem::path& directory = broker->directory_.path();
  broker->command_ = {binary,      "broker",           "--data-dir", (directory / "data").string(),
                      "--control", "tcp://127.0.0.1:0"};
  broker->command_.insert(broker->command_.end(), flags.begin(), flags.end());
  if (const auto started = broker->execute(); !started) return started.error();
  return broker;
}

Result<void> BrokerProcess::execute() {
  Result<ChildProcess> process = ChildProcess::execute(command_, {{"LIGHTQ_ADMIN_PASSWORD", admin_password_}},
                                                       (directory_.path() / "broker.log").string());
  if (!process) return process.error();
  process_ = std::move(process).value();
  const Result<void> ready = wait_until_ready();
  if (!ready) return failure(ready.error().message + "\n" + log_end());
  return {};
}

Result<void> BrokerProcess::stop(int signal) {
  process_->signal(signal);
  if (!process_->wait_until(Clock::now() + restart_stop_time_max))
    return failure("the broker did not stop in time");
  return {};
}

Result<void> BrokerProcess::start_again() {
  std::error_code ignored;
  std::filesystem::remove(data_directory() / "broker.json", ignored);  // left by a broker that was killed
  return execute();
}

Result<void> BrokerProcess::wait_until_ready() {
  const Clock::time_point give_up = Clock::now() + start_time_max;
  const std::filesystem::path address = directory_.path() / "data" / "broker.json";
  while (Clock::now() < give_up && !stop_requested()) {
    const nlohmann::json found = nlohmann::json::parse(contents_of(address), nullptr, false);
    if (found.is_object() && found.contains("control_uri")) {
      control_.emplace(found["control_uri"].get<std::string>(), found.value("server_key", ""));
      http_uri_ = found.value("http_uri", "");
      return {};
    }
    const auto end = process_->wait_until(Clock::now() + look_interval);
    if (end) return failure("the broker did not start: " + end->text());
  }
  return failure("the broker did not start in time");
}

std::string BrokerProcess::log_end() const {
  return end_of(contents_of(directory_.path() / "broker.log"), log_end_bytes);
}

Result<std::unique_ptr<BrokerRoute>> BrokerRoute::start(const std::string& binary,
                                                        nlohmann::json topic_settings,
                                                        const std::vector<std::string>& flags) {
  Result<std::unique_ptr<BrokerProcess>> broker = BrokerProcess::start(binary, flags);
  if (!broker) return broker.error();
  return std::unique_ptr<BrokerRoute>(new BrokerRoute(std::move(broker).value(), std::move(topic_settings)));
}

std::unique_ptr<BrokerRoute> BrokerRoute::beside(nlohmann::json topic_settings) const {
  return std::unique_ptr<BrokerRoute>(new BrokerRoute(broker_, std::move(topic_settings)));
}

nlohmann::json BrokerRoute::admin_request(const std::string& command) const {
  return {{"cmd", command},
          {"admin_user_id", "lightq_admin"},
          {"admin_password", broker_->admin_password()},
          {"topic", topic_}};
}

nlohmann::json BrokerRoute::user_request(const std::string& command) const {
  return {{"cmd", command}, {"topic", topic_}, {"user_id", bench_user}, {"password", bench_password}};
}

Result<void> BrokerRoute::prepare(const std::string& label) {
  const Result<void> deleted = delete_topic();
  if (!deleted) return deleted;
  topic_ = "bench-" + label;
  nlohmann::json request = admin_request("create_topic");
  request.update({{"user_id", bench_user}, {"password", bench_password}});
  request.update(topic_settings_);
  const Result<nlohmann::json> created = broker_->control().ask(request);
  if (created) return {};
  topic_.clear();
  return created.error();
}

Result<void> BrokerRoute::delete_topic() {
  if (topic_.empty()) return {};
  const Result<nlohmann::json> deleted = broker_->control().ask(admin_request("delete_topic"));
  if (!deleted) return deleted.error();
  topic_.clear();
  return {};
}

Result<void> BrokerRoute::set_group(const std::string& group, const nlohmann::json& settings) {
  nlohmann::json fields = settings;
  fields["group"] = group;
  const Result<nlohmann::json> set = command("set_group", fields);
  if (!set) return set.error();
  return {};
}

Result<nlohmann::json> BrokerRoute::command(const std::string& name, const nlohmann::json& fields,
                                            std::chrono::milliseconds wait_max) const {
  nlohmann::json request = admin_request(name);
  if (!fields.empty()) request.update(fields);
  return broker_->control().ask(request, wait_max);
}

Result<BrokerRoute::Joined> BrokerRoute::join(const std::string& type) {
  nlohmann::json request = user_request("join");
  request.update({{"connection_type", "zmq"}, {"type", type}});
  Joined answer;
  if (!server_key().empty()) {
    answer.keys = StreamKeys::generate(server_key());
    request["client_key"] = answer.keys.public_key;
  }
  const Result<nlohmann::json> joined = broker_->control().ask(request);
  if (!joined) return joined.error();
  answer.uri = joined->value("bind_uri", "");
  if (answer.uri.empty()) return failure("join: the reply has no bind_uri");
  if (joined->contains("ticket")) {
    const nlohmann::json& ticket = joined->at("ticket");
    answer.ticket = {ticket.value("id", ""), ticket.value("secret", "")};
  }
  return answer;
}

Result<std::string> BrokerRoute::address_of(const std::string& delivery) {
  nlohmann::json request = user_request("join");
  request.update({{"connection_type", delivery == "session" ? "socket" : "zmq"},
                  {"delivery", delivery},
                  {"type", "push"}});
  const Result<nlohmann::json> joined = broker_->control().ask(request);
  if (!joined) return joined.error();
  return joined->value("bind_uri", "");
}

Result<BrokerRoute::Joined> BrokerRoute::join_session(const std::string& topic,
                                                      const std::string& type) const {
  nlohmann::json request = user_request("join");
  request.update({{"topic", topic},
                  {"connection_type", "socket"},
                  {"transport", "ipc"},
                  {"delivery", "session"},
                  {"type", type}});
  const Result<nlohmann::json> joined = broker_->control().ask(request);
  if (!joined) return joined.error();
  Joined answer;
  answer.uri = joined->value("bind_uri", "");
  const nlohmann::json& ticket = joined->at("ticket");
  answer.ticket = {ticket.value("id", ""), ticket.value("secret", "")};
  return answer;
}

Result<TopicFan> BrokerRoute::make_fan(std::size_t topics) {
  TopicFan fan;
  for (std::size_t i = 0; i < topics; ++i) {
    const std::string name = "fan-" + std::to_string(i);
    nlohmann::json request = admin_request("create_topic");
    request.update({{"topic", name}, {"user_id", bench_user}, {"password", bench_password}});
    request.update(topic_settings_);
    if (const auto created = broker_->control().ask(request); !created) return created.error();
    const auto producer = join_session(name, "push");
    if (!producer) return producer.error();
    const auto consumer = join_session(name, "pull");
    if (!consumer) return consumer.error();
    fan.uri = producer->uri;
    fan.topics.push_back({name, producer->ticket.id + "." + producer->ticket.secret,
                          consumer->ticket.id + "." + consumer->ticket.secret});
  }
  return fan;
}

Result<void> BrokerRoute::leave(const std::string& uri) {
  nlohmann::json request = user_request("leave");
  request["bind_uri"] = uri;
  const Result<nlohmann::json> left = broker_->control().ask(request);
  if (!left) return left.error();
  return {};
}

Result<StreamEnds> BrokerRoute::open() {
  Result<Joined> consumer = join("pull");
  if (!consumer) return consumer.error();
  Result<Joined> producer = join("push");
  if (!producer) return producer.error();
  return StreamEnds{producer->uri,    consumer->uri,  producer->ticket,
                    consumer->ticket, producer->keys, consumer->keys};
}

Result<void> BrokerRoute::close(const StreamEnds& ends) {
  const Result<void> left = leave(ends.consumer_uri);
  if (!left) return left;
  return leave(ends.producer_uri);
}

}  // namespace lightq::bench
