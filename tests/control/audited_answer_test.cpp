/// Tests of control/audit/audited_answer: the members of a line, and the outcomes.
#include "control/audit/audited_answer.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace lightq::broker {
namespace {

class KeptTrail final : public AuditTrail {
 public:
  void put(std::string line) override { lines.push_back(std::move(line)); }
  std::vector<std::string> lines;
};

Timestamp noon() {
  return {1'769'860'800'123'456};
}

RequestSource source_of_address() {
  return {std::string("4\xC0\x00\x02\x07", 5), {}};
}

/// Lets a request be answered, and returns its line. `verified`: the permission checks accept the
/// credentials.
std::string line_of_request(const protocol::Request& request, bool verified, const protocol::Reply& reply) {
  KeptTrail trail;
  int sent = 0;
  const Answer answer([&sent](const protocol::Reply&) { ++sent; }, source_of_address());
  const Answer with_line = audited(trail, request, answer, noon);
  if (verified) {
    EXPECT_FALSE(with_line.asked_by(std::optional<std::uint64_t>(7)));
  }
  EXPECT_TRUE(trail.lines.empty()) << "the outcome is not known yet";
  with_line(reply);
  EXPECT_EQ(sent, 1);
  return trail.lines.size() == 1 ? trail.lines[0] : "";
}

protocol::Reply refusal(ErrorCode code) {
  return protocol::ErrorReply{"purge", code, "a description with a secret"};
}

protocol::Purge purge_of_group() {
  return {.user = {"ann", Secret("a-password")}, .topic = *TopicName::parse("orders"), .group = "billing"};
}

TEST(AuditedAnswer, NamesWhoAskedFromWhereForWhat) {
  EXPECT_EQ(line_of_request(purge_of_group(), true, protocol::OkReply{"purge", {}, {}}),
            R"({"time":"2026-01-31T12:00:00.123Z","from":"192.0.2.7","user":"ann","cmd":"purge",)"
            R"("topic":"orders","group":"billing","allowed":true,"status":"ok"})");
}

TEST(AuditedAnswer, TellsARefusalFromAFailure) {
  const auto outcome = [](bool verified, ErrorCode code) {
    const std::string line = line_of_request(purge_of_group(), verified, refusal(code));
    EXPECT_EQ(line.find("secret"), std::string::npos);
    EXPECT_EQ(line.find("a-password"), std::string::npos);
    return line.substr(line.find("\"allowed\""));
  };
  EXPECT_EQ(outcome(false, ErrorCode::unauthorized_access),
            R"("allowed":false,"status":"error","code":"unauthorized_access"})");
  EXPECT_EQ(outcome(true, ErrorCode::unauthorized_access),
            R"("allowed":false,"status":"error","code":"unauthorized_access"})");
  EXPECT_EQ(outcome(true, ErrorCode::group_not_found),
            R"("allowed":true,"status":"error","code":"group_not_found"})");
  EXPECT_EQ(outcome(false, ErrorCode::busy), R"("allowed":false,"status":"error","code":"busy"})");
}

TEST(AuditedAnswer, KeepsAPasswordBehindAColonAndControlCharactersOutOfTheLine) {
  protocol::DeleteUser request{.admin = {"root:secret", Secret("p")}, .user_id = "a\nb\x1b\"\\"};
  const std::string line = line_of_request(request, false, refusal(ErrorCode::unauthorized_access));
  EXPECT_NE(line.find(R"("user":"root:...")"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("object_user":"a\nb\u001b\"\\")"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  request.admin.user_id = "\xff\xfe";
  EXPECT_NE(line_of_request(request, false, refusal(ErrorCode::unauthorized_access))
                .find("\"user\":\"\xEF\xBF\xBD"),
            std::string::npos);
}

TEST(AuditedAnswer, LeavesOutRequestsThatNeedNoPermission) {
  KeptTrail trail;
  const Answer answer([](const protocol::Reply&) {}, source_of_address());
  audited(trail, protocol::Ping{}, answer, noon)(protocol::OkReply{"ping", {}, {}});
  audited(trail, protocol::Version{}, answer, noon)(protocol::OkReply{"version", {}, {}});
  EXPECT_TRUE(trail.lines.empty());
}

TEST(AuditedAnswer, ShowsSourcesForPeople) {
  EXPECT_EQ(shown_source(source_of_address()), "192.0.2.7");
  EXPECT_EQ(shown_source({std::string("6\x20\x01\x0d\xb8\x00\x00\x00\x01", 9), {}}), "2001:db8:0:1::/64");
  EXPECT_EQ(shown_source({"u----", 1000}), "uid 1000");
  EXPECT_EQ(shown_source({}), "");
}

}  // namespace
}  // namespace lightq::broker
