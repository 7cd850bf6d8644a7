/// Reads the statistics of all topics in pages. Layer: http.
#include "http/topic_pages.hpp"

#include <cstddef>
#include <utility>

namespace lightq::broker {

namespace {
constexpr std::size_t topics_per_page = 2048;
constexpr std::size_t entries_per_page = 16'384;
}  // namespace

void TopicPages::read(Operations& operations, const Asker& asker, TopicsWanted wanted,
                      Receive receive) const {
  wanted.topics_max = topics_per_page;
  wanted.entries_max = entries_per_page;
  ask(operations, asker, std::move(wanted), std::make_shared<const Receive>(std::move(receive)));
}

void TopicPages::ask(Operations& operations, const Asker& asker, TopicsWanted wanted,
                     const std::shared_ptr<const Receive>& receive) const {
  const TopicsWanted asked = wanted;
  operations.stats().topics(asker, asked, [this, asker, wanted, receive](Result<StatsPage> read) {
    auto page = std::make_shared<Result<StatsPage>>(std::move(read));
    loop_.post([this, asker, wanted, receive, page]() mutable {
      if (!*page) return (*receive)(page->error());
      (*receive)(&page->value());
      auto after = TopicName::parse((*page)->continue_after);
      if (!after) return (*receive)(nullptr);
      wanted.after = std::move(after);
      wanted.with_connections = false;
      const bool posted = gate_.as_broker(
          [this, asker, wanted, receive](Operations& next) { ask(next, asker, wanted, receive); });
      if (!posted)
        (*receive)(Error{ErrorCode::busy, "the broker has too many requests under way; try again"});
    });
  });
}

}  // namespace lightq::broker
