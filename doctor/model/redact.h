// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/finding.h"
#include "doctor/model/redact_text.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// What is known of the person and the machine beside what the facts say.
struct Owner {
  std::vector<std::string> users, homes, hosts;
};
// Of who runs this process: $USER, $LOGNAME, $HOME, $HOSTNAME and uname.
Owner own_names();

// The same facts without who they belong to: home folders, user and host names, credentials and the serials
// of GPUs are replaced, in every string of the snapshot. Paths stay distinct and keep their shape, so that a
// diagnosis of the redacted snapshot is the same.
Snapshot redacted(const Snapshot& snapshot, const Owner& owner = {});
// An answer that had to be found with the real names, since files were read to find it.
Report redacted(Report report, const Owner& owner = {});

void learn(TextRedactor& redactor, const Owner& owner);

}  // namespace scankit
