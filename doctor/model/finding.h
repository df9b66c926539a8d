// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/model/snapshot.h"

// What a check concludes: a cause of the catalogue, its circumstances, evidence and fixes; and the report of all
// checks. Checks never state a severity: Finding::severity() decides it from cause and circumstances.
namespace scankit {

enum class Severity { Note, Warning, Error };

enum class Circumstance {
#define CIRCUMSTANCE(id, severity) id,
#include "doctor/model/circumstances.def"
#undef CIRCUMSTANCE
};
using Circumstances = std::vector<Circumstance>;

bool has(const Circumstances& circumstances, Circumstance wanted);

// What the circumstances make of any cause, by the table; nullopt where they leave its usual severity.
std::optional<Severity> severity_under(const Circumstances& circumstances);

// The catalogue: append-only slugs, one line each in causes.def.
enum class Cause {
#define CAUSE(id, slug, severity, title, next_step) id,
#include "doctor/model/causes.def"
#undef CAUSE
};
struct CauseInfo {
  Cause cause;
  std::string_view slug;
  Severity severity;
  std::string_view title, next_step;
};
const CauseInfo& info(Cause cause);

// "Is it me?": who has to change something, which a user asks first. "Of", since Driver and
// others are names of facts already.
enum class AtFault { OfEnvironment, OfModule, OfDriver, OfMachine, OfCode, OfBuild, OfInstallation };
AtFault at_fault(Cause cause);

std::optional<Cause> cause_from_slug(std::string_view slug);
const std::vector<CauseInfo>& all_causes();

// `fact` is a JSON pointer into the snapshot, `value` what
// stands there; a property test holds every case to that.
struct Evidence {
  std::string fact, value;
};

// Fixes are values: the renderer writes the command, `builder` can execute the same value, tests compare it.
struct InstallModule {
  std::string module;
};  // scankit fix
struct InstallModelPackage {
  std::string distribution;  // "mamba-ssm"
};                           // scankit fix --package: without its CUDA build, scankit's module below it
struct InstallPackages {
  std::vector<std::string> requirements;
  bool reinstall = false;  // also where the installer's records say that they are there already
};                         // through the user's own installer
struct RebuildPackage {
  std::string distribution, version;
  std::string project;  // an editable install: the folder of its sources, which no index has
  std::vector<std::pair<std::string, std::string>> environment;  // what its set-up script reads
  bool isolated = false;  // its maintainer declares that it is built without the installed torch
};                        // from its sources, against the torch that is installed
struct BuildProject {
  std::string folder, module;
};  // the user's own sources, for their compiled module, against the torch that is installed
struct KeepOnly {
  std::string requirement;          // installed again: what is uninstalled took files of it along
  std::vector<std::string> others;  // distributions
};                                  // of several distributions that write the same files
struct RemoveShadow {
  std::string path, module;
};  // moved into the backup, never deleted
struct SetEnvironment {
  std::string name, value;
};  // value "" means unset
struct ImportTorchFirst {
  std::string module;
};
struct Advice {
  Message text;
};  // nothing a program can do
using Fix = std::variant<InstallModule, InstallModelPackage, InstallPackages, RebuildPackage, BuildProject,
                         KeepOnly, RemoveShadow, SetEnvironment, ImportTorchFirst, Advice>;

struct FileLine {
  std::string file;   // as the user named it
  unsigned line = 0;  // 0: the whole file
};

struct Finding {
  Cause cause{};
  std::string subject;  // file or package
  std::string module;   // the module under diagnosis that it concerns, or "torch"
  Message summary;      // one sentence that holds the numbers
  std::vector<Evidence> evidence;
  std::vector<Fix> fixes;
  std::optional<Cause> because_of;          // a symptom of that cause
  Circumstances circumstances;              // what makes it graver or milder than its cause usually is
  std::optional<FileLine> demanded_by;      // the line of a spec or lock that the environment does not meet
  std::optional<Severity> policy_severity;  // set by apply_policy() (ci/gate/policy_apply.cc) and nobody else
  Severity severity() const;                // decided in finding.cc, from the cause and the two above
};

enum class CheckState { Passed, Found, NotApplicable, Unknown, Crashed };
struct Outcome {
  std::string check;  // kebab-case id
  Message question;
  CheckState state = CheckState::Passed;
  Message why;  // NotApplicable, Unknown, Crashed: the fact that decides it; Passed: a remark, or ""
  bool could_hide_error = false;  // Unknown: makes the verdict unknown
  std::vector<Finding> findings;
  std::vector<Message> not_checked;  // parts of the question that had nothing to look at, one line each
  bool not_asked = false;  // NotApplicable since the user gave nothing of the kind that the check looks at
  bool left_out = false;   // NotApplicable, but not for want of an object: `why` says what was not looked at
};

// Empty: nothing is broken since there was nothing to look at
// (doctor/model/snapshot_variables.h). Never green by itself.
enum class Verdict { Healthy, Broken, Unknown, Empty };
// What was asked: whether anything is broken, or whether the environment is still what a file says.
// Or, by `ci run`, both and more, under a policy.
enum class Asked { Health, Drift, Gate };
// One of the commands that a gate ran; its questions and findings are among the report's.
struct Step {
  std::string name;  // "doctor", "env check", "validate"
  int status = 0;    // of exit_status.h, after the policy
  double seconds = 0;
};
struct Report {
  Asked asked = Asked::Health;
  std::vector<std::pair<std::string, std::string>>
      compared_with;  // Drift: "spec" and "lock", and their files; Gate: "policy"
  Snapshot snapshot;
  std::vector<Outcome> outcomes;
  std::vector<Finding> findings;  // ordered: the root first, symptoms after their cause
  Verdict verdict = Verdict::Unknown;
  std::vector<Step> steps;  // Gate
};

// The cause to act on first; nullptr where there is no error.
const Finding* root(const Report& report);

struct Tally {
  std::size_t errors = 0, warnings = 0, notes = 0;
  std::size_t passed = 0, not_applicable = 0, unknown = 0, crashed = 0;
};
Tally tally(const Report& report);

}  // namespace scankit
