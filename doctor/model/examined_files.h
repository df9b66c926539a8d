// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/message.h"

// Facts about compiled files: which torch one was built for, what torch offers it, and for every extension of an
// environment whether it loads.
namespace scankit {

// What one library of the process after `import torch` offers to a module that comes later.
struct ExportTable {
  std::string path, soname;
  bool global = false;  // in the scope that every later library sees
  std::vector<std::string> needed, versions;
  std::uint64_t count = 0;
  std::string names;  // sorted, packed by doctor/probes/extensions/extensions.h
};

// Taken on request (--with-exports): some MB, with which a file that is not on that machine can be resolved
// name by name.
struct Exports {
  std::vector<ExportTable> libraries;
};

// A name, or a whole version, that a library of a process needs and that the file which the loader took for
// it does not have. Another file of the same soname may well have it.
struct BindingMismatch {
  std::string needed_by;        // file
  std::string name, version;    // name: "" where the version itself is not defined; version: "" for none
  std::string soname, library;  // what was asked for, and the file that the loader took
  std::string found_by;  // "LD_LIBRARY_PATH /x", "RPATH of FILE /x", "/etc/ld.so.cache", "default /lib"
  std::string wheel;  // requirement that names the installed wheel of that file: "nvidia-nccl-cu13==2.27.7"
  std::string without_library_path;  // the file that the loader takes without that variable, where it fits
};

// One requirement of torch's metadata, or of the cuda-toolkit package that it names, on an nvidia-* wheel.
struct CudaPin {
  std::string requirement;      // "nvidia-nccl-cu13==2.28.9"
  std::string name, installed;  // "nvidia-nccl-cu13", "2.27.7"; installed: "" where it is not
  bool met = false;
};

// Which releases of torch a file was made for, as far as the names that it needs tell. Minors only: patches
// of one minor export the same names.
struct BuiltFor {
  std::string file;                   // or the wheel, folder or distribution
  unsigned together = 0;              // of how many files that use torch it is the answer; 0: of this one
  bool dated = false;                 // some release was ruled out
  std::vector<std::string> releases;  // known minors that export every name it needs; oldest first
  // Unset: open-ended on that side, or not dated. Where `between_known_releases`, releases is empty, and the
  // file was made for something between these two that is none of the known ones.
  std::optional<std::string> torch_min, torch_max;
  bool between_known_releases = false;
  bool stable_abi = false;  // needs only names of torch's stable C interface
  std::string string_abi, glibc_min, cuda_major, python_tag;  // "" where the file does not say
  unsigned torch_names = 0, unknown_names = 0;
  Message why_not_narrower;       // one line; "" where one minor is left
  std::vector<Message> evidence;  // one line each
};

// "torch 2.3 to 2.6", "torch 2.9 or newer"; "" where no release was ruled out. For use within a sentence.
Message torch_words(const BuiltFor& built_for);

// "2.11" of "2.11.0+cu130"; "" for what is no version.
std::string torch_minor(const std::string& version);

// One line: "built for torch 2.3 to 2.6, pre-CXX11 ABI; 2.11 is installed". `installed`: torch's version, ""
// for none. "" where the file was not dated at all.
std::string built_for_sentence(const BuiltFor& built_for, const std::string& installed);

// Facts about every compiled extension of an environment, smaller than those of a module under diagnosis.

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
  std::vector<std::string> executable_stack;  // as Extension::executable_stack
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
// `machine` is the interpreter's, "" if it is not known; `stack_refused`: see refuses_executable_stacks().
AuditRow judge(const AuditedFile& file, const std::string& machine, std::optional<bool> stack_refused);
const char* audit_word(AuditVerdict verdict);

}  // namespace scankit
