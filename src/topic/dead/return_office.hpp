/// Executes commands on the letters of one reactor's topics, and takes letters back. Layer: topic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/result.hpp>

#include "base/log_sink.hpp"
#include "net/event_loop.hpp"
#include "topic/dead/letter_post.hpp"
#include "topic/dead/letter_receiver.hpp"
#include "topic/dead/letter_returns.hpp"
#include "topic/dead/letter_scan.hpp"
#include "topic/dead/returned_letter.hpp"
#include "topic/runtime/topic_runtime.hpp"

namespace lightq::broker {

/// The effect of a command on letters.
enum class LetterAction : std::uint8_t {
  count,      ///< counts them
  purge,      ///< settles them: they are not listed any more
  give_back,  ///< gives them back to the groups in which they died
};

/// A page of letters.
struct LetterList {
  std::vector<FoundLetter> letters;  ///< by offset
  std::optional<Offset> next;        ///< there may be more from here on
};

/// Owns the parts that work on letters of this reactor's topics: LetterReturns of the dead-letter topics,
/// LetterReceiver of the source topics. Commands that read do it in pieces of about a millisecond. All of
/// them together do one piece in each turn of the loop, in turn. LetterOffice owns it; offices call each
/// other through LetterPost. Thread: the reactor's.
class ReturnOffice final {
 public:
  /// Lifetime: the references outlive the office.
  struct Parts {
    EventLoop& loop;
    LogSink& sink;
    std::function<TopicRuntime*(TopicId)> find_topic;
    LetterRoom& room;  // for letters that wait for space in topics
  };
  using Listed = std::function<void(const Result<LetterList>&)>;
  using Acted = std::function<void(const Result<LetterCounts>&)>;

  explicit ReturnOffice(Parts parts) : parts_(std::move(parts)) {}
  ReturnOffice(const ReturnOffice&) = delete;
  ReturnOffice& operator=(const ReturnOffice&) = delete;
  ~ReturnOffice() { stop(); }

  /// Sets the way to other topics. Lifetime: `post` outlives the office.
  void connect(LetterPost& post) { post_ = &post; }

  // Commands on a dead-letter topic. The callback is called once, perhaps within the call. Errors of all:
  // topic_not_found, shutting_down, io_error, busy; and those of a save.

  /// The most commands at a time that list, count or purge letters of one topic, and of all topics. Further
  /// ones are answered `busy`.
  static constexpr std::size_t walks_of_topic_max = 16;
  static constexpr std::size_t walks_max = 1024;

  /// Lists at most `most` letters that are not settled, from offset `from` on. Ends early after many
  /// messages.
  void list(TopicId topic, DeadFilter filter, Offset from, std::size_t most, Listed listed);
  /// Acts on letters that are not settled, and not being given back. `may`: needed to give back. After
  /// `busy` to that, letters under way are given back later.
  void act(TopicId topic, LetterAction action, DeadFilter filter, MayReturn may, Acted acted);

  /// Continues a run of the topic that a start has found.
  void resume(TopicId topic);
  /// Ends everything of the topic. Called before the topic is destroyed.
  void forget(TopicId topic);
  /// Ends everything. Later calls have no effect.
  void stop();

  // Calls of other offices.

  /// Takes letters back in a topic of this reactor, from index `first` of the parcel on.
  void receive(LetterChannel channel, const std::shared_ptr<const ReturnParcel>& parcel, TopicId topic,
               std::size_t first);
  /// Passes on the answer.
  void answered(LetterChannel channel, const ReturnAnswer& answer);

 private:
  static constexpr unsigned pieces_of_list = 64;

  /// A command that reads all letters, piece by piece.
  struct Walk {
    TopicId topic;
    DeadFilter filter;
    bool purges = false;
    std::optional<Offset> from;
    std::size_t most;  // letters to list; 0: counts
    Listed listed;
    Acted acted;
    LetterList list = {};
    std::uint64_t messages = 0;
    unsigned pieces_left = pieces_of_list;  // of a list
    int failed_reads = 0;                   // one after the other
    EventLoop::TimerId timer = 0;           // while its next piece cannot be read
  };

  void begin(Walk walk);
  void want_turn(std::function<void()> piece);
  void want_piece(std::uint64_t number);
  void next_piece();
  void walk(std::uint64_t number);
  void end_walk(std::uint64_t number, const Result<void>& result);
  LetterReturns* returns_of(TopicId topic);
  void answer(LetterChannel channel, const ReturnAnswer& answer);

  const Parts parts_;
  LetterPost* post_ = nullptr;
  bool stopped_ = false;
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, Walk> walks_;
  // Pieces of reading that wait for their turn. Those of commands that have ended do nothing.
  std::deque<std::function<void()>> due_;
  EventLoop::TimerId due_timer_ = 0;
  std::map<TopicId, std::shared_ptr<LetterReturns>> returns_;  // by dead-letter topic
  struct Receiving {
    TopicId topic;
    std::shared_ptr<LetterReceiver> receiver;
  };
  std::map<LetterChannel, Receiving> receivers_;
};

}  // namespace lightq::broker
