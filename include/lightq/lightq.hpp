/// Everything a program needs to use LightQ: include this one. Layer: client.
/// Needs cppzmq and nlohmann/json; link lightq::client, or -lzmq.
///
/// producer.hpp, consumer.hpp, plain_producer.hpp and plain_consumer.hpp may be included alone where a Client
/// is at hand: they do not include JSON, and the former two not ZeroMQ.
#pragma once

#include <lightq/base/error.hpp>
#include <lightq/base/result.hpp>
#include <lightq/base/types.hpp>
#include <lightq/client.hpp>
#include <lightq/consumer.hpp>
#include <lightq/message.hpp>
#include <lightq/options.hpp>
#include <lightq/plain_consumer.hpp>
#include <lightq/plain_producer.hpp>
#include <lightq/producer.hpp>
#include <lightq/reader.hpp>
#include <lightq/version.hpp>
