// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/model/why_missing.h"
#include "doctor/report/progress.h"
#include "envspec/cli/commands.h"
#include "envspec/spec/derive.h"
#include "envspec/spec/fields.h"

namespace scankit {
namespace {

constexpr const char* kSchemaFile = "scankit.schema.json";  // beside the spec

int print(const std::string& text) {
  std::cout << text;
  return kExitClean;
}

bool is_there(const std::string& path) { return make_real_host()->lstat(path).has_value(); }

// The schema first: a spec must not name a file that could not be written.
Result<void> write_spec(const DerivedSpec& derived, const std::string& path) {
  const std::string schema = path_join(path_dirname(path), kSchemaFile);
  SCANKIT_CHECK(write_output(schema, spec_schema()));
  return write_output(path, spec_to_yaml(derived.spec, derived.notes, kSchemaFile));
}

}  // namespace

int run_env_schema() { return print(spec_schema()); }

int run_env_init(const EnvInitOptions& options) {
  const std::string out = options.out.empty() ? kSpecFile : options.out;
  const std::string path = path_normalize(path_join(current_directory(), out));
  // Asked before the work.
  if (out != "-" && !options.force && is_there(path)) {
    complain({Errc::InvalidArgument, say("{} is there already, and nothing was written", out),
              say("--force writes over it, --out FILE beside it")});
    return kExitUsage;
  }
  SubjectOptions asked = options.subject;
  asked.find_extensions = true;
  auto subject = look_at(asked);
  if (!subject) {
    complain(subject.error());
    return subject.error().code == Errc::ToolFailed ? kExitFindings : kExitUsage;
  }
  if (subject->status != kExitClean) return subject->status;
  if (!subject->snapshot.python.present()) {
    complain({Errc::NotFound,
              say("there is no environment to describe: {}", why_missing(subject->snapshot.python)),
              say("name one with --python")});
    return kExitUsage;
  }
  const DerivedSpec derived = derive_spec(subject->facts);
  if (out == "-") return print(spec_to_yaml(derived.spec, derived.notes, ""));
  if (const auto written = write_spec(derived, path); !written) {
    complain(written.error());
    return exit_status_of(written.error());
  }
  for (const std::string& note : subject->notes) progress_note(retold(note));
  progress_note(say("wrote {}, and beside it {} for editors", out, kSchemaFile));
  progress_note(say(
      "edit it, keep both with your sources, and let scankit env check tell when an environment differs"));
  return kExitClean;
}

}  // namespace scankit
