/// A group with members that have leases.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "delivery/consumer_group_harness.hpp"

namespace lightq::test {

class GroupLeaseTest : public ::testing::Test, protected GroupWorld {
 protected:
  static broker::ConsumeRequest with_leases(std::uint64_t credit = 1'000'000) {
    broker::ConsumeRequest open = asked();
    open.leases = true;
    open.credit.messages = credit;
    return open;
  }
  void start(Member& member, OffsetRange range, std::uint32_t hand_out) {
    member.group->start(*member.member, {std::nullopt, {range}, hand_out}, now);
  }
  void acknowledge(Member& member, OffsetRange range, std::uint32_t hand_out) {
    member.group->acknowledge(*member.member, {std::nullopt, {range}, hand_out});
  }
  void release(Member& member, OffsetRange range, std::uint32_t hand_out) {
    member.group->reject(*member.member, {0, {range}, hand_out, broker::RejectKind::release}, now);
  }
  void reject(Member& member, OffsetRange range, std::uint32_t hand_out) {
    member.group->reject(*member.member, {0, {range}, hand_out, broker::RejectKind::retry}, now);
  }
  void fall_silent(Member& member) {
    member.consumer.is_writable = false;
    member.member->set_silent(true);
  }
  void speak(Member& member) {
    member.consumer.is_writable = true;
    member.member->set_silent(false);
    member.member->wake();
  }
  void expect_partition() {
    const auto group = stats();
    EXPECT_EQ(group.pending, group.ready + group.retrying + group.in_flight);
  }
};

}  // namespace lightq::test
