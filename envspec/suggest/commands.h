// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "envspec/suggest/solve.h"

namespace scankit::envspec {

// By what the environment is made.
struct SuggestInstaller {
  enum class Kind : std::uint8_t { Uv, Pip, Conda };
  Kind kind = Kind::Pip;
  std::string program =
      "uv";  // uv's or conda's, as the shell finds it; of pip the Python that makes the venv, "" for pythonX.Y
};
std::string_view installer_word(SuggestInstaller::Kind kind);

struct CommandRequest {
  SuggestInstaller installer;
  std::string directory;           // of the new environment: ".venv"
  std::string scankit;             // as it was started
  std::string archs;               // "sm_80,sm_90" where the GPUs were described; "" for those of the machine
  std::vector<std::string> extra;  // further requirements of the user on torch's companions: "triton<3.6"
};
// The commands that make the set, in their order, each as a shell takes it. The last one checks the result.
std::vector<std::string> commands_of(const SuggestedSet& set, const CommandRequest& request);

}  // namespace scankit::envspec
