// SPDX-License-Identifier: Apache-2.0
#include "envspec/suggest/tables.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

#include "doctor/checks/gpu_queries.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/matrix/places.h"

// Made by scankit_embed (CMakeLists.txt).
extern "C" const char scankit_suggest_torch_builds[], scankit_suggest_torch_builds_end[];
extern "C" const char scankit_suggest_packages[], scankit_suggest_packages_end[];

namespace scankit::envspec {
namespace {

std::string text(const YAML::Node& row, const char* key) {
  return row[key] ? row[key].as<std::string>() : std::string();
}

template <class Value>
std::vector<Value> list(const YAML::Node& row, const char* key) {
  return row[key] ? row[key].as<std::vector<Value>>() : std::vector<Value>();
}

// `glibc` of the release, which a build in another image overrides.
TorchBuild read_build(const YAML::Node& row, const std::string& glibc) {
  TorchBuild build;
  build.machine = row["machine"] ? text(row, "machine") : "x86_64";
  build.cuda_text = text(row, "cuda");
  build.cuda = Version::parse(build.cuda_text).value_or(Version{});
  build.on_index = row["index"] && row["index"].as<bool>();
  build.glibc = row["glibc"] ? text(row, "glibc") : glibc;
  build.archs = list<unsigned>(row, "archs");
  if (row["ptx"]) build.ptx = row["ptx"].as<unsigned>();
  build.packing = text(row, "packing");
  build.source = text(row, "source");
  return build;
}

std::vector<TorchRelease> read_torch_releases() {
  std::vector<TorchRelease> releases;
  const std::string yaml(scankit_suggest_torch_builds, scankit_suggest_torch_builds_end);
  for (const auto& row : YAML::Load(yaml)["releases"]) {
    TorchRelease release{
        text(row, "torch"), text(row, "version"), text(row, "triton"), text(row, "numpy"), {}};
    for (const auto& build : row["builds"]) release.builds.push_back(read_build(build, text(row, "glibc")));
    releases.push_back(std::move(release));
  }
  return releases;
}

Partner read_partner(const std::string& text) {
  const auto begin = text.find_first_of("<>=!~");
  return {text.substr(0, begin), VersionRange::parse(text.substr(begin)).value_or(VersionRange()), text};
}

PackageRelease read_package_release(const YAML::Node& row) {
  PackageRelease release;
  release.version = text(row, "version");
  release.after_the_table = release.version.starts_with('>');
  release.old = row["old"] && row["old"].as<bool>();
  release.python = text(row, "python");
  release.triton = text(row, "triton");
  release.keep_build = text(row, "keep_build");
  release.pins = list<std::string>(row, "pins");
  release.required = list<std::string>(row, "requires");
  for (const auto& pin : row["pin_wheels"])
    release.pin_wheels.push_back({text(pin, "machine"), text(pin, "pin"), text(pin, "glibc")});
  for (const std::string& partner : list<std::string>(row, "with"))
    release.partners.push_back(read_partner(partner));
  release.built_for = list<unsigned>(row, "built_for");
  release.built_before_13 = list<unsigned>(row, "built_before_13");
  for (const auto& wheel : row["wheels"])
    release.wheels.push_back({wheel["cuda"].as<unsigned>(), list<std::string>(wheel, "torch"),
                              list<std::string>(wheel, "python"), list<unsigned>(wheel, "archs"),
                              text(wheel, "glibc")});
  return release;
}

std::vector<PackageRow> read_packages() {
  std::vector<PackageRow> packages;
  const std::string yaml(scankit_suggest_packages, scankit_suggest_packages_end);
  for (const auto& row : YAML::Load(yaml)["packages"]) {
    PackageRow package{text(row, "name"),
                       text(row, "module"),
                       text(row, "skip_build"),
                       text(row, "force_build"),
                       list<std::string>(row, "imports"),
                       {}};
    for (const auto& release : row["releases"]) package.releases.push_back(read_package_release(release));
    packages.push_back(std::move(package));
  }
  return packages;
}

}  // namespace

std::string TorchBuild::backend() const {
  std::string digits = cuda_text;
  std::erase(digits, '.');
  return "cu" + digits;
}

const std::vector<TorchRelease>& torch_releases() {
  static const std::vector<TorchRelease> releases = read_torch_releases();
  return releases;
}

const PackageRow* package_row(std::string_view name) {
  static const std::vector<PackageRow> rows = read_packages();
  const auto row = std::ranges::find(rows, name, &PackageRow::name);
  return row == rows.end() ? nullptr : &*row;
}

bool has_code_for(const Archs& archs, unsigned gpu) {
  return std::ranges::any_of(archs, [&](unsigned arch) {
    DeviceImage image;
    image.kind = "cubin";
    image.sm = arch;
    return checks::runs_on(image, gpu);
  });
}

bool any_build_has_code_for(const std::string& machine, unsigned gpu) {
  return std::ranges::any_of(torch_releases(), [&](const TorchRelease& release) {
    return std::ranges::any_of(release.builds, [&](const TorchBuild& build) {
      return build.machine == machine && has_code_for(build.archs, gpu);
    });
  });
}

bool has_ptx_for(const std::optional<unsigned>& ptx, unsigned gpu) { return ptx && *ptx <= gpu; }

bool is_known_gpu(unsigned gpu) {
  // Any release answers for a GPU that is in the table, if only that it does not know it.
  return knowledge::nvcc_knows_arch("12.9", std::to_string(gpu)).has_value();
}

const std::vector<std::string>& known_target_pythons() {
  static const std::vector<std::string> pythons = [] {
    std::vector<std::string> known;
    constexpr unsigned kOldest = 8, kNewest = 99;
    for (unsigned minor = kOldest; minor <= kNewest; ++minor) {
      const std::string python = "3." + std::to_string(minor);
      const auto has_wheels = [&](const TorchRelease& release) {
        return matrix::torch_has_wheels_for(release.minor, python);
      };
      if (std::ranges::any_of(torch_releases(), has_wheels)) known.push_back(python);
    }
    return known;
  }();
  return pythons;
}

}  // namespace scankit::envspec
