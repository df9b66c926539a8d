// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace scankit::growth {

struct Cost {
  double milliseconds = 0;  // of this process on a CPU: other programs of the machine do not count
  std::size_t peak = 0;     // bytes that were allocated at once, above what was before
};
Cost cost_of(const std::function<void()>& work);

// One reader and one kind of hostile input: `make(n)` prepares the input of size n and returns the reading of
// it, which alone is measured.
struct Family {
  std::string reader, input;
  std::size_t smallest, largest;  // sizes: doubled from the one until a reading takes some time
  std::function<std::function<void()>(std::size_t)> make;
};

// Measures at n, 2n and 4n, prints a line of the table, and returns why it grows too fast; "" where it does
// not.
std::string growth_problem(const Family& family);

}  // namespace scankit::growth
