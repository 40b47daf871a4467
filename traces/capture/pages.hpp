// SPDX-License-Identifier: Apache-2.0
// Memory from the kernel, zeroed and taken up only as it is touched: the program's own allocator is left
// alone, because we may run inside it, after a fork, or at exit.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace rehearse::capture {

// nullptr when there is none.
template <typename T>
[[nodiscard]] T* map_pages(size_t count) {
  void* const at = ::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<T*>(at);
}

}  // namespace rehearse::capture
