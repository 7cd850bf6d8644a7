/// The objects behind the handles of C. Layer: capi.
#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <lightq/lightq.h>
#include <lightq/client.hpp>
#include <lightq/consumer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>

#include "capi/boundary.hpp"
#include "capi/conversions.hpp"
#include "capi/fetched_messages.hpp"
#include "capi/kept_reports.hpp"

/// Threads may share it.
struct lightq_client {
  lightq::Client client;
};

struct lightq_producer {
  lightq::Producer producer;
  lightq::Timeout send_timeout{-1};  // that the producer has; -1: not set yet
  lightq::capi::KeptReports reports{};
  std::string told{};  // the text of the report taken last
  lightq::capi::Occupant occupant{};
};

struct lightq_consumer {
  lightq::Consumer consumer;
  const lightq::SessionSettling* holder = nullptr;  // of the messages received; null without leases
  std::vector<lightq::OffsetRange> late{};          // taken from the consumer, and not yet by the program
  lightq::capi::Occupant occupant{};
};

struct lightq_reader {
  lightq::Reader reader;
  lightq::capi::FetchedMessages fetched{};
  lightq::capi::Occupant occupant{};
};

struct lightq_watch {
  std::stop_token token;
};

namespace lightq::capi {

/// Opens a producer, consumer or reader: `make(client, topic, opening)` returns the C++ object. `*handle` is
/// null after an error.
template <typename Options, typename Handle, typename Make>
int open_handle(lightq_client* client, const char* topic, const Options* options, Handle** handle,
                const Make& make) {
  if (handle == nullptr) return fail_argument("there is no place for the handle");
  *handle = nullptr;
  if (client == nullptr) return fail_null_handle();
  if (topic == nullptr) return fail_argument("the topic is null");
  return guarded([&]() -> int {
    auto opening = opening_of(options);
    if (!opening) return fail(opening.error());
    auto made = make(client->client, topic, *opening);
    if (!made) return fail(made.error());
    *handle = new Handle{std::move(*made)};
    return LIGHTQ_OK;
  });
}

}  // namespace lightq::capi
