/// One open stream of server-sent events. Layer: http.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/base/limits.hpp>

#include "http/http_loop.hpp"
#include "http/router.hpp"
#include "requests/message_desk.hpp"

namespace lightq::broker {

/// Writes the messages of a Stream as events, and tells the desk when the system has taken them. So there are
/// never more messages in memory than the stream's credit. The desk and the connection share it: it lives as
/// long as either of them. Thread: the HTTP thread; the functions of StreamClient pass their work to it.
class EventStream final : public StreamClient, public std::enable_shared_from_this<EventStream> {
 public:
  struct Parts {
    HttpLoop& loop;
    HttpReply reply;
    std::function<void(std::string_view part, bool is_last)> send_more;
    /// Calls its argument with the stream's desk. Returns false if it cannot.
    std::function<bool(std::function<void(MessageDesk& desk)> call)> at_desk;
    std::shared_ptr<const void> place;  ///< see StreamPlaces
    std::chrono::milliseconds heartbeat{limits::http_heartbeat_ms};
  };

  /// Lifetime: the loop and the objects behind the functions outlive it.
  explicit EventStream(Parts parts) : parts_(std::move(parts)) {}

  // Implements StreamClient. Thread: the reactor's.
  void opened(const StreamOpened& opened) override;
  void sent(StreamedMessages messages) override;
  void ended(const Error& why) override;

 private:
  enum class State : std::uint8_t { opening, beginning, open, over };

  void begin(const StreamOpened& opened);
  void add(const StreamedMessages& messages);
  void end(const Error& why);
  void on_taken();
  void on_closed();
  void send_waiting();
  void report();
  void leave_desk();
  void beat();

  const Parts parts_;
  State state_ = State::opening;
  std::uint64_t stream_ = 0;
  std::string waiting_;                                    // to send once the client has taken all before
  StreamAmount waiting_amount_;                            // of waiting_
  StreamAmount sent_amount_;                               // passed to the connection, and not taken yet
  StreamAmount taken_amount_;                              // taken, and not reported yet
  std::vector<std::shared_ptr<const void>> waiting_held_;  // StreamedMessages::held of waiting_
  std::vector<std::shared_ptr<const void>> sent_held_;     // of the text that is not taken yet
  bool is_sending_ = false;
  bool ends_ = false;  // the text that waits is the last
};

}  // namespace lightq::broker
