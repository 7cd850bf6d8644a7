/// Which user each known producer of a topic counts for, and which producer is forgotten first.
/// Layer: admission.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "admission/eviction_queue.hpp"
#include "admission/quota.hpp"

namespace lightq::broker {

/// Chooses the producer to forget when a new one needs its place. A producer that a channel has open is never
/// forgotten.
/// Producers that never stored a message go first. Then go those of the user with the most producers, the
/// longest closed first.
/// User 0 is an unknown user, for example after a restart. No function runs once per message. Thread: the
/// reactor's.
class ProducerShares {
 public:
  explicit ProducerShares(std::size_t producers_max) : open_({.total = producers_max}) {}

  /// Adds a producer, which no channel has open yet.
  void add(std::uint64_t id, std::uint64_t user, bool has_stored);
  /// Removes a producer. Does nothing if it is not known.
  void remove(std::uint64_t id);
  void clear();

  /// Returns true if a channel of `user` may open the producer `id`, or a new one. A user with half of all
  /// open producers leaves the last eighth to others (Quota).
  [[nodiscard]] bool may_open(std::uint64_t user, std::optional<std::uint64_t> id) const;
  /// Records that a channel of `user` has the producer open, and that it counts for `user` from now on. Call
  /// `close` as often.
  void open(std::uint64_t id, std::uint64_t user);
  void close(std::uint64_t id);
  [[nodiscard]] bool is_open(std::uint64_t id) const;
  /// Records that the producer has stored its first message.
  void stored(std::uint64_t id);

  /// Returns the producer to forget for a new one of `user`. Returns nothing if all are open.
  [[nodiscard]] std::optional<std::uint64_t> first_to_forget(std::uint64_t user) const;

 private:
  struct Producer {
    std::uint64_t user = 0;
    std::uint32_t channels = 0;
    bool has_stored = false;
  };
  void queue(std::uint64_t id, const Producer& producer);

  std::unordered_map<std::uint64_t, Producer> producers_;  // by id
  Quota<std::uint64_t> open_;                              // open producers by user
  // All producers by user, the longest closed first: those without a message before others, and never those
  // that are open.
  EvictionQueue<std::uint64_t> known_;
};

}  // namespace lightq::broker
