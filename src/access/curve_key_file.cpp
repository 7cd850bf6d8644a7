/// Opens or creates the broker's CURVE key file, and parses the file of allowed client keys. Layer: access.
#include "access/curve_key_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/wipe.hpp>
#include <lightq/base/z85.hpp>

#include "access/private_file.hpp"
#include "base/setting_error.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view space = " \t\r";

/// Splits a line into its first word and the rest.
std::pair<std::string_view, std::string_view> words_of(std::string_view line) {
  line.remove_prefix(std::min(line.find_first_not_of(space), line.size()));
  const auto word = line.substr(0, line.find_first_of(space));
  line.remove_prefix(word.size());
  line.remove_prefix(std::min(line.find_first_not_of(space), line.size()));
  return {word, line};
}

KeyFile key_file_of(const std::filesystem::path& path) {
  return {path, "a CURVE key", "the broker's secret key", "clients that know the old key refuse the broker"};
}

/// Returns null if there is no such file.
Result<std::unique_ptr<CurveKeyPair>> read_curve_key(const std::filesystem::path& path) {
  std::array<std::byte, curve_key_bytes> bytes{};
  const auto found = read_key_file(key_file_of(path), bytes);
  if (!found) return found.error();
  auto key = *found ? std::make_unique<CurveKeyPair>(bytes) : nullptr;
  wipe_bytes(bytes);
  return key;
}

/// Makes a new key, which replaces a file that is there. `owner_of`: as of write_key_file.
Result<std::unique_ptr<CurveKeyPair>> make_curve_key(const std::filesystem::path& path,
                                                     const std::filesystem::path& owner_of = {}) {
  auto key = std::make_unique<CurveKeyPair>();
  if (auto written = write_key_file(key_file_of(path), key->secret(), owner_of); !written)
    return written.error();
  return key;
}

/// Makes the first key of a data directory. If root makes it, it belongs to the directory's owner, who runs
/// the broker.
Result<std::unique_ptr<CurveKeyPair>> make_first_key(const std::filesystem::path& path) {
  return make_curve_key(path, geteuid() == 0 ? path.parent_path() : std::filesystem::path());
}

}  // namespace

Result<std::unique_ptr<CurveKeyPair>> open_curve_key(const std::filesystem::path& path) {
  auto found = read_curve_key(path);
  return !found || *found != nullptr ? std::move(found) : make_first_key(path);
}

Result<CurveKeys::Held> open_curve_keys(const CurveKeyFiles& files) {
  auto current = open_curve_key(files.current);
  if (!current) return current.error();
  auto former = read_curve_key(files.former);
  if (!former) return former.error();
  CurveKeys::Held held{std::move(*current)};
  // They are equal for a moment while a key is renewed.
  if (*former != nullptr && (*former)->public_key() != held.current->public_key())
    held.former = std::move(*former);
  return held;
}

Result<std::unique_ptr<CurveKeyPair>> renew_curve_key(const CurveKeyFiles& files) {
  const auto present = read_curve_key(files.current);
  if (!present) return present.error();
  if (*present == nullptr) return make_first_key(files.current);
  const auto former = read_curve_key(files.former);
  if (!former) return former.error();
  // They are equal if a renewal was interrupted.
  if (*former != nullptr && (*former)->public_key() != (*present)->public_key()) {
    return Error{ErrorCode::invalid_argument,
                 "the key was renewed before, and clients may still use the former one: nothing was changed; "
                 "when all clients have the present key " +
                     to_z85((*present)->public_key()) + ", remove " + files.former.string() +
                     ", and renew again"};
  }
  if (auto kept = write_key_file(key_file_of(files.former), (*present)->secret(), files.current); !kept)
    return kept.error();
  return make_curve_key(files.current, files.current);
}

Result<std::set<CurvePublicKey>> read_allowed_keys(const std::filesystem::path& path, const PipeWait& wait) {
  constexpr std::string_view setting = "allowed_client_keys";
  const auto text = read_public_file(path.string(), "public keys", limits::allowed_client_keys_bytes_max,
                                     LinkRule::followed, wait);
  if (!text) return error_of_setting(setting, text.error());
  std::set<CurvePublicKey> keys;
  std::string_view left = *text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    const std::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(line.size() + 1, left.size()));
    const auto [word, rest] = words_of(line);
    const auto key = curve_key_of_z85(word);
    if (!key && (word.empty() || word.starts_with('#'))) continue;  // a key may contain #, too
    if (!key || (!rest.empty() && !rest.starts_with('#'))) {
      return error_of_setting(setting,
                              {ErrorCode::invalid_argument, path.string() + ":" + std::to_string(number) +
                                                                ": not a public key of 40 Z85 characters"});
    }
    keys.insert(*key);
    if (keys.size() > limits::allowed_client_keys_max) {
      return error_of_setting(
          setting, {ErrorCode::limit_reached, path.string() + " contains more than " +
                                                  std::to_string(limits::allowed_client_keys_max) + " keys"});
    }
  }
  if (!keys.empty()) return keys;
  return error_of_setting(
      setting, {ErrorCode::invalid_argument, path.string() + " contains no key, so no client could connect"});
}

}  // namespace lightq::broker
