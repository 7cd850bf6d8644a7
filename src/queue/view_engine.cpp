/// A view of a queue that another process may write. Layer: queue.
#include "queue/view_engine.hpp"

#include <algorithm>
#include <chrono>

#include "log/format/batch_cipher.hpp"
#include "log/format/segment_listing.hpp"
#include "log/format/segment_scanner.hpp"
#include "log/format/unnamed_segment.hpp"
#include "queue/reader_state.hpp"

namespace lightq::queue {

namespace {

constexpr int listings_max = 16;  // attempts, for a directory that changes all the time

}  // namespace

Result<std::unique_ptr<ViewEngine>> ViewEngine::open(const std::string& directory, log::Storage& storage) {
  std::unique_ptr<ViewEngine> view(new ViewEngine(directory, storage));
  if (auto found = view->refresh(); !found) return found.error();
  return view;
}

// Updates the list of segments. Files are dropped at the front and begun at the end. If a file is gone when
// it is opened, the next listing lacks it and all that were dropped before it. A reader in the last of those,
// which then has no successor, searches for its position again. A view may be opened before its queue exists,
// but a directory that disappears later is an error: the queue has not dropped its messages.
Result<void> ViewEngine::refresh() {
  for (int listing = 1;; ++listing) {
    auto listed = log::list_segments(directory_, storage());
    const bool not_yet = !listed && log::is_missing(listed.error()) && incarnation_ == 0;
    if (not_yet) listed = log::ListedSegments{};
    if (!listed) return listed.error();
    const std::vector<Offset>& there = listed->offsets;
    const std::lock_guard lock(mutex_);
    while (!seen_.empty() &&
           !std::binary_search(there.begin(), there.end(), seen_.front().node->first_offset())) {
      seen_.pop_front();
    }
    const auto all_there = find_new(there);
    const bool done = !all_there || *all_there || listing == listings_max;
    if (!done && listing > 1) seen_.clear();  // a file may have been recycled under the same name
    if (!done) continue;
    if (!seen_.empty()) publish(seen_.back().node->end_offset());
    first_ = seen_.empty() ? next_offset() : seen_.front().node->first_offset();
    readers_.wake_if_waiting();
    if (!all_there) return all_there.error();
    return {};
  }
}

// Adds the new segments. Returns false if a file no longer exists.
Result<bool> ViewEngine::find_new(const std::vector<Offset>& there) {
  if (!seen_.empty()) {
    const auto is_there = look_on(seen_.back());
    if (!is_there || !*is_there) return is_there;
  }
  for (const Offset name : there) {
    if (!seen_.empty() && name <= seen_.back().node->first_offset()) continue;
    const auto is_there = add(name);
    if (!is_there || !*is_there) return is_there;
  }
  return true;
}

// Adds a segment. Returns false if it was dropped or renamed meanwhile.
Result<bool> ViewEngine::add(Offset name) {
  const std::string path = directory_ + "/" + log::segment_name(name);
  auto file = storage().open(path, log::OpenMode::read_only);
  const bool unnamed = !file && log::is_missing(file.error());
  if (unnamed) {
    file = storage().open(directory_ + "/" + log::next_prepared_name, log::OpenMode::read_only);
    if (!file && log::is_missing(file.error())) return false;
  }
  if (!file) return file.error();
  log::SegmentPage page{};
  const auto came = log::read_all(**file, page, 0);
  if (!came) return came.error();
  const auto size = (*file)->size_bytes();
  if (!size) return size.error();
  log::DecodedHeader decoded = log::decode_segment_header(page);
  // As in recovery: the rest of a file that was cut short says nothing about its format.
  if (*size < log::segment_seal_position && decoded.fault != log::HeaderFault::blank) decoded = {};
  if (!decoded.header && decoded.fault == log::HeaderFault::foreign) return log::foreign_segment(path, page);
  if (decoded.header && decoded.header->key_id != 0) return log::no_key(path, decoded.header->key_id);
  const bool is_ours = decoded.header && (incarnation_ == 0 || decoded.header->incarnation == incarnation_);
  const bool is_it = is_ours && decoded.header->first_offset == name;
  if (!is_it && (unnamed || !log::may_exist(path, storage()))) return false;  // recycled meanwhile
  if (decoded.header && !is_ours && seen_.empty())
    return Error{ErrorCode::corrupt,
                 path + " belongs to another log than the one that this view was opened for", 0};
  // A header with another offset is of the file's earlier use: a power cut has undone this segment's header.
  const bool fits = is_it || (is_ours && decoded.header->first_offset == log::offset_not_yet_known);
  if (fits) incarnation_ = decoded.header->incarnation;
  log::SegmentHeader header = fits ? *decoded.header : log::SegmentHeader{};
  header.first_offset = name;
  const std::uint64_t usable =
      fits ? std::min(*size, header.file_bytes) : std::max(*size, log::segment_header_bytes);
  // No batch is trusted, because another process wrote them all.
  auto node = std::make_shared<log::SegmentNode>(path, header, usable, ~std::uint64_t{0});
  Seen seen{node, false, {}};
  const auto is_there = look_on(seen);
  if (!is_there || !*is_there) return is_there;
  if (!seen_.empty()) {
    seen_.back().complete = true;
    seen_.back().node->set_next(node);
  }
  seen_.push_back(std::move(seen));
  return true;
}

// Finds the last complete batch. Starts at the known end, or at the seal's or checkpoint's. Returns false if
// the segment was dropped meanwhile.
Result<bool> ViewEngine::look_on(Seen& seen) {
  log::SegmentNode& node = *seen.node;
  if (seen.complete || node.header().epoch == 0) return true;
  auto file = log::open_as_it_was(node, storage());
  if (!file && file.error().code == ErrorCode::closed) return false;
  if (!file) return file.error();
  log::SegmentPage page{};
  const auto came = log::read_all(**file, page, 0);
  if (!came) return came.error();
  const log::BootId boot{storage().boot_id()};
  if (const auto seal = log::decode_segment_seal(page, node.header(), boot);
      seal && seal->end_position <= node.usable_bytes() && node.first_offset() <= seal->end_offset) {
    node.publish(seal->end_position, seal->end_offset);
    seen.newest = std::max(seen.newest, seal->newest);
    seen.complete = true;
    return true;
  }
  std::uint64_t position = node.end_position();
  Offset offset = node.end_offset();
  const auto checkpoint = log::decode_segment_checkpoint(page, node.header(), boot);
  if (checkpoint && position < checkpoint->end_position && checkpoint->end_position <= node.usable_bytes() &&
      offset <= checkpoint->end_offset) {
    position = checkpoint->end_position;
    offset = checkpoint->end_offset;
    seen.newest = std::max(seen.newest, checkpoint->newest);
  }
  log::SegmentScanner scanner(**file, log::BatchMarks::of(node.header()), node.usable_bytes());
  for (auto batch = scanner.batch_at(position); batch && batch->base == offset;
       batch = scanner.batch_at(position)) {
    position = batch->end_position();
    offset = batch->end;
    seen.newest = std::max(seen.newest, batch->time);
  }
  // A range that cannot be read now is not the end; otherwise the next segment would seem to leave a gap.
  if (scanner.read_error()) return *scanner.read_error();
  scanner.look_for_newer(position, offset);
  if (scanner.newer()) return scanner.newer()->error(node.path());
  node.publish(position, offset);
  return true;
}

std::shared_ptr<log::SegmentNode> ViewEngine::node_of(Offset offset) {
  const std::lock_guard lock(mutex_);
  if (seen_.empty()) return nullptr;
  const auto after =
      std::upper_bound(seen_.begin(), seen_.end(), offset,
                       [](Offset wanted, const Seen& seen) { return wanted < seen.node->first_offset(); });
  return after == seen_.begin() ? seen_.front().node : (after - 1)->node;
}

Offset ViewEngine::first_offset() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

Result<Offset> ViewEngine::offset_of_cursor(const std::string& /*name*/) {
  return Error{ErrorCode::invalid_argument, "a view has no cursors", 0};
}

Result<Offset> ViewEngine::offset_at_time(Timestamp time) {
  std::shared_ptr<log::SegmentNode> node;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::ranges::find_if(seen_, [&](const Seen& seen) { return time <= seen.newest; });
    if (found != seen_.end()) node = found->node;
  }
  if (node == nullptr) return next_offset();
  return first_batch_at(*this, node, time);
}

// Other processes do not notify this one of appends, so the wait ends with a refresh on another thread.
bool ViewEngine::wait(Offset offset, std::chrono::milliseconds timeout) {
  return readers_.wait(timeout, [&] { return offset < next_offset(); });
}

QueueStats ViewEngine::stats() const {
  QueueStats stats;
  stats.first_offset = first_offset();
  stats.next_offset = next_offset();
  stats.mapped_bytes = views().mapped_bytes();
  const std::lock_guard lock(mutex_);
  stats.segments = seen_.size();
  for (const Seen& seen : seen_) stats.stored_bytes += seen.node->end_position() - log::segment_header_bytes;
  return stats;
}

}  // namespace lightq::queue
