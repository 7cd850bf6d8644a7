/// Encodes and decodes the unfinished messages of a cursor. docs/log_format.md, "Cursor file". Layer: log.
#include "log/saved_state/unfinished_code.hpp"

#include <algorithm>
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

std::size_t set_code_bytes_max(const OffsetSet& set) {
  // The head of each leaf has more bytes than the gap between two leaves takes.
  return varint_bytes_max + run_code_bytes_max + set.bytes();
}

std::size_t varint_bytes(std::uint64_t value) {
  std::size_t bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

void append_varint(std::uint64_t value, std::vector<std::byte>& to) {
  std::array<std::byte, varint_bytes_max> bytes{};
  to.insert(to.end(), bytes.data(), store_varint(bytes.data(), value));
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

/// Appends a part of `messages`. A part of the same size is the whole.
void append_part(const OffsetSet& part, const OffsetSet& messages, Offset offset,
                 std::vector<std::byte>& to) {
  assert(part.size() <= messages.size());
  if (!part.empty() && part.size() == messages.size()) return append_varint(all_messages, to);
  append_set(part, offset, to);
}

/// Subtracts memory. Returns false if there is not enough.
bool take_memory(std::size_t bytes, std::size_t& memory_left) {
  if (memory_left < bytes) return false;
  memory_left -= bytes;
  return true;
}

/// Takes a set of messages in [offset, next). Returns `messages` for the mark of all messages; if `messages`
/// is null, the mark is an error.
std::optional<OffsetSet> take_set(ByteView& bytes, Offset offset, Offset next, const OffsetSet* messages,
                                  std::size_t& memory_left) {
  const auto length = take_varint(bytes);
  if (!length) return std::nullopt;
  if (*length == all_messages) {
    if (messages == nullptr || messages->empty()) return std::nullopt;
    return *messages;
  }
  if (*length - 1 > bytes.size()) return std::nullopt;
  ByteView codes = bytes.first(*length - 1);
  bytes = bytes.subspan(*length - 1);
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

/// Returns true if all offsets of `part` are in `whole`. Takes time for each run of both.
bool is_part_of(const OffsetSet& part, const OffsetSet& whole) {
  if (part.shares_all_with(whole)) return true;
  PartOfWhole parts(whole);
  OffsetSet::Runs runs(part);
  while (const auto run = runs.next()) {
    if (!parts.has(*run)) return false;
  }
  return true;
}

bool take_delivery_bits(ByteView& bytes, Offset offset, Unfinished& unfinished, std::size_t& memory_left) {
  const auto count = take_varint(bytes);
  if (!count || *count > Unfinished::delivery_bits_max) return false;
  for (std::uint64_t i = 0; i < *count; ++i) {
    // A vector may have room for twice its elements.
    if (!take_memory(2 * sizeof(OffsetSet), memory_left)) return false;
    auto bit = take_set(bytes, offset, unfinished.next, &unfinished.messages, memory_left);
    if (!bit || !is_part_of(*bit, unfinished.messages)) return false;
    unfinished.delivery_bits.push_back(std::move(*bit));
  }
  return unfinished.delivery_bits.empty() || !unfinished.delivery_bits.back().empty();
}

/// Returns true if all delayed messages are unfinished and in one part only. Merges the parts, so that it
/// takes time for each run, and memory for each part.
bool are_delayed_once(const Unfinished& unfinished) {
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
  runs.reserve(unfinished.delayed.size());
  for (const auto& [due, part] : unfinished.delayed) {
    runs.emplace_back(part);
    push(runs.size() - 1);
  }
  PartOfWhole delayed(unfinished.messages);
  Offset end;
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    if (head.run.begin < end || !delayed.has(head.run)) return false;
    end = head.run.end;
    push(head.part);
  }
  return true;
}

bool take_delayed(ByteView& bytes, Offset offset, Unfinished& unfinished, std::size_t& memory_left) {
  auto count = take_varint(bytes);
  if (!count || *count > Unfinished::delayed_max) return false;
  for (; *count != 0; --*count) {
    Timestamp due;
    const auto step = take_varint(bytes);
    if (!step) return false;
    if (unfinished.delayed.empty()) {
      due.us = static_cast<std::int64_t>(*step);
    } else {
      const std::int64_t last = unfinished.delayed.back().first.us;
      // Unsigned, because the distance of two times may be more than 2^63 - 1.
      due.us = static_cast<std::int64_t>(static_cast<std::uint64_t>(last) + *step);
      if (due.us <= last) return false;
    }
    if (!take_memory(2 * sizeof unfinished.delayed.front(), memory_left)) return false;
    auto part = take_set(bytes, offset, unfinished.next, &unfinished.messages, memory_left);
    if (!part || part->empty()) return false;
    unfinished.delayed.emplace_back(due, std::move(*part));
  }
  return are_delayed_once(unfinished);
}

}  // namespace

std::size_t unfinished_code_bytes_max(const Unfinished& unfinished) {
  std::size_t bytes = 3 * varint_bytes_max + set_code_bytes_max(unfinished.messages);
  for (const OffsetSet& bit : unfinished.delivery_bits) bytes += set_code_bytes_max(bit);
  for (const auto& [due, part] : unfinished.delayed) bytes += varint_bytes_max + set_code_bytes_max(part);
  return bytes;
}

void append_unfinished(const Unfinished& unfinished, Offset offset, std::vector<std::byte>& to) {
  assert(unfinished.delivery_bits.size() <= Unfinished::delivery_bits_max);
  assert(unfinished.delayed.size() <= Unfinished::delayed_max);
  append_varint(distance(offset, std::max(offset, unfinished.next)), to);
  append_set(unfinished.messages, offset, to);
  append_varint(unfinished.delivery_bits.size(), to);
  for (const OffsetSet& bit : unfinished.delivery_bits) append_part(bit, unfinished.messages, offset, to);
  append_varint(unfinished.delayed.size(), to);
  std::uint64_t last = 0;
  for (const auto& [due, part] : unfinished.delayed) {
    const auto time = static_cast<std::uint64_t>(due.us);
    append_varint(time - last, to);
    append_part(part, unfinished.messages, offset, to);
    last = time;
  }
}

std::optional<Unfinished> take_unfinished(ByteView& bytes, Offset offset, std::size_t& memory_left) {
  Unfinished unfinished;
  const auto delivered = take_varint(bytes);
  if (!delivered || *delivered > ~offset.value) return std::nullopt;
  unfinished.next = offset + *delivered;
  auto messages = take_set(bytes, offset, unfinished.next, nullptr, memory_left);
  if (!messages) return std::nullopt;
  unfinished.messages = std::move(*messages);
  if (!take_delivery_bits(bytes, offset, unfinished, memory_left)) return std::nullopt;
  if (!take_delayed(bytes, offset, unfinished, memory_left)) return std::nullopt;
  return unfinished;
}

}  // namespace lightq::log
