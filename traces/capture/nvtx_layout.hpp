// SPDX-License-Identifier: Apache-2.0
// The side of NVTX 3 that faces a tool: tables of functions to fill in, attributes of events, and schemas of
// payloads. nvtx_layout_check.cpp compares it with the real headers where they are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rehearse::capture::nvtx {

using Function = void (*)();

struct CallbacksTable {
  size_t struct_size;
  // An array of pointers to the pointers that NVTX calls through.
  int (*module_functions)(int module, Function*** table, unsigned* size);
};
using GetExportTable = const void* (*)(uint32_t table);
constexpr uint32_t kCallbacksTable = 1;

enum Module { kCore = 1, kCore2 = 5 };
enum CoreFunction {
  kMarkEx = 1,
  kMarkA,
  kMarkW,
  kRangeStartEx,
  kRangeStartA,
  kRangeStartW,
  kRangeEnd,
  kRangePushEx,
  kRangePushA,
  kRangePushW,
  kRangePop,
  kNameOsThreadA = 14,
  kNameOsThreadW = 15
};
enum Core2Function {
  kDomainMarkEx = 1,
  kDomainRangeStartEx,
  kDomainRangeEnd,
  kDomainRangePushEx,
  kDomainRangePop,
  kDomainResourceCreate,
  kDomainRegisterStringA = 10,
  kDomainRegisterStringW,
  kDomainCreateA,
  kDomainCreateW
};

struct EventAttributes {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type;
  int32_t payloads;  // how many extended payloads
  uint64_t payload;  // of payload_type kExtendedPayload: address of PayloadData
  int32_t message_type;
  union {
    const char* ascii;
    const wchar_t* wide;
    const void* registered;
  } message;
};
enum MessageType : int32_t { kAscii = 1, kWide = 2, kRegistered = 3 };
constexpr auto kExtendedPayload = static_cast<int32_t>(0xDFBD0009);

struct PayloadData {
  uint64_t schema;
  size_t size;
  const void* bytes;
};

struct SchemaEntry {
  uint64_t flags;
  uint64_t type;
  const char* name;
  const char* description;
  uint64_t detail;
  uint64_t offset;
  const void* semantics;
  const void* reserved;
};
struct SchemaAttributes {
  uint64_t mask;
  const char* name;
  uint64_t type;
  uint64_t flags;
  const SchemaEntry* entries;
  size_t count;
  size_t static_size;
  size_t pack;
  uint64_t id;
  void* extension;
};
enum SchemaField : uint64_t { kHasEntries = 1 << 4, kHasCount = 1 << 5, kHasId = 1 << 8 };
constexpr uint64_t kFirstDynamicSchema = uint64_t{1} << 32;

struct Segment {
  size_t id;
  size_t count;
  intptr_t* slots;
};
struct ModuleInfo {
  uint16_t version, struct_size, module, compatibility;
  size_t count;
  Segment* segments;
  intptr_t (*get_export)(uint32_t);
  const void* info;
};
constexpr uint16_t kPayloadModule = 2;
enum PayloadFunction {
  kSchemaRegister = 0,
  kEnumRegister = 1,
  kMarkPayload = 2,
  kRangePushPayload = 3,
  kRangePopPayload = 4,
  kRangeStartPayload = 5,
  kRangeEndPayload = 6,
  kDomainIsEnabled = 7
};

}  // namespace rehearse::capture::nvtx
