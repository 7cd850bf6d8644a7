/// The CURVE keys by which a server is known, which may change while it runs. Layer: crypto.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include <lightq/base/z85.hpp>

#include "crypto/curve_box.hpp"

namespace lightq::broker {

/// The server's present key and, while clients still know it, the former one. A handshake keeps the keys that
/// it began with. Afterwards a connection needs only its transient keys, so a change ends no connection.
/// Thread: any.
class CurveKeys {
 public:
  /// The keys at one time.
  struct Held {
    std::shared_ptr<const CurveKeyPair> current;           ///< not null
    std::shared_ptr<const CurveKeyPair> former = nullptr;  ///< null: clients must know the present key
  };

  /// Makes a new random key.
  CurveKeys() : held_{std::make_shared<const CurveKeyPair>()} {}
  explicit CurveKeys(Held held) : held_(std::move(held)) {}
  CurveKeys(const CurveKeys&) = delete;
  CurveKeys& operator=(const CurveKeys&) = delete;

  [[nodiscard]] Held held() const {
    const std::scoped_lock lock(mutex_);
    return held_;
  }
  [[nodiscard]] CurvePublicKey public_key() const { return held().current->public_key(); }
  /// Handshakes that begin from now on use these keys.
  void renew(Held held) {
    const std::scoped_lock lock(mutex_);
    held_ = std::move(held);
  }

 private:
  mutable std::mutex mutex_;
  Held held_;
};

}  // namespace lightq::broker
