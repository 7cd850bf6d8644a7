/// Maps anonymous memory and files with mmap. Layer: log.
#include "log/storage/mapped_memory.hpp"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace lightq::log {

MappedMemory::MappedMemory(MappedMemory&& other) noexcept
    : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedMemory& MappedMemory::operator=(MappedMemory&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedMemory::~MappedMemory() {
  if (start_ != nullptr) munmap(start_, bytes_);
}

Result<MappedMemory> MappedMemory::anonymous(std::size_t bytes) {
  void* start =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return Error{ErrorCode::io_error, "cannot map " + std::to_string(bytes) + " bytes of memory", errno};
  }
  return MappedMemory(static_cast<std::byte*>(start), bytes);
}

Result<MappedMemory> MappedMemory::file(int fd, std::size_t bytes, int protection) {
  if (bytes == 0) return MappedMemory();  // mmap refuses 0 bytes; a power cut may leave empty files
  void* start = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (start == MAP_FAILED) {
    return Error{ErrorCode::io_error, "cannot map " + std::to_string(bytes) + " bytes of a file", errno};
  }
  return MappedMemory(static_cast<std::byte*>(start), bytes);
}

Result<MappedMemory> MappedMemory::file_read_only(int fd, std::size_t bytes) {
  return file(fd, bytes, PROT_READ);
}

Result<MappedMemory> MappedMemory::file_kept_open(int fd, std::size_t bytes) {
  return file(fd, bytes, PROT_NONE);
}

// Asks for large pages. If the file system supports them, the file lies in memory in pieces of 2 MiB. The
// writer and every later reader then take one page fault for a piece instead of hundreds, and need fewer
// address translations. The cost: a sync writes whole pieces. Smaller files do not gain from it.
Result<MappedMemory> MappedMemory::file_writable(int fd, std::size_t bytes) {
  auto mapped = file(fd, bytes, PROT_READ | PROT_WRITE);
#ifdef MADV_HUGEPAGE
  constexpr std::size_t large_page_bytes = 2 * 1024 * 1024;
  if (mapped && bytes >= large_page_bytes) madvise(mapped->start_, bytes, MADV_HUGEPAGE);
#endif
  return mapped;
}

// Works in pieces, so that other threads do not wait long for the lock of the address space.
void MappedMemory::prefault() {
#ifdef MADV_POPULATE_WRITE
  constexpr std::size_t piece_bytes = 1024 * 1024;
  for (std::size_t at = 0; at < bytes_; at += piece_bytes) {
    if (madvise(start_ + at, std::min(piece_bytes, bytes_ - at), MADV_POPULATE_WRITE) != 0) return;
  }
#endif
}

void MappedMemory::populate(std::size_t begin, std::size_t end) const {
#ifdef MADV_POPULATE_READ
  constexpr std::size_t page_bytes = 4096;  // or a part of one; madvise refuses other addresses
  begin -= begin % page_bytes;
  end = std::min(end, bytes_);
  if (begin < end) madvise(start_ + begin, end - begin, MADV_POPULATE_READ);
#else
  static_cast<void>(begin + end);
#endif
}

// The kernel syncs through the open file that was mapped, which remembers the errors that it has reported.
Result<void> MappedMemory::sync() const {
  if (start_ == nullptr || msync(start_, bytes_, MS_SYNC) == 0) return {};
  return Error{ErrorCode::io_error, "cannot sync the memory of a file", errno};
}

void MappedMemory::give_back() {
  if (start_ != nullptr) madvise(start_, bytes_, MADV_DONTNEED);
}

namespace {

/// Returns true if the loader has written to the code of a program or library. Its pages are then not those
/// of the file, and unmapping them would lose the changes.
bool is_relocated(const dl_phdr_info& object, const ElfW(Phdr) & dynamic) {
  const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + dynamic.p_vaddr);
  for (; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_TEXTREL || (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
      return true;
  }
  return false;
}

int give_back_code_of(dl_phdr_info* object, std::size_t, void*) {
  const std::span segments(object->dlpi_phdr, object->dlpi_phnum);
  for (const auto& segment : segments)
    if (segment.p_type == PT_DYNAMIC && is_relocated(*object, segment)) return 0;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  for (const auto& segment : segments) {
    if (segment.p_type != PT_LOAD || (segment.p_flags & (PF_X | PF_W)) != PF_X) continue;
    const std::uintptr_t begin = (object->dlpi_addr + segment.p_vaddr) / page * page;
    const std::uintptr_t end = object->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // only saves memory
  }
  return 0;
}

}  // namespace

void give_back_code() {
  dl_iterate_phdr(give_back_code_of, nullptr);
}

}  // namespace lightq::log
