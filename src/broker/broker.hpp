/// The broker: everything wired together. Layer: broker.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <thread>

#include <lightq/base/result.hpp>

#include "broker/config.hpp"
#include "broker/control/command_handler.hpp"
#include "broker/control/control_server.hpp"
#include "broker/data_directory.hpp"
#include "broker/reactor_pool.hpp"
#include "log/posix_storage.hpp"
#include "log/segment_pool.hpp"

namespace lightq::broker {

/// A running broker, in the lightq program or in any other. Made, stopped and destroyed on one thread; its
/// work is done on threads of its own.
///
///     auto broker = lightq::broker::Broker::start(std::move(config), sink).value_or_throw();
///     … lightq::Client::connect(broker->control_uri()) …
///     broker->stop();
class Broker {
 public:
  /// Takes the data directory, brings up every topic in it and begins to answer requests. `sink` must outlive
  /// the broker. Errors: in_use (another broker has the directory), address_in_use, invalid_argument,
  /// io_error, no_space, corrupt, foreign_format.
  static Result<std::unique_ptr<Broker>> start(Config config, LogSink& sink);
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  /// Stops, if nobody did.
  ~Broker();

  /// The control socket's address, with the real port.
  [[nodiscard]] const std::string& control_uri() const { return server_->bound_uri(); }
  [[nodiscard]] const std::filesystem::path& data_dir() const { return directory_->path(); }

  /// Takes no more requests and messages, lets what was handed to consumers leave, flushes, ends its threads.
  /// Returns after `stop_deadline` at the latest, unless a disk hangs. Nothing happens the second time.
  void stop();

 private:
  Broker(Config config, LogSink& sink, std::unique_ptr<DataDirectory> directory);

  Result<void> open_parts();
  Result<void> open_catalogue();
  Result<void> open_control();
  void make_reactors();
  Result<void> bring_up();
  [[nodiscard]] ReactorPool::Settings reactor_settings() const;

  Config config_;
  LogSink& sink_;
  std::unique_ptr<DataDirectory> directory_;
  log::PosixStorage storage_;
  log::SegmentPool pool_;
  StorageRoom room_;
  EventLoop control_;
  std::unique_ptr<Catalogue> catalogue_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<ReactorPool> reactors_;
  std::unique_ptr<CommandHandler> handler_;
  std::unique_ptr<ControlServer> server_;
  bool stopped_ = false;
  std::jthread control_thread_;  // last: ends before what it works with goes
};

}  // namespace lightq::broker
