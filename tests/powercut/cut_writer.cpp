/// The process that loses power, and the one that checks the remaining queue. Usage:
///   cut_writer write DIRECTORY LIFE SEED POLICY RETENTION SEGMENT_BYTES MESSAGES
///   cut_writer check DIRECTORY RETENTION SEGMENT_BYTES LIFE:OFFSET…
///
/// `write` opens the queue, appends so many messages and closes the queue. It prints its next actions and the
/// promises of the queue on standard output, one line each. With POLICY `lies` it confirms messages that it
/// has only appended.
///   open NEXT DURABLE FIRST CLEAN   the queue as it was found
///   will NEXT                       appends may reach this offset from now on
///   has NEXT                        were appended
///   durable NEXT                    survive everything
///   commits NAME OFFSET             a cursor may be there from now on
///   flushed NAME OFFSET             a cursor is there or further on, in any case
///   gap FIRST NEXT                  these cannot be read
///   closed NEXT
/// `check` reads the queue, first without changing it. It prints `gap` lines, and last `found FIRST NEXT
/// CLEAN NAME=OFFSET…`. Both end with code 3 after an error of the queue, and with code 1 if a check fails.
/// Before that they print `error` or `wrong` with the reason.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <lightq/base/error.hpp>
#include <lightq/queue.hpp>

#include "powercut/cut_messages.hpp"

namespace {

using lightq::Offset;
using lightq::test::CutHistory;

// Writes the line in one call, so that lines of several threads do not mix and the last line before the end
// is complete.
void say(const std::string& line) {
  const std::string text = line + '\n';
  if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::_Exit(4);
}

std::string text_of(Offset offset) {
  return std::to_string(offset.value);
}

[[noreturn]] void fail(int code, const std::string& why) {
  say((code == 3 ? "error " : "wrong ") + why);
  std::_Exit(code);
}

template <typename Value>
Value must(lightq::Result<Value> result) {
  if (!result) fail(3, result.error().text());
  return std::move(*result);
}

void must(const lightq::Result<void>& result) {
  if (!result) fail(3, result.error().text());
}

lightq::QueueOptions options_of(const std::string& policy, const std::string& retention,
                                std::uint64_t segment_bytes) {
  lightq::QueueOptions options;
  options.segment_bytes = segment_bytes;
  options.drop_committed = retention == "committed";
  if (retention == "newest") {
    options.retain_uncommitted = false;
    options.retention_messages = 1000;
  }
  if (policy == "append") options.flush = lightq::FlushPolicy::every_append();
  if (policy == "messages") options.flush = lightq::FlushPolicy::every_messages(50);
  if (policy == "bytes") options.flush = lightq::FlushPolicy::every_bytes(20'000);
  if (policy == "interval") options.flush = lightq::FlushPolicy::every(std::chrono::milliseconds(5));
  if (policy == "lies") options.flush = lightq::FlushPolicy::every_bytes(std::uint64_t{1} << 40);
  options.background = policy == "interval" || policy == "background";
  if (policy == "background") options.flush.messages = 50;
  return options;
}

class Writer {
 public:
  Writer(lightq::Queue& queue, std::uint64_t life, std::uint64_t seed, std::string policy)
      : queue_(queue), life_(life), random_(seed), policy_(std::move(policy)) {}

  void run(std::uint64_t messages) {
    for (const std::string name : {"fast", "slow"}) {
      say("commits " + name + ' ' + text_of(queue_.first_offset()));
      cursors_.push_back(must(queue_.cursor(name)));
    }
    const std::uint64_t end = queue_.next_offset().value + messages;
    while (queue_.next_offset().value < end) {
      append();
      tell_durable();
      if (random_() % 3 == 0) consume(cursors_[0], 64);
      if (random_() % 8 == 0) consume(cursors_[1], 150);
      if (random_() % (policy_ == "none" ? 20 : 60) == 0) flush();
    }
    cursors_.clear();
  }

 private:
  void append() {
    const Offset next = queue_.next_offset();
    const std::uint64_t count = random_() % 4 == 0 ? 1 + random_() % 40 : 1;
    say("will " + std::to_string(next.value + count));
    Offset base;
    if (count == 1) {
      base = must(queue_.enqueue(lightq::test::cut_message(life_, next.value)));
    } else {
      lightq::BatchBuilder batch;
      for (std::uint64_t i = 0; i < count; ++i) {
        batch.add(lightq::as_byte_view(lightq::test::cut_message(life_, next.value + i)));
      }
      base = must(queue_.enqueue(batch));
    }
    if (base != next) fail(1, "appended at " + text_of(base) + " and not " + text_of(next));
    say("has " + text_of(queue_.next_offset()));
    if (policy_ == "append" || policy_ == "lies") durable(queue_.next_offset());
  }

  void durable(Offset offset) {
    if (offset <= told_) return;
    told_ = offset;
    say("durable " + text_of(offset));
  }
  void tell_durable() {
    if (policy_ != "lies") durable(queue_.durable_offset());
  }

  void consume(lightq::QueueCursor& cursor, std::size_t at_most) {
    const auto messages = cursor.next_batch(1 + random_() % at_most);
    if (!messages && messages.error().code != lightq::ErrorCode::corrupt) must(messages);
    say("commits " + cursor.name() + ' ' + text_of(cursor.reader().position()));
    cursor.commit();
  }

  void flush() {
    const Offset next = queue_.next_offset();
    std::vector<Offset> committed;
    for (const auto& cursor : cursors_) committed.push_back(cursor.committed());
    must(queue_.flush());
    durable(next);
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      say("flushed " + cursors_[i].name() + ' ' + text_of(committed[i]));
    }
  }

  lightq::Queue& queue_;
  const std::uint64_t life_;
  std::mt19937_64 random_;
  const std::string policy_;
  std::vector<lightq::QueueCursor> cursors_;
  Offset told_;
};

// Prints a gap for each damaged range. A power cut leaves one if a later unsynced batch has reached the disk
// and an earlier one has not.
void tell_damage(const lightq::QueueRecovery& recovery) {
  for (const auto& damage : recovery.damaged)
    say("gap " + text_of(damage.first) + ' ' + text_of(damage.next));
}

int write(const std::vector<std::string>& words) {
  const std::uint64_t life = std::strtoull(words[1].c_str(), nullptr, 10);
  const std::uint64_t seed = std::strtoull(words[2].c_str(), nullptr, 10);
  const std::string& policy = words[3];
  const auto options = options_of(policy, words[4], std::strtoull(words[5].c_str(), nullptr, 10));
  auto queue = must(lightq::Queue::open(words[0], options));
  tell_damage(queue.recovery());
  say("open " + text_of(queue.next_offset()) + ' ' + text_of(queue.durable_offset()) + ' ' +
      text_of(queue.first_offset()) + ' ' + (queue.recovery().clean ? "clean" : "unclean"));
  Writer(queue, life, seed, policy).run(std::strtoull(words[6].c_str(), nullptr, 10));
  must(queue.close());
  say("closed " + text_of(queue.next_offset()));
  return 0;
}

// Reads from the reader's position to the end. Returns one past the last message.
std::uint64_t read_all(lightq::QueueReader& reader, const CutHistory& history) {
  std::uint64_t expected = reader.position().value;
  for (;;) {
    const auto messages = reader.next_batch();
    if (!messages && messages.error().code != lightq::ErrorCode::corrupt) fail(3, messages.error().text());
    if (!messages) {
      say("gap " + std::to_string(expected) + ' ' + text_of(reader.position()));
      expected = reader.position().value;
      continue;
    }
    if (messages->empty()) return expected;
    for (const auto& message : *messages) {
      if (message.offset.value != expected) {
        fail(1, "offset " + text_of(message.offset) + " after " + std::to_string(expected));
      }
      const std::string fault = history.fault_of(expected, message.text());
      if (!fault.empty()) fail(1, fault);
      ++expected;
    }
  }
}

// Reads through a view before anything is recovered. Opening the view may fail after a power cut, but the
// view must show no wrong message.
void check_view(const std::string& directory, const CutHistory& history) {
  auto view = lightq::QueueView::open(directory);
  if (!view) return;
  auto reader = view->reader();
  if (reader) read_all(*reader, history);
}

int check(const std::vector<std::string>& words) {
  const CutHistory history({words.begin() + 3, words.end()});
  check_view(words[0], history);
  auto queue = must(lightq::Queue::open(
      words[0], options_of("append", words[1], std::strtoull(words[2].c_str(), nullptr, 10))));
  tell_damage(queue.recovery());
  auto reader = must(queue.reader());
  const Offset first = reader.position();
  const std::uint64_t next = read_all(reader, history);
  if (next != queue.next_offset().value) {
    fail(1, "read up to " + std::to_string(next) + " of " + text_of(queue.next_offset()));
  }
  std::string found = "found " + text_of(first) + ' ' + std::to_string(next) +
                      (queue.recovery().clean ? " clean" : " unclean");
  for (const auto& cursor : queue.stats().cursors)
    found += ' ' + cursor.name + '=' + text_of(cursor.committed);
  say(found);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::vector<std::string> words(arguments + std::min(count, 2), arguments + count);
  const std::string verb = count > 1 ? arguments[1] : "";
  if (verb == "write" && words.size() == 7) return write(words);
  if (verb == "check" && words.size() >= 3) return check(words);
  std::fprintf(stderr, "usage: see the head of cut_writer.cpp\n");
  return 2;
}
