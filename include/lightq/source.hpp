/// Defines what the client's headers declare, for programs with LIGHTQ_SEPARATE_COMPILATION: one source file
/// of the program includes this header (see base/separate.hpp). Other headers of the library may come before
/// it, as in a precompiled header. Without that macro it includes the library like any other header. Layer:
/// client.
#pragma once

#include <lightq/lightq.hpp>

#include <lightq/impl/base/private_file.hpp>
#include <lightq/impl/client.hpp>
#include <lightq/impl/client_connector.hpp>
#include <lightq/impl/client_key_file.hpp>
#include <lightq/impl/client_state.hpp>
#include <lightq/impl/consumer.hpp>
#include <lightq/impl/consumer_driver.hpp>
#include <lightq/impl/consumer_options.hpp>
#include <lightq/impl/control/delayed_control.hpp>
#include <lightq/impl/control/json_control.hpp>
#include <lightq/impl/control_connection.hpp>
#include <lightq/impl/curve_identity.hpp>
#include <lightq/impl/data_socket.hpp>
#include <lightq/impl/discovery.hpp>
#include <lightq/impl/exposure.hpp>
#include <lightq/impl/fifo_memory.hpp>
#include <lightq/impl/group_control.hpp>
#include <lightq/impl/plain_consumer.hpp>
#include <lightq/impl/plain_producer.hpp>
#include <lightq/impl/producer.hpp>
#include <lightq/impl/producer_driver.hpp>
#include <lightq/impl/producer_options.hpp>
#include <lightq/impl/protocol/json_local_files.hpp>
#include <lightq/impl/protocol/json_reply.hpp>
#include <lightq/impl/protocol/json_request.hpp>
#include <lightq/impl/protocol/json_schema.hpp>
#include <lightq/impl/reader.hpp>
#include <lightq/impl/reader_options.hpp>
#include <lightq/impl/request_credentials.hpp>
#include <lightq/impl/running_broker.hpp>
#include <lightq/impl/session_batches.hpp>
#include <lightq/impl/session_clock.hpp>
#include <lightq/impl/session_consume_link.hpp>
#include <lightq/impl/session_produce_link.hpp>
#include <lightq/impl/socket_monitor.hpp>
#include <lightq/impl/unsent_messages.hpp>
#include <lightq/impl/zmq_room.hpp>
#include <lightq/impl/zmq_socket.hpp>
