// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// A Requires-Dist line that applies to this Python, of a distribution that torch or a package around the
// modules needs: what it asks for is not installed, and no folder of sys.path holds a package of its name
// either.
struct MissingRequirement {
  std::string distribution, version;  // who asks: "transformers", "4.45.2"
  std::string root;                   // the package for whose sake it is installed: "mamba_ssm", "torch"
  std::string requirement;            // "tqdm>=4.27", without extras and marker
  std::string name, package;          // the distribution asked for, and what is imported of it
  bool guessed = false;               // `package` is the name of the distribution: no table has it
  // The line on which `import ROOT` comes to it, without a guard and a condition on the way; "" where there
  // is none.
  std::string file;
  unsigned line = 0;
};

}  // namespace scankit
