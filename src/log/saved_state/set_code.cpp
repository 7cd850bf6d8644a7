/// Encodes and decodes sets of offsets. docs/log_format.md, "Cursor file". Layer: log.
#include "log/saved_state/set_code.hpp"

#include <array>
#include <cassert>
#include <cstring>
#include <queue>
#include <utility>

#include "log/offsets/offset_set_builder.hpp"
#include "log/offsets/run_code.hpp"

namespace lightq::log {

namespace {

constexpr std::uint64_t all_messages = 0;  // in place of a length: the set has all unfinished messages

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

/// Takes the codes of a set, of which the length plus 1 is `length`.
std::optional<OffsetSet> take_codes(ByteView& bytes, std::uint64_t length, Offset offset, Offset next,
                                    std::size_t& memory_left) {
  if (length - 1 > bytes.size()) return std::nullopt;
  ByteView codes = bytes.first(length - 1);
  bytes = bytes.subspan(length - 1);
  OffsetSetBuilder builder;
  Offset before = offset;
  bool is_first = true;
  while (!codes.empty()) {
    const auto run = take_run(codes, before, next);
    const bool touches = run && !is_first && run->begin == before;
    if (!run || touches) return std::nullopt;
    builder.append(*run);
    before = run->end;
    is_first = false;
  }
  OffsetSet set = builder.finish();
  if (!take_memory(set.bytes(), memory_left)) return std::nullopt;
  return set;
}

/// Answers for ascending runs if they are in a set.
class PartOfWhole {
 public:
  /// Lifetime: the set outlives this.
  explicit PartOfWhole(const OffsetSet& whole) : runs_(whole), around_(runs_.next()) {}

  /// Returns true if all of `run` is in the set. Requires: `run` begins behind those asked for before.
  bool has(OffsetRange run) {
    while (around_ && around_->end <= run.begin) around_ = runs_.next();
    return around_ && around_->begin <= run.begin && run.end <= around_->end;
  }

 private:
  OffsetSet::Runs runs_;
  std::optional<OffsetRange> around_;
};

}  // namespace

void append_varint(std::uint64_t value, std::vector<std::byte>& to) {
  std::array<std::byte, varint_bytes_max> bytes{};
  to.insert(to.end(), bytes.data(), store_varint(bytes.data(), value));
}

std::size_t set_code_bytes_max(const OffsetSet& set) {
  // The head of each leaf has more bytes than the gap between two leaves takes.
  return varint_bytes_max + run_code_bytes_max + set.bytes();
}

/// Appends the length of the codes plus 1, then the codes.
void append_set(const OffsetSet& set, Offset before, std::vector<std::byte>& to) {
  const std::size_t at = to.size();
  to.resize(at + set_code_bytes_max(set));
  // The codes are written behind the longest length that is possible, and mostly stay there.
  const std::size_t length_bytes = varint_bytes(set_code_bytes_max(set));
  std::byte* const codes = to.data() + at + length_bytes;
  std::byte* end = codes;
  set.for_each([&](OffsetRange run) {
    end = store_run(end, before, run);
    before = run.end;
  });
  const auto size = static_cast<std::size_t>(end - codes);
  std::byte* const behind_length = store_varint(to.data() + at, size + 1);
  if (behind_length != codes) std::memmove(behind_length, codes, size);
  to.resize(static_cast<std::size_t>(behind_length - to.data()) + size);
}

void append_part(const OffsetSet& part, const OffsetSet& messages, Offset offset,
                 std::vector<std::byte>& to) {
  assert(part.size() <= messages.size());
  if (!part.empty() && part.size() == messages.size()) return append_varint(all_messages, to);
  append_set(part, offset, to);
}

void append_timed_parts(const TimedSets& parts, const OffsetSet& messages, Offset offset,
                        std::vector<std::byte>& to) {
  append_varint(parts.size(), to);
  std::uint64_t last = 0;
  for (const auto& [time, part] : parts) {
    const auto here = static_cast<std::uint64_t>(time.us);
    append_varint(here - last, to);
    append_part(part, messages, offset, to);
    last = here;
  }
}

bool take_memory(std::size_t bytes, std::size_t& memory_left) {
  if (memory_left < bytes) return false;
  memory_left -= bytes;
  return true;
}

std::optional<OffsetSet> take_set(ByteView& bytes, Offset offset, Offset next, std::size_t& memory_left) {
  const auto length = take_varint(bytes);
  if (!length || *length == all_messages) return std::nullopt;
  return take_codes(bytes, *length, offset, next, memory_left);
}

std::optional<OffsetSet> take_part(ByteView& bytes, const SetBounds& bounds, std::size_t& memory_left) {
  const auto length = take_varint(bytes);
  if (!length) return std::nullopt;
  if (*length == all_messages) {
    if (bounds.messages.empty()) return std::nullopt;
    return bounds.messages;
  }
  auto part = take_codes(bytes, *length, bounds.offset, bounds.next, memory_left);
  if (!part || !is_part_of(*part, bounds.messages)) return std::nullopt;
  return part;
}

std::optional<TimedSets> take_timed_parts(ByteView& bytes, const SetBounds& bounds, std::size_t times_max,
                                          std::size_t& memory_left) {
  TimedSets parts;
  auto count = take_varint(bytes);
  if (!count || *count > times_max) return std::nullopt;
  for (; *count != 0; --*count) {
    Timestamp time;
    const auto step = take_varint(bytes);
    if (!step) return std::nullopt;
    if (parts.empty()) {
      time.us = static_cast<std::int64_t>(*step);
    } else {
      const std::int64_t last = parts.back().first.us;
      // Unsigned, because the distance of two times may be more than 2^63 - 1.
      time.us = static_cast<std::int64_t>(static_cast<std::uint64_t>(last) + *step);
      if (time.us <= last) return std::nullopt;
    }
    // A vector may have room for twice its elements.
    if (!take_memory(2 * sizeof parts.front(), memory_left)) return std::nullopt;
    auto part = take_part(bytes, bounds, memory_left);
    if (!part || part->empty()) return std::nullopt;
    parts.emplace_back(time, std::move(*part));
  }
  if (!are_parts_once(parts, bounds.messages)) return std::nullopt;
  return parts;
}

bool is_part_of(const OffsetSet& part, const OffsetSet& whole) {
  // Looking up a run takes about as long as passing this many. So the time depends on the part's runs only,
  // however large `whole` is: a file may have 65,536 parts.
  constexpr std::size_t passed_per_run = 256;
  if (part.shares_all_with(whole)) return true;
  OffsetSet::Runs runs(part);
  OffsetSet::Runs whole_runs(whole);
  std::optional<OffsetRange> around = whole_runs.next();
  std::size_t may_pass = 0;
  bool looks_up = false;
  while (const auto run = runs.next()) {
    may_pass += passed_per_run;
    while (!looks_up && around && around->end <= run->begin) {
      around = whole_runs.next();
      looks_up = --may_pass == 0;
    }
    if (looks_up) around = whole.first_behind(run->begin);
    if (!around || run->begin < around->begin || around->end < run->end) return false;
  }
  return true;
}

bool are_parts_once(const TimedSets& parts, const OffsetSet& whole) {
  struct Head {
    OffsetRange run;
    std::size_t part = 0;
    bool operator<(const Head& other) const { return other.run.begin < run.begin; }  // the lowest comes first
  };
  std::vector<OffsetSet::Runs> runs;
  std::priority_queue<Head> heads;
  const auto push = [&](std::size_t part) {
    if (const auto run = runs[part].next()) heads.push({*run, part});
  };
  runs.reserve(parts.size());
  for (const auto& [due, part] : parts) {
    runs.emplace_back(part);
    push(runs.size() - 1);
  }
  PartOfWhole whole_runs(whole);
  Offset end;
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    if (head.run.begin < end || !whole_runs.has(head.run)) return false;
    end = head.run.end;
    push(head.part);
  }
  return true;
}

}  // namespace lightq::log
