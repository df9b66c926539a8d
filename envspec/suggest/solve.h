// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "envspec/spec/spec.h"
#include "envspec/suggest/tables.h"

// The constraint layer of `scankit env suggest`: every build of torch with every Python is compared with what is wished
// and what the machine is, by the tables alone. Pure: nothing is asked, read or run.
namespace scankit::envspec {

// One thing that must be met, and where it comes from. Numbered: a conflict names them.
struct Wish {
  enum class Kind : std::uint8_t { Gpu, Driver, Glibc, Python, Package };
  Kind kind = Kind::Gpu;
  std::string text;    // "sm_90", "550.54", "2.28", "3.11", "mamba-ssm>=2.3"
  std::string origin;  // "--gpu", "this machine", "machine.json"; for people
};

struct PackageWish {
  std::string name;  // normalized
  VersionRange range;
  std::string text;  // as it was written
};
// Errc::InvalidArgument for anything but NAME or NAMESPECIFIER: no extras, markers or URLs.
Result<PackageWish> parse_package_wish(const std::string& text);

struct SuggestRequest {
  std::string machine = "x86_64";  // processor: "x86_64", "aarch64"
  std::vector<unsigned> gpus;      // none: no GPU is considered
  std::optional<Version> driver;   // unset: any
  std::string driver_text;
  std::optional<Version>
      driver_cuda;    // that it supports, where the number of a driver does not tell: a Jetson
  std::string glibc;  // "": any
  std::optional<VersionRange> python;  // unset: any
  std::string python_text;
  VersionRange cuda;                  // that torch may be built with; empty: any
  std::vector<PackageWish> packages;  // "torch" and "triton" among them restrict torch
  std::vector<std::string> origins;   // of GPU, driver, glibc and Python, in this order
  // Whether setup.py may download from release pages; false where only a package index can be reached.
  bool release_pages = true;
  // CUDA majors of an nvcc that can build here, with its host compiler; empty where nothing can.
  std::vector<unsigned> nvcc_majors;
};

// Whether a GPU is a Jetson's, whose driver is a part of JetPack and is not installed by itself.
bool is_for_jetson(const SuggestRequest& request);

// How a set gets one package and its compiled module.
struct PackagePlan {
  enum class How : std::uint8_t {
    Wheel,  // setup.py downloads a wheel that fits
    Own,    // the package without its CUDA build, and scankit's own module
    Build,  // nvcc builds it here
    Index   // not in the tables: the installer decides
  };
  std::string name, module;  // "mamba-ssm"; "" of Index
  std::string version;       // "2.3.2.post1"; of Index, and of a release newer than the tables, the specifier
  How how = How::Index;
  const PackageRelease* release = nullptr;  // null of Index
  const PackageRow* row = nullptr;
  std::optional<Wish>
      also;  // without a release: what else leaves no way, a fact of the machine or another package
  std::string needs_glibc;     // by its wheel and those of its pins; "" for no more than torch needs
  Message limit;               // which package of the set works with older releases only; empty for none
  Message why;                 // one clause: why this way
  std::vector<Message> chain;  // why not by a wheel; empty where it is one
  bool is_range() const { return how == How::Index || release == nullptr || release->after_the_table; }
  // "mamba-ssm==2.3.2.post1", "mamba-ssm>=2.4"
  std::string requirement() const { return name + (is_range() ? "" : "==") + version; }
};
std::string_view how_word(PackagePlan::How how);  // "wheel", "fix", "build", "index": for JSON

struct SuggestedSet {
  std::string python;  // "3.11"
  const TorchRelease* torch = nullptr;
  const TorchBuild* build = nullptr;
  std::string torch_version;  // "2.10.0"
  std::vector<PackagePlan> packages;
  std::vector<Message> notes;  // minor-version compatibility, PTX
  std::string needs_driver;    // "525.60.13"
  std::string needs_glibc;     // "2.28"
  std::string numpy;           // "numpy<2", or ""
  bool by_ptx = false;
};

// Requirements that no metadata states, and without which an import or an exchange of arrays fails: "numpy<2",
// "transformers<4.52".
std::vector<std::string> needed_beside(const SuggestedSet& set);

// Builds of torch or ways to a package that were ruled out for one reason.
struct RuledOut {
  std::string what;            // "torch 2.11 to 2.14 with CUDA 13.0, torch 2.15 with CUDA 13.2"
  std::vector<Message> chain;  // facts, each of which follows from the one before or is of the machine
};

// The smallest change after which a set exists.
struct SmallestChange {
  Wish::Kind kind = Wish::Kind::Driver;
  Message text;      // "a driver of 580.65.06 or newer"
  SuggestedSet set;  // the best one then
};

struct Suggestion {
  std::vector<SuggestedSet> sets;  // best first; the first few that differ in what they offer
  std::vector<RuledOut> ruled_out;
  std::vector<Wish> conflict;             // where nothing fits: wishes of which no subset conflicts
  std::vector<SmallestChange> changes;    // where nothing fits
  std::vector<std::string> unknown_gpus;  // "sm_130": no table has them, so that nothing is said
};
Suggestion suggest(const SuggestRequest& asked);

}  // namespace scankit::envspec
