/// Opens or creates the broker's CURVE key file, and parses the file of allowed client keys. Layer: access.
#include "access/curve_key_file.hpp"

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

}  // namespace

Result<std::unique_ptr<CurveKeyPair>> open_curve_key(const std::filesystem::path& path) {
  const KeyFile file{path, "a CURVE key", "the broker's secret key",
                     "clients that know the old key refuse the broker"};
  std::array<std::byte, curve_key_bytes> bytes{};
  const auto found = read_key_file(file, bytes);
  if (!found) return found.error();
  if (*found) {
    auto key = std::make_unique<CurveKeyPair>(bytes);
    wipe_bytes(bytes);
    return key;
  }
  auto key = std::make_unique<CurveKeyPair>();
  if (auto written = write_key_file(file, key->secret()); !written) return written.error();
  return key;
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
