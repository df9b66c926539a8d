// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/target/target.h"

// --so FILE|WHEEL|DIR: files under diagnosis wherever they lie, as if they were importable in the
// environment.
namespace scankit {

struct NamedFile {
  std::string module;         // "pkg._C": its place below the folder that would be on sys.path
  std::string path;           // as `host` names it
  std::string folder;         // that folder
  bool named_itself = false;  // the user named this very file, so it is examined whatever it is
};

struct NamedFiles {
  std::unique_ptr<OverlayHost> host;  // the examined system with the files overlaid in where they lie outside
  std::vector<NamedFile> files;
  std::vector<Wheel> wheels;
  std::vector<TemporaryDirectory> unpacked;  // wheels; an empty folder that stands for the other machine
};

// Opens what was named. One that is not there, is no wheel or holds no library is an Error of one line.
// `base` is the examined system; names are paths of the running one. The files are opened, never run.
Result<NamedFiles> open_named_files(std::unique_ptr<Host> base, const std::vector<std::string>& names);

// Opens what was named, for a machine of which no file is at hand: nothing but what was named is seen.
Result<NamedFiles> open_named_files_alone(const std::vector<std::string>& names);

// Inspects and resolves them in the environment of `snapshot`, whose modules they become.
void probe_named_files(NamedFiles& named, Snapshot& snapshot);
// The same with a stored snapshot of another machine, by the facts that it holds.
void probe_named_files_on_target(NamedFiles& named, Snapshot& snapshot);

}  // namespace scankit
