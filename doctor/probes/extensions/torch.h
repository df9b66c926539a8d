// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// The kinds of device images in torch's own kernels, each once, by chip. Reads headers only: the library has
// some hundred containers in 300 MB. The string says why there are none; "" where there is nothing to say.
Message read_torch_images(const Host& host, Torch& torch);

// The torch that `import torch` would take, described from its files, whether it can be imported or not.
// Absent: there is none. Failed: there is something, but not enough of it to tell the version. The note also
// tells what is incomplete about a torch that is Present.
Probed<Torch> probe_torch(const Host& host, const Python& python,
                          const std::vector<Distribution>& distributions);

// `NAME = 'value'` or `NAME: Optional[str] = 'value'` of torch/version.py; "" for None and for a name that is
// not there.
std::string version_file_value(std::string_view text, std::string_view name);
// The newest standard that an `#if ... __cplusplus < 201703L` of the text demands: "17"; "" for none.
std::string demanded_cxx_standard(std::string_view header);

}  // namespace scankit
