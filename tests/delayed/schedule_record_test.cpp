/// Tests of the bytes of the broker's records in a schedule.
#include "delayed/schedule_record.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lightq::broker {
namespace {

std::string hex_of(const std::vector<std::byte>& bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (const std::byte each : bytes) {
    text += digits[static_cast<unsigned>(each) >> 4];
    text += digits[static_cast<unsigned>(each) & 15];
  }
  return text;
}

template <typename Record>
Record decoded_as(const std::vector<std::byte>& bytes) {
  const auto decoded = decode_schedule_record(bytes);
  return decoded.record ? std::get<Record>(*decoded.record) : Record{};
}

// These bytes are those of docs/log_format.md, "Schedule". They never change.
TEST(ScheduleRecord, HasTheDocumentedBytes) {
  const std::vector<std::uint64_t> numbers{5, 258};
  const std::vector<NumberRange> ranges{{9, 11}};
  EXPECT_EQ(hex_of(encode_plan(7, 8, numbers)),
            "01"
            "0700000000000000"
            "0800000000000000"
            "0500000000000000"
            "0201000000000000");
  EXPECT_EQ(hex_of(encode_done(ranges)),
            "02"
            "0900000000000000"
            "0b00000000000000");
  EXPECT_EQ(hex_of(encode_cancel(numbers)),
            "03"
            "0500000000000000"
            "0201000000000000");
  EXPECT_EQ(hex_of(encode_due(-2, numbers)),
            "04"
            "feffffffffffffff"
            "0500000000000000"
            "0201000000000000");
  const std::string payload = "hi";
  EXPECT_EQ(hex_of(encode_copy({3, 4, 5, {}, as_byte_view(payload)})),
            "05"
            "0300000000000000"
            "0400000000000000"
            "0500000000000000"
            "0000"
            "6869");
}

TEST(ScheduleRecord, DecodesWhatItEncodes) {
  const std::vector<std::uint64_t> numbers{5, 258};
  const std::vector<NumberRange> ranges{{9, 11}};
  EXPECT_EQ(decoded_as<PlanRecord>(encode_plan(7, 8, numbers)), (PlanRecord{7, 8, numbers}));
  EXPECT_EQ(decoded_as<DoneRecord>(encode_done(ranges)), DoneRecord{ranges});
  EXPECT_EQ(decoded_as<CancelRecord>(encode_cancel(numbers)), CancelRecord{numbers});
  EXPECT_EQ(decoded_as<DueRecord>(encode_due(-2, numbers)), (DueRecord{-2, numbers}));
  const auto bytes = encode_copy({3, 4, 5, AttributeKinds(AttributeKinds::times), as_byte_view("12345678x")});
  const auto copy = decoded_as<CopyRecord>(bytes);
  EXPECT_EQ(copy.number, 3U);
  EXPECT_EQ(copy.due_us, 4);
  EXPECT_EQ(copy.arrived_us, 5);
  EXPECT_EQ(as_text(copy.message), "12345678x");
}

TEST(ScheduleRecord, RefusesWhatIsIncompleteTooLongOrUnknown) {
  const std::vector<std::uint64_t> numbers{5};
  const std::vector<NumberRange> ranges{{9, 11}};
  for (const auto& whole :
       {encode_plan(7, 8, numbers), encode_done(ranges), encode_cancel(numbers), encode_due(1, numbers),
        encode_copy({3, 4, 5, AttributeKinds(AttributeKinds::times), as_byte_view("12345678")})}) {
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
      const auto decoded = decode_schedule_record(ByteView(whole).first(bytes));
      EXPECT_FALSE(decoded.record);
      EXPECT_EQ(decoded.fault, RecordFault::invalid);
    }
  }
  auto longer = encode_done(ranges);
  longer.push_back({});
  EXPECT_FALSE(decode_schedule_record(longer).record);
  EXPECT_FALSE(
      decode_schedule_record(encode_copy({3, 4, 5, AttributeKinds(8), as_byte_view("12345678")})).record);
  const std::vector<NumberRange> empty_range{{9, 9}};
  EXPECT_FALSE(decode_schedule_record(encode_done(empty_range)).record);
  EXPECT_FALSE(decode_schedule_record(encode_plan(UINT64_MAX, 8, numbers)).record);
  EXPECT_EQ(decode_schedule_record(std::vector<std::byte>{std::byte{6}}).fault, RecordFault::newer);
  EXPECT_EQ(decode_schedule_record(std::vector<std::byte>{std::byte{0}}).fault, RecordFault::invalid);
}

}  // namespace
}  // namespace lightq::broker
