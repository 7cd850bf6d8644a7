/// The screen of `lightq top` as text: rates, order, and the topic that is open. Layer: cli.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <lightq/protocol/control.hpp>

namespace lightq::cli {

using protocol::TopicStats;

/// Keeps the choices of the user, and draws the screen. Reads no clock and no terminal. For one thread.
class TopScreen {
 public:
  explicit TopScreen(std::string broker) : broker_(std::move(broker)) {}
  /// Takes new statistics. `seconds`: since the previous ones; the rates are 0 at first.
  void update(std::vector<TopicStats> topics, double seconds);
  /// Shows a sentence instead of the keys, for example that the broker does not answer. Empty: the keys.
  void set_notice(std::string notice) { notice_ = std::move(notice); }
  /// Handles a key: a letter, or one of the control codes below. Returns false if the command shall end.
  bool press(char key);
  /// Returns `rows` lines of at most `columns` columns, without control characters.
  [[nodiscard]] std::vector<std::string> lines(std::size_t columns, std::size_t rows);
  /// Returns the line that is selected, counted from 0; beyond the lines if there is none.
  [[nodiscard]] std::size_t selected_line() const { return selected_line_; }

  static constexpr char up = 'k';
  static constexpr char down = 'j';
  static constexpr char enter = '\r';
  static constexpr char escape = '\x1b';

 private:
  struct Rates {
    double in = 0;
    double out = 0;
  };
  void sort();
  [[nodiscard]] double key_of(const TopicStats& topic) const;
  [[nodiscard]] Rates rates_of(const TopicStats& topic) const;
  [[nodiscard]] const TopicStats* opened() const;
  [[nodiscard]] std::string summary() const;
  void draw_topics(std::vector<std::string>& to, std::size_t columns, std::size_t rows);
  static void draw_groups(std::vector<std::string>& to, const TopicStats& topic, std::size_t columns);

  std::string broker_;
  std::vector<TopicStats> topics_;
  std::map<std::string, Rates> rates_;  // by topic
  std::string notice_;
  std::string selected_;  // a topic's name, so that the selection follows it
  std::string opened_;    // empty: the list
  char order_ = 'n';      // the key that chose it
  bool reverse_ = false;
  std::size_t selected_line_ = SIZE_MAX;
};

}  // namespace lightq::cli
