/// A bounded queue in which no user takes the share of another. Layer: admission.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <list>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace lightq::broker {

/// A bounded queue that many users share. Each item has a `source`, a `name` and a flag `doubtful`. Sources
/// take turns, and within a source its names do. If a source or the whole queue has too many items, one is
/// removed: the newest of the name with most items, or of the new item's name on a tie. A full queue removes
/// it from the source with most items. Doubtful names and others form two classes in a source. Only the class
/// that has more than half of the source's places loses an item. One thread; no clock.
template <typename Item>
class FairQueue {
 public:
  explicit FairQueue(std::size_t items_max) : items_max_(items_max) {}

  /// The items that were removed to make room. The pushed item may be among them.
  struct Gone {
    std::vector<Item> of_source;  ///< removed because their source had too many
    std::vector<Item> of_all;     ///< removed because the queue was full
  };
  /// Adds an item. `source_max`: the number of items that its source may have.
  Gone push(Item item, std::size_t source_max) {
    const auto source = source_of(item.source);
    const auto name = name_of(*source, item.name, item.doubtful);
    name->items.push_back(std::move(item));
    ++source->size;
    ++size_;
    const Name* const comes = &*name;
    Gone gone;
    while (source->size > source_max) gone.of_source.push_back(remove_newest(source, comes, source_max));
    if (size_ > items_max_) {
      const auto fullest = std::ranges::max_element(sources_, {}, &Source::size);
      const auto from = fullest->size == source->size ? source : fullest;
      gone.of_all.push_back(remove_newest(from, comes, from->size - 1));
    }
    return gone;
  }

  /// Removes and returns the first item of the next source for which `ready` returns true.
  template <typename Ready>
  std::optional<Item> take(Ready ready) {
    const auto source =
        std::ranges::find_if(sources_, [&](const Source& each) { return ready(each.source); });
    if (source == sources_.end()) return std::nullopt;
    const auto name = source->names.begin();
    Item item = std::move(name->items.front());
    name->items.pop_front();
    source->names.splice(source->names.end(), source->names, name);
    sources_.splice(sources_.end(), sources_, source);
    --source->size;
    --size_;
    tidy(source, name);
    return item;
  }

  /// Removes and returns all items for which `meant` returns true, in no order.
  template <typename Meant>
  std::vector<Item> extract_if(Meant meant) {
    std::vector<Item> found;
    for (auto source = sources_.begin(); source != sources_.end();) {
      const auto next_source = std::next(source);
      for (auto name = source->names.begin(); name != source->names.end();) {
        const auto next_name = std::next(name);
        const auto moved = std::stable_partition(name->items.begin(), name->items.end(),
                                                 [&](const Item& each) { return !meant(each); });
        const auto count = static_cast<std::size_t>(name->items.end() - moved);
        std::move(moved, name->items.end(), std::back_inserter(found));
        name->items.erase(moved, name->items.end());
        source->size -= count;
        size_ -= count;
        const bool last = source->size == 0;
        tidy(source, name);
        if (last) break;
        name = next_name;
      }
      source = next_source;
    }
    return found;
  }

  /// Marks the name's items that wait for the source as doubtful.
  void doubt(const std::string& source, const std::string& name) {
    const auto found = by_source_.find(source);
    if (found == by_source_.end()) return;
    const auto of_name = std::ranges::find(found->second->names, name, &Name::name);
    if (of_name != found->second->names.end()) of_name->doubtful = true;
  }

  /// Calls `each` with every source that has items.
  template <typename Each>
  void for_each_source(Each each) const {
    for (const Source& source : sources_) each(source.source);
  }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Name {
    std::string name;
    bool doubtful = false;
    std::deque<Item> items;
  };
  struct Source {
    std::string source;
    std::list<Name> names;  // the next to take its turn is first
    std::size_t size = 0;
  };
  using Sources = std::list<Source>;  // the next to take its turn is first

  typename Sources::iterator source_of(const std::string& source) {
    if (const auto found = by_source_.find(source); found != by_source_.end()) return found->second;
    const auto added = sources_.insert(sources_.end(), Source{source, {}, 0});
    by_source_.emplace(source, added);
    return added;
  }

  static typename std::list<Name>::iterator name_of(Source& source, const std::string& name, bool doubtful) {
    auto found = std::ranges::find(source.names, name, &Name::name);
    if (found == source.names.end()) found = source.names.insert(found, Name{name, doubtful, {}});
    found->doubtful = found->doubtful || doubtful;
    return found;
  }

  /// Removes the newest item of the name that has most. `comes`: the name of the new item, which is chosen on
  /// a tie.
  Item remove_newest(typename Sources::iterator source, const Name* comes, std::size_t source_max) {
    std::size_t doubtful = 0;
    for (const Name& each : source->names) doubtful += each.doubtful ? each.items.size() : 0;
    const bool from = doubtful > source_max / 2;  // otherwise the other class has more than half
    const auto rank = [&](const Name& each) {
      return std::tuple(each.doubtful == from, each.items.size(), &each == comes);
    };
    const auto heaviest = std::ranges::max_element(source->names, {}, rank);
    Item item = std::move(heaviest->items.back());
    heaviest->items.pop_back();
    --source->size;
    --size_;
    tidy(source, heaviest);
    return item;
  }

  void tidy(typename Sources::iterator source, typename std::list<Name>::iterator name) {
    if (name->items.empty()) source->names.erase(name);
    if (source->size > 0) return;
    by_source_.erase(source->source);
    sources_.erase(source);
  }

  const std::size_t items_max_;
  std::size_t size_ = 0;
  Sources sources_;
  std::unordered_map<std::string, typename Sources::iterator> by_source_;
};

}  // namespace lightq::broker
