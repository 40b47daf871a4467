// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/open_spans.hpp"

#include <algorithm>

#include "traces/import/scan.hpp"

namespace rehearse::traces::kineto {
namespace {

constexpr size_t kPadding = 64;
constexpr uint64_t kMostBytes = 16 << 20;
constexpr size_t kMostThreads = 65'536;

std::pair<std::string, std::string> thread_of(const Event& event) {
  return {std::string(trimmed(event.pid)), std::string(trimmed(event.tid))};
}

}  // namespace

Element OpenSpans::Begin::element() const {
  return {std::string_view(text).substr(0, text.size() - kPadding), offset, number};
}

bool OpenSpans::begin(const Event& event, const Element& element) {
  const size_t size = element.text.size() + kPadding;
  auto thread = thread_of(event);
  if (bytes_ + size > kMostBytes) return false;
  if (threads_.size() >= kMostThreads && !threads_.contains(thread)) return false;
  std::string text(element.text);
  text.resize(size, ' ');
  threads_[std::move(thread)].push_back({std::move(text), element.offset, element.number});
  bytes_ += size;
  ++open_;
  return true;
}

std::optional<OpenSpans::Begin> OpenSpans::end(const Event& event) {
  const auto thread = threads_.find(thread_of(event));
  if (thread == threads_.end() || thread->second.empty()) return std::nullopt;
  Begin begin = std::move(thread->second.back());
  thread->second.pop_back();
  bytes_ -= begin.text.size();
  --open_;
  return begin;
}

std::optional<Element> OpenSpans::first_open() const {
  const Begin* first = nullptr;
  for (const auto& [thread, begins] : threads_) {
    if (!begins.empty() && (first == nullptr || begins.front().offset < first->offset)) {
      first = &begins.front();
    }
  }
  return first == nullptr ? std::nullopt : std::optional(first->element());
}

}  // namespace rehearse::traces::kineto
