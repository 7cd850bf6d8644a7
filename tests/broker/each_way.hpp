/// Test parameters: the broker types, and the transports and connection types of sessions.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include <lightq/options.hpp>

namespace lightq::testing {

using Way = std::tuple<BrokerType, Transport, ConnectionType>;

inline auto each_connection() {
  return ::testing::Values(ConnectionType::socket, ConnectionType::zmq);
}
inline std::string connection_name(const ::testing::TestParamInfo<ConnectionType>& tested) {
  return std::string(protocol::to_word(tested.param));
}

inline auto each_way() {
  return ::testing::Combine(::testing::Values(BrokerType::queue, BrokerType::file, BrokerType::queue_file),
                            ::testing::Values(Transport::tcp, Transport::ipc), each_connection());
}
inline std::string way_name(const ::testing::TestParamInfo<Way>& tested) {
  return std::string(protocol::to_word(std::get<BrokerType>(tested.param))) + "_" +
         std::string(protocol::to_word(std::get<Transport>(tested.param))) + "_" +
         std::string(protocol::to_word(std::get<ConnectionType>(tested.param)));
}

}  // namespace lightq::testing
