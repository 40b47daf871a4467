// SPDX-License-Identifier: Apache-2.0
#include "traces/import/kineto/event.hpp"

#include <simdjson.h>

#include <cstring>
#include <utility>

#include "traces/import/kineto/decimal.hpp"
#include "traces/import/names.hpp"

namespace rehearse::traces::kineto {
namespace {

namespace od = simdjson::ondemand;

// `key` is what follows the opening quote; the input is readable for 64 bytes behind the event.
template <size_t N>
bool is(const char* key, const char (&text)[N]) {
  return std::memcmp(key, text, N - 1) == 0 && key[N - 1] == '"';
}

// Text without escapes, which nearly all is, is taken where it stands.
std::string_view text_of(od::value& value) {
  std::string_view token = value.raw_json_token();
  while (!token.empty() && (token.back() == ' ' || token.back() == '\n')) token.remove_suffix(1);
  if (token.size() < 2 || token.front() != '"') return token;
  const std::string_view inner = token.substr(1, token.size() - 2);
  if (token.back() == '"' && std::memchr(inner.data(), '\\', inner.size()) == nullptr) return inner;
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? text : inner;
}

// A list as text, which Kineto writes in quotes and tools that rewrite the file do not.
std::string_view list_of(od::value& value) {
  if (!value.raw_json_token().starts_with("[")) return text_of(value);
  od::array list;
  std::string_view text;
  const bool whole = value.get_array().get(list) == simdjson::SUCCESS &&
                     list.raw_json().get(text) == simdjson::SUCCESS;
  return whole ? text : std::string_view();
}

int64_t integer_of(od::value& value, int64_t otherwise) {
  return parse_integer(value.raw_json_token()).value_or(otherwise);
}

// Product of the first shape of "[[6144], [], ...]"; a list of shapes inside counts its first.
int64_t first_shape(od::value& value) {
  od::array outer;
  if (value.get_array().get(outer) != simdjson::SUCCESS) return -1;
  for (auto item : outer) {
    od::array shape;
    if (item.get_array().get(shape) != simdjson::SUCCESS) return -1;
    int64_t product = 1;
    bool any = false;
    for (auto extent : shape) {
      int64_t n = 0;
      if (extent.get_int64().get(n) != simdjson::SUCCESS || n < 0) return -1;
      if (__builtin_mul_overflow(product, n, &product)) return -1;
      any = true;
    }
    return any ? product : -1;
  }
  return -1;
}

std::string_view first_type(od::value& value) {
  od::array types;
  if (value.get_array().get(types) != simdjson::SUCCESS) return {};
  for (auto item : types) {
    std::string_view text;
    if (item.get_string().get(text) == simdjson::SUCCESS) return text;
    return {};
  }
  return {};
}

enum class Wanted { kNothing, kGpu, kRuntime, kSync, kMemory, kCall, kLabel };

Wanted wanted_of(const Event& e, bool& call_too) {
  switch (e.category) {
    case Category::kKernel:
      call_too = is_nccl_kernel(e.name);
      return Wanted::kGpu;
    case Category::kCopy:
    case Category::kMemset:
      return Wanted::kGpu;
    case Category::kRuntime:
      return Wanted::kRuntime;
    case Category::kCudaSync:
      return Wanted::kSync;
    case Category::kHostOp:  // in 2021 what is an annotation now was an operator
      return e.name == "record_param_comms" || e.name.starts_with("nccl:") ? Wanted::kCall
                                                                           : Wanted::kNothing;
    case Category::kUserAnnotation:
      return e.name.starts_with("nccl:") ? Wanted::kCall : Wanted::kNothing;
    default:
      if (e.name == "[memory]") return Wanted::kMemory;
      return e.phase == 'M' ? Wanted::kLabel : Wanted::kNothing;
  }
}

void call_argument(const char* k, od::value& v, CallArgs& c) {
  switch (k[0]) {
    case 'C':
      if (is(k, "Collective name")) c.name = text_of(v);
      break;
    case 'd':
      if (is(k, "dtype")) c.dtype = text_of(v);
      break;
    case 'I':
      if (is(k, "In msg nelems")) c.elements_in = integer_of(v, -1);
      if (is(k, "Input Dims")) c.shape_elements = first_shape(v);
      if (is(k, "Input type")) c.shape_type = first_type(v);
      break;
    case 'O':
      if (is(k, "Out msg nelems")) c.elements_out = integer_of(v, -1);
      break;
    case 'P':
      if (is(k, "Process Group Name")) c.group = text_of(v);
      if (is(k, "Process Group Description")) c.group_description = text_of(v);
      if (is(k, "Process Group Ranks")) c.ranks = list_of(v);
      break;
    case 'G':
      if (is(k, "Group size")) c.group_size = integer_of(v, -1);
      if (is(k, "Global rank start")) c.rank_start = integer_of(v, -1);
      if (is(k, "Global rank stride")) c.rank_stride = integer_of(v, -1);
      break;
    case 'S':
      if (is(k, "Seq")) c.sequence = integer_of(v, -1);
      if (is(k, "Src Rank")) c.source = integer_of(v, -1);
      break;
    case 'D':
      if (is(k, "Dst Rank")) c.destination = integer_of(v, -1);
      break;
    case 'R':
      if (is(k, "Root Rank") || is(k, "Root")) c.root = integer_of(v, -1);
      if (is(k, "Rank")) c.place = integer_of(v, -1);
      break;
    default:
      break;
  }
}

void link_argument(const char* k, od::value& v, Event& e) {
  switch (k[0]) {
    case 'c':
      if (is(k, "correlation")) e.correlation = integer_of(v, 0);
      break;
    case 'E':
      if (is(k, "External id")) e.external = integer_of(v, -1);
      break;
    case 'e':
      if (is(k, "external id")) e.external = integer_of(v, -1);
      break;
    case 'd':
      if (is(k, "device")) e.device = integer_of(v, -1);
      break;
    case 's':
      if (is(k, "stream")) e.stream = integer_of(v, -1);
      break;
    case 'b':
      if (is(k, "bytes")) e.bytes = integer_of(v, 0);
      break;
    default:
      break;
  }
}

void sync_argument(const char* k, od::value& v, Event& e) {
  if (is(k, "cuda_sync_kind")) e.sync_kind = text_of(v);
  if (is(k, "wait_on_stream")) e.wait_stream = integer_of(v, -1);
  if (is(k, "wait_on_cuda_event_record_corr_id")) e.wait_record = integer_of(v, -1);
  if (is(k, "wait_on_cuda_event_id")) e.wait_event = integer_of(v, -1);
}

void memory_argument(const char* k, od::value& v, Event& e) {
  if (is(k, "Bytes")) e.bytes = integer_of(v, 0);
  if (is(k, "Addr")) e.address = integer_of(v, 0);
  if (is(k, "Device Type")) e.device_type = integer_of(v, -1);
  if (is(k, "Device Id")) e.device = integer_of(v, -1);
}

bool arguments(od::object& args, Event& e) {
  bool call_too = false;
  const Wanted wanted = wanted_of(e, call_too);
  if (wanted == Wanted::kNothing) return true;
  e.has_call = call_too || wanted == Wanted::kCall;
  const bool link_only = e.category == Category::kKernel && !call_too;
  for (auto item : args) {
    if (item.error() != simdjson::SUCCESS) return false;
    od::field&& field = std::move(item).value_unsafe();
    const char* k = field.key().raw();
    od::value& v = field.value();
    switch (wanted) {
      case Wanted::kRuntime:
        if (is(k, "correlation")) {
          e.correlation = integer_of(v, 0);
          return true;
        }
        break;
      case Wanted::kSync:
        sync_argument(k, v, e);
        link_argument(k, v, e);
        break;
      case Wanted::kGpu:
        // Of most kernels three arguments are enough; the many behind them are not looked at.
        if (link_only && (k[0] == 'E' || k[0] == 'e')) break;
        link_argument(k, v, e);
        if (link_only && e.device >= 0 && e.stream >= 0 && e.correlation != 0) return true;
        if (call_too) call_argument(k, v, e.call);
        break;
      case Wanted::kCall:
        if (k[0] == 'E' || k[0] == 'e') link_argument(k, v, e);
        call_argument(k, v, e.call);
        break;
      case Wanted::kMemory:
        memory_argument(k, v, e);
        break;
      case Wanted::kLabel:
        if (is(k, "name")) e.label = text_of(v);
        break;
      case Wanted::kNothing:
        break;
    }
  }
  return true;
}

}  // namespace

void Event::clear() {
  phase = 0;
  category = Category::kNone;
  category_name = name = pid = tid = sync_kind = label = {};
  start.reset();
  duration.reset();
  has_duration = false;
  device = stream = external = device_type = wait_stream = wait_record = wait_event = -1;
  correlation = bytes = address = 0;
  if (std::exchange(has_call, false)) call = {};
}

struct EventParser::Impl {
  od::parser parser, late;
};

EventParser::EventParser() : impl_(std::make_unique<Impl>()) {}
EventParser::~EventParser() = default;

Parsed EventParser::parse(const Element& element, Event& e) {
  e.clear();
  const std::string_view text = element.text;
  if (text.empty() || text.front() != '{') return Parsed::kNotObject;
  od::document document;
  const simdjson::padded_string_view padded(text.data(), text.size(), text.size() + 64);
  if (impl_->parser.iterate(padded).get(document) != simdjson::SUCCESS) return Parsed::kBroken;
  od::object object;
  if (document.get_object().get(object) != simdjson::SUCCESS) return Parsed::kNotObject;
  std::string_view late_args;
  for (auto item : object) {
    // Taken where it stands: a copy stalls the processor, for it reads 16 bytes that were just written as 8.
    if (item.error() != simdjson::SUCCESS) return Parsed::kBroken;
    od::field&& field = std::move(item).value_unsafe();
    const char* k = field.key().raw();
    od::value& v = field.value();
    switch (k[0]) {
      case 'p':
        if (is(k, "ph")) {
          const std::string_view phase = v.raw_json_token();
          if (phase.size() > 2 && phase[0] == '"') e.phase = phase[1];
          if (e.phase == 's' || e.phase == 'f' || e.phase == 't') {
            e.category = Category::kFlow;
          }
        } else if (is(k, "pid")) {
          e.pid = v.raw_json_token();
        }
        break;
      case 'c':
        if (is(k, "cat")) {
          e.category_name = text_of(v);
          e.category = category_of(e.category_name);
          if (e.category == Category::kFlow) return Parsed::kOk;
        }
        break;
      case 'n':
        if (is(k, "name")) e.name = text_of(v);
        break;
      case 't':
        if (is(k, "tid")) e.tid = v.raw_json_token();
        if (is(k, "ts")) e.start = parse_decimal(v.raw_json_token(), 3);
        break;
      case 'd':
        if (is(k, "dur")) {
          e.has_duration = true;
          e.duration = parse_decimal(v.raw_json_token(), 3);
        }
        break;
      case 'a':
        if (is(k, "args")) {
          od::object args;
          if (v.get_object().get(args) != simdjson::SUCCESS) break;
          // Every profiler writes the arguments last; where they come before what tells how to read
          // them, they are read afterwards.
          if (e.phase != 0 && !e.name.empty() &&
              (e.category != Category::kNone || e.phase != 'X')) {
            if (!arguments(args, e)) return Parsed::kBroken;
            if (e.start && e.has_duration && !e.pid.empty() && !e.tid.empty()) return Parsed::kOk;
          } else if (args.raw_json().get(late_args) != simdjson::SUCCESS) {
            return Parsed::kBroken;
          }
        }
        break;
      default:
        break;
    }
  }
  if (!late_args.empty()) {
    od::document inner;
    od::object args;
    const simdjson::padded_string_view view(late_args.data(), late_args.size(),
                                            late_args.size() + 64);
    if (impl_->late.iterate(view).get(inner) != simdjson::SUCCESS ||
        inner.get_object().get(args) != simdjson::SUCCESS || !arguments(args, e)) {
      return Parsed::kBroken;
    }
  }
  return Parsed::kOk;
}

}  // namespace rehearse::traces::kineto
