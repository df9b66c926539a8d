// SPDX-License-Identifier: Apache-2.0
// The C++ oracle and the Python one know nothing of each other: they must make the same tensors, bit by bit,
// from a case, and the same results from those.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "validate/cases/data.h"
#include "validate/judge/oracle.h"
#include "validate/run/run.h"
#include "validate/tests/test_python.h"

namespace scankit::validate {
namespace {

using Values = std::vector<double>;
using Said = std::map<std::string, std::map<std::string, Values>>;  // "input ID" -> name -> values

Said listen(const std::string& channel) {
  Said said;
  std::istringstream lines(channel);
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    const std::string type = json["type"];
    if (type != "input" && type != "result") continue;
    said[type + " " + std::string(json["id"])][json["name"]] = json["values"].get<Values>();
  }
  return said;
}

double distance(const Values& a, const Values& b) {
  double top = 0, bottom = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    top += (a[i] - b[i]) * (a[i] - b[i]);
    bottom += b[i] * b[i];
  }
  return bottom > 0 ? std::sqrt(top / bottom) : std::sqrt(top);
}

std::map<std::string, Values> named(const OracleOutput& o) {
  return {{"out", o.out},
          {"out_z", o.out_z},
          {"last_state", o.last_state},
          {"du", o.du},
          {"ddelta", o.ddelta},
          {"dA", o.dA},
          {"dB", o.dB},
          {"dC", o.dC},
          {"dD", o.dD},
          {"dz", o.dz},
          {"ddelta_bias", o.ddelta_bias},
          {"dinitial_state", o.dinitial_state}};
}

std::vector<double> values_of(const Case& c, std::string_view name) {
  const TensorSpec* spec = c.find(name);
  return spec ? make_data(*spec) : std::vector<double>{};
}

OracleInput oracle_input(const Case& c) {
  OracleInput in;
  in.batch = c.batch;
  in.dim = c.dim;
  in.length = c.length;
  in.states = c.states;
  in.groups = c.groups;
  in.softplus = c.softplus;
  in.complex = c.complex();
  in.constant_B = c.constant("B");
  in.constant_C = c.constant("C");
  in.u = values_of(c, "u");
  in.delta = values_of(c, "delta");
  in.A = values_of(c, "A");
  in.B = values_of(c, "B");
  in.C = values_of(c, "C");
  in.D = values_of(c, "D");
  in.z = values_of(c, "z");
  in.delta_bias = values_of(c, "delta_bias");
  in.dout = values_of(c, "dout");
  in.initial_state = values_of(c, "initial_state");
  in.dlast_state = values_of(c, "dlast_state");
  in.cu_seqlens = c.cu_seqlens;
  return in;
}

TEST(CrossCheck, TheTwoOraclesAgree) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  std::vector<Case> cases = full_cases(20261121, 100);
  for (Case& c : stateful_cases(20261121, 40)) cases.push_back(std::move(c));
  std::erase_if(cases, [](const Case& c) {
    const std::int64_t steps = std::int64_t{c.batch} * c.dim * c.length;
    return steps > 4000 || steps * c.states > 25000;
  });
  ASSERT_GE(cases.size(), 60u);
  const auto channel = run_python_oracle(python, cases);
  ASSERT_TRUE(channel) << english(channel.error().message);
  Said said = listen(*channel);
  for (const Case& c : cases) {
    const auto& inputs = said["input " + c.id];
    for (const TensorSpec& tensor : c.tensors) {
      if (tensor.fill.kind == FillKind::None) continue;
      EXPECT_EQ(make_data(tensor), inputs.at(tensor.name)) << c.id << " " << tensor.name;
    }
    const auto& results = said["result " + c.id];
    for (const auto& [name, ours] : named(run_oracle(oracle_input(c)))) {
      if (ours.empty()) continue;
      ASSERT_EQ(results.count(name), 1u) << c.id << " " << name;
      ASSERT_EQ(ours.size(), results.at(name).size()) << c.id << " " << name;
      EXPECT_LT(distance(ours, results.at(name)), 1e-11) << c.id << " " << name;
    }
  }
}

}  // namespace
}  // namespace scankit::validate
