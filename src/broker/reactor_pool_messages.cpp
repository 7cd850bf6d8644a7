/// Passes commands on dead and delayed messages to the reactor of their topic. Layer: broker.
#include <atomic>
#include <memory>
#include <utility>

#include <lightq/base/due.hpp>

#include "broker/reactor_pool.hpp"
#include "control/commands/dead_translation.hpp"
#include "control/commands/delayed_translation.hpp"

namespace lightq::broker {

namespace {
// The most turns of a request that lists messages. Each takes about a millisecond.
constexpr unsigned turns_of_listing = 64;
/// Calls `piece` in turns of the topic's loop, until it has replied or calls `failed`. Lifetime: the pool
/// that owns `stopped` outlives the work.
void work_in_pieces(Reactor& reactor, const std::atomic<bool>& stopped, TopicRuntime& runtime,
                    DeadWork::Piece piece, DeadWork::Failed failed) {
  DeadWork::begin({.loop = reactor.loop(),
                   .find = [&stopped, &reactor, id = runtime.definition().id]() -> Result<TopicRuntime*> {
                     if (stopped) return pool_errors::stopping();
                     TopicRuntime* const found = reactor.find(id);
                     if (found == nullptr) return pool_errors::unknown_topic();
                     return found;
                   },
                   .piece = std::move(piece),
                   .failed = std::move(failed)},
                  runtime);
}

}  // namespace

/// Lists in several turns with a key, until the page is full. The page ends early after many turns.
void ReactorPool::list_dead(TopicId topic, const std::string& group, const DeadListWish& wish,
                            Done<protocol::DeadPage> done) {
  if (group.empty()) {
    begin<protocol::DeadPage>(topic, std::move(done), [=, this](TopicRuntime&, const auto& reply) {
      reactor_of(topic).letters().returns().list(
          topic, filter_of(wish.filter), {wish.after ? *wish.after + 1 : 0}, wish.limit,
          [reply](const Result<LetterList>& list) { list ? reply(shown(*list)) : reply(list.error()); });
    });
    return;
  }
  struct Listing {
    DeadFilter filter;
    Offset from = {};
    DeadList list = {};
    unsigned turns_left = turns_of_listing;
  };
  const auto listing = std::make_shared<Listing>(
      Listing{.filter = filter_of(wish.filter), .from = {wish.after ? *wish.after + 1 : 0}});
  begin<protocol::DeadPage>(topic, std::move(done), [=, this](TopicRuntime& runtime, const auto& reply) {
    const auto piece = [=, most = wish.limit](TopicRuntime& found) {
      DeadList& all = listing->list;
      auto list =
          found.commands().list_dead(group, listing->filter, listing->from, most - all.messages.size());
      if (!list) {
        reply(list.error());
        return DeadWork::Then::done;
      }
      all.messages.insert(all.messages.end(), list->messages.begin(), list->messages.end());
      all.unreadable += list->unreadable;
      all.next = list->next;
      const bool goes_on = listing->filter.key && all.next && all.messages.size() < most;
      if (goes_on && listing->from < *all.next) --listing->turns_left;
      if (!goes_on || listing->turns_left == 0) {
        reply(shown(all));
        return DeadWork::Then::done;
      }
      listing->from = *all.next;
      return list->is_pending ? DeadWork::Then::readable : DeadWork::Then::next_turn;
    };
    work_in_pieces(reactor_of(topic), stopped_, runtime, piece, reply);
  });
}

/// Traces in as many turns as the topic's groups need.
void ReactorPool::trace(TopicId topic, Offset offset, Done<WorkedTrace> done) {
  const auto tracing = std::make_shared<MessageTracing>(offset);
  begin<WorkedTrace>(topic, std::move(done), [=, this](TopicRuntime& runtime, const auto& reply) {
    const auto piece = [=, this](TopicRuntime& found) {
      const SteadyTime now = EventLoop::Clock::now();
      const auto then = found.commands().trace(*tracing, {now, now_()});
      if (then && *then == MessageTracing::Then::readable) return DeadWork::Then::readable;
      if (then && *then == MessageTracing::Then::next_turn) return DeadWork::Then::next_turn;
      then ? reply(WorkedTrace{shown(tracing->take()), tracing->work_bytes()}) : reply(then.error());
      return DeadWork::Then::done;
    };
    work_in_pieces(reactor_of(topic), stopped_, runtime, piece, reply);
  });
}

void ReactorPool::act_on_dead(TopicId topic, const std::string& group, const DeadWish& wish,
                              Done<protocol::DeadCount> done) {
  struct Act {
    DeadFilter filter;
    Offset from = {};
    protocol::DeadCount count = {};
  };
  const auto act = std::make_shared<Act>(Act{.filter = filter_of(wish)});
  const DeadAction action = action_of(wish.what);
  begin<protocol::DeadCount>(topic, std::move(done), [=, this](TopicRuntime& runtime, const auto& reply) {
    const auto piece = [=](TopicRuntime& found) {
      const auto worked = found.commands().act_on_dead(group, action, act->filter, act->from);
      if (!worked) {
        reply(worked.error());
        return DeadWork::Then::done;
      }
      act->count.messages += worked->messages;
      act->count.unreadable += worked->unreadable;
      if (worked->next) {
        act->from = *worked->next;
        return worked->is_pending ? DeadWork::Then::readable : DeadWork::Then::next_turn;
      }
      if (action == DeadAction::count) {
        reply(act->count);
      } else {
        found.commands().answer_when_saved(
            0, [=](const Result<std::uint64_t>& saved) { saved ? reply(act->count) : reply(saved.error()); });
      }
      return DeadWork::Then::done;
    };
    work_in_pieces(reactor_of(topic), stopped_, runtime, piece, reply);
  });
}

void ReactorPool::act_on_letters(TopicId topic, const DeadWish& wish,
                                 std::function<bool(std::string_view topic)> may,
                                 Done<protocol::DeadCount> done) {
  begin<protocol::DeadCount>(topic, std::move(done), [=, this](TopicRuntime&, const auto& reply) {
    const LetterAction action = letter_action_of(wish.what);
    reactor_of(topic).letters().returns().act(
        topic, action, filter_of(wish), may, [reply, action](const Result<LetterCounts>& counts) {
          counts ? reply(shown(*counts, action)) : reply(counts.error());
        });
  });
}

/// Lists in several turns, until the page is full. The page ends early after many turns.
void ReactorPool::list_delayed(TopicId topic, const DelayedListWish& wish, Done<protocol::DelayedPage> done) {
  struct Listing {
    DelayedFilter filter;
    DuePosition from = {};
    protocol::DelayedPage page = {};
    unsigned turns_left = turns_of_listing;
    std::uint64_t payloads_bytes = 0;
  };
  const auto listing = std::make_shared<Listing>(Listing{.filter = filter_of(wish.filter)});
  if (wish.after) listing->from = position_behind(*wish.after);
  begin<protocol::DelayedPage>(topic, std::move(done), [=, this](TopicRuntime& runtime, const auto& reply) {
    const auto piece = [=, most = wish.limit, payload_bytes = wish.payload_bytes](TopicRuntime& found) {
      protocol::DelayedPage& page = listing->page;
      const auto list = found.schedule().list(listing->filter, listing->from, most - page.messages.size());
      if (!list) {
        reply(shown(list.error()));
        return DeadWork::Then::done;
      }
      for (const DelayedMessage& message : list->messages) {
        page.messages.push_back(shown(message, payload_bytes));
        if (const auto& payload = page.messages.back().payload) listing->payloads_bytes += payload->size();
      }
      const bool is_page_full = page.messages.size() >= most || --listing->turns_left == 0 ||
                                listing->payloads_bytes >= protocol::DelayedPage::payloads_bytes_max;
      if (!list->more || is_page_full) {
        if (list->more) page.continue_after = place_before(list->next);
        reply(std::move(page));
        return DeadWork::Then::done;
      }
      listing->from = list->next;
      return DeadWork::Then::next_turn;
    };
    work_in_pieces(reactor_of(topic), stopped_, runtime, piece, reply);
  });
}

void ReactorPool::act_on_delayed(TopicId topic, const DelayedWish& wish, Done<protocol::DelayedCount> done) {
  struct Act {
    DelayedFilter filter;
    DuePosition from = {};
    Timestamp due = {};
    protocol::DelayedCount count = {};
  };
  const auto act = std::make_shared<Act>(Act{.filter = filter_of(wish.filter)});
  const DelayedAction action = action_of(wish.what);
  begin<protocol::DelayedCount>(topic, std::move(done), [=, this](TopicRuntime& runtime, const auto& reply) {
    act->due = due_time(wish.due, now_());
    const auto piece = [=](TopicRuntime& found) {
      const auto worked = found.schedule().act(action, act->filter, act->from, act->due);
      if (!worked) {
        reply(shown(worked.error()));
        return DeadWork::Then::done;
      }
      add(act->count, *worked);
      act->from = worked->next;
      if (worked->more) return DeadWork::Then::next_turn;
      if (action == DelayedAction::count) {
        reply(act->count);
      } else {
        found.schedule().answer_when_durable(0, [=](const Result<std::uint64_t>& durable) {
          durable ? reply(act->count) : reply(durable.error());
        });
      }
      return DeadWork::Then::done;
    };
    work_in_pieces(reactor_of(topic), stopped_, runtime, piece, reply);
  });
}

}  // namespace lightq::broker
