/// Translates the frames of the session protocol into the types of delivery, and back. Layer: session.
#pragma once

#include <utility>

#include <lightq/protocol/session_consuming.hpp>
#include <lightq/protocol/session_producing.hpp>

#include "delivery/producers/producer_identity.hpp"
#include "delivery/session_consumer.hpp"
#include "delivery/state/ack.hpp"
#include "delivery/state/client_error.hpp"
#include "delivery/state/consume_request.hpp"

namespace lightq::broker {

static_assert(Credit::messages_max == session::credit_messages_max);
static_assert(Credit::bytes_max == session::credit_bytes_max);

constexpr session::Code code_of(ClientError error) {
  using session::Code;
  switch (error) {
    case ClientError::none: return Code::ok;
    case ClientError::invalid_name: return Code::invalid_frame;
    case ClientError::unauthorized_access: return Code::unauthorized_access;
    case ClientError::not_supported: return Code::not_supported;
    case ClientError::limit_reached: return Code::limit_reached;
    case ClientError::fenced: return Code::fenced;
    case ClientError::unknown_producer: return Code::unknown_producer;
    case ClientError::incarnation_changed: return Code::incarnation_changed;
    case ClientError::no_space: return Code::no_space;
    case ClientError::io_error: return Code::io_error;
    case ClientError::topic_deleted: return Code::topic_deleted;
    case ClientError::shutting_down: return Code::shutting_down;
  }
  return Code::internal;
}

/// Returns the code for the error of a topic's part that cannot be opened.
constexpr session::Code code_of(ErrorCode error) {
  using session::Code;
  switch (error) {
    case ErrorCode::not_supported: return Code::not_supported;
    case ErrorCode::limit_reached: return Code::limit_reached;
    case ErrorCode::no_space: return Code::no_space;
    case ErrorCode::topic_not_found: return Code::topic_deleted;
    case ErrorCode::shutting_down: return Code::shutting_down;
    default: return Code::io_error;
  }
}

inline StartPosition position_of(const session::Place& place) {
  using From = StartPosition::From;
  switch (place.from) {
    case session::From::first: break;
    case session::From::next: return {From::next, place.value};
    case session::From::last: return {From::last, place.value};
    case session::From::offset: return {From::offset, place.value};
    case session::From::time: return {From::time, place.value};
  }
  return {From::first, place.value};
}

/// `knows_leases`: the client knows leases. A consumer whose messages are finished at delivery has none.
inline ConsumeRequest request_of(const session::ConsumeOpen& frame, bool knows_leases = false) {
  const bool automatic = frame.acknowledgement == session::Acknowledgement::automatic;
  return {.group = frame.group,
          .mode = frame.mode == session::Mode::own ? GroupMode::own : GroupMode::group,
          .acknowledgement = automatic ? AckMode::automatic : AckMode::by_consumer,
          .start = position_of(frame.start),
          .holds = frame.holds,
          .credit = {frame.credit_messages, frame.credit_bytes},
          .incarnation = frame.incarnation,
          .ack_timeout_ms = frame.ack_timeout_ms,
          .leases = knows_leases && !automatic};
}

inline Credit credit_of(const session::Credit& frame) {
  return {frame.messages, frame.bytes};
}

inline Ack ack_of(session::Acknowledge&& frame) {
  return {frame.before, std::move(frame.ranges), frame.hand_out.value_or(0)};
}

inline Start start_of(session::Started&& frame) {
  return {frame.before, std::move(frame.ranges), frame.hand_out};
}

inline Rejection rejection_of(session::Reject&& frame) {
  return {frame.ms, std::move(frame.ranges), frame.hand_out.value_or(0),
          frame.releases ? RejectKind::release : RejectKind::retry};
}

inline Extension extension_of(session::Extend&& frame) {
  return {frame.ms, std::move(frame.ranges), frame.hand_out.value_or(0)};
}

constexpr session::RevokeCause frame_of(RevokeCause cause) {
  switch (cause) {
    case RevokeCause::processing_timeout: break;
    case RevokeCause::silent: return session::RevokeCause::silent;
    case RevokeCause::seek: return session::RevokeCause::seek;
    case RevokeCause::purge: return session::RevokeCause::purge;
    case RevokeCause::rights: return session::RevokeCause::rights;
  }
  return session::RevokeCause::processing_timeout;
}

inline ProducerIdentity identity_of(const session::ProducerIdentity& frame) {
  return {frame.id, frame.epoch};
}

inline session::ProducerIdentity frame_of(const ProducerIdentity& producer) {
  return {producer.id, producer.epoch};
}

}  // namespace lightq::broker
