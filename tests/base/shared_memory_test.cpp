/// Tests of memory that another process maps by its descriptor.
#include <lightq/base/shared_memory.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace lightq {
namespace {

constexpr std::size_t bytes = 8192;

/// Returns a duplicate of the descriptor, as a process has it that received the descriptor.
int sent(const SharedMemory& memory) {
  return ::dup(memory.descriptor());
}

TEST(SharedMemory, HasTheSameBytesForItsAdopter) {
  const auto made = SharedMemory::make(bytes).value_or_throw();
  const auto adopted = SharedMemory::adopt(sent(made), bytes).value_or_throw();
  ASSERT_EQ(bytes, made.bytes().size());
  ASSERT_EQ(bytes, adopted.bytes().size());
  EXPECT_EQ(std::byte{0}, adopted.bytes()[bytes - 1]);
  made.bytes()[bytes - 1] = std::byte{7};
  EXPECT_EQ(std::byte{7}, adopted.bytes()[bytes - 1]);
}

TEST(SharedMemory, CannotBeTruncatedByTheOtherProcess) {
  const auto made = SharedMemory::make(bytes).value_or_throw();
  EXPECT_NE(0, ::ftruncate(made.descriptor(), 0));
  EXPECT_NE(0, ::ftruncate(made.descriptor(), 2 * bytes));
  EXPECT_NE(0, ::fcntl(made.descriptor(), F_ADD_SEALS, F_SEAL_WRITE));
}

TEST(SharedMemory, ReleasedPagesTakeNoMoreMemory) {
  auto made = SharedMemory::make(bytes).value_or_throw();
  const auto adopted = SharedMemory::adopt(sent(made), bytes).value_or_throw();
  adopted.bytes()[5000] = std::byte{7};
  struct stat about{};
  ASSERT_EQ(0, ::fstat(made.descriptor(), &about));
  EXPECT_LT(0, about.st_blocks);
  made.empty(made.bytes().subspan(4097));
  EXPECT_EQ(std::byte{7}, adopted.bytes()[5000]) << "no whole page";
  made.empty(made.bytes());
  ASSERT_EQ(0, ::fstat(made.descriptor(), &about));
  EXPECT_EQ(0, about.st_blocks);
  EXPECT_EQ(std::byte{0}, adopted.bytes()[5000]);
}

TEST(SharedMemory, OutlivesItsDescriptor) {
  auto made = SharedMemory::make(bytes).value_or_throw();
  made.close_descriptor();
  EXPECT_EQ(-1, made.descriptor());
  made.bytes()[0] = std::byte{1};
  SharedMemory moved = std::move(made);
  EXPECT_TRUE(made.bytes().empty());  // NOLINT(bugprone-use-after-move): the test needs it
  EXPECT_EQ(std::byte{1}, moved.bytes()[0]);
}

TEST(SharedMemory, ShrinkableMemoryIsNotAdopted) {
  const int plain = ::memfd_create("plain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(0, ::ftruncate(plain, bytes));
  EXPECT_EQ(ErrorCode::invalid_request, SharedMemory::adopt(plain, bytes).error().code);
  EXPECT_EQ(-1, ::fcntl(plain, F_GETFD)) << "it is closed all the same";
}

TEST(SharedMemory, MemoryOfAnotherSizeOrAnotherFileIsNotAdopted) {
  const auto made = SharedMemory::make(bytes).value_or_throw();
  EXPECT_EQ(ErrorCode::invalid_request, SharedMemory::adopt(sent(made), bytes + 4096).error().code);
  EXPECT_EQ(ErrorCode::invalid_request, SharedMemory::adopt(sent(made), bytes - 4096).error().code);
  int pipes[2];
  ASSERT_EQ(0, ::pipe(pipes));
  EXPECT_EQ(ErrorCode::invalid_request, SharedMemory::adopt(pipes[0], bytes).error().code);
  ::close(pipes[1]);
}

}  // namespace
}  // namespace lightq
