/// Layer: endpoint.
#include "broker/endpoint/zmtp.hpp"

#include <algorithm>

namespace lightq::broker::zmtp {

namespace {

constexpr std::size_t signature_bytes = 10;
constexpr std::size_t version_at = 10;
constexpr std::size_t mechanism_at = 12;
constexpr std::size_t mechanism_bytes = 20;
constexpr std::size_t as_server_at = 32;
constexpr std::byte flag_more{0x01};
constexpr std::byte flag_long{0x02};
constexpr std::byte flag_command{0x04};
constexpr std::byte flags_known = flag_more | flag_long | flag_command;

std::string_view name_of(Mechanism mechanism) {
  switch (mechanism) {
    case Mechanism::null: break;
    case Mechanism::plain: return "PLAIN";
    case Mechanism::curve: return "CURVE";
  }
  return "NULL";
}

std::uint64_t load_big_endian(const std::byte* from, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | std::to_integer<std::uint64_t>(from[i]);
  return value;
}

void store_big_endian(std::byte* to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = bytes; i-- > 0; value >>= 8) to[i] = static_cast<std::byte>(value & 0xFF);
}

void append(std::vector<std::byte>& to, ByteView bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Takes `count` bytes off the front; nothing if there are fewer.
std::optional<ByteView> take(ByteView& from, std::size_t count) {
  if (from.size() < count) return std::nullopt;
  const ByteView front = from.first(count);
  from = from.subspan(count);
  return front;
}

}  // namespace

std::vector<std::byte> metadata_of(std::string_view socket_type) {
  std::vector<std::byte> data;
  constexpr std::string_view property = "Socket-Type";
  data.reserve(1 + property.size() + 4 + socket_type.size());
  data.push_back(static_cast<std::byte>(property.size()));
  append(data, as_byte_view(property));
  std::array<std::byte, 4> length{};
  store_big_endian(length.data(), socket_type.size(), length.size());
  append(data, length);
  append(data, as_byte_view(socket_type));
  return data;
}

std::array<std::byte, greeting_bytes> greeting(Mechanism mechanism, bool is_server) {
  std::array<std::byte, greeting_bytes> bytes{};
  bytes[0] = std::byte{0xFF};
  bytes[signature_bytes - 1] = std::byte{0x7F};
  bytes[version_at] = std::byte{3};
  bytes[version_at + 1] = std::byte{1};
  const ByteView name = as_byte_view(name_of(mechanism));
  std::copy(name.begin(), name.end(), bytes.begin() + mechanism_at);
  bytes[as_server_at] = std::byte{is_server};
  return bytes;
}

GreetingOutcome check_greeting(ByteView bytes) {
  if (!bytes.empty() && bytes[0] != std::byte{0xFF}) return GreetingOutcome::not_zmtp;
  if (bytes.size() < signature_bytes) return GreetingOutcome::incomplete;
  if ((bytes[signature_bytes - 1] & std::byte{1}) == std::byte{0}) return GreetingOutcome::not_zmtp;
  if (bytes.size() <= version_at) return GreetingOutcome::incomplete;
  if (std::to_integer<int>(bytes[version_at]) < 3) return GreetingOutcome::old_version;
  return bytes.size() < greeting_bytes ? GreetingOutcome::incomplete : GreetingOutcome::valid;
}

std::size_t missing_of_greeting(ByteView bytes) {
  const std::size_t told_by = bytes.size() <= version_at ? version_at + 1 : greeting_bytes;
  return std::max<std::size_t>(told_by, bytes.size() + 1) - bytes.size();
}

std::optional<Mechanism> mechanism_of(ByteView greeting) {
  std::string_view said = as_text(greeting.subspan(mechanism_at, mechanism_bytes));
  const std::size_t end = said.find_last_not_of('\0');
  said = said.substr(0, end == std::string_view::npos ? 0 : end + 1);
  for (const Mechanism mechanism : {Mechanism::null, Mechanism::plain, Mechanism::curve}) {
    if (said == name_of(mechanism)) return mechanism;
  }
  return std::nullopt;
}

bool is_server(ByteView greeting) {
  return greeting[as_server_at] != std::byte{0};
}

bool speaks_3_1(ByteView greeting) {
  const int major = std::to_integer<int>(greeting[version_at]);
  return major > 3 || std::to_integer<int>(greeting[version_at + 1]) >= 1;
}

FrameOutcome parse_frame_header(ByteView bytes, FrameHeader& header) {
  if (bytes.empty()) return FrameOutcome::incomplete;
  const std::byte flags = bytes[0];
  if ((flags & ~flags_known) != std::byte{0}) return FrameOutcome::invalid;
  header.more = (flags & flag_more) != std::byte{0};
  header.command = (flags & flag_command) != std::byte{0};
  if (header.more && header.command) return FrameOutcome::invalid;
  const bool is_long = (flags & flag_long) != std::byte{0};
  header.header_bytes = is_long ? long_header_bytes : short_header_bytes;
  if (bytes.size() < header.header_bytes) return FrameOutcome::incomplete;
  header.body_bytes = load_big_endian(bytes.data() + 1, header.header_bytes - 1);
  if (header.body_bytes >> 63 != 0) return FrameOutcome::invalid;
  return FrameOutcome::complete;
}

std::size_t encode_frame_header(std::byte* to, std::uint64_t body_bytes, bool more, bool command) {
  const std::byte flags = (more ? flag_more : std::byte{0}) | (command ? flag_command : std::byte{0});
  if (body_bytes <= short_body_bytes_max) {
    to[0] = flags;
    to[1] = static_cast<std::byte>(body_bytes);
    return short_header_bytes;
  }
  to[0] = flags | flag_long;
  store_big_endian(to + 1, body_bytes, long_header_bytes - 1);
  return long_header_bytes;
}

std::optional<Command> parse_command(ByteView body) {
  const auto length = take(body, 1);
  if (!length) return std::nullopt;
  const auto name = take(body, std::to_integer<std::size_t>((*length)[0]));
  if (!name || name->empty()) return std::nullopt;
  return Command{as_text(*name), body};
}

std::optional<PlainCredentials> credentials_of_hello(ByteView data) {
  const auto text = [&data]() -> std::optional<std::string_view> {
    const auto length = take(data, 1);
    const auto bytes = length ? take(data, std::to_integer<std::size_t>((*length)[0])) : std::nullopt;
    return bytes ? std::optional(as_text(*bytes)) : std::nullopt;
  };
  const auto username = text();
  const auto password = username ? text() : std::nullopt;
  if (!password || !data.empty()) return std::nullopt;
  return PlainCredentials{*username, *password};
}

std::optional<std::string_view> socket_type_of_ready(ByteView data) {
  std::optional<std::string_view> type;
  while (!data.empty()) {
    const auto name_length = take(data, 1);
    const auto name = take(data, std::to_integer<std::size_t>((*name_length)[0]));
    if (!name) return std::nullopt;
    const auto value_length = take(data, 4);
    if (!value_length) return std::nullopt;
    const auto value = take(data, static_cast<std::size_t>(load_big_endian(value_length->data(), 4)));
    if (!value) return std::nullopt;
    const auto equal_but_case = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    constexpr std::string_view wanted = "Socket-Type";
    const std::string_view text = as_text(*name);
    if (std::equal(text.begin(), text.end(), wanted.begin(), wanted.end(), equal_but_case))
      type = as_text(*value);
  }
  return type;
}

void append_command(std::vector<std::byte>& to, std::string_view name, ByteView data) {
  const std::size_t body_bytes = 1 + name.size() + data.size();
  if (body_bytes <= short_body_bytes_max) {
    to.push_back(flag_command);
    to.push_back(static_cast<std::byte>(body_bytes));
  } else {
    std::array<std::byte, long_header_bytes> header{};
    header[0] = flag_command | flag_long;
    store_big_endian(header.data() + 1, body_bytes, long_header_bytes - 1);
    append(to, header);
  }
  to.push_back(static_cast<std::byte>(name.size()));
  append(to, as_byte_view(name));
  append(to, data);
}

void append_ready(std::vector<std::byte>& to, std::string_view socket_type) {
  append_command(to, "READY", metadata_of(socket_type));
}

void append_initiate(std::vector<std::byte>& to, std::string_view socket_type) {
  append_command(to, "INITIATE", metadata_of(socket_type));
}

void append_hello(std::vector<std::byte>& to, std::string_view username, std::string_view password) {
  std::vector<std::byte> data;
  data.reserve(2 * (1 + short_body_bytes_max));
  for (std::string_view text : {username, password}) {
    text = text.substr(0, short_body_bytes_max);
    data.push_back(static_cast<std::byte>(text.size()));
    append(data, as_byte_view(text));
  }
  append_command(to, "HELLO", data);
}

void append_error(std::vector<std::byte>& to, std::string_view reason) {
  reason = reason.substr(0, short_body_bytes_max);
  std::vector<std::byte> data;
  data.push_back(static_cast<std::byte>(reason.size()));
  append(data, as_byte_view(reason));
  append_command(to, "ERROR", data);
}

std::optional<SubscriptionChange> subscription_of_message(ByteView payload) {
  if (payload.empty() || std::to_integer<int>(payload[0]) > 1) return std::nullopt;
  return SubscriptionChange{payload[0] == std::byte{1}, as_text(payload.subspan(1))};
}

std::optional<SubscriptionChange> subscription_of_command(const Command& command) {
  if (command.name == "SUBSCRIBE") return SubscriptionChange{true, as_text(command.data)};
  if (command.name == "CANCEL") return SubscriptionChange{false, as_text(command.data)};
  return std::nullopt;
}

}  // namespace lightq::broker::zmtp
