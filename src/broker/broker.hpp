/// The broker: creates all layers and connects them. Layer: broker.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "broker/config.hpp"

namespace lightq::broker {

/// Functions of the program that a broker calls when it reloads its settings. A program that embeds a broker
/// may leave out all of them. Thread: the broker calls these functions on a thread of its own.
struct ReloadHooks {
  /// Reads the settings again. Empty: they stay, and only the files are read again that they name.
  std::function<Result<Config>()> read_settings = {};
  std::function<void(LogLevel)> set_log_level = {};
  std::function<void()> begun = {};  ///< a reload begins
  std::function<void()> ended = {};  ///< it has ended, with or without success
};

/// A running broker, in the lightq program or embedded in another program. Thread: created, stopped and
/// destroyed on one thread. Its work runs on threads that it owns.
///
///     auto broker = lightq::broker::Broker::start(std::move(config), sink).value_or_throw();
///     … lightq::Client::connect(broker->control_uri()) …
///     broker->stop();
class Broker {
 public:
  /// Locks the data directory, starts every topic in it and begins to answer requests. `wait`: how long to
  /// wait for files named by settings that are pipes; its stop_descriptor also ends the wait for the storage
  /// keys' command. Lifetime: `sink` must outlive the broker.
  ///
  /// Errors: in_use (another broker has the directory), address_in_use, invalid_argument, io_error, no_space,
  /// corrupt, foreign_format, internal (TLS cannot be set up). For a file named by a setting: the errors of
  /// read_private_file with that setting's name.
  static Result<std::unique_ptr<Broker>> start(Config config, LogSink& sink, const PipeWait& wait = {},
                                               ReloadHooks hooks = {});
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  /// Calls `stop` if it was not called.
  ~Broker();

  /// Returns the control socket's address, with the actual port.
  [[nodiscard]] const std::string& control_uri() const;
  [[nodiscard]] const std::filesystem::path& data_dir() const;

  /// Returns true if the control thread and every reactor have answered a question within `time`, which shows
  /// that their loops turn.
  [[nodiscard]] bool answers_within(std::chrono::milliseconds time);

  /// Begins to read the settings and the files again that they name, as the command `reload` does. The log
  /// tells the outcome. Returns at once.
  void reload();

  /// Stops the broker: accepts no more requests and messages, sends the messages already passed to consumers,
  /// flushes, and ends its threads. Waits for consumers until `stop_deadline` at the latest, and for the disk
  /// without a limit. Further calls do nothing.
  void stop();

 private:
  class Parts;  // hides the layers below from an embedding program
  explicit Broker(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace lightq::broker
