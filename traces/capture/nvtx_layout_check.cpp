// SPDX-License-Identifier: Apache-2.0
// Compiled only where NVTX's headers are: what nvtx_layout.hpp believes, against them.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>

#include "traces/capture/nvtx_layout.hpp"

namespace rehearse::capture::nvtx {

static_assert(sizeof(EventAttributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(EventAttributes, payload_type) ==
              offsetof(nvtxEventAttributes_t, payloadType));
static_assert(offsetof(EventAttributes, payloads) == offsetof(nvtxEventAttributes_t, reserved0));
static_assert(offsetof(EventAttributes, payload) == offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(EventAttributes, message_type) ==
              offsetof(nvtxEventAttributes_t, messageType));
static_assert(offsetof(EventAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(kExtendedPayload == NVTX_PAYLOAD_TYPE_EXT);
static_assert(kAscii == static_cast<int>(NVTX_MESSAGE_TYPE_ASCII));
static_assert(kWide == static_cast<int>(NVTX_MESSAGE_TYPE_UNICODE));
static_assert(kRegistered == static_cast<int>(NVTX_MESSAGE_TYPE_REGISTERED));

static_assert(sizeof(PayloadData) == sizeof(nvtxPayloadData_t));
static_assert(offsetof(PayloadData, bytes) == offsetof(nvtxPayloadData_t, payload));
static_assert(sizeof(SchemaEntry) == sizeof(nvtxPayloadSchemaEntry_t));
static_assert(offsetof(SchemaEntry, type) == offsetof(nvtxPayloadSchemaEntry_t, type));
static_assert(offsetof(SchemaEntry, name) == offsetof(nvtxPayloadSchemaEntry_t, name));
static_assert(offsetof(SchemaEntry, offset) == offsetof(nvtxPayloadSchemaEntry_t, offset));
static_assert(sizeof(SchemaAttributes) == sizeof(nvtxPayloadSchemaAttr_t));
static_assert(offsetof(SchemaAttributes, entries) == offsetof(nvtxPayloadSchemaAttr_t, entries));
static_assert(offsetof(SchemaAttributes, count) == offsetof(nvtxPayloadSchemaAttr_t, numEntries));
static_assert(offsetof(SchemaAttributes, id) == offsetof(nvtxPayloadSchemaAttr_t, schemaId));
static_assert(kHasEntries == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES);
static_assert(kHasCount == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES);
static_assert(kHasId == NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID);
static_assert(kFirstDynamicSchema == NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START);
static_assert(kPayloadModule == NVTX_EXT_PAYLOAD_MODULEID);
static_assert(kSchemaRegister == NVTX3EXT_CBID_nvtxPayloadSchemaRegister);
static_assert(kEnumRegister == NVTX3EXT_CBID_nvtxPayloadEnumRegister);
static_assert(kRangePushPayload == NVTX3EXT_CBID_nvtxRangePushPayload);
static_assert(kRangePopPayload == NVTX3EXT_CBID_nvtxRangePopPayload);
static_assert(kRangeStartPayload == NVTX3EXT_CBID_nvtxRangeStartPayload);
static_assert(kRangeEndPayload == NVTX3EXT_CBID_nvtxRangeEndPayload);
static_assert(kDomainIsEnabled == NVTX3EXT_CBID_nvtxDomainIsEnabled);

}  // namespace rehearse::capture::nvtx
