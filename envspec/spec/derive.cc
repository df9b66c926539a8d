// SPDX-License-Identifier: Apache-2.0
#include "envspec/spec/derive.h"

#include <algorithm>

#include "builder/fix/distribution.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/probes/target/target.h"
#include "envspec/spec/fields.h"
#include "envspec/spec/spec.h"

// What `env init` writes: a spec derived from the facts of an environment. Each method of Deriver
// fills one group of fields; a fact that is missing leaves its field empty and puts the reason
// into the notes.
namespace scankit::envspec {

// The driver is the oldest one that the spec takes: code that this driver can load also loads on newer
// ones. Without a lower bound in the spec, the driver stays unknown.
Result<Snapshot> machine_of_spec(const std::string& text, const std::string& name) {
  SCANKIT_TRY(const Spec spec, parse_spec(text, name));
  if (spec.gpus.empty())
    return Error{Errc::NotFound, message("{} lists no GPU", name),
                 message("add the GPUs that it is for, such as gpus: [sm_90], or give them with --arch")};
  Snapshot machine;
  probes::TargetDescription described;
  described.gpus = spec.gpus;
  const std::string driver = spec.driver.least();
  if (probes::driver_version_problem(driver).empty()) described.driver = driver;
  probes::describe_target(described, machine);
  if (described.driver.empty()) machine.driver.note = message("the spec sets no minimum driver");
  return machine;
}

std::string driver_text(const Version& version) {
  std::string text;
  for (std::size_t i = 0; i < version.release.size(); ++i) {
    const std::string part = std::to_string(version.release[i]);
    text += (i == 0 ? "" : ".") + (i == 2 && part.size() == 1 ? "0" + part : part);
  }
  return text;
}

namespace {

// A range that the writer's own parser accepts; empty for a version that it does not.
VersionRange range(const std::string& text) { return VersionRange::parse(text).value_or(VersionRange()); }

// "3.11.*" of "3.11.7": patches and builds of one minor do. A pre-release is like no other: exactly that one.
VersionRange same_minor(const std::string& version) {
  const auto parsed = Version::parse(version);
  if (!parsed) return {};
  return range(parsed->is_prerelease() || parsed->release.size() < 2 ? version
                                                                     : parsed->major_minor() + ".*");
}

class Deriver {
 public:
  explicit Deriver(const EnvironmentFacts& facts) : facts_(facts) {}

  DerivedSpec take() {
    driver();
    gpus();
    interpreter();
    torch();
    compiler();
    for (const ExtensionFacts& file : facts_.extensions.value) extension(file);
    if (facts_.extensions.state != ProbeState::Present) note("extensions", facts_.extensions.note);
    return std::move(out_);
  }

 private:
  void note(const std::string& path, const Message& text) { out_.notes[path] = english(text); }

  // Any driver that can start torch's CUDA will do, not only the one that is installed. Where torch's
  // CUDA is not known, the installed driver becomes the lower bound.
  void driver() {
    const auto cuda = Version::parse(facts_.cuda.value);
    const auto least = cuda ? knowledge::minimum_driver(*cuda) : std::nullopt;
    const Message here =
        facts_.driver.present() ? message("{} was found", facts_.driver.value) : facts_.driver.note;
    if (least) {
      out_.spec.driver = range(">=" + driver_text(*least));
      note("driver", message("the oldest for CUDA {} ({})", facts_.cuda.value, here));
    } else if (facts_.driver.present()) {
      out_.spec.driver = range(">=" + facts_.driver.value);
      note("driver", message("the one found"));
    }
  }

  void gpus() {
    if (facts_.gpus.present())
      out_.spec.gpus = facts_.gpus.value;
    else
      note("gpus", message("{}, so give them yourself", facts_.gpus.note));
  }

  // An implementation that the schema does not list is left out, so that the written
  // file always parses.
  void interpreter() {
    out_.spec.python = same_minor(facts_.python.value);
    if (facts_.python.present()) note("python.version", message("{} was found", facts_.python.value));
    const auto& known = spec_fields();
    const auto field =
        std::ranges::find(known, std::string_view("python.implementation"), &Field<Spec>::path);
    if (std::ranges::find(field->words, facts_.implementation.value) != field->words.end())
      out_.spec.implementation = facts_.implementation.value;
  }

  void torch() {
    if (!facts_.torch.present()) return note("torch.version", facts_.torch.note);
    out_.spec.torch = same_minor(facts_.torch.value);
    note("torch.version", message("{} was found", facts_.torch.value));
    out_.spec.cuda = same_minor(facts_.cuda.value);
    if (!facts_.cuda.present()) note("torch.cuda", facts_.cuda.note);
    out_.spec.string_abi = facts_.string_abi.value;
    if (!facts_.string_abi.present()) note("torch.string_abi", facts_.string_abi.note);
  }

  // The spec demands the kind and the major version of the first compiler in the snapshot.
  void compiler() {
    const auto& all = facts_.compilers.value;
    if (all.empty()) return note("host_compiler.kind", message("no compiler was found"));
    const auto parsed = Version::parse(all.front().version);
    out_.spec.compiler = all.front().kind;
    if (parsed) out_.spec.compiler_version = range(std::to_string(parsed->part(0)) + ".*");
    note("host_compiler.version", message("{} was found", all.front().version));
  }

  // An extension whose file is damaged is still demanded by name, without the fields that only an ELF
  // file tells. Names that the parser would refuse are dropped: they come from the file system and
  // can contain anything.
  void extension(const ExtensionFacts& file) {
    if (!is_module_name(file.module)) return;
    ExtensionSpec made;
    made.module = file.module;
    const std::string path = "extensions." + file.module;
    if (file.file_state != "elf") {
      note(path, message("its file is not a complete library ({}): nothing more is known about it",
                         file.file_state));
      out_.spec.extensions.push_back(std::move(made));
      return;
    }
    if (is_distribution_name(file.distribution)) made.distribution = file.distribution;
    made.version = range(file.version);
    // No index has it, and a package of that name there would be somebody else's.
    if (checks::is_bundled_module(file.module) &&
        normalized_name(file.distribution) == normalized_name(fix::distribution_stem(file.module)))
      made.from = "scankit";
    made.torch_abi = file.torch_abi;
    built_for(file, made, path);
    if (file.torch_abi != "none") made.string_abi = file.string_abi;
    if (!file.cuda_major.empty()) made.cuda = range(file.cuda_major + ".*");
    if (is_distribution_name(file.python_tag)) made.python_tag = file.python_tag;
    made.code = file.code;
    if (file.code.empty()) note(path, message("it contains no device code"));
    out_.spec.extensions.push_back(std::move(made));
  }

  // Only an extension that uses torch's C++ names is tied to releases of torch. The range has two ends
  // because the names of an extension often occur in several releases.
  void built_for(const ExtensionFacts& file, ExtensionSpec& made, const std::string& path) {
    if (file.torch_abi != "full") return;
    std::string text = file.torch_min.empty() ? "" : ">=" + file.torch_min;
    if (!file.torch_max.empty()) text += (text.empty() ? "<=" : ",<=") + file.torch_max;
    if (!file.torch_min.empty() && file.torch_min == file.torch_max) text = file.torch_min + ".*";
    if (text.empty())
      note(path + ".torch", message("its symbols do not show it"));
    else
      made.torch = range(text);
  }

  const EnvironmentFacts& facts_;
  DerivedSpec out_;
};

}  // namespace

DerivedSpec derive_spec(const EnvironmentFacts& facts) { return Deriver(facts).take(); }

}  // namespace scankit::envspec
