/// Formats the results of suite `peers`. Layer: bench peers.
#include "peers/peer_table.hpp"

#include <nlohmann/json.hpp>

namespace lightq::bench {
namespace {

constexpr const char* no_figure = "–";

std::string remark_of(const std::map<std::string, std::string>& remarks, const std::string& peer) {
  const auto found = remarks.find(peer);
  return found == remarks.end() ? "" : found->second;
}

}  // namespace

void PeerTable::add(const std::string& peer, const std::string& figure, double value) {
  values_[{peer, figure}].push_back(value);
}

void PeerTable::remark(const std::string& peer, std::string text) {
  groups_.back().remarks[peer] = std::move(text);
}

const std::vector<double>& PeerTable::values(const std::string& peer, const std::string& figure) const {
  static const std::vector<double> none;
  const auto found = values_.find({peer, figure});
  return found == values_.end() ? none : found->second;
}

Row PeerTable::row_of(const std::string& peer, const WorkFigure& figure) const {
  return compare(figure.name, figure.head, figure.unit, figure.better, values(peers_.front(), figure.name),
                 peer, values(peer, figure.name));
}

Table PeerTable::table_of(const Measured& measured) const {
  Table table;
  table.caption = measured.group.caption;
  table.heads = {"peer"};
  for (const WorkFigure& figure : measured.group.figures)
    table.heads.push_back(figure.head + ", " + figure.unit);
  for (const WorkFigure& figure : measured.group.figures) table.heads.push_back("ratio, " + figure.head);
  table.heads.emplace_back("missing promise");
  for (const std::string& peer : peers_) {
    std::vector<std::string> figures = {peer};
    std::vector<std::string> ratios;
    for (const WorkFigure& figure : measured.group.figures) {
      const Row row = row_of(peer, figure);
      const bool has_ratio = row.rounds > 0 && peer != peers_.front();
      figures.push_back(values(peer, figure.name).empty() ? no_figure : format_summary(row.reference));
      ratios.push_back(has_ratio ? format_summary(row.ratio) : no_figure);
    }
    figures.insert(figures.end(), ratios.begin(), ratios.end());
    figures.push_back(remark_of(measured.remarks, peer));
    table.cells.push_back(std::move(figures));
  }
  return table;
}

std::vector<Table> PeerTable::tables() const {
  std::vector<Table> tables;
  for (const Measured& measured : groups_) tables.push_back(table_of(measured));
  return tables;
}

std::string PeerTable::json(bool quick) const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Measured& measured : groups_) {
    for (const WorkFigure& figure : measured.group.figures) {
      for (const std::string& peer : peers_) {
        if (peer == peers_.front()) continue;
        const Row row = row_of(peer, figure);
        const bool ours = !values(peers_.front(), figure.name).empty();
        const bool theirs = !values(peer, figure.name).empty();
        rows.push_back({{"peer", peer},
                        {"work", figure.name},
                        {"ours", ours ? nlohmann::ordered_json(row.ours.median) : nullptr},
                        {"theirs", theirs ? nlohmann::ordered_json(row.reference.median) : nullptr},
                        {"ratio", row.rounds > 0 ? nlohmann::ordered_json(row.ratio.median) : nullptr},
                        {"unit", figure.unit},
                        {"better", figure.better == Better::more ? "more" : "less"},
                        {"missing", remark_of(measured.remarks, peer)},
                        {"ours_min", row.ours.min},
                        {"ours_max", row.ours.max},
                        {"theirs_min", row.reference.min},
                        {"theirs_max", row.reference.max},
                        {"ratio_min", row.ratio.min},
                        {"ratio_max", row.ratio.max},
                        {"rounds", row.rounds},
                        {"quick", quick}});
      }
    }
  }
  return rows.dump(2) + "\n";
}

}  // namespace lightq::bench
