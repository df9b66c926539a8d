// SPDX-License-Identifier: Apache-2.0
#include "doctor/run/launchers.h"

#include <algorithm>
#include <array>

#include "doctor/base/files.h"
#include "doctor/base/text.h"

namespace scankit {
namespace {

// A program that runs the rest of its words as a command, here and as another user, slower and so on.
struct Helper {
  std::string_view name;
  std::string_view with_value;  // its short options whose value is the next word
  int words = 0;                // words of its own before the command
};
constexpr std::array kHelpers{
    Helper{"sudo", "ugUChpRrTt", 0}, Helper{"doas", "uC", 0},     Helper{"env", "uCS", 0},
    Helper{"nohup", "", 0},          Helper{"nice", "n", 0},      Helper{"ionice", "cn", 0},
    Helper{"timeout", "sk", 1},      Helper{"stdbuf", "ioe", 0},  Helper{"setsid", "", 0},
    Helper{"time", "fo", 0},         Helper{"taskset", "", 1},    Helper{"chrt", "", 1},
    Helper{"prlimit", "", 0},        Helper{"numactl", "NmCi", 0}};

constexpr std::array<std::string_view, 3> kEngines{"docker", "podman", "nerdctl"};
constexpr std::array<std::string_view, 3> kImages{"singularity", "apptainer", "enroot"};
constexpr std::array<std::string_view, 5> kMachines{"srun", "sbatch", "ssh", "kubectl", "ray"};
constexpr std::array<std::string_view, 6> kShells{"sh", "bash", "dash", "zsh", "ksh", "xargs"};

template <std::size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

const Helper* helper(std::string_view name) {
  const auto* const found = std::ranges::find(kHelpers, name, &Helper::name);
  return found == kHelpers.end() ? nullptr : &*found;
}

// The place of the command behind a helper's own words.
std::size_t behind(const Helper& helper, const std::vector<std::string>& words, std::size_t at) {
  int own = helper.words;
  for (++at; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") return at + 1;
    const bool option = word.size() > 1 && word[0] == '-';
    if (option && word.size() == 2 && helper.with_value.find(word[1]) != std::string_view::npos) ++at;
    const bool variable = word.find('=') != std::string::npos;  // NAME=VALUE of env and sudo
    if (option || variable) continue;
    if (own-- <= 0) return at;
  }
  return at;
}

Message meaning_for_engine(const std::string& engine, const std::vector<std::string>& words, int status) {
  const auto starts = [](const std::string& word) {
    return word == "run" || word == "exec" || word == "start";
  };
  if (std::ranges::none_of(words, starts)) return {};
  if (status == 125) return message("{} itself failed before it started the command in a container", engine);
  if (status == 126) return message("the command could not be started in the container");
  if (status == 127) return message("the container has no such command");
  if (status == 137)
    return message(
        "the command in the container was killed: somebody stopped it, or its memory ran out; {} "
        "inspect shows which (OOMKilled)",
        engine);
  return {};
}

// slurmstepd: "error: execve(): train: No such file or directory".
Message meaning_for_slurm(std::string_view output) {
  constexpr std::string_view kStart = "execve(): ";
  const auto at = output.rfind(kStart);
  if (at == std::string_view::npos) return {};
  const std::string_view line = output.substr(at + kStart.size(), output.find('\n', at) - at - kStart.size());
  const auto colon = line.rfind(": ");
  if (colon == std::string_view::npos) return {};
  return message("the node cannot start {}: {}", std::string(line.substr(0, colon)),
                 std::string(trimmed(line.substr(colon + 2))));
}

Message meaning_for_helper(const std::string& name, int status) {
  if (name == "timeout" && status == 124) return message("its time was up, so timeout ended it");
  if (name == "timeout" && status == 137)
    return message("its time was up, so timeout killed it, or something else did");
  if (status == 125 && helper(name) != nullptr) return message("{} itself failed", name);
  return {};
}

}  // namespace

std::vector<std::string> launched(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < words.size();) {
    names.push_back(path_basename(words[at]));
    const Helper* found = helper(names.back());
    if (found == nullptr) break;
    at = behind(*found, words, at);
  }
  return names;
}

bool runs_elsewhere(std::string_view program) {
  return contains(kEngines, program) || contains(kImages, program) || contains(kMachines, program);
}

std::string examined_there(std::string_view program) {
  if (!runs_elsewhere(program)) return "";
  const std::string name(program);
  if (contains(kEngines, program)) return name + " run [OPTIONS] IMAGE scankit run -- COMMAND";
  if (contains(kImages, program)) return name + " exec [OPTIONS] IMAGE scankit run -- COMMAND";
  if (program == "ssh") return "ssh HOST scankit run -- COMMAND";
  if (program == "kubectl") return "kubectl exec POD -- scankit run -- COMMAND";
  return name + " [OPTIONS] scankit run -- COMMAND";
}

Message meaning_of_exit(const std::vector<std::string>& words, int status, std::string_view output) {
  const std::vector<std::string> names = launched(words);
  if (names.empty()) return {};
  const std::string& last = names.back();
  if (last == "srun" || last == "sbatch") return meaning_for_slurm(output);
  if (contains(kEngines, last))
    if (Message meaning = meaning_for_engine(last, words, status); !meaning.empty()) return meaning;
  for (const std::string& name : names)
    if (Message meaning = meaning_for_helper(name, status); !meaning.empty()) return meaning;
  if (last == "ssh" && status == 255) return message("ssh did not reach the machine, or lost it");
  const bool calls = contains(kShells, last) || names.size() > 1;
  if (calls && status == 126) return message("a program that it calls cannot be executed");
  if (calls && status == 127) return message("a program that it calls was not found");
  return {};
}

}  // namespace scankit
