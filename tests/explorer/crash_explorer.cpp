/// Explores the states in which power cuts may leave a log. This file makes the cuts; crash_programs.cpp has
/// the programs.
#include "explorer/crash_explorer.hpp"

#include <algorithm>

namespace lightq::test {

CrashExplorer::CrashExplorer(const ExplorerOptions& options) : options_(options), random_(options.seed) {
  for (auto& level : levels_) level = std::make_unique<Level>(world_, payloads_);
}

Exploration CrashExplorer::run() {
  while (!done()) {
    begin_program();
    for (std::size_t i = 0; i < options_.program_steps && !done(); ++i) {
      operate();
      if (live_client_->violation) found(*live_client_, "in the program itself");
    }
    live_client_.reset();
  }
  return result_;
}

void CrashExplorer::found(const LogClient& client, const std::string& where) {
  if (result_.violation) return;
  result_.violation = *client.violation + " (" + where + "; seed " + std::to_string(options_.seed) +
                      ", state " + std::to_string(result_.states) + ", program " +
                      std::to_string(result_.programs) + ")";
}

// Describes which writes did not survive, for each cut in turn.
std::string CrashExplorer::describe_cuts(std::size_t depth) const {
  std::string text;
  for (std::size_t i = 0; i <= depth; ++i) {
    const Level& level = *levels_[i];
    text += i == 0 ? "a power cut that undid" : ", then one that undid";
    std::string undone;
    for (std::size_t k = 0; k < level.atoms.size(); ++k) {
      const CutAtom& atom = level.atoms[k];
      if (level.cut[k] + 1U == atom.versions) continue;
      undone += (undone.empty() ? " " : ", ") + level.from->describe(atom);
      if (atom.versions > 2) {
        undone += " (version " + std::to_string(level.cut[k]) + " of " + std::to_string(atom.versions) + ")";
      }
    }
    text += undone.empty() ? " nothing" : undone;
  }
  return text;
}

// Explores the disks that a power cut may leave now, at every step of `disk` or at one of `one_in` steps.
void CrashExplorer::watch(ExplorerStorage& disk, LogClient& owner, std::size_t depth, std::uint64_t one_in) {
  disk.on_step = [this, &disk, &owner, depth, one_in] {
    if (!done() && (one_in == 1 || random_.one_in(one_in))) explore(depth, disk, owner);
  };
}

void CrashExplorer::explore(std::size_t depth, ExplorerStorage& from, LogClient& owner) {
  owner.note_first();
  Level& level = *levels_[depth];
  level.atoms = from.atoms();
  level.from = &from;
  const std::uint64_t most = depth == 0 ? options_.all_below : 4;
  const std::uint64_t samples = depth == 0 ? options_.cuts_per_step : 2;
  const bool all = count_cuts(level.atoms, most) <= most;
  level.cut.assign(level.atoms.size(), 0);
  if (depth == 0) ++result_.steps;
  for (std::uint64_t i = 0; (all || i < samples) && !done(); ++i) {
    if (!all) choose_cut(random_, level.atoms, level.cut);
    level.client.close();
    level.disk.on_step = nullptr;
    level.disk.become(from, level.atoms, level.cut);
    level.client.history = owner.history;
    level.client.died_opening = owner.log() == nullptr || owner.died_opening;
    explore_one(depth);
    if (all && !next_cut(level.atoms, level.cut)) break;
  }
  level.client.close();
}

// Opens the log on the disk of this level. The client begins with the history of the client of the level
// above.
void CrashExplorer::explore_one(std::size_t depth) {
  Level& level = *levels_[depth];
  LogClient& client = level.client;
  ++result_.states;
  client.options = live_client_->options;
  client.now = live_client_->now;
  client.violation.reset();
  const bool deeper = depth + 1 < depth_max;
  // So that most states are first cuts, and come from many programs.
  const std::uint64_t rarely = depth == 0 ? 50 : 200;
  if (deeper && random_.one_in(rarely)) watch(level.disk, client, depth + 1, 1);
  if (depth > 0) ++result_.in_recovery;
  client.open(Ending::power_cut);
  if (!client.violation && deeper && random_.one_in(rarely)) live_on(depth);
  level.disk.on_step = nullptr;
  if (client.violation) found(client, "after " + describe_cuts(depth));
}

// Continues after the machine was switched on again: some appends and flushes, with power cuts in between,
// and then a kill.
void CrashExplorer::live_on(std::size_t depth) {
  Level& level = *levels_[depth];
  LogClient& client = level.client;
  const std::size_t messages = payloads_.count();
  watch(level.disk, client, depth + 1, 1);
  const std::uint64_t appends = random_.between(1, 3);
  for (std::uint64_t i = 0; i < appends && !client.violation && !done(); ++i) {
    client.now.us += 1000;
    static_cast<void>(client.append(some_sizes()));
    if (random_.one_in(3)) static_cast<void>(client.flush());
  }
  level.disk.on_step = nullptr;
  if (!client.violation && !done()) client.open(Ending::kill);
  client.close();
  payloads_.forget_from(messages);
}

}  // namespace lightq::test
