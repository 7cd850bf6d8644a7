/// A model of a broker with one topic and one consumer group on sessions, which follows docs/session.md. At
/// random it shows all the faults that the document allows: connections that are cut anywhere, messages that
/// time out and go to another member, batches that are cut anywhere. It checks that its clients keep to their
/// credit.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "session_consumer_fixture.hpp"
#include "support/random.hpp"

namespace lightq::test {

class ModelGroup {
 public:
  struct Chances {  // once in this many steps; 0: never
    std::uint64_t cut = 0;
    std::uint64_t time_out = 0;
  };

  ModelGroup(Random& random, std::vector<std::string> messages)
      : random_(random),
        messages_(std::move(messages)),
        handed_(messages_.size()),
        done_(messages_.size()),
        waiting_(messages_.size(), true) {}

  Chances chances;
  [[nodiscard]] const std::string& uri() const { return listener_.uri(); }
  [[nodiscard]] const std::vector<std::string>& messages() const { return messages_; }
  [[nodiscard]] bool is_done(std::uint64_t offset) const { return done_[offset]; }
  [[nodiscard]] std::size_t done_count() const {
    return static_cast<std::size_t>(std::count(done_.begin(), done_.end(), true));
  }
  /// Returns how often a message was delivered.
  [[nodiscard]] std::uint32_t handed(std::uint64_t offset) const { return handed_[offset]; }
  [[nodiscard]] std::uint64_t cuts() const { return cuts_; }
  [[nodiscard]] std::uint64_t timeouts() const { return timeouts_; }
  [[nodiscard]] std::uint64_t rejects() const { return rejects_; }

  /// Makes a little random progress.
  void step() {
    if (FakeSession session = listener_.accept(); session.is_open()) {
      members_.push_back(std::make_unique<Member>());
      members_.back()->session = std::move(session);
    }
    for (std::size_t i = 0; i < members_.size();) {
      Member& member = *members_[i];
      move(member);
      const bool cut = chances.cut != 0 && random_.one_in(chances.cut);
      if (cut) ++cuts_;
      if (cut || member.session.ended()) {
        give_back(member);
        members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

 private:
  struct Member {
    FakeSession session;
    bool is_open = false;
    std::uint64_t credit_messages = 0;
    std::int64_t credit_bytes = 0;
    std::uint64_t prefetch_messages = 0;
    std::int64_t prefetch_bytes = 0;
    std::set<std::uint64_t> outstanding;
  };
  static constexpr std::uint32_t channel = 3;

  void move(Member& member) {
    member.session.read(random_.between(1, random_.one_in(2) ? 200 : 100'000));
    if (random_.one_in(2)) {
      while (const auto frame = member.session.next()) take(member, *frame);
    }
    if (member.is_open && random_.one_in(2)) deliver(member);
    if (member.is_open && chances.time_out != 0 && random_.one_in(chances.time_out)) time_out(member);
    member.session.write(random_.between(1, 500));
  }

  void take(Member& member, const TakenFrame& frame) {
    using session::Op;
    switch (frame.header.op) {
      case Op::hello: member.session.put(session::Welcome{}, 0, frame.header.request); return;
      case Op::consume_open: return open(member, frame);
      case Op::credit: return add_credit(member, frame.as<session::Credit>());
      case Op::acknowledge:
        for (const OffsetRange& range : frame.as<session::Acknowledge>().ranges) settle(member, range, true);
        return;
      case Op::reject:
        ++rejects_;
        for (const OffsetRange& range : frame.as<session::Reject>().ranges) settle(member, range, false);
        return;
      case Op::close: member.session.put(session::Done{}, channel, frame.header.request); return;
      case Op::extend:
      case Op::heartbeat:
      case Op::goodbye: return;
      default: ADD_FAILURE() << "the client sent " << rule_of(frame.header.op).name;
    }
  }
  void open(Member& member, const TakenFrame& frame) {
    const auto open = frame.as<session::ConsumeOpen>();
    member.credit_messages = member.prefetch_messages = open.credit_messages;
    member.credit_bytes = member.prefetch_bytes = static_cast<std::int64_t>(open.credit_bytes);
    member.is_open = true;
    member.session.put(session::ConsumeOpened{0, 0, messages_.size(), 1, 30'000}, channel,
                       frame.header.request);
  }

  /// Checks that messages in flight and unused credit together never exceed the prefetch limit.
  void add_credit(Member& member, const session::Credit& credit) {
    member.credit_messages += credit.messages;
    member.credit_bytes += static_cast<std::int64_t>(credit.bytes);
    ASSERT_LE(member.credit_messages + member.outstanding.size(), member.prefetch_messages);
    // A part of a batch counts with the average size of its messages.
    ASSERT_LE(member.credit_bytes, member.prefetch_bytes);
  }
  void settle(Member& member, const OffsetRange& range, bool done) {
    auto it = member.outstanding.lower_bound(range.begin.value);
    while (it != member.outstanding.end() && *it < range.end.value) {
      (done ? done_ : waiting_)[*it] = true;
      it = member.outstanding.erase(it);
    }
  }
  void give_back(Member& member) { settle(member, {{0}, {messages_.size()}}, false); }
  void time_out(Member& member) {
    if (member.outstanding.empty()) return;
    ++timeouts_;
    const std::uint64_t offset = *member.outstanding.begin();
    settle(member, {{offset}, {offset + random_.between(1, 5)}}, false);
  }

  /// Delivers some consecutive messages that were delivered equally often before.
  void deliver(Member& member) {
    const auto begin =
        static_cast<std::uint64_t>(std::find(waiting_.begin(), waiting_.end(), true) - waiting_.begin());
    if (begin == messages_.size()) return;
    const std::size_t most = random_.between(1, 8);
    std::vector<std::string> payloads;
    for (std::uint64_t at = begin; payloads.size() < most && at < messages_.size(); ++at) {
      if (member.credit_messages == 0 || member.credit_bytes <= 0) break;
      if (!waiting_[at] || handed_[at] != handed_[begin]) break;
      payloads.push_back(messages_[at]);
      --member.credit_messages;
      member.credit_bytes -= static_cast<std::int64_t>(messages_[at].size());
    }
    if (payloads.empty()) return;
    const Delivery delivery{handed_[begin] + 1, 0, {1}};
    member.session.put_bytes(deliver_frame(channel, Offset{begin}, payloads, delivery));
    for (std::uint64_t at = begin; at < begin + payloads.size(); ++at) {
      ++handed_[at];
      waiting_[at] = false;
      member.outstanding.insert(at);
    }
  }

  Random& random_;
  FakeSessionListener listener_;
  std::vector<std::string> messages_;
  std::vector<std::uint32_t> handed_;
  std::vector<bool> done_;
  std::vector<bool> waiting_;  // to be delivered
  std::vector<std::unique_ptr<Member>> members_;
  std::uint64_t cuts_ = 0;
  std::uint64_t timeouts_ = 0;
  std::uint64_t rejects_ = 0;
};

}  // namespace lightq::test
