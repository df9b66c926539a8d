// SPDX-License-Identifier: Apache-2.0
// find_interpreter() repeats three steps until it meets a binary: locate() turns a name into an existing
// file, a script is followed to the program that it starts, and read_python_binary() says whether that is
// Python. Each way to fail has its own Error, whose hint says what the user can name instead.
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/elf/image.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::probes {
namespace {

Message name_another() {
  return message("give --python an interpreter, or the directory of a venv or conda environment");
}

Error unusable_python(const std::string& path, const Message& why, Message hint = name_another()) {
  return {Errc::InvalidArgument, message("no Python at {}: {}", printable(path), why), std::move(hint)};
}

// That a file may not be looked at says nothing of whether it is there.
Error denied(const std::string& path, const std::string& at) {
  return {Errc::PermissionDenied,
          at == path ? message("no Python at {}: permission denied", printable(path))
                     : message("no Python at {}: it is a link to {}: permission denied", printable(path),
                               printable(at)),
          message("run scankit as a user with read permission")};
}

Message ask_it(const std::string& path) {
  return message("give --python the output of: {} -c 'import sys; print(sys.executable)'", printable(path));
}

bool looks_like_file(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info && info->kind != FileKind::Directory;
}

// Which link of a chain leads nowhere. It walks by hand, because realpath() only says that something is
// missing. Loops end after 40 links, which is also the limit of the kernel (path_resolution(7)).
Error dead_link(const Host& host, const std::string& path) {
  std::string at = path, target;
  for (int links = 0; links < 40; ++links) {
    const auto next = host.readlink(at);
    if (!next) {
      const auto there = host.lstat(at);
      if (next.error().code == Errc::PermissionDenied ||
          (!there && there.error().code == Errc::PermissionDenied))
        return denied(path, at);
      const std::string venv = path_dirname(path_dirname(path));
      if (links == 0) return unusable_python(path, message("no such file"));
      if (is_regular_file(host, path_join(venv, "pyvenv.cfg")))
        return unusable_python(
            path, message("the Python this venv was made from ({}) no longer exists", printable(at)),
            repair_of_venv(host, venv).hint());
      return unusable_python(path, message("it is a link to {}, which does not exist", printable(at)));
    }
    at = next->starts_with('/') ? path_normalize(*next) : path_normalize(path_join(path_dirname(at), *next));
  }
  return unusable_python(path, message("its symbolic links form a loop"));
}

// The interpreter of a venv, a conda environment or an installation. lstat, so that a dead link is found
// here and explained by dead_link().
Result<std::string> in_folder(const Host& host, const std::string& folder) {
  for (const char* name : {"bin/python", "bin/python3"}) {
    const std::string candidate = path_join(folder, name);
    if (host.lstat(candidate)) return candidate;
  }
  if (is_regular_file(host, path_join(folder, "pyvenv.cfg")))
    return unusable_python(folder, message("it is the directory of a venv without bin/python"),
                           repair_of_venv(host, folder).hint());
  const auto listed = host.list(folder);
  if (!listed && listed.error().code == Errc::PermissionDenied) return denied(folder, folder);
  if (is_regular_file(host, path_join(folder, "Scripts/python.exe")))
    return unusable_python(folder, message("it is a venv created on Windows"),
                           message("create a virtual environment for Linux"));
  return unusable_python(folder, message("it is a directory without bin/python"));
}

// As execvp(3) searches, except that a file which this user may not execute is not skipped.
std::optional<std::string> on_path(const Host& host, const std::string& name, bool skip_shims) {
  for (const std::string& folder : path_folders(host, skip_shims)) {
    std::string candidate = path_join(folder, name);
    if (host.is_program(candidate)) return candidate;
  }
  return std::nullopt;
}

// An existing file, or a link that leads to one. A name without a slash is tried in the current directory
// before PATH, since a user also names a directory like "venv" in this way.
Result<std::string> locate(const Host& host, const std::string& requested) {
  if (requested.empty()) return unusable_python("\"\"", message("the path is empty"));
  std::string path = absolute_path(host, requested);
  if (requested.find('/') == std::string::npos && !host.lstat(path)) {
    if (auto found = on_path(host, requested, false)) return *found;
    return unusable_python(requested, message("it is neither in the current directory nor on PATH"));
  }
  const auto info = host.stat(path);
  if (!info) return dead_link(host, path);
  if (info->kind == FileKind::Directory) {
    SCANKIT_TRY(path, in_folder(host, path));
    if (!host.stat(path)) return dead_link(host, path);
  }
  return path;
}

// Where the script at `path` leads. Errors name what the user can do, since running it is not an option.
Result<std::string> through_script(const Host& host, const std::string& path, const std::string& text) {
  if (text.find("pyenv") != std::string::npos && text.find("PYENV_ROOT") != std::string::npos) {
    SCANKIT_TRY(const std::string target, pyenv_target(host, text, path_basename(path)));
    if (!target.empty()) return target;
    if (auto found = on_path(host, path_basename(path), true)) return *found;
    return unusable_python(path, message("pyenv's version is \"system\", but PATH has no other Python"),
                           ask_it(path));
  }
  if (auto target = exec_target(text, path)) {
    if (target->find('/') != std::string::npos) return absolute_path(host, *target);
    if (auto found = on_path(host, *target, true); found && *found != path) return *found;
  }
  return unusable_python(
      path, message("it is a script, and which interpreter it starts is only known by running it"),
      ask_it(path));
}

// Emulation (binfmt_misc) starts programs of other machines; without it the kernel refuses them.
bool is_emulated(const Host& host, const std::string& machine) {
  return host.exists("/proc/sys/fs/binfmt_misc/qemu-" + machine);
}

// Whether the kernel would start this file for this user. In an unpacked root only the file itself is looked
// at: its machine and owner are another system's.
Result<void> can_be_started(const Host& host, const std::string& path, const PythonBinary& binary) {
  const auto info = host.stat(path);
  if (info && (info->mode & 0111) == 0)
    return unusable_python(path, message("the file is not executable"),
                           message("chmod +x {}", printable(path)));
  auto source = host.open(path);
  if (source) {
    const elf::FileState state = elf::file_state(std::shared_ptr<const ByteSource>(*std::move(source)));
    if (state.state == "truncated")
      return unusable_python(path, message("the file is truncated: {}", state.detail),
                             message("reinstall that Python"));
  }
  if (!host.is_live()) return {};
  if (::access(path.c_str(), X_OK) != 0)
    return Error{
        Errc::PermissionDenied,
        message("no Python at {}: this user may not execute it (permission denied)", printable(path)),
        message("run scankit as a user with permission")};
  struct ::utsname names {};
  if (::uname(&names) != 0 || binary.machine.empty() || binary.machine == names.machine) return {};
  if (is_emulated(host, binary.machine)) return {};
  return unusable_python(
      path, message("it is built for {}, and this machine is {}", binary.machine, std::string(names.machine)),
      message("create the environment on this machine, with a Python for {}", std::string(names.machine)));
}

}  // namespace

Result<Interpreter> find_interpreter(const Host& host, const std::string& requested) {
  Interpreter found;
  SCANKIT_TRY(found.path, locate(host, requested));
  for (int depth = 0; depth < 8; ++depth) {
    if (!looks_like_file(host, found.path)) return dead_link(host, found.path);
    const auto head = read_head(host, found.path, 1u << 16);
    if (!head) {
      if (head.error().code == Errc::PermissionDenied) return denied(found.path, found.path);
      return unusable_python(found.path, head.error().message);
    }
    if (head->starts_with("#!")) {
      found.through.push_back(found.path);
      SCANKIT_TRY(const std::string next, through_script(host, found.path, *head));
      SCANKIT_TRY(found.path, locate(host, next));
      continue;
    }
    SCANKIT_TRY(const PythonBinary binary, read_python_binary(host, found.path));
    if (!binary.elf)
      return unusable_python(
          found.path, head->empty() ? message("the file is empty") : message("the file is not a program"));
    if (!binary.python) {  // mise and others put a program of their own under the name
      const bool called_so = path_basename(found.path).starts_with("python");
      return unusable_python(found.path, message("the program is not Python"),
                             called_so ? ask_it(found.path) : name_another());
    }
    SCANKIT_CHECK(can_be_started(host, found.path, binary));
    return found;
  }
  return unusable_python(requested, message("its scripts start one another in a loop"));
}

// Each directory once, absolute, an empty entry being the current one (POSIX, "Environment Variables"). The
// default serves an unpacked root, which has no variables.
std::vector<std::string> path_folders(const Host& host, bool skip_shims) {
  std::vector<std::string> folders;
  const std::string path = host.env("PATH").value_or("/usr/local/bin:/usr/bin:/bin");
  for (std::size_t from = 0; from <= path.size();) {
    const auto end = std::min(path.find(':', from), path.size());
    std::string folder = absolute_path(host, path.substr(from, end - from));
    from = end + 1;
    const bool shims = path_basename(folder) == "shims";
    if (!(skip_shims && shims) && std::ranges::find(folders, folder) == folders.end())
      folders.push_back(std::move(folder));
  }
  return folders;
}

namespace {

// The words of a simple command, quotes removed (POSIX shell, "Quoting"); expansions stay as they are
// written, so that the caller can tell that it does not know their value.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      inside = true;
    } else if (quote != '\'' && c == '\\' && i + 1 < line.size()) {
      word += line[++i];
      inside = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (inside) words.push_back(std::exchange(word, {}));
      inside = false;
    } else if (quote == 0 && c == '#' && !inside) {
      break;
    } else {
      word += c;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
  return words;
}

// The three ways in which scripts name their own folder.
std::string with_own_folder(std::string word, const std::string& script) {
  for (const std::string_view own :
       {"$(dirname \"$0\")", "$(dirname $0)", "$(dirname -- \"$0\")", "${0%/*}"}) {
    const auto at = word.find(own);
    if (at != std::string::npos) word.replace(at, own.size(), path_dirname(script));
  }
  return word;
}

// The program of `[NAME=value...] exec [-a NAME] [env [NAME=value...]] PROGRAM ... "$@"`. Nothing for any
// other line, for a path with an expansion, for a program that is not called python, and where "$@" is
// missing: such a script is a program of its own and not a stand-in for an interpreter.
std::optional<std::string> program_of(const std::vector<std::string>& words, const std::string& script) {
  std::size_t at = 0;
  const auto assignment = [&](const std::string& word) {
    return word.find('=') != std::string::npos && word.find('/') > word.find('=');
  };
  while (at < words.size() && assignment(words[at])) ++at;
  if (at >= words.size() || words[at] != "exec") return std::nullopt;
  ++at;
  if (at + 1 < words.size() && words[at] == "-a") at += 2;  // Nix: exec -a "$0" PROGRAM
  if (at < words.size() && path_basename(words[at]) == "env") ++at;
  while (at < words.size() && assignment(words[at])) ++at;
  if (at >= words.size()) return std::nullopt;
  std::string program = with_own_folder(words[at], script);
  const bool hands_arguments_on = std::ranges::find(words, "$@") != words.end();
  if (!hands_arguments_on || program.find_first_of("$`*?") != std::string::npos) return std::nullopt;
  if (path_basename(program).find("python") == std::string::npos) return std::nullopt;
  return program;
}

// The version names of a .python-version file or of PYENV_VERSION, comments and the prefix "python-"
// removed, as pyenv reads them. Several are tried in order.
std::vector<std::string> versions_in(std::string_view text, char separator) {
  std::vector<std::string> versions;
  std::string word;
  const auto finish = [&] {
    if (word.starts_with("python-")) word.erase(0, 7);
    if (!word.empty()) versions.push_back(word);
    word.clear();
  };
  for (const std::string_view line : lines_of(text)) {
    for (const char c : line.substr(0, line.find('#')))
      if (c == separator || c == ' ' || c == '\t')
        finish();
      else
        word += c;
    finish();
  }
  return versions;
}

// pyenv-version-name: $PYENV_VERSION, the nearest .python-version, the global file, "system".
std::vector<std::string> chosen_versions(const Host& host, const std::string& root) {
  if (const auto forced = host.env("PYENV_VERSION"); forced && !forced->empty())
    return versions_in(*forced, ':');
  std::string folder = host.env("PYENV_DIR").value_or(working_directory(host));
  for (int depth = 0; !folder.empty() && depth < 256; ++depth) {
    if (const auto text = host.read_file(path_join(folder, ".python-version"), 1u << 16))
      return versions_in(*text, ' ');
    if (folder == "/") break;
    folder = path_dirname(folder);
  }
  if (const auto text = host.read_file(path_join(root, "version"), 1u << 16)) return versions_in(*text, ' ');
  return {"system"};
}

// The folder of a version: of that name, or the newest patch release of a prefix ("3.11").
std::string version_folder(const Host& host, const std::string& root, const std::string& version) {
  const std::string versions = path_join(root, "versions");
  // A .python-version of a stranger must not lead out of versions/.
  if (version.find('/') != std::string::npos) return {};
  if (host.is_directory(path_join(versions, version))) return path_join(versions, version);
  std::string best;
  const auto entries = host.list(versions);
  if (!entries) return {};
  for (const DirEntry& entry : *entries) {
    if (!entry.name.starts_with(version + ".")) continue;
    // Longer is newer, so that 3.11.10 comes after 3.11.9; both have the same prefix.
    const bool newer =
        best.size() < entry.name.size() || (best.size() == entry.name.size() && best < entry.name);
    if (newer) best = entry.name;
  }
  return best.empty() ? "" : path_join(versions, best);
}

}  // namespace

std::optional<std::string> exec_target(std::string_view text, const std::string& script) {
  std::optional<std::string> target;
  for (const std::string_view line : lines_of(text))
    if (auto program = program_of(words_of(trimmed(line)), script)) target = std::move(program);
  return target;
}

// A shim exports the PYENV_ROOT that it was made for; that counts more than the variable of this process.
Result<std::string> pyenv_target(const Host& host, std::string_view shim_text, const std::string& program) {
  std::string root;
  constexpr std::string_view kRoot = "export PYENV_ROOT=";
  if (auto at = shim_text.find(kRoot); at != std::string_view::npos) {
    at += kRoot.size();
    if (auto literal = python_string_literal(shim_text, at)) root = *literal;
  }
  if (root.empty()) root = host.env("PYENV_ROOT").value_or("");
  const std::vector<std::string> versions = chosen_versions(host, root);
  for (const std::string& version : versions) {
    if (version == "system") return std::string();
    const std::string folder = version_folder(host, root, version);
    const std::string file = path_join(path_join(folder, "bin"), program);
    if (!folder.empty() && is_regular_file(host, file)) return file;
  }
  std::string names;
  for (const std::string& version : versions) names += (names.empty() ? "" : ", ") + printable(version);
  return Error{Errc::InvalidArgument,
               message("pyenv is set to version {}, which has no {} below {}/versions",
                       names.empty() ? "(none)" : names, printable(program), printable(root)),
               message("set another one (pyenv versions lists them), or give --python an interpreter")};
}

}  // namespace scankit::probes
