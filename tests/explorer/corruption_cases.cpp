/// Damages the files of a small log and checks that the log notices. This file makes the damage;
/// corruption.cpp checks.
#include <algorithm>

#include "explorer/corruption.hpp"

namespace lightq::test {

namespace {

constexpr std::size_t sector = ExplorerStorage::sector_bytes;

std::string name_of(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

}  // namespace

CorruptionResult Corruption::flip_bits() {
  CorruptionResult result;
  strict_ = true;
  for (const std::string& file : base_.files) {
    const std::size_t bits = base_.disk.size_of(file) * 8;
    for (std::size_t bit = 0; bit < bits; bit += options_.bit_step) {
      fresh().bytes_of(file)[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      touch(file, bit / 8, bit / 8 + 1);
      judge("bit " + std::to_string(bit % 8) + " of byte " + std::to_string(bit / 8) + " of " + name_of(file),
            result);
    }
  }
  return result;
}

CorruptionResult Corruption::move_batches() {
  CorruptionResult result;
  strict_ = false;
  const auto& batches = base_.batches;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const Batch& one = batches[i];
    const std::string name = "batch " + std::to_string(i);
    fresh();
    write(one.file, one.position, std::vector<std::byte>(one.bytes));
    judge(name + " zeroed", result);
    for (std::size_t k = 0; k < batches.size(); ++k) {
      const Batch& two = batches[k];
      const std::string pair = name + " and " + std::to_string(k);
      fresh();
      write(two.file, two.position, bytes_of(base_, one.file, one.position, one.bytes));
      judge(pair + ": the first written over the second", result);
      if (k >= i || one.bytes != two.bytes) continue;
      fresh();
      write(two.file, two.position, bytes_of(base_, one.file, one.position, one.bytes));
      write(one.file, one.position, bytes_of(base_, two.file, two.position, two.bytes));
      judge(pair + ": swapped", result);
    }
    for (std::size_t k = 0; k < other_.batches.size(); ++k) {
      const Batch& foreign = other_.batches[k];
      fresh();
      write(one.file, one.position, bytes_of(other_, foreign.file, foreign.position, foreign.bytes));
      judge(name + " under batch " + std::to_string(k) + " of another log", result);
    }
  }
  return result;
}

CorruptionResult Corruption::move_sectors() {
  CorruptionResult result;
  strict_ = false;
  std::vector<std::pair<std::string, std::size_t>> sectors;
  for (const std::string& file : base_.files) {
    for (std::size_t at = 0; at < base_.disk.size_of(file); at += sector) {
      if (at == 0 || at >= log::segment_header_bytes) sectors.emplace_back(file, at);
    }
  }
  for (const auto& [file, at] : sectors) {
    const std::string name = "sector at " + std::to_string(at) + " of " + name_of(file);
    fresh();
    write(file, at, std::vector<std::byte>(sector));
    judge(name + " zeroed", result);
    for (const auto& [source, from] : sectors) {
      const std::string pair = name + " and at " + std::to_string(from) + " of " + name_of(source);
      fresh();
      write(file, at, bytes_of(base_, source, from, sector));
      judge(pair + ": the second over the first", result);
      fresh();
      write(file, at, bytes_of(base_, source, from, sector));
      write(source, from, bytes_of(base_, file, at, sector));
      judge(pair + ": swapped", result);
      if (std::find(other_.files.begin(), other_.files.end(), source) == other_.files.end()) continue;
      fresh();
      write(file, at, bytes_of(other_, source, from, sector));
      judge(pair + " of another log: the second over the first", result);
    }
  }
  return result;
}

CorruptionResult Corruption::spoil_files() {
  CorruptionResult result;
  strict_ = true;
  constexpr std::size_t seal = log::segment_seal_position;
  for (const std::string& file : base_.files) {
    const std::string name = name_of(file);
    const std::size_t size = base_.disk.size_of(file);
    for (std::size_t bytes = 0; bytes < size; bytes += 64) {
      fresh().resize(file, bytes);
      touch(file, bytes, size);
      judge(name + " cut to " + std::to_string(bytes) + " bytes", result);
    }
    if (file != base_.files.front() &&
        // Without its first or last file, the log looks as if retention or a crash had removed it.
        file != base_.files.back()) {
      static_cast<void>(fresh().unlink(file));
      scratch_.settle();
      touch(file, 0, size);
      judge(name + " removed", result);
      if (reader_.log() != nullptr && reader_.log()->recovery().damaged.empty() && !result.violation) {
        result.violation = name + " is missing, and recovery does not say so";
      }
    }
    for (const std::string& source : base_.files) {
      if (source == file) continue;
      const std::string pair = " of " + name_of(source) + " in " + name;
      const std::size_t parts[][2] = {{0, size}, {0, log::segment_header_bytes}, {0, seal}, {seal, seal * 2}};
      for (const auto& [begin, end] : parts) {
        fresh();
        write(file, begin, bytes_of(base_, source, begin, end - begin));
        judge("bytes from " + std::to_string(begin) + " to " + std::to_string(end) + pair, result);
      }
    }
  }
  return result;
}

CorruptionResult Corruption::spoil_cursors() {
  CorruptionResult result;
  const std::string files[] = {std::string(LogClient::directory) + "/cursors.0",
                               std::string(LogClient::directory) + "/cursors.1"};
  for (const std::string& file : files) {
    const std::size_t size = base_.disk.size_of(file);
    for (std::size_t bit = 0; bit < size * 8; bit += options_.bit_step) {
      fresh().bytes_of(file)[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      touch(file, bit / 8, bit / 8 + 1);
      judge_cursor("bit " + std::to_string(bit) + " of " + name_of(file), result);
    }
    for (std::size_t bytes = 0; bytes < size; ++bytes) {
      fresh().resize(file, bytes);
      touch(file, bytes, size);
      judge_cursor(name_of(file) + " cut to " + std::to_string(bytes) + " bytes", result);
    }
    for (std::size_t at = 0; at < size; at += sector) {
      const std::size_t bytes = std::min(sector, size - at);
      const std::string& source = files[file == files[0] ? 1 : 0];
      fresh();
      write(file, at, std::vector<std::byte>(bytes));
      judge_cursor("sector at " + std::to_string(at) + " of " + name_of(file) + " zeroed", result);
      fresh();
      write(file, at, bytes_of(base_, source, at, bytes));
      judge_cursor("sector at " + std::to_string(at) + " of " + name_of(source) + " in the other file",
                   result);
      fresh();
      write(file, at, bytes_of(base_, source, at, bytes));
      write(source, at, bytes_of(base_, file, at, bytes));
      judge_cursor("sectors at " + std::to_string(at) + " swapped", result);
    }
  }
  return result;
}

}  // namespace lightq::test
