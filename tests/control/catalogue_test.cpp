/// Tests of control/catalogue/catalogue: restarts and crashes.
#include "control/catalogue/catalogue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/catalogue/catalogue_schedules.hpp"
#include "control/catalogue/catalogue_settings.hpp"
#include "control/catalogue_room.hpp"
#include "support/golden_files.hpp"

namespace lightq::broker {
namespace {

using test::CatalogueRoom;
using test::name;
using testing::HasSubstr;

protocol::TopicSettings file_settings() {
  protocol::TopicSettings settings;
  settings.broker_type = protocol::BrokerType::file;
  settings.retention_ms = 5000;
  settings.open = true;
  return settings;
}

TEST(Catalogue, RemembersEverythingOverARestart) {
  CatalogueRoom room;
  TopicId topic;
  {
    const auto catalogue = room.open();
    const auto credential = catalogue->add_credential("user", "$argon2id$x").value();
    topic = catalogue->add_topic(name("orders"), file_settings(), credential)->id;
    ASSERT_TRUE(catalogue->put_endpoint({7, topic, EndpointRole::sub, protocol::Transport::tcp, 5002}).ok());
    ASSERT_TRUE(catalogue->put_endpoint({8, topic, EndpointRole::pull, protocol::Transport::ipc, 0}).ok());
    EXPECT_TRUE(catalogue->unflushed());
    ASSERT_TRUE(catalogue->flush().ok());
    EXPECT_FALSE(catalogue->unflushed());
  }
  const auto catalogue = room.open();
  const auto* entry = catalogue->state().find("orders");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->definition.id, topic);
  EXPECT_EQ(entry->definition.settings, file_settings());
  const auto* credential = catalogue->state().credential(entry->credential_id);
  ASSERT_NE(credential, nullptr);
  EXPECT_EQ(credential->user_id, "user");
  EXPECT_EQ(credential->argon2, "$argon2id$x");
  EXPECT_EQ(catalogue->state().credential_of("user"), credential);
  const auto endpoints = catalogue->state().endpoints_of(topic);
  ASSERT_EQ(endpoints.size(), 2U);
  EXPECT_EQ(endpoints[0].port, 5002);
  EXPECT_EQ(endpoints[0].role, EndpointRole::sub);
  EXPECT_EQ(endpoints[1].transport, protocol::Transport::ipc);
  EXPECT_EQ(catalogue->state().next_ids().endpoint, 9U);
  EXPECT_TRUE(room.sink.lines.empty());
}

TEST(Catalogue, AnEncryptedTopicKeepsItsLogId) {
  CatalogueRoom room;
  auto settings = file_settings();
  std::uint32_t first = 0;
  TopicId clear;
  {
    const auto catalogue = room.open();
    clear = catalogue->add_topic(name("clear"), settings, 0)->id;
    EXPECT_EQ(catalogue->state().find("clear")->definition.log_id, 0U);
    settings.encrypt_at_rest = true;
    first = catalogue->add_topic(name("a"), settings, 0)->log_id;
    EXPECT_NE(first, 0U);
    EXPECT_NE(catalogue->add_topic(name("b"), settings, 0)->log_id, first);
    EXPECT_EQ(catalogue->state().topic_of_log(first)->definition.name, name("a"));
    EXPECT_EQ(catalogue->state().topic_of_log(0), nullptr);
    ASSERT_TRUE(catalogue->set_log(clear, 4711).ok());
    const auto compaction = catalogue->begin_compaction();
    compaction->run({});
    catalogue->finish_compaction(*compaction);
    EXPECT_EQ(catalogue->state().find("a")->definition.log_id, first);
    ASSERT_TRUE(catalogue->set_log(clear, 4712).ok());
  }
  const auto catalogue = room.open();
  EXPECT_EQ(catalogue->state().find("a")->definition.log_id, first);
  EXPECT_EQ(catalogue->state().find(clear)->definition.log_id, 4712U);
  EXPECT_TRUE(room.sink.lines.empty());
}

TEST(Catalogue, RemembersUsersAndNeverUsesTheirNumbersAgain) {
  CatalogueRoom room;
  UserRecord ann;
  ann.credential = {0, "ann", "$argon2id$a"};
  ann.rights = {{"orders*", {.produce = true, .manage = true}}};
  ann.uid = 1000;
  UserRecord bob;
  bob.credential = {0, "bob", ""};
  bob.is_admin = true;
  std::uint64_t last = 0;
  {
    const auto catalogue = room.open();
    const auto added = catalogue->add_user(ann).value();
    EXPECT_EQ(catalogue->add_user(bob)->id, added.id + 1);
    const auto changed = catalogue->set_user_password(added, "$argon2id$b").value();
    EXPECT_EQ(changed.generation, 2U);
    EXPECT_EQ(changed.id, added.id);
    EXPECT_EQ(changed.credential.id, added.id + 2) << "remembered passwords are not right for it any more";
    last = catalogue->add_user({{}, {0, "eve", "$argon2id$e"}, 1001})->id;
    ASSERT_TRUE(catalogue->remove_user(last).ok());
    ASSERT_TRUE(catalogue->flush().ok());
  }
  const auto catalogue = room.open();
  const UserRecord* const user = catalogue->state().user("ann");
  ASSERT_NE(user, nullptr);
  EXPECT_EQ(user->generation, 2U);
  EXPECT_EQ(user->credential.argon2, "$argon2id$b");
  EXPECT_EQ(user->rights, ann.rights);
  EXPECT_FALSE(user->is_admin);
  EXPECT_EQ(catalogue->state().user_of_uid(1000), user);
  EXPECT_EQ(catalogue->state().user_of_uid(1001), nullptr);
  ASSERT_NE(catalogue->state().user("bob"), nullptr);
  EXPECT_TRUE(catalogue->state().user("bob")->is_admin);
  EXPECT_EQ(catalogue->state().user("bob")->credential.argon2, "");
  EXPECT_EQ(catalogue->state().user("eve"), nullptr);
  EXPECT_EQ(catalogue->add_user({{}, {0, "eve", "$argon2id$e"}, {}})->id, last + 1);
  EXPECT_GT(catalogue->add_credential("u", "$argon2id$u").value(), last + 1) << "one sequence for both";
  EXPECT_TRUE(room.sink.lines.empty());
}

TEST(Catalogue, AUserKeepsAllItsRightsOverAReload) {
  UserRecord user;
  user.id = 9;
  user.generation = 4'000'000'000;
  user.credential = {12, std::string(limits::user_id_bytes_max, 'u'), std::string(200, 'h')};
  for (std::size_t i = 0; i < limits::rights_per_user_max; ++i) {
    const std::string number = std::to_string(i);
    const std::string pattern = number + std::string(limits::topic_pattern_bytes_max - number.size(), 'x');
    user.rights.push_back({pattern, {.produce = true, .consume = true, .manage = true}});
  }
  const auto decoded = decode_change(encode(UserPut{user}));
  ASSERT_TRUE(decoded.ok()) << decoded.error().text();
  const UserRecord& back = std::get<UserPut>(*decoded).user;
  EXPECT_EQ(back.generation, user.generation);
  EXPECT_EQ(back.rights, user.rights);
  EXPECT_EQ(back.credential.id, 12U);
  EXPECT_FALSE(decode_change(R"({"op":"user","id":0,"credential":1,"user_id":"u"})").ok());
  EXPECT_FALSE(decode_change(R"({"op":"user","id":1,"credential":1,"user_id":"u","rights":[{}]})").ok());
}

TEST(Catalogue, ATopicsOwnUserMayBeReplaced) {
  CatalogueRoom room;
  TopicId first;
  TopicId second;
  {
    const auto catalogue = room.open();
    const auto old = catalogue->add_credential("user", "$argon2id$x").value();
    first = catalogue->add_topic(name("first"), {}, old)->id;
    second = catalogue->add_topic(name("second"), {}, old)->id;
    const auto fresh = catalogue->add_credential("user", "$argon2id$y").value();
    ASSERT_TRUE(catalogue->set_topic_credential(first, fresh).ok());
    EXPECT_TRUE(catalogue->state().in_use(old)) << "by the other topic";
    ASSERT_TRUE(catalogue->set_topic_credential(second, fresh).ok());
    EXPECT_FALSE(catalogue->state().in_use(old));
    EXPECT_EQ(catalogue->state().credential_of("user")->id, fresh);
    ASSERT_TRUE(catalogue->set_topic_credential(second, 4711).ok());
    EXPECT_EQ(catalogue->state().find(second)->credential_id, fresh) << "there is no such credential";
    ASSERT_TRUE(catalogue->flush().ok());
  }
  const auto catalogue = room.open();
  for (const TopicId topic : {first, second}) {
    const auto* const credential =
        catalogue->state().credential(catalogue->state().find(topic)->credential_id);
    ASSERT_NE(credential, nullptr);
    EXPECT_EQ(credential->argon2, "$argon2id$y");
  }
}

TEST(Catalogue, RemembersThatATopicIsPaused) {
  CatalogueRoom room;
  TopicId paused, resumed;
  {
    const auto catalogue = room.open();
    paused = catalogue->add_topic(name("a"), file_settings(), 0)->id;
    resumed = catalogue->add_topic(name("b"), {}, 0)->id;
    for (const TopicId topic : {paused, resumed}) ASSERT_TRUE(catalogue->set_paused(topic, true).ok());
    ASSERT_TRUE(catalogue->set_paused(resumed, false).ok());
    ASSERT_TRUE(catalogue->set_paused({99}, true).ok()) << "there is none such; nothing happens";
  }
  const auto catalogue = room.open();
  EXPECT_TRUE(catalogue->state().find(paused)->definition.paused);
  EXPECT_FALSE(catalogue->state().find(resumed)->definition.paused);
  CatalogueState compacted;
  for (const auto& change : catalogue->state().snapshot()) {
    const auto read = decode_change(encode(change));
    ASSERT_TRUE(read.ok()) << read.error().text();
    compacted.apply(read.value());
  }
  EXPECT_TRUE(compacted.find(paused)->definition.paused);
  EXPECT_EQ(compacted.find(paused)->definition.settings, file_settings());
  EXPECT_FALSE(compacted.find(resumed)->definition.paused);
  EXPECT_TRUE(room.sink.lines.empty());
  compacted.apply(CatalogueChange(TopicPaused{{99}, true}));
}

TEST(Catalogue, SurvivesBeingKilledAfterAnAppend) {
  CatalogueRoom room;
  auto killed = room.open();
  ASSERT_TRUE(killed->add_topic(name("t"), {}, 0).ok());
  // The copy has the records that the first catalogue wrote without a flush or close.
  std::filesystem::copy(room.path(), room.directory / "copy", std::filesystem::copy_options::recursive);
  const auto copy = Catalogue::open(room.directory / "copy", room.options(), room.sink);
  ASSERT_TRUE(copy.ok()) << copy.error().text();
  EXPECT_NE(copy.value()->state().find("t"), nullptr);
}

TEST(Catalogue, NeverUsesAnIdAgain) {
  CatalogueRoom room;
  std::uint64_t last = 0;
  for (int i = 0; i < 3; ++i) {
    const auto catalogue = room.open();
    const auto id = catalogue->add_topic(name("t"), {}, 0)->id;
    EXPECT_GT(id.value, last);
    last = id.value;
    ASSERT_TRUE(catalogue->remove_topic(id).ok());
  }
}

TEST(Catalogue, QuarantinesThePortsOfAClosedEndpointAndADeletedTopic) {
  CatalogueRoom room;
  {
    const auto catalogue = room.open();
    const auto topic = catalogue->add_topic(name("t"), {}, 0)->id;
    for (const std::uint16_t port : std::initializer_list<std::uint16_t>{5001, 5002, 5003}) {
      ASSERT_TRUE(
          catalogue->put_endpoint({port, topic, EndpointRole::pull, protocol::Transport::tcp, port}).ok());
    }
    ASSERT_TRUE(catalogue->remove_endpoint(5001).ok());
    ASSERT_TRUE(catalogue->remove_endpoint(4711).ok()) << "unknown: nothing to do";
    room.now_ms += 300'000;
    ASSERT_TRUE(catalogue->remove_topic(topic).ok());
  }
  EXPECT_EQ(room.open()->state().released_ports().size(), 3U);
  room.now_ms += 400'000;  // port 5001 was released 700 s ago, the others 400 s ago
  EXPECT_THAT(room.open()->state().released_ports(),
              testing::ElementsAre(testing::Key(5002), testing::Key(5003)));
}

TEST(Catalogue, ForgetsAnUnusedCredentialAsAUserAtOnce) {
  CatalogueRoom room;
  const auto catalogue = room.open();
  const auto credential = catalogue->add_credential("user", "x").value();
  EXPECT_EQ(catalogue->state().credential_of("user"), nullptr);
  const auto first = catalogue->add_topic(name("a"), {}, credential)->id;
  const auto second = catalogue->add_topic(name("b"), {}, credential)->id;
  ASSERT_TRUE(catalogue->remove_topic(first).ok());
  EXPECT_NE(catalogue->state().credential_of("user"), nullptr);
  ASSERT_TRUE(catalogue->remove_topic(second).ok());
  EXPECT_EQ(catalogue->state().credential_of("user"), nullptr);
  EXPECT_FALSE(catalogue->state().in_use(credential));
}

std::vector<std::string> encoded(const CatalogueState& state) {
  std::vector<std::string> lines;
  for (const auto& change : state.snapshot()) lines.push_back(encode(change));
  return lines;
}

TEST(Catalogue, WritesAShorterLogWhenMostOfItIsHistory) {
  CatalogueRoom room;
  std::vector<std::string> before;
  {
    const auto catalogue = room.open();
    const auto credential = catalogue->add_credential("user", "x").value();
    for (int i = 0; i < 2500; ++i) {
      const auto topic = catalogue->add_topic(name("t" + std::to_string(i)), {}, credential)->id;
      if (i % 50 != 0) {
        ASSERT_TRUE(catalogue->remove_topic(topic).ok());
        catalogue->forget_removed_topic(topic);
        continue;
      }
      const auto port = static_cast<std::uint16_t>(1000 + i);
      ASSERT_TRUE(
          catalogue->put_endpoint({topic.value, topic, EndpointRole::sub, protocol::Transport::tcp, port})
              .ok());
    }
    before = encoded(catalogue->state());
  }
  std::filesystem::create_directory(room.path() + "/00000002.new");  // left by an earlier compaction
  EXPECT_EQ(encoded(room.open()->state()), before);
  EXPECT_FALSE(std::filesystem::exists(room.path() + "/00000001"));
  EXPECT_TRUE(std::filesystem::exists(room.path() + "/00000002"));
  EXPECT_FALSE(std::filesystem::exists(room.path() + "/00000002.new"));
  const auto again = room.open();
  EXPECT_EQ(encoded(again->state()), before);
  EXPECT_TRUE(again->add_topic(name("more"), {}, 0).ok());
  EXPECT_TRUE(std::filesystem::exists(room.path() + "/00000002"));
}

TEST(Catalogue, RefusesAForeignFile) {
  CatalogueRoom room;
  ASSERT_TRUE(room.open()->add_topic(name("t"), {}, 0).ok());
  for (const auto& file : std::filesystem::recursive_directory_iterator(room.path())) {
    if (file.is_regular_file()) std::ofstream(file.path()) << std::string(100'000, 'x');
  }
  EXPECT_FALSE(room.try_open().ok());
}

/// Makes a catalogue with a newest generation from a newer version. Remains of other generations, which
/// a start removes, lie beside it.
void put_newer(CatalogueRoom& room, const std::string& name) {
  for (const std::string generation : {"00000001", "00000002", "00000003.new"}) {
    const std::filesystem::path directory = room.path() + "/" + generation;
    std::filesystem::create_directories(directory);
    const auto bytes = lightq::test::newer_file(generation == "00000002" ? name : "catalogue-optional");
    std::ofstream(directory / log::segment_name({0}), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

std::map<std::string, std::string> files_below(const std::string& path) {
  std::map<std::string, std::string> files;
  for (const auto& file : std::filesystem::recursive_directory_iterator(path)) {
    std::ifstream in(file.path(), std::ios::binary);
    files[file.path().string()] =
        file.is_regular_file() ? std::string(std::istreambuf_iterator<char>(in), {}) : "";
  }
  return files;
}

TEST(Catalogue, RefusesRecordsOfANewerVersionAndChangesNothing) {
  for (const auto& [name, says] : std::map<std::string, std::string>{
           {"catalogue-format", "record 0: it is of version 2, not 1"},
           {"catalogue-op", "record 1: it has a change \"quota\", which this version does not know"},
           {"segment-flags", "with flags 0x0008 at position 56"},
           {"segment-batch-flags", "with codec 0 and flags 0x0010"}}) {
    CatalogueRoom room;
    put_newer(room, name);
    const auto before = files_below(room.path());
    const auto opened = room.try_open();
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_EQ(opened.error().code, ErrorCode::foreign_format);
    EXPECT_THAT(opened.error().message, HasSubstr(says));
    EXPECT_THAT(opened.error().message, HasSubstr("00000002"));
    EXPECT_THAT(opened.error().message, HasSubstr("a newer version of LightQ wrote it"));
    EXPECT_EQ(files_below(room.path()), before);
  }
}

TEST(Catalogue, KeepsOptionalChangesThatItDoesNotKnow) {
  CatalogueRoom room;
  put_newer(room, "catalogue-optional");
  const auto catalogue = room.open();
  ASSERT_NE(catalogue, nullptr);
  EXPECT_TRUE(room.sink.lines.empty());
  EXPECT_EQ(catalogue->state().next_ids().topic, 7U);
  std::vector<std::string> kept;
  for (const auto& change : catalogue->state().snapshot()) kept.push_back(encode(change));
  EXPECT_THAT(kept, testing::Contains(R"({"op":"colour","id":3,"optional":true})"));
  EXPECT_THAT(kept, testing::Contains(R"({"op":"format","version":1})"));
}

TEST(Catalogue, KeepsTheSettingsOfGroupsInAShorterLog) {
  CatalogueRoom room;
  auto catalogue = room.open();
  const TopicId topic = catalogue->add_topic(name("t"), {}, 0)->id;
  const GroupSetup settings{{.max_attempts = 5, .dead_letter_topic = "d"}, {4}};
  ASSERT_TRUE(put_group(*catalogue, topic, "g", settings));
  ASSERT_TRUE(put_group(*catalogue, topic, "gone", settings));
  ASSERT_TRUE(put_group(*catalogue, topic, "gone", {}));
  ASSERT_TRUE(catalogue->flush());
  CatalogueState copy;
  for (const auto& change : catalogue->state().snapshot()) copy.apply(change);
  const auto& groups = copy.find("t")->definition.groups;
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups.at("g"), settings);
  EXPECT_GE(copy.record_count(), copy.snapshot().size());
  ASSERT_TRUE(put_group(*catalogue, topic, "g", settings));
  EXPECT_FALSE(catalogue->unflushed()) << "nothing has changed";
}

TEST(Catalogue, KeepsSchedulesInAShorterLog) {
  CatalogueRoom room;
  auto catalogue = room.open();
  const TopicId topic = catalogue->add_topic(name("t"), {}, 0)->id;
  const RecurringSchedule schedule{
      .settings = {.cron = "0 9 * * *", .payload = "go"}, .incarnation = 7, .since = {5}};
  ASSERT_TRUE(put_schedule(*catalogue, topic, "n", schedule));
  ASSERT_TRUE(put_schedule(*catalogue, topic, "gone", schedule));
  ASSERT_TRUE(remove_schedule(*catalogue, topic, "gone"));
  ASSERT_TRUE(catalogue->flush());
  CatalogueState copy;
  for (const auto& change : catalogue->state().snapshot()) copy.apply(change);
  const auto& schedules = copy.find("t")->definition.schedules;
  ASSERT_EQ(schedules.size(), 1U);
  EXPECT_EQ(schedules.at("n"), schedule);
  EXPECT_GE(copy.record_count(), copy.snapshot().size());
  ASSERT_TRUE(put_schedule(*catalogue, topic, "n", schedule));
  ASSERT_TRUE(remove_schedule(*catalogue, topic, "gone"));
  EXPECT_FALSE(catalogue->unflushed()) << "nothing has changed";
  catalogue.reset();
  EXPECT_EQ(room.open()->state().find("t")->definition.schedules.at("n"), schedule);
}

/// A log with messages that cannot be read now.
class UnreadableLog final : public log::Log {
 public:
  explicit UnreadableLog(std::unique_ptr<log::Log> log) : log_(std::move(log)) {}
  log::AppendResult append(std::span<std::byte> batch, Timestamp now) override {
    return log_->append(batch, now);
  }
  log::ReadResult read(log::ReadPosition& place) override {
    return {log::ReadOutcome::unavailable, {}, place.offset};
  }
  log::FoundByTime first_since(Timestamp) override { return {first_offset(), 0, true}; }
  [[nodiscard]] Offset first_offset() const override { return log_->first_offset(); }
  [[nodiscard]] Offset next_offset() const override { return log_->next_offset(); }
  [[nodiscard]] Offset durable_offset() const override { return log_->durable_offset(); }
  [[nodiscard]] std::uint64_t stored_bytes() const override { return log_->stored_bytes(); }
  void trim(Offset) override {}
  bool make_room(std::size_t, Offset) override { return false; }
  void maintain(Timestamp) override {}
  std::unique_ptr<log::DiskJob> take_disk_job(Timestamp) override { return nullptr; }
  bool drop_first(Offset, std::size_t) override { return false; }
  [[nodiscard]] bool wants_disk_work() const override { return false; }
  Result<void> flush() override { return log_->flush(); }
  [[nodiscard]] const Error& last_error() const override { return error_; }

 private:
  std::unique_ptr<log::Log> log_;
  Error error_{ErrorCode::io_error, "cannot open a segment", EMFILE};
};

// Taken for empty, the catalogue would lose all users and topics, and the next start would remove their files
// as leftovers.
TEST(Catalogue, AnUnavailableCatalogueIsNotTakenForAnEmptyOne) {
  CatalogueRoom room;
  ASSERT_TRUE(room.open()->add_topic(name("orders"), file_settings(), 0).ok());
  auto options = room.options();
  options.open_log = [open = options.open_log](const std::filesystem::path& at) {
    auto log = open(at);
    if (log) log = std::unique_ptr<log::Log>(std::make_unique<UnreadableLog>(std::move(*log)));
    return log;
  };
  const auto opened = Catalogue::open(room.path(), options, room.sink);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().system_error, EMFILE);
  EXPECT_NE(room.open()->state().find("orders"), nullptr);
}

}  // namespace
}  // namespace lightq::broker
