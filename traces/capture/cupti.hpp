// SPDX-License-Identifier: Apache-2.0
// The functions of libcupti that we call, found at run time: a program must not be bound to one version of
// CUPTI because it is watched. Also what the driver says about its devices.
#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/capture/cupti_layout.hpp"

namespace rehearse::capture::cupti {

using RequestBuffer = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using BufferFull = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size,
                            size_t valid);
using Callback = void (*)(void* user, int domain, uint32_t id, const void* data);

struct Functions {
  int (*get_version)(uint32_t*);
  int (*get_timestamp)(uint64_t*);
  int (*get_result_string)(int, const char**);
  int (*get_callback_name)(int domain, uint32_t id, const char**);
  int (*subscribe)(void** subscriber, Callback callback, void* user);
  int (*register_callbacks)(RequestBuffer, BufferFull);
  int (*enable)(uint32_t kind);
  int (*disable)(uint32_t kind);
  int (*flush_all)(uint32_t flag);
  int (*next_record)(uint8_t* buffer, size_t valid, Record** record);
  int (*dropped)(void* context, uint32_t stream, size_t* records);
  int (*push_correlation)(uint32_t kind, uint64_t id);
  int (*pop_correlation)(uint32_t kind, uint64_t* last);
  int (*set_thread_id_type)(int type);  // may be missing
  [[nodiscard]] const char* text_of(int result) const;
};

// Opens `path`, or when it is empty the libcupti that is loaded already, else the newest found. False
// after a message.
[[nodiscard]] bool open(const char* path, Functions& out);

struct DeviceFacts {
  char name[256];
  char bus[32];
  uint64_t memory;
  uint32_t multiprocessors;
};
// Asks the driver that the program has loaded. False when it does not answer.
[[nodiscard]] bool device_facts(uint32_t device, DeviceFacts& out);

}  // namespace rehearse::capture::cupti
