/// Writes the catalogue's state, and later changes, to a new log. Layer: control.
#include "control/catalogue/catalogue_compaction.hpp"

#include <system_error>
#include <utility>

#include <lightq/base/batch.hpp>
#include <lightq/base/batch_builder.hpp>

namespace lightq::broker {

namespace {

constexpr std::size_t changes_batch_bytes = limits::batch_bytes_target;

Result<void> append_batch(log::Log& log, BatchBuilder& batch, Timestamp now) {
  switch (log.append(batch.finish(), now).outcome) {
    case log::AppendOutcome::appended: return {};
    case log::AppendOutcome::full:
    case log::AppendOutcome::no_space:
      return Error{ErrorCode::no_space, "catalogue: no space left on the disk for the change"};
    case log::AppendOutcome::too_large:
      return Error{ErrorCode::internal, "catalogue: a record is too large for its log"};
    case log::AppendOutcome::failed: break;
  }
  return log.last_error();
}

}  // namespace

Result<void> append_changes(log::Log& log, std::span<const CatalogueChange> changes, Timestamp now,
                            const std::stop_token& stop) {
  BatchBuilder batch;
  for (const CatalogueChange& change : changes) {
    batch.add(as_byte_view(encode(change)));
    if (batch.size_bytes() < changes_batch_bytes) continue;
    if (stop.stop_requested()) return Error{ErrorCode::shutting_down, "catalogue: the broker is stopping"};
    if (auto appended = append_batch(log, batch, now); !appended) return appended;
    batch.clear();
  }
  if (batch.empty()) return {};
  return append_batch(log, batch, now);
}

CatalogueCompaction::CatalogueCompaction(std::filesystem::path directory, std::vector<CatalogueChange> state,
                                         OpenLog open_log, Timestamp now)
    : directory_(std::move(directory)), state_(std::move(state)), open_log_(std::move(open_log)), now_(now) {}

void CatalogueCompaction::run(const std::stop_token& stop) {
  outcome_ = write(stop);
}

Result<void> CatalogueCompaction::write(const std::stop_token& stop) {
  std::error_code code;
  std::filesystem::remove_all(directory_, code);  // left by an earlier attempt
  if (code) {
    return Error{ErrorCode::io_error, "catalogue: cannot remove " + directory_.string(), code.value()};
  }
  auto opened = open_log_(directory_);
  if (!opened) return opened.error();
  log_ = std::move(*opened);
  if (auto appended = append_changes(*log_, state_, now_, stop); !appended) return appended;
  return log_->flush();
}

Result<void> CatalogueCompaction::add(std::span<const CatalogueChange> since) {
  if (!outcome_) return outcome_;
  auto appended = append_changes(*log_, since, now_);
  if (appended) appended = log_->flush();
  log_.reset();
  return appended;
}

}  // namespace lightq::broker
