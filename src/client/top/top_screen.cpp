/// The screen of `lightq top` as text. Layer: cli.
#include "client/top/top_screen.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <lightq/base/shown_text.hpp>

#include "client/text/wrapped_text.hpp"
#include "client/units.hpp"

namespace lightq::cli {
namespace {

constexpr std::string_view orders = "niomlb";  // name, in, out, messages, lag, bytes

/// Returns valid text without control characters in at most `columns` columns.
std::string fitted(std::string_view text, std::size_t columns) {
  std::string shown;
  append_escaping_controls(shown, text);
  return cut_to(shown, columns);
}

std::string at_left(std::string_view text, std::size_t columns) {
  const std::string shown = fitted(text, columns);
  return shown + std::string(columns - columns_of(shown), ' ');
}

std::string at_right(std::string_view text, std::size_t columns) {
  const std::string shown = fitted(text, columns);
  return std::string(columns - columns_of(shown), ' ') + shown;
}

std::uint64_t lag_of(const TopicStats& topic) {
  std::uint64_t most = 0;
  for (const auto& group : topic.groups) most = std::max(most, group.pending);
  for (const auto& subscriber : topic.subscribers) most = std::max(most, subscriber.lag);
  return most;
}

/// Returns why nothing moves, or other states.
std::string state_of_topic(const TopicStats& topic) {
  if (topic.paused) return "paused";
  if (!topic.blocked_by.empty()) return "blocked by " + topic.blocked_by;
  const bool waits = lag_of(topic) > 0 && topic.subscribers_count == 0;
  return waits ? "no consumer" : "";
}

constexpr std::size_t rate_columns = 9;
constexpr std::size_t count_columns = 11;
constexpr std::size_t size_columns = 10;
constexpr std::size_t consumers_columns = 5;
constexpr std::size_t type_columns = 10;
constexpr std::size_t state_columns = 30;
constexpr std::size_t wide_columns = 120;

}  // namespace

void TopScreen::update(std::vector<TopicStats> topics, double seconds) {
  std::map<std::string, Rates> rates;
  for (const TopicStats& topic : topics) {
    Rates& now = rates[topic.topic];
    const auto before = std::ranges::find(topics_, topic.topic, &TopicStats::topic);
    if (before == topics_.end() || seconds <= 0) continue;
    const auto rate = [seconds](std::uint64_t was, std::uint64_t is) {
      return is < was ? 0 : static_cast<double>(is - was) / seconds;
    };
    now = {rate(before->messages_received, topic.messages_received),
           rate(before->deliveries, topic.deliveries)};
  }
  topics_ = std::move(topics);
  rates_ = std::move(rates);
  sort();
}

TopScreen::Rates TopScreen::rates_of(const TopicStats& topic) const {
  const auto found = rates_.find(topic.topic);
  return found == rates_.end() ? Rates{} : found->second;
}

double TopScreen::key_of(const TopicStats& topic) const {
  switch (order_) {
    case 'i': return rates_of(topic).in;
    case 'o': return rates_of(topic).out;
    case 'm': return static_cast<double>(topic.next_offset - topic.first_offset);
    case 'l': return static_cast<double>(lag_of(topic));
    case 'b': return static_cast<double>(topic.log_bytes);
    default: return 0;
  }
}

void TopScreen::sort() {
  std::ranges::sort(topics_, [this](const TopicStats& a, const TopicStats& b) {
    const double key_a = key_of(a);
    const double key_b = key_of(b);
    if (key_b < key_a || key_a < key_b) return key_b < key_a;  // the largest first; all are equal for 'n'
    return a.topic < b.topic;
  });
  if (reverse_) std::ranges::reverse(topics_);
  const bool is_there = std::ranges::find(topics_, selected_, &TopicStats::topic) != topics_.end();
  if (!is_there) selected_ = topics_.empty() ? "" : topics_.front().topic;
}

bool TopScreen::press(char key) {
  if (key == 'q' || key == escape) {
    if (opened_.empty()) return key != 'q';
    opened_.clear();
    return true;
  }
  if (!opened_.empty()) return true;
  const auto selected = std::ranges::find(topics_, selected_, &TopicStats::topic);
  if (key == up && selected != topics_.begin() && selected != topics_.end())
    selected_ = (selected - 1)->topic;
  if (key == down && selected != topics_.end() && selected + 1 != topics_.end())
    selected_ = (selected + 1)->topic;
  if (key == enter) opened_ = selected_;
  if (key == 'r') reverse_ = !reverse_;
  if (orders.find(key) != std::string_view::npos) order_ = key;
  sort();
  return true;
}

const TopicStats* TopScreen::opened() const {
  const auto found = std::ranges::find(topics_, opened_, &TopicStats::topic);
  return opened_.empty() || found == topics_.end() ? nullptr : &*found;
}

std::string TopScreen::summary() const {
  Rates sum;
  for (const auto& [topic, rates] : rates_) {
    sum.in += rates.in;
    sum.out += rates.out;
  }
  return "lightq top  " + broker_ + "  " + format_count(topics_.size()) +
         (topics_.size() == 1 ? " topic" : " topics") + ", in " + format_rate(sum.in) + ", out " +
         format_rate(sum.out);
}

void TopScreen::draw_topics(std::vector<std::string>& to, std::size_t columns, std::size_t rows) {
  const bool is_wide = columns >= wide_columns;
  const std::size_t others = 2 * rate_columns + 2 * count_columns + size_columns + consumers_columns + 6 +
                             (is_wide ? type_columns + state_columns + 2 : 0);
  const std::size_t name_columns = columns > others + 8 ? columns - others : 8;
  const auto line = [&](std::string_view name, std::string_view type, const std::vector<std::string>& numbers,
                        std::string_view state) {
    std::string text = at_left(name, name_columns);
    if (is_wide) text += " " + at_left(type, type_columns);
    constexpr std::size_t widths[] = {rate_columns,  rate_columns,      count_columns,
                                      count_columns, consumers_columns, size_columns};
    for (std::size_t i = 0; i < numbers.size(); ++i) text += " " + at_right(numbers[i], widths[i]);
    if (is_wide) text += " " + at_left(state, state_columns);
    return fitted(text, columns);
  };
  to.push_back(line("topic", "type", {"in", "out", "messages", "lag", "cons", "bytes"}, "state"));
  const std::size_t shown = rows > 3 ? rows - 3 : 0;  // without the summary, the heading and the keys
  const auto selected = std::ranges::find(topics_, selected_, &TopicStats::topic) - topics_.begin();
  const std::size_t place = static_cast<std::size_t>(selected);
  const std::size_t first = shown > 0 && place >= shown ? place - shown + 1 : 0;
  for (std::size_t i = first; i < topics_.size() && i < first + shown; ++i) {
    const TopicStats& topic = topics_[i];
    const Rates rates = rates_of(topic);
    if (i == place) selected_line_ = to.size();
    to.push_back(line(
        topic.topic, to_word(topic.topic_type),
        {format_rate(rates.in), format_rate(rates.out), format_count(topic.next_offset - topic.first_offset),
         format_count(lag_of(topic)), format_count(topic.subscribers_count), format_size(topic.log_bytes)},
        state_of_topic(topic)));
  }
}

void TopScreen::draw_groups(std::vector<std::string>& to, const TopicStats& topic, std::size_t columns) {
  const std::string state = state_of_topic(topic);
  to.push_back(fitted("topic " + topic.topic + "  " + std::string(to_word(topic.topic_type)) + ", offsets " +
                          format_count(topic.first_offset) + " up to " + format_count(topic.next_offset) +
                          ", " + format_size(topic.log_bytes) + (state.empty() ? "" : ", " + state),
                      columns));
  constexpr std::size_t numbers_columns = 10;
  const std::size_t others = 5 * (numbers_columns + 1);
  const std::size_t name_columns = columns > others + 8 ? std::min<std::size_t>(columns - others, 40) : 8;
  const auto line = [&](std::string_view name, const std::vector<std::string>& numbers,
                        std::string_view group_state) {
    std::string text = at_left(name, name_columns);
    for (const std::string& number : numbers) text += " " + at_right(number, numbers_columns);
    return fitted(text + "  " + std::string(group_state), columns);
  };
  to.push_back(line("group", {"pending", "ready", "in flight", "retrying", "consumers"}, "state"));
  for (const auto& group : topic.groups) {
    std::string why = group.paused ? "paused" : "";
    if (!group.blocked_by.empty()) why += (why.empty() ? "blocked by " : ", blocked by ") + group.blocked_by;
    if (group.parked > 0) why += (why.empty() ? "" : ", ") + format_count(group.parked) + " parked";
    to.push_back(line(group.group,
                      {format_count(group.pending), format_count(group.ready), format_count(group.in_flight),
                       format_count(group.retrying), format_count(group.consumers)},
                      why));
  }
}

std::vector<std::string> TopScreen::lines(std::size_t columns, std::size_t rows) {
  selected_line_ = SIZE_MAX;
  std::vector<std::string> text = {fitted(summary(), columns)};
  const TopicStats* const topic = opened();
  if (topic != nullptr)
    draw_groups(text, *topic, columns);
  else
    draw_topics(text, columns, rows);
  text.resize(rows > 0 ? rows - 1 : 0);
  const std::string_view keys =
      topic != nullptr ? "q back"
                       : "q quit  enter open  sort: n name i in o out m messages l lag b bytes r reverse";
  if (rows > 0) text.push_back(fitted(notice_.empty() ? keys : std::string_view(notice_), columns));
  return text;
}

}  // namespace lightq::cli
