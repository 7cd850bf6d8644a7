/// The objects behind the handles of C. Layer: capi.
#pragma once

#include <stop_token>
#include <vector>

#include <lightq/lightq.h>
#include <lightq/client.hpp>
#include <lightq/consumer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>

#include "capi/boundary.hpp"

/// Threads may share it.
struct lightq_client {
  lightq::Client client;
};

struct lightq_producer {
  lightq::Producer producer;
  lightq::Timeout send_timeout{-1};  // that the producer has; -1: not set yet
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
  lightq::capi::Occupant occupant{};
};

struct lightq_watch {
  std::stop_token token;
};
