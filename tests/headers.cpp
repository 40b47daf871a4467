// SPDX-License-Identifier: Apache-2.0
// Nothing but the headers that every test includes, for the one copy of them that is precompiled.
int main() { return 0; }
