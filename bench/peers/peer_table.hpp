/// The results of suite `peers`: rounds of each peer and work, as JSON rows and tables. Layer: bench peers.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/report.hpp"

namespace lightq::bench {

/// A figure that is measured of each peer.
struct WorkFigure {
  std::string name;  ///< for programs, for example `memory-100`
  std::string head;  ///< of its column
  std::string unit;
  Better better = Better::more;
};

/// Figures that share a table.
struct WorkGroup {
  std::string caption;
  std::vector<WorkFigure> figures;
};

/// Collects figures and remarks. The peer that is measured first is the one that others are compared with.
class PeerTable {
 public:
  explicit PeerTable(std::vector<std::string> peers) : peers_(std::move(peers)) {}

  void begin(WorkGroup group) { groups_.push_back({std::move(group), {}}); }
  /// Adds the figure of a round to the present group.
  void add(const std::string& peer, const std::string& figure, double value);
  /// Sets the promise that the peer does not keep in the present group, or the reason why it does not take
  /// part.
  void remark(const std::string& peer, std::string text);

  [[nodiscard]] std::vector<Table> tables() const;
  /// Returns an array of rows: peer, work, ours, theirs, ratio (higher is better for LightQ), unit, spreads,
  /// rounds, and `missing`: the promise that the peer does not keep. A peer without a figure has null for it.
  [[nodiscard]] std::string json(bool quick) const;

 private:
  struct Measured {
    WorkGroup group;
    std::map<std::string, std::string> remarks;  // by peer
  };
  [[nodiscard]] const std::vector<double>& values(const std::string& peer, const std::string& figure) const;
  [[nodiscard]] Row row_of(const std::string& peer, const WorkFigure& figure) const;
  [[nodiscard]] Table table_of(const Measured& measured) const;
  std::vector<std::string> peers_;
  std::vector<Measured> groups_;
  std::map<std::pair<std::string, std::string>, std::vector<double>> values_;  // by peer and figure
};

}  // namespace lightq::bench
