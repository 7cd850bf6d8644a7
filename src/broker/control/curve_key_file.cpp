/// Layer: control.
#include "broker/control/curve_key_file.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include <lightq/base/limits.hpp>
#include <lightq/base/z85.hpp>

#include "broker/control/private_file.hpp"

namespace lightq::broker {

namespace {

constexpr std::string_view space = " \t\r";

/// A line's first word, and what follows it.
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
                     "clients that know the old one refuse the broker"};
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

Result<std::set<CurvePublicKey>> read_allowed_keys(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file)
    return Error{ErrorCode::io_error, "allowed_client_keys: cannot read " + path.string(),
                 errno == 0 ? EIO : errno};
  std::set<CurvePublicKey> keys;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    const auto [word, rest] = words_of(line);
    const auto key = curve_key_of_z85(word);
    if (!key && (word.empty() || word.starts_with('#'))) continue;  // # is a digit of keys too
    if (!key || (!rest.empty() && !rest.starts_with('#'))) {
      return Error{ErrorCode::invalid_argument, "allowed_client_keys: " + path.string() + ":" +
                                                    std::to_string(number) +
                                                    ": no public key of 40 characters (Z85)"};
    }
    keys.insert(*key);
    if (keys.size() > limits::allowed_client_keys_max) {
      return Error{ErrorCode::limit_reached, "allowed_client_keys: " + path.string() + " has more than " +
                                                 std::to_string(limits::allowed_client_keys_max) + " keys"};
    }
  }
  if (file.bad()) return Error{ErrorCode::io_error, "allowed_client_keys: cannot read " + path.string(), EIO};
  return keys;
}

}  // namespace lightq::broker
