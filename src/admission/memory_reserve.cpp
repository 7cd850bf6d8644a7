/// Keeps the pieces of the memory reserve and installs the new-handler that frees them. Layer: admission.
#include "admission/memory_reserve.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>

namespace lightq::broker {

namespace {

/// The pieces of the reserve. They come from malloc, so a freed piece serves allocations of every thread,
/// even when the address space is used up.
struct Pieces {
  std::mutex mutex;
  std::array<void*, MemoryReserve::pieces_max> pieces{};  // guarded by mutex
  std::size_t count = 0;                                  // guarded by mutex
  std::atomic<std::size_t> known_count = 0;               // a copy of count, to read without the mutex
};

Pieces& pieces() {
  static Pieces all;
  return all;
}

/// Takes a piece out of the reserve. Returns null if the reserve is empty.
void* take_piece() {
  Pieces& all = pieces();
  const std::lock_guard lock(all.mutex);
  if (all.count == 0) return nullptr;
  all.known_count = --all.count;
  return all.pieces[all.count];
}

/// Writes the text to standard error. Allocates nothing.
void say(std::string_view text) {
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
}

/// Handles std::terminate: writes the reason to standard error and ends the process.
[[noreturn]] void end_by_exception() {
  if (const auto failure = std::current_exception()) {
    try {
      std::rethrow_exception(failure);
    } catch (const std::bad_alloc&) {
      MemoryReserve::give_up();
    } catch (const std::exception& error) {
      say("lightq broker: aborting after an unexpected failure: ");
      say(error.what());
      say("\n");
    } catch (...) {
      say("lightq broker: aborting after an unexpected failure\n");
    }
  }
  std::abort();
}

}  // namespace

void MemoryReserve::install() {
  pieces();
  std::set_new_handler(&MemoryReserve::find_memory);
  std::set_terminate(&end_by_exception);
  refill();
}

void MemoryReserve::refill() {
  Pieces& all = pieces();
  if (all.known_count == pieces_max || std::get_new_handler() != &MemoryReserve::find_memory) return;
  const std::lock_guard lock(all.mutex);
  while (all.count < pieces_max) {
    void* const piece = std::malloc(piece_bytes);
    if (piece == nullptr) break;
    all.pieces[all.count++] = piece;
  }
  all.known_count = all.count;
}

bool MemoryReserve::is_low() {
  return std::get_new_handler() == &MemoryReserve::find_memory && pieces().known_count < pieces_max / 2;
}

void MemoryReserve::give_up() {
  say("lightq broker: aborting, because the system gives it no more memory: raise the limit of its address "
      "space or of its memory, or lower the settings that limit its use of memory\n");
  std::abort();
}

void MemoryReserve::find_memory() {
  if (fallible_ > 0) throw std::bad_alloc();
  void* const piece = take_piece();
  if (piece == nullptr) give_up();
  used_ = true;
  std::free(piece);
}

}  // namespace lightq::broker
