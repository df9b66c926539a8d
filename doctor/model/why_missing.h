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

}  // namespace scankit
