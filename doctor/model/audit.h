// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/model/built_for.h"

// Facts about every compiled extension of an environment, smaller than those of a module under diagnosis.
namespace scankit {

// A library of torch's own, by its soname or path, also of other releases and builds; not one of torchvision or torchaudio.
bool is_torch_library(const std::string& path);

struct AuditedSymbol {
  std::string name, version;
  std::string owner;                // as MissingSymbol::owner
  std::string needed_by;            // the extension itself, or a library that it brings
  std::string flipped_exported_by;  // torch library that has the name with the other string ABI
};
struct AuditedLibrary {
  std::string soname, needed_by;
};
struct AuditedVersion {
  std::string library, version, needed_by;
};

struct AuditedFile {
  std::string path, distribution;  // distribution: "" where no RECORD lists the file
  std::string file_state;
  Message file_detail;
  std::string machine;
  Message not_for_this_python;  // why import never takes it; "" where it may
  bool uses_torch = false;      // followed in the process as it is after `import torch`
  bool resolved = false;
  Message resolution_note;
  // What is missing even after all that other installed packages hold has been loaded first.
  std::vector<AuditedLibrary> missing_libraries;
  std::vector<AuditedSymbol> missing_symbols;
  std::vector<AuditedVersion> unmet_versions;
  // Installed files that the loader does not reach by itself, and that settle a need where they are loaded
  // first: packages do that by ctypes, and only running them would tell.
  std::vector<std::string> settled_by;
  BuiltFor built_for;  // of a file that uses torch; its `file` is empty in others
};

struct Audit {
  std::vector<AuditedFile> files;     // extensions, by path
  unsigned libraries = 0;             // other shared libraries there: read as the needs of extensions only
  std::vector<std::string> folders;   // that were walked
  std::vector<std::string> packages;  // only these were looked into; empty: all
  std::vector<Message> unreadable;    // folders or parts of them that were not, with the reason
};

// The judgement on one file, made of its facts alone.
enum class AuditVerdict { Loads, Fails, Unknown, NotForThisPython };
struct AuditRow {
  AuditVerdict verdict = AuditVerdict::Unknown;
  std::string cause;  // a slug of the catalogue; "" where no catalogued cause fits
  Message why;        // one sentence; "" where it loads
  std::string field;  // of AuditedFile, that decides it
  std::string value;  // what stands there
};
AuditRow judge(const AuditedFile& file, const std::string& machine);
const char* audit_word(AuditVerdict verdict);

}  // namespace scankit
