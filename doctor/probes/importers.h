// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Where the modules under diagnosis are imported: in the packages known for it, in those that are installed
// with such a module, in single-file modules and in the current folder. Not all of site-packages is read;
// `note` says what was.
Probed<std::vector<Importer>> probe_importers(const Host& host, const Python& python,
                                              const std::vector<std::string>& modules);

}  // namespace scankit
