// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <set>

#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/gpu_queries.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/probes/target/target.h"
#include "envspec/check/check.h"
#include "envspec/suggest/suggest.h"

namespace scankit::envspec {
namespace {

// Of "sm_90" or "90"; 0 for anything else.
unsigned number_of_gpu(const std::string& name) {
  const auto digits = name.substr(name.find('_') + 1);
  unsigned number = 0;
  const auto end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, number);
  return parsed.ec == std::errc() && parsed.ptr == end ? number : 0;
}

std::string minor_release_of(const std::string& version) {
  const auto parsed = Version::parse(version);
  return parsed && parsed->release.size() >= 2 ? parsed->major_minor() : version;
}

Result<VersionRange> python_range(const std::string& text) {
  // "3.11" means any patch of it.
  const bool minor = text.find_first_not_of("0123456789.") == std::string::npos &&
                     std::ranges::count(text, '.') == 1 && !text.starts_with('.') && !text.ends_with('.');
  auto range = VersionRange::parse(minor ? text + ".*" : text);
  if (range) return range;
  return Error{Errc::InvalidArgument,
               message("--python {}: this is not a version of Python", printable(text)),
               message("write a version or a range, such as 3.11 or \">=3.10,<3.13\"")};
}

class TargetReader {
 public:
  TargetReader(const DescribedTarget& described, const Snapshot& machine, const std::string& where)
      : described_(described), machine_(machine), where_(where) {
    target_.request.origins.assign(4, where);
  }

  Result<SuggestTarget> all() {
    SCANKIT_CHECK(processor());
    SCANKIT_CHECK(gpus());
    note_chips();
    SCANKIT_CHECK(driver());
    SCANKIT_CHECK(glibc());
    SCANKIT_CHECK(python());
    return std::move(target_);
  }

 private:
  SuggestRequest& request() { return target_.request; }
  void fact(const std::string& name, const std::string& value, std::size_t origin) {
    target_.facts.emplace_back(name, say("{} ({})", value, request().origins[origin]));
  }
  void not_known(const Message& note) {
    target_.notes.push_back(note);
    target_.unknown = true;
  }

  Result<void> processor() {
    const std::string& described = described_.machine;
    const std::string found = described.empty() ? processor_of(machine_) : described;
    if (found.empty()) {
      not_known(message("the processor could not be read, and x86_64 is assumed; give it with --machine"));
      return {};
    }
    if (found != "x86_64" && found != "aarch64")
      return Error{
          Errc::Unsupported,
          message("scankit's tables describe builds for x86_64 and aarch64 only, and this is {}", found),
          message("`scankit doctor` examines an environment on any processor")};
    request().machine = found;
    if (found == "x86_64" && described.empty()) return {};
    target_.facts.emplace_back("processor", say("{} ({})", found, described.empty() ? where_ : "--machine"));
    if (found == "aarch64")
      target_.notes.push_back(
          message("for aarch64 the package index has torch with CUDA from 2.11 on; older releases there are "
                  "without CUDA, and what PyTorch's own archive has is not in scankit's tables"));
    return {};
  }

  // A Jetson for which no wheel of torch was built, and one that was described without its processor.
  void note_chips() {
    for (const unsigned gpu : request().gpus) {
      if (!checks::is_tegra(gpu) || any_build_has_code_for(request().machine, gpu)) continue;
      if (any_build_has_code_for("aarch64", gpu))
        target_.notes.push_back(
            message("{} is on a chip with an aarch64 processor: --machine aarch64 suggests for it", sm(gpu)));
      else
        target_.notes.push_back(
            message("{} is the GPU of a Jetson for which the wheels of torch have no code: install the torch "
                    "that NVIDIA publishes for its JetPack, then run scankit fix in that environment",
                    sm(gpu)));
    }
  }

  Result<void> gpus() {
    std::set<unsigned> gpus;
    if (!described_.gpus.empty()) {
      request().origins[0] = "--gpu";
      for (const std::string& name : described_.gpus)
        if (name != "none") gpus.insert(number_of_gpu(name));
      target_.described_gpus = !gpus.empty();
    } else if (machine_.gpus.present()) {
      for (const Gpu& gpu : machine_.gpus.value)
        gpu.sm.empty() ? not_known(message("GPU {}: its compute capability is not known; give it with --gpu",
                                           gpu.name.empty() ? gpu.pci_device : gpu.name))
                       : void(gpus.insert(number_of_gpu(gpu.sm)));
    } else if (machine_.gpus.state == ProbeState::Absent) {
      target_.notes.push_back(
          message("no GPU was found, and the sets are not for a particular one; --gpu sm_90 names one"));
    } else {
      not_known(message("the GPUs could not be read: {}", machine_.gpus.note));
    }
    request().gpus.assign(gpus.begin(), gpus.end());
    std::vector<std::string> names;
    for (const unsigned gpu : gpus) names.push_back(sm(gpu));
    if (!names.empty()) fact("GPU", join(names), 0);
    return {};
  }

  Result<void> driver() {
    if (!described_.driver.empty()) {
      request().origins[1] = "--driver";
      request().driver_text = described_.driver;
    } else if (machine_.driver.present()) {
      request().driver_text = machine_.driver.value.version;
      if (!machine_.os.value.l4t.empty())
        request().driver_cuda = Version::parse(machine_.driver.value.cuda_version);
    } else if (machine_.driver.state == ProbeState::Absent) {
      target_.notes.push_back(message(
          "no NVIDIA driver was found: each set names the oldest one that it needs; --driver names one"));
    } else {
      not_known(message("the driver's version could not be read: {}", machine_.driver.note));
    }
    request().driver = Version::parse(request().driver_text);
    if (request().driver) fact("driver", request().driver_text, 1);
    return {};
  }

  Result<void> glibc() {
    if (!described_.glibc.empty()) {
      if (!Version::parse(described_.glibc))
        return Error{Errc::InvalidArgument,
                     message("--glibc {}: this is not a version of glibc", printable(described_.glibc)),
                     message("write it as `ldd --version` prints it, such as 2.28")};
      request().origins[2] = "--glibc";
      request().glibc = described_.glibc;
    } else if (machine_.libc.present() && machine_.libc.value.kind == "glibc") {
      request().glibc = machine_.libc.value.version;
    } else if (machine_.libc.present()) {
      return Error{Errc::Unsupported,
                   message("torch has no wheels for the C library {}", machine_.libc.value.kind),
                   message("use a system with glibc, such as a Debian container, or name one with --glibc")};
    } else {
      not_known(message("the version of glibc could not be read; give it with --glibc"));
    }
    if (!request().glibc.empty()) fact("glibc", request().glibc, 2);
    return {};
  }

  Result<void> python() {
    std::string text = described_.python;
    if (!text.empty()) {
      request().origins[3] = "--python";
    } else if (machine_.python.present()) {
      text = minor_release_of(machine_.python.value.version);
      if (machine_.python.value.free_threaded)
        target_.notes.push_back(message(
            "the Python of this environment is free-threaded, and the sets are for Python {} with a GIL: "
            "mamba-ssm and causal-conv1d publish no wheels for free-threaded ones. To keep it, install "
            "torch with its own pip, and run scankit fix",
            text));
    } else {
      target_.notes.push_back(message("no Python was found: any will do; --python 3.11 names one"));
      return {};
    }
    SCANKIT_TRY(request().python, python_range(text));
    request().python_text = text;
    fact("Python", text, 3);
    return {};
  }

  const DescribedTarget& described_;
  const Snapshot& machine_;
  std::string where_;
  SuggestTarget target_;
};

void add_range(const std::string& name, const VersionRange& range, SuggestRequest& request) {
  if (range.empty()) return;
  const std::string& text = range.text();
  const bool bare = !text.empty() && is_digit(text.front());
  request.packages.push_back({name, range, name + (bare ? "==" : "") + text});
}

}  // namespace

Result<SuggestTarget> target_of(const DescribedTarget& described, const Snapshot& machine,
                                const std::string& where) {
  return TargetReader(described, machine, where).all();
}

void add_spec(const Spec& spec, SuggestTarget& target) {
  SuggestRequest& request = target.request;
  add_range("torch", spec.torch, request);
  request.cuda = spec.cuda;
  for (const ExtensionSpec& extension : spec.extensions) {
    // Of a module of scankit's, the package that imports it is what the index has.
    const bool own = extension.from == "scankit";
    const std::string& package = own ? extension.package : extension.distribution;
    const VersionRange& range = own ? extension.package_version : extension.version;
    if (!package.empty())
      request.packages.push_back({normalized_name(package), range, requirement(package, range)});
  }
}

// uv needs no Python of that version on the machine; a venv does.
SuggestInstaller installer_for(const Host& host, const Snapshot& machine) {
  const Installers here = installers_of(machine);
  const std::string conda = here.conda;
  if (machine.python.present() && machine.python.value.kind == "conda" && !conda.empty())
    return {SuggestInstaller::Kind::Conda, conda};
  const installer::Installer found = installer::downloader_of(host, machine);
  if (!here.uv.empty()) return {SuggestInstaller::Kind::Uv, "uv"};
  if (found.kind == installer::Installer::Kind::Uv)
    return {SuggestInstaller::Kind::Uv, found.program.front()};
  if (found.kind == installer::Installer::Kind::Pip || conda.empty())
    return {SuggestInstaller::Kind::Pip, ""};
  return {SuggestInstaller::Kind::Conda, conda};
}

}  // namespace scankit::envspec
