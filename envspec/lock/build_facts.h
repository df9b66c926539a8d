// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>
#include <string>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock.h"

// From which source archive, and by which compilers, an installed package was built: what the installer, pip's cache
// and the files themselves tell. Nothing is run, and what nobody wrote down is not guessed.

namespace scankit::envspec {

// A wheel that pip built and kept, with the archive that it built it from (its origin.json).
struct CachedBuild {
  LockedArtifact sdist, wheel;
};
// pip's directory for wheels of its own; "" where it cannot be known, as for an unpacked root.
std::string built_wheels_folder(const Host& host);
// Of several, the one whose files, by its RECORD, are those that are installed. Nothing if none is.
std::optional<CachedBuild> find_cached_build(const Host& host, const std::string& folder,
                                             const Distribution& installed);

// What others know about one package.
struct BuildHints {
  const LockedArtifact* index = nullptr;          // the archive that the index has of this version
  std::string why_not_index;                      // why it names none
  const LockedBuild* older = nullptr;             // of the older lock, for the same installed files
  const LockedArtifact* older_archive = nullptr;  // of the older lock, for another build of the same version
  std::string cache;                              // built_wheels_folder()
  std::string prefix;  // of the environment, whose journals of scankit are read; "": none are
};
// By the journals of `scankit fix` in the environment; nothing where another build of it is installed now.
std::optional<RecordedBuild> recorded_build(const Host& host, const std::string& prefix,
                                            const Distribution& installed);
LockedToolchain toolchain_of(const Host& host, const PlacedLibraries& libraries,
                             const Distribution& installed);
LockedBuild build_facts(const Host& host, const PlacedLibraries& libraries, const Distribution& installed,
                        const BuildHints& hints);

// A line of a wheel's WHEEL, "Generator: setuptools (82.0.1)"; "" where it has none.
std::string generator_of(const Host& host, const Distribution& installed);

}  // namespace scankit::envspec
