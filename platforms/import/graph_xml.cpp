// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "platforms/import/import.hpp"
#include "platforms/import/told.hpp"
#include "platforms/import/xml_file.hpp"

namespace rehearse::platforms {
namespace {

constexpr size_t kMaxChannels = 64;
constexpr const char* kTypes[] = {"LOC", "NVL", "NVB", "C2C", "PIX",
                                  "PXB", "P2C", "PXN", "PHB", "SYS"};

class GraphReader {
 public:
  explicit GraphReader(const XmlFile& file) : file_(file) {}

  Result<std::vector<pb::NcclGraph>> run() {
    std::vector<pb::NcclGraph> graphs;
    std::set<uint32_t> ids;
    for (const pugi::xml_node& child : file_.root().children("graph")) {
      RH_TRY(pb::NcclGraph graph, read(child));
      if (!ids.insert(graph.id()).second) {
        return bad_input(fmt::format("a second graph has the id {}", graph.id()),
                         file_.place(child), "keep one of them");
      }
      graphs.push_back(std::move(graph));
    }
    if (graphs.empty()) {
      return bad_input("the file has no <graph>", file_.place(file_.root()),
                       "give a file written by NCCL_GRAPH_DUMP_FILE");
    }
    return graphs;
  }

  // The largest GPU and network device numbers used, with the places of their first use.
  struct Use {
    int64_t number = -1;
    std::string place;
  };
  Use gpu, net;
  Findings findings;

 private:
  Result<pb::NcclGraph> read(const pugi::xml_node& element) {
    pb::NcclGraph graph;
    RH_TRY(const int64_t id, whole(file_, element, "id", 0, 4));
    RH_TRY(const int64_t pattern, whole(file_, element, "pattern", 1, 6));
    RH_TRY(const int64_t cross, whole(file_, element, "crossnic", 0, 2));
    RH_TRY(const double intra, decimal(file_, element, "speedintra", 0));
    RH_TRY(const double inter, decimal(file_, element, "speedinter", 0));
    RH_TRY(const double latency, decimal(file_, element, "latencyinter", 0));
    graph.set_id(static_cast<uint32_t>(id));
    graph.set_pattern(static_cast<uint32_t>(pattern));
    graph.set_cross_nic(static_cast<uint32_t>(cross));
    if (intra > 1e5 || inter > 1e5 || latency > 1e6) {
      return bad_input("a speed or latency that no link has", file_.place(element),
                       "speeds are GB/s of one channel, latencies microseconds");
    }
    graph.set_intra(intra * 1e9);
    graph.set_inter(inter * 1e9);
    graph.set_inter_latency(static_cast<int64_t>(latency * 1000));
    graph.set_same_channels(std::string_view(element.attribute("samechannels").value()) == "1");
    for (const char* field : {"typeintra", "typeinter"}) {
      const std::string type = element.attribute(field).value();
      if (std::find(std::begin(kTypes), std::end(kTypes), type) == std::end(kTypes)) {
        return bad_input(fmt::format("{} is {}", field, in_quotes(type)), file_.place(element),
                         "write LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB or SYS");
      }
      if (std::string_view(field) == "typeintra") {
        graph.set_intra_type(type);
      } else {
        graph.set_inter_type(type);
      }
    }
    for (const pugi::xml_node& child : element.children("channel")) {
      if (static_cast<size_t>(graph.channels_size()) >= kMaxChannels) {
        return fail(Code::kLimit, fmt::format("more than {} channels", kMaxChannels),
                    file_.place(child), "NCCL has no more");
      }
      if (auto ok = channel(child, graph); !ok) return tl::unexpected(ok.error());
    }
    RH_TRY(const int64_t told, whole(file_, element, "nchannels", 0, 1024));
    if (told != graph.channels_size()) {
      findings.add("channel-count", Severity::kWarning,
                   fmt::format("{}: nchannels is {}, {} are listed", file_.place(element), told,
                               graph.channels_size()),
                   "the listed channels are taken");
    }
    return graph;
  }

  Result<void> channel(const pugi::xml_node& element, pb::NcclGraph& graph) {
    pb::NcclChannel& out = *graph.add_channels();
    for (const pugi::xml_node& child : element.children()) {
      const std::string_view kind = child.name();
      if (kind == "gpu") {
        RH_TRY(const int64_t dev, whole(file_, child, "dev", 0, 4095));
        const auto& listed = out.gpus();
        if (std::find(listed.begin(), listed.end(), dev) != listed.end()) {
          return bad_input(fmt::format("a channel visits GPU {} twice", dev), file_.place(child),
                           "each GPU is on a channel once");
        }
        out.add_gpus(static_cast<uint32_t>(dev));
        if (dev > gpu.number) gpu = {dev, file_.place(child)};
      } else if (kind == "net") {
        RH_TRY(const int64_t dev, whole(file_, child, "dev", 0, 4095));
        out.add_nics(std::to_string(dev));
        if (dev > net.number) net = {dev, file_.place(child)};
      }
    }
    const int width = graph.channels(0).gpus_size();
    if (out.gpus_size() != width || width == 0) {
      return bad_input(
          fmt::format("a channel has {} GPUs, the first has {}", out.gpus_size(), width),
          file_.place(element), "every channel of a graph visits the same GPUs");
    }
    return {};
  }

  const XmlFile& file_;
};

Result<XmlFile> graph_file(const ImportText& file) {
  RH_TRY(XmlFile xml, XmlFile::parse(file.text, file.name));
  if (std::string_view(xml.root().name()) != "graphs") {
    return bad_input(fmt::format("the root is <{}>, not <graphs>", xml.root().name()),
                     xml.place(xml.root()), "give a file written by NCCL_GRAPH_DUMP_FILE");
  }
  return xml;
}

// Channels of a file on a node, adapters by name.
Result<void> put_on(std::vector<pb::NcclGraph> graphs, const GraphReader& reader, pb::Node& node) {
  if (reader.gpu.number >= node.gpus_size()) {
    return bad_input(
        fmt::format("there is no GPU {}: the node has {}", reader.gpu.number, node.gpus_size()),
        reader.gpu.place, "import the graph with the topology it was made for");
  }
  if (reader.net.number >= node.nics_size()) {
    return bad_input(fmt::format("there is no network device {}: the node has {}",
                                 reader.net.number, node.nics_size()),
                     reader.net.place, "import the graph with the topology it was made for");
  }
  for (pb::NcclGraph& graph : graphs) {
    for (pb::NcclChannel& channel : *graph.mutable_channels()) {
      for (std::string& nic : *channel.mutable_nics()) nic = node.nics(std::stoi(nic)).name();
    }
    *node.add_nccl_graphs() = std::move(graph);
  }
  return {};
}

}  // namespace

Result<pb::Node> told_graphs(pb::Node node, const ImportText& file, Findings& findings) {
  RH_TRY(const XmlFile xml, graph_file(file));
  GraphReader reader(xml);
  RH_TRY(std::vector<pb::NcclGraph> graphs, reader.run());
  findings.merge(reader.findings);
  node.clear_nccl_graphs();
  if (auto put = put_on(std::move(graphs), reader, node); !put) return tl::unexpected(put.error());
  return node;
}

Result<ImportedPlatform> import_nccl_graph(const ImportText& file,
                                           const std::optional<pb::Platform>& into,
                                           const Machines& machines) {
  RH_TRY(const XmlFile xml, graph_file(file));
  GraphReader reader(xml);
  RH_TRY(std::vector<pb::NcclGraph> graphs, reader.run());
  ImportedPlatform out;
  if (into) {
    out.platform = *into;
  } else {
    Seen seen;
    seen.gpus = static_cast<uint32_t>(reader.gpu.number + 1);
    seen.nics = static_cast<uint32_t>(reader.net.number + 1);
    seen.nvlink = graphs[0].intra_type() == "NVL" || graphs[0].intra_type() == "NVB";
    RH_TRY(out, import_seen(seen, 1, file.name, machines));
    // The graph stands on a node, so the node is written out.
    RH_TRY(pb::Platform whole_platform, machines.catalogue().platform(out.platform.like()));
    whole_platform.set_scale(1);
    *whole_platform.mutable_assumptions() = out.platform.assumptions();
    const pb::Node written = whole_platform.nodes(0);
    out.platform = std::move(whole_platform);
    if (auto ok = expand(out.platform, file.name); !ok) return tl::unexpected(ok.error());
    // What counts with the node stays to be filled in, for several of them.
    pb::Node& node = *out.platform.mutable_nodes(0);
    node.set_name(written.name());
    *node.mutable_interfaces() = written.interfaces();
    *node.mutable_hosts() = written.hosts();
    *node.mutable_routes() = written.routes();
    if (node.has_nvswitch()) node.mutable_nvswitch()->set_domain(written.nvswitch().domain());
  }
  out.findings.merge(reader.findings);
  out.format = "NCCL graph";
  if (out.platform.nodes().empty()) {
    return bad_input("the platform has no node to put the graph on", file.name,
                     "import it together with the topology of the machine");
  }
  if (auto put = put_on(std::move(graphs), reader, *out.platform.mutable_nodes(0)); !put) {
    return tl::unexpected(put.error());
  }
  return out;
}

}  // namespace rehearse::platforms
