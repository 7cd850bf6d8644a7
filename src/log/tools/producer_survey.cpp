/// Surveys a topic's producer files. Layer: tools.
#include "log/tools/producer_survey.hpp"

#include "log/saved_state/producer_slots.hpp"
#include "log/saved_state/slot_file.hpp"

namespace lightq::log {

namespace {

constexpr int producer_looks_max = 3;  // another process may be writing the files

ProducerSurvey look_at_producers(const std::string& directory, Storage& storage) {
  const std::string path = directory + "/" + producer_slots_name;
  SlotFile slots(storage, directory, producer_slots_name, producer_slot_format());
  const auto loaded = slots.load(UnreadableSlot::is_damaged);
  ProducerSurvey survey;
  if (!loaded && is_shortage(loaded.error())) {
    survey.unavailable = loaded.error();
  } else if (!loaded && slots.newer_found()) {
    survey.newer = loaded.error();
    survey.findings.push_back({Finding::Kind::foreign, path, 0, 0, {}, {}, loaded.error().text()});
  } else if (!loaded) {
    survey.lost = loaded.error();
    survey.findings.push_back({Finding::Kind::producers, path, 0, 0, {}, {}, loaded.error().text()});
  } else if (slots.passed_over()) {
    survey.findings.push_back({Finding::Kind::torn, path, 0, 0, {}, {}, slots.passed_over()->text()});
  }
  if (loaded && *loaded) survey.producers = (**loaded).count();
  if (loaded) survey.unsound = slots.unsound();
  if (survey.lost) {
    for (const char* number : {".0", ".1"})
      survey.unsound.push_back(std::string(producer_slots_name) + number);
  }
  return survey;
}

}  // namespace

ProducerSurvey survey_producers(const std::string& directory, Storage& storage) {
  ProducerSurvey survey;
  for (int look = 0; look < producer_looks_max; ++look) {
    survey = look_at_producers(directory, storage);
    if (survey.findings.empty() && !survey.unavailable) break;
  }
  return survey;
}

}  // namespace lightq::log
