/// Runs a broker for one example, in a fresh directory and on a free port. embedded_broker.cpp explains the
/// steps.
#pragma once

#include <lightq/lightq.hpp>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "broker/broker.hpp"

/// Prints the broker's warnings and errors only.
class Errors final : public lightq::broker::LogSink {
 public:
  void write(lightq::broker::LogLevel level, std::string_view line) override {
    if (level >= lightq::broker::LogLevel::warn) std::cerr << line << '\n';
  }
};

/// A fresh directory, which the destructor removes.
struct TempDirectory {
  TempDirectory() {
    // the form that mkdtemp needs
    std::string name = (std::filesystem::temp_directory_path() / "lightq-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~TempDirectory() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

class OwnBroker {
 public:
  OwnBroker() {
    lightq::broker::Config config;
    config.data_dir = data_.path / "data";
    config.control_uri = "tcp://127.0.0.1:0";
    config.min_free_bytes = 0;
    config.admin_password = "only for this process";
    broker_ = lightq::broker::Broker::start(std::move(config), errors_).value_or_throw();
  }
  [[nodiscard]] lightq::Client client() const {
    lightq::ClientOptions options;
    options.admin = {"lightq_admin", "only for this process"};
    options.discover_credentials = false;
    return lightq::Client::connect(broker_->control_uri(), options).value_or_throw();
  }

 private:
  const TempDirectory data_;
  Errors errors_;
  std::unique_ptr<lightq::broker::Broker> broker_;
};
