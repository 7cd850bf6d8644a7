/// A connection to Redis with pipelined commands, over hiredis. Layer: bench peers.
#pragma once

#include <hiredis/hiredis.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <lightq/base/types.hpp>

#include "peers/peer.hpp"

namespace lightq::bench {

struct FreeRedisReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using RedisReply = std::unique_ptr<redisReply, FreeRedisReply>;

/// Returns the bytes of a reply that is a string or a status. Throws for any other.
ByteView bytes_of(const redisReply& reply);
/// Returns a reply that is a number. Throws for any other.
std::uint64_t number_of(const redisReply& reply);
/// Returns element `index` of a reply that is an array. Throws if there is none.
const redisReply& element_of(const redisReply& reply, std::size_t index);

/// Throws std::runtime_error for an error reply, a lost connection, or a silence longer than `peer_patience`.
/// One thread.
class RedisConnection {
 public:
  explicit RedisConnection(const std::string& socket_path);

  /// Buffers a command.
  void append(const std::vector<std::string_view>& words);
  /// Writes all buffered commands.
  void write_out();
  /// Writes all buffered commands, and waits for the next reply.
  RedisReply next();
  /// Returns true if a reply is there or arrives within `wait`. Requires: nothing is buffered.
  bool has_input(std::chrono::milliseconds wait);
  /// Appends a command and returns its reply. Requires: no other command waits for its reply.
  RedisReply ask(const std::vector<std::string_view>& words);

 private:
  [[noreturn]] void throw_lost() const;
  RedisReply checked(void* reply) const;
  struct Close {
    void operator()(redisContext* context) const { redisFree(context); }
  };
  std::unique_ptr<redisContext, Close> context_;
  RedisReply early_;  // read by has_input
};

/// The commands that wait for their replies: each reply confirms the messages of one command.
class RedisWindow {
 public:
  /// Notes that a command with so many messages was appended.
  void add(std::uint64_t messages) { commands_.push_back(messages); }
  /// Waits for the next reply.
  void confirm_next(RedisConnection& connection) {
    connection.next();
    confirmed_ += commands_.front();
    commands_.pop_front();
  }
  /// Reads the replies that are there.
  void confirm_present(RedisConnection& connection) {
    while (open() > 0 && connection.has_input(std::chrono::milliseconds(0))) confirm_next(connection);
  }
  [[nodiscard]] std::size_t open() const { return commands_.size(); }
  [[nodiscard]] std::uint64_t confirmed() const { return confirmed_; }

 private:
  std::deque<std::uint64_t> commands_;
  std::uint64_t confirmed_ = 0;
};

}  // namespace lightq::bench
