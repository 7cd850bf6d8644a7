/// Owns a topic's store, and gives it to an heir at the end. Layer: store.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "store/topic_store.hpp"

namespace lightq::broker {

/// Owns a topic's store. When it is destroyed, it passes the store to the heir, if there is one.
struct StoreHolder {
  using Heir = std::function<void(std::unique_ptr<TopicStore>)>;

  explicit StoreHolder(std::unique_ptr<TopicStore> held) : store(std::move(held)) {}
  StoreHolder(const StoreHolder&) = delete;
  StoreHolder& operator=(const StoreHolder&) = delete;
  ~StoreHolder() {
    if (heir) heir(std::move(store));
  }

  std::unique_ptr<TopicStore> store;
  Heir heir;
};

}  // namespace lightq::broker
