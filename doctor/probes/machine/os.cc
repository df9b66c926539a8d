// SPDX-License-Identifier: Apache-2.0
#include <sys/utsname.h>

#include <map>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/elf/library_facts.h"
#include "doctor/probes/machine/system.h"

namespace scankit {
namespace {

// The shell-like KEY="value" lines of os-release(5).
std::map<std::string, std::string> assignments(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto equals = line.find('=');
    if (equals == std::string::npos || line.starts_with('#')) continue;
    std::string value = line.substr(equals + 1);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\''))
      value = value.substr(1, value.size() - 2);
    values[line.substr(0, equals)] = value;
  }
  return values;
}

std::string container_of(const Host& host) {
  if (host.exists("/.dockerenv")) return "docker";
  if (host.exists("/run/.containerenv")) return "podman";
  if (host.exists("/.singularity.d")) return "apptainer";
  if (host.env("KUBERNETES_SERVICE_HOST")) return "kubernetes";
  const auto named =
      host.read_file("/run/systemd/container", 256);  // written by systemd-nspawn, lxc and others
  if (!named) return "";
  return named->substr(0, named->find('\n'));
}

// First of the usual folders that holds the file. The loader's cache is not needed: these two libraries are
// the system's own, and a system without them in one of these folders does not start a program.
std::string find_system_library(const Host& host, const std::string& name) {
  for (const char* folder : {"/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/", "/lib64/", "/usr/lib64/",
                             "/lib/aarch64-linux-gnu/", "/usr/lib/aarch64-linux-gnu/", "/lib/", "/usr/lib/"})
    if (host.exists(folder + name)) return folder + name;
  return "";
}

}  // namespace

Probed<Os> probe_os(const Host& host) {
  Os os;
  std::string note;
  for (const char* file : {"/etc/os-release", "/usr/lib/os-release"}) {
    const auto text = host.read_file(file, 1u << 16);
    if (!text) {
      note = text.error().message;
      continue;
    }
    auto values = assignments(*text);
    os.id = values["ID"];
    os.version_id = values["VERSION_ID"];
    os.pretty_name = values["PRETTY_NAME"];
    note.clear();
    break;
  }
  if (host.is_live()) {
    utsname name{};
    ::uname(&name);
    os.kernel = name.release;
    os.machine = name.machine;
    os.wsl = os.kernel.find("icrosoft") != std::string::npos;  // "5.15.90.1-microsoft-standard-WSL2"
  }
  os.container = container_of(host);
  if (!note.empty() && os.kernel.empty()) return Probed<Os>::failed(note);
  return {ProbeState::Present, note, os};
}

Probed<LibC> probe_libc(const Host& host) {
  const std::string path = find_system_library(host, "libc.so.6");
  if (path.empty()) {
    for (const char* musl : {"/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"})
      if (host.exists(musl)) return Probed<LibC>::of({"musl", "", musl});
    return Probed<LibC>::failed(say("no libc.so.6 in the system's library folders"));
  }
  const auto defined = newest_defined_version(host, path, "GLIBC_");
  if (!defined) return Probed<LibC>::failed(defined.error().message);
  if (defined->empty()) return Probed<LibC>::failed(say("{} defines no GLIBC_ version", path));
  return Probed<LibC>::of({"glibc", *defined, path});
}

Probed<LibStdCxx> probe_libstdcxx(const Host& host) {
  const std::string path = find_system_library(host, "libstdc++.so.6");
  if (path.empty())
    return Probed<LibStdCxx>::absent(say("no libstdc++.so.6 in the system's library folders"));
  const auto glibcxx = newest_defined_version(host, path, "GLIBCXX_");
  const auto cxxabi = newest_defined_version(host, path, "CXXABI_");
  if (!glibcxx) return Probed<LibStdCxx>::failed(glibcxx.error().message);
  return Probed<LibStdCxx>::of({path, *glibcxx, cxxabi.value_or("")});
}

}  // namespace scankit
