// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/at_fault.h"

namespace scankit {

AtFault at_fault(Cause cause) {
  switch (cause) {
#define AT_FAULT(id, who) \
  case Cause::id:         \
    return AtFault::Of##who;
#include "doctor/model/at_fault.def"
#undef AT_FAULT
    default:
      return AtFault::OfEnvironment;
  }
}

}  // namespace scankit
