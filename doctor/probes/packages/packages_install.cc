// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/packages_install.h"

#include <limits>

#include "doctor/base/files.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages_binary.h"
#include "doctor/probes/python/python_text.h"

namespace scankit {
namespace {

// What one run of pip installs, it writes within minutes: unpacking torch's CUDA libraries takes the longest.
constexpr std::int64_t kOneRun = 900;

// RECORD is written at the end of an installation; the files themselves may keep the dates of an installer's
// cache.
std::int64_t written(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info ? info->mtime_ns / 1'000'000'000 : 0;
}
std::int64_t installed_at(const Host& host, const Distribution& distribution) {
  return written(host, path_join(distribution.path, "RECORD"));
}
// pip leaves this file where its user named the distribution on the command line (PEP 376; pip since 20.2).
bool was_named(const Host& host, const Distribution& distribution) {
  return host.exists(path_join(distribution.path, "REQUESTED"));
}

void read_modules(const Host& host, const Snapshot& snapshot, Packages& packages) {
  for (const Extension& file : snapshot.extensions.value) {
    if (!file.selected || file.file_state != "elf") continue;
    ModuleTexts texts{file.module, file.path, false, {}, false, false, "", 0};
    const Distribution* owner = file.distribution.empty()
                                    ? nullptr
                                    : find_distribution(snapshot.distributions.value, file.distribution);
    if (owner != nullptr) texts.installed = installed_at(host, *owner);
    if (texts.installed == 0) texts.installed = written(host, file.path);
    if (auto read = read_binary_texts(host, file.path)) {
      texts.read = true;
      texts.arguments = std::move(read->arguments);
      texts.defaults = read->defaults;
      texts.open_ended = read->open_ended;
      texts.build_trace = std::move(read->build_trace);
    }
    packages.texts.push_back(std::move(texts));
  }
}

// Requirements are installed before what requires them, so the next named distribution after torch brought
// it.
std::string what_brought(const Host& host, const Snapshot& snapshot, const Distribution& torch,
                         std::int64_t torch_installed) {
  if (torch.installer != "pip" || torch_installed == 0 || was_named(host, torch)) return {};
  const Distribution* best = nullptr;
  std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
  for (const Distribution& each : snapshot.distributions.value) {
    const std::int64_t at = &each == &torch ? 0 : installed_at(host, each);
    if (at < torch_installed || at > torch_installed + kOneRun || at >= soonest || !was_named(host, each))
      continue;
    best = &each;
    soonest = at;
  }
  return best == nullptr ? "" : best->name;
}

void read_torch_record(const Host& host, const Snapshot& snapshot, Packages& packages) {
  const Distribution* torch = find_distribution(snapshot.distributions.value, "torch");
  if (torch == nullptr) return;
  packages.torch_record = path_join(torch->path, "RECORD");
  packages.torch_installed = installed_at(host, *torch);
  packages.torch_brought_by = what_brought(host, snapshot, *torch, packages.torch_installed);
  const auto metadata = read_head(host, path_join(torch->path, "METADATA"), 1u << 16);
  if (!metadata) return;
  for (const std::string_view line : lines_of(*metadata)) {
    constexpr std::string_view kField = "Requires-Dist: ", kTriton = "triton";
    if (line.empty()) break;  // the description follows
    if (!line.starts_with(kField) || !line.substr(kField.size()).starts_with(kTriton)) continue;
    const std::string_view requirement = line.substr(kField.size());
    const char next = requirement.size() > kTriton.size() ? requirement[kTriton.size()] : ' ';
    if (next == ' ' || next == '=' || next == '<' || next == '>' || next == '(' || next == '~' || next == '!')
      packages.triton_pin = requirement;
  }
}

}  // namespace

void read_installation(const Host& host, const Snapshot& so_far, Packages& packages) {
  read_modules(host, so_far, packages);
  read_torch_record(host, so_far, packages);
}

}  // namespace scankit
