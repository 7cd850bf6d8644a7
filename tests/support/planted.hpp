/// Passwords, tickets and payloads of the C++ tests that must appear in no output. scripts/test extracts the
/// texts from this file and searches the output of the whole suite for them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace lightq::planted {

// One text between quotation marks on each line.
inline constexpr const char* admin_password = "planted-admin-41c7e0";
inline constexpr const char* user_password = "planted-user-9d02b5";
inline constexpr const char* owner_password = "planted-owner-e6f318";
inline constexpr const char* other_password = "planted-other-70ab4d";
inline constexpr const char* new_password = "planted-new-c35a96";
inline constexpr const char* file_password = "planted-file-18f2d7";
inline constexpr const char* ticket_secret = "planted-ticket-b8e45c";
inline constexpr const char* payload = "planted-payload-2f6c0a";

inline constexpr std::array all = {admin_password, user_password, owner_password, other_password,
                                   new_password,   file_password, ticket_secret,  payload};

/// Fails the test if `text`, a log line or another output, contains one of the secrets. Thread: any.
inline void expect_none_in(std::string_view text) {
  for (const std::string_view secret : all)
    EXPECT_EQ(text.find(secret), std::string_view::npos) << "a secret of the tests stands in an output";
}

}  // namespace lightq::planted
