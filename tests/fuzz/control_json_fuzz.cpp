/// Fuzz target: the readers of control JSON. None may crash. If a reader accepts a text, then writing and
/// reading it again must give the same value.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <lightq/protocol/json.hpp>
#include <lightq/protocol/json_scan.hpp>

#include "control/catalogue/catalogue_record.hpp"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

void read_request(std::string_view text) {
  using namespace lightq::protocol;
  const auto parsed = parse_request(text);
  if (!parsed.request) {
    must(!parsed.request.error().message.empty());
    to_json(ErrorReply{parsed.cmd, parsed.request.error().code, parsed.request.error().text()});
    return;
  }
  const auto in_front = detail::command_in_front(text);
  must(in_front.empty() || in_front == parsed.cmd);
  const auto written = to_json(parsed.request.value());
  const auto again = parse_request(written);
  must(again.request.ok() && to_json(again.request.value()) == written);
}

void read_replies(std::string_view text) {
  using namespace lightq::protocol;
  const auto topic = lightq::TopicName::parse("t").value();
  for (const Request& asked :
       {Request(Ping{}), Request(Version{}), Request(ListTopics{}), Request(ListUsers{}), Request(Reload{}),
        Request(Join{{}, topic, JoinType::pull}), Request(Stats{{}, topic}),
        Request(Stats{{}, std::nullopt, true}), Request(StatsAll{}), Request(ListDead{{}, topic, "g"}),
        Request(ListDelayed{{}, topic}), Request(ListSchedules{})}) {
    const auto reply = parse_reply(asked, text);
    if (!reply) continue;
    const auto written = to_json(reply.value());
    const auto again = parse_reply(asked, written);
    must(again.ok() && to_json(again.value()) == written);
  }
}

void read_change(std::string_view text) {
  const auto change = lightq::broker::decode_change(text);
  if (!change) return;
  const auto written = lightq::broker::encode(change.value());
  const auto again = lightq::broker::decode_change(written);
  must(again.ok() && lightq::broker::encode(again.value()) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_request(text);
  read_replies(text);
  read_change(text);
  return 0;
}
