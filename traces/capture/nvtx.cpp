// SPDX-License-Identifier: Apache-2.0
#include "traces/capture/nvtx.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <string_view>

#include "traces/capture/nccl_version.hpp"
#include "traces/capture/nvtx_payload.hpp"
#include "traces/capture/nvtx_ranges.hpp"
#include "traces/capture/recorder.hpp"
#include "traces/capture_file/step_names.hpp"

namespace rehearse::capture::nvtx {
namespace {

using capture_file::Range;

constexpr int kNotTracked = -2;  // NVTX_NO_PUSH_POP_TRACKING
// Handles are ids of names with a bit that keeps them from being null.
constexpr uintptr_t kHandle = uintptr_t{1} << 40;

constinit Ranges g_ranges;
constinit Schemas g_schemas;

Recorder& recorder() { return Recorder::instance(); }

// One name per operator, not one per call of it.
uint32_t text_name(const char* text) {
  if (text == nullptr) return 0;
  return recorder().names().id(capture_file::without_number(text));
}

uint32_t wide_name(const wchar_t* text) {
  if (text == nullptr) return 0;
  char out[1024];
  size_t used = 0;
  for (; *text != 0 && used + 4 < sizeof out; ++text) {
    const auto c = std::bit_cast<uint32_t>(*text);
    const auto put = [&](uint32_t byte) { out[used++] = static_cast<char>(byte); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6);
      put(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12);
      put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    } else {
      put(0xf0 | (c >> 18 & 7));
      put(0x80 | (c >> 12 & 0x3f));
      put(0x80 | (c >> 6 & 0x3f));
      put(0x80 | (c & 0x3f));
    }
  }
  return recorder().names().id(std::string_view(out, used));
}

uint32_t name_of_handle(const void* handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) & 0xffffffff);
}
void* handle_of_name(uint32_t name) { return std::bit_cast<void*>(kHandle | name); }

// The name and payload that attributes carry.
Range range_of(uint64_t domain, const EventAttributes* a) {
  Range range;
  if (a == nullptr || a->size < sizeof(EventAttributes)) return range;
  if (a->message_type == kRegistered) {
    range.name = name_of_handle(a->message.registered);
  } else if (a->message_type == kAscii) {
    range.name = text_name(a->message.ascii);
  } else if (a->message_type == kWide) {
    range.name = wide_name(a->message.wide);
  }
  if (a->payload_type == kExtendedPayload && a->payload != 0) {
    const auto* const data = std::bit_cast<const PayloadData*>(a->payload);
    for (int i = 0; i < std::min(a->payloads, 8); ++i) {
      if (data[i].bytes != nullptr) g_schemas.decode(domain, data[i], range);
    }
  }
  return range;
}

Range named(uint32_t name) {
  Range range;
  range.name = name;
  return range;
}

int push(uint64_t domain, Range range) { return g_ranges.push(domain, range); }
uint64_t start(uint64_t domain, Range range) { return g_ranges.start(domain, range); }
void mark(uint64_t domain, Range range) { g_ranges.mark(domain, range); }
uint64_t domain_of(const void* handle) { return name_of_handle(handle); }
bool on() { return recorder().on(); }

// The functions of the core module.
void mark_ex(const EventAttributes* a) {
  if (on()) mark(0, range_of(0, a));
}
void mark_a(const char* text) {
  if (on()) mark(0, named(text_name(text)));
}
void mark_w(const wchar_t* text) {
  if (on()) mark(0, named(wide_name(text)));
}
uint64_t range_start_ex(const EventAttributes* a) { return on() ? start(0, range_of(0, a)) : 0; }
uint64_t range_start_a(const char* text) { return on() ? start(0, named(text_name(text))) : 0; }
uint64_t range_start_w(const wchar_t* text) { return on() ? start(0, named(wide_name(text))) : 0; }
void range_end(uint64_t id) {
  if (on()) g_ranges.end(id);
}
int range_push_ex(const EventAttributes* a) { return on() ? push(0, range_of(0, a)) : kNotTracked; }
int range_push_a(const char* text) { return on() ? push(0, named(text_name(text))) : kNotTracked; }
int range_push_w(const wchar_t* text) {
  return on() ? push(0, named(wide_name(text))) : kNotTracked;
}
int range_pop() { return on() ? g_ranges.pop(0) : kNotTracked; }
void name_thread_a(uint32_t thread, const char* text) {
  if (on()) recorder().put(Lost::kNvtx, capture_file::Thread{thread, recorder().names().id(text)});
}
void name_thread_w(uint32_t thread, const wchar_t* text) {
  if (on()) recorder().put(Lost::kNvtx, capture_file::Thread{thread, wide_name(text)});
}

// Of the module of domains. A domain's handle is the id of its name.
void domain_mark_ex(void* domain, const EventAttributes* a) {
  if (on()) mark(domain_of(domain), range_of(domain_of(domain), a));
}
uint64_t domain_start_ex(void* domain, const EventAttributes* a) {
  return on() ? start(domain_of(domain), range_of(domain_of(domain), a)) : 0;
}
void domain_end(void*, uint64_t id) { range_end(id); }
int domain_push_ex(void* domain, const EventAttributes* a) {
  return on() ? push(domain_of(domain), range_of(domain_of(domain), a)) : kNotTracked;
}
int domain_pop(void* domain) { return on() ? g_ranges.pop(domain_of(domain)) : kNotTracked; }
void* resource_create(void*, const void*) { return handle_of_name(0); }
void* register_a(void*, const char* text) {
  return handle_of_name(on() ? recorder().names().id(text) : 0);
}
void* register_w(void*, const wchar_t* text) { return handle_of_name(on() ? wide_name(text) : 0); }
void* domain_create_a(const char* name) {
  return handle_of_name(on() ? recorder().names().id(name) : 0);
}
void* domain_create_w(const wchar_t* name) { return handle_of_name(on() ? wide_name(name) : 0); }

// Of the extension.
uint64_t schema_register(void* domain, const SchemaAttributes* a) {
  return a == nullptr ? 0 : g_schemas.add(domain_of(domain), *a);
}
// Enumerations are kept as their numbers.
uint64_t enum_register(void*, const void*) { return 0; }
Range range_of_payloads(uint64_t domain, const PayloadData* data, size_t count) {
  Range range;
  for (size_t i = 0; i < std::min<size_t>(count, 8); ++i) {
    if (data[i].bytes != nullptr) g_schemas.decode(domain, data[i], range);
  }
  return range;
}
void mark_payload(void* domain, const PayloadData* data, size_t count) {
  if (on()) mark(domain_of(domain), range_of_payloads(domain_of(domain), data, count));
}
int push_payload(void* domain, const PayloadData* data, size_t count) {
  return on() ? push(domain_of(domain), range_of_payloads(domain_of(domain), data, count))
              : kNotTracked;
}
int pop_payload(void* domain, const PayloadData*, size_t) { return domain_pop(domain); }
uint64_t start_payload(void* domain, const PayloadData* data, size_t count) {
  return on() ? start(domain_of(domain), range_of_payloads(domain_of(domain), data, count)) : 0;
}
void end_payload(void*, uint64_t id, const PayloadData*, size_t) { range_end(id); }
uint8_t domain_is_enabled(void*) { return 1; }

struct Table {
  Function** entries = nullptr;
  unsigned size = 0;
  template <typename F>
  void set(unsigned i, F function) {
    // Older copies of NVTX have fewer.
    if (i < size && entries[i] != nullptr) *entries[i] = reinterpret_cast<Function>(function);
  }
};

}  // namespace

int attach(GetExportTable get_export_table) {
  if (get_export_table == nullptr || !on()) return 1;
  nccl_in_object_of(reinterpret_cast<const void*>(get_export_table));
  const auto* const callbacks =
      static_cast<const CallbacksTable*>(get_export_table(kCallbacksTable));
  if (callbacks == nullptr || callbacks->module_functions == nullptr) return 1;
  Table t;
  if (callbacks->module_functions(kCore, &t.entries, &t.size) != 0 && t.entries != nullptr) {
    t.set(kMarkEx, mark_ex);
    t.set(kMarkA, mark_a);
    t.set(kMarkW, mark_w);
    t.set(kRangeStartEx, range_start_ex);
    t.set(kRangeStartA, range_start_a);
    t.set(kRangeStartW, range_start_w);
    t.set(kRangeEnd, range_end);
    t.set(kRangePushEx, range_push_ex);
    t.set(kRangePushA, range_push_a);
    t.set(kRangePushW, range_push_w);
    t.set(kRangePop, range_pop);
    t.set(kNameOsThreadA, name_thread_a);
    t.set(kNameOsThreadW, name_thread_w);
  }
  Table d;
  if (callbacks->module_functions(kCore2, &d.entries, &d.size) != 0 && d.entries != nullptr) {
    d.set(kDomainMarkEx, domain_mark_ex);
    d.set(kDomainRangeStartEx, domain_start_ex);
    d.set(kDomainRangeEnd, domain_end);
    d.set(kDomainRangePushEx, domain_push_ex);
    d.set(kDomainRangePop, domain_pop);
    d.set(kDomainResourceCreate, resource_create);
    d.set(kDomainRegisterStringA, register_a);
    d.set(kDomainRegisterStringW, register_w);
    d.set(kDomainCreateA, domain_create_a);
    d.set(kDomainCreateW, domain_create_w);
  }
  return 1;
}

int attach_extension(ModuleInfo* info) {
  if (info == nullptr || info->module != kPayloadModule || info->count < 1 || !on()) return 1;
  const Segment& s = info->segments[0];
  const auto set = [&](size_t i, auto function) {
    if (i < s.count) s.slots[i] = reinterpret_cast<intptr_t>(function);
  };
  set(kSchemaRegister, schema_register);
  set(kEnumRegister, enum_register);
  set(kMarkPayload, mark_payload);
  set(kRangePushPayload, push_payload);
  set(kRangePopPayload, pop_payload);
  set(kRangeStartPayload, start_payload);
  set(kRangeEndPayload, end_payload);
  set(kDomainIsEnabled, domain_is_enabled);
  return 1;
}

}  // namespace rehearse::capture::nvtx
