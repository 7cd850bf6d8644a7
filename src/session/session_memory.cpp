/// Shares memory between a session and its client. docs/session.md, "Shared memory". Layer: session.
#include <array>
#include <memory>
#include <span>
#include <utility>

#include <lightq/protocol/session_memory.hpp>

#include "admission/turn_work.hpp"
#include "session/session_connection.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;
using session::Op;

namespace {
constexpr std::size_t long_batch_from = 8 * limits::KiB;  // shorter ones are handled together
}  // namespace

void SessionConnection::on_share(const FrameHeader& header, ByteView body) {
  const auto wanted = decode<session::Share>(header, body);
  if (!wanted) return;
  if (is_shared()) return broken("a second share frame");
  if (has_unread_input()) return broken("bytes after a share frame");
  if (carrier_ != SessionCarrier::stream || tls_ != nullptr || !is_local())
    return answer_error(header, Code::not_supported,
                        "shared memory needs a session over a plain Unix socket");
  asked_to_share_ = true;
  flush_output();
  if (output().buffered() > 0)
    return answer_error(header, Code::limit_reached, "the client has unread answers");
  share(header, *wanted);
}

void SessionConnection::share(const FrameHeader& header, const session::Share& wanted) {
  const session::SharedSizes& sizes = wanted.sizes;
  MemoryBudget* const budget = host_.session_settings().memory;
  const std::uint64_t user = held_by();
  if (budget == nullptr || !budget->take(user, sizes.whole()))
    return answer_limit(header, Limit::shared_bytes_total,
                        "the shared memory of all sessions is in use (shared_bytes_total)");
  const auto answer =
      session::encode_frame(session::Shared{sizes, wanted.wakes_by_socket}, 0, header.request);
  const auto without = [&](const std::string& why) {
    budget->give_back(user, sizes.whole());
    answer_error(header, Code::io_error, why);
  };
  auto memory = SharedMemory::make(sizes.whole());
  if (!memory) return without(memory.error().text());
  Result<SharedWake> wake =
      wanted.wakes_by_socket ? SharedWake::over(descriptor_number()) : SharedWake::by_descriptors();
  if (!wake) return without(wake.error().text());
  const std::array<int, 3> given{memory->descriptor(), wake->of_broker(), wake->of_client()};
  if (!send_descriptors(answer, std::span(given).first(wanted.wakes_by_socket ? 1 : given.size())))
    return without("the system refuses to pass more file descriptors");
  said_bytes_ += answer.size();
  memory->close_descriptor();
  Connection::share(
      std::make_unique<session::SharedRings>(std::move(*memory), sizes, session::SharedSide::broker),
      std::move(*wake), budget->place_of(user, sizes.whole()));
}

std::size_t SessionConnection::take_from(SharedWire& wire, std::size_t bytes_max) {
  std::size_t taken = 0;
  while (taken < bytes_max) {
    const std::size_t bytes = take_batch_from(wire);
    if (bytes == 0) break;
    taken += bytes;
    if (turn_share().use_up()) break;
  }
  if (taken == 0) return 0;
  hear(taken);
  after_input();
  return taken;
}

/// Takes a long batch directly into its topic's log, and checks it there before it becomes part of the log.
/// Returns the bytes of its frame, or 0 if there is none.
std::size_t SessionConnection::take_batch_from(SharedWire& wire) {
  std::array<std::byte, session::frame_layout::header_bytes> start;
  if (!greeted_ || !reading() || skipped_bytes_ > 0 || wire.copy(start) < start.size()) return 0;
  const auto [fault, header] = session::decode_frame_header(start, body_bytes_max());
  if (fault || header.op != Op::produce || header.body_bytes < long_batch_from ||
      !session::frame_crc_fits(start, header))
    return 0;
  const std::size_t bytes = start.size() + header.body_bytes;
  if (wire.input_bytes() < bytes) return 0;
  const std::span<std::byte> body = producing_.place_for(header);
  // The client controls the count of available bytes, so there may be fewer now.
  if (body.empty() || wire.copy(body, start.size()) < body.size()) return 0;
  wire.release(bytes, false);
  frame_taken_ = true;
  TurnWork::add(TurnWork::frame_taken);
  if (check_address(header)) producing_.on_produce(header, body);
  return bytes;
}

}  // namespace lightq::broker
