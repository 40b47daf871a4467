// SPDX-License-Identifier: Apache-2.0
// What the stand-in for libcupti offers beyond CUPTI's own functions: a test program puts records into the
// buffers that the capture library gave, and has them delivered. Found by dlsym; C linkage.
#pragma once

#include <cstddef>
#include <cstdint>

// Appends a record; it takes as many bytes as CUPTI 13.0's record of its kind.
using FakePut = void (*)(const void* record, size_t bytes);
// Delivers all filled buffers, the newest first.
using FakeDeliver = void (*)();
// A kernel launched on this thread: the host call, the kernel, and the external correlation that is pushed.
using FakeLaunch = void (*)(const char* kernel, uint32_t stream, uint64_t start, uint64_t end);
