/// Appends the messages of several writers together. Layer: queue.
#include "queue/group_commit.hpp"

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace lightq::queue {

namespace {

constexpr int tries_to_lock = 64;

}  // namespace

bool GroupCommit::suits(const QueueOptions& options) {
  const bool is_bounded = options.capacity_bytes != 0 || options.capacity_messages != 0;
  return options.flush.each_append && options.many_writers &&
         !(is_bounded && options.overflow == Overflow::block);
}

Result<Offset> GroupCommit::enqueue(ByteView payload) {
  QueueLock lock(mutex_, std::defer_lock);
  lock_soon(lock);
  if (appender_.is_closed()) return QueueAppender::closed_error();
  const QueueOptions& options = log_.options();
  const std::size_t bytes_max = std::min<std::uint64_t>(limits::batch_bytes_target, options.segment_bytes);
  const std::uint64_t records_max =
      options.segment_messages_max == 0 ? ~std::uint64_t{0} : options.segment_messages_max;
  const bool leads = group_ == nullptr || !group_->takes(payload.size(), bytes_max, records_max);
  if (leads) group_ = std::make_shared<AppendGroup>();
  const std::shared_ptr<AppendGroup> group = group_;
  const std::uint32_t place = group->join(payload);
  const std::chrono::nanoseconds awake = AppendGroup::awake_for(last_group_took_);
  if (leads) {
    lead(lock, *group);
  } else {
    lock.unlock();
  }
  return group->wait(place, awake);
}

// Retries before it sleeps: the lock is held only briefly, and sleeping and being woken takes longer.
void GroupCommit::lock_soon(QueueLock& lock) {
  for (int tries = 0; tries < tries_to_lock && !lock.try_lock(); ++tries) std::this_thread::yield();
  if (!lock.owns_lock()) lock.lock();
}

void GroupCommit::lead(QueueLock& lock, AppendGroup& group) {
  while (jobs_.is_out()) jobs_.wait_for_job(lock);
  gather(lock, group);
  if (group_.get() == &group) group_ = nullptr;
  const std::uint32_t count = group.builder.record_count();
  last_group_ = count;
  const auto began = std::chrono::steady_clock::now();
  Result<Offset> base = appender_.append_unsynced(lock, group.builder.finish(), count);
  if (!base && count > 1) return append_each(lock, group);
  if (base) {
    if (auto synced = jobs_.sync_up_to(lock, *base + count); !synced) base = synced.error();
  }
  if (base) last_group_took_ = std::chrono::steady_clock::now() - began;
  lock.unlock();
  group.settle(std::move(base));
}

// Waits for writers that the last sync has released and that are about to append again. One sync for all of
// them takes less time than one for the first and another for the rest. Stops as soon as no further message
// joins.
void GroupCommit::gather(QueueLock& lock, const AppendGroup& group) const {
  std::uint32_t before = 0;
  while (before < group.builder.record_count() && group.builder.record_count() < last_group_) {
    before = group.builder.record_count();
    lock.unlock();
    std::this_thread::yield();
    lock_soon(lock);
  }
}

// Appends the messages one by one, since they could not be appended together.
void GroupCommit::append_each(QueueLock& lock, AppendGroup& group) {
  std::vector<Result<Offset>> each;
  BatchBuilder builder;
  Offset end;
  for (auto record = BatchView::trusted(group.builder.finish().data()).records(); !record.done();
       record.next()) {
    builder.clear();
    builder.add(record.payload());
    each.push_back(appender_.append_unsynced(lock, builder.finish(), 1));
    if (each.back()) end = *each.back() + 1;
  }
  const auto synced = jobs_.sync_up_to(lock, end);
  lock.unlock();
  for (auto& result : each) {
    if (result && !synced) result = synced.error();
  }
  group.settle_each(std::move(each));
}

}  // namespace lightq::queue
