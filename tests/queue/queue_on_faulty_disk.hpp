/// A test fixture: a queue on a disk in memory that fails on demand.
#pragma once

#include "queue/engine.hpp"
#include "queue/queue_support.hpp"
#include "queue/reader_state.hpp"
#include "support/faulty_storage.hpp"

namespace lightq::test {

/// Waits until `done` is true. Returns false if it is not true within ten seconds.
inline bool eventually(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A queue on a disk in memory. Only its lock is a real file.
class QueueOnFaultyDisk : public QueueTest {
 protected:
  void open_engine(const QueueOptions& options) {
    engine.reset();
    auto opened = queue::Engine::open(directory, options, storage);
    ASSERT_TRUE(opened.ok()) << opened.error().text();
    engine = std::move(*opened);
  }
  [[nodiscard]] std::vector<std::string> read_all() const {
    std::vector<std::string> all;
    queue::ReaderState reader(*engine);
    for (;;) {
      const auto found = reader.find_message();
      if (!found.ok()) {
        ADD_FAILURE() << found.error().text();
        return all;
      }
      if (!*found) return all;
      all.emplace_back(reader.take_message().text());
    }
  }
  [[nodiscard]] Result<Offset> enqueue(const std::string& text) {
    return engine->enqueue(as_byte_view(text));
  }

  FaultyStorage storage;
  std::unique_ptr<queue::Engine> engine;
};

}  // namespace lightq::test
