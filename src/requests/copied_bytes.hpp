/// The bytes of messages that were copied for single requests. Layer: requests.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

/// Bounds the bytes of messages that were copied out of logs and are not part of a response that is sent yet.
/// Without it, many requests for one large message would take many times its memory. The bound is checked
/// before messages are copied, so it may be exceeded by those of one request. Thread: any.
class CopiedBytes {
 public:
  /// The bytes of one request or stream, until it is destroyed. Thread: one at a time.
  class Holding {
   public:
    explicit Holding(std::shared_ptr<CopiedBytes> all) : all_(std::move(all)) {}
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    ~Holding() { all_->held_ -= bytes_; }
    void add(std::size_t bytes) {
      bytes_ += bytes;
      all_->held_ += bytes;
    }

   private:
    const std::shared_ptr<CopiedBytes> all_;
    std::size_t bytes_ = 0;
  };

  explicit CopiedBytes(std::size_t bytes_max = limits::http_responses_bytes_total) : bytes_max_(bytes_max) {}

  [[nodiscard]] bool has_room() const { return held_ < bytes_max_; }
  [[nodiscard]] std::size_t held() const { return held_; }

 private:
  const std::size_t bytes_max_;
  std::atomic<std::size_t> held_ = 0;
};

/// The two bounds of all desks: a slow client of a stream does not keep others from single requests.
struct CopyBounds {
  std::shared_ptr<CopiedBytes> requests = std::make_shared<CopiedBytes>();
  std::shared_ptr<CopiedBytes> streams = std::make_shared<CopiedBytes>();
};

}  // namespace lightq::broker
