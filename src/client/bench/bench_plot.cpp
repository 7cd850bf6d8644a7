/// Draws the latencies of a benchmark as an SVG image. Layer: cli.
#include "client/bench/bench_plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "client/units.hpp"

namespace lightq::cli {
namespace {

constexpr double plot_left = 80;
constexpr double plot_top = 20;
constexpr double plot_width = 480;
constexpr double plot_height = 320;
constexpr double legend_left = plot_left + plot_width + 20;
constexpr double legend_width = 320;
constexpr double line_height = 16;
constexpr std::array<const char*, 8> plot_colours = {"#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad",
                                                     "#d68910", "#16a085", "#7f8c8d", "#2c3e50"};

std::string svg_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

/// The powers of ten between which all latencies lie.
struct PlotScale {
  int lowest = 0;
  int highest = 0;

  [[nodiscard]] double y_of(double seconds) const {
    const double share = (std::log10(seconds) - lowest) / (highest - lowest);
    return plot_top + plot_height * (1 - share);
  }
};

double x_of(std::size_t share) {
  return plot_left +
         plot_width * (static_cast<double>(share) + 0.5) / static_cast<double>(bench_shares.size());
}

bool has_latencies(const BenchResult& result) {
  return std::ranges::all_of(result.latencies, [](double seconds) { return seconds > 0; });
}

PlotScale scale_of(const std::vector<BenchResult>& results) {
  double least = 1;
  double most = 1e-6;
  for (const BenchResult& result : results) {
    if (!has_latencies(result)) continue;
    least = std::min(least, std::ranges::min(result.latencies));
    most = std::max(most, std::ranges::max(result.latencies));
  }
  PlotScale scale{static_cast<int>(std::floor(std::log10(least))),
                  static_cast<int>(std::ceil(std::log10(most)))};
  scale.highest = std::max(scale.highest, scale.lowest + 1);
  return scale;
}

std::string svg_text(double x, double y, std::string_view anchor, std::string_view text) {
  return "<text x=\"" + svg_number(x) + "\" y=\"" + svg_number(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\">" + xml_escaped(text) + "</text>\n";
}

std::string svg_line(double x1, double y1, double x2, double y2, std::string_view colour) {
  return "<line x1=\"" + svg_number(x1) + "\" y1=\"" + svg_number(y1) + "\" x2=\"" + svg_number(x2) +
         "\" y2=\"" + svg_number(y2) + "\" stroke=\"" + std::string(colour) + "\"/>\n";
}

std::string svg_axes(const PlotScale& scale) {
  std::string text;
  for (int power = scale.lowest; power <= scale.highest; ++power) {
    const double seconds = std::pow(10, power);
    const double y = scale.y_of(seconds);
    text += svg_line(plot_left, y, plot_left + plot_width, y, "#cccccc");
    text += svg_text(plot_left - 8, y + 4, "end", format_seconds(seconds));
  }
  for (std::size_t share = 0; share < bench_shares.size(); ++share)
    text += svg_text(x_of(share), plot_top + plot_height + line_height + 4, "middle",
                     bench_shares[share].name == "p999" ? "p99.9" : bench_shares[share].name);
  return text;
}

std::string svg_curve(const BenchResult& result, const PlotScale& scale, std::string_view colour) {
  std::string points;
  for (std::size_t share = 0; share < bench_shares.size(); ++share)
    points += (share == 0 ? "" : " ") + svg_number(x_of(share)) + "," +
              svg_number(scale.y_of(result.latencies[share]));
  return "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"" + std::string(colour) + "\" points=\"" +
         points + "\"/>\n";
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&apos;"; break;
      default: escaped += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return escaped;
}

std::string bench_plot(const std::vector<BenchResult>& results) {
  const PlotScale scale = scale_of(results);
  const double legend_height = line_height * static_cast<double>(results.size() + 1);
  const double height = std::max(plot_top + plot_height + 2 * line_height + 12, plot_top + legend_height);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                    svg_number(legend_left + legend_width) + "\" height=\"" + svg_number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n<title>lightq bench: latency</title>\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  svg += svg_axes(scale);
  std::size_t drawn = 0;
  for (const BenchResult& result : results) {
    if (!has_latencies(result)) continue;
    const char* const colour = plot_colours[drawn % plot_colours.size()];
    const double y = plot_top + line_height * static_cast<double>(++drawn);
    svg += svg_curve(result, scale, colour);
    svg += svg_line(legend_left, y - 4, legend_left + 20, y - 4, colour);
    svg += svg_text(legend_left + 26, y, "start", label_of(result.row));
  }
  return svg + "</svg>\n";
}

}  // namespace lightq::cli
