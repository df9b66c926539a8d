// SPDX-License-Identifier: Apache-2.0
// probe_sources() finds the build file of a directory, lets the readers of setup_py.cc, cmake_lists.cc and
// native_sources.cc fill one SourceTree, and compares the files that are named with those that are there.
#include "doctor/preflight/probes/sources.h"

#include <algorithm>
#include <array>
#include <deque>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/python/python_text.h"

namespace scankit::preflight {
namespace {

// The longest setup.py known to us has 60 kB. The entries of the tree and its depth are bounded too, because
// the current directory may be a home or a data set.
constexpr std::size_t kSourceFileLimit = 1u << 19, kMostSourceFiles = 20000;
constexpr int kDeepestSource = 12;

struct Listing {
  std::vector<std::string> files;  // relative to the folder
  bool whole = true;               // nothing may lie elsewhere
};

// Breadth first, so that a bound cuts off the deepest files. Links to directories are not followed: they
// lead out of the tree, or round in circles. A venv in the tree is not part of the sources.
Listing list_tree(const Host& host, const std::string& root) {
  Listing listing;
  std::deque<std::pair<std::string, int>> folders{{"", 0}};
  std::size_t seen = 0;
  while (!folders.empty() && seen < kMostSourceFiles) {
    const auto [folder, depth] = folders.front();
    folders.pop_front();
    const std::string path = folder.empty() ? root : path_join(root, folder);
    const auto entries = host.list(path);
    if (!entries || (!folder.empty() && host.exists(path_join(path, "pyvenv.cfg")))) continue;
    seen += entries->size();
    for (const DirEntry& entry : *entries) {
      const std::string name = folder.empty() ? entry.name : folder + "/" + entry.name;
      if (entry.kind == FileKind::Symlink && host.is_directory(path_join(root, name))) {
        listing.whole = false;
      } else if (entry.kind == FileKind::Directory) {
        const bool no_source = entry.name.starts_with('.') || entry.name == "__pycache__" ||
                               entry.name == "node_modules" || entry.name == "site-packages";
        if (no_source) continue;
        if (depth < kDeepestSource)
          folders.emplace_back(name, depth + 1);
        else
          listing.whole = false;
      } else {
        listing.files.push_back(name);
      }
    }
  }
  listing.whole = listing.whole && folders.empty();
  return listing;
}

bool builds_torch_extension(std::string_view text) {
  return std::ranges::any_of(
      std::array{"CUDAExtension", "CppExtension", "BuildExtension", "torch.utils.cpp_extension"},
      [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

// PKG-INFO: the header lines of an e-mail (core metadata specification).
void read_metadata(std::string_view text, SourceTree& tree) {
  tree.unpacked_archive = true;
  for (const std::string_view line : lines_of(text)) {
    if (line.empty()) break;
    if (line.starts_with("Name:") && tree.name.empty()) tree.name = trimmed(line.substr(5));
    const bool page = line.starts_with("Home-page:") || line.starts_with("Project-URL:");
    const auto address = line.find("https://");
    if (page && address != std::string_view::npos && tree.homepage.empty())
      tree.homepage = trimmed(line.substr(address));
  }
}

// Whole components only: "scan.cu" does not name "fastscan.cu".
bool is_named(const std::string& file, const std::string& literal) {
  return file == literal || file.ends_with("/" + literal);
}

// A literal may be joined to a folder by code that is not read here: it counts as missing where no file of
// the tree ends with it.
void find_missing(const Host& host, const Listing& listing, SourceTree& tree) {
  for (const SourceFact& source : tree.sources) {
    if (source.value.starts_with('/') || source.value.find("..") != std::string::npos) continue;
    const std::string name = path_normalize(source.value);
    const bool there =
        host.exists(path_join(tree.folder, name)) ||
        std::ranges::any_of(listing.files, [&](const std::string& file) { return is_named(file, name); });
    if (!there && listing.whole) tree.missing.push_back(source);
  }
}

// Those that the build file names. Where it names none it gathers them itself, and which is not known here.
std::vector<std::string> compiled_files(const Listing& listing, const SourceTree& tree) {
  std::vector<std::string> files;
  for (const SourceFact& fact : tree.sources) {
    const std::string name = path_normalize(fact.value);
    for (const std::string& file : listing.files)
      if (is_named(file, name) && std::ranges::find(files, file) == files.end()) files.push_back(file);
  }
  return files;
}

Probed<SourceTree> none(bool asked, const Message& why) {
  return asked ? Probed<SourceTree>::failed(why) : Probed<SourceTree>::absent(why);
}

// Sets build_file only where the file builds a torch extension, so that a CMakeLists.txt is tried after a
// setup.py that does not.
void read_build_file(const Host& host, const char* file, SourceTree& tree) {
  const std::string path = path_join(tree.folder, file);
  if (!probes::is_regular_file(host, path)) return;
  const auto text = host.read_file(path, kSourceFileLimit);
  if (!text) {
    tree.not_read.push_back(message("{}: {}", printable(path), text.error().message));
    return;
  }
  const bool setup = std::string_view(file) == "setup.py";
  if (setup ? !builds_torch_extension(*text) : !finds_torch(*text)) return;
  tree.build_file = file;
  setup ? read_setup_py(*text, tree) : read_cmake_lists(*text, tree);
  if (!setup) return;
  tree.opted_in = !tree.opt_in.empty() && host.env(tree.opt_in) == "TRUE";
  for (const std::string& name : imported_names(*text))
    tree.own_helpers =
        tree.own_helpers || (!name.empty() && host.exists(path_join(tree.folder, name + ".py")));
}

}  // namespace

Probed<SourceTree> probe_sources(const Host& host, const std::string& named, const Probed<Torch>& torch) {
  const bool asked = !named.empty();
  const std::string folder = asked ? probes::absolute_path(host, named) : probes::working_directory(host);
  if (folder.empty())
    return none(false, message("the examined system is not running: it has no current directory"));
  if (asked && !host.is_directory(folder))
    return none(true, message("{} is not a directory", printable(folder)));
  SourceTree tree{.folder = folder, .asked = asked};
  for (const char* file : {"setup.py", "CMakeLists.txt"})
    if (tree.build_file.empty()) read_build_file(host, file, tree);
  if (tree.build_file.empty()) {
    if (!tree.not_read.empty()) return none(asked, tree.not_read.front());
    return none(asked, message("{} contains no setup.py or CMakeLists.txt that builds a torch extension",
                               printable(folder)));
  }
  if (const auto text = host.read_file(path_join(folder, "pyproject.toml"), kSourceFileLimit))
    read_pyproject(*text, tree);
  if (const auto text = host.read_file(path_join(folder, "PKG-INFO"), kSourceFileLimit))
    read_metadata(*text, tree);
  if (tree.name.empty()) tree.name = path_basename(folder);
  const Listing listing = list_tree(host, folder);
  if (!listing.whole)
    tree.not_read.push_back(
        message("{}: more files, deeper directories or links to directories than scankit examines",
                printable(folder)));
  find_missing(host, listing, tree);
  const auto is_kernel = [](const std::string& name) { return name.ends_with(".cu"); };
  const auto names_kernel = [&](const SourceFact& fact) { return is_kernel(fact.value); };
  tree.has_kernels = tree.sources.empty() ? std::ranges::any_of(listing.files, is_kernel)
                                          : std::ranges::any_of(tree.sources, names_kernel);
  read_native_sources(host, compiled_files(listing, tree), listing.files, torch, tree);
  return Probed<SourceTree>::of(std::move(tree));
}

}  // namespace scankit::preflight
