/// The memory that a session shares with its client. docs/session.md, "Shared memory". Layer: session.
#include <memory>
#include <utility>

#include <lightq/protocol/session_memory.hpp>

#include "broker/session/session_connection.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;

void SessionConnection::on_share(const FrameHeader& header, ByteView body) {
  const auto wanted = decode<session::Share>(header, body);
  if (!wanted) return;
  if (is_shared()) return broken("a second share");
  if (has_unread_input()) return broken("something behind share");
  if (carrier_ != SessionCarrier::stream || tls_ != nullptr || !is_local())
    return answer_error(header, Code::not_supported, "memory is shared over a Unix socket alone");
  asked_to_share_ = true;
  flush_output();
  if (output().buffered() > 0)
    return answer_error(header, Code::limit_reached, "there are answers that were not read");
  share(header, wanted->sizes);
}

void SessionConnection::share(const FrameHeader& header, const session::SharedSizes& sizes) {
  MemoryBudget* const budget = host_.session_settings().memory;
  const std::uint64_t user = held_by();
  if (budget == nullptr || !budget->take(user, sizes.whole()))
    return answer_limit(header, Limit::shared_bytes_total, "there is no more memory to share");
  const auto answer = session::encode_frame(session::Shared{sizes}, 0, header.request);
  const auto without = [&](const std::string& why) {
    budget->give_back(user, sizes.whole());
    answer_error(header, Code::io_error, why);
  };
  auto memory = SharedMemory::make(sizes.whole());
  if (!memory) return without(memory.error().text());
  auto of_broker = WakeEvent::make();
  auto of_client = WakeEvent::make();
  if (!of_broker || !of_client) return without((of_broker ? of_client : of_broker).error().text());
  if (!send_descriptors(answer, {memory->descriptor(), of_broker->descriptor(), of_client->descriptor()}))
    return without("the system passes no more descriptors on");
  shared_bytes_ = sizes.whole();
  shared_with_ = user;
  said_bytes_ += answer.size();
  memory->close_descriptor();
  Connection::share(
      std::make_unique<session::SharedRings>(std::move(*memory), sizes, session::SharedSide::broker),
      {std::move(*of_broker), std::move(*of_client)});
}

}  // namespace lightq::broker
