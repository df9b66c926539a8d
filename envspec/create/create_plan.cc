// SPDX-License-Identifier: Apache-2.0
#include "envspec/create/create_plan.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/python/sys_path.h"
#include "envspec/export/export.h"

namespace scankit::envspec {

Error not_installable(const std::string& lock_file, const std::vector<std::string>& lines) {
  return {Errc::InvalidArgument,
          message("{} cannot be installed here, and nothing was made: {}", lock_file, first_lines(lines)),
          message("lock again where the environment is: scankit env lock")};
}

PythonWish wish_of_spec(const Spec& spec) {
  PythonWish wish;
  wish.range = spec.python;
  wish.implementation = spec.implementation;
  return wish;
}

Result<EnvInstaller> installer_of_plan(const Host& host, const Snapshot& base, const std::string& wanted) {
  SCANKIT_TRY(const EnvInstaller found, find_env_installer(host, base, wanted));
  SCANKIT_CHECK(installer::check_not_diverted(host, base.python.value, {.kind = found.kind}));
  return found;
}

namespace {

// conda brings its own Python. Until then no other one stands for it: its wheels would be another's.
Result<void> choose_conda(const Host& host, const CreateRequest& request, CreatePlan& plan) {
  if (!request.python.empty())
    return Error{
        Errc::InvalidArgument, message("--python cannot be combined with conda, which installs its own"),
        message("leave out --python; or make a virtual environment: --installer uv or --installer pip")};
  SCANKIT_TRY(plan.conda, find_conda_program(host));
  SCANKIT_TRY(plan.base.subject, look_at({.needs_python = false}));
  plan.base.subject.snapshot.python = {};
  plan.base.program = plan.conda->program;
  plan.base.found_by = plan.conda->found_by;
  return {};
}

Result<void> choose_base(const Host& host, const CreateRequest& request, PythonWish wish, CreatePlan& plan) {
  if (request.installer == "conda" || (request.installer.empty() && came_from_conda(plan.lock)))
    return choose_conda(host, request, plan);
  wish.asked = request.python;
  SCANKIT_TRY(plan.base, find_base_python(host, wish));
  return {};
}

Result<void> check_conda_offline(const CreateRequest& request, const CreatePlan& plan) {
  if (!plan.conda || request.offline.empty()) return {};
  if (came_from_conda(plan.lock))
    return check_conda_files(plan.lock, path_normalize(path_join(current_directory(), request.offline)));
  return Error{Errc::InvalidArgument,
               message("--offline by conda needs a lock of a conda environment, and {} has no conda packages",
                       request.lock_file),
               message("lock a conda environment, or make a virtual one: --installer uv or --installer pip")};
}

// Builds run next to DIR, in its real directory (Aside): asked before gigabytes are installed there.
Result<void> check_new_build_place(const std::string& folder) {
  SCANKIT_TRY(const std::string target, check_new_folder(folder));
  return check_build_place(target, message("make the environment in another directory"));
}

Result<CreatePlan> plan_of_lock(const Host& host, const CreateRequest& request) {
  CreatePlan plan;
  SCANKIT_TRY(plan.lock, read_lock(request.lock_file));
  SCANKIT_CHECK(check_offline(host, request.offline));
  SCANKIT_CHECK(choose_base(host, request, wish_of(plan.lock), plan));
  if (const auto lines = obstacles(plan.lock, plan.base.subject.snapshot, plan.conda.has_value());
      !lines.empty())
    return not_installable(request.lock_file, lines);
  SCANKIT_CHECK(check_conda_offline(request, plan));
  plan.find_links = wheel_folders(host, request.offline, request.lock_file);
  const bool offline = !request.offline.empty();
  plan.builds = sources_to_build(plan.lock, plan.find_links, offline);
  SCANKIT_TRY(plan.wheels, find_wheels(without_packages(plan.lock, plan.builds), plan.find_links, offline));
  if (!plan.builds.empty()) SCANKIT_CHECK(check_new_build_place(request.folder));
  SCANKIT_TRY(plan.notes, check_toolchain(plan.lock, plan.builds, plan.base.subject.snapshot));
  if (plan.conda) return plan;
  SCANKIT_TRY(plan.installer, installer_of_plan(host, plan.base.subject.snapshot, request.installer));
  return plan;
}

Result<CreatePlan> plan_of_spec(const Host& host, const CreateRequest& request) {
  CreatePlan plan;
  SCANKIT_TRY(plan.spec, read_spec(request.spec_file));
  SCANKIT_CHECK(check_origins(*plan.spec, request.folder));
  if (!resolver_wish(*plan.spec).against_torch.empty()) SCANKIT_CHECK(check_new_build_place(request.folder));
  SCANKIT_CHECK(choose_base(host, request, wish_of_spec(*plan.spec), plan));
  if (!request.offline.empty())
    return Error{Errc::InvalidArgument, message("--offline needs a lock, and a spec has no hashes"),
                 message("make the lock where an index can be reached: scankit env create {} --spec {}",
                         shell_quoted(request.folder), shell_quoted(request.spec_file))};
  if (plan.conda) return plan;
  SCANKIT_TRY(plan.installer, installer_of_plan(host, plan.base.subject.snapshot, request.installer));
  return plan;
}

}  // namespace

Result<CreatePlan> create_plan(const Host& host, const CreateRequest& request) {
  return request.spec_file.empty() ? plan_of_lock(host, request) : plan_of_spec(host, request);
}

}  // namespace scankit::envspec
