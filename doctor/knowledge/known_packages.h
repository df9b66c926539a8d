// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What is known of packages before any of them is read: names, importers, signatures, compiled modules, pairs that
// do not fit, the oldest releases that scankit supports; and which system package contains a library.
namespace scankit::knowledge {

// What one imports of a distribution whose name differs from it, both ways (import_names.yaml). For those
// that are not installed: an installed one says it itself. `distribution` as PEP 503 writes it. Nothing where
// the table has no row.
std::optional<std::string> import_name_of_distribution(std::string_view distribution);  // "pyyaml" -> "yaml"
std::optional<std::string> distribution_of_import_name(std::string_view package);       // "yaml" -> "pyyaml"

// Which code imports compiled extension modules (importers.yaml). The probe of importers reads this code and
// not all of site-packages.
struct KnownImporters {
  std::vector<std::string> packages;  // import names
  std::vector<std::string>
      source_folders;  // of projects that are run from their checkout, relative to its root
};
const KnownImporters& known_importers();

// How many arguments MODULE.FUNCTION takes in a release of the
// distribution that brings the module (signatures.yaml).
struct KnownSignature {
  std::string distribution;
  unsigned arguments = 0;
};
// The distribution for which the table has the function ("causal_conv1d_cuda.causal_conv1d_fwd"); ""
// for none.
std::string signature_distribution(const std::string& callee);
// Nothing for a release outside the table, and for a pre-release.
std::optional<KnownSignature> known_signature(const std::string& callee, const std::string& version);

// A compiled extension module at the top level, and the project whose build makes it (built_modules.yaml).
struct CompiledModule {
  std::string module, project;
};
const std::vector<CompiledModule>& built_modules();

// Two distributions that import each other, and which releases of `with` the releases of `package` take
// (neighbours.yaml). Ranges as PEP 440 writes them.
struct NeighbourPair {
  std::string package, releases, with, takes;
};
const std::vector<NeighbourPair>& neighbour_pairs();
// What to ask for beside `package` in `version` so that no pair of the table meets: "transformers<5". Of torch nothing: it
// is what everything else is chosen for.
std::vector<std::string> limits_beside(const std::string& package, const std::string& version);
// The releases of `package` that take this torch: "transformers<4.52"; "" where the table has none that does not.
std::string limit_for_torch(const std::string& package, const std::string& torch);

// mamba-ssm or causal-conv1d, whose modules scankit builds, by the name of the distribution or of the import.
bool is_model_package(std::string_view name);

// The package of Debian and Ubuntu that contains the library ("libGL.so.1" -> "libgl1"); nothing where the table has no row.
std::optional<std::string> debian_package_of(std::string_view soname);

// A module of Python's own that a Python may lack (python_parts.yaml). `debian`: the package of Debian and Ubuntu that has it;
// `needs`: the one with the library that has to be there when Python is built. Either may be "".
struct PartOfPython {
  std::string debian, needs;
};
// Nothing where the table has no row: every Python has the module, or it is none of Python's.
std::optional<PartOfPython> optional_part_of_python(std::string_view module);

// The oldest torch on which the modules that scankit carries run, and the oldest Python.
inline constexpr const char* kOldestTorch = "1.13";
inline constexpr const char* kOldestPython = "3.8";

}  // namespace scankit::knowledge
