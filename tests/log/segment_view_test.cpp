/// Tests which ranges a view of a segment asks its mapping to populate.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "log/format/segment_node.hpp"

namespace lightq::log {
namespace {

class AskedMapping final : public Mapping {
 public:
  [[nodiscard]] const std::byte* data() const override { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const override { return bytes_.size(); }
  void populate(std::size_t begin, std::size_t end) const override { asked.emplace_back(begin, end); }

  mutable std::vector<std::pair<std::size_t, std::size_t>> asked;

 private:
  std::array<std::byte, 100> bytes_{};
};

TEST(SegmentView, HasPagesMadeReadyOnceForAllReaders) {
  const auto mapping = std::make_shared<AskedMapping>();
  const SegmentView view(nullptr, mapping, mapping->data(), mapping->size(), nullptr, mapping.get());
  using Asked = std::vector<std::pair<std::size_t, std::size_t>>;
  view.populate(10, 20);
  view.populate(20, 40);
  EXPECT_EQ((Asked{{10, 20}, {20, 40}}), mapping->asked);
  mapping->asked.clear();
  view.populate(10, 40);
  view.populate(15, 35);
  EXPECT_TRUE(mapping->asked.empty());
  view.populate(5, 12);
  view.populate(30, 41);
  EXPECT_EQ((Asked{{5, 12}, {30, 41}}), mapping->asked);
  mapping->asked.clear();
  view.populate(5, 41);
  EXPECT_TRUE(mapping->asked.empty());
  // These ranges do not touch. The view must not take the bytes between them for populated.
  view.populate(60, 70);
  view.populate(45, 50);
  EXPECT_EQ((Asked{{60, 70}, {45, 50}}), mapping->asked);
}

TEST(SegmentView, DoesNotChangeTheWritersMapping) {
  const auto mapping = std::make_shared<AskedMapping>();
  const SegmentView view(nullptr, mapping, mapping->data(), mapping->size(), nullptr);
  view.populate(0, 100);
  EXPECT_TRUE(mapping->asked.empty());
}

TEST(SegmentNode, EndsALongChainWithoutALongStack) {
  const auto made = [] { return std::make_shared<SegmentNode>("", SegmentHeader{}, 0, 0); };
  auto head = made();
  auto last = head;
  const auto held = made();  // another reader continues from this node
  for (int i = 0; i < 500'000; ++i) last = (last->set_next(i == 400'000 ? held : made()), last->next());
  last.reset();
  head.reset();
  EXPECT_EQ(1, held.use_count());
  EXPECT_NE(nullptr, held->next());
}

}  // namespace
}  // namespace lightq::log
