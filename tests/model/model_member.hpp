/// A consumer as the model knows it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "model/client.hpp"
#include "model/plain_sink.hpp"

namespace lightq::model {

struct ModelMember {
  std::unique_ptr<Client> client;
  bool leases = false;
  bool automatic = false;
  bool hears_late = false;
  std::uint32_t asked_timeout_ms = 0;
  std::uint32_t timeout_ms = 0;  // as the broker has told it
  bool is_admitted = false;
  bool is_silent = false;
  std::uint64_t credit = 0;
  std::uint32_t last_hand_out = 1;
  OffsetRange window{};  // named as started
  std::uint32_t window_hand_out = 0;
  std::map<std::uint64_t, std::uint32_t> hand_outs;  // the last one of each message that it had
  /// Messages that were taken back, without leases; neither acknowledged since nor delivered to it again.
  std::set<std::uint64_t> overdue;
  bool has_many_overdue = false;  // the broker may have forgotten some

  [[nodiscard]] bool can_take() const {
    return is_admitted && !is_silent && client->is_writable && credit > 0;
  }
};

/// A plain consumer as the model knows it.
struct ModelPuller {
  std::unique_ptr<PlainSink> sink;
  std::set<std::uint64_t> taken;  // and not known to be sent
};

}  // namespace lightq::model
