// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ci/gate/gate.h"
#include "doctor/base/files.h"
#include "doctor/elf/library_test.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit::gate {
namespace {
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// An empty working directory for the duration of a test: specs and locks are looked for there.
class Plan : public testing::Test {
 protected:
  Plan() : before_(fs::current_path()) { fs::current_path(shop_.path("")); }
  ~Plan() override { fs::current_path(before_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  static const PolicyStep& step(const std::string& name) {
    return *std::ranges::find(policy_steps(), name, &PolicyStep::name);
  }
  std::string reason(const std::string& name, const Snapshot* seen = nullptr) const {
    return english(nothing_to_do(step(name), policy_, options_, seen));
  }
  Words argv(const std::string& name) const {
    return step_command(step(name), policy_, options_, "/scankit").argv;
  }
  std::string key(const std::string& name) const {
    return step_key(step_command(step(name), policy_, options_, "/scankit"), policy_, "", "", "");
  }

  const test::Workshop shop_;
  Policy policy_;
  GateOptions options_;

 private:
  const fs::path before_;
};

// A machine with both of these modules, of which only the first is installed.
Snapshot machine() {
  Snapshot seen;
  seen.python = Probed<Python>::of({});
  seen.torch = Probed<Torch>::of({});
  seen.modules = {"selective_scan_cuda", "causal_conv1d_cuda"};
  Extension file;
  file.module = "selective_scan_cuda";
  file.selected = true;
  Extension passed_over;
  passed_over.module = "causal_conv1d_cuda";
  seen.extensions = Probed<std::vector<Extension>>::of({file, passed_over});
  return seen;
}

TEST_F(Plan, GivesEachStepTheOptionsThatItHas) {
  EXPECT_EQ(argv("doctor"), (Words{"/scankit", "--lang", "en", "doctor"}));
  EXPECT_EQ(argv("env_check"), (Words{"/scankit", "--lang", "en", "env", "check", "--json"}));
  EXPECT_EQ(argv("validate"), (Words{"/scankit", "--lang", "en", "validate", "--json"}));
  policy_.required = {"torch"};
  options_.required = {"m"};
  options_.no_import = options_.import_foreign = true;
  options_.python = "/p";
  EXPECT_EQ(argv("doctor"), (Words{"/scankit", "--lang", "en", "doctor", "--python", "/p", "--no-import",
                                   "--import", "--require=torch", "--require=m"}));
  EXPECT_EQ(argv("env_check"),
            (Words{"/scankit", "--lang", "en", "env", "check", "--python", "/p", "--json"}));
  EXPECT_EQ(argv("validate"),
            (Words{"/scankit", "--lang", "en", "validate", "--python", "/p", "--import", "--json"}));
}

// A command for each environment; --python, which is of the others, does not change which one it is.
TEST_F(Plan, ComparesEachRecordByItself) {
  const auto commands = [&] { return step_commands(step("record"), policy_, options_, "/scankit"); };
  EXPECT_TRUE(commands().empty());
  options_.python = "/p";
  policy_.records = {{".venv", ""}, {"/opt/train", "train.lock"}};
  policy_.record.timeout_s = 7;
  ASSERT_EQ(commands().size(), 2U);
  const StepCommand one = commands()[0], other = commands()[1];
  EXPECT_EQ(one.argv, (Words{"/scankit", "--lang", "en", "env", "check", "--record", ".venv", "--json"}));
  EXPECT_EQ(other.argv, (Words{"/scankit", "--lang", "en", "env", "check", "--record", "/opt/train", "--json",
                               "--lock", "train.lock"}));
  EXPECT_EQ(one.name, "env check --record .venv");
  EXPECT_EQ(one.stem, "record");
  EXPECT_EQ(other.stem, "record-2");
  EXPECT_EQ(one.timeout, std::chrono::seconds(7));
  EXPECT_EQ(step_commands(step("doctor"), policy_, options_, "/scankit").size(), 1U);
}

// With each of these, doctor imports nothing of this machine: an option about imports would be refused.
TEST_F(Plan, AllowsNoImportWhereDoctorOnlyReads) {
  options_.import_foreign = true;
  for (const char* word :
       {"--root", "--root=/r", "--so", "--so=m.so", "--from", "--from=s.json", "--no-import"}) {
    policy_.doctor.args = {word};
    EXPECT_EQ(argv("doctor"), (Words{"/scankit", "--lang", "en", "doctor", word}));
  }
  policy_.doctor.args = {"--all"};
  EXPECT_EQ(argv("doctor"), (Words{"/scankit", "--lang", "en", "doctor", "--import", "--all"}));
}

// A stored snapshot is of another machine, and --no-import may be given once.
TEST_F(Plan, AddsNoOptionThatThePolicyMakesWrong) {
  options_.no_import = true;
  options_.python = "/p";
  policy_.doctor.args = {"--from=s.json"};
  EXPECT_EQ(argv("doctor"), (Words{"/scankit", "--lang", "en", "doctor", "--from=s.json"}));
  policy_.doctor.args = {"--no-import"};
  EXPECT_EQ(argv("doctor"), (Words{"/scankit", "--lang", "en", "doctor", "--python", "/p", "--no-import"}));
}

TEST_F(Plan, NamesTheAnswerAndLimitsTheTime) {
  const StepCommand doctor = step_command(step("doctor"), policy_, options_, "/scankit");
  EXPECT_EQ(doctor.answer_option, "--snapshot");
  EXPECT_EQ(doctor.timeout, std::chrono::seconds(300));
  policy_.env_check.timeout_s = 1;
  const StepCommand check = step_command(step("env_check"), policy_, options_, "/scankit");
  EXPECT_EQ(check.answer_option, "");
  EXPECT_EQ(check.name, "env check");
  EXPECT_EQ(check.stem, "env-check");
  EXPECT_EQ(check.timeout, std::chrono::seconds(1));
}

TEST_F(Plan, RunsWhatThePolicyDemandsAndNotWhatItDisables) {
  options_.no_import = true;
  EXPECT_EQ(reason("doctor"), "");
  EXPECT_EQ(reason("env_check"), "neither scankit.yaml nor scankit.lock found (scankit env init writes one)");
  EXPECT_EQ(reason("validate"), "--no-import");
  policy_.doctor.enabled = policy_.env_check.enabled = policy_.validate.enabled = true;
  for (const char* name : {"doctor", "env_check", "validate"}) EXPECT_EQ(reason(name), "") << name;
  policy_.doctor.enabled = policy_.env_check.enabled = policy_.validate.enabled = false;
  for (const char* name : {"doctor", "env_check", "validate"})
    EXPECT_EQ(reason(name), "disabled by the policy") << name;
}

TEST_F(Plan, RunsADisabledDoctorForWhatIsRequired) {
  policy_.doctor.enabled = policy_.validate.enabled = false;
  policy_.required = {"torch"};
  EXPECT_EQ(reason("doctor"), "");
  EXPECT_EQ(reason("validate"), "disabled by the policy");
  policy_.required = {};
  options_.required = {"torch"};
  EXPECT_EQ(reason("doctor"), "");
}

TEST_F(Plan, ChecksAnEnvironmentWithASpecOrALock) {
  for (const char* word : {"--spec=s", "--spec", "--lock=l", "--lock"}) {
    policy_.env_check.args = {word};
    EXPECT_EQ(reason("env_check"), "") << word;
  }
  policy_.env_check.args = {"--cache-dir=c"};
  EXPECT_NE(reason("env_check"), "");
  for (const char* file : {"scankit.yaml", "scankit.lock"}) {
    shop_.write(file, "");
    EXPECT_EQ(reason("env_check"), "") << file;
    fs::remove(file);
  }
}

TEST_F(Plan, SkipsEveryStepOfAnEnvironmentWithoutAPython) {
  Snapshot seen = machine();
  seen.broken_environment = {"VIRTUAL_ENV", "/venv", "its Python is gone", "", ""};
  shop_.write("scankit.lock", "");
  EXPECT_EQ(reason("env_check", &seen), "the active environment's Python cannot be used");
  EXPECT_EQ(reason("validate", &seen), "the active environment's Python cannot be used");
  EXPECT_EQ(reason("env_check"), "");  // doctor was left out: nobody knows
  // They look at another one.
  for (const char* word : {"--from=s.json", "--root=/r"}) {
    policy_.env_check.args = {word};
    EXPECT_EQ(reason("env_check", &seen), "") << word;
  }
  const Snapshot whole = machine();
  EXPECT_EQ(reason("env_check", &whole), "");
}

TEST_F(Plan, ValidatesWhatIsInstalled) {
  Snapshot seen = machine();
  EXPECT_EQ(reason("validate"), "");
  EXPECT_EQ(reason("validate", &seen), "");
  seen.torch = Probed<Torch>::failed("unreadable");  // not known to be missing
  EXPECT_EQ(reason("validate", &seen), "");
  seen.torch = Probed<Torch>::absent("");
  EXPECT_EQ(reason("validate", &seen), "torch is not installed");
  seen.python = Probed<Python>::failed("");
  EXPECT_EQ(reason("validate", &seen), "no Python to validate with");
  seen.python = Probed<Python>::absent("");
  EXPECT_EQ(reason("validate", &seen), "no Python to validate with");
}

TEST_F(Plan, ValidatesTheModuleThatThePolicyNames) {
  Snapshot seen = machine();
  const std::string missing = "causal_conv1d_cuda is not installed";
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--module", "causal_conv1d_cuda"}, missing},
      {{"--quick", "--module=causal_conv1d_cuda"}, missing},
      {{"--module=selective_scan_cuda", "--case", "causal_conv1d_cuda"}, ""},
      {{"--modules=causal_conv1d_cuda"}, ""},
      {{"--module"}, ""},                      // validate itself says that the value is missing
      {{"--module", "never_looked_for"}, ""},  // it may be there
      {{"--module", "./causal_conv1d_cuda"}, ""}};
  for (const auto& [args, wanted] : cases) {
    policy_.validate.args = args;
    EXPECT_EQ(reason("validate", &seen), wanted) << testing::PrintToString(args);
  }
  seen.modules.emplace_back("./causal_conv1d_cuda");  // a file: --module names it as doctor does not
  policy_.validate.args = {"--module", "./causal_conv1d_cuda"};
  EXPECT_EQ(reason("validate", &seen), "");
  seen.extensions = Probed<std::vector<Extension>>::failed("unreadable");
  policy_.validate.args = cases[0].first;
  EXPECT_EQ(reason("validate", &seen), "");
}

TEST_F(Plan, LeavesAnImportThatFailsToTheDoctor) {
  Snapshot seen = machine();
  const auto observed = [&](const char* module, const char* variant, const char* outcome) {
    Observation one;
    one.module = module, one.variant = variant, one.outcome = outcome;
    seen.observations = Probed<std::vector<Observation>>::of({one});
    return reason("validate", &seen);
  };
  for (const char* outcome : {"error", "crashed", "timeout"}) {
    EXPECT_EQ(observed("selective_scan_cuda", "torch-first", outcome), "selective_scan_cuda does not import");
    // Without torch before it most modules do not import; validate imports torch first.
    EXPECT_EQ(observed("selective_scan_cuda", "bare", outcome), "");
    EXPECT_EQ(observed("causal_conv1d_cuda", "torch-first", outcome), "");
  }
  EXPECT_EQ(observed("selective_scan_cuda", "torch-first", "ok"), "");
  EXPECT_EQ(observed("selective_scan_cuda", "torch-first", "not-run"), "");
}

TEST_F(Plan, ValidatesAnotherUsersModuleOnlyWhereItIsAllowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root runs another user's code as somebody else";
  Snapshot seen = machine();
  Extension& file = seen.extensions.value[0];
  file.path = shop_.write("m.so", "");
  EXPECT_EQ(reason("validate", &seen), "");
  ASSERT_EQ(::chown(file.path.c_str(), 12345, 12345), 0);
  EXPECT_EQ(reason("validate", &seen).find(file.path + " belongs to user 12345, and scankit runs as root"),
            0U)
      << reason("validate", &seen);
  options_.import_foreign = true;
  EXPECT_EQ(reason("validate", &seen), "");
}

TEST_F(Plan, ResumesOnlyWithTheSameFiles) {
  policy_.validate.args = {"--baseline=old.json"};
  for (const char* file : {"scankit.yaml", "scankit.lock"}) {
    const std::string check = key("env_check"), validate = key("validate");
    shop_.write(file, "1");
    EXPECT_NE(key("env_check"), check) << file;
    EXPECT_EQ(key("validate"), validate) << file;
  }
  const std::string without = key("validate");
  fs::create_directory("old.json");
  EXPECT_EQ(key("validate"), without);  // only regular files are read
  fs::remove("old.json");
  shop_.write("old.json", "1");
  const std::string first = key("validate");
  EXPECT_NE(first, without);
  shop_.write("old.json", "2");
  EXPECT_NE(key("validate"), first);
}

TEST_F(Plan, KnowsAnEnvironmentByItsCompiledFiles) {
  const char* python = "/usr/bin/python3";
  if (!fs::exists(python)) GTEST_SKIP() << "no " << python;
  const std::string version = fs::canonical(python).filename();  // "python3.11"
  shop_.write("venv/pyvenv.cfg", "home = /usr/bin\n");
  fs::create_directories("venv/bin");
  fs::create_symlink(python, "venv/bin/python");
  const std::string site = "venv/lib/" + version + "/site-packages/";
  const std::string module = shop_.write(site + "m.abi3.so", "not a library");
  const std::string used = shop_.path("venv/bin/python");
  const std::string first = environment_identity(used, {"m"});
  ASSERT_EQ(first.size(), 64U) << first;
  EXPECT_EQ(environment_identity(used, {"m"}), first);
  // Built again in place, with the same facts.
  fs::last_write_time(module, fs::last_write_time(module) - std::chrono::hours(1));
  EXPECT_NE(environment_identity(used, {"m"}), first);
  // Where no module is named, every extension counts that links CUDA.
  const std::string cuda = shop_.shared("libcudart.so.12", "", {"-Wl,-soname,libcudart.so.12"});
  const std::string without = environment_identity(used, {});
  shop_.shared(site + "linked.abi3.so", "", {"-Wl,--no-as-needed", cuda});
  EXPECT_NE(environment_identity(used, {}), without);
  const std::string gone = environment_identity(shop_.path("gone"), {});
  EXPECT_NE(gone.find(shop_.path("gone")), std::string::npos) << gone;
}

}  // namespace
}  // namespace scankit::gate
