// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/program.h"

#include "doctor/report/plain.h"

namespace scankit {
namespace {

std::string& program() {
  static std::string name = "scankit";
  return name;
}

}  // namespace

const std::string& scankit_program() { return program(); }

void set_scankit_program(const std::string& argv0) {
  program() = argv0.find('/') == std::string::npos ? "scankit" : shell_quoted(argv0);
}

}  // namespace scankit
