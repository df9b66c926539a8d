// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// The kinds of device images in torch's own kernels, each once, by chip. Reads headers only: the library has
// some hundred containers in 300 MB. The string says why there are none; "" where there is nothing to say.
std::string read_torch_images(const Host& host, Torch& torch);

}  // namespace scankit
