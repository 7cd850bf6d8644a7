/// Starts redis-server. Layer: bench peers.
#include "peers/redis_connection.hpp"
#include "peers/redis_peers.hpp"

namespace lightq::bench {
namespace {

std::vector<std::string> command_for(Storage storage, std::uint16_t port, const std::string& directory) {
  std::vector<std::string> command = {find_program("redis-server").value(),
                                      "--bind",
                                      "127.0.0.1",
                                      "--port",
                                      std::to_string(port),
                                      "--dir",
                                      directory,
                                      "--unixsocket",
                                      directory + "/redis.sock"};
  // `standard` adds nothing: then Redis writes a snapshot of its memory from time to time, and no log.
  const char* synced = nullptr;
  if (storage == Storage::page_cache) synced = "no";
  if (storage == Storage::synced) synced = "always";
  if (storage == Storage::memory || synced != nullptr) command.insert(command.end(), {"--save", ""});
  if (synced != nullptr) command.insert(command.end(), {"--appendonly", "yes", "--appendfsync", synced});
  return command;
}

}  // namespace

RedisServer::RedisServer(Storage storage)
    : OneProcessServer([storage](std::uint16_t port, const std::string& directory) {
        return command_for(storage, port, directory);
      }) {}

void RedisServer::drop_queue(const QueueTerms& queue) {
  RedisConnection connection(socket_path());
  connection.ask({"UNLINK", queue.name});
}

std::optional<std::string> RedisPeer::version() const {
  const auto program = find_program("redis-server");
  if (!program) return std::nullopt;
  const std::string text = output_of({*program, "--version"});
  const std::size_t begin = text.find("v=");
  const std::size_t end = text.find(' ', begin == std::string::npos ? 0 : begin);
  const std::string number = begin == std::string::npos ? "" : text.substr(begin + 2, end - begin - 2);
  return "Redis " + number + ", hiredis " + std::to_string(HIREDIS_MAJOR) + "." +
         std::to_string(HIREDIS_MINOR) + "." + std::to_string(HIREDIS_PATCH);
}

Promise RedisPeer::common_promise(Work work) {
  if (work == Work::kill)
    return {true, "by default Redis keeps snapshots only: a confirm says that the message is in memory"};
  return {};
}

}  // namespace lightq::bench
