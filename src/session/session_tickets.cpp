/// Checks a session's tickets, and the users that the session counts for. Layer: session.
#include <string.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <lightq/base/wipe.hpp>
#include <lightq/base/wipe_registers.hpp>

#include "admission/turn_work.hpp"
#include "session/session_connection.hpp"

namespace lightq::broker {

using session::Code;
using session::FrameHeader;

void SessionConnection::on_hello(const FrameHeader& header, ByteView body) {
  if (greeted_) return broken("a second hello");
  const auto hello = decode<session::Hello>(header, body);
  if (!hello) return;
  if (hello->newest_version < session::version_oldest || session::version_newest < hello->oldest_version) {
    const std::string why = "this broker speaks version " + std::to_string(session::version_newest);
    answer_error(header, Code::unsupported_version, why);
    return end_session(Code::unsupported_version, why);
  }
  const auto permit = host_.permit_of(hello->ticket);
  if (!permit) {
    refused_ = true;
    const std::string why = "the ticket is not valid (any more): join again";
    answer_error(header, Code::unauthorized_access, why);
    return end_session(Code::unauthorized_access, why);
  }
  const std::uint64_t user = permit->holder.sharer();
  if (const std::string why{host_.admit(user)}; !why.empty()) {
    answer_error(header, Code::limit_reached, why);
    return end_session(Code::limit_reached, why);
  }
  if (user != 0) users_.insert(user);
  // A message may contain several frames; docs/session.md, "Transport".
  allow_frames_of(2 * std::uint64_t{body_bytes_max()} + 64 * limits::KiB);
  permits_.add(host_.topic_name(permit->grant.topic), *permit);
  greeted_ = true;
  name_ = hello->name;
  loop().cancel(hello_timer_);
  client_heartbeat_ms_ = hello->heartbeat_ms;
  client_takes_bytes_ = hello->frame_bytes_max;
  client_codecs_ = hello->codecs;
  const auto& settings = host_.session_settings();
  send(session::Welcome{.version = std::min(hello->newest_version, session::version_newest),
                        .frame_bytes_max = body_bytes_max(),
                        .heartbeat_ms = settings.heartbeat_ms,
                        .channels_max = settings.channels_max,
                        .broker = settings.broker,
                        .session = id_},
       0, header.request);
  arm_silence_timer();
  arm_heartbeat_timer();
  host_.session_opened(*this);
}

void SessionConnection::on_present(const FrameHeader& header, ByteView body) {
  const auto shown = decode<session::Present>(header, body);
  if (!shown) return;
  const auto permit = host_.permit_of(shown->ticket);
  if (!permit) return answer_error(header, Code::unauthorized_access, "the ticket is not valid (any more)");
  const std::string topic = host_.topic_name(permit->grant.topic);
  const bool known = permits_.contains(topic, *permit);
  if (!known && permits_.size() == host_.session_settings().channels_max) {
    TurnWork::add(TurnWork::batch_passed * permits_.size());
    permits_.erase_if([&](const Host::Permit& old) {
      const TopicRuntime* const found = host_.find_topic(old.grant.topic);
      return found == nullptr || !host_.is_good(old, *found, GroupScope::some_group());
    });
  }
  if (!known && permits_.size() == host_.session_settings().channels_max)
    return answer_limit(header, Limit::session_channels_max, "more tickets than session_channels_max allows");
  if (const std::string why{admit_also(permit->holder.sharer())}; !why.empty())
    return answer_error(header, Code::limit_reached, why);
  if (!known) permits_.add(topic, *permit);
  send(session::Done{}, 0, header.request);
}

/// Counts the session for this user too. Returns the reason if that is not possible, else an empty text. A
/// ticket that any client can get does not count an authenticated session among the clients without a user.
std::string_view SessionConnection::admit_also(std::uint64_t user) {
  if (user == 0 || user == FairShare::anonymous || users_.contains(user)) return {};
  const std::string_view objection = host_.admit_also(user);
  if (objection.empty()) users_.insert(user);
  return objection;
}

TopicRuntime* SessionConnection::permitted(const std::string& topic, EndpointRole role,
                                           const GroupScope& scope, std::uint64_t* user) {
  for (const Host::Permit& permit : permits_.of(topic)) {
    if (permit.grant.role != role) continue;
    TopicRuntime* const found = host_.find_topic(permit.grant.topic);
    if (found == nullptr) continue;
    if (user != nullptr) *user = permit.holder.sharer();
    if (host_.is_good(permit, *found, scope)) return found;
  }
  return nullptr;
}

bool SessionConnection::may_manage(const TopicRuntime& topic, const GroupScope& scope) const {
  const auto permits = permits_.of(std::string(topic.definition().name.text()));
  return std::ranges::any_of(permits, [&](const Host::Permit& permit) {
    return permit.grant.topic == topic.definition().id && host_.may_manage(permit, topic, scope);
  });
}

bool SessionConnection::has_ticket_for(TopicId topic) const {
  const auto permits = permits_.of(host_.topic_name(topic));
  return std::ranges::any_of(permits,
                             [topic](const Host::Permit& permit) { return permit.grant.topic == topic; });
}

void SessionConnection::look_at_rights() {
  if (!greeted_ || ending_ || failed()) return;
  const auto gone = permits_.erase_if([&](const Host::Permit& permit) {
    const TopicRuntime* const topic = host_.find_topic(permit.grant.topic);
    return topic != nullptr && !host_.is_good(permit, *topic, GroupScope::some_group());
  });
  producing_.end_unpermitted();
  consuming_.end_unpermitted();
  if (gone > 0 && permits_.empty())
    end_session(Code::unauthorized_access, "all tickets of this session have become invalid");
  work_soon();
}

/// Wipes the ticket after it was checked. Other frames are not wiped.
void SessionConnection::forget_ticket(std::span<std::byte> frame) {
  explicit_bzero(frame.data(), frame.size());
  wipe_registers();
  wipe_stack();
  wipe_input(!greeted_);
  wipe_shared();
}

}  // namespace lightq::broker
