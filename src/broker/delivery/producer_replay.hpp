/// Brings a table of producers up to a log's end. Layer: delivery. The rules: docs/log_format.md, "Producer
/// file".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "broker/delivery/producer_table.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Reads a log from the offset on that a table speaks for. A producer is known afterwards if it is certain
/// what of its messages is stored; who has, or may have, messages that cannot be read is not known any more.
class ProducerReplay {
 public:
  /// Both must outlive it.
  ProducerReplay(ProducerTable& table, log::Log& log) : table_(table), log_(log) {}

  /// Errors: io_error, messages cannot be read now; then nothing that the table says may be believed.
  Result<void> run(Offset from);

  /// Why somebody may have been forgotten; nothing if nobody was.
  [[nodiscard]] const std::optional<std::string>& doubt() const { return doubt_; }
  [[nodiscard]] std::uint64_t read_bytes() const { return read_bytes_; }
  /// The table has changed.
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  void doubt_everybody(std::string why);
  void take(const BatchView& batch, Offset at);
  void forget(std::uint64_t id);
  void forget_doubtful();

  ProducerTable& table_;
  log::Log& log_;
  std::optional<std::string> doubt_;
  std::unordered_set<std::uint64_t> doubtful_;  // known; may have messages where nothing could be read
  std::unordered_set<std::uint64_t> lost_;      // certainly have
  std::uint64_t read_bytes_ = 0;
  bool changed_ = false;
};

}  // namespace lightq::broker
