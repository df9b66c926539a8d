// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>

#include "builder/compile/build.h"
#include "builder/fix/distribution.h"
#include "builder/module/assemble.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/bytes.h"
#include "doctor/model/json.h"

namespace scankit {
namespace {

constexpr std::size_t kFileLimit = 512u << 20;
constexpr std::size_t kIndexHeader = 16, kIndexEntry = 128;  // of .scankit.images: builder/README.md

Error damaged(const std::string& path, const Message& what) {
  return {Errc::Malformed, message("{}, which is bundled with scankit, is damaged: {}", path, what),
          message("reinstall scankit")};
}

// The modules of one kernel share its device code; the first of them is the one that lies there.
const BundledModule& first_of_kernel(const BundledModule& module) {
  return *std::ranges::find(bundled_modules(), module.device_source.data(),
                            [](const BundledModule& other) { return other.device_source.data(); });
}

// "nvrtc 12.9, nvrtc 13.5": one toolchain, or an array of several (manifest.cc).
std::string compilers_of(const nlohmann::ordered_json& manifest) {
  std::string names;
  const auto add = [&](const nlohmann::ordered_json& one) {
    names += (names.empty() ? "" : ", ") + json_text(one, "kind") + " " + json_text(one, "version");
  };
  if (const auto one = manifest.find("toolchain"); one != manifest.end()) add(*one);
  if (const auto several = manifest.find("toolchains"); several != manifest.end() && several->is_array())
    for (const auto& one : *several) add(one);
  return names;
}

// Each image of the manifest, with the bytes that the index of the same place gives.
Result<std::vector<BuiltCode>> read_images(const std::string& path, std::string_view file,
                                           const nlohmann::ordered_json& manifest) {
  SCANKIT_TRY(const std::string index, section_bytes(file, ".scankit.images"));
  const auto& listed = manifest["images"];
  if (!listed.is_array() || !index.starts_with("SKIMAGE1") ||
      index.size() != kIndexHeader + kIndexEntry * listed.size())
    return damaged(path, message("its image index does not match its manifest"));
  std::vector<BuiltCode> images;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const std::string_view entry =
        std::string_view(index).substr(kIndexHeader + i * kIndexEntry, kIndexEntry);
    const auto offset = read_little_endian<std::uint64_t>(entry, 16);
    const auto size = read_little_endian<std::uint64_t>(entry, 24);
    if (offset > file.size() || size > file.size() - offset)
      return damaged(path, message("an image extends beyond the file"));
    BuiltCode image{json_text(listed[i], "unit"),
                    {},
                    std::string(file.substr(offset, size)),
                    json_text(listed[i], "sha256"),
                    true};
    auto target = parse_targets(json_text(listed[i], "target"));
    if (!target || target->list.size() != 1)
      return damaged(path, message("its manifest gives no target for image {}", i));
    image.target = target->list.front();
    if (sha256_hex(image.bytes) != image.sha256)
      return damaged(path,
                     message("the content of image {} for {} differs", image.unit, image.target.name()));
    images.push_back(std::move(image));
  }
  return images;
}

// Each unit for each target: a module that lacks one would fail at that call.
bool whole(const BundledModule& module, const std::vector<BuiltCode>& images,
           const std::vector<Target>& targets) {
  return std::ranges::all_of(targets, [&](const Target& target) {
    return std::ranges::all_of(module.units, [&](const Unit& unit) {
      return std::ranges::any_of(
          images, [&](const BuiltCode& image) { return image.unit == unit.name && image.target == target; });
    });
  });
}

// In the order of the images, which is ascending: choose_targets() relies on that.
std::vector<Target> targets_of(const std::vector<BuiltCode>& images) {
  std::vector<Target> targets;
  for (const BuiltCode& image : images)
    if (std::ranges::find(targets, image.target) == targets.end()) targets.push_back(image.target);
  return targets;
}

// Whether the shipped images are enough for the request. A list must be there word for word. For the GPUs
// here they count as a compiler that targets what they contain, so a GPU may also run a cubin of an older
// minor version, or PTX. `notes` then says which.
bool serves(const std::vector<Target>& held, const TargetRequest& request,
            const Probed<std::vector<Gpu>>& gpus, std::vector<std::string>& notes) {
  const auto has = [&](const Target& target) { return std::ranges::find(held, target) != held.end(); };
  if (request.kind == TargetRequest::Kind::List) return std::ranges::all_of(request.list, has);
  const bool any_gpu = gpus.present() && !gpus.value.empty();
  if (request.kind == TargetRequest::Kind::All || (!any_gpu && request.kind == TargetRequest::Kind::Default))
    return !held.empty();
  std::vector<unsigned> supported;
  for (const Target& target : held)
    if (!target.ptx && target.specific.empty()) supported.push_back(target.sm);
  if (supported.empty()) return false;
  const auto choice = choose_targets(request, gpus, supported);
  if (!choice) return false;
  notes = choice->notes;
  return std::ranges::all_of(choice->targets, [&](const Target& target) {
    return target.ptx ? std::ranges::any_of(held, &Target::ptx) : has(target);
  });
}

// Reads the file once and as a whole: what is written later is what was judged here. The manifest is changed
// to name the module that is asked for and our own host module.
Result<std::optional<BuiltModule>> from_file(const std::string& path, const BundledModule& module,
                                             const TargetRequest& request,
                                             const Probed<std::vector<Gpu>>& gpus) {
  SCANKIT_TRY(const std::string file, read_whole_file(path, kFileLimit));
  const auto text = section_bytes(file, ".scankit.manifest");
  if (!text && text.error().code != Errc::NotFound) return damaged(path, text.error().message);
  if (!text)
    return std::optional<BuiltModule>();  // a host module alone: scankit was installed without device code
  auto manifest = nlohmann::ordered_json::parse(*text, nullptr, false);
  if (!manifest.is_object() || !manifest["inputs"].is_object())
    return damaged(path, message("its manifest is not valid"));
  auto& inputs = manifest["inputs"];
  if (json_text(inputs, "device_source_sha256") != sha256_hex(module.device_source))
    return std::optional<BuiltModule>();
  SCANKIT_TRY(const auto images, read_images(path, file, manifest));
  BuiltModule built;
  built.targets = targets_of(images);
  if (!whole(module, images, built.targets) || !serves(built.targets, request, gpus, built.notes))
    return std::optional<BuiltModule>();
  manifest["module"] = built.module = module.name;
  built.file = module_file(built.module);
  inputs["host_module_sha256"] = sha256_hex(module.host_module);
  built.manifest = manifest.dump(2) + "\n";
  built.compiler = say("bundled, built by {}", compilers_of(manifest));
  SCANKIT_TRY(built.bytes, assemble_module(module.host_module, images, built.manifest));
  for (const BuiltCode& image : images)
    built.images.push_back({image.unit, image.target, "", image.sha256, true});
  built.from_cache = images.size();
  return std::optional<BuiltModule>(std::move(built));
}

}  // namespace

std::string prebuilt_folder() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof self)) return "";
  const std::string program(self, static_cast<std::size_t>(length));
  return path_normalize(path_dirname(program) + "/../share/scankit/modules");
}

Result<std::optional<BuiltModule>> prebuilt_module(const std::string& folder, const BundledModule& module,
                                                   const TargetRequest& request,
                                                   const Probed<std::vector<Gpu>>& gpus) {
  const std::string path = path_join(folder, module_file(first_of_kernel(module).name));
  if (folder.empty() || ::access(path.c_str(), R_OK) != 0) return std::optional<BuiltModule>();
  return from_file(path, module, request, gpus);
}

}  // namespace scankit
