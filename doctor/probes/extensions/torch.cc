// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/library.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

Result<elf::Image> image_of(const Host& host, const std::string& path) {
  SCANKIT_TRY(auto source, host.open(path));
  return elf::Image::open(std::shared_ptr<const ByteSource>(std::move(source)));
}

auto image_key(const DeviceImage& image) {
  return std::tie(image.kind, image.sm, image.specific, image.isa, image.compression);
}

// Adds to the row of the same kind, or makes one. How the first cubin of a kind is written stands for all of
// them: one compiler made them.
void add_image(const elf::FileBytes& file, const elf::FatbinEntry& entry, std::vector<DeviceImage>& images) {
  DeviceImage found{entry.kind, entry.sm, entry.specific, "", entry.compression, entry.size};
  if (entry.kind == "ptx")
    found.isa = std::to_string(entry.isa_major) + "." + std::to_string(entry.isa_minor);
  const auto same = std::ranges::find_if(
      images, [&](const DeviceImage& seen) { return image_key(seen) == image_key(found); });
  if (same != images.end()) {
    same->size += found.size;
    return;
  }
  if (entry.kind == "cubin") found.elf_abi = elf::cubin_abi(file, entry);
  images.push_back(std::move(found));
}

}  // namespace

// Nothing to read in a build for the CPU or for ROCm.
Message read_torch_images(const Host& host, Torch& torch) {
  if (torch.cuda.empty()) return "";
  for (const Library& library : torch.libraries) {
    // Some releases of 1.x split the library: libtorch_cuda_cpp.so and libtorch_cuda_cu.so.
    const std::string name = path_basename(library.path);
    if (name != "libtorch_cuda.so" && name != "libtorch_cuda_cu.so" && name != "libtorch_cuda_cpp.so")
      continue;
    const auto image = image_of(host, library.path);
    const auto entries =
        image ? elf::find_device_images(*image) : Result<std::vector<elf::FatbinEntry>>(image.error());
    if (!entries) return message("{}: its device code cannot be read: {}", name, entries.error().message);
    for (const elf::FatbinEntry& entry : *entries) add_image(image->file(), entry, torch.images);
  }
  std::ranges::sort(torch.images, [](const auto& a, const auto& b) {
    return std::tie(a.sm, a.specific, a.kind) < std::tie(b.sm, b.specific, b.kind);
  });
  return "";
}

namespace {

void add_note(Probed<Torch>& probed, const Message& note) { probed.note = clauses_of({probed.note, note}); }

// torch.__version__ comes from version.py; the version of the .dist-info takes its place only where
// version.py has none. Both are kept, since they differ where the files of two releases are mixed.
void read_version(const Host& host, const Distribution* distribution, Probed<Torch>& probed) {
  Torch& torch = probed.value;
  const std::string file = path_join(torch.location, "version.py");
  const auto text = host.read_file(file, 1u << 20);
  if (text) {
    torch.version = version_file_value(*text, "__version__");
    torch.cuda = version_file_value(*text, "cuda");
    torch.hip = version_file_value(*text, "hip");
    torch.git = version_file_value(*text, "git_version");
    torch.debug = version_file_value(*text, "debug") == "True";
  } else {
    add_note(probed, text.error().message);
  }
  if (distribution != nullptr) torch.distribution_version = distribution->version;
  if (!torch.version.empty()) return;
  if (text) add_note(probed, message("{} defines no __version__", file));
  torch.version = torch.distribution_version;
}

// The newest of both headers: the strings "11" to "23" sort as the standards do.
void read_headers(const Host& host, Torch& torch) {
  for (const char* header : {"include/ATen/ATen.h", "include/torch/csrc/api/include/torch/all.h"})
    if (const auto text = host.read_file(path_join(torch.location, header), 1u << 20))
      torch.cxx_standard = std::max(torch.cxx_standard, demanded_cxx_standard(*text));
}

bool is_shared_library(std::string_view name) {
  const auto at = name.rfind(".so");
  return at != std::string_view::npos &&
         name.find_first_not_of(".0123456789", at + 3) == std::string_view::npos;
}

// A library that cannot be read stays in the list without its facts, and the note says why.
void read_libraries(const Host& host, Probed<Torch>& probed) {
  Torch& torch = probed.value;
  const std::string folder = path_join(torch.location, "lib");
  const auto entries = host.list(folder);
  if (!entries) return add_note(probed, entries.error().message);
  for (const DirEntry& entry : *entries) {
    if (entry.kind == FileKind::Directory || !is_shared_library(entry.name)) continue;
    Library library;
    library.path = path_join(folder, entry.name);
    if (auto facts = elf::read_library_facts(host, library.path)) {
      library.soname = std::move(facts->soname);
      library.build_id = std::move(facts->build_id);
      library.needed = std::move(facts->needed);
    } else {
      add_note(probed, message("{}: {}", entry.name, facts.error().message));
    }
    torch.libraries.push_back(std::move(library));
  }
  if (torch.libraries.empty()) add_note(probed, message("{} contains no shared library", folder));
}

void read_string_abi(const Host& host, const Python& python, Probed<Torch>& probed) {
  probed.value.string_abi = "unknown";
  // Distributions that build torch themselves move its libraries: conda-forge, Debian.
  const std::array folders{path_join(probed.value.location, "lib"), path_join(python.prefix, "lib"),
                           std::string("/usr/lib/x86_64-linux-gnu"),
                           std::string("/usr/lib/aarch64-linux-gnu")};
  for (const std::string& folder : folders) {
    const std::string file = path_join(folder, "libc10.so");
    if (!is_regular_file(host, file)) continue;
    Message reason;
    probed.value.string_abi = elf::string_abi_of_torch(host, file, reason);
    if (probed.value.string_abi == "unknown") add_note(probed, reason);
    return;
  }
  add_note(probed, message("no libc10.so in {}", folders[0]));
}

// The wheels with NVIDIA's CUDA libraries: all of their names begin with "nvidia-".
void read_wheels(const Host& host, const std::vector<Distribution>& distributions, Torch& torch) {
  for (const Distribution& distribution : distributions) {
    if (!normalized_name(distribution.name).starts_with("nvidia-")) continue;
    torch.nvidia_wheels.push_back(
        {distribution.name, distribution.version, shared_libraries_of(host, distribution)});
  }
}

Message listed_as(const Distribution& distribution) {
  return message("{} lists torch {}", distribution.path, distribution.version);
}

// import finds something called torch that is not a package.
Probed<Torch> not_a_package(const FoundModule& found, const Distribution* distribution) {
  if (!found.leftover)
    return Probed<Torch>::failed(
        message("import torch imports {}, which is not PyTorch: rename that file, or start Python in "
                "another directory",
                printable(found.path)));
  const Message what =
      message("{} has no __init__.py, as after an incomplete uninstall", printable(found.path));
  if (distribution != nullptr)
    return Probed<Torch>::failed(message("{}, although {}: reinstall torch", what, listed_as(*distribution)));
  return Probed<Torch>::absent(what);
}

}  // namespace

Probed<Torch> probe_torch(const Host& host, const Python& python,
                          const std::vector<Distribution>& distributions) {
  // Goes by the package that import would take, not by the installed distribution: the two may differ.
  const Distribution* distribution = find_distribution(distributions, "torch");
  const auto found = find_python_module(host, python, "torch");
  if (!found && distribution != nullptr)
    return Probed<Torch>::failed(message(
        "{}, but no directory of sys.path contains the package: reinstall torch", listed_as(*distribution)));
  if (!found) {
    const auto unreadable = unreadable_site_folders(host, python);
    if (!unreadable.empty()) return Probed<Torch>::failed(unreadable.front());
    return Probed<Torch>::absent(message("no directory of sys.path contains a torch package"));
  }
  if (!found->package) return not_a_package(*found, distribution);
  Probed<Torch> probed = Probed<Torch>::of({});
  probed.value.location = found->path;
  read_version(host, distribution, probed);
  if (probed.value.version.empty()) {
    // Failed, but `value` keeps what was found: the audit still uses the location.
    probed.state = ProbeState::Failed;
    add_note(probed, message("{} is incomplete: reinstall torch", printable(found->path)));
  }
  read_headers(host, probed.value);
  read_libraries(host, probed);
  read_string_abi(host, python, probed);
  add_note(probed, read_torch_images(host, probed.value));
  read_wheels(host, distributions, probed.value);
  return probed;
}

// torch/version.py is read as text and never run.
std::string version_file_value(std::string_view text, std::string_view name) {
  for (const std::string_view line : lines_of(text)) {
    if (!line.starts_with(name)) continue;
    std::size_t at = line.find_first_not_of(' ', name.size());
    if (at == std::string_view::npos || (line[at] != '=' && line[at] != ':')) continue;
    at = line.find('=', at);
    if (at == std::string_view::npos) continue;
    at = std::min(line.find_first_not_of(' ', at + 1), line.size());
    if (auto literal = python_string_literal(line, at)) return *literal;
    const std::string value(trimmed(line.substr(at)));
    return value == "None" ? "" : value;
  }
  return {};
}

std::string demanded_cxx_standard(std::string_view header) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kStandards{
      {{"201103L", "11"}, {"201402L", "14"}, {"201703L", "17"}, {"202002L", "20"}, {"202302L", "23"}}};
  constexpr std::string_view kTest = "__cplusplus < ";
  std::string newest;
  for (auto at = header.find(kTest); at != std::string_view::npos; at = header.find(kTest, at + 1))
    for (const auto& [value, standard] : kStandards)
      if (header.substr(at + kTest.size()).starts_with(value))
        newest = std::max(newest, std::string(standard));
  return newest;
}

}  // namespace scankit::probes
