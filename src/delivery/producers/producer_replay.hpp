/// Brings a restored table of producers up to the log's end. Layer: delivery. docs/log_format.md, "Producer
/// file", gives the rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "delivery/producers/producer_table.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Reads the log from the offset at which the table was saved. Afterwards a producer is known only if it is
/// certain which of its messages are stored.
/// The replay forgets each producer that has, or may have, messages that cannot be read. It keeps the
/// broker's own ones that may have.
class ProducerReplay {
 public:
  /// Lifetime: both outlive this object.
  ProducerReplay(ProducerTable& table, log::BatchLog& log) : table_(table), log_(log) {}

  /// Reads from `from` to the log's end. Errors: io_error if messages cannot be read now; the table must not
  /// be used then.
  Result<void> run(Offset from);

  /// Returns why producers may have been forgotten, or nothing if none was.
  [[nodiscard]] const std::optional<std::string>& doubt() const { return doubt_; }
  [[nodiscard]] std::uint64_t read_bytes() const { return read_bytes_; }
  /// Returns true if the table has changed.
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  void doubt_everybody(std::string why);
  void take(const BatchView& batch, Offset at);
  void forget(std::uint64_t id);
  void forget_doubtful();

  ProducerTable& table_;
  log::BatchLog& log_;
  std::optional<std::string> doubt_;
  std::unordered_set<std::uint64_t> doubtful_;  // may have messages in an unreadable part
  std::unordered_set<std::uint64_t> lost_;      // certainly have messages in an unreadable part
  bool disproves_table_ = false;                // table and log do not belong together
  std::uint64_t read_bytes_ = 0;
  bool changed_ = false;
};

}  // namespace lightq::broker
