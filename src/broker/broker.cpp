/// Layer: broker.
#include "broker/broker.hpp"

#include <algorithm>
#include <utility>

#include <lightq/version.hpp>

#include "broker/control/admin_account.hpp"

namespace lightq::broker {

namespace {

constexpr std::uint64_t free_floor_bytes = limits::GiB;
constexpr std::uint64_t free_floor_share = 50;  // or 2 % of the disk
constexpr unsigned cores_with_one_reactor = 4;

Timestamp wall_clock_now() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  return {std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count()};
}

std::uint64_t default_free_floor(const std::filesystem::path& directory) {
  std::error_code failed;
  const auto space = std::filesystem::space(directory, failed);
  return failed ? free_floor_bytes : std::max(free_floor_bytes, space.capacity / free_floor_share);
}

std::size_t default_reactors() {
  const unsigned cores = std::thread::hardware_concurrency();
  return cores <= cores_with_one_reactor ? 1 : cores / 2;
}

}  // namespace

Broker::Broker(Config config, LogSink& sink, std::unique_ptr<DataDirectory> directory)
    : config_(std::move(config)),
      sink_(sink),
      directory_(std::move(directory)),
      pool_({.directory = directory_->pool().string()}, storage_),
      room_(storage_, pool_) {}

Broker::~Broker() {
  stop();
}

Result<std::unique_ptr<Broker>> Broker::start(Config config, LogSink& sink) {
  raise_descriptor_limit();
  auto directory = DataDirectory::open(config.data_dir);
  if (!directory) return directory.error();
  std::unique_ptr<Broker> broker(new Broker(std::move(config), sink, std::move(*directory)));
  if (auto opened = broker->open_parts(); !opened) return opened.error();
  if (auto up = broker->bring_up(); !up) return up.error();
  return broker;
}

Result<void> Broker::open_parts() {
  auto admin = open_admin_account(directory_->admin_file(), std::move(config_.admin_password));
  if (!admin) return admin.error();
  if (admin->is_new) sink_.info("made the administrator's account: " + directory_->admin_file().string());
  if (auto opened = open_catalogue(); !opened) return opened;
  authenticator_ = std::make_unique<Authenticator>(control_, admin->user_id, admin->password);
  make_reactors();
  handler_ = std::make_unique<CommandHandler>(
      CommandHandler::Parts{control_, *catalogue_, *authenticator_, *reactors_, sink_},
      CommandHandler::Settings{directory_->path().string(), wall_clock_now});
  reactors_->set_observer(*handler_);
  return open_control();
}

Result<void> Broker::open_catalogue() {
  Catalogue::Options options;
  options.now = wall_clock_now;
  options.port_rest = config_.port_rest;
  options.open_log = [this](const std::filesystem::path& path) -> Result<std::unique_ptr<log::Log>> {
    log::SegmentLogOptions segments;
    segments.directory = path.string();
    segments.segment_bytes = limits::segment_bytes_first;
    segments.flush_interval_ms = 0;  // the catalogue flushes before it answers
    auto opened = log::SegmentLog::open(std::move(segments), storage_, pool_, wall_clock_now());
    if (!opened) return opened.error();
    const auto& report = (*opened)->recovery();
    if (!report.clean()) sink_.error("catalogue: " + report.text());
    return std::unique_ptr<log::Log>(std::move(*opened));
  };
  auto catalogue = Catalogue::open(directory_->catalogue(), std::move(options), sink_);
  if (!catalogue) return catalogue.error();
  catalogue_ = std::move(*catalogue);
  return {};
}

ReactorPool::Settings Broker::reactor_settings() const {
  ReactorPool::Settings settings;
  settings.reactors = config_.reactors == 0 ? default_reactors() : static_cast<std::size_t>(config_.reactors);
  settings.bind_host = config_.bind_host;
  if (config_.ports) settings.ports = PortBook::Range{config_.ports->first, config_.ports->last};
  settings.port_rest = config_.port_rest;
  auto& endpoints = settings.reactor.endpoints;
  endpoints.advertise_host = config_.advertise_host.empty() ? config_.bind_host : config_.advertise_host;
  endpoints.ipc_directory = config_.ipc_dir.empty() ? directory_->ipc() : config_.ipc_dir;
  endpoints.message_bytes_max = config_.message_bytes_max;
  endpoints.idle_time_max = config_.endpoint_idle;
  auto& storage = settings.reactor.storage;
  storage.topics_directory = directory_->topics();
  storage.message_bytes_max = config_.message_bytes_max;
  storage.disk_free_floor_bytes = config_.min_free_bytes.value_or(default_free_floor(directory_->path()));
  storage.flush_interval_ms = config_.flush_interval.count();
  return settings;
}

void Broker::make_reactors() {
  reactors_ = std::make_unique<ReactorPool>(reactor_settings(), room_, control_, sink_);
  const std::int64_t now_ms = wall_clock_now().us / 1000;
  for (const auto& [port, released_ms] : catalogue_->state().released_ports()) {
    const auto rested = std::chrono::milliseconds(std::max<std::int64_t>(0, now_ms - released_ms));
    if (rested >= config_.port_rest) continue;
    reactors_->ports().rest_until(port, PortBook::Clock::now() + (config_.port_rest - rested));
  }
}

Result<void> Broker::open_control() {
  auto server = ControlServer::open(control_, sink_, config_.control_uri,
                                    [this](protocol::Request request, CommandHandler::Answer answer) {
                                      handler_->handle(std::move(request), std::move(answer));
                                    });
  if (!server) return server.error();
  server_ = std::move(*server);
  return {};
}

/// Starts the threads and waits until every topic is there, then lets requests in.
Result<void> Broker::bring_up() {
  reactors_->start();
  std::promise<Result<void>> accepting;
  control_.post_answer([this, &accepting] {
    handler_->bring_up([this, &accepting] { accepting.set_value(server_->accept()); });
  });
  control_thread_ = std::jthread([this](const std::stop_token& stop) { control_.run(stop); });
  if (auto accepted = accepting.get_future().get(); !accepted) return accepted;
  sink_.info("lightq " + std::string(version_text) + " is ready: control " + control_uri() + ", " +
             std::to_string(catalogue_->state().topics().size()) + " topics, data in " +
             directory_->path().string());
  return directory_->publish(control_uri());
}

void Broker::stop() {
  if (std::exchange(stopped_, true) || reactors_ == nullptr) return;
  const auto deadline = std::chrono::steady_clock::now() + config_.stop_deadline;
  if (control_thread_.joinable()) {
    control_.post_answer([this] { handler_->stop_accepting(); });
    reactors_->stop(deadline);
    control_thread_.request_stop();
    control_thread_.join();
  }
  sink_.info("stopped");
}

}  // namespace lightq::broker
