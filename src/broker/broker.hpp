/// The broker: everything wired together. Layer: broker.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <lightq/base/result.hpp>

#include "broker/config.hpp"
#include "broker/endpoint/log_sink.hpp"

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
  /// io_error, no_space, corrupt, foreign_format; internal: its data endpoints would let in who has no
  /// ticket; of a file that a setting names, with that setting's name: as read_private_file. `wait`: how long
  /// is waited for such files that are pipes; its stop_descriptor also counts for the storage keys' command.
  static Result<std::unique_ptr<Broker>> start(Config config, LogSink& sink, const PipeWait& wait = {});
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  /// Stops, if nobody did.
  ~Broker();

  /// The control socket's address, with the real port.
  [[nodiscard]] const std::string& control_uri() const;
  [[nodiscard]] const std::filesystem::path& data_dir() const;

  /// Takes no more requests and messages, lets what was handed to consumers leave, flushes, ends its threads.
  /// Waits for consumers until `stop_deadline` at the latest, and besides for the disk. Nothing happens the
  /// second time.
  void stop();

 private:
  class Parts;  // so that an embedding program sees none of the layers below
  explicit Broker(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace lightq::broker
