// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/say.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Why a fact is not there, in the language of the reader.
template <class T>
std::string why_missing(const Probed<T>& fact) {
  return fact.note.empty() ? say("not probed") : fact.note.tr();
}

}  // namespace scankit
