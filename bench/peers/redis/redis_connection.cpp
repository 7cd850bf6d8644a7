/// Pipelines commands over hiredis. Layer: bench peers.
#include "peers/redis/redis_connection.hpp"

#include <poll.h>

#include <stdexcept>

#include "peers/work/run_children.hpp"
#include "support/posix.hpp"

namespace lightq::bench {
namespace {

constexpr std::chrono::seconds listen_time_max{5};
constexpr std::chrono::milliseconds look_interval{5};
constexpr std::uint64_t reply_number_max = 1ull << 62;

[[noreturn]] void throw_unexpected(const redisReply& reply) {
  throw std::runtime_error("Redis sent a reply of type " + std::to_string(reply.type) +
                           ", which is not expected");
}

}  // namespace

ByteView bytes_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_STRING && reply.type != REDIS_REPLY_STATUS) throw_unexpected(reply);
  return {reinterpret_cast<const std::byte*>(reply.str), reply.len};
}

std::uint64_t number_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_INTEGER || reply.integer < 0) throw_unexpected(reply);
  const auto number = static_cast<std::uint64_t>(reply.integer);
  if (number > reply_number_max) throw_unexpected(reply);
  return number;
}

const redisReply& element_of(const redisReply& reply, std::size_t index) {
  if (reply.type != REDIS_REPLY_ARRAY || index >= reply.elements) throw_unexpected(reply);
  return *reply.element[index];
}

RedisConnection::RedisConnection(const std::string& socket_path) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(peer_patience).count();
  const timeval patience{static_cast<time_t>(seconds), 0};
  // The server listens here a moment after it listens on its port.
  const Clock::time_point give_up = Clock::now() + listen_time_max;
  do {
    context_.reset(redisConnectUnixWithTimeout(socket_path.c_str(), patience));
    if (!context_) throw std::runtime_error("hiredis has no memory");
    if (context_->err != 0) sleep_exactly(look_interval);
  } while (context_->err != 0 && Clock::now() < give_up);
  if (context_->err != 0 || redisSetTimeout(context_.get(), patience) != REDIS_OK) throw_lost();
}

void RedisConnection::throw_lost() const {
  throw std::runtime_error("the connection to Redis: " + std::string(context_->errstr));
}

void RedisConnection::append(const std::vector<std::string_view>& words) {
  std::vector<const char*> starts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) {
    starts.push_back(word.data());
    sizes.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(words.size()), starts.data(), sizes.data()) !=
      REDIS_OK)
    throw_lost();
}

void RedisConnection::write_out() {
  for (int done = 0; done == 0;) {
    if (redisBufferWrite(context_.get(), &done) != REDIS_OK) throw_lost();
  }
}

RedisReply RedisConnection::checked(void* reply) const {
  RedisReply owned(static_cast<redisReply*>(reply));
  if (!owned) throw_lost();
  if (owned->type == REDIS_REPLY_ERROR)
    throw std::runtime_error("Redis answers: " + std::string(owned->str, owned->len));
  return owned;
}

RedisReply RedisConnection::next() {
  if (early_) return std::move(early_);
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) throw_lost();
  return checked(reply);
}

bool RedisConnection::has_input(std::chrono::milliseconds wait) {
  const Clock::time_point deadline = Clock::now() + wait;
  while (!early_) {
    void* reply = nullptr;
    if (redisReaderGetReply(context_->reader, &reply) != REDIS_OK) throw_lost();
    if (reply != nullptr) {
      early_ = checked(reply);
      break;
    }
    pollfd wanted{context_->fd, POLLIN, 0};
    if (::poll(&wanted, 1, milliseconds_until(deadline)) != 1) return false;
    if (redisBufferRead(context_.get()) != REDIS_OK) throw_lost();
  }
  return true;
}

RedisReply RedisConnection::ask(const std::vector<std::string_view>& words) {
  append(words);
  return next();
}

}  // namespace lightq::bench
