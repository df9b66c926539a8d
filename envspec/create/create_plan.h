// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "envspec/create/conda.h"
#include "envspec/create/create.h"

// The plan of `scankit env create`: what is known to be impossible is refused here, before anything is made.
namespace scankit::envspec {

// What is known before anything is made.
struct CreatePlan {
  EnvironmentLock lock;  // of a spec: empty until the packages are installed
  std::optional<Spec> spec;
  BasePython base;                    // by conda: once it is installed; until then the facts of the machine
  std::optional<CondaProgram> conda;  // makes the environment; nothing else chooses the Python then
  EnvInstaller installer;
  FoundWheels wheels;
  std::vector<SourceBuild> builds;
  std::vector<std::string> find_links;
  std::vector<Message> notes;  // what could not be checked
};

// Errc::InvalidArgument for what cannot be made here, Errc::NotFound for a program or a file that is missing.
Result<CreatePlan> create_plan(const Host& host, const CreateRequest& request);

// What the installation asks again where conda has brought the Python only then.
PythonWish wish_of_spec(const Spec& spec);
Result<EnvInstaller> installer_of_plan(const Host& host, const Snapshot& base, const std::string& wanted);
Error not_installable(const std::string& lock_file, const std::vector<std::string>& lines);

}  // namespace scankit::envspec
