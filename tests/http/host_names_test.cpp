/// Tests of the checks of Host and Origin.
#include "http/host_names.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lightq::broker {

namespace {

unsigned status(const std::string& host, const std::string& origin = {}) {
  const HostNames names({"broker.example", "Own"});
  HttpRequest request;
  request.host = host;
  request.origin = origin;
  const auto refusal = names.refusal_of(request);
  return refusal ? refusal->status : 200;
}

TEST(HostNames, AddressesAndKnownNamesAreAccepted) {
  for (const char* host : {"127.0.0.1", "127.0.0.1:5001", "[::1]:5001", "[::1]", "localhost", "LOCALHOST:1",
                           "a.localhost", "broker.example", "Broker.Example:80", "own", "192.168.7.7:5001"})
    EXPECT_EQ(status(host), 200U) << host;
}

TEST(HostNames, OtherNamesAreMisdirected) {
  for (const char* host :
       {"evil.example", "broker.example.evil", "xbroker.example", "localhost.evil", "127.0.0.1.evil:5001"})
    EXPECT_EQ(status(host), 421U) << host;
}

TEST(HostNames, WhatIsNoHostIsRefused) {
  for (const char* host : {"", ":80", "a b", "a@b", "host:", "host:x", "host:123456", "[::1", "[::1]x", "[x]",
                           "h/", "h\n", "\xC3\xA4"})
    EXPECT_EQ(status(host), 400U) << host;
}

TEST(HostNames, OnlyThePagesOfThisBrokerMayAsk) {
  EXPECT_EQ(status("127.0.0.1:5001", "http://127.0.0.1:5001"), 200U);
  EXPECT_EQ(status("Own:5001", "https://own:5001"), 200U);
  for (const char* origin : {"http://evil.example", "http://127.0.0.1", "http://127.0.0.1:5001.evil", "null",
                             "127.0.0.1:5001", "ftp://127.0.0.1:5001"})
    EXPECT_EQ(status("127.0.0.1:5001", origin), 403U) << origin;
}

}  // namespace

}  // namespace lightq::broker
