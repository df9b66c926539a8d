// SPDX-License-Identifier: Apache-2.0
// The command that runs on every node, and what names and dates a run.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "ci/fleet/commands.h"
#include "doctor/base/files.h"

namespace scankit::fleet {

// The commands that print JSON about one node. Others would run on every node without a result to merge.
Result<std::vector<std::string>> checked_command(std::vector<std::string> command) {
  static const std::vector<std::string> known = {"doctor", "validate", "env", "ci"};
  const std::string hint = say("give it after --, as in: scankit fleet run --slurm --out DIR -- doctor");
  if (command.empty())
    return Error{Errc::InvalidArgument, message("the command for the nodes is missing"), hint};
  if (std::ranges::find(known, command.front()) == known.end())
    return Error{
        Errc::InvalidArgument,
        message("\"{}\" is not a command that a fleet can run: use doctor, validate, env check or ci",
                command.front()),
        hint};
  if (command.front() == "ci" && (command.size() < 2 || command[1] != "run"))
    command.insert(command.begin() + 1, "run");
  if (command.front() == "env" && (command.size() < 2 || command[1] != "check"))
    return Error{Errc::InvalidArgument, message("of env, a fleet can only run \"env check\""), hint};
  return command;
}

std::string option_value(const std::vector<std::string>& command, const std::string& name) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i] == name && i + 1 < command.size()) return command[i + 1];
    if (command[i].starts_with(name + "=")) return command[i].substr(name.size() + 1);
  }
  return "";
}

// The same option may name different files on the nodes; the hashes show it.
std::map<std::string, std::string> input_hashes(const std::vector<std::string>& command) {
  std::map<std::string, std::string> hashes;
  for (const char* name : {"--policy", "--spec", "--lock", "--baseline"}) {
    std::string path = option_value(command, name);
    if (path.empty() && !command.empty() && command.front() == "ci" && std::string_view(name) == "--policy")
      path = "scankit-ci.yaml";  // what ci run takes where it is there
    if (path.empty()) continue;
    if (const auto hash = sha256_file(path)) hashes[name] = *hash;
  }
  return hashes;
}

std::string command_hash(const std::vector<std::string>& command,
                         const std::map<std::string, std::string>& inputs) {
  std::string text;  // words cannot hold a zero byte, so that no two commands write the same text
  for (const std::string& word : command) text += word + '\0';
  for (const auto& [option, hash] : inputs) text += '\0' + option + '\0' + hash;
  return sha256_hex(text);
}

double now() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::milliseconds>(since).count()) / 1000;
}

// 16 hexadecimal digits. Unique enough for a directory of results, and not a secret.
std::string fresh_id() {
  std::random_device entropy;
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += std::to_string(entropy()) + ".";
  return sha256_hex(bytes + std::to_string(now())).substr(0, 16);
}

std::string environment_value(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace scankit::fleet
