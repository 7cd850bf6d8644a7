/// The kinds of topics that keep messages, each over both transports, as the parameters of a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include <lightq/options.hpp>

namespace lightq::testing {

using Way = std::tuple<BrokerType, Transport>;

inline auto each_way() {
  return ::testing::Combine(::testing::Values(BrokerType::queue, BrokerType::file, BrokerType::queue_file),
                            ::testing::Values(Transport::tcp, Transport::ipc));
}

inline std::string way_name(const ::testing::TestParamInfo<Way>& tested) {
  return std::string(protocol::to_word(std::get<BrokerType>(tested.param))) + "_" +
         std::string(protocol::to_word(std::get<Transport>(tested.param)));
}

}  // namespace lightq::testing
