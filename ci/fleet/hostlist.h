// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

namespace scankit::fleet {

// "login,node[1-3,07-09]-ib[0-1]" as names, sorted and without duplicates: the list of hosts that Slurm,
// pdsh and clush write, read without any of them. A range keeps the digits of its first number.
Result<std::vector<std::string>> expanded_hosts(std::string_view list);

}  // namespace scankit::fleet
