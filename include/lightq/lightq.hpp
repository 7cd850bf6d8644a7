/// Includes everything that a program needs to use LightQ. Layer: client.
/// Needs cppzmq, nlohmann/json, OpenSSL, LZ4 and Zstandard. Link lightq::client, or lightq::separate
/// (base/separate.hpp).
///
/// A source file that gets a Client or its objects from elsewhere may include producer.hpp, consumer.hpp,
/// reader.hpp, plain_producer.hpp or plain_consumer.hpp alone. None of these includes JSON. With
/// LIGHTQ_SEPARATE_COMPILATION the former three include neither ZeroMQ nor OpenSSL.
#pragma once

#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/broker_control.hpp>
#include <lightq/client.hpp>
#include <lightq/consumer.hpp>
#include <lightq/delayed_control.hpp>
#include <lightq/group_control.hpp>
#include <lightq/json_control.hpp>
#include <lightq/message.hpp>
#include <lightq/options.hpp>
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>
#include <lightq/schedule_control.hpp>
#include <lightq/version.hpp>
