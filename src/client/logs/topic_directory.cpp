/// Finds the directory of a topic's log by the topic's name. Layer: cli.
#include "client/logs/topic_directory.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <lightq/base/batch_unpack.hpp>
#include <lightq/base/shown_text.hpp>
#include <lightq/base/types.hpp>
#include <lightq/discovery.hpp>
#include <lightq/protocol/json_fields.hpp>

#include "log/storage/posix_storage.hpp"
#include "log/tools/inspect.hpp"

namespace lightq::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t catalogue_record_bytes_max = 1 << 20;

/// Collects the topics that the catalogue names.
class TopicsOfCatalogue final : public log::LogVisitor {
 public:
  bool on_batch(const log::ScannedBatch& /*batch*/, const BatchView& view) override {
    const auto plain = unpacker_.unpack(view);
    unpacker_.forget();
    if (!plain) return true;  // the broker's own start would refuse it
    for (auto record = plain->records(); !record.done(); record.next()) take(as_text(record.payload()));
    return true;
  }
  bool on_finding(const log::Finding& finding) override {
    is_damaged_ = is_damaged_ || finding.is_damage();
    return true;
  }
  bool on_restart() override {
    topics_.clear();
    return true;
  }
  [[nodiscard]] std::optional<std::uint64_t> id_of(const std::string& topic) const {
    const auto found =
        std::ranges::find(topics_, topic, &std::pair<const std::uint64_t, std::string>::second);
    return found == topics_.end() ? std::nullopt : std::optional(found->first);
  }
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

 private:
  void take(std::string_view text) {
    const auto record = protocol::detail::parse_object(text, catalogue_record_bytes_max);
    if (!record) return;
    protocol::detail::FieldReader fields(*record);
    const std::string op = fields.free_text("op", 64);
    if (op != "topic" && op != "topic_removed") return;
    const std::uint64_t id = fields.number("id", 1, protocol::detail::number_max, 0);
    if (op == "topic")
      topics_[id] = fields.free_text("topic", limits::topic_name_bytes_max);
    else
      topics_.erase(id);
  }

  BatchUnpacker unpacker_;
  std::map<std::uint64_t, std::string> topics_;
  bool is_damaged_ = false;
};

}  // namespace

std::optional<fs::path> newest_catalogue(const fs::path& data_dir) {
  std::optional<fs::path> newest;
  std::error_code fault;
  for (fs::directory_iterator at(data_dir / "catalogue", fault), end; !fault && at != end;
       at.increment(fault)) {
    const std::string name = at->path().filename().string();
    const bool is_number = name.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && (!newest || newest->filename().string() < name)) newest = at->path();
  }
  return newest;
}

Result<fs::path> find_data_directory(const std::string& chosen) {
  std::string searched;
  for (const fs::path& directory : data_directories(chosen)) {
    if (newest_catalogue(directory)) return directory;
    searched += (searched.empty() ? "" : ", ") + directory.string();
  }
  return Error{ErrorCode::invalid_argument,
               "no catalogue of a broker is readable in " +
                   (searched.empty() ? std::string("a data directory") : searched) +
                   ": name the directory with --data-dir"};
}

Result<std::string> find_topic_directory(const std::string& chosen, const std::string& topic) {
  const auto data_dir = find_data_directory(chosen);
  if (!data_dir) return data_dir.error();
  constexpr int attempts_max = 5;  // a broker may replace the catalogue's log meanwhile
  for (int attempt = 1;; ++attempt) {
    const fs::path catalogue = newest_catalogue(*data_dir).value_or(*data_dir / "catalogue");
    log::PosixStorage storage;
    TopicsOfCatalogue topics;
    const auto read = log::inspect_log(catalogue.string(), storage, {}, topics);
    if (newest_catalogue(*data_dir) != catalogue && attempt < attempts_max) continue;
    if (!read) return read.error();
    const auto id = topics.id_of(topic);
    if (!id && topics.is_damaged())
      return Error{ErrorCode::corrupt,
                   catalogue.string() + " is damaged, so topic '" + topic + "' may be missing in it"};
    if (!id)
      return Error{ErrorCode::topic_not_found,
                   "the broker's data in " + data_dir->string() + " has no topic '" + topic + "'"};
    const fs::path directory = *data_dir / "topics" / std::to_string(*id);
    std::error_code fault;
    if (fs::is_directory(directory, fault)) return directory.string();
    return Error{ErrorCode::invalid_argument,
                 "topic '" + topic + "' has no files: its messages are only in memory"};
  }
}

}  // namespace lightq::cli
