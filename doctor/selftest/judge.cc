// SPDX-License-Identifier: Apache-2.0
#include "doctor/selftest/judge.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {
using ParsedJson = nlohmann::json;

// The last line that is not empty: of a traceback, the exception.
std::string last_line(const std::string& text) {
  const auto end = text.find_last_not_of("\r\n ");
  if (end == std::string::npos) return "";
  const auto start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1,
                     end - (start == std::string::npos ? 0 : start + 1) + 1);
}

// How the interpreter failed, in one line.
std::string seen(const ProcessResult& imported) {
  if (imported.timed_out) return say("no answer within {} ms", imported.duration.count());
  if (imported.signal != 0) return say("killed by signal {}", imported.signal);
  return last_line(imported.err);
}

// Compares the doctor's JSON and its exit status with what the fault demands. Throws if a key is missing;
// the caller then reports that the answer does not follow its schema.
Judgement judgement_of(const SelftestFault& fault, const ParsedJson& answer, int exit_code, Trial& trial) {
  const ParsedJson& root = answer.at("root");
  const std::string verdict = answer.at("verdict").get<std::string>();
  trial.named = root.is_object() ? root.at("cause").get<std::string>() : verdict;
  const bool right = fault.cause.empty()
                         ? verdict == "healthy" && root.is_null() && exit_code == kExitClean
                         : verdict == "broken" && trial.named == fault.cause && exit_code == kExitFindings;
  return right ? Judgement::Named : Judgement::Missed;
}

}  // namespace

// These words are part of selftest's JSON and are not translated.
std::string_view judgement_word(Judgement judgement) {
  switch (judgement) {
    case Judgement::Named:
      return "named";
    case Judgement::Missed:
      return "missed";
    case Judgement::NotPlanted:
      return "not-planted";
    case Judgement::Failed:
      return "failed";
    case Judgement::Skipped:
      return "skipped";
  }
  return "";
}

Trial judge(const SelftestFault& fault, const std::optional<ProcessResult>& imported,
            const Result<ProcessResult>& doctor) {
  Trial trial{.fault = fault.name, .planted = fault.planted, .expected = fault.cause};
  // The interpreter must fail over every fault, except where a package hides it or nothing is wrong.
  // Otherwise the fault is not there, and the doctor's answer means nothing.
  if (imported) {
    trial.import_line = imported->ok() ? "" : seen(*imported);
    const bool should_work = fault.cause.empty() || fault.hides;
    if (imported->ok() != should_work) {
      trial.judgement = Judgement::NotPlanted;
      trial.why = should_work ? say("the interpreter rejects it: {}", trial.import_line)
                              : say("the interpreter imports it without an error");
      return trial;
    }
  }
  trial.judgement = Judgement::Failed;
  if (!doctor) {
    trial.why = tr(doctor.error().message);
  } else if (doctor->timed_out || doctor->signal != 0) {
    trial.why = doctor->timed_out ? say("doctor gave no answer in time")
                                  : say("doctor was killed by signal {}", doctor->signal);
  } else {
    try {
      trial.judgement = judgement_of(fault, ParsedJson::parse(doctor->out), doctor->exit_code, trial);
    } catch (const ParsedJson::exception&) {
      trial.why = say("doctor's answer does not match its schema; exit status {}: {}", doctor->exit_code,
                      last_line(doctor->err));
    }
  }
  return trial;
}

int exit_status_of(const std::vector<Trial>& trials) {
  const auto any = [&](Judgement wanted) {
    return std::ranges::any_of(trials, [&](const Trial& trial) { return trial.judgement == wanted; });
  };
  // A selftest that could not do its own part is an internal error, even if the doctor also
  // missed something.
  if (any(Judgement::Failed) || any(Judgement::NotPlanted)) return kExitInternal;
  if (any(Judgement::Missed)) return kExitFindings;
  return any(Judgement::Named) ? kExitClean : kExitInternal;
}

}  // namespace scankit
