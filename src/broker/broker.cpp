/// Creates the broker's parts, connects them, starts them and stops them. Layer: broker.
#include "broker/broker.hpp"

#include <algorithm>
#include <future>
#include <stop_token>
#include <thread>
#include <utility>

#include <lightq/version.hpp>

#include "access/admin_account.hpp"
#include "admission/connection_quota.hpp"
#include "broker/broker_keys.hpp"
#include "broker/broker_storage.hpp"
#include "broker/data_directory.hpp"
#include "broker/exposure.hpp"
#include "broker/logging/audit_log.hpp"
#include "broker/parts_settings.hpp"
#include "broker/reactor_pool.hpp"
#include "broker/reload_table.hpp"
#include "broker/restored_data.hpp"
#include "broker/topic_directories.hpp"
#include "broker/upgrade/recorded_version.hpp"
#include "broker/wall_clock.hpp"
#include "control/audit/audited_answer.hpp"
#include "control/catalogue/registration_check.hpp"
#include "control/commands/command_handler.hpp"
#include "control/commands/operations.hpp"
#include "control/control_server.hpp"
#include "control/rights/permissions.hpp"
#include "http/service/http_service.hpp"
#include "net/socket.hpp"

namespace lightq::broker {

namespace {

constexpr auto answers_linger = std::chrono::milliseconds(500);
constexpr auto answers_check_interval = std::chrono::milliseconds(5);

}  // namespace

/// Owns the broker's layers and connects them. Thread: as Broker.
class Broker::Parts {
 public:
  Parts(Config config, std::string bind_address, LogSink& sink, std::unique_ptr<DataDirectory> directory,
        ReloadHooks hooks)
      : config_(std::move(config)),
        hooks_(std::move(hooks)),
        bind_address_(std::move(bind_address)),
        sink_(sink),
        directory_(std::move(directory)),
        storage_(config_, *directory_, *limits_reached_) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  ~Parts() { stop(); }

  Result<void> open_parts(const PipeWait& wait);
  Result<void> bring_up();
  [[nodiscard]] bool answers_within(std::chrono::milliseconds time);
  void post_reload();
  void stop();
  void end_control(EventLoop::Clock::time_point deadline);
  [[nodiscard]] const std::string& control_uri() const { return server_->bound_uri(); }
  [[nodiscard]] const std::filesystem::path& data_dir() const { return directory_->path(); }

 private:
  Result<void> open_catalogue();
  Result<void> open_audit();
  Result<void> open_control();
  Result<void> open_http();
  void warn_if_topics_are_open() const;
  [[nodiscard]] bool warn_if_insecure() const;
  void say_fewer_connections() const;
  void make_reactors();
  void make_operations(bool insecure);
  [[nodiscard]] ReactorPool::Settings reactor_settings() const;
  void handle(protocol::Request request, const Answer& answer);
  Result<protocol::ReloadReply> reload();
  Result<protocol::ReloadReply> try_to_reload();
  [[nodiscard]] Result<Config> read_settings() const;
  void apply(const Config& config);
  Result<void> publish();

  Config config_;  // once the control thread runs, it alone changes settings that a reload may change
  const ReloadHooks hooks_;
  const std::string bind_address_;
  LogSink& sink_;
  std::unique_ptr<DataDirectory> directory_;
  const std::unique_ptr<LimitCounts> limits_reached_ = std::make_unique<LimitCounts>();
  const std::unique_ptr<ConnectionQuota> user_connections_ =
      std::make_unique<ConnectionQuota>(connections_per_user_of(config_), limits_reached_.get());
  std::unique_ptr<AuditLog> audit_;  // null: none
  BrokerStorage storage_;
  BrokerKeys keys_;
  EventLoop control_;
  std::vector<TopicId> topics_with_files_;  // at the start
  std::unique_ptr<Catalogue> catalogue_;
  std::unique_ptr<Authenticator> authenticator_;
  ClientKeys client_keys_{config_.ticket_lifetime};
  std::uint32_t admin_generation_ = 0;  // until the catalogue is open
  std::unique_ptr<ReactorPool> reactors_;
  std::unique_ptr<Permissions> permissions_;
  std::unique_ptr<Operations> operations_;
  std::unique_ptr<CommandHandler> handler_;
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<HttpService> http_;  // null: there is no HTTP
  bool stopped_ = false;
  std::jthread control_thread_;  // last: ends before the objects that it uses are destroyed
};

Broker::Broker(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Broker::~Broker() = default;

Result<std::unique_ptr<Broker>> Broker::start(Config config, LogSink& sink, const PipeWait& wait,
                                              ReloadHooks hooks) {
  raise_descriptor_limit();
  if (auto checked = check_hosts(config); !checked) return checked.error();
  if (auto checked = check_tls(config); !checked) return checked.error();
  if (auto checked = check_storage_keys(config); !checked) return checked.error();
  if (auto kept = keep_paths(config); !kept) return kept.error();
  auto address = bind_address_of(config.bind_host);
  if (!address) return address.error();
  if (auto checked = check_exposure(config, *address); !checked) return checked.error();
  auto directory = DataDirectory::open(config.data_dir);
  if (!directory) return directory.error();
  const auto newer = newer_version_in((*directory)->path());
  if (newer)
    sink.warn("LightQ " + *newer + " has used this data directory, and this is " + std::string(version_text) +
              ": data in newer formats stays closed");
  auto parts = std::make_unique<Parts>(std::move(config), std::move(*address), sink, std::move(*directory),
                                       std::move(hooks));
  if (auto opened = parts->open_parts(wait); !opened) return with_writer(opened.error(), newer);
  if (auto recorded = record_version(parts->data_dir()); !recorded)
    sink.warn("cannot record the version in the data directory: " + recorded.error().text());
  if (auto up = parts->bring_up(); !up) return up.error();
  return std::unique_ptr<Broker>(new Broker(std::move(parts)));
}

const std::string& Broker::control_uri() const {
  return parts_->control_uri();
}

const std::filesystem::path& Broker::data_dir() const {
  return parts_->data_dir();
}

bool Broker::answers_within(std::chrono::milliseconds time) {
  return parts_->answers_within(time);
}

void Broker::reload() {
  parts_->post_reload();
}

void Broker::stop() {
  parts_->stop();
}

Result<void> Broker::Parts::open_parts(const PipeWait& wait) {
  auto admin = open_admin_account(directory_->admin_file(), std::move(config_.admin_password));
  if (!admin) return admin.error();
  if (admin->is_new) sink_.info("created the administrator's account: " + directory_->admin_file().string());
  if (auto prepared = prepare_restored_data(directory_->path(), sink_); !prepared) return prepared;
  if (auto opened = keys_.open_tickets(config_, *directory_); !opened) return opened;
  if (auto opened = keys_.open_curve(config_, *directory_, wait); !opened) return opened;
  if (auto opened = storage_.open_keys(config_, wait, sink_); !opened) return opened;
  if (auto opened = keys_.open_tls(config_, *directory_, wait, sink_); !opened) return opened;
  warn_if_topics_are_open();
  if (auto opened = open_catalogue(); !opened) return opened;
  auto generation = check_registrations(*catalogue_, keys_.tickets(), admin->password, sink_);
  if (!generation) return generation.error();
  admin_generation_ = *generation;
  if (auto removed = remove_deleted_topics(directory_->topics(), topics_with_files_, *catalogue_, sink_);
      !removed)
    return removed;
  storage_.opener().name_logs(catalogue_->state().log_names());
  authenticator_ = std::make_unique<Authenticator>(control_, admin->user_id, admin->password,
                                                   config_.requests_waiting_max);
  authenticator_->remember_at_most(config_.credentials_remembered_max);
  authenticator_->count_in(*limits_reached_);
  make_reactors();
  const bool insecure = warn_if_insecure();
  say_fewer_connections();
  make_operations(insecure);
  if (auto opened = open_control(); !opened) return opened;
  return open_http();
}

/// Makes the objects that execute requests, and connects them with the data plane.
void Broker::Parts::make_operations(bool insecure) {
  permissions_ = std::make_unique<Permissions>(*catalogue_, *authenticator_, admin_generation_);
  operations_ = std::make_unique<Operations>(
      Operations::Parts{control_, *catalogue_, *authenticator_, permissions_->rights(), *reactors_, sink_},
      OperationSettings{
          .data_dir = directory_->path().string(),
          .now = wall_clock_now,
          .topics_max = config_.topics_max,
          .users_max = config_.users_max,
          .rights_per_user_max = config_.rights_per_user_max,
          .ring_bytes_max = config_.ring_bytes_max,
          .memory_bytes_max = config_.memory_bytes_max,
          .groups_per_topic_max = config_.groups_per_topic_max,
          .redelivery_ms_max = config_.redelivery_ms_max,
          .open_topics = config_.open_topics,
          .throttled = [this] { return server_->throttled() + (http_ == nullptr ? 0 : http_->throttled()); },
          .server_key = keys_.public_text(),
          .client_keys = &client_keys_,
          .insecure = insecure,
          .limits_reached = limits_reached_.get(),
          .evicted = [this] { return server_->evicted(); },
          .templates = TopicTemplates(config_.topic_templates)});
  handler_ = std::make_unique<CommandHandler>(*permissions_, *operations_);
  handler_->set_reload([this] { return reload(); });
  reactors_->set_observer(operations_->observer());
}

void Broker::Parts::warn_if_topics_are_open() const {
  if (!config_.open_topics) return;
  sink_.warn(
      "open_topics: plain clients of every topic need no ticket; every user of this machine can read and "
      "write every topic");
}

/// Warns if other machines can reach this broker without encryption. Returns true in that case.
bool Broker::Parts::warn_if_insecure() const {
  const auto open = config_.encrypt ? std::nullopt : exposure_of(config_, bind_address_);
  if (!open) return false;
  sink_.warn(
      "insecure: " + *open +
      ", and nothing is encrypted: everybody on the network path can read passwords, tickets and messages");
  return true;
}

Result<void> Broker::Parts::open_catalogue() {
  auto topics = topics_with_files(directory_->topics());
  if (!topics) return topics.error();
  topics_with_files_ = std::move(*topics);
  Catalogue::Options options;
  options.topics_with_files = topics_with_files_;
  options.now = wall_clock_now;
  options.port_rest = config_.port_rest;
  options.client_keys_per_topic_max = config_.client_keys_per_topic_max;
  options.client_key_lifetime_max = config_.ticket_lifetime;
  options.open_log = [this](const std::filesystem::path& path) {
    return storage_.open_catalogue_log(path, sink_);
  };
  auto catalogue = Catalogue::open(directory_->catalogue(), std::move(options), sink_);
  if (!catalogue) return catalogue.error();
  catalogue_ = std::move(*catalogue);
  return {};
}

void Broker::Parts::say_fewer_connections() const {
  const std::size_t most = user_connections_->per_user_max();
  if (most >= config_.connections_per_user) return;
  sink_.warn("a user can have " + std::to_string(most) + " data connections, not connections_per_user (" +
             std::to_string(config_.connections_per_user) + "): a user has at most a third of the file " +
             "descriptors that are not reserved; raise their hard limit with ulimit -Hn");
}

ReactorPool::Settings Broker::Parts::reactor_settings() const {
  ReactorPool::Settings settings = reactor_settings_of(config_, *directory_);
  settings.bind_host = bind_address_;
  settings.tls = keys_.tls();
  auto& endpoints = settings.reactor.endpoints;
  endpoints.user_connections = user_connections_.get();
  endpoints.limits_reached = limits_reached_.get();
  endpoints.admin_generation = admin_generation_;
  endpoints.curve_key = keys_.curve();
  endpoints.client_keys = &client_keys_;
  return settings;
}

void Broker::Parts::make_reactors() {
  reactors_ =
      std::make_unique<ReactorPool>(reactor_settings(), storage_.opener(), keys_.tickets(), control_, sink_);
  const std::int64_t now_ms = wall_clock_now().us / 1000;
  for (const auto& [port, released_ms] : catalogue_->state().released_ports()) {
    const auto rested = std::chrono::milliseconds(std::max<std::int64_t>(0, now_ms - released_ms));
    if (rested >= config_.port_rest) continue;
    reactors_->ports().rest_until(port, PortBook::Clock::now() + (config_.port_rest - rested));
  }
  for (const auto& [name, topic] : catalogue_->state().topics()) {
    for (const auto& endpoint : catalogue_->state().endpoints_of(topic.definition.id))
      reactors_->expect(endpoint);
    for (const auto& record : catalogue_->state().client_keys_of(topic.definition.id))
      client_keys_.put(record);
  }
}

Result<void> Broker::Parts::open_audit() {
  if (config_.audit_log.empty()) return {};
  auto audit = AuditLog::open({.file = config_.audit_log, .file_bytes_max = config_.audit_log_bytes});
  if (!audit) return audit.error();
  audit_ = std::move(*audit);
  return {};
}

Result<void> Broker::Parts::open_control() {
  if (auto opened = open_audit(); !opened) return opened;
  auto server = ControlServer::open(
      control_, sink_, config_.control_uri,
      [this](protocol::Request request, const Answer& answer) { handle(std::move(request), answer); },
      unauthenticated_limits_of(config_), {.requests_per_second = config_.requests_per_second},
      control_limits_of(config_));
  if (!server) return server.error();
  server_ = std::move(*server);
  server_->count_in(*limits_reached_);
  auto own = directory_->listen_for_owner(control_uri());
  if (own && *own) server_->listen_also(std::move(**own));
  if (!own)
    sink_.warn("clients of this machine do not use the administrator's password in " +
               directory_->admin_file().string() +
               ", because the broker has no Unix socket in its data directory: " + own.error().text());
  if (keys_.curve() != nullptr) server_->guard(keys_.control_authorizer());
  return {};
}

/// Executes a request of the control socket or of HTTP, and puts it into the audit log. Thread: the control
/// thread.
void Broker::Parts::handle(protocol::Request request, const Answer& answer) {
  const Answer reply = audit_ == nullptr ? answer : audited(*audit_, request, answer, wall_clock_now);
  handler_->handle(std::move(request), reply);
}

/// Opens HTTP unless it is off. If another process has the default address, only warns.
Result<void> Broker::Parts::open_http() {
  const auto uri = http_uri_of(config_);
  if (!uri) return {};
  HttpSettings settings = http_settings_of(config_, *uri);
  settings.tls = keys_.tls();
  settings.limits_reached = limits_reached_.get();
  auto opened = HttpService::open(
      *uri, std::move(settings),
      {.sink = sink_,
       .control = control_,
       .permissions = *permissions_,
       .operations = *operations_,
       .reactors = reactors_->contexts(),
       .directory = directory_->path(),
       .free_bytes_min = reactor_settings().reactor.storage.disk_free_floor_bytes,
       .flushes = config_.flush_interval.count() > 0,
       .metrics_topics_max = config_.metrics_topics_max,
       .control_connections = [this] { return server_->connections(); },
       .execute = [this](protocol::Request request,
                         const Answer& answer) { handle(std::move(request), answer); },
       .request_bytes_max = config_.request_bytes_max,
       .on_topic = [this](TopicId topic, auto call) { return reactors_->post_to(topic, std::move(call)); }});
  if (opened) {
    http_ = std::move(*opened);
    return {};
  }
  if (opened.error().code != ErrorCode::address_in_use || config_.http_uri) return opened.error();
  sink_.warn(opened.error().text() +
             "; the broker runs without HTTP: choose another port with --http tcp://127.0.0.1:PORT, or none "
             "with --http off");
  return {};
}

/// Starts the threads, waits until every topic runs, then accepts requests.
Result<void> Broker::Parts::bring_up() {
  // Read now: once the control thread runs, only it may read the catalogue.
  const std::size_t topics = catalogue_->state().topics().size();
  reactors_->start();
  std::promise<Result<void>> accepting;
  control_.post_answer([this, &accepting] {
    operations_->bring_up([this, &accepting] {
      // Writes these files before it accepts: a client reads them right after its first reply.
      const auto published = publish();
      accepting.set_value(published ? server_->accept() : published);
    });
  });
  control_thread_ = std::jthread([this](const std::stop_token& stop) { control_.run(stop); });
  if (auto accepted = accepting.get_future().get(); !accepted) return accepted;
  if (http_ != nullptr) {
    http_->start();
    sink_.info("http: " + http_->uri());
  }
  sink_.info("lightq " + std::string(version_text) + " is ready: control " + control_uri() + ", " +
             std::to_string(topics) + " topics, data in " + directory_->path().string());
  return {};
}

bool Broker::Parts::answers_within(std::chrono::milliseconds time) {
  if (stopped_) return false;
  const auto answered = std::make_shared<std::promise<void>>();  // the answer may come after this call
  auto waits = answered->get_future();
  control_.post_answer([this, answered] {
    reactors_->broker_stats([answered](const Result<protocol::BrokerStats>&) { answered->set_value(); });
  });
  return waits.wait_for(time) == std::future_status::ready;
}

void Broker::Parts::post_reload() {
  control_.post_answer([this] { (void)reload(); });
}

/// Reads the settings and the files again that they name. Thread: the control thread, which waits for the
/// disk meanwhile, as at a start.
Result<protocol::ReloadReply> Broker::Parts::reload() {
  if (hooks_.begun) hooks_.begun();
  auto reloaded = try_to_reload();
  if (reloaded)
    sink_.info(reload_text(*reloaded));
  else
    sink_.error("reload: nothing has changed: " + reloaded.error().text());
  if (hooks_.ended) hooks_.ended();
  return reloaded;
}

/// Returns the settings as a start would read them. Errors: those of a start, but for addresses that have
/// changed: the next start checks these.
Result<Config> Broker::Parts::read_settings() const {
  if (!hooks_.read_settings) return config_;
  auto read = hooks_.read_settings();
  if (!read) return read;
  if (auto checked = check_hosts(*read); !checked) return checked.error();
  if (auto checked = check_tls(*read); !checked) return checked.error();
  if (auto checked = check_storage_keys(*read); !checked) return checked.error();
  if (auto kept = keep_paths(*read); !kept) return kept.error();
  const bool same_addresses = read->control_uri == config_.control_uri &&
                              read->bind_host == config_.bind_host &&
                              read->advertise_host == config_.advertise_host;
  if (!same_addresses) return read;
  if (auto checked = check_exposure(*read, bind_address_); !checked) return checked.error();
  return read;
}

Result<protocol::ReloadReply> Broker::Parts::try_to_reload() {
  const auto read = read_settings();
  if (!read) return read.error();
  ReloadPlan plan = plan_reload(config_, *read);
  auto renewal = BrokerKeys::read_again(plan.config, *directory_);
  if (!renewal) return renewal.error();
  if (keys_.is_curve_key_gone(*directory_)) plan.needs_restart.emplace_back("curve.key");
  for (std::string& name : keys_.renew(std::move(*renewal))) {
    if (std::ranges::find(plan.changed, name) == plan.changed.end()) plan.changed.push_back(std::move(name));
  }
  take_reloadable(plan.config, config_);
  apply(config_);
  return protocol::ReloadReply{std::move(plan.changed), std::move(plan.needs_restart)};
}

/// Brings settings into force that a reload may change.
void Broker::Parts::apply(const Config& config) {
  if (hooks_.set_log_level) hooks_.set_log_level(config.log_level);
  user_connections_->set_per_user_max(connections_per_user_of(config));
  authenticator_->remember_at_most(config.credentials_remembered_max);
  operations_->change_limits(creation_limits_of(config));
  operations_->change_templates(TopicTemplates(config.topic_templates));
  server_->change_limits(control_limits_of(config), config.requests_per_second);
  if (http_ != nullptr) http_->set_requests_per_second(config.requests_per_second);
  if (keys_.curve() == nullptr) return;
  server_->guard(keys_.control_authorizer());
  operations_->change_server_key(keys_.public_text());
  if (const auto published = publish(); !published) sink_.warn(published.error().text());
}

/// Writes the files by which clients of this machine find the broker, and know it.
Result<void> Broker::Parts::publish() {
  const std::string http_uri = http_ == nullptr ? std::string() : http_->uri();
  return directory_->publish(control_uri(), keys_.public_text(), http_uri);
}

/// Ends the control thread once the last answers have been sent, or at the deadline. Thread: the control
/// thread.
void Broker::Parts::end_control(EventLoop::Clock::time_point deadline) {
  const auto now = EventLoop::Clock::now();
  if (server_->all_sent() || now >= deadline) {
    control_thread_.request_stop();
    return;
  }
  control_.at(now + answers_check_interval, [this, deadline] { end_control(deadline); });
}

void Broker::Parts::stop() {
  if (std::exchange(stopped_, true) || reactors_ == nullptr) return;
  const auto deadline = std::chrono::steady_clock::now() + config_.stop_deadline;
  if (control_thread_.joinable()) {
    control_.post_answer([this] { handler_->stop_accepting(); });
    reactors_->stop(deadline);
    if (http_ != nullptr) http_->stop();
    control_.post_answer([this] { end_control(EventLoop::Clock::now() + answers_linger); });
    control_thread_.join();
  }
  sink_.info("stopped");
}

}  // namespace lightq::broker
