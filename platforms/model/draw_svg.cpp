// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/markup.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "platforms/model/draw.hpp"

namespace rehearse::platforms {
namespace {

constexpr double kCellWidth = 108, kCellHeight = 38, kGap = 8, kTitle = 20, kPadding = 10;
constexpr double kArcs = 110, kBar = 26, kMargin = 16;

constexpr const char* kStyle =
    "<style>"
    ".rh{--ink:#1b1f24;--soft:#57606a;--line:#8c959f;--node:#f6f8fa;--numa:#fff;--bridge:#eef1f4;"
    "--gpu:#d4f0dc;--nic:#d8e8fb;--bar:#e9e2fb;--nv:#2da44e;--net:#0969da;"
    "font:12px system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.rh{--ink:#e6edf3;--soft:#9da7b3;--line:#6e7681;--node:#"
    "161b22;"
    "--numa:#0d1117;--bridge:#21262d;--gpu:#12361f;--nic:#10294a;--bar:#2a2145;--nv:#56d364;"
    "--net:#58a6ff}}"
    ".rh text{fill:var(--ink)}.rh .s{fill:var(--soft);font-size:10px}.rh "
    ".h{font-size:15px;font-weight:600}"
    ".rh rect{stroke:var(--line);rx:4px}.rh .node{fill:var(--node)}.rh .numa{fill:var(--numa)}"
    ".rh .bridge{fill:var(--bridge)}.rh .gpu{fill:var(--gpu)}.rh .nic{fill:var(--nic)}"
    ".rh .l{paint-order:stroke;stroke:var(--numa);stroke-width:3px}"
    ".rh .bar{fill:var(--bar)}.rh .nv{stroke:var(--nv);fill:none}.rh "
    ".net{stroke:var(--net);fill:none}"
    ".rh .down{stroke-dasharray:3 3}"
    "</style>";

// At most `width` characters, cut between UTF-8 sequences.
std::string clip(std::string text, size_t width) {
  for (const char* maker : {"NVIDIA ", "Tesla ", "GeForce ", "AMD Instinct "}) {
    if (text.starts_with(maker)) text.erase(0, std::string_view(maker).size());
  }
  if (text.size() <= width) return text;
  size_t end = width - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

struct Point {
  double x = 0, y = 0;
};

struct Size {
  double width = 0, height = 0;
};

// A switch or NUMA domain with what is below it: GPUs in a row, NICs in a row, further switches in
// a row.
struct Box {
  std::string title, detail, style;
  std::vector<int> gpus, nics;
  std::vector<Box> below;

  [[nodiscard]] Size size() const {
    Size inner;
    const auto row = [&](double width, double height) {
      if (width <= 0) return;
      inner.width = std::max(inner.width, width - kGap);
      inner.height += height + kGap;
    };
    row(static_cast<double>(gpus.size()) * (kCellWidth + kGap), kCellHeight);
    row(static_cast<double>(nics.size()) * (kCellWidth + kGap), kCellHeight);
    Size children;
    for (const Box& box : below) {
      const Size one = box.size();
      children.width += one.width + kGap;
      children.height = std::max(children.height, one.height);
    }
    row(children.width, children.height);
    const double text = static_cast<double>(title.size()) * 7 + 2 * kPadding;
    return {std::max({inner.width + 2 * kPadding, text, kCellWidth}),
            inner.height + kTitle + kPadding};
  }
};

class NodeDrawing {
 public:
  explicit NodeDrawing(const pb::Node& node)
      : node_(node),
        gpus_(static_cast<size_t>(node.gpus_size())),
        nics_(static_cast<size_t>(node.nics_size())) {
    for (int i = 0; i < node.numa_size(); ++i) {
      Box box = collect("", static_cast<uint32_t>(i), 0);
      box.title = fmt::format("numa{}: {}", i, node.numa(i).cpu());
      box.detail = describe(node.numa(i));
      box.style = "numa";
      boxes_.push_back(std::move(box));
    }
  }

  [[nodiscard]] Size size() const {
    Size all{kGap, 0};
    for (const Box& box : boxes_) {
      const Size one = box.size();
      all.width += one.width + kGap;
      all.height = std::max(all.height, one.height);
    }
    return {std::max(all.width + kGap, 320.0), all.height + top() + kPadding};
  }

  // The node at `at`; lines from NICs end at `fabric`.
  void draw(Point at, const std::string& title, double fabric, std::string& out) {
    const Size all = size();
    rect(at, all, "node", "", out);
    text({at.x + kPadding, at.y + 16}, title, "", out);
    Point next{at.x + kGap, at.y + top()};
    std::string labels;
    for (const Box& box : boxes_) {
      place(box, next, out, labels);
      next.x += box.size().width + kGap;
    }
    nvlinks(at, all, out);
    out += labels;  // above the NVLinks that cross them
    for (int i = 0; i < node_.gpus_size(); ++i) {
      const auto& gpu = node_.gpus(i);
      cell(gpus_[static_cast<size_t>(i)], "gpu", gpu.name(), clip(gpu.model(), 15), describe(gpu),
           out);
    }
    for (int i = 0; i < node_.nics_size(); ++i) {
      const auto& nic = node_.nics(i);
      const Point corner = nics_[static_cast<size_t>(i)];
      out += fmt::format("<path class=\"net{}\" d=\"M{:.0f} {:.0f}V{:.0f}\"/>\n",
                         nic.down() ? " down" : "", corner.x + kCellWidth / 2,
                         corner.y + kCellHeight, fabric);
      cell(corner, nic.down() ? "nic down" : "nic", nic.name(), format_bandwidth(nic.bandwidth()),
           describe(nic), out);
    }
  }

 private:
  [[nodiscard]] double top() const {
    if (!node_.nvlinks().empty()) return kTitle + kArcs;
    return kTitle + (node_.nvswitch().count() ? kBar + 3 * kGap : kGap);
  }

  [[nodiscard]] Box collect(const std::string& parent, uint32_t numa, int depth) const {
    const auto here = [&](const pb::PcieLink& link) {
      return link.parent() == parent && (!parent.empty() || link.numa() == numa);
    };
    Box box;
    for (int i = 0; i < node_.gpus_size(); ++i) {
      if (here(node_.gpus(i).pcie())) box.gpus.push_back(i);
    }
    for (int i = 0; i < node_.nics_size(); ++i) {
      if (here(node_.nics(i).pcie())) box.nics.push_back(i);
    }
    for (const auto& each : node_.switches()) {
      if (!here(each.pcie()) || depth > node_.switches_size()) continue;
      Box child = collect(each.name(), numa, depth + 1);
      child.title = each.name();
      child.detail = fmt::format("{}: {}", each.name(), describe(each.pcie()));
      child.style = "bridge";
      box.below.push_back(std::move(child));
    }
    return box;
  }

  void place(const Box& box, Point at, std::string& out, std::string& labels) {
    rect(at, box.size(), box.style, box.detail, out);
    text({at.x + kPadding, at.y + 14}, box.title, "s l", labels);
    Point row{at.x + kPadding, at.y + kTitle};
    const auto put = [&](const std::vector<int>& devices, std::vector<Point>& corners) {
      if (devices.empty()) return;
      for (size_t i = 0; i < devices.size(); ++i) {
        corners[static_cast<size_t>(devices[i])] = {
            row.x + static_cast<double>(i) * (kCellWidth + kGap), row.y};
      }
      row.y += kCellHeight + kGap;
    };
    put(box.gpus, gpus_);
    put(box.nics, nics_);
    for (const Box& child : box.below) {
      place(child, row, out, labels);
      row.x += child.size().width + kGap;
    }
  }

  void nvlinks(Point at, Size all, std::string& out) const {
    if (node_.nvswitch().count() && !gpus_.empty()) {
      const Point bar{at.x + kGap, at.y + kTitle + kGap};
      for (size_t i = 0; i < gpus_.size(); ++i) {
        if (node_.gpus(static_cast<int>(i)).nvlink().links() == 0) continue;
        out += fmt::format("<path class=\"nv\" stroke-width=\"2\" d=\"M{:.0f} {:.0f}V{:.0f}\"/>\n",
                           gpus_[i].x + kCellWidth / 2, bar.y + kBar, gpus_[i].y);
      }
      rect(bar, {all.width - 2 * kGap, kBar}, "bar", "", out);
      text({bar.x + kPadding, bar.y + 17}, describe_nvswitch(node_), "", out);
    }
    for (const auto& pair : node_.nvlinks()) {
      if (pair.a() >= gpus_.size() || pair.b() >= gpus_.size()) continue;
      const Point a = gpus_[pair.a()], b = gpus_[pair.b()];
      const double distance = std::abs(a.x - b.x);
      const double lift = std::min(2 * kArcs - 30, 40 + distance * 0.22);
      const double y = std::min(a.y, b.y);
      out += fmt::format(
          "<path class=\"nv\" stroke-width=\"{}\" d=\"M{:.0f} {:.0f}Q{:.0f} {:.0f} {:.0f} {:.0f}\">"
          "<title>{} - {}: {} links</title></path>\n",
          std::min(pair.links(), 6u), a.x + kCellWidth / 2, a.y, (a.x + b.x + kCellWidth) / 2,
          y - lift, b.x + kCellWidth / 2, b.y,
          escape_markup(node_.gpus(static_cast<int>(pair.a())).name()),
          escape_markup(node_.gpus(static_cast<int>(pair.b())).name()), pair.links());
    }
  }

 public:
  static void rect(Point at, Size size, const std::string& style, const std::string& title,
                   std::string& out) {
    out += fmt::format(
        "<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\"", style,
        at.x, at.y, size.width, size.height);
    out +=
        title.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", escape_markup(title));
  }

  static void text(Point at, const std::string& content, const std::string& style,
                   std::string& out) {
    out += fmt::format("<text{} x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
                       style.empty() ? "" : fmt::format(" class=\"{}\"", style), at.x, at.y,
                       escape_markup(content));
  }

 private:
  static void cell(Point at, const std::string& style, const std::string& name,
                   const std::string& second, const std::string& title, std::string& out) {
    rect(at, {kCellWidth, kCellHeight}, style, fmt::format("{}: {}", name, title), out);
    text({at.x + 6, at.y + 15}, clip(name, 13), "", out);
    text({at.x + 6, at.y + 30}, second, "s", out);
  }

  const pb::Node& node_;
  std::vector<Box> boxes_;
  std::vector<Point> gpus_, nics_;  // upper left corners
};

}  // namespace

std::string draw_svg(const pb::Platform& expanded) {
  const auto groups = alike_nodes(expanded);
  std::vector<NodeDrawing> drawings;
  Size all{640, 0};
  double row = 2 * kMargin;
  for (const auto& group : groups) {
    drawings.emplace_back(expanded.nodes(static_cast<int>(group[0])));
    const Size one = drawings.back().size();
    row += one.width + kMargin;
    all.height = std::max(all.height, one.height);
  }
  all.width = std::max(all.width, row - kMargin);
  const double first = kMargin + 28, fabric = first + all.height + 24;
  const double height = fabric + kBar + kMargin;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rh\" role=\"img\" viewBox=\"0 0 {:.0f} "
      "{:.0f}\" "
      "width=\"{:.0f}\" height=\"{:.0f}\">\n<title>{}</title>\n{}\n",
      all.width, height, all.width, height, escape_markup(expanded.name()), kStyle);
  NodeDrawing::text({kMargin, kMargin + 10}, expanded.name(), "h", out);
  double x = kMargin;
  for (size_t i = 0; i < groups.size(); ++i) {
    const pb::Node& node = expanded.nodes(static_cast<int>(groups[i][0]));
    const std::string title =
        groups[i].size() == 1
            ? fmt::format("{}  {}", node.name(), node.model())
            : fmt::format("{} x {} (nodes {})", groups[i].size(),
                          node.model().empty() ? "node" : node.model(), format_ranks(groups[i]));
    drawings[i].draw({x, first}, title, fabric, out);
    x += drawings[i].size().width + kMargin;
  }
  NodeDrawing::rect({kMargin, fabric}, {all.width - 2 * kMargin, kBar}, "bar", "", out);
  NodeDrawing::text({kMargin + kPadding, fabric + 17},
                    "fabric: " + describe_fabric(expanded.fabric()), "", out);
  return out + "</svg>\n";
}

}  // namespace rehearse::platforms
