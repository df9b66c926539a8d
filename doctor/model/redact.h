// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"
#include "doctor/model/redact_text.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// What is known of the person and the machine beside what the facts say.
struct Owner {
  std::vector<std::string> users, homes, hosts;
};
// Of who runs this process: $USER, $LOGNAME, $HOME, $HOSTNAME, uname, and the people in /etc/passwd.
Owner own_names();
// Adds the accounts of people in the text of /etc/passwd, and the one with `own_uid`.
void add_accounts(std::string_view passwd, unsigned own_uid, Owner& owner);

// The same facts without whose they are: README.md says what is replaced, in every string of the snapshot.
// Paths stay distinct and keep their shape, so that a diagnosis of the redacted snapshot is the same.
Snapshot redacted(const Snapshot& snapshot, const Owner& owner = {});
// An answer that had to be found with the real names, since files were read to find it.
Report redacted(Report report, const Owner& owner = {});

// Why nothing could be examined.
Error redacted(Error error, const Owner& owner);

// The help of --redact: what is replaced, and what is not.
std::string redact_help();

void learn(TextRedactor& redactor, const Owner& owner);

}  // namespace scankit
