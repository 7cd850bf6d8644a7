/// How far a mirror has come, in a file that survives its end. Layer: cli.
#include "client/mirror/mirror_state.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

#include <lightq/base/base64.hpp>
#include <lightq/protocol/json_fields.hpp>

#include "client/json_text.hpp"
#include "log/storage/posix_storage.hpp"

namespace lightq::cli {
namespace {

using protocol::detail::FieldReader;

std::string text_of_secret(const session::ProducerSecret& secret) {
  std::string text;
  append_base64(text, as_text(std::as_bytes(std::span(secret))));
  return text;
}

void read_secret(FieldReader& fields, MirrorState& to) {
  const auto bytes = from_base64(fields.free_text("secret", 64));
  session::ProducerSecret secret;
  if (!bytes || bytes->size() != secret.size()) return fields.fail("secret", "must be base64 of 16 bytes");
  std::ranges::copy(std::as_bytes(std::span(*bytes)), std::as_writable_bytes(std::span(secret)).begin());
  to.secret = secret;
}

std::vector<MirrorPlaces::Point> read_points(FieldReader& fields) {
  std::vector<MirrorPlaces::Point> points;
  for (const auto& [sequence, offset] : fields.pairs("places", MirrorPlaces::points_max)) {
    if (!points.empty() && (sequence <= points.back().sequence || offset <= points.back().offset))
      fields.fail("places", "must ascend");
    points.push_back({sequence, offset});
  }
  return points;
}

}  // namespace

std::optional<std::uint64_t> MirrorPlaces::offset_of(std::uint64_t sequence) const {
  const auto behind = std::ranges::upper_bound(points_, sequence, {}, &Point::sequence);
  if (behind == points_.begin()) return std::nullopt;
  const Point& point = *std::prev(behind);
  return point.offset + (sequence - point.sequence);
}

bool MirrorPlaces::note(std::uint64_t sequence, std::uint64_t offset) {
  if (offset_of(sequence) == offset) return false;
  if (!points_.empty() && points_.back().sequence == sequence) points_.pop_back();  // that message is gone
  points_.push_back({sequence, offset});
  return true;
}

void MirrorPlaces::cut_from(std::uint64_t sequence) {
  std::erase_if(points_, [sequence](const Point& point) { return sequence <= point.sequence; });
}

void MirrorPlaces::forget_before(std::uint64_t sequence) {
  const auto behind = std::ranges::upper_bound(points_, sequence, {}, &Point::sequence);
  if (behind != points_.begin()) points_.erase(points_.begin(), std::prev(behind));
}

std::string mirror_state_text(const MirrorState& state) {
  JsonArray places;
  for (const MirrorPlaces::Point& point : state.places.points())
    places.add("[" + std::to_string(point.sequence) + "," + std::to_string(point.offset) + "]");
  JsonObject object;
  // Texts, because an id may have 64 bits.
  object.add("format", 1).add("producer_id", std::to_string(state.producer.id));
  object.add("producer_epoch", state.producer.epoch).add("incarnation", std::to_string(state.incarnation));
  if (state.secret) object.add("secret", text_of_secret(*state.secret));
  return object.add_raw("places", places.text()).text() + "\n";
}

Result<MirrorState> parse_mirror_state(std::string_view text) {
  const auto object = protocol::detail::parse_object(text, MirrorState::bytes_max);
  if (!object && object.error().code == ErrorCode::invalid_cmd)
    return Error{ErrorCode::invalid_json, "not a JSON object"};
  if (!object) return object.error();
  FieldReader fields(*object);
  const auto number = [&fields](const char* name) {
    const std::string digits = fields.text(name, 1, 20);
    std::uint64_t value = 0;
    const auto end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, value);
    if (read.ec != std::errc() || read.ptr != end) fields.fail(name, "must be a number, as a text");
    return value;
  };
  if (!fields.has("format")) fields.fail("format", "missing");
  if (fields.number("format", 1, protocol::detail::number_max, 1) != 1)
    fields.fail("format", "is of a newer version of lightq");
  MirrorState state;
  state.producer.id = number("producer_id");
  state.producer.epoch = static_cast<std::uint16_t>(fields.number("producer_epoch", 0, 0xFFFF, 0));
  state.incarnation = number("incarnation");
  if (fields.has("secret")) read_secret(fields, state);
  state.places = MirrorPlaces(read_points(fields));
  if (fields.error()) return *fields.error();
  return state;
}

Result<std::optional<MirrorState>> load_mirror_state(const std::string& file) {
  log::PosixStorage storage;
  const auto opened = storage.open(file, log::OpenMode::read_only);
  if (!opened && log::is_missing(opened.error())) return std::optional<MirrorState>();
  if (!opened) return opened.error();
  std::string text(MirrorState::bytes_max + 1, '\0');
  const auto got = log::read_all(**opened, std::as_writable_bytes(std::span(text)), 0);
  if (!got) return got.error();
  text.resize(*got);
  auto state = parse_mirror_state(text);
  if (!state)
    return Error{ErrorCode::invalid_argument, file + " is no state of a mirror: " + state.error().text()};
  return std::optional(*std::move(state));
}

Result<void> save_mirror_state(const std::string& file, const MirrorState& state) {
  log::PosixStorage storage;
  if (auto made = storage.make_directory(log::parent_of(file)); !made) return made;
  const std::string fresh = file + ".new";
  const std::string text = mirror_state_text(state);
  const auto to = storage.open(fresh, log::OpenMode::create);
  if (!to) return to.error();
  Result<void> done = log::write_all(**to, std::as_bytes(std::span(text)), 0);
  if (done) done = (*to)->sync();
  if (done) done = storage.rename(fresh, file);
  return done ? storage.sync_directory(log::parent_of(file)) : done;
}

}  // namespace lightq::cli
