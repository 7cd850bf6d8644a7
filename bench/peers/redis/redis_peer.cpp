/// The version of Redis and its promises. Layer: bench peers.
#include "peers/redis/redis_peer.hpp"

#include <hiredis/hiredis.h>

#include "support/servers/server_process.hpp"

namespace lightq::bench {

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
