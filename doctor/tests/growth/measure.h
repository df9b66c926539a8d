// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

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

std::string repeated(const std::string& piece, std::size_t times);
std::string numbered(const std::string& piece, std::size_t times);  // each "#" in it a number

// A family for each of `pieces`: the text of n of them between `head` and `tail`, up to `largest` bytes.
std::vector<Family> texts(const std::string& reader, const std::vector<std::string>& pieces,
                          std::size_t largest, const std::function<void(const std::string&)>& read,
                          const std::string& head = "", const std::string& tail = "");

// Measures at n, 2n and 4n, prints a line of the table, and
// returns why it grows too fast; "" where it does not.
std::string growth_problem(const Family& family);

}  // namespace scankit::growth
