/// Tests of the translation between session frames and the types of delivery.
#include "session/frame_translation.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace lightq::broker {
namespace {

using session::Code;

TEST(FrameTranslationTest, EachErrorHasTheCodeOfItsMeaning) {
  const std::pair<ClientError, Code> codes[] = {
      {ClientError::none, Code::ok},
      {ClientError::invalid_name, Code::invalid_frame},
      {ClientError::unauthorized_access, Code::unauthorized_access},
      {ClientError::not_supported, Code::not_supported},
      {ClientError::limit_reached, Code::limit_reached},
      {ClientError::fenced, Code::fenced},
      {ClientError::unknown_producer, Code::unknown_producer},
      {ClientError::incarnation_changed, Code::incarnation_changed},
      {ClientError::no_space, Code::no_space},
      {ClientError::io_error, Code::io_error},
      {ClientError::topic_deleted, Code::topic_deleted},
      {ClientError::shutting_down, Code::shutting_down},
  };
  for (const auto& [error, code] : codes) EXPECT_EQ(code_of(error), code);
  EXPECT_EQ(std::size(codes), static_cast<std::size_t>(ClientError::shutting_down) + 1)
      << "no error is left out";
}

TEST(FrameTranslationTest, APositionKeepsItsMeaningAndItsValue) {
  using From = StartPosition::From;
  const std::pair<session::Place, StartPosition> positions[] = {
      {{session::From::first, 0}, {From::first, 0}},       {{session::From::next, 0}, {From::next, 0}},
      {{session::From::last, 0}, {From::last, 0}},         {{session::From::offset, 17}, {From::offset, 17}},
      {{session::From::time, 1'700}, {From::time, 1'700}},
  };
  for (const auto& [place, position] : positions) EXPECT_EQ(position_of(place), position);
}

TEST(FrameTranslationTest, ARequestKeepsEveryFieldThatDeliveryUses) {
  session::ConsumeOpen frame;
  frame.mode = session::Mode::own;
  frame.acknowledgement = session::Acknowledgement::automatic;
  frame.start = {session::From::offset, 3};
  frame.holds = true;
  frame.credit_messages = 5;
  frame.credit_bytes = 7;
  frame.incarnation = 11;
  frame.ack_timeout_ms = 13;
  frame.group = "dash";
  const ConsumeRequest request = request_of(frame);
  EXPECT_EQ(request.mode, GroupMode::own);
  EXPECT_EQ(request.acknowledgement, AckMode::automatic);
  EXPECT_EQ(request.start, (StartPosition{StartPosition::From::offset, 3}));
  EXPECT_TRUE(request.holds);
  EXPECT_EQ(request.credit.messages, 5U);
  EXPECT_EQ(request.credit.bytes, 7U);
  EXPECT_EQ(request.incarnation, 11U);
  EXPECT_EQ(request.ack_timeout_ms, 13U);
  EXPECT_EQ(request.group, "dash");
  const ConsumeRequest plain = request_of(session::ConsumeOpen{});
  EXPECT_EQ(plain.mode, GroupMode::group);
  EXPECT_EQ(plain.acknowledgement, AckMode::by_consumer);
  EXPECT_FALSE(plain.holds);
}

TEST(FrameTranslationTest, OnlyAConsumerThatAcknowledgesHasLeases) {
  session::ConsumeOpen frame;
  EXPECT_TRUE(request_of(frame, true).leases);
  EXPECT_FALSE(request_of(frame, false).leases);
  frame.acknowledgement = session::Acknowledgement::automatic;
  EXPECT_FALSE(request_of(frame, true).leases);
}

TEST(FrameTranslationTest, RequestsAboutMessagesKeepTheirHandOut) {
  const std::vector<OffsetRange> ranges = {{{1}, {3}}};
  EXPECT_EQ(ack_of({std::nullopt, ranges, 7}).hand_out, 7U);
  EXPECT_EQ(ack_of({std::nullopt, ranges}).hand_out, 0U);
  const Start start = start_of({7, Offset{9}, {}});
  EXPECT_EQ(start.hand_out, 7U);
  EXPECT_EQ(start.before, Offset{9});
  const Rejection rejection = rejection_of({0, ranges, 7, true});
  EXPECT_EQ(rejection.hand_out, 7U);
  EXPECT_EQ(rejection.kind, RejectKind::release);
  EXPECT_EQ(extension_of({750, ranges, 7}).hand_out, 7U);
}

TEST(FrameTranslationTest, EachCauseOfARevocationHasItsNumber) {
  EXPECT_EQ(frame_of(RevokeCause::processing_timeout), session::RevokeCause::processing_timeout);
  EXPECT_EQ(frame_of(RevokeCause::silent), session::RevokeCause::silent);
  EXPECT_EQ(frame_of(RevokeCause::seek), session::RevokeCause::seek);
  EXPECT_EQ(frame_of(RevokeCause::purge), session::RevokeCause::purge);
  EXPECT_EQ(frame_of(RevokeCause::rights), session::RevokeCause::rights);
}

TEST(FrameTranslationTest, RequestsAboutMessagesKeepTheirRangesAndTimes) {
  const std::vector<OffsetRange> ranges = {{{1}, {3}}, {{5}, {6}}};
  EXPECT_EQ(ack_of({std::nullopt, ranges}).ranges, ranges);
  EXPECT_FALSE(ack_of({std::nullopt, ranges}).before);
  EXPECT_EQ(ack_of({Offset{9}, {}}).before, Offset{9});
  const Rejection rejection = rejection_of({250, ranges});
  EXPECT_EQ(rejection.delay_ms, 250U);
  EXPECT_EQ(rejection.ranges, ranges);
  const Extension extension = extension_of({750, ranges});
  EXPECT_EQ(extension.timeout_ms, 750U);
  EXPECT_EQ(extension.ranges, ranges);
  EXPECT_EQ(frame_of(identity_of({7, 65'535})), (session::ProducerIdentity{7, 65'535}));
}

}  // namespace
}  // namespace lightq::broker
