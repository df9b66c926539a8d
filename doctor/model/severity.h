// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <vector>

// How grave a finding is. Checks never say so: they name the cause and the circumstances, and Finding::severity() decides.
namespace scankit {

enum class Severity { Note, Warning, Error };

enum class Circumstance {
#define CIRCUMSTANCE(id, severity) id,
#include "doctor/model/circumstances.def"
#undef CIRCUMSTANCE
};
using Circumstances = std::vector<Circumstance>;

bool has(const Circumstances& circumstances, Circumstance wanted);

// What the circumstances make of any cause, by the table; nullopt where they leave its usual severity.
std::optional<Severity> severity_under(const Circumstances& circumstances);

}  // namespace scankit
