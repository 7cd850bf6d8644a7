/// Writes and reads the headers of dead letters. Layer: delivery.
#include "delivery/letters/dead_letter.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <lightq/base/ttl.hpp>

namespace lightq::broker {

namespace {

constexpr std::string_view count_header = "lightq-dead-count";
constexpr std::string_view cause_header = "lightq-dead-cause";
constexpr std::string_view origin_prefix = "lightq-dead-origin-";

// The headers of one death, without their prefix.
constexpr std::string_view cause_name = "cause";
constexpr std::string_view topic_name = "topic";
constexpr std::string_view group_name = "group";
constexpr std::string_view incarnation_name = "incarnation";
constexpr std::string_view offset_name = "offset";
constexpr std::string_view attempts_name = "attempts";
constexpr std::string_view first_failure_name = "first-failure-ms";
constexpr std::string_view last_failure_name = "last-failure-ms";
constexpr std::string_view reason_name = "reason";
constexpr std::array names_of_death = {cause_name,         topic_name,        group_name,
                                       incarnation_name,   offset_name,       attempts_name,
                                       first_failure_name, last_failure_name, reason_name};
constexpr std::size_t kept_value_bytes_max = 512;  // of a header of an earlier death

constexpr std::array<std::pair<DeathCause, std::string_view>, 3> words_of_causes = {
    {{DeathCause::attempts, "attempts"},
     {DeathCause::rejected, "rejected"},
     {DeathCause::expired, "expired"}}};

std::string_view word_of(DeathCause cause) {
  for (const auto& [known, word] : words_of_causes)
    if (known == cause) return word;
  return "attempts";
}

std::optional<DeathCause> cause_in(std::string_view word) {
  for (const auto& [cause, known] : words_of_causes)
    if (known == word) return cause;
  return std::nullopt;
}

template <typename Number>
std::optional<Number> number_in(std::optional<std::string_view> text) {
  if (!text) return std::nullopt;
  Number number{};
  const char* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, number);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

std::string name_of(std::string_view prefix, std::string_view name) {
  return std::string(prefix) + std::string(name);
}

}  // namespace

Result<DeadLetter> DeadLetter::of(const AttributesView& message, ByteView payload,
                                  const DeathAccount& death) {
  DeadLetter letter;
  letter.key_ = message.key();
  letter.time_ = message.time();
  letter.payload_.assign(payload.begin(), payload.end());
  for (const Header header : message.headers()) {
    if (!header.name.starts_with(dead_header_prefix)) letter.add(header.name, std::string(header.value));
  }
  const bool died_before = message.header(cause_header).has_value();
  const auto deaths = number_in<std::uint64_t>(message.header(count_header)).value_or(died_before ? 1 : 0);
  letter.add(count_header, std::to_string(deaths + 1));
  letter.add_account(dead_header_prefix, death);
  if (died_before) {
    const bool has_origin = message.header(name_of(origin_prefix, cause_name)).has_value();
    for (const std::string_view name : names_of_death) {
      const auto value = message.header(name_of(has_origin ? origin_prefix : dead_header_prefix, name));
      if (value)
        letter.add(name_of(origin_prefix, name), std::string(value->substr(0, kept_value_bytes_max)));
    }
  }
  const auto headers = letter.views();
  if (const auto checked = Attributes{letter.key_, headers, letter.time_}.check(); !checked)
    return Error{ErrorCode::too_large, "with the headers of its death: " + checked.error().message};
  return letter;
}

Result<DeadLetter> DeadLetter::original_of(const AttributesView& letter, ByteView payload) {
  DeadLetter message;
  message.key_ = letter.key();
  message.time_ = letter.time();
  message.payload_.assign(payload.begin(), payload.end());
  for (const Header header : letter.headers()) {
    if (!header.name.starts_with(dead_header_prefix)) message.add(header.name, std::string(header.value));
  }
  const auto deaths = number_in<std::uint64_t>(letter.header(count_header)).value_or(1);
  if (deaths > 1) {
    message.add(count_header, std::to_string(deaths - 1));
    for (const std::string_view name : names_of_death) {
      const auto value = letter.header(name_of(origin_prefix, name));
      if (!value) continue;
      message.add(name_of(dead_header_prefix, name), std::string(*value));
      if (deaths > 2) message.add(name_of(origin_prefix, name), std::string(*value));
    }
  }
  const auto headers = message.views();
  if (const auto checked = Attributes{message.key_, headers, message.time_}.check(); !checked)
    return checked.error();
  return message;
}

void DeadLetter::forget_ttl() {
  std::erase_if(headers_, [](const OwnHeader& each) { return each.name == ttl_header_name; });
}

bool DeadLetter::is_same(const AttributesView& message, ByteView payload) const {
  const auto is_of_death = [](std::string_view name) { return name.starts_with(dead_header_prefix); };
  if (!std::ranges::equal(payload_, payload) || key_ != message.key() || time_ != message.time())
    return false;
  auto own = headers_.begin();
  for (const Header other : message.headers()) {
    if (is_of_death(other.name)) continue;
    own =
        std::find_if_not(own, headers_.end(), [&](const OwnHeader& each) { return is_of_death(each.name); });
    if (own == headers_.end() || own->name != other.name || own->value != other.value) return false;
    ++own;
  }
  return std::all_of(own, headers_.end(), [&](const OwnHeader& each) { return is_of_death(each.name); });
}

void DeadLetter::add(std::string_view name, std::string value) {
  headers_.push_back({std::string(name), std::move(value)});
}

void DeadLetter::add_account(std::string_view prefix, const DeathAccount& death) {
  add(name_of(prefix, cause_name), std::string(word_of(death.cause)));
  add(name_of(prefix, topic_name), death.topic);
  add(name_of(prefix, group_name), death.group);
  add(name_of(prefix, incarnation_name), std::to_string(death.incarnation));
  add(name_of(prefix, offset_name), std::to_string(death.offset.value));
  add(name_of(prefix, attempts_name), std::to_string(death.attempts));
  if (death.first_failure_ms != 0)
    add(name_of(prefix, first_failure_name), std::to_string(death.first_failure_ms));
  if (death.last_failure_ms != 0)
    add(name_of(prefix, last_failure_name), std::to_string(death.last_failure_ms));
  if (!death.reason.empty()) add(name_of(prefix, reason_name), death.reason);
}

std::vector<Header> DeadLetter::views() const {
  std::vector<Header> headers;
  headers.reserve(headers_.size());
  for (const OwnHeader& header : headers_) headers.push_back({header.name, header.value});
  return headers;
}

void DeadLetter::add_to(BatchBuilder& batch) const {
  const auto headers = views();
  batch.add(payload_, Attributes{key_, headers, time_}, AttributeKinds(AttributeKinds::all));
}

std::size_t DeadLetter::message_bytes() const {
  const auto headers = views();
  return attributes_bytes(AttributeKinds(AttributeKinds::all), Attributes{key_, headers, time_}) +
         payload_.size();
}

std::optional<DeathAccount> last_death_of(const AttributesView& letter) {
  const auto value = [&](std::string_view name) { return letter.header(name_of(dead_header_prefix, name)); };
  const auto cause = cause_in(value(cause_name).value_or(""));
  const auto topic = value(topic_name);
  const auto group = value(group_name);
  const auto incarnation = number_in<std::uint64_t>(value(incarnation_name));
  const auto offset = number_in<std::uint64_t>(value(offset_name));
  if (!cause || !topic || !group || !incarnation || !offset) return std::nullopt;
  DeathAccount death;
  death.cause = *cause;
  death.topic = *topic;
  death.group = *group;
  death.incarnation = *incarnation;
  death.offset = {*offset};
  death.attempts = number_in<std::uint32_t>(value(attempts_name)).value_or(0);
  death.first_failure_ms = number_in<std::int64_t>(value(first_failure_name)).value_or(0);
  death.last_failure_ms = number_in<std::int64_t>(value(last_failure_name)).value_or(0);
  death.reason = value(reason_name).value_or("");
  return death;
}

}  // namespace lightq::broker
