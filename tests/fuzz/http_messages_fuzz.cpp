/// Fuzzes the contents of HTTP requests: messages in lines, ranges of offsets, and commands. A message that
/// was read and is written again as JSON is the same message.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/protocol/json.hpp>

#include "http/control_command.hpp"
#include "http/messages/message_text.hpp"
#include "support/message_lines.hpp"

namespace {

using namespace lightq;
using namespace lightq::broker;

void require(bool condition) {
  if (!condition) std::abort();
}

ReceivedMessage received(const BatchView::Records& record) {
  ReceivedMessage message;
  const AttributesView attributes = record.attributes();
  message.time = attributes.time();
  message.key = attributes.key();
  for (const Header header : attributes.headers()) message.headers.emplace_back(header.name, header.value);
  message.payload = as_text(record.payload());
  return message;
}

/// Returns the members of a line that only received messages have, removed.
std::string as_sent(const ReceivedMessage& message) {
  std::string text;
  append_message(message, text);
  constexpr std::string_view own = "\"offset\":0,\"delivery\":1,\"stored_us\":0,";
  require(text.starts_with("{" + std::string(own)));
  return "{" + text.substr(1 + own.size());
}

void check_lines(std::string_view text) {
  auto messages = messages_of_lines(text);
  if (!messages) return;
  std::string lines;
  std::size_t count = 0;
  for (BatchBuilder& batch : messages->batches) {
    const auto bytes = batch.finish();
    require(batch.is_sound());
    require(!BatchView::check_produced(bytes, AttributeKinds(AttributeKinds::known)).fault);
    for (auto record = BatchView::trusted(bytes.data()).records(); !record.done(); record.next(), ++count)
      lines += as_sent(received(record)) + "\n";
  }
  require(count > 0);
  auto again = messages_of_lines(lines);
  require(again.ok());
  std::string same;
  for (BatchBuilder& batch : again->batches) {
    for (auto record = BatchView::trusted(batch.finish().data()).records(); !record.done(); record.next())
      same += as_sent(received(record)) + "\n";
  }
  require(same == lines);
}

void check_ranges(std::string_view text) {
  const auto ranges = ranges_of(text);
  if (!ranges) return;
  require(!ranges->empty());
  for (std::size_t i = 0; i < ranges->size(); ++i) {
    require((*ranges)[i].begin < (*ranges)[i].end);
    require(i == 0 || (*ranges)[i - 1].end < (*ranges)[i].begin);
  }
}

void check_command(std::string_view text, std::size_t which) {
  const auto routes = command_routes();
  HttpExchange exchange;
  exchange.parts = {"t", "g"};
  const std::size_t end = std::min(text.find('\n'), text.size());
  auto query = Query::parse(text.substr(0, end));
  if (!query) return;
  exchange.request.query = std::move(*query);
  exchange.request.body = text.substr(std::min(end + 1, text.size()));
  exchange.request.authorization = Secret("Basic YW5uOnBhc3N3b3Jk");
  const CommandRoute& route = routes[which % routes.size()];
  const auto command = command_of(route, exchange, 65'536);
  if (command) require(protocol::command_of(*command) == route.cmd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  check_lines(text);
  check_ranges(text);
  check_command(text, data[0]);
  return 0;
}
