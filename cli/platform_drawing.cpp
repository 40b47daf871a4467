// SPDX-License-Identifier: Apache-2.0
#include "cli/platform_drawing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.hpp"

namespace rehearse::cli {
namespace {

constexpr int kMostNodes = 8;
constexpr int kPart = 44;    // width of one GPU or NIC
constexpr int kHeight = 26;  // height of one box
constexpr int kGap = 10;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

struct Box {
  int x = 0, y = 0, width = 0;
};

std::string box(const Box& at, const char* colour, const std::string& text,
                const std::string& title) {
  return fmt::format(
      "<g><title>{}</title><rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"3\" "
      "fill=\"{}\"/>"
      "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text></g>\n",
      escaped(title), at.x, at.y, at.width, kHeight, colour, at.x + at.width / 2, at.y + 17,
      escaped(text));
}

int parts_of(const pb::Node& node) { return std::max({node.gpus_size(), node.nics_size(), 2}); }

std::string draw_node(const pb::Node& node, int x, int y) {
  const int width = parts_of(node) * (kPart + kGap) + kGap;
  std::string out = fmt::format(
      "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"#f4f4f4\" "
      "stroke=\"#888\"/>"
      "<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{} {}</text>\n",
      x, y, width, 5 * kHeight + 4 * kGap, x + kGap, y + 18, escaped(node.name()),
      escaped(node.model()));
  const int inner = width - 2 * kGap;
  int row = y + kHeight + kGap / 2;
  if (node.nvswitch().count() > 0) {
    out +=
        box({x + kGap, row, inner}, "#c7e9c0", fmt::format("{} NVSwitch", node.nvswitch().count()),
            "NVSwitches join all GPUs of the node");
  }
  row += kHeight + kGap;
  for (int g = 0; g < node.gpus_size(); ++g) {
    const pb::Gpu& gpu = node.gpus(g);
    out += box({x + kGap + g * (kPart + kGap), row, kPart}, "#74c476", fmt::format("gpu{}", g),
               fmt::format("{} {}", gpu.model(), format_bytes(gpu.memory())));
  }
  row += kHeight + kGap;
  for (int n = 0; n < node.nics_size(); ++n) {
    const pb::Nic& nic = node.nics(n);
    out += box({x + kGap + n * (kPart + kGap), row, kPart}, nic.down() ? "#fc9272" : "#9ecae1",
               fmt::format("nic{}", n),
               fmt::format("{} {}{}", nic.name(), format_bandwidth(nic.bandwidth()),
                           nic.down() ? " down" : ""));
  }
  return out;
}

}  // namespace

std::string draw(const pb::Platform& platform) {
  const int shown = std::min(kMostNodes, platform.nodes_size());
  const int columns = std::min(shown, 2);
  int cell = 0;
  for (int n = 0; n < shown; ++n) {
    cell = std::max(cell, parts_of(platform.nodes(n)) * (kPart + kGap) + 3 * kGap);
  }
  const int height = 6 * kHeight + 6 * kGap;
  const int rows = columns > 0 ? (shown + columns - 1) / columns : 0;
  std::string body;
  std::string fabric =
      !platform.has_fabric() ? "fabric" : pb::FabricKind_Name(platform.fabric().kind());
  std::transform(fabric.begin(), fabric.end(), fabric.begin(),
                 [](unsigned char c) { return c == '_' ? ' ' : std::tolower(c); });
  body += box({kGap, kGap, columns * cell - kGap}, "#fdd0a2", fabric, "how the nodes are joined");
  for (int n = 0; n < shown; ++n) {
    const int x = kGap + (n % columns) * cell;
    const int y = 2 * kGap + kHeight + kGap + (n / columns) * height;
    body += draw_node(platform.nodes(n), x, y);
  }
  const int bottom = 3 * kGap + kHeight + rows * height;
  const std::string more = platform.nodes_size() > shown
                               ? fmt::format("and {} more nodes", platform.nodes_size() - shown)
                               : "";
  body += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kGap, bottom + 10, more);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} "
      "{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{3}</svg>\n",
      columns * cell + kGap, bottom + 2 * kGap, escaped(platform.name()), body);
}

}  // namespace rehearse::cli
