// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "envspec/lock/lock.h"

// What the records of installed distributions tell about the files that they came from
// (direct_url.json, WHEEL, conda-meta), and the shared libraries of the installed packages under the
// names that a lock uses. Nothing here asks an index or runs a program.

namespace scankit::envspec {

// A shared library of the environment. `inner` names it independently of where the environment is.
struct PlacedLibrary {
  std::string path;
  std::string inner;         // below its folder of sys.path: "torch/lib/libc10.so"
  std::string distribution;  // as PEP 503 writes it; "" where no RECORD lists the file
};
// All of them; a library in a directory that cannot be read is missing from the list.
struct PlacedLibraries {
  std::vector<PlacedLibrary> libraries;  // by `inner`, each once: of two copies the one that import finds
  std::vector<Message> unreadable;       // folders, with the reason
};
PlacedLibraries placed_libraries(const Host& host, const Snapshot& snapshot);

// direct_url.json (PEP 610): installed from a file, a folder or a URL, and not from an index.
struct DirectUrl {
  bool there = false;
  bool local = false;     // file:
  bool archive = false;   // one file, not a folder or a repository
  std::string url;        // without a user's name and password; "" for a local one
  std::string file_name;  // of an archive
  std::string sha256;     // "" where the installer did not write it down
  std::string commit;     // of a repository
};
DirectUrl direct_url(const Host& host, const Distribution& distribution);
// The same of any file of that form; pip's cache has such ones.
DirectUrl read_direct_url(const Host& host, const std::string& path);

// The tags of its WHEEL: "cp311-cp311-manylinux_2_28_x86_64". Empty where there is none (an egg, apt).
std::vector<std::string> installed_tags(const Host& host, const Distribution& distribution);
// Whether a wheel of this name has these very tags: an index may offer another build of the same version.
bool has_tags(const std::string& wheel_file, const std::vector<std::string>& tags);

// PREFIX/conda-meta; empty where conda made none of it.
std::vector<CondaPackage> conda_packages(const Host& host, const std::string& prefix);

// "https://user:word@host/a%2Bb.whl?x#y" without the user and the fragment; "" where it is not a URL that
// a lock may contain. file_name_of() gives the file name in it, percent-decoded.
std::string plain_url(const std::string& url);
std::string file_name_of(const std::string& url);

}  // namespace scankit::envspec
