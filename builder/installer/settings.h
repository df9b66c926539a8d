// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

// Settings of pip (INI) and uv (TOML) that name a place for packages, as far as their grammars decide which key a line
// belongs to. Values are skipped. What the program itself refuses to read may be read in any way here.
namespace scankit::installer {

// `target`, `prefix`, `root` or `python` in one of the sections, as "[install] target"; "" where none has one. As
// configparser reads it, and pip its keys: "--Target" is "target", and one without a value counts for nothing.
std::string place_in_ini(const std::string& text, const std::vector<std::string>& sections);

// `target` or `prefix` in the table, as "[tool.uv.pip] target", however it is written: in a header, with dots, in
// quotes, or as an inline table.
std::string place_in_toml(const std::string& text, const std::vector<std::string>& table);

}  // namespace scankit::installer
