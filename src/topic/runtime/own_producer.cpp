/// Publishes the broker's own messages to a topic, each once. Layer: topic.
#include "topic/runtime/own_producer.hpp"

#include <algorithm>

namespace lightq::broker {

OwnProducer::~OwnProducer() {
  stop();
  if (is_open_) publishing_.detach(*this);
}

void OwnProducer::stop() {
  is_stopped_ = true;
  loop_.cancel(std::exchange(retry_, 0));
}

void OwnProducer::open() {
  if (is_open_ || is_stopped_) return;
  is_admitted_ = false;
  const auto opened = publishing_.open(
      {settings_.id, 0}, *this, {.user = ProducerTable::brokers_own, .has_place = settings_.has_place});
  is_open_ = opened.refusal == ClientError::none;
  if (!is_open_) return wait_to_open("the topic cannot accept another producer");
  const std::uint64_t expected = opened.producer.expected;
  user_.opened(expected < own_sequences_begin ? 0 : expected - own_sequences_begin);
}

void OwnProducer::wait_to_open(const std::string& why) {
  user_.cannot_open(why);
  waiting_by_ = why;
  try_later();
}

void OwnProducer::admitted() {
  is_admitted_ = true;
  waiting_by_.clear();
  user_.admitted();
}

bool OwnProducer::resume() {
  is_held_ = false;
  user_.go_on();
  return !is_held_;
}

bool OwnProducer::durable_moved() {
  user_.durable_moved();
  return false;
}

void OwnProducer::end(ClientError code, const std::string& why) {
  is_open_ = is_admitted_ = is_held_ = false;
  user_.ended();
  if (code == ClientError::topic_deleted || code == ClientError::shutting_down) return stop();
  wait_to_open(why);
}

OwnProducer::Stored OwnProducer::store(const OfferedBatch& batch, std::uint64_t first) {
  const Sequences sequences{{settings_.id, 0}, sequence_of(first), batch.records};
  switch (publishing_.admit(sequences)) {
    case Admission::store: break;
    case Admission::repeat: return Stored::repeat;
    case Admission::out_of_sequence: return Stored::out_of_sequence;
    case Admission::fenced:
    case Admission::unknown:
      publishing_.detach(*this);
      is_open_ = is_admitted_ = false;
      wait_to_open("the topic does not know their producer any more");
      return Stored::forgotten;
  }
  const auto outcome = publishing_.store_own(batch, sequences);
  if (outcome == PublishOutcome::refused) return Stored::too_large;
  if (outcome == PublishOutcome::accepted) {
    waiting_by_.clear();
    pause_ = settings_.pause_min;
    return Stored::yes;
  }
  waiting_by_ = publishing_.is_held_by_disk() ? "the disk is full or cannot be written" : "the topic is full";
  is_held_ = outcome == PublishOutcome::held;
  if (is_held_) {
    publishing_.hold(*this);
  } else {
    try_later();
  }
  return Stored::no_space;
}

void OwnProducer::try_later() {
  if (retry_ != 0) return;
  try_after(pause_);
  pause_ = std::min(2 * pause_, settings_.pause_max);
}

void OwnProducer::try_after(std::chrono::milliseconds pause) {
  if (retry_ != 0 || is_stopped_) return;
  retry_ = loop_.at(EventLoop::Clock::now() + pause, [this] {
    retry_ = 0;
    is_open_ ? user_.go_on() : open();
  });
}

}  // namespace lightq::broker
