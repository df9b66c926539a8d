// SPDX-License-Identifier: Apache-2.0
#include "builder/toolchain/dialect.h"

#include "doctor/base/version.h"
#include "doctor/knowledge/drivers.h"

namespace scankit {

// Read from what NVRTC 11.7 to 13.5 writes (doctor/knowledge/drivers.yaml).
unsigned cubin_abi_of(const std::string& release, unsigned sm) {
  constexpr unsigned kOldDialect = 7, kNewDialect = 8, kLastOfOld = 90;
  const auto version = Version::parse(release);
  if (!version) return 0;
  return version->part(0) < 13 && sm <= kLastOfOld ? kOldDialect : kNewDialect;
}

bool ptx_fits(const std::string& isa, const std::string& release) {
  const auto wanted = cuda_of_ptx(isa), made_by = Version::parse(release);
  return wanted && made_by && *wanted <= *made_by;
}

}  // namespace scankit
