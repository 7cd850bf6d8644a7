/// Users' rights as JSON members, in requests, replies and the catalogue. docs/protocol.md, "Users". Layer:
/// protocol.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lightq/protocol/control.hpp>
#include <lightq/protocol/json_fields.hpp>
#include <lightq/protocol/topic_pattern.hpp>

namespace lightq::inline v1::protocol::detail {

inline constexpr std::array<std::pair<std::string_view, bool Rights::*>, 3> right_words = {{
    {"produce", &Rights::produce},
    {"consume", &Rights::consume},
    {"manage", &Rights::manage},
}};

/// Reads the list of permission words, which must have at least one.
inline Rights read_right_words(FieldReader& fields, const char* name) {
  Rights rights;
  fields.words(name, "produce, consume, manage", right_words.size(), [&](const std::string& text) {
    for (const auto& [word, member] : right_words) {
      if (text != word) continue;
      rights.*member = true;
      return true;
    }
    return false;
  });
  if (!rights.any()) fields.fail(name, "must be a list of one or more of produce, consume, manage");
  return rights;
}

inline OrderedJson right_words_of(const Rights& rights) {
  OrderedJson words = OrderedJson::array();
  for (const auto& [word, member] : right_words) {
    if (rights.*member) words.push_back(word);
  }
  return words;
}

/// Reads the members `topic`, a pattern, and `rights`.
inline TopicRight read_right(FieldReader& fields) {
  TopicRight right;
  right.topic = fields.text("topic", 1, limits::topic_pattern_bytes_max);
  if (!is_right_pattern(right.topic))
    fields.fail("topic", "must be a topic's name, or TOPIC:GROUP, in which * may stand for any characters");
  right.rights = read_right_words(fields, "rights");
  if (right.rights.produce && split_right_pattern(right.topic).group)
    fields.fail("topic", "names a group, but produce is a right on a topic, not on a group");
  return right;
}

inline void write_right(OrderedJson& to, const TopicRight& right) {
  to["topic"] = right.topic;
  to["rights"] = right_words_of(right.rights);
}

/// Reads a list of grants; a missing list counts as empty. The number of grants per user is checked later,
/// when the user is changed.
inline std::vector<TopicRight> read_rights(FieldReader& fields, const char* name) {
  std::vector<TopicRight> rights;
  fields.objects(name, limits::request_bytes_max,
                 [&](FieldReader& entry) { rights.push_back(read_right(entry)); });
  return rights;
}

inline OrderedJson list_of_rights(const std::vector<TopicRight>& rights) {
  OrderedJson list = OrderedJson::array();
  for (const TopicRight& right : rights) write_right(list.emplace_back(OrderedJson::object()), right);
  return list;
}

/// Reads a user id of the operating system; nothing if the member is missing.
inline std::optional<std::uint32_t> read_uid(FieldReader& fields) {
  constexpr std::uint64_t uid_max = 0xFFFFFFFE;  // 0xFFFFFFFF means "no user" to the system
  if (!fields.has("uid")) return std::nullopt;
  return static_cast<std::uint32_t>(fields.number("uid", 0, uid_max, 0));
}

}  // namespace lightq::inline v1::protocol::detail
