// SPDX-License-Identifier: Apache-2.0
#include "cli/dispatch.hpp"
#include "cli/terminal.hpp"

int main(int argc, char** argv) {
  rehearse::cli::catch_interrupts();
  return rehearse::cli::dispatch({argv + (argc > 0 ? 1 : 0), argv + argc});
}
