/// A model of a broker for session producers, which follows docs/session.md. At random it shows all the
/// faults that the document allows. It cuts connections anywhere, leaves out confirms, and handles frames of
/// a former connection late. It also loses unflushed messages in crashes, refuses batches, and forgets
/// producer ids.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "session_fake_broker.hpp"
#include "support/random.hpp"

namespace lightq::test {

class ModelBroker {
 public:
  struct Chances {  // once in this many steps or batches; 0: never
    std::uint64_t cut = 0;
    std::uint64_t crash = 0;   // loses everything that was not flushed
    std::uint64_t forget = 0;  // forgets all producers
    std::uint64_t refuse = 0;  // refuses a batch once
  };
  /// Batches with a message that contains this text are always refused as too large.
  static constexpr std::string_view too_large_mark = "LARGE";

  ModelBroker(Random& random, session::ConfirmLevel level) : random_(random), level_(level) {}

  Chances chances;
  [[nodiscard]] const std::string& uri() const { return listener_.uri(); }
  [[nodiscard]] const std::vector<std::string>& stored() const { return now_.log; }
  [[nodiscard]] std::uint64_t forgotten() const { return forgotten_; }
  [[nodiscard]] std::uint64_t cuts() const { return cuts_; }
  [[nodiscard]] std::uint64_t late() const { return late_stored_; }

  /// Makes a little random progress.
  void step() {
    if (!session_.is_open()) accept();
    session_.read(random_.between(1, random_.one_in(2) ? 300 : 100'000));
    if (session_.ended()) cut();
    if (random_.one_in(3)) take_frames();
    if (level_ == session::ConfirmLevel::flushed && random_.one_in(5)) flush();
    if (random_.one_in(3)) confirm();
    session_.write(random_.between(1, 60));
    if (happens(chances.cut)) cut();
    if (happens(chances.crash)) crash();
    if (happens(chances.forget)) forget();
    if (!late_.empty() && random_.one_in(3)) take_late();
  }

 private:
  using Producers = std::map<std::uint64_t, std::uint64_t>;  // id → next sequence number
  struct State {
    std::vector<std::string> log;
    Producers next;
  };

  bool happens(std::uint64_t one_in) { return one_in != 0 && random_.one_in(one_in); }

  void accept() {
    session_ = listener_.accept();
    channel_ = 0;
    stopped_ = false;
    due_ = false;
  }
  void cut() {
    if (!session_.is_open()) return;
    ++cuts_;
    // Batches that have arrived are handled later, possibly after the next connection.
    while (auto frame = session_.next())
      if (frame->header.op == session::Op::produce) late_.push_back(TakenBatch::of(*frame));
    session_.close();
  }
  void crash() {
    cut();
    late_.clear();
    if (level_ == session::ConfirmLevel::flushed) now_ = flushed_;
  }
  void forget() {
    cut();
    now_.next.clear();
    flushed_.next.clear();
    ++forgotten_;
  }

  void take_frames() {
    while (session_.is_open()) {
      const std::optional<TakenFrame> frame = session_.next();
      if (!frame) return;
      take(*frame);
    }
  }
  void take(const TakenFrame& frame) {
    using session::Op;
    const std::uint32_t request = frame.header.request;
    switch (frame.header.op) {
      case Op::hello: session_.put(session::Welcome{.frame_bytes_max = 1 << 20}, 0, request); return;
      case Op::produce_open: open(frame.as<session::ProduceOpen>(), request); return;
      case Op::produce: return produce(TakenBatch::of(frame));
      case Op::heartbeat: return;
      case Op::goodbye: return session_.close();
      default: ADD_FAILURE() << "a producer sent " << rule_of(frame.header.op).name;
    }
  }

  void open(const session::ProduceOpen& asked, std::uint32_t request) {
    id_ = asked.producer.id;
    if (id_ == 0) {
      id_ = ++last_id_;
      now_.next[id_] = 0;
      flushed_.next[id_] = 0;
    } else if (!now_.next.contains(id_)) {
      return session_.put(session::ErrorAnswer{session::Code::unknown_producer, ""}, 0, request);
    }
    channel_ = 1 + static_cast<std::uint32_t>(random_.below(100));
    told_ = level_ == session::ConfirmLevel::flushed ? 0 : value();
    session::ProduceOpened opened;
    opened.producer = {id_, asked.producer.epoch};
    opened.level = level_;
    opened.batch_bytes_max = 1 << 20;
    opened.message_bytes_max = 1 << 20;
    opened.expected = now_.next[id_];
    session_.put(opened, channel_, request);
  }

  /// Returns the sequence number up to which the producer's messages are confirmed.
  std::uint64_t value() {
    return level_ == session::ConfirmLevel::flushed ? flushed_.next[id_] : now_.next[id_];
  }

  static bool is_too_large(const TakenBatch& batch) {
    return std::any_of(batch.payloads.begin(), batch.payloads.end(), [](const std::string& payload) {
      return payload.find(too_large_mark) != std::string::npos;
    });
  }
  void store(const TakenBatch& batch) {
    now_.log.insert(now_.log.end(), batch.payloads.begin(), batch.payloads.end());
    now_.next[batch.producer.id] = batch.end();
  }

  void produce(const TakenBatch& batch) {
    EXPECT_TRUE(batch.sound);
    EXPECT_EQ(batch.producer.id, id_);
    const std::uint64_t expected = now_.next[id_];
    if (stopped_ && batch.sequence != expected) return;
    if (batch.end() <= expected) {
      due_ = due_ || batch.end() <= value();
      return;
    }
    if (batch.sequence != expected) return refuse(batch, session::Code::out_of_sequence);
    if (is_too_large(batch)) return refuse(batch, session::Code::too_large);
    if (happens(chances.refuse)) {
      constexpr std::array codes = {session::Code::limit_reached, session::Code::no_space,
                                    session::Code::corrupt};
      return refuse(batch, codes.at(random_.below(codes.size())));
    }
    stopped_ = false;
    store(batch);
  }
  void refuse(const TakenBatch& batch, session::Code code) {
    stopped_ = true;
    session_.put(session::Refuse{batch.sequence, batch.end(), now_.next[id_], code, ""}, channel_, 0);
  }

  /// Handles one batch of a former connection. No batch after a refused one is stored.
  void take_late() {
    const TakenBatch batch = std::move(late_.front());
    late_.erase(late_.begin());
    const auto known = now_.next.find(batch.producer.id);
    if (known == now_.next.end() || batch.end() <= known->second) return;
    if (batch.sequence != known->second || is_too_large(batch)) return late_.clear();
    store(batch);
    ++late_stored_;
  }

  void flush() { flushed_ = now_; }
  void confirm() {
    if (channel_ == 0 || (!due_ && value() == told_)) return;
    told_ = value();
    due_ = false;
    session_.put(session::Confirm{now_.next[id_], level_ == session::ConfirmLevel::flushed ? told_ : 0,
                                  now_.log.size()},
                 channel_, 0);
  }

  Random& random_;
  session::ConfirmLevel level_;
  FakeSessionListener listener_;
  FakeSession session_;
  State now_;
  State flushed_;
  std::vector<TakenBatch> late_;
  std::uint64_t last_id_ = 0;
  std::uint64_t id_ = 0;       // the producer id of the channel
  std::uint32_t channel_ = 0;  // 0: not open
  std::uint64_t told_ = 0;     // the last value that was confirmed on the channel
  bool due_ = false;           // a confirm is due, though nothing new was stored
  bool stopped_ = false;       // after a refusal
  std::uint64_t forgotten_ = 0;
  std::uint64_t cuts_ = 0;
  std::uint64_t late_stored_ = 0;
};

}  // namespace lightq::test
