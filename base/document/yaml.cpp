// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <exception>
#include <istream>
#include <map>
#include <streambuf>

#include "base/document.hpp"
#include "base/document/node.hpp"
#include "base/text.hpp"

namespace rehearse::document {
namespace {

// Leaves the parser of yaml-cpp; never leaves this file.
struct Refusal {
  Error error;
};

// Reads a view without copying it.
class ViewBuffer : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());
    setg(begin, begin, begin + text.size());
  }
};

class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(const std::string& name) : name_(name) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      refuse(Code::kBadInput, mark, "a second document begins here",
             "put it into a file of its own");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Node::Kind::kNull, mark, "", anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) refuse(Code::kBadInput, mark, "this alias has no anchor", "");
    attach(known->second);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add(Node::Kind::kScalar, mark, tag, anchor).text = value;
    ends_quoted_ = tag == "!";
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMapping, mark, tag, anchor);
  }
  void OnMapEnd() override { open_.pop_back(); }

  [[nodiscard]] Tree take() { return std::move(tree_); }
  [[nodiscard]] bool ends_quoted() const { return ends_quoted_; }

 private:
  [[noreturn]] void refuse(Code code, const YAML::Mark& mark, std::string what,
                           std::string fix) const {
    throw Refusal{Error{code, std::move(what),
                        fmt::format("{}:{}:{}", name_, mark.line + 1, mark.column + 1),
                        std::move(fix)}};
  }

  Node& add(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (tree_.nodes.size() >= kMaxNodes) {
      refuse(Code::kLimit, mark, fmt::format("the document has more than {} values", kMaxNodes),
             "split it");
    }
    // "?" and "!" mark plain and quoted scalars; the rest are tags somebody wrote.
    if (tag.size() > 1 && !tag.starts_with("tag:yaml.org,2002:")) {
      refuse(Code::kBadInput, mark, fmt::format("the tag {} means nothing here", in_quotes(tag)),
             "remove it");
    }
    Node& node = tree_.nodes.emplace_back(Node{
        .kind = kind, .line = mark.line + 1, .column = mark.column + 1, .text = {}, .pointer = {}});
    if (anchor != 0) anchors_[anchor] = &node;
    attach(&node);
    return node;
  }
  void attach(const Node* node) {
    if (open_.empty()) {
      tree_.root = node;
    } else {
      open_.back()->children.push_back(node);
    }
  }
  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (open_.size() >= static_cast<size_t>(kMaxDocumentDepth)) {
      refuse(Code::kLimit, mark, fmt::format("nested deeper than {} levels", kMaxDocumentDepth),
             "flatten the document");
    }
    open_.push_back(&add(kind, mark, tag, anchor));
  }

  const std::string& name_;
  Tree tree_;
  std::vector<Node*> open_;
  std::map<YAML::anchor_t, const Node*> anchors_;
  int documents_ = 0;
  bool ends_quoted_ = false;  // the last scalar was in quotes
};

void parse(std::string_view text, YAML::EventHandler& handler) {
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  YAML::Parser parser(stream);
  while (parser.HandleNextDocument(handler)) {
  }
}

tl::unexpected<Error> not_utf8(std::string_view text, size_t bad, const std::string& name) {
  const std::string_view before = text.substr(0, bad);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const size_t start = before.rfind('\n');
  const size_t column = start == before.npos ? bad + 1 : bad - start;
  return fail(Code::kBadInput, "this byte is not UTF-8 text",
              fmt::format("{}:{}:{}", name, line, column), "save the file as UTF-8");
}

}  // namespace

Result<Tree> parse_yaml(std::string_view text, const std::string& name) {
  if (text.size() > kMaxDocumentBytes) {
    return fail(Code::kLimit,
                fmt::format("the document is larger than {} bytes", kMaxDocumentBytes), name,
                "split it");
  }
  if (const size_t bad = invalid_utf8(text); bad != text.npos) return not_utf8(text, bad, name);
  try {
    TreeBuilder builder(name);
    parse(text, builder);
    // yaml-cpp misses that a quote is never closed when white space ends the text.
    if (const size_t last = text.find_last_not_of(" \t\r\n");
        builder.ends_quoted() && last + 1 < text.size()) {
      TreeBuilder again(name);
      parse(text.substr(0, last + 1), again);
    }
    Tree tree = builder.take();
    if (tree.root == nullptr)
      tree.root = &tree.nodes.emplace_back(
          Node{.kind = Node::Kind::kNull, .line = 1, .column = 1, .text = {}, .pointer = {}});
    return tree;
  } catch (Refusal& refusal) {
    return tl::unexpected(std::move(refusal.error));
  } catch (const YAML::Exception& e) {
    const std::string where =
        e.mark.is_null() ? name : fmt::format("{}:{}:{}", name, e.mark.line + 1, e.mark.column + 1);
    return fail(Code::kBadInput, "this is not YAML: " + e.msg, where,
                "check indentation, quotes and brackets");
  } catch (const std::exception& e) {
    return fail(Code::kBadInput, fmt::format("this is not YAML: {}", e.what()), name,
                "check indentation, quotes and brackets");
  }
}

std::string place(const Node& node, const std::string& name) {
  if (node.line > 0) return fmt::format("{}:{}:{}", name, node.line, node.column);
  return node.pointer.empty() ? name : fmt::format("{}: {}", name, node.pointer);
}

}  // namespace rehearse::document
