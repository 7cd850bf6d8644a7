/// The interface through which a topic uses its storage: messages, the saved state of consumers and
/// producers, and reports. Delivery sees only its base class, log::BatchLog. Layer: store. Implementations:
/// MemoryStore, FileStore, TieredStore. docs/design.md, "Stores".
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>

#include "log/log.hpp"
#include "log/log_limits.hpp"
#include "log/saved_state/cursor_file.hpp"
#include "log/saved_state/slot_file.hpp"

namespace lightq::broker {

/// The state that a store saves beside its messages.
enum class StoredState {
  consumers,  ///< the cursors of groups and subscribers
  producers,  ///< the table of known producers
};

/// Receives the reports of a store. Thread: the reactor's. A store calls these functions from the event loop.
/// Only on_health may be called within a call of the store.
class StoreEvents {
 public:
  virtual ~StoreEvents() = default;

  /// Called when more messages may be durable, or when files of dropped messages may be gone.
  virtual void on_durable() = 0;
  /// Called after a sync, before on_durable. `took`: since the store has requested it.
  virtual void on_flushed(std::chrono::microseconds /*took*/) {}
  /// Called when messages that a read has reported as pending can be read.
  virtual void on_readable() = 0;
  /// Called when a save has ended. After an error the state that was saved before is still stored.
  virtual void on_saved(StoredState what, const Result<void>& result) = 0;
  /// Called when write_fault() has changed. A store may call this within `maintain`, `write_behind` and
  /// `end_segment`.
  virtual void on_health() = 0;
};

/// Dropped messages that a start may still need, so their files are kept.
struct DroppedMessages {
  Offset end;                   ///< one past the last of them; 0: there are none
  std::uint64_t bytes = 0;      ///< of their files
  std::uint64_t bytes_max = 0;  ///< beyond this, the oldest files are removed all the same
};

/// One topic's storage. Does its own work on the disk's thread, and reports the results to StoreEvents.
/// The topic owns it. Thread: the reactor's, except `destroy`.
class TopicStore : public log::BatchLog {
 public:
  using Cursors = std::vector<log::NamedCursor>;
  using MakeCursors = std::function<Cursors()>;

  /// Sets the receiver of reports. Requires: called once, before any function that writes, saves or starts
  /// work. Lifetime: `events` outlives the last call of such a function.
  virtual void report_to(StoreEvents& events) = 0;
  /// Returns true if the store survives the broker's end: then it stores the state of consumers and
  /// producers.
  [[nodiscard]] virtual bool is_durable() const = 0;

  // Saving state: at most one save of each kind at a time. Requires: is_durable().

  /// Saves the cursors that `cursors` returns, sorted by name, and reports the result with on_saved.
  /// `cursors` is called once, on the thread that encodes them; so this call takes constant time. Errors:
  /// io_error, no_space, limit_reached (no memory to encode them).
  virtual void save_consumers(MakeCursors cursors) = 0;
  /// Returns how many microseconds the last save_consumers has taken to encode the cursors, without the time
  /// in which it waited or wrote. 0 before the first one.
  [[nodiscard]] virtual std::int64_t consumers_encoding_us() const = 0;
  /// Saves an encoded table of producers (ProducerFile::encode), and reports the result with on_saved.
  virtual void save_producers(log::SlotBytes producers) = 0;
  /// Saves the cursors before it returns. For a stop: requires is_idle(). Errors: as save_consumers. With
  /// FallibleAllocations it may throw std::bad_alloc while it writes.
  virtual Result<void> save_consumers_now(const MakeCursors& cursors) = 0;
  /// Saves the producers before it returns, as save_consumers_now does.
  virtual Result<void> save_producers_now(log::SlotBytes producers) = 0;

  // Dropped messages.

  /// Keeps dropped messages from `from` on for the next start. By default none are kept.
  virtual void keep_dropped_from(Offset from) = 0;
  /// Returns the dropped messages that are still stored.
  [[nodiscard]] virtual DroppedMessages dropped() const = 0;

  /// Changes the limits of a durable log. They apply at the next append, and the next `maintain`.
  virtual void set_limits(const log::LogLimits& /*limits*/) {}

  // Work.

  /// Applies retention and other work that depends on time. Called about every 100 ms while the topic is in
  /// use. Returns true if there is more to do now: call again in the next turn of the loop.
  virtual bool maintain(Timestamp now) = 0;
  /// Continues to write messages that are only in memory. Called after each dispatch. Returns as `maintain`
  /// does.
  virtual bool write_behind(Timestamp now) = 0;
  /// Starts work on the disk's thread if some is due. Called after each dispatch, after on_durable and
  /// on_saved, and about every 100 ms while the topic is in use.
  virtual void start_work(Timestamp now) = 0;
  /// Returns true if start_work or `maintain` may have work to do, now or later, without further appends.
  [[nodiscard]] virtual bool wants_work() const = 0;
  /// Requests that the messages before `end` become durable as soon as possible. The next start_work begins
  /// with it, or the first one after the running job of the log. The request has no effect on a store that is
  /// not durable, or after a sync has failed.
  virtual void request_flush(Offset end) = 0;

  /// Returns the error that keeps messages in memory only, or null. Writing is tried again once a second.
  [[nodiscard]] virtual const Error* write_fault() const = 0;
  /// Returns the error after which nothing more becomes durable until the topic is opened again, or null.
  [[nodiscard]] virtual const Error* sync_fault() const = 0;

  // The end.

  /// Returns true if no work of this store is running or waiting on the disk's thread. Then it may be
  /// destroyed.
  [[nodiscard]] virtual bool is_idle() const = 0;
  /// Sets a function that is called when is_idle() becomes true. Requires: !is_idle().
  virtual void when_idle(std::function<void()> call) = 0;
  /// Makes all messages durable before it returns. For a stop: requires is_idle().
  virtual Result<void> flush() = 0;
  /// Closes the store, so that the next start need not search for its end. Requires: all state was saved,
  /// because the mark on disk also states that; is_idle(). Only destruction follows.
  virtual Result<void> close() = 0;
  /// Removes all that is stored. Success also if there is nothing. Thread: any, while no other uses the
  /// store. Requires: is_idle(); only destruction follows.
  virtual Result<void> destroy() = 0;
};

}  // namespace lightq::broker
