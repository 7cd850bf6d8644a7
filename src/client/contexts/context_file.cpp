/// Named brokers, in a file of the user. Layer: cli.
#include "client/contexts/context_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <system_error>
#include <utility>

#include <lightq/base/private_file.hpp>

#include "client/json_text.hpp"

namespace lightq::cli {
namespace {

constexpr std::size_t file_bytes_max = 1 << 20;

using Member = std::pair<const char*, std::string Context::*>;
constexpr std::array<Member, 6> members = {{{"broker", &Context::broker},
                                            {"user", &Context::user},
                                            {"password_file", &Context::password_file},
                                            {"server_key", &Context::server_key},
                                            {"client_key_file", &Context::client_key_file},
                                            {"data_dir", &Context::data_dir}}};

/// Reads JSON that has only objects and strings.
class ObjectReader {
 public:
  explicit ObjectReader(std::string_view text) : text_(text) {}

  /// Reads an object and calls `member(name)` at each value, which must read it. Returns false at a fault.
  template <typename Member>
  bool read_object(Member&& member) {
    if (!take('{')) return false;
    if (take('}')) return true;
    do {
      const auto name = read_text();
      if (!name || !take(':') || !member(*name)) return false;
    } while (take(','));
    return take('}');
  }
  std::optional<std::string> read_text() {
    if (!take('"')) return std::nullopt;
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      const char c = text_[at_++];
      if (static_cast<unsigned char>(c) < ' ') return std::nullopt;
      const auto read = c == '\\' ? read_escaped() : std::optional(c);
      if (!read) return std::nullopt;
      value += *read;
    }
    return take('"') ? std::optional(value) : std::nullopt;
  }
  bool is_at_end() {
    skip_spaces();
    return at_ == text_.size();
  }

 private:
  /// Reads what follows a backslash. Returns nothing for an escape that `append_escaped` does not write.
  std::optional<char> read_escaped() {
    constexpr std::size_t digits = 4;
    if (at_ == text_.size()) return std::nullopt;
    const char c = text_[at_++];
    if (c != 'u') {
      const std::size_t found = std::string_view("\"\\/nt").find(c);
      return found == std::string_view::npos ? std::nullopt : std::optional("\"\\/\n\t"[found]);
    }
    const std::string_view number = text_.substr(at_, digits);
    unsigned code = 0;
    const auto [end, fault] = std::from_chars(number.data(), number.data() + number.size(), code, 16);
    const bool is_whole = number.size() == digits && end == number.data() + number.size();
    if (fault != std::errc() || !is_whole || code > 0x7FU) return std::nullopt;
    at_ += digits;
    return static_cast<char>(code);
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool take(char c) {
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Sets `value` and returns true, or returns false at a fault.
bool read_to(ObjectReader& reader, std::string& value) {
  auto text = reader.read_text();
  if (!text) return false;
  value = std::move(*text);
  return true;
}

bool read_context(ObjectReader& reader, Context& context) {
  return reader.read_object([&](const std::string& name) {
    for (const auto& [known, field] : members)
      if (name == known) return read_to(reader, context.*field);
    return reader.read_text().has_value();
  });
}

Error unreadable(const std::filesystem::path& path) {
  return {ErrorCode::io_error, "cannot read '" + path.string() + "'", errno};
}

Error unusable(const std::filesystem::path& path, const std::string& why) {
  return {ErrorCode::invalid_argument, "'" + path.string() + "' " + why};
}

}  // namespace

std::filesystem::path contexts_path() {
  const char* const config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && *config == '/') return std::filesystem::path(config) / "lightq/contexts.json";
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/') return {};
  return std::filesystem::path(home) / ".config/lightq/contexts.json";
}

std::optional<Contexts> parse_contexts(std::string_view text) {
  ObjectReader reader(text);
  Contexts contexts;
  const bool is_read = reader.read_object([&](const std::string& name) {
    if (name == "current") return read_to(reader, contexts.current);
    if (name != "contexts") return reader.read_text().has_value();
    return reader.read_object(
        [&](const std::string& context) { return read_context(reader, contexts.named[context]); });
  });
  return is_read && reader.is_at_end() ? std::optional(contexts) : std::nullopt;
}

std::string contexts_text(const Contexts& contexts) {
  JsonObject all;
  for (const auto& [name, context] : contexts.named) {
    JsonObject one;
    for (const auto& [member, field] : members)
      if (!(context.*field).empty()) one.add(member, context.*field);
    all.add_raw(name, "\n    " + one.text());
  }
  return JsonObject().add("current", contexts.current).add_raw("contexts", all.text()).text() + "\n";
}

Result<Contexts> read_contexts() {
  const std::filesystem::path path = contexts_path();
  if (path.empty()) return Contexts{};
  // A pipe must not block the opening.
  const lightq::detail::ScopedDescriptor file(
      ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0 && (errno == ENOENT || errno == ENOTDIR)) return Contexts{};
  struct stat about{};
  if (file.get() < 0 || ::fstat(file.get(), &about) != 0) return unreadable(path);
  if (!S_ISREG(about.st_mode)) return unusable(path, "is not a regular file; move it away");
  const bool is_foreign = about.st_uid != ::geteuid() && about.st_uid != 0;
  if (is_foreign || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return unusable(path,
                    "belongs to or may be changed by other users, who could name another broker: chmod 600");
  std::string text;
  errno = lightq::detail::read_bounded({file.get(), true, {}}, file_bytes_max + 1, false, text);
  if (errno != 0) return unreadable(path);
  const auto contexts = text.size() <= file_bytes_max ? parse_contexts(text) : std::nullopt;
  if (!contexts) return unusable(path, "is not a file of contexts; move it away, and add them again");
  return *contexts;
}

Result<void> write_contexts(const Contexts& contexts) {
  const std::filesystem::path path = contexts_path();
  if (path.empty()) return Error{ErrorCode::io_error, "neither HOME nor XDG_CONFIG_HOME names a directory"};
  std::error_code fault;
  std::filesystem::create_directories(path.parent_path(), fault);
  const std::string text = contexts_text(contexts);
  const std::string next = path.string() + ".new";
  const auto failed = [&](const std::string& file) {
    return Error{ErrorCode::io_error, "cannot write '" + file + "'", errno};
  };
  ::unlink(next.c_str());
  const int descriptor = ::open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (descriptor < 0) return failed(next);
  const bool is_written = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool is_synced = is_written && ::fsync(descriptor) == 0;
  if (::close(descriptor) != 0 || !is_synced) return failed(next);
  if (::rename(next.c_str(), path.c_str()) != 0) return failed(path.string());
  return {};
}

}  // namespace lightq::cli
