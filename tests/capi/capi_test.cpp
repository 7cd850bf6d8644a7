/// Tests the C library without a broker: exceptions, structs of other versions, threads, and addresses
/// without a broker. clients/c/tests has the tests with a broker.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <lightq/lightq.h>

#include "capi/boundary.hpp"
#include "capi/conversions.hpp"
#include "capi/fetched_messages.hpp"
#include "capi/kept_reports.hpp"
#include "capi/sized.hpp"

namespace lightq::capi {
namespace {

/// Returns the word of the code that a call returns when this is thrown in it.
template <typename Thrown>
std::string word_of(const Thrown& thrown) {
  return lightq_strerror(guarded([&]() -> int { throw thrown; }));
}

TEST(Capi, ExceptionsBecomeCodes) {
  EXPECT_EQ(word_of(std::bad_alloc()), "no_memory");
  EXPECT_EQ(word_of(Exception({ErrorCode::no_space, "the disk is full", 28})), "no_space");
  EXPECT_EQ(lightq_last_error()->system_error, 28);
  EXPECT_EQ(word_of(std::runtime_error("a fault")), "internal");
  EXPECT_STREQ(lightq_last_error()->text, "a fault");
  EXPECT_EQ(word_of(7), "internal");
  EXPECT_EQ(lightq_strerror(guarded([]() -> int {
              call_back([] { throw std::bad_alloc(); });
              return LIGHTQ_OK;
            })),
            std::string("callback"));
}

TEST(Capi, EachCodeHasTheWordOfTheProtocol) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(lightq_strerror(code_of(code)), to_word(code));
  }
}

TEST(Capi, ALongErrorIsCutAtACharacter) {
  std::string text(sizeof lightq_last_error()->text - 2, 'a');
  text += "\xC3\xA4 and more";
  EXPECT_EQ(fail({ErrorCode::timeout, text, 0}), LIGHTQ_TIMEOUT);
  EXPECT_EQ(std::strlen(lightq_last_error()->text), sizeof lightq_last_error()->text - 2);
  EXPECT_EQ(lightq_last_error()->retryable, 1);
}

TEST(Capi, StructsOfOtherVersionsAreReadOrRefused) {
  struct Newer {
    lightq_reader_options known;
    std::uint64_t unknown;
  };
  Newer newer{LIGHTQ_READER_OPTIONS_INIT, 0};
  newer.known.size = sizeof newer;
  EXPECT_TRUE(read_sized(&newer.known, "options").ok());
  newer.unknown = 1;
  EXPECT_EQ(read_sized(&newer.known, "options").error().code, ErrorCode::not_supported);
  for (const std::size_t size : {std::size_t{0}, sizeof(lightq_reader_options) - 1, struct_bytes_max + 1}) {
    newer.known.size = size;
    EXPECT_EQ(read_sized(&newer.known, "options").error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(read_sized<lightq_reader_options>(nullptr, "options").value().heartbeat_ms, 0);
}

// The structs are those of the first version, and no bytes without a name follow their last fields: a later
// version would take such bytes for the value of a new field. Drop a struct here when it grows.
template <typename... Structs>
constexpr bool end_with_their_fields =
    ((first_bytes(static_cast<const Structs*>(nullptr)) == sizeof(Structs)) && ...);
static_assert(
    end_with_their_fields<lightq_options, lightq_interest, lightq_identity, lightq_producer_options,
                          lightq_attributes, lightq_report, lightq_producer_stats, lightq_consumer_options,
                          lightq_message, lightq_consumer_stats, lightq_reader_options>);

/// A struct that has got a field in its second version.
struct Grown {
  std::size_t size;
  std::uint64_t first;
  std::uint64_t second;
};
constexpr std::size_t grown_first_bytes = offsetof(Grown, second);
constexpr std::size_t first_bytes(const Grown*) {
  return grown_first_bytes;
}

TEST(Capi, AStructOfTheFirstVersionLacksOnlyTheLaterFields) {
  Grown older{grown_first_bytes, 7, 8};  // the program has other things at `second`
  const Grown read = read_sized(&older, "grown").value();
  EXPECT_EQ(read.first, 7U);
  EXPECT_EQ(read.second, 0U);
  write_sized(older, [](Grown& to) {
    EXPECT_EQ(to.first, 7U);
    to.first = to.second = 9;
  });
  EXPECT_EQ(older.size, grown_first_bytes);
  EXPECT_EQ(older.first, 9U);
  EXPECT_EQ(older.second, 8U);
  older.size -= 1;
  EXPECT_FALSE(is_sized(&older));
  EXPECT_EQ(read_sized(&older, "grown").error().code, ErrorCode::invalid_argument);
  older.size = sizeof older;
  EXPECT_EQ(read_sized(&older, "grown").value().second, 8U);
  write_sized(older, [](Grown& to) { to.second = 9; });
  EXPECT_EQ(older.second, 9U);
}

TEST(Capi, OptionsOfZerosAreTheDefaults) {
  const auto producing = opening_of(static_cast<const lightq_producer_options*>(nullptr)).value();
  const ProducerOptions expected;
  EXPECT_EQ(producing.options.batch_bytes, expected.batch_bytes);
  EXPECT_EQ(producing.options.memory_bytes_max, expected.memory_bytes_max);
  EXPECT_EQ(producing.options.heartbeat, expected.heartbeat);
  EXPECT_EQ(producing.options.eager_batches, expected.eager_batches);
  EXPECT_EQ(producing.options.retry_refused, expected.retry_refused);
  EXPECT_FALSE(producing.transport.has_value());
  const auto consuming = opening_of(static_cast<const lightq_consumer_options*>(nullptr)).value();
  EXPECT_EQ(consuming.options.prefetch_messages, ConsumerOptions().prefetch_messages);
  EXPECT_EQ(consuming.options.frame_bytes_max, ConsumerOptions().frame_bytes_max);
  EXPECT_EQ(consuming.options.may_be_busy, ConsumerOptions().may_be_busy);
  lightq_consumer_options silent = LIGHTQ_CONSUMER_OPTIONS_INIT;
  silent.heartbeat_ms = -1;
  EXPECT_EQ(opening_of(&silent).value().options.heartbeat, Timeout(0));
}

TEST(Capi, OneThreadAtATimeIsInACall) {
  struct Handle {
    Occupant occupant;
    int calls = 0;  // not atomic: the thread sanitizer would see two threads in it
  } handle;
  std::atomic<int> done = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int call = 0; call < 10'000; ++call) {
        const int code = in_turn(&handle, [](Handle& of) { return ++of.calls, LIGHTQ_OK + 0; });
        ++(code == LIGHTQ_OK ? done : refused);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(done + refused, 30'000);
  EXPECT_EQ(handle.calls, done);
}

TEST(Capi, ANestedCallIsRefusedUnlessItMayNest) {
  struct Handle {
    Occupant occupant;
  } handle;
  const auto nothing = [](Handle&) -> int { return LIGHTQ_OK; };
  const int code = in_turn(&handle, [&](Handle&) -> int {
    EXPECT_EQ(in_turn(&handle, nothing), LIGHTQ_IN_USE);
    EXPECT_EQ(in_turn(&handle, nothing, true), LIGHTQ_OK);
    return LIGHTQ_OK;
  });
  EXPECT_EQ(code, LIGHTQ_OK);
  EXPECT_EQ(in_turn(&handle, nothing), LIGHTQ_OK);
}

TEST(Capi, NeighbouringReportsBecomeOneAndTheOldestAreUnknown) {
  const Error full{ErrorCode::limit_reached, "the topic is full"};
  const Error other{ErrorCode::no_space, "the disk is full"};
  KeptReports reports;
  reports.add({0, 2, Fate::confirmed});
  reports.add({2, 5, Fate::confirmed});
  reports.add({5, 6, Fate::refused, &full});
  reports.add({6, 7, Fate::refused, &other});
  reports.add({8, 9, Fate::refused, &other});  // 7 has no fate yet
  reports.add({7, 8, Fate::confirmed, nullptr, 40});
  reports.add({9, 11, Fate::confirmed, nullptr, 41});
  reports.add({11, 12, Fate::confirmed, nullptr, 43});
  reports.add({12, 13, Fate::confirmed, nullptr, 45});
  const Error smaller{full.code, "another topic is full"};
  reports.add({13, 14, Fate::refused, &full});
  reports.add({14, 15, Fate::refused, &full});
  reports.add({15, 16, Fate::refused, &smaller});  // the same code with another text
  std::vector<std::string> told;
  while (const auto kept = reports.take())
    told.push_back(std::to_string(kept->report.begin) + "-" + std::to_string(kept->report.end) + " " +
                   lightq_strerror(kept->report.code) + " " + std::to_string(kept->report.delayed_first) +
                   kept->text);
  EXPECT_EQ(told,
            (std::vector<std::string>{
                "0-5 ok -1", "5-6 limit_reached -1the topic is full", "6-7 no_space -1the disk is full",
                "8-9 no_space -1the disk is full", "7-8 ok 40", "9-12 ok 41", "12-13 ok 45",
                "13-15 limit_reached -1the topic is full", "15-16 limit_reached -1another topic is full"}));
  for (std::uint64_t number = 0; number < KeptReports::reports_max + 5; ++number)
    reports.add(number % 2 == 0 ? SendReport{number, number + 1, Fate::confirmed}
                                : SendReport{number, number + 1, Fate::refused, &full});
  const KeptReport forgotten = reports.take().value();
  EXPECT_EQ(forgotten.report.begin, 0U);
  EXPECT_EQ(forgotten.report.end, 6U);
  EXPECT_EQ(forgotten.report.fate, LIGHTQ_UNKNOWN);
  EXPECT_EQ(forgotten.report.code, LIGHTQ_LIMIT_REACHED);
  EXPECT_NE(forgotten.text, "");
  std::uint64_t following = 6;
  while (const auto kept = reports.take()) {
    EXPECT_EQ(kept->report.begin, following++);
    EXPECT_EQ(kept->report.fate, kept->report.begin % 2 == 0 ? LIGHTQ_CONFIRMED : LIGHTQ_REFUSED);
  }
  EXPECT_EQ(following, KeptReports::reports_max + 5);
}

TEST(Capi, FetchedMessagesOutliveTheirBatch) {
  FetchedMessages fetched;
  EXPECT_EQ(fetched.take(), nullptr);
  {
    std::vector<std::byte> batch(300, std::byte{7});
    Delivered delivered{};
    delivered.attributes_bytes = 100;
    delivered.payload = ByteView(batch).subspan(100);
    for (const std::uint64_t offset : {3, 4}) {
      delivered.offset = {offset};
      fetched.add(delivered);
    }
    fetched.add({});  // empty
    batch.assign(300, std::byte{0});
  }
  for (const std::uint64_t offset : {3, 4}) {
    const Delivered* const taken = fetched.take();
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(taken->offset.value, offset);
    const ByteView whole(taken->payload.data() - 100, 300);
    EXPECT_TRUE(std::ranges::all_of(whole, [](std::byte byte) { return byte == std::byte{7}; }));
  }
  EXPECT_TRUE(fetched.take()->payload.empty());
  fetched.add({});
  fetched.clear();
  EXPECT_EQ(fetched.take(), nullptr);
}

TEST(Capi, NoBrokerAndBadAddressesAreErrors) {
  lightq_options options = LIGHTQ_OPTIONS_INIT;
  options.no_discovery = 1;
  options.request_timeout_ms = 2000;
  for (const auto& [uri, code] : std::vector<std::pair<const char*, int>>{
           {"tcp://127.0.0.1:1", LIGHTQ_IO_ERROR}, {"nonsense", LIGHTQ_INVALID_ARGUMENT}}) {
    options.uri = uri;
    auto* client = reinterpret_cast<lightq_client*>(&options);
    EXPECT_EQ(lightq_connect(&options, &client), code) << lightq_last_error()->text;
    EXPECT_EQ(client, nullptr);
  }
  options.request_timeout_ms = -1;
  lightq_client* client = nullptr;
  EXPECT_EQ(lightq_connect(&options, &client), LIGHTQ_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace lightq::capi
