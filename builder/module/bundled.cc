// SPDX-License-Identifier: Apache-2.0
#include "builder/module/bundled.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "builder/compile/build.h"
#include "builder/fix/distribution.h"
#include "builder/module/assemble.h"
#include "builder/module/image_index.h"
#include "builder/toolchain/toolchain.h"
#include "doctor/base/embedded.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"

SCANKIT_EMBEDDED(scankit_carried);

namespace scankit::module {

std::string_view carried_file(std::string_view name) {
  static const EmbeddedFiles files(SCANKIT_UNPACKED(scankit_carried));
  return files.file(name);
}

namespace {

// SM numbers: the oldest architecture of a release, and the last one with the older cubin ABI version.
constexpr unsigned kOldest = 60, kNewestOfOldCubinAbi = 90;

// The compiler for an architecture in a release. Up to sm_90 it is CUDA 12: its cubins have the older ABI
// version, which drivers before 580 read. Newer architectures come from the oldest CUDA 13 that knows them,
// since a driver of that release is then enough. Null if no compiler makes it.
const char* maker_of(unsigned sm) {
  for (const char* id : {"nvrtc-12.9.86", "nvrtc-13.0.88", "nvrtc-13.5.37"}) {
    const toolchain::WheelToolchain& toolchain = toolchain::wheel_toolchain(id);
    if (toolchain.version.starts_with("12.") && sm > kNewestOfOldCubinAbi) continue;
    if (std::find(toolchain.archs.begin(), toolchain.archs.end(), sm) != toolchain.archs.end()) return id;
  }
  return nullptr;
}

// One part for each compiler, in the order of maker_of(), and one for the PTX.
std::vector<ReleasePart> make_parts() {
  std::vector<ReleasePart> parts;
  for (const char* id : {"nvrtc-12.9.86", "nvrtc-13.0.88", "nvrtc-13.5.37"}) {
    ReleasePart part{id, {}};
    for (const unsigned sm : toolchain::wheel_toolchain(id).archs) {
      const char* maker = sm >= kOldest ? maker_of(sm) : nullptr;
      if (maker != nullptr && part.toolchain == maker) part.targets.push_back({false, sm, ""});
    }
    parts.push_back(std::move(part));
  }
  // PTX for GPUs that come later. From an old NVRTC, since every driver from 530 on translates what it
  // writes (ISA 8.1). compute_80: every older GPU has a cubin, and from 80 on the kernels round to bf16
  // by an instruction.
  parts.push_back({"nvrtc-12.1.105", {{true, 80, ""}}});
  return parts;
}

}  // namespace

const std::vector<ReleasePart>& release_parts() {
  static const std::vector<ReleasePart> parts = make_parts();
  return parts;
}

namespace {

// Splits the flags of a units.def line at blanks; none of them contains one.
toolchain::Unit unit_of(const char* name, const char* flags) {
  toolchain::Unit unit{name, {}};
  std::istringstream words(flags);
  for (std::string word; words >> word;) unit.flags.push_back(word);
  return unit;
}

std::vector<toolchain::Unit> scan_units() {
  return {
#define UNIT(name, flags) unit_of(#name, flags),
#include "kernels/selective_scan/cuda/units.def"
#undef UNIT
  };
}

std::vector<toolchain::Unit> conv_units() {
  return {
#define UNIT(name, flags) unit_of(#name, flags),
#include "kernels/causal_conv1d/cuda/units.def"
#undef UNIT
  };
}

}  // namespace

const std::vector<BundledModule>& bundled_modules() {
  // The three modules of one kernel share its device source.
  const auto scan_module = [](const std::string& name) {
    return BundledModule{name, carried_file(name + ".abi3.so"), "selective_scan.cu",
                         carried_file("selective_scan.cu"), scan_units()};
  };
  static const std::vector<BundledModule> modules = {
      scan_module("selective_scan_cuda"),
      {"causal_conv1d_cuda", carried_file("causal_conv1d_cuda.abi3.so"), "causal_conv1d.cu",
       carried_file("causal_conv1d.cu"), conv_units()},
      scan_module("selective_scan_cuda_core"),
      scan_module("selective_scan_cuda_oflex")};
  return modules;
}

Result<const BundledModule*> bundled_module(const std::string& name) {
  std::string names;
  for (const BundledModule& module : bundled_modules()) {
    if (name.empty() || module.name == name) return &module;
    names += (names.empty() ? "" : ", ") + module.name;
  }
  return Error{Errc::InvalidArgument, message("--module {}: scankit builds {}", name, names), ""};
}

namespace {

constexpr std::size_t kFileLimit = 512u << 20;

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
Result<std::vector<compile::BuiltCode>> read_images(const std::string& path, std::string_view file,
                                                    const nlohmann::ordered_json& manifest) {
  const auto index = read_image_index(file);
  if (!index) return damaged(path, index.error().message);
  const auto& listed = manifest["images"];
  if (!listed.is_array() || listed.size() != index->size())
    return damaged(path, message("its image index does not match its manifest"));
  std::vector<compile::BuiltCode> images;
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const IndexedImage& indexed = (*index)[i];
    const auto bytes = image_bytes(file, indexed);
    if (!bytes) return damaged(path, bytes.error().message);
    compile::BuiltCode image{json_text(listed[i], "unit"), {}, *bytes, json_text(listed[i], "sha256"), true};
    // Packed as it is, it is not packed again.
    if (indexed.full_size != 0) image.packed = file.substr(indexed.offset, indexed.size);
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
bool whole(const BundledModule& module, const std::vector<compile::BuiltCode>& images,
           const std::vector<Target>& targets) {
  return std::ranges::all_of(targets, [&](const Target& target) {
    return std::ranges::all_of(module.units, [&](const toolchain::Unit& unit) {
      return std::ranges::any_of(images, [&](const compile::BuiltCode& image) {
        return image.unit == unit.name && image.target == target;
      });
    });
  });
}

// In the order of the images, which is ascending: choose_targets() relies on that.
std::vector<Target> targets_of(const std::vector<compile::BuiltCode>& images) {
  std::vector<Target> targets;
  for (const compile::BuiltCode& image : images)
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
  // Where no GPU is served now, code for all of them costs nothing: nothing is compiled.
  if (request.kind == TargetRequest::Kind::None) return !request.none_since.empty() && !held.empty();
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
Result<std::optional<compile::BuiltModule>> from_file(const std::string& path, const BundledModule& module,
                                                      const TargetRequest& request,
                                                      const Probed<std::vector<Gpu>>& gpus) {
  SCANKIT_TRY(const std::string file, read_whole_file(path, kFileLimit));
  const auto text = section_bytes(file, ".scankit.manifest");
  if (!text && text.error().code != Errc::NotFound) return damaged(path, text.error().message);
  if (!text)
    return std::optional<
        compile::BuiltModule>();  // a host module alone: scankit was installed without device code
  auto manifest = parse_json_or_discard<nlohmann::ordered_json>(*text);
  if (!manifest.is_object() || !manifest["inputs"].is_object())
    return damaged(path, message("its manifest is not valid"));
  auto& inputs = manifest["inputs"];
  if (json_text(inputs, "device_source_sha256") != sha256_hex(module.device_source))
    return std::optional<compile::BuiltModule>();
  SCANKIT_TRY(const auto images, read_images(path, file, manifest));
  compile::BuiltModule built;
  built.targets = targets_of(images);
  if (!whole(module, images, built.targets) || !serves(built.targets, request, gpus, built.notes))
    return std::optional<compile::BuiltModule>();
  manifest["module"] = built.module = module.name;
  built.file = fix::module_file(built.module);
  inputs["host_module_sha256"] = sha256_hex(module.host_module);
  built.manifest = dump_json(manifest, 2) + "\n";
  built.compiler = say("bundled, built by {}", compilers_of(manifest));
  SCANKIT_TRY(built.bytes, assemble_module(module.host_module, images, built.manifest));
  for (const compile::BuiltCode& image : images)
    built.images.push_back({image.unit, image.target, "", image.sha256, true});
  built.from_cache = images.size();
  return std::optional<compile::BuiltModule>(std::move(built));
}

}  // namespace

std::string prebuilt_folder() {
  char self[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", self, sizeof self);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof self)) return "";
  const std::string program(self, static_cast<std::size_t>(length));
  return path_normalize(path_dirname(program) + "/../share/scankit/modules");
}

Result<std::optional<compile::BuiltModule>> prebuilt_module(const std::string& folder,
                                                            const BundledModule& module,
                                                            const TargetRequest& request,
                                                            const Probed<std::vector<Gpu>>& gpus) {
  const std::string path = path_join(folder, fix::module_file(first_of_kernel(module).name));
  if (folder.empty() || ::access(path.c_str(), R_OK) != 0) return std::optional<compile::BuiltModule>();
  return from_file(path, module, request, gpus);
}

}  // namespace scankit::module
