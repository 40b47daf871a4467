// SPDX-License-Identifier: Apache-2.0
// Which NCCL the program uses: asked of the library that an address belongs to, because a framework's NCCL
// is often not visible to others.
#pragma once

namespace rehearse::capture {

// Tells the recorder when the object that `address` lies in is an NCCL.
void nccl_in_object_of(const void* address);

}  // namespace rehearse::capture
