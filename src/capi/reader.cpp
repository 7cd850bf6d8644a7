/// The reader of C, and the headers of messages. Layer: capi.
#include <algorithm>
#include <cstdint>
#include <new>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>

#include "capi/boundary.hpp"
#include "capi/conversions.hpp"
#include "capi/handles.hpp"
#include "capi/sized.hpp"

namespace lightq::capi {

namespace {

lightq_header header_of(const Header& header) {
  return {header.name.data(), header.name.size(), header.value.data(), header.value.size()};
}

/// Reads a range; `bytes_max` 0: as much as the broker allows.
Result<Offset> read(lightq_reader& of, std::uint64_t begin, std::uint64_t end, std::uint64_t bytes_max,
                    const Reader::Handle& handle, int timeout_ms) {
  const std::uint64_t most =
      bytes_max == 0 ? limits::read_bytes_max : std::min<std::uint64_t>(bytes_max, limits::read_bytes_max);
  return of.reader.read({{begin}, {end}}, most, handle, timeout_of(timeout_ms));
}

/// Sets `*next` to where a read continues, unless it is null. Returns the code of a read that failed.
int give_next(const Result<Offset>& done, std::uint64_t* next) {
  if (!done) return fail(done.error());
  if (next != nullptr) *next = done->value;
  return LIGHTQ_OK;
}

}  // namespace

}  // namespace lightq::capi

using namespace lightq::capi;

extern "C" {

size_t lightq_message_headers(const lightq_message* message, lightq_header* headers, size_t most) {
  if (!is_sized(message)) return 0;
  const auto all = headers_of(*message);
  std::size_t copied = 0;
  for (const lightq::Header header : all) {
    if (headers == nullptr || copied == most) break;
    headers[copied++] = header_of(header);
  }
  return all.size();
}

int lightq_message_header(const lightq_message* message, const char* name, lightq_header* header) {
  if (!is_sized(message) || name == nullptr || header == nullptr) return 0;
  for (const lightq::Header found : headers_of(*message)) {
    if (found.name != name) continue;
    *header = header_of(found);
    return 1;
  }
  return 0;
}

int lightq_reader_open(lightq_client* client, const char* topic, const lightq_reader_options* options,
                       lightq_reader** reader) {
  return open_handle(client, topic, options, reader, [](auto& of, const char* name, auto& opening) {
    return of.reader(name, std::move(opening.options), opening.transport);
  });
}

int lightq_read(lightq_reader* reader, uint64_t begin, uint64_t end, uint64_t bytes_max,
                lightq_message_callback callback, void* user, uint64_t* next, int timeout_ms) {
  return in_turn(reader, [&](lightq_reader& of) -> int {
    if (callback == nullptr) return fail_argument("the callback is null");
    if (begin > end) return fail_argument("the range ends before it begins");
    bool threw = false;  // the reader itself must not be left by an exception
    const auto pass = [&](const lightq::Delivered& delivered) {
      if (threw) return;
      lightq_message message = LIGHTQ_MESSAGE_INIT;
      write_message(delivered, message);
      try {
        call_back([&] { callback(user, &message); });
      } catch (const CallbackThrew&) {
        threw = true;
      }
    };
    const auto done = read(of, begin, end, bytes_max, pass, timeout_ms);
    if (threw) throw CallbackThrew();
    return give_next(done, next);
  });
}

int lightq_fetch(lightq_reader* reader, uint64_t begin, uint64_t end, uint64_t bytes_max, uint64_t* next,
                 int timeout_ms) {
  return in_turn(reader, [&](lightq_reader& of) -> int {
    if (begin > end) return fail_argument("the range ends before it begins");
    of.fetched.clear();
    bool is_full = false;  // this process has no memory for a copy
    const auto keep = [&](const lightq::Delivered& delivered) {
      if (is_full) return;
      try {
        of.fetched.add(delivered);
      } catch (const std::bad_alloc&) {
        is_full = true;
      }
    };
    const auto done = read(of, begin, end, bytes_max, keep, timeout_ms);
    if (done && !is_full) return give_next(done, next);
    of.fetched.clear();
    if (is_full) throw std::bad_alloc();
    return fail(done.error());
  });
}

int lightq_next_fetched(lightq_reader* reader, lightq_message* message) {
  return in_turn(reader, [&](lightq_reader& of) -> int {
    if (!is_sized(message)) return fail_argument("lightq_message is null, or its size is that of no version");
    const lightq::Delivered* const taken = of.fetched.take();
    if (taken == nullptr) return fail(LIGHTQ_TIMEOUT, "no message is left");
    write_sized(*message, [&](lightq_message& to) { write_message(*taken, to); });
    return LIGHTQ_OK;
  });
}

int lightq_reader_free(lightq_reader* reader) {
  return free_handle(reader);
}
}
