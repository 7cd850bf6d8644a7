/// A small program that makes every system call that a queue can make. The test lets each of them fail.
/// Usage:
///   fault_program DIRECTORY POLICY
///
/// Appends, flushes, begins segments, consumes, drops, recycles and closes, and then does it all again with
/// the existing queue. After an error the program reports it and continues with its next operation, as a
/// user's program would. It writes one line for each event to standard output, as cut_writer.cpp does, and
/// also:
///   committed NAME OFFSET    survives the end of the process from now on
///   error WHAT               the queue returned this error
///   damage                   was found when the queue was opened
///   done                     the last line
/// Exit code 3: there were errors.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include <lightq/queue.hpp>

#include "powercut/cut_messages.hpp"

namespace {

constexpr int rounds = 2;
constexpr int messages_per_round = 36;
int errors = 0;

void say(const std::string& line) {
  const std::string text = line + '\n';
  if (::write(STDOUT_FILENO, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::_Exit(4);
}

template <typename Value>
bool tell(const lightq::Result<Value>& result) {
  if (result) return true;
  ++errors;
  say("error " + result.error().text());
  return false;
}

lightq::QueueOptions options_of(const std::string& policy) {
  lightq::QueueOptions options;
  options.segment_bytes = 4096;
  options.recycled_files_max = 2;
  if (policy == "append") options.flush = lightq::FlushPolicy::every_append();
  if (policy == "messages") options.flush = lightq::FlushPolicy::every_messages(5);
  return options;
}

void append(lightq::Queue& queue) {
  const std::uint64_t next = queue.next_offset().value;
  say("will " + std::to_string(next + 1));
  if (tell(queue.enqueue(lightq::test::cut_message(1, next)))) {
    say("has " + std::to_string(queue.next_offset().value));
  }
  say("durable " + std::to_string(queue.durable_offset().value));
}

void consume(lightq::QueueCursor& cursor) {
  const auto messages = cursor.next_batch(5);
  if (!tell(messages) || messages->empty()) return;
  const std::string place = cursor.name() + ' ' + std::to_string(cursor.reader().position().value);
  say("commits " + place);
  cursor.commit();
  say("committed " + place);
}

void flush(lightq::Queue& queue, const std::optional<lightq::QueueCursor>& cursor) {
  const std::uint64_t next = queue.next_offset().value;
  const std::uint64_t committed = cursor ? cursor->committed().value : 0;
  if (!tell(queue.flush())) return;
  say("durable " + std::to_string(next));
  if (cursor) say("flushed " + cursor->name() + ' ' + std::to_string(committed));
}

void run_round(const std::string& directory, const std::string& policy) {
  auto queue = lightq::Queue::open(directory, options_of(policy));
  if (!tell(queue)) return;
  if (!queue->recovery().damaged.empty()) say("damage");
  std::optional<lightq::QueueCursor> cursor;
  for (int i = 0; i < messages_per_round; ++i) {
    append(*queue);
    if (i % 4 == 3 && !cursor) {
      auto opened = queue->cursor("c");
      if (tell(opened)) cursor.emplace(std::move(*opened));
    }
    if (i % 4 == 3 && cursor) consume(*cursor);
    if (i % 12 == 11) flush(*queue, cursor);
  }
  cursor.reset();
  const std::uint64_t next = queue->next_offset().value;
  if (tell(queue->close())) say("durable " + std::to_string(next));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: see the head of fault_program.cpp\n");
    return 2;
  }
  for (int round = 0; round < rounds; ++round) run_round(arguments[1], arguments[2]);
  say("done");
  return errors == 0 ? 0 : 3;
}
