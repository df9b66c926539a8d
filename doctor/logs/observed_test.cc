// SPDX-License-Identifier: Apache-2.0
// The catalogue against the rules: what faults.yaml promises of a cause, the log rules and the readings of
// imports keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "doctor/knowledge/faults.h"
#include "doctor/logs/explainer.h"

namespace scankit::logs {
namespace {

bool says(const LogHit& hit, const std::string& cause) {
  return hit.cause == cause || std::ranges::find(hit.alternatives, cause) != hit.alternatives.end();
}

TEST(Catalogue, EveryErrorLineIsRecognisedByItself) {
  for (const knowledge::FaultClass& fault : knowledge::fault_classes())
    for (const std::string& line : fault.error_lines) {
      const Log log = explain_text(line + "\n");
      EXPECT_TRUE(std::ranges::any_of(log.hits, [&](const LogHit& hit) { return says(hit, fault.id); }))
          << fault.id << ": " << line;
    }
}

// Otherwise the page of the cause says that no log shows it.
TEST(Catalogue, EveryCauseOfARuleIsOneOfLogs) {
  const auto expect_by_log = [](const std::string& cause, const std::string& rule) {
    for (const knowledge::FaultClass& fault : knowledge::fault_classes()) {
      EXPECT_TRUE(fault.id != cause || fault.by_log()) << rule << ": " << cause;
    }
  };
  for (const knowledge::LogRule& rule : knowledge::log_rules())
    if (rule.role != "clue") expect_by_log(rule.cause, rule.id);
  for (const knowledge::LogJoin& join : knowledge::log_joins()) expect_by_log(join.gives, "join");
}

// Not as an alternative, but as what the log ends in.
TEST(Catalogue, EveryCauseOfALogEndsOneOfTheCorpus) {
  std::set<std::string> roots;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(SCANKIT_SOURCE_DIR) / "doctor/tests/logs"))
    if (const auto log = explain_log(entry.path()); log && !log->hits.empty())
      roots.insert(log->hits.front().cause);
  for (const knowledge::FaultClass& fault : knowledge::fault_classes())
    EXPECT_EQ(roots.contains(fault.id), fault.by_log()) << fault.id;
}

Observation failed(const std::string& module, const std::string& exception, const std::string& message) {
  Observation seen;
  seen.module = module;
  seen.variant = module == "torch" ? "torch-only" : "torch-first";
  seen.outcome = "error";
  seen.exception = exception;
  seen.message = message;
  return seen;
}

std::string read(const Observation& seen) {
  Snapshot snapshot;
  snapshot.observations = Probed<std::vector<Observation>>::of({seen});
  read_observations(snapshot);
  return snapshot.observations.value.front().reads_as;
}

TEST(Observed, MessagesNameTheirCause) {
  const std::string file = "/x/lib/python3.11/site-packages/fast_ops.cpython-311-x86_64-linux-gnu.so";
  const auto of = [&](const std::string& message) {
    return read(failed("fast_ops", "ImportError", message));
  };
  EXPECT_EQ(of(file + ": undefined symbol: _ZN3c104cuda9SetDeviceEi"), "torch_version_mismatch");
  EXPECT_EQ(of("libcudart.so.11.0: cannot open shared object file: No such file or directory"),
            "missing_cudart");
  EXPECT_EQ(of("/lib64/libc.so.6: version `GLIBC_2.38' not found (required by " + file + ")"),
            "glibc_too_old");
  EXPECT_EQ(of(file + ": file too short"), "corrupt_binary");
  EXPECT_EQ(of("dynamic module does not define module export function (PyInit_fast_ops)"),
            "variant_name_mismatch");
  EXPECT_EQ(of("libcuda.so.1: cannot open shared object file: No such file or directory"),
            "no_driver_libcuda");
  EXPECT_EQ(read(failed("torch", "OSError",
                        "libcudnn.so.9: cannot open shared object file: No such file or directory")),
            "torch_incomplete");
}

TEST(Observed, WordsOfNoClassStayWithoutOne) {
  EXPECT_EQ(read(failed("fast_ops", "ModuleNotFoundError", "No module named 'yaml'")),
            "missing_python_dependency");
  EXPECT_EQ(read(failed("fast_ops", "ValueError", "n must be positive")), "");
  Observation fine = failed("fast_ops", "", "");
  fine.outcome = "ok";
  EXPECT_EQ(read(fine), "");
}

}  // namespace
}  // namespace scankit::logs
