// SPDX-License-Identifier: Apache-2.0
#include "envspec/spec/fields.h"

namespace scankit {

const std::vector<Field<Spec>>& spec_fields() {
  static const std::vector<Field<Spec>> fields = {
      {"schema",
       FieldForm::Schema,
       {},
       "the form of this file; a scankit that knows only older ones says so",
       "1",
       &Spec::schema},
      {"driver",
       FieldForm::Range,
       {},
       "versions of the NVIDIA driver that will do",
       ">=580.65.06",
       &Spec::driver},
      {"gpus",
       FieldForm::Gpus,
       {},
       "the GPUs that it is for: torch and every extension must hold code for each",
       "sm_90",
       &Spec::gpus},
      {"python.implementation",
       FieldForm::Word,
       {"cpython", "pypy", "graalpy"},
       "which Python",
       "cpython",
       &Spec::implementation},
      {"python.version", FieldForm::Range, {}, "versions of Python that will do", "3.11.*", &Spec::python},
      {"torch.version", FieldForm::Range, {}, "versions of torch that will do", "2.11.*", &Spec::torch},
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
       "versions of it that will do",
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
       "the package that brings it",
       "mamba-ssm",
       &ExtensionSpec::distribution},
      {"version",
       FieldForm::Range,
       {},
       "versions of that package that will do",
       "2.2.*",
       &ExtensionSpec::version},
      {"torch_abi",
       FieldForm::Word,
       {"none", "stable", "full"},
       "what of torch it is linked to: nothing, the stable interface, or C++ names of certain releases",
       "none",
       &ExtensionSpec::torch_abi},
      {"torch",
       FieldForm::Range,
       {},
       "the releases of torch that it was built for, read from the names it needs",
       "2.11.*",
       &ExtensionSpec::torch},
      {"string_abi",
       FieldForm::Word,
       {"new", "old"},
       "C++ string ABI that it was built with",
       "new",
       &ExtensionSpec::string_abi},
      {"cuda", FieldForm::Range, {}, "the CUDA major whose libraries it needs", "13.*", &ExtensionSpec::cuda},
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
  if (group == "extensions") return "compiled extensions that must be there, by the name that Python imports";
  return "";
}

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

}  // namespace scankit
