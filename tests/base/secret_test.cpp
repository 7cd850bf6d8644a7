/// Tests that a Secret overwrites its bytes: base/secret.hpp, base/wipe.hpp.
#include <gtest/gtest.h>

#include <malloc.h>
#include <string.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <lightq/base/secret.hpp>
#include <lightq/base/wipe.hpp>

namespace {

/// Returns true if the text, apart from its first byte, is somewhere in the memory at `at`. Emptying a string
/// overwrites its first byte.
[[gnu::noinline]] bool contains(const void* at, std::size_t bytes, std::string_view text) {
  text.remove_prefix(1);
  return memmem(at, bytes, text.data(), text.size()) != nullptr;
}

// A text that freed memory must not contain; empty: freed memory is not searched.
thread_local std::string_view searched_text;
thread_local bool found_in_freed_memory = false;

void search_and_free(void* memory) noexcept {
  if (memory != nullptr && !searched_text.empty())
    found_in_freed_memory |= contains(memory, malloc_usable_size(memory), searched_text);
  std::free(memory);
}

}  // namespace

// Replaces the operators of the whole test program, so that memory can be searched before it is freed.
void* operator new(std::size_t bytes) {
  void* const made = std::malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
void operator delete(void* memory) noexcept {
  search_and_free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  search_and_free(memory);
}

namespace lightq {
namespace {

template <typename T>
concept Printable = requires(std::ostream& out, const T& value) { out << value; };

// A Secret is made from a text implicitly, and never becomes one.
static_assert(std::is_convertible_v<const char*, Secret>);
static_assert(std::is_convertible_v<std::string_view, Secret>);
static_assert(std::is_convertible_v<const std::string&, Secret>);
static_assert(std::is_convertible_v<std::string, Secret>);
static_assert(!std::is_convertible_v<Secret, std::string>);
static_assert(!std::is_convertible_v<Secret, std::string_view>);
static_assert(!std::is_constructible_v<std::string, Secret>);
static_assert(!std::is_constructible_v<std::string_view, Secret>);
static_assert(!std::is_constructible_v<nlohmann::json, Secret>);
static_assert(!Printable<Secret> && Printable<std::string>);
static_assert(std::is_nothrow_move_constructible_v<Secret> && std::is_nothrow_move_assignable_v<Secret>);

/// Each test runs with a text that the string object itself contains, and with one on the heap.
class SecretTest : public testing::TestWithParam<std::string> {
 protected:
  /// A Secret in memory that stays readable after its end.
  class Place {
   public:
    template <typename... From>
    explicit Place(From&&... from) {
      new (bytes_.data()) Secret(std::forward<From>(from)...);
    }
    [[nodiscard]] Secret& secret() { return *std::launder(reinterpret_cast<Secret*>(bytes_.data())); }
    void end() { secret().~Secret(); }
    [[nodiscard]] bool has(std::string_view text) const {
      return contains(bytes_.data(), bytes_.size(), text);
    }

   private:
    alignas(Secret) std::array<std::byte, sizeof(Secret)> bytes_{};
  };

  void SetUp() override {
    found_in_freed_memory = false;
    searched_text = text;
  }
  void TearDown() override {
    searched_text = {};
    EXPECT_FALSE(found_in_freed_memory) << "memory was freed before it was overwritten";
  }
  [[nodiscard]] bool is_short() const { return text.size() < sizeof(std::string) / 2; }

  const std::string& text = GetParam();
};

TEST_P(SecretTest, TheTestFindsWhatIsNotOverwritten) {
  if (is_short()) {
    Place place(text);
    EXPECT_TRUE(place.has(text));
    place.end();
  } else {
    {
      const std::string copy = text;
    }
    EXPECT_TRUE(std::exchange(found_in_freed_memory, false));
  }
}

TEST_P(SecretTest, IsOverwrittenWhenDestroyed) {
  Place place(text);
  EXPECT_EQ(place.secret().expose(), text);
  place.end();
  EXPECT_FALSE(place.has(text));
}

TEST_P(SecretTest, IsOverwrittenWhenMovedFrom) {
  Place from(text);
  Place to(std::move(from.secret()));
  EXPECT_TRUE(from.secret().empty());
  EXPECT_FALSE(from.has(text));
  EXPECT_EQ(to.secret().expose(), text);
  Secret assigned;
  assigned = std::move(to.secret());
  EXPECT_TRUE(to.secret().empty());
  EXPECT_FALSE(to.has(text));
  EXPECT_EQ(assigned.expose(), text);
  from.end();
  to.end();
}

TEST_P(SecretTest, IsOverwrittenWhenAssignedTo) {
  for (const std::string& other : {std::string("x"), std::string(300, 'x')}) {
    Place moved_to(text);
    moved_to.secret() = Secret(other);
    EXPECT_EQ(moved_to.secret().expose(), other);
    EXPECT_FALSE(moved_to.has(text));
    Place copied_to(text);
    const Secret source = other;
    copied_to.secret() = source;
    EXPECT_EQ(copied_to.secret(), source);
    EXPECT_FALSE(copied_to.has(text));
    Place text_to(text);
    text_to.secret() = other;
    EXPECT_FALSE(text_to.has(text));
    for (Place* const place : {&moved_to, &copied_to, &text_to}) place->end();
    EXPECT_FALSE(std::exchange(found_in_freed_memory, false)) << other.size();
  }
}

TEST_P(SecretTest, ACopyIsWipedOnItsOwn) {
  Place copy{Secret()};
  {
    const Secret original = text;
    copy.secret() = original;
  }
  EXPECT_EQ(copy.secret().expose(), text);
  Secret& same = copy.secret();
  copy.secret() = same;
  EXPECT_EQ(copy.secret().expose(), text) << "assigned to itself";
  copy.secret() = std::move(same);
  EXPECT_EQ(copy.secret().expose(), text) << "moved to itself";
  copy.end();
  EXPECT_FALSE(copy.has(text));
}

TEST_P(SecretTest, ATextThatIsMovedInLeavesNothingBehind) {
  alignas(std::string) std::array<std::byte, sizeof(std::string)> object{};
  auto* const from = new (object.data()) std::string(text);
  const char* const data = from->data();
  {
    const Secret secret = std::move(*from);
    EXPECT_EQ(secret.expose(), text);
    EXPECT_EQ(secret.expose().data() == data, !is_short()) << "a long text is not copied";
  }
  EXPECT_TRUE(from->empty());
  EXPECT_FALSE(contains(object.data(), object.size(), text));
  std::destroy_at(from);
}

TEST_P(SecretTest, WorksInContainers) {
  {
    std::optional<Secret> maybe = Secret(text);
    std::vector<Secret> many;
    for (int i = 0; i < 20; ++i) many.emplace_back(text);  // grows, and moves them
    EXPECT_EQ(many.front(), *maybe);
    maybe.reset();
  }
  EXPECT_FALSE(std::exchange(found_in_freed_memory, false));
}

INSTANTIATE_TEST_SUITE_P(Texts, SecretTest,
                         testing::Values("a short one",
                                         "a secret that is too long for a string object itself"),
                         [](const auto& tested) { return tested.param.size() < 15 ? "Short" : "Long"; });

TEST(Secret, ComparesTexts) {
  EXPECT_EQ(Secret("a"), Secret(std::string("a")));
  EXPECT_EQ(Secret("a"), "a");
  EXPECT_NE(Secret("a"), "b");
  EXPECT_EQ(Secret(), "");
  EXPECT_TRUE(Secret().empty());
  EXPECT_EQ(Secret("four").size(), 4U);
}

TEST(WipeText, OverwritesTheWholeMemoryOfTheText) {
  std::string text = "a text that was longer before it was cut";
  const std::string_view before(text.data(), text.capacity());
  text.resize(3);
  wipe_text(text);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(before, std::string(before.size(), '\0'));
}

TEST(WipeBytes, OverwritesThemAll) {
  std::array<std::byte, 32> key{};
  key.fill(std::byte{7});
  wipe_bytes(key);
  EXPECT_EQ(key, (std::array<std::byte, 32>{}));
  wipe_bytes({});
}

}  // namespace
}  // namespace lightq
