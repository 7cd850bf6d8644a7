/// Owns a topic's store, and passes it on at the end. Layer: store.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "store/topic_store.hpp"

namespace lightq::broker {

/// Owns a topic's store. When it is destroyed, it passes the store to the receiver, if there is one.
struct StoreHolder {
  using Receiver = std::function<void(std::unique_ptr<TopicStore>)>;

  explicit StoreHolder(std::unique_ptr<TopicStore> held) : store(std::move(held)) {}
  StoreHolder(const StoreHolder&) = delete;
  StoreHolder& operator=(const StoreHolder&) = delete;
  ~StoreHolder() {
    if (receiver) receiver(std::move(store));
  }

  std::unique_ptr<TopicStore> store;
  Receiver receiver;
};

}  // namespace lightq::broker
