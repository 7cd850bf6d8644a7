/// Scans the catalogue's log for a record or format that this version does not know. Layer: control.
#include "control/catalogue/catalogue_version.hpp"

#include <optional>
#include <utility>

#include "control/catalogue/catalogue_record.hpp"
#include "log/newer_format.hpp"
#include "log/storage/posix_storage.hpp"
#include "log/tools/inspect.hpp"

namespace lightq::broker {

namespace {

/// Stops at the first record that this version does not know.
class KnownVisitor final : public log::LogVisitor {
 public:
  explicit KnownVisitor(std::string directory) : directory_(std::move(directory)) {}
  bool on_batch(const log::ScannedBatch& batch, const BatchView& view) override {
    if (view.is_compressed()) return true;
    Offset offset = batch.base;
    for (auto record = view.records(); !record.done() && !unknown_; record.next(), offset = offset + 1) {
      const auto change = decode_change(as_text(record.payload()));
      if (change || change.error().code != ErrorCode::foreign_format) continue;
      unknown_ = log::newer_format("catalogue: " + directory_ + ", record " + std::to_string(offset.value) +
                                   ": " + change.error().message);
    }
    return !unknown_;
  }
  bool on_finding(const log::Finding& finding) override {
    if (finding.kind == log::Finding::Kind::foreign)
      unknown_ = Error{ErrorCode::foreign_format, "catalogue: " + finding.text()};
    return !unknown_;
  }
  [[nodiscard]] const std::optional<Error>& unknown() const { return unknown_; }

 private:
  std::string directory_;
  std::optional<Error> unknown_;
};

}  // namespace

Result<void> check_catalogue_known(const std::filesystem::path& directory) {
  log::PosixStorage storage;
  KnownVisitor visitor(directory.string());
  const auto looked = log::inspect_log(directory.string(), storage, {}, visitor);
  if (visitor.unknown()) return *visitor.unknown();
  const bool refused = !looked && looked.error().code == ErrorCode::foreign_format;
  return refused ? looked.error() : Result<void>{};
}

}  // namespace lightq::broker
