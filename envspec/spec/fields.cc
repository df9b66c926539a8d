// SPDX-License-Identifier: Apache-2.0
#include "envspec/spec/fields.h"

#include <algorithm>
#include <charconv>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

// The table of fields and the forms of their values. spec.cc, the JSON Schema and the
// README's table all come from it, so that a new field is one row here.
namespace scankit::envspec {
namespace {

using yaml::shown;
using yaml::text_of;

// "sm_90", "compute_75", "sm_90a"; the pattern of form_pattern().
bool is_code(std::string_view text, bool gpu) {
  for (const std::string_view prefix : {"sm_", "compute_", "lto_"}) {
    if (!text.starts_with(prefix)) continue;
    if (gpu && prefix != "sm_") return false;
    text.remove_prefix(prefix.size());
    if (!gpu && (text.ends_with('a') || text.ends_with('f'))) text.remove_suffix(1);
    return (text.size() == 2 || text.size() == 3) && text[0] != '0' && std::ranges::all_of(text, is_digit);
  }
  return false;
}

std::string listed(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

}  // namespace

Result<VersionRange> form_of_range(const std::string& name, const YamlNode& node, const std::string& path,
                                   std::string_view example) {
  SCANKIT_TRY(const std::string text, text_of(name, node, path, example));
  auto range = VersionRange::parse(text);
  if (range) return range;
  Error error = wrong_form(name, node, path, range.error().message);
  error.hint = range.error().hint;
  return error;
}

Result<std::string> form_of_word(const std::string& name, const YamlNode& node, const std::string& path,
                                 const std::vector<std::string_view>& words, std::string_view example) {
  SCANKIT_TRY(std::string text, text_of(name, node, path, example));
  // A form without a list of words takes any name: FieldForm::Name.
  if (words.empty())
    return is_distribution_name(text)
               ? Result<std::string>(std::move(text))
               : wrong_form(name, node, path,
                            message("\"{}\" is not a name such as \"{}\"", shown(text), example));
  if (std::ranges::find(words, text) != words.end()) return text;
  return wrong_form(name, node, path, message("\"{}\" is not one of: {}", shown(text), listed(words)));
}

Result<std::vector<std::string>> form_of_list(const std::string& name, const YamlNode& node,
                                              const std::string& path, FieldForm form,
                                              std::string_view example) {
  if (node.kind != YamlNode::Kind::List)
    return wrong_form(name, node, path, message("expected a list, such as [{}]", example));
  std::vector<std::string> values;
  for (const YamlNode& item : node.items) {
    SCANKIT_TRY(std::string text, text_of(name, item, path, example));
    if (!is_code(text, form == FieldForm::Gpus))
      return wrong_form(
          name, item, path,
          form == FieldForm::Gpus
              ? message(
                    "\"{}\" is not a GPU; expected sm_ and its compute capability without the dot, such as "
                    "sm_90 for 9.0",
                    text)
              : message("\"{}\" is not device code such as sm_90 or compute_75", shown(text)));
    if (std::ranges::find(values, text) != values.end())
      return wrong_form(name, item, path, message("\"{}\" is in the list twice", shown(text)));
    values.push_back(std::move(text));
  }
  return values;
}

// The order of the rows is the order in the written file, in the schema and in the README. Fields of
// one group ("python.") must be adjacent: the writer opens a group when its first field comes.
const std::vector<Field<Spec>>& spec_fields() {
  static const std::vector<Field<Spec>> fields = {
      {"schema",
       FieldForm::Schema,
       {},
       "the schema version of this file; an older scankit rejects a newer one",
       "1",
       &Spec::schema},
      {"driver",
       FieldForm::Range,
       {},
       "accepted versions of the NVIDIA driver",
       ">=580.65.06",
       &Spec::driver},
      {"gpus",
       FieldForm::Gpus,
       {},
       "the GPUs that it is for: torch and every extension must contain code for each",
       "sm_90",
       &Spec::gpus},
      {"python.implementation",
       FieldForm::Word,
       {"cpython", "pypy", "graalpy"},
       "the implementation of Python",
       "cpython",
       &Spec::implementation},
      {"python.version", FieldForm::Range, {}, "accepted versions of Python", "3.11.*", &Spec::python},
      {"torch.version", FieldForm::Range, {}, "accepted versions of torch", "2.11.*", &Spec::torch},
      {"torch.cuda",
       FieldForm::Range,
       {},
       "CUDA releases that torch may be built with",
       "13.0.*",
       &Spec::cuda},
      {"torch.string_abi",
       FieldForm::Word,
       {"new", "old"},
       "C++ string ABI of torch's libraries",
       "new",
       &Spec::string_abi},
      {"host_compiler.kind",
       FieldForm::Word,
       {"gcc", "clang"},
       "C++ compiler that extensions are built with",
       "gcc",
       &Spec::compiler},
      {"host_compiler.version",
       FieldForm::Range,
       {},
       "accepted versions of that compiler",
       "12.*",
       &Spec::compiler_version},
  };
  return fields;
}

const std::vector<Field<ExtensionSpec>>& extension_fields() {
  static const std::vector<Field<ExtensionSpec>> fields = {
      {"distribution",
       FieldForm::Name,
       {},
       "the package that provides it",
       "mamba-ssm",
       &ExtensionSpec::distribution},
      {"version",
       FieldForm::Range,
       {},
       "accepted versions of that package",
       "2.2.*",
       &ExtensionSpec::version},
      {"from",
       FieldForm::Word,
       {"scankit", "source", "wheel"},
       "how env create gets it: scankit's own module, a build of the package's source archive, or a wheel",
       "scankit",
       &ExtensionSpec::from},
      {"package",
       FieldForm::Name,
       {},
       "with from: scankit, the package that imports the module, installed without its own build of it",
       "mamba-ssm",
       &ExtensionSpec::package},
      {"package_version",
       FieldForm::Range,
       {},
       "accepted versions of that package",
       "2.3.*",
       &ExtensionSpec::package_version},
      {"torch_abi",
       FieldForm::Word,
       {"none", "stable", "full"},
       "the part of torch that it is linked to: nothing, the stable interface, or C++ symbols of certain "
       "releases",
       "none",
       &ExtensionSpec::torch_abi},
      {"torch",
       FieldForm::Range,
       {},
       "the releases of torch that it was built for, derived from the symbols that it needs",
       "2.11.*",
       &ExtensionSpec::torch},
      {"string_abi",
       FieldForm::Word,
       {"new", "old"},
       "C++ string ABI that it was built with",
       "new",
       &ExtensionSpec::string_abi},
      {"cuda",
       FieldForm::Range,
       {},
       "the CUDA major version whose libraries it needs",
       "13.*",
       &ExtensionSpec::cuda},
      {"python_tag",
       FieldForm::Name,
       {},
       "the Pythons that its file name is for",
       "abi3",
       &ExtensionSpec::python_tag},
      {"code",
       FieldForm::Code,
       {},
       "device code in the file: sm_ for one GPU, compute_ for PTX",
       "sm_90",
       &ExtensionSpec::code},
  };
  return fields;
}

std::string_view group_text(std::string_view group) {
  if (group == "extensions")
    return "compiled extensions that must be installed, by the name that Python "
           "imports";
  return "";
}

// Editors check these patterns while the user types. They cannot express every rule of the parser, such
// as "no local part after .*", so the parser is stricter.
std::string_view form_pattern(FieldForm form) {
  switch (form) {
    case FieldForm::Schema:
    case FieldForm::Word:
      return "";
    case FieldForm::Range:
      return "^ *(==|!=|>=|<=|~=|>|<)? *[0-9]+(\\.[0-9]+)*([a-zA-Z0-9.+_-]*|\\.\\*) *"
             "(, *(==|!=|>=|<=|~=|>|<)? *[0-9]+(\\.[0-9]+)*([a-zA-Z0-9.+_-]*|\\.\\*) *)*$";
    case FieldForm::Name:
      return "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$";
    case FieldForm::Gpus:
      return "^sm_[1-9][0-9]{1,2}$";
    case FieldForm::Code:
      return "^(sm|compute|lto)_[1-9][0-9]{1,2}[af]?$";
  }
  return "";
}

}  // namespace scankit::envspec
