// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/base/message.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Why a fact is not there.
template <class T>
Message why_missing(const Probed<T>& fact) {
  return fact.note.empty() ? message("not probed") : fact.note;
}

// "libx.so.1 needed by /site/torch/lib/libtorch.so".
inline Message in_words(const TorchNeed& need) {
  const Message line = need.version.empty() ? message("{} needed by {}", need.soname, need.needed_by)
                                            : message("{} with version {} needed by {}", need.soname,
                                                      need.version, need.needed_by);
  return need.why.empty() ? line : message("{} ({})", line, need.why);
}

}  // namespace scankit
