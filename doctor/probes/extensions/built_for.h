// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/elf/image.h"
#include "doctor/elf/symbols.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Which torch the file was made for, once its other facts are known.
BuiltFor date_extension(const Extension& copy, const std::vector<UndefinedSymbol>& undefined,
                        const Image& image);

// One answer for the files that `name`, a wheel or a folder, holds.
BuiltFor date_files_together(const std::string& name, const std::vector<BuiltFor>& files);

// One answer for each distribution that an examined copy belongs to. Its other libraries are read too: they
// come from the same build, and each of them narrows the answer.
std::vector<BuiltFor> date_distributions(const Host& host, const std::vector<Distribution>& installed,
                                         const std::vector<Extension>& copies);

}  // namespace scankit
