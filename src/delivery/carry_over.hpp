/// Carries waiting messages over when the log drops the others. Layer: delivery.
/// docs/adr/0064-carry-waiting-messages-over.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/protocol/control.hpp>

#include "delivery/batches/next_slice.hpp"
#include "delivery/consumer_groups.hpp"
#include "delivery/record_reader.hpp"
#include "delivery/state/damage_count.hpp"
#include "log/carried/carried_records.hpp"
#include "log/drop_guard.hpp"
#include "log/log.hpp"

namespace lightq::broker {

/// Keeps messages readable that wait in a group (delayed, parked, or on their way to a dead-letter topic)
/// when the log drops the messages around them. Copies them to log::CarriedRecords first, if less than a
/// tenth of the dropped part waits, by messages or by bytes; otherwise they keep the log as all others do.
/// Forgets copies that no group needs any more. Topic owns it. The log calls it before it drops messages by
/// retention or to make space. Thread: the reactor's. Example: a group has finished [0, 1000) but for 3,
/// which is parked, and 7, which is delayed. The ring is full. 3 and 7 are copied, and the ring drops [0,
/// 1000).
class CarryOver final : public log::DropGuard {
 public:
  /// Lifetime: all of them outlive this, which is the log's guard until it is destroyed.
  CarryOver(log::BatchLog& log, ConsumerGroups& groups, DamageCount& damage,
            const protocol::TopicSettings& settings);
  CarryOver(const CarryOver&) = delete;
  CarryOver& operator=(const CarryOver&) = delete;
  ~CarryOver() override;

  /// Takes over changed settings.
  void set_settings(const protocol::TopicSettings& settings) {
    over_pending_ = settings.retention_over_pending;
    drops_oldest_ = settings.overflow == protocol::Overflow::drop_oldest;
  }
  /// Copies messages that wait in the part of the log that all groups have finished but for them, a limited
  /// number. Returns the end of the part that may be dropped now; nothing if too many wait. Called when an
  /// append finds no space.
  std::optional<Offset> carry_oldest();
  /// Returns true if an append has found no space because a call copies a limited number only: the next call
  /// continues. take_more() also forgets that.
  [[nodiscard]] bool has_more() const { return has_more_; }
  bool take_more() { return std::exchange(has_more_, false); }
  /// Returns the error because of which the last message that should be copied was not; null if it was.
  [[nodiscard]] const Error* fault() const { return fault_ ? &*fault_ : nullptr; }
  /// Forgets copies of messages that all groups have finished. Does a limited amount of work, and continues
  /// at the next call. Called about every 100 ms.
  void sweep();
  Offset before_drop(OffsetRange range, Reason reason) override;

 private:
  /// The last range of which too many messages waited. It is counted again when the range or the number of
  /// those that wait has changed by a tenth, and after the next sweep.
  struct Refused {
    OffsetRange range;
    std::uint64_t waiting = 0;
  };
  enum class Stop : std::uint8_t {
    done,       ///< no message that waits is without a copy
    enough,     ///< a limit of work
    no_space,   ///< for more copies
    unreadable  ///< a message cannot be read now
  };
  struct Carried {
    Offset end;  ///< of the part in which all have a copy or cannot be read
    Stop stop = Stop::done;
  };

  [[nodiscard]] log::CarriedRecords* carried() const { return log_.carried(); }
  [[nodiscard]] std::optional<Offset> active() const;
  [[nodiscard]] std::optional<OffsetRange> waiting_in_any(Offset offset) const;
  [[nodiscard]] bool is_needed(Offset message) const;
  [[nodiscard]] bool few_wait(OffsetRange range);
  [[nodiscard]] bool was_refused(const Refused& asked) const;
  [[nodiscard]] bool few_bytes_wait(OffsetRange range);
  [[nodiscard]] std::optional<OffsetRange> uncarried_behind(Offset offset) const;
  Carried carry(OffsetRange range);
  bool copy(const BatchSlice& slice, Offset& at);
  bool add(ByteView record);

  log::BatchLog& log_;
  ConsumerGroups& groups_;
  DamageCount& damage_;
  bool over_pending_;
  bool drops_oldest_;
  bool has_more_ = false;
  std::optional<Error> fault_;
  Refused refused_;
  Offset swept_to_;
  std::vector<std::byte> record_;
};

}  // namespace lightq::broker
