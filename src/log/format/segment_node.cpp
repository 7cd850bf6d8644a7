/// Segments as readers on other threads see them, and the views of their files. Layer: log.
#include "log/format/segment_node.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "log/format/segment_index_file.hpp"
#include "log/format/unnamed_segment.hpp"

namespace lightq::log {

namespace {

// Limit for mapped files of another process's log, because each has a descriptor.
constexpr std::size_t other_process_files_max = 64;
// How much of a growing segment a reader walks at most, because its index has no entry yet.
constexpr std::uint64_t index_again_bytes = 4 * limits::MiB;

std::string directory_before(const SegmentNode& node) {
  return node.path().substr(0, node.path().find_last_of('/') + 1);
}

Error dropped(const SegmentNode& node) {
  return {ErrorCode::closed, node.path() + " has been dropped by its log", 0};
}

// Locks the file and checks its epoch: between reading the directory and locking, it may have become another
// segment's.
Result<void> lock_as_it_was(File& file, const SegmentNode& node) {
  if (auto locked = file.lock_shared(); !locked) {
    return locked.error().code == ErrorCode::in_use ? dropped(node) : locked.error();
  }
  SegmentPage page{};
  const auto came = read_all(file, page, 0);
  if (!came) return came.error();
  const DecodedHeader decoded = decode_segment_header(page);
  const std::uint32_t epoch = decoded.header ? decoded.header->epoch : 0;
  if (epoch == node.header().epoch) return {};
  return dropped(node);
}

}  // namespace

// Tries the segment's own name twice, because the segment may get it between the first attempt and the
// second.
Result<std::unique_ptr<File>> open_as_it_was(const SegmentNode& node, Storage& storage) {
  const std::string unnamed = directory_before(node) + next_prepared_name;
  Error last;
  for (const std::string* path : {&node.path(), &unnamed, &node.path()}) {
    auto file = storage.open(*path, OpenMode::read_only);
    const auto locked = file ? lock_as_it_was(**file, node) : Result<void>(file.error());
    if (locked) return file;
    last = locked.error();
    if (last.code != ErrorCode::closed && !is_missing(last)) return last;
  }
  return dropped(node);
}

std::string segment_index_path(const SegmentNode& node) {
  return directory_before(node) + segment_index_name(node.first_offset());
}

SegmentView::SegmentView(std::shared_ptr<SegmentNode> node, std::shared_ptr<const void> mapping,
                         const std::byte* data, std::size_t bytes,
                         std::shared_ptr<std::atomic<std::uint64_t>> counted, const Mapping* of_its_own)
    : node_(std::move(node)),
      mapping_(std::move(mapping)),
      of_its_own_(of_its_own),
      data_(data),
      bytes_(bytes),
      counted_(std::move(counted)) {
  if (counted_) counted_->fetch_add(bytes_, std::memory_order_relaxed);
}

SegmentView::~SegmentView() {
  if (counted_) counted_->fetch_sub(bytes_, std::memory_order_relaxed);
}

// Remembers the range, because repeating the call has a cost: the system looks at each page.
void SegmentView::populate(std::uint64_t begin, std::uint64_t end) const {
  if (of_its_own_ == nullptr) return;
  const std::uint64_t ready_begin = ready_begin_.load(std::memory_order_relaxed);
  const std::uint64_t ready_end = ready_end_.load(std::memory_order_relaxed);
  if (ready_begin <= begin && end <= ready_end) return;
  of_its_own_->populate(begin, end);
  const bool joined = begin <= ready_end && ready_begin <= end;
  ready_begin_.store(joined ? std::min(begin, ready_begin) : begin, std::memory_order_relaxed);
  ready_end_.store(joined ? std::max(end, ready_end) : end, std::memory_order_relaxed);
}

// Destroys a long chain, left by a slow reader, in a loop instead of by recursion. Each destroyed node leaves
// its successor to the outermost call. (Testing a successor's use_count would not be ordered with its last
// reader's release.)
SegmentNode::~SegmentNode() {
  thread_local std::shared_ptr<SegmentNode>* left = nullptr;
  if (left != nullptr) {
    *left = std::move(next_);
    return;
  }
  std::shared_ptr<SegmentNode> next = std::move(next_);
  left = &next;
  while (next != nullptr) {
    std::shared_ptr<SegmentNode> going = std::move(next);
    going.reset();
  }
  left = nullptr;
}

// The file of another process's log stays locked, hence open, as long as it is mapped.
struct SegmentViews::MappedFile {
  std::unique_ptr<File> file;
  std::unique_ptr<Mapping> mapping;
};

Result<std::unique_ptr<File>> SegmentViews::open(const SegmentNode& node) const {
  if (viewed_ == ViewedLog::of_another_process) return open_as_it_was(node, storage_);
  return storage_.open(node.path(), OpenMode::read_only);
}

Result<std::shared_ptr<const SegmentViews::MappedFile>> SegmentViews::map_file(const SegmentNode& node) {
  auto file = open(node);
  if (!file) return file.error();
  auto mapped = (*file)->map(node.usable_bytes());
  if (!mapped) return mapped.error();
  auto made = std::make_shared<MappedFile>();
  made->mapping = std::move(*mapped);
  if (viewed_ == ViewedLog::of_another_process) made->file = std::move(*file);
  return std::shared_ptr<const MappedFile>(std::move(made));
}

std::shared_ptr<const SegmentIndex> SegmentViews::index(const std::shared_ptr<SegmentNode>& node) {
  if (node->growing_ != nullptr) return node->growing_;
  const std::lock_guard lock(mutex_);
  const bool sealed = node->next() != nullptr;
  const std::uint64_t end = node->end_position();
  if (node->loaded_ != nullptr && end - node->loaded_end_ < index_again_bytes) return node->loaded_;
  const SegmentHeader& header = node->header();
  const IndexedSegment segment{header.epoch, header.incarnation, header.first_offset, node->end_offset(),
                               end,          header.batch_mask};
  const std::string path = segment_index_path(*node);
  std::shared_ptr<const SegmentIndex> found;
  if (sealed) {
    if (auto loaded = SegmentIndexFile::load(storage_, path, segment)) found = std::move(*loaded);
  }
  if (found == nullptr && header.epoch != 0) {
    const auto file = open(*node);
    if (!file) return nullptr;
    found = SegmentIndexFile::rebuild(**file, segment);
    if (sealed && viewed_ == ViewedLog::own && found != nullptr) {
      static_cast<void>(SegmentIndexFile::store(storage_, path, segment, *found));
    }
  }
  node->loaded_ = found;
  node->loaded_end_ = end;
  return found;
}

Result<std::shared_ptr<const SegmentView>> SegmentViews::view(const std::shared_ptr<SegmentNode>& node) {
  const std::lock_guard lock(mutex_);
  if (auto known = node->view_.lock()) {
    keep(known, *node);
    return known;
  }
  std::shared_ptr<const SegmentView> made;
  // No reader reads from an unreadable segment, which may be shorter than a page. Nor from one that was left
  // empty, because its name may now belong to the file that replaced it, which has another size.
  const bool left_empty = node->next() != nullptr && node->end_position() <= segment_header_bytes;
  if (node->header().epoch == 0 || left_empty) {
    made = std::make_shared<SegmentView>(node, nullptr, nullptr, 0, nullptr);
  } else if (auto writable = node->writable_.lock()) {
    const std::byte* data = writable->data();
    made = std::make_shared<SegmentView>(node, std::move(writable), data, node->usable_bytes(), nullptr);
  } else {
    take_until_room(node->usable_bytes()).clear();  // before mapping, because the cap is a hard limit
    auto mapping = map_file(*node);
    if (!mapping) return mapping.error();
    const Mapping& mapped = *(*mapping)->mapping;
    made = std::make_shared<SegmentView>(node, std::move(*mapping), mapped.data(), node->usable_bytes(),
                                         mapped_bytes_, &mapped);
  }
  node->view_ = made;
  keep(made, *node);
  return made;
}

// Keeps the view for later readers, and drops views above the cap. A dropped view stays mapped as long as a
// reader has it.
void SegmentViews::keep(const std::shared_ptr<const SegmentView>& view, const SegmentNode& node) {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) { return kept.node == &node; });
  if (found == kept_.end()) {
    kept_.push_front({&node, view});
  } else {
    kept_.splice(kept_.begin(), kept_, found);
  }
  while (bytes_max_ != 0 && kept_.size() > 1 && mapped_bytes() > bytes_max_) kept_.pop_back();
  while (viewed_ == ViewedLog::of_another_process && kept_.size() > other_process_files_max) kept_.pop_back();
}

// Unmaps without the lock, so that readers that continue with another segment need not wait.
void SegmentViews::make_room(std::uint64_t bytes) {
  const std::lock_guard one_at_a_time(making_room_);
  std::list<Kept> dropped;
  const std::lock_guard lock(mutex_);
  dropped = take_until_room(bytes);
}

// Removes the least recently used views first. A view that a reader still has frees nothing.
std::list<SegmentViews::Kept> SegmentViews::take_until_room(std::uint64_t bytes) {
  std::list<Kept> dropped;
  std::uint64_t freed = 0;
  while (!kept_.empty() && !has_room(bytes - std::min(bytes, freed))) {
    if (kept_.back().view.use_count() == 1) freed += kept_.back().view->size();
    dropped.splice(dropped.end(), kept_, std::prev(kept_.end()));
  }
  return dropped;
}

void SegmentViews::share(SegmentNode& node, const std::shared_ptr<WritableMapping>& mapping) {
  const std::lock_guard lock(mutex_);
  node.writable_ = mapping;
}

void SegmentViews::forget(const SegmentNode& node) {
  const std::lock_guard lock(mutex_);
  kept_.remove_if([&](const Kept& kept) { return kept.node == &node; });
}

std::shared_ptr<WritableMapping> SegmentViews::counted(std::unique_ptr<WritableMapping> mapping) {
  mapped_bytes_->fetch_add(mapping->size(), std::memory_order_relaxed);
  return {mapping.release(), [counted = mapped_bytes_](WritableMapping* counted_mapping) {
            counted->fetch_sub(counted_mapping->size(), std::memory_order_relaxed);
            std::default_delete<WritableMapping>()(counted_mapping);
          }};
}

}  // namespace lightq::log
