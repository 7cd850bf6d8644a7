/// Tests of the parser for requests over HTTP.
#include "http/request_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <lightq/base/limits.hpp>

namespace lightq::broker {

namespace {

using ::testing::HasSubstr;
using State = RequestParser::State;

constexpr std::string_view plain = "GET /metrics?topic=a HTTP/1.1\r\nHost: h:1\r\n";

/// Feeds a text in pieces of `size` bytes, as a connection does. Returns what is left of it.
std::string feed(RequestParser& parser, std::string_view text, std::size_t size) {
  std::string left;
  for (std::size_t at = 0; at < text.size(); at += size) {
    left += text.substr(at, size);
    left.erase(0, parser.feed(left));
  }
  return left;
}

unsigned status_of(const std::string& text) {
  RequestParser parser;
  feed(parser, text, 1000);
  EXPECT_EQ(parser.state(), State::refused) << text;
  return parser.state() == State::refused ? parser.refusal().status : 0;
}

TEST(RequestParser, ReadsARequestInPiecesOfAnySize) {
  const std::string text = std::string(plain) +
                           "Accept: a/b\r\nAccept: c/d\r\nOrigin: http://h:1\r\n"
                           "Authorization: Basic eDp5\r\n\r\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    RequestParser parser;
    EXPECT_EQ(feed(parser, text, size), "");
    ASSERT_EQ(parser.state(), State::request);
    const HttpRequest request = parser.take_request();
    EXPECT_EQ(request.method, "GET");
    EXPECT_EQ(request.path, "/metrics");
    EXPECT_EQ(request.query.find("topic"), "a");
    EXPECT_EQ(request.host, "h:1");
    EXPECT_EQ(request.origin, "http://h:1");
    EXPECT_EQ(request.accept, "a/b, c/d");
    EXPECT_EQ(request.authorization.expose(), "Basic eDp5");
    EXPECT_TRUE(request.keep_alive);
    EXPECT_EQ(parser.state(), State::more) << "prepared for the next one";
  }
}

TEST(RequestParser, LeavesTheNextRequestAlone) {
  RequestParser parser;
  const std::string text = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n";
  EXPECT_EQ(text.substr(parser.feed(text)), "GET / HTTP/1.1\r\n");
  ASSERT_EQ(parser.state(), State::request);
  EXPECT_EQ(parser.take_request().body, "abc");
}

TEST(RequestParser, ReadsChunks) {
  RequestParser parser;
  feed(parser,
       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
       7);
  ASSERT_EQ(parser.state(), State::request);
  EXPECT_EQ(parser.take_request().body, "abcde");
}

TEST(RequestParser, ClosesAfterHttp10) {
  RequestParser parser;
  feed(parser, "GET / HTTP/1.0\r\nHost: h\r\n\r\n", 1000);
  EXPECT_FALSE(parser.take_request().keep_alive);
}

TEST(RequestParser, AbsoluteFormNamesTheHost) {
  RequestParser parser;
  feed(parser, "GET http://other:7/a?b=c HTTP/1.1\r\nHost: h\r\n\r\n", 1000);
  const HttpRequest request = parser.take_request();
  EXPECT_EQ(request.host, "other:7");
  EXPECT_EQ(request.path, "/a");
  EXPECT_EQ(request.query.find("b"), "c");
}

TEST(RequestParser, TellsAClientThatWaitsToGoOn) {
  RequestParser parser;
  feed(parser, "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", 1000);
  EXPECT_TRUE(parser.has_head());
  EXPECT_TRUE(parser.take_wants_continue());
  EXPECT_FALSE(parser.take_wants_continue()) << "once";
}

TEST(RequestParser, RefusesWhatIsNoRequest) {
  EXPECT_EQ(status_of("\x16\x03\x01\x02\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost : h\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: h\r\nA: b\x01\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: h\r\n\r\n"), 505U);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400U) << "no Host";
  EXPECT_EQ(status_of("GET a HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
  EXPECT_EQ(status_of("GET /?a=%zz HTTP/1.1\r\nHost: h\r\n\r\n"), 400U);
}

TEST(RequestParser, RefusesARequestThatTwoServersCouldReadDifferently) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(status_of(head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), 400U);
  EXPECT_EQ(status_of(head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: gzip\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400U);
  EXPECT_EQ(status_of("POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Content-Length: -1\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Content-Length: 1x\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Host: other\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Authorization: a\r\nAuthorization: b\r\n\r\n"), 400U);
  EXPECT_EQ(status_of(head + "Origin: a\r\nOrigin: b\r\n\r\n"), 400U);
}

TEST(RequestParser, RefusesListsOfLengths) {
  for (const char* length : {"4, 4", "4,4", "4, 5", "4,", ",4"})
    EXPECT_EQ(
        status_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::string(length) + "\r\n\r\nabcd"),
        400U)
        << length;
}

TEST(RequestParser, RefusesFoldedHeadersInPiecesOfAnySize) {
  for (const char* lines : {"A: b\r\n Transfer-Encoding: chunked\r\n", "Transfer-Encoding:\r\n\tchunked\r\n",
                            "A:\r\n \r\n", " A: b\r\n"}) {
    const std::string text = std::string(plain) + lines + "\r\n";
    for (std::size_t size = 1; size <= text.size(); ++size) {
      RequestParser parser;
      feed(parser, text, size);
      ASSERT_EQ(parser.state(), State::refused) << lines << " in pieces of " << size;
      EXPECT_EQ(parser.refusal().status, 400U);
    }
  }
}

TEST(RequestParser, ABodyMayHaveLinesThatBeginWithSpaces) {
  const std::string text = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 7\r\n\r\na\r\n b\r\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    RequestParser parser;
    feed(parser, text, size);
    ASSERT_EQ(parser.state(), State::request) << size;
    EXPECT_EQ(parser.take_request().body, "a\r\n b\r\n");
  }
}

TEST(RequestParser, HasLimits) {
  EXPECT_EQ(status_of(std::string(plain) + "A: " + std::string(limits::http_head_bytes_max, 'a')), 431U);
  std::string many(plain);
  for (std::size_t i = 0; i < limits::http_headers_max; ++i) many += "A: b\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 431U);
  EXPECT_EQ(
      status_of("GET /" + std::string(limits::http_target_bytes_max, 'a') + " HTTP/1.1\r\nHost: h\r\n\r\n"),
      414U);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: " +
                      std::to_string(limits::http_body_bytes_max + 1) + "\r\n\r\n"),
            413U);
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n"), 400U);
}

TEST(RequestParser, BoundsBodiesAndLinesBetweenChunks) {
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(head + "7fffffff\r\n" + std::string(limits::http_body_bytes_max + 1, 'a')), 413U);
  EXPECT_EQ(status_of(head + "1;" + std::string(2 * limits::http_head_bytes_max, 'a')), 400U);
}

TEST(RequestParser, ARefusalIsAProblem) {
  RequestParser parser;
  feed(parser, "nonsense\r\n\r\n", 1000);
  EXPECT_EQ(parser.refusal().content_type, "application/problem+json");
  EXPECT_THAT(parser.refusal().body, HasSubstr(R"("code":"invalid_request")"));
}

}  // namespace

}  // namespace lightq::broker
