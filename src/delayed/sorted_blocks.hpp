/// A sorted container of small entries in blocks, with little memory beside them. Layer: delayed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>

namespace lightq::broker {

/// Keeps entries in ascending order of `entry.key()`, which is unique. Inserting, erasing and finding take
/// the time of a binary search and of moving a part of one block of 4 KiB. Entries that are inserted in
/// ascending order fill their blocks. Otherwise two neighbours together fill at least one block, so at least
/// half of the memory holds entries. Erasing the first entries moves no others. Not thread-safe. A Place is
/// valid until the next change.
template <typename Entry>
class SortedBlocks {
 public:
  using Key = decltype(std::declval<const Entry&>().key());
  static constexpr std::size_t block_entries = 4096 / sizeof(Entry);

  /// Names an entry, or the end.
  struct Place {
    std::size_t block = 0;
    std::size_t at = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Returns the heap memory in bytes, without that of the allocator.
  [[nodiscard]] std::size_t memory_bytes() const {
    return blocks_.size() * (sizeof(Block) + sizeof(std::unique_ptr<Block>));
  }

  /// Returns the place of the first entry with this key or a higher one.
  [[nodiscard]] Place lower_bound(const Key& key) const {
    if (blocks_.empty()) return {};
    const std::size_t index = block_of(key);
    const Block& block = *blocks_[index];
    if (!(block.begin()->key() < key)) return {index, 0};
    const auto found = std::partition_point(block.begin(), block.end(),
                                            [&](const Entry& entry) { return entry.key() < key; });
    return normal({index, static_cast<std::size_t>(found - block.begin())});
  }
  /// Returns the place of the last entry with this key or a lower one, or nothing.
  [[nodiscard]] std::optional<Place> at_or_below(const Key& key) const {
    if (empty()) return std::nullopt;
    const std::size_t index = block_of(key);
    const Block& block = *blocks_[index];
    const auto behind = std::partition_point(block.begin(), block.end(),
                                             [&](const Entry& entry) { return !(key < entry.key()); });
    if (behind == block.begin()) return std::nullopt;
    return Place{index, static_cast<std::size_t>(behind - block.begin()) - 1};
  }
  /// Returns the entry at a place, or null at the end.
  [[nodiscard]] const Entry* at(Place place) const {
    return place.block < blocks_.size() ? blocks_[place.block]->begin() + place.at : nullptr;
  }
  /// Returns the entry at a place, to change it; null at the end. Its key must stay between those of its
  /// neighbours.
  [[nodiscard]] Entry* at(Place place) {
    return place.block < blocks_.size() ? blocks_[place.block]->begin() + place.at : nullptr;
  }
  [[nodiscard]] const Entry* find(const Key& key) const {
    const Entry* const found = at(lower_bound(key));
    return found != nullptr && found->key() == key ? found : nullptr;
  }
  [[nodiscard]] Entry* find(const Key& key) { return const_cast<Entry*>(std::as_const(*this).find(key)); }
  [[nodiscard]] const Entry* first() const { return at({}); }
  /// Returns the place behind `place`. Requires: it is not the end.
  [[nodiscard]] Place next(Place place) const { return normal({place.block, place.at + 1}); }

  /// Adds an entry. Requires: there is none with its key. Throws std::bad_alloc; nothing has changed then.
  void insert(const Entry& entry) {
    if (blocks_.empty()) blocks_.push_back(std::make_unique<Block>());
    std::size_t index = block_of(entry.key());
    if (blocks_[index]->count == block_entries) index = make_space(index, entry);
    Block& block = *blocks_[index];
    Entry* const to = std::partition_point(block.begin(), block.end(),
                                           [&](const Entry& each) { return each.key() < entry.key(); });
    *block.make_hole(to) = entry;
    ++size_;
  }
  /// Removes the entry with this key. Returns false if there is none.
  bool erase(const Key& key) {
    const Place place = lower_bound(key);
    const Entry* const found = at(place);
    if (found == nullptr || found->key() != key) return false;
    Block& block = *blocks_[place.block];
    block.remove(block.begin() + place.at);
    --size_;
    shrink(place.block);
    return true;
  }
  void clear() {
    blocks_.clear();
    size_ = 0;
  }

 private:
  struct Block {
    std::uint16_t first = 0;  // the place of the first entry in `entries`
    std::uint16_t count = 0;
    std::array<Entry, block_entries> entries;

    [[nodiscard]] Entry* begin() { return entries.data() + first; }
    [[nodiscard]] const Entry* begin() const { return entries.data() + first; }
    [[nodiscard]] Entry* end() { return begin() + count; }
    [[nodiscard]] const Entry* end() const { return begin() + count; }

    /// Moves the entries before or those from `at` on by one place. Returns the free place. Requires: not
    /// full.
    Entry* make_hole(Entry* at) {
      if (first != 0 && at - begin() < count / 2) {
        std::move(begin(), at, begin() - 1);
        --first;
        ++count;
        return at - 1;
      }
      if (end() == entries.data() + block_entries) {
        std::move(begin(), end(), entries.data());
        at -= std::exchange(first, 0);
      }
      std::move_backward(at, end(), end() + 1);
      ++count;
      return at;
    }
    /// Removes the entry, and moves those before it or those behind it.
    void remove(Entry* at) {
      if (at - begin() < count / 2) {
        std::move_backward(begin(), at, at + 1);
        ++first;
      } else {
        std::move(at + 1, end(), at);
      }
      --count;
    }
    /// Appends all entries of `other`. Requires: they fit.
    void append(const Block& other) {
      std::copy(begin(), end(), entries.begin());
      first = 0;
      std::copy(other.begin(), other.end(), end());
      count = static_cast<std::uint16_t>(count + other.count);
    }
  };

  /// Returns the last block whose first entry is not above the key, or the first block. Begins with the block
  /// of the last call and the one behind it. Requires: there is a block. A block may be empty only if it is
  /// the only one.
  [[nodiscard]] std::size_t block_of(const Key& key) const {
    const auto begins_by = [&](std::size_t block) {
      return block < blocks_.size() && blocks_[block]->count != 0 && !(key < blocks_[block]->begin()->key());
    };
    if (!begins_by(0)) return 0;
    for (std::size_t block = last_block_; block < last_block_ + 2 && begins_by(block); ++block) {
      if (!begins_by(block + 1)) return last_block_ = block;
    }
    const auto behind = std::partition_point(
        blocks_.begin(), blocks_.end(), [&](const auto& block) { return !(key < block->begin()->key()); });
    return last_block_ = static_cast<std::size_t>(behind - blocks_.begin()) - 1;
  }

  [[nodiscard]] Place normal(Place place) const {
    if (place.block < blocks_.size() && place.at == blocks_[place.block]->count) return {place.block + 1, 0};
    return place;
  }

  /// Makes space in or behind a full block. Returns the block for the entry. A last block stays full if all
  /// of its entries are lower.
  std::size_t make_space(std::size_t index, const Entry& entry) {
    const auto after = blocks_.begin() + static_cast<std::ptrdiff_t>(index) + 1;
    auto made = std::make_unique<Block>();
    Block& full = *blocks_[index];
    const bool is_behind = (full.end() - 1)->key() < entry.key();
    if (after == blocks_.end() && is_behind) {
      blocks_.push_back(std::move(made));
      return index + 1;
    }
    constexpr std::size_t half = block_entries / 2;
    Block& fresh = **blocks_.insert(after, std::move(made));
    Block& former = *blocks_[index];
    std::copy(former.begin() + half, former.end(), fresh.begin());
    fresh.count = static_cast<std::uint16_t>(block_entries - half);
    former.count = half;
    return entry.key() < fresh.begin()->key() ? index : index + 1;
  }

  /// Removes an empty block, and merges a block with a neighbour if they fit into one.
  void shrink(std::size_t index) {
    const auto here = blocks_.begin() + static_cast<std::ptrdiff_t>(index);
    if (blocks_[index]->count == 0) {
      blocks_.erase(here);
      return;
    }
    if (block_entries / 2 < blocks_[index]->count) return;
    if (index + 1 < blocks_.size() && fit(index)) return merge(index);
    if (index != 0 && fit(index - 1)) merge(index - 1);
  }
  [[nodiscard]] bool fit(std::size_t index) const {
    return blocks_[index]->count + blocks_[index + 1]->count <= block_entries;
  }
  void merge(std::size_t index) {
    blocks_[index]->append(*blocks_[index + 1]);
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(index) + 1);
  }

  // None is empty. A deque, because blocks come and go mostly near the ends: of ten million entries a vector
  // would move up to 80,000 pointers each time.
  std::deque<std::unique_ptr<Block>> blocks_;
  mutable std::size_t last_block_ = 0;  // found by the last search; any number
  std::size_t size_ = 0;
};

}  // namespace lightq::broker
