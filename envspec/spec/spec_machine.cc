// SPDX-License-Identifier: Apache-2.0
#include "envspec/spec/spec_machine.h"

#include "doctor/base/say.h"
#include "doctor/probes/target/target.h"
#include "envspec/spec/spec.h"

namespace scankit {

Result<Snapshot> machine_of_spec(const std::string& text, const std::string& name) {
  SCANKIT_TRY(const Spec spec, parse_spec(text, name));
  if (spec.gpus.empty())
    return Error{
        Errc::NotFound, say("{} names no GPU", name),
        say("write the GPUs that it is for into it, such as gpus: [sm_90], or name them with --arch")};
  const Speaking facts_are_english(nullptr);
  Snapshot machine;
  TargetDescription described;
  described.gpus = spec.gpus;
  const std::string driver = spec.driver.least();
  if (driver_version_problem(driver).empty()) described.driver = driver;
  describe_target(described, machine);
  if (described.driver.empty()) machine.driver.note = say("the spec names no oldest driver");
  return machine;
}

}  // namespace scankit
