/// Starts and restarts servers. Layer: bench support.
#include "support/servers/server_process.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "support/text_file.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds stop_time_max{10};
constexpr std::chrono::seconds output_time_max{20};
constexpr std::chrono::milliseconds look_interval{5};
constexpr std::size_t log_end_bytes = 1'500;
constexpr std::size_t output_bytes_max = 64 * 1024;
constexpr int start_attempts = 3;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name, const std::string& directory) {
  const char* const path = std::getenv("PATH");
  std::istringstream places(directory + ":" + (path != nullptr ? path : "") + ":/usr/sbin:/sbin");
  for (std::string place; std::getline(places, place, ':');) {
    if (place.empty()) continue;
    const std::string candidate = place + "/" + name;
    if (::access(candidate.c_str(), X_OK) == 0 && !std::filesystem::is_directory(candidate)) return candidate;
  }
  return std::nullopt;
}

std::string output_of(const std::vector<std::string>& command) {
  const TempDir directory;
  const std::string path = (directory.path() / "output").string();
  ChildProcess process = ChildProcess::execute(command, {}, path).value_or_throw();
  const auto end = process.wait_until(Clock::now() + output_time_max);
  if (!end) throw std::runtime_error(command[0] + " did not end in time");
  if (!end->good()) throw std::runtime_error(command[0] + ": " + end->text());
  return contents_of(path).substr(0, output_bytes_max);
}

std::uint16_t free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof address;
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    throw std::runtime_error("there is no free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

ServerProcess::ServerProcess(const MakeCommand& make_command, Environment environment,
                             std::chrono::seconds start_time_max)
    : environment_(std::move(environment)), start_time_max_(start_time_max) {
  for (int attempt = 1; !process_; ++attempt) {
    port_ = free_port();
    command_ = make_command(port_, directory());
    try {
      run();
    } catch (const std::runtime_error&) {
      process_.reset();
      if (attempt == start_attempts || stop_requested()) throw;
    }
  }
}

ServerProcess::~ServerProcess() {
  end();
}

void ServerProcess::end() {
  if (!process_) return;
  process_->signal(SIGCONT);  // a stopped process does not react to SIGTERM
  process_->signal(SIGTERM);
  process_->wait_until(Clock::now() + stop_time_max);
  process_->kill();
}

void ServerProcess::run() {
  process_.emplace(
      ChildProcess::execute(command_, environment_, directory() + "/output.log").value_or_throw());
  const Clock::time_point give_up = Clock::now() + start_time_max_;
  while (!accepts()) {
    const auto end = process_->wait_until(Clock::now() + look_interval);
    if (end) throw std::runtime_error(command_[0] + " did not start: " + end->text() + "\n" + log_end());
    if (stop_requested()) throw std::runtime_error("interrupted");
    if (Clock::now() > give_up)
      throw std::runtime_error(command_[0] + " did not start in time\n" + log_end());
  }
}

bool ServerProcess::accepts() const {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = loopback(port_);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

std::string ServerProcess::log_end() const {
  return end_of(contents_of(directory() + "/output.log"), log_end_bytes);
}

std::string ServerProcess::command_text() const {
  std::string text;
  for (const std::string& word : command_) text += (text.empty() ? "" : " ") + (word.empty() ? "''" : word);
  for (const auto& [from, to] :
       {std::pair{directory(), std::string("DIR")}, std::pair{std::to_string(port_), std::string("PORT")}}) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace lightq::bench
