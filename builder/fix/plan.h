// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "builder/compile/build.h"
#include "builder/compile/compile.h"
#include "builder/fix/install_target.h"
#include "builder/fix/local_package.h"
#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/declared/own_test.h"
#include "doctor/model/finding.h"

// A plan may have repairs that have nothing to do with each other. Each such part is a transaction of its
// own, so that a package that cannot be made to work does not take a good module back with it.
namespace scankit::fix {

// A module of ours is built, or taken as it came with scankit, and put into the place.
struct InstallBundled {
  std::string module;
  std::string file;  // its name in the place: that of its flavor
  bool operator==(const InstallBundled&) const = default;
};
// A file that hides a good one goes into the backup.
struct MoveAway {
  std::string path, module;
  bool operator==(const MoveAway&) const = default;
};
// Sources that become a wheel before anything is changed. The commands put it into the directory `wheels`.
struct WheelBuild {
  std::string folder, wheels;
  std::vector<installer::InstallerCommand> commands;
  std::string kept = {};  // the wheel, where this run has put it; "" if an earlier one had
};
// Packages are changed by the user's own installer.
struct ChangePackages {
  installer::Installer installer;
  installer::PackageChange change;
  std::vector<installer::InstallerCommand> commands;
  std::vector<std::pair<std::string, std::string>> before;  // name and version, "" where it is not installed
  std::vector<std::string> statements;                      // what must work afterwards
  std::shared_ptr<const TemporaryDirectory> work;           // that the commands name: the tools of a build
  std::string local;                 // the wheel or the directory of sources that the user named, "" for none
  std::string version;               // of that wheel
  std::vector<WheelModule> modules;  // of that wheel
  std::optional<WheelBuild> build;   // of these sources; `commands` are not known before it has ended
  std::optional<declared::ModuleFile> declared;  // its scankit.module.yaml: what must import afterwards
  std::optional<WheelTest> test = {};            // of the wheel: run from where it is installed
};
// A variable of the loader, set in the script that activates the environment.
struct SetVariable {
  std::string name, value;  // "": unset
  std::string file;         // the script; "" where there is none: the user's shell has to be told
};
// One repair, and the finding that it is for.
struct RepairStep {
  std::string why;    // one sentence: what is wrong
  std::string cause;  // the slug of the finding, "" where the user asked
  std::string about;  // the finding's module
  std::variant<InstallBundled, MoveAway, ChangePackages, SetVariable> what;
  std::string needed_by;   // the package for whose sake alone it is made: "mamba-ssm"
  unsigned part = 0;       // the steps of one part are kept or undone together (divide_into_parts())
  bool ask_again = false;  // the doctor must no longer find it: an import that works does not prove it
};

struct FileMove {
  std::string path, owner;  // owner: the distribution whose file it is, or ""
};

// What `scankit fix` would do to an environment, before anything is done.
struct FixPlan {
  enum class Kind {
    NothingToDo,
    NotRepairable,  // the doctor found errors, and none has a repair that scankit can make
    Inconclusive,   // no error seen, no working import either
    Act
  } kind = Kind::NothingToDo;
  std::string why;                      // where nothing is done: one sentence
  std::vector<std::string> unrepaired;  // what is broken and cannot be repaired by scankit, a sentence each
  std::vector<std::string> advice;      // what only the user can do
  std::vector<RepairStep> steps;        // in the order in which they are made, part by part
  InstallTarget place;
};

struct PlanRequest {
  std::vector<std::string> modules;    // that the user named; empty: whatever is broken
  std::vector<std::string> packages;   // that the user wants: "mamba-ssm", "causal-conv1d==1.6.0"
  std::vector<module::Target> wanted;  // named by --arch: a module of ours that lacks one is built again
  InstallTarget place;
  compile::Flavor flavor = compile::Flavor::Universal;
  // What the user named is installed, and nothing else.
  std::optional<LocalWheel> wheel;
  std::optional<LocalSources> sources;
};

// Whether a finding is about one of the modules or about what is below every module. True for every finding
// if no module is named.
bool concerns(const Finding& finding, const std::vector<std::string>& modules);

// Decides what to do. `report` comes from diagnose(). Changes nothing in the environment. An Error concerns
// what the user asked for by name; what cannot be repaired is part of the plan.
Result<FixPlan> plan_fix(const Host& host, const Report& report, const PlanRequest& request);

// The files that import would take before a module of ours in the place, and those next to it. They are in
// the order in which they are moved away: what import takes today is the last one.
std::vector<FileMove> hiding_copies(const Snapshot& snapshot, const InstallBundled& ours,
                                    const InstallTarget& place);

// "export LD_LIBRARY_PATH=/usr/lib"
std::string shell_line(const SetVariable& variable);

// The smoke test that comes with the wheel of the plan; nullptr for none.
const WheelTest* wheel_test_of(const FixPlan& plan);

// The modules that the plan installs.
std::vector<std::string> modules_of(const FixPlan& plan);
std::vector<InstallBundled> ours_of(const FixPlan& plan);
bool runs_installer(const FixPlan& plan);

// Numbers the parts and puts the steps in order: first what is below every module (torch, the loader's path),
// then the modules, then the packages above them. Steps for the same module or package belong together, and
// so do a package and the module that is installed for its sake. Within a part packages come first, since an
// installer may bring or remove files that ours are put next to.
void divide_into_parts(std::vector<RepairStep>& steps);

// Each part as a plan of its own, with the place of the whole. The steps must have been divided.
std::vector<FixPlan> parts_of(const FixPlan& plan);

// Where a module of ours comes from.
struct ModuleSource {
  bool prebuilt = false;  // it came with scankit; else it is built
  std::vector<module::Target> targets;
  std::string compiler;              // "NVRTC 13.0 (torch's wheels)"
  std::vector<std::string> fetches;  // commands that bring the compiler
  std::vector<std::string> notes;    // of the choice
};

// What the output needs in addition to the plan.
struct PlanView {
  const FixPlan* plan = nullptr;
  const Snapshot* snapshot = nullptr;
  std::map<std::string, ModuleSource> sources;  // by module
  std::vector<module::Target> targets;          // of the modules that are built
  std::string compiler;                         // "NVRTC 13.0 (torch's wheels)"
  std::vector<std::string> notes;               // of the choice
  std::vector<std::string> unproven;            // what cannot be proven on this machine
  std::string proof;                            // the command that proves it there
  std::string project;                          // the uv project that is told of it, or ""
  std::string restore;                          // the command that takes it back
  std::string python;
  std::string test = {};  // the file that is run before and after, "" for none
};

std::string plan_text(const PlanView& view);

// The answer of `scankit fix --json`. `state`: "planned", "repaired", "partly_repaired", "nothing_to_do",
// "not_repairable", "inconclusive", "declined", "failed" (nothing was changed).
//
// The test of the user's, or of the package's maintainer, and how it ended before the change and after it.
struct TestRecord {
  std::string file;                        // of one that is not installed yet: below site-packages
  std::optional<WheelTest> of_wheel = {};  // it is that
  declared::TestRun before = {};
  std::optional<declared::TestRun> after = {};  // not run where the change failed before it
};
// What was kept although this machine could not run a statement that would prove it.
struct Untested {
  std::string statement;
  Message why;
};
struct FixOutcome {
  std::string state, message;
  std::vector<std::string> notes;
  std::vector<bool> kept;                 // by part; empty where nothing was tried
  std::vector<std::string> still_broken;  // what the doctor finds afterwards
  std::optional<TestRecord> test = {};
  std::vector<std::pair<unsigned, Untested>> untested = {};  // by part
};
std::string plan_json(const PlanView& view, const FixOutcome& outcome);

// The steps of a plan: packages.cc turns a change of packages into commands of the user's installer,
// plan_steps.cc turns a finding or a wish into a step. plan.cc decides which ones are made.

// A package whose CUDA part is a module of ours. Its Python part is installed without a CUDA build.
// `statement` must work afterwards.
struct ModelPackage {
  std::string_view distribution, module, statement;
  std::string_view skip, force, keep;  // what their setup.py reads
};
// By the requirement's name; null for any other package.
const ModelPackage* model_package(const std::string& requirement);

// The change as commands of the user's own installer. Errc::Unsupported if nothing can change the
// environment; the hint says what the user can do instead.
Result<ChangePackages> change_packages(const Host& host, const Snapshot& snapshot,
                                       installer::PackageChange change);
// The same for the fixes of a finding. `damaged`: the installed file is not the one that its distribution
// brought, so that the same wheel repairs it.
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const InstallPackages& fix);
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const RebuildPackage& fix,
                                  bool damaged);
// A wheel of the user's, and sources that are to become one.
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const LocalWheel& wheel);
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const LocalSources& sources);

// "?" if the distribution is installed and its version is not known.
std::string installed_version(const Snapshot& snapshot, const std::string& name);  // "" where it is not
// The setuptools with which extensions are built against the installed torch: "setuptools", or "setuptools<70", since
// cpp_extension of torch before 2.3 takes `packaging` from pkg_resources, which setuptools 70 dropped.
std::string setuptools_for_torch(const Snapshot& snapshot);
// Whether a build finds no such setuptools in the environment.
bool lacks_setuptools_for_torch(const Snapshot& snapshot);

// What a plan is made from.
struct PlanInput {
  const Host& host;
  const Report& report;
  const PlanRequest& request;
};

// The file name of a module of that flavor. The torch flavor has the first suffix of this Python, which names
// its own ABI and no other.
std::string module_file_of(const Snapshot& snapshot, const std::string& module, compile::Flavor flavor);
// A module of ours under its file name of the requested flavor.
InstallBundled bundled(const PlanInput& input, const std::string& module);
// Whether import takes this module of ours. The distribution's record decides, since another build may have
// the same file name.
bool is_taken(const Snapshot& snapshot, const InstallBundled& wanted);

// Takes the first fix that scankit can make. If it can make none, the fixes become advice.
void repair_finding(const PlanInput& input, const Finding& finding, FixPlan& plan);
// What --package named. The Error says which one cannot be installed, and why.
Result<void> add_wanted_packages(const PlanInput& input, FixPlan& plan);
// What --wheel or --from-source named.
Result<void> add_local_package(const PlanInput& input, FixPlan& plan);

}  // namespace scankit::fix
