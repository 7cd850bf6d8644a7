/// Starts redis-server. Layer: bench peers.
#include "peers/redis/redis_server.hpp"

#include "peers/redis/redis_connection.hpp"

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

}  // namespace lightq::bench
