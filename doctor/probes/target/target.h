// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "doctor/base/files.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The target where it is not the machine at hand: files that are overlaid onto it, and GPUs and a driver as
// the user describes them (--gpu, --driver).

namespace scankit::probes {

// Another host with folders of this machine overlaid onto it, so that a file which is not part of the
// examined system is seen from inside it: the loader's $ORIGIN, the other files of its wheel.
class OverlayHost : public Host {
 public:
  explicit OverlayHost(std::unique_ptr<Host> base) : base_(std::move(base)) {}

  // `at`: absolute and normal, as the examined system will name it; `folder`: a folder of this machine.
  void overlay(const std::string& at, const std::string& folder);
  // Paths that an overlay does not contain are looked up in this directory of the system, as if the overlay
  // were unpacked into it.
  void overlay_files(const std::string& folder) { below_ = folder; }

  Result<std::string> read_file(const std::string& path, std::size_t limit) const override;
  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override;
  Result<std::vector<DirEntry>> list(const std::string& path) const override;
  Result<FileInfo> stat(const std::string& path) const override;
  Result<FileInfo> lstat(const std::string& path) const override;
  Result<std::string> readlink(const std::string& path) const override;
  Result<std::string> realpath(const std::string& path) const override;
  std::optional<std::string> env(std::string_view name) const override { return base_->env(name); }
  bool is_live() const override { return base_->is_live(); }

 private:
  struct Overlay {
    std::string at;
    std::unique_ptr<Host> host;
  };
  struct Place {
    const Host* host;
    std::string path, at;  // path as that host names it; `at` of the overlay, "" for the base
  };
  Place find(const std::string& path) const;

  std::unique_ptr<Host> base_;
  std::vector<Overlay> overlays_;
  std::string below_;
};

struct TargetDescription {
  std::vector<std::string> gpus;  // "sm_90"; "none" for a machine without one
  std::string driver;             // "570.86"; "" leaves what was seen
  bool empty() const { return gpus.empty() && driver.empty(); }
};

// What is wrong with a name, with the form that is expected; "" where nothing is.
std::string gpu_name_problem(const std::string& name);
std::string driver_version_problem(const std::string& version);

// Puts the described parts in the place of the observed ones and notes in `described` that it did. The names
// have passed the functions above.
void describe_target(const TargetDescription& target, Snapshot& snapshot);

// --so FILE|WHEEL|DIR: files under diagnosis wherever they lie, as if they were importable in the
// environment.

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

// What is wrong with the scankit.module.yaml of each wheel, and of the package or the project that a file lies in, a
// sentence each. `host` has the files, and what is around them.
std::vector<Message> module_file_problems(const Host& host, const NamedFiles& named);

// Inspects and resolves them in the environment of `snapshot`, whose modules they become.
void probe_named_files(NamedFiles& named, Snapshot& snapshot);
// The same with a stored snapshot of another machine, by the facts that it holds.
void probe_named_files_on_target(NamedFiles& named, Snapshot& snapshot);

}  // namespace scankit::probes
