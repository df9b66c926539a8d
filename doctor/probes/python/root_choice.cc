// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/python/root_choice.h"

#include <algorithm>
#include <array>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/python/python_text.h"

namespace scankit {
namespace {

constexpr std::array kSigns{"usr", "bin", "lib", "lib64", "etc"};
constexpr std::size_t kManyEntries = 256;

Error no_root(const std::string& folder, const std::string& why, std::string hint) {
  return {Errc::InvalidArgument, say("--root {}: {}", printable(folder), why), std::move(hint)};
}

// What `docker save`, skopeo and buildah write: the layers, not the files.
bool is_packed_image(const Host& host, const std::string& folder) {
  return host.exists(path_join(folder, "oci-layout")) ||
         (host.exists(path_join(folder, "manifest.json")) && host.exists(path_join(folder, "repositories")));
}

void add_environment(const Host& host, const std::string& folder, std::vector<PlacedPython>& found) {
  for (const char* name : {"bin/python", "bin/python3"}) {
    const std::string file = path_join(folder, name);
    if (!host.lstat(file)) continue;
    found.push_back({file, folder});
    return;
  }
}

// Environments in the folders of `parent`: /opt/NAME, /opt/conda/envs/NAME, /home/NAME/.venv.
void add_children(const Host& host, const std::string& parent, const std::string& below,
                  std::vector<PlacedPython>& found) {
  const auto entries = host.list(parent);
  if (!entries || entries->size() > kManyEntries) return;
  for (const DirEntry& entry : *entries)
    if (entry.kind != FileKind::Regular)
      add_environment(host, path_join(path_join(parent, entry.name), below), found);
}

}  // namespace

Result<std::string> root_folder(const std::string& folder) {
  const auto host = make_real_host();
  auto real = host->realpath(folder);
  if (!real) return no_root(folder, real.error().message, say("name the folder of an unpacked image"));
  if (*real == "/")
    return no_root(folder, say("that is the running system"),
                   say("leave --root away to look at this machine"));
  if (!host->is_directory(*real))
    return no_root(folder, say("not a folder"),
                   say("unpack the image first, for example: docker export CONTAINER | tar -x -C DIR"));
  if (const auto listed = host->list(*real); !listed)
    return no_root(folder, listed.error().message, say("run as a user who may read it"));
  if (is_packed_image(*host, *real))
    return no_root(folder, say("it holds an image's layers, not its files"),
                   say("unpack it first, for example with: umoci unpack, or docker export | tar -x"));
  const bool looks_so =
      std::ranges::any_of(kSigns, [&](const char* sign) { return host->exists(path_join(*real, sign)); });
  if (!looks_so)
    return no_root(folder, say("no root file system: it holds none of usr, bin, lib, lib64 and etc"),
                   say("name the folder that holds them"));
  return real;
}

std::vector<PlacedPython> pythons_in_root(const Host& host) {
  std::vector<PlacedPython> found;
  for (const char* folder :
       {"/venv", "/.venv", "/app/.venv", "/app/venv", "/workspace/.venv", "/workspace/venv", "/src/.venv",
        "/root/.venv", "/root/venv", "/root/miniconda3", "/root/miniforge3", "/opt/conda"})
    add_environment(host, folder, found);
  for (const char* parent : {"/opt", "/opt/conda/envs", "/root/miniconda3/envs", "/root/.pyenv/versions"})
    add_children(host, parent, "", found);
  add_children(host, "/home", ".venv", found);
  return found;
}

}  // namespace scankit
