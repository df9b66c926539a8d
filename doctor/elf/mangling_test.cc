// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/mangling.h"

#include <gtest/gtest.h>

namespace scankit::elf {
namespace {

TEST(Mangling, TheQualifierDecidesWhoseNameItIs) {
  const std::pair<const char*, const char*> cases[] = {
      {"_ZN3c104cuda9SetDeviceEi", "torch"},
      {"_ZNK3c1010TensorImpl27throw_data_ptr_access_errorEv", "torch"},
      {"_ZN2at4_ops5zeros4callEN3c108ArrayRefINS2_6SymIntEEE", "torch"},
      {"_ZTIN3c105ErrorE", "torch"},
      {"_ZTVN5torch8autograd12AutogradMetaE", "torch"},
      {"_ZGVZN3c106ivalue6FutureEvE1x", "torch"},
      {"_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb", "torch"},
      {"_ZNSt6vectorIN2at6TensorESaIS1_EE9push_backERKS1_", "torch"},
      {"THPVariableClass", "torch"},
      {"aoti_torch_empty_strided", "torch"},
      {"_Z24silu_and_mul_nvfp4_quantRN2at6TensorES1_S1_S1_", "own"},  // at:: only in the parameters
      {"_ZN4vllm6kernelIN2at4HalfEEEvv", "own"},
      {"_Z18selective_scan_cudaI6float1EvR13SSMParamsBaseP11CUstream_st", "own"},
      {"PyObject_Str", "python"},
      {"_Py_Dealloc", "python"},
      {"cudaLaunchKernel", "cuda"},
      {"cuLaunchKernel", "cuda"},
      {"__nvJitLinkComplete_12_4", "cuda"},
      {"curve_of_my_own", "own"},
      {"_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv", "libstdc++"},
      {"_ZTVN10__cxxabiv120__si_class_type_infoE", "libstdc++"},
      {"_Znwm", "libstdc++"},
      {"__cxa_throw", "libstdc++"}};
  for (const auto& [name, owner] : cases) EXPECT_EQ(symbol_owner(name, ""), owner) << name;
}

TEST(Mangling, AVersionDecidesBeforeTheName) {
  EXPECT_EQ(symbol_owner("cudaLibraryGetKernel", "libcudart.so.12"), "cuda");
  EXPECT_EQ(symbol_owner("fmod", "GLIBC_2.38"), "libc");
  EXPECT_EQ(symbol_owner("_ZSt4cout", "GLIBCXX_3.4"), "libstdc++");
  EXPECT_EQ(symbol_owner("something", "CXXABI_1.3.13"), "libstdc++");
}

TEST(Mangling, OverloadsShareAPrefix) {
  EXPECT_EQ(overload_prefix("_ZN3c104cuda9SetDeviceEi"), "_ZN3c104cuda9SetDevice");
  EXPECT_EQ(overload_prefix("_ZN3c104cuda9SetDeviceEab"), "_ZN3c104cuda9SetDevice");
  EXPECT_EQ(overload_prefix("_ZN3c105ErrorC2ENS_14SourceLocationESs"), "_ZN3c105ErrorC");
  EXPECT_EQ(overload_prefix("_ZNK2at10TensorBase8data_ptrIfEEPT_v"), "_ZNK2at10TensorBase8data_ptr");
  EXPECT_EQ(overload_prefix("_ZN3c1013MessageLogger6streamB5cxx11Ev"), "_ZN3c1013MessageLogger6stream");
  EXPECT_EQ(overload_prefix("_Z3fooi"), "_Z3foo");
  EXPECT_EQ(overload_prefix("memcpy"), "");
  EXPECT_EQ(overload_prefix("_ZN999999999999999999999x"), "");
}

TEST(Mangling, QualifiedNamesLeaveParametersAndResultsOut) {
  EXPECT_EQ(qualified_name("c10::cuda::SetDevice(int)"), "c10::cuda::SetDevice");
  EXPECT_EQ(qualified_name("float* at::TensorBase::data_ptr<float>() const"),
            "at::TensorBase::data_ptr<float>");
  EXPECT_EQ(qualified_name("foo::operator()(int)"), "foo::operator()");
  EXPECT_EQ(qualified_name("void f<void (*)(int)>(int)"), "f<void (*)(int)>");
  EXPECT_EQ(qualified_name("(anonymous namespace)::g(int)"), "(anonymous namespace)::g");
  EXPECT_EQ(qualified_name("a::operator<(b)"), "a::operator<");
}

// Pairs that differ in the ABI alone, substitutions renumbered and all, as torch 2.5 and 2.7 export them.
TEST(Mangling, SeesTheSameFunctionBehindBothStringAbis) {
  const std::pair<const char*, const char*> same[] = {
      {"_ZN3c105ErrorC2ENS_14SourceLocationESs",
       "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"},
      {"_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
       "_ZN3c106detail14torchCheckFailEPKcS2_jRKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"},
      {"_ZN5torch3jit17parseSchemaOrNameERKSsb",
       "_ZN5torch3jit17parseSchemaOrNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb"},
      {"_ZN3c1013MessageLogger6streamEv", "_ZN3c1013MessageLogger6streamB5cxx11Ev"},
      {"_ZN5torch1fESsN2at6TensorES1_",
       "_ZN5torch1fENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEN2at6TensorES7_"}};
  for (const auto& [old_name, new_name] : same) {
    const std::string a = demangle(old_name), b = demangle(new_name);
    EXPECT_TRUE(differ_only_in_string_abi(a, b)) << a << "\n" << b;
    EXPECT_EQ(string_abi_in(b), StringAbi::New) << b;
  }
  EXPECT_EQ(string_abi_in(demangle(same[0].first)), StringAbi::Old);
  EXPECT_EQ(string_abi_in("c10::cuda::SetDevice(int)"), StringAbi::Neither);
  EXPECT_EQ(string_abi_in("f(std::string_view)"), StringAbi::Neither);
}

TEST(Mangling, AnotherSignatureIsNoAbiMatter) {
  EXPECT_FALSE(
      differ_only_in_string_abi(demangle("_ZN3c104cuda9SetDeviceEi"), demangle("_ZN3c104cuda9SetDeviceEab")));
  EXPECT_FALSE(differ_only_in_string_abi(demangle("_ZN3c105ErrorC2ENS_14SourceLocationESs"),
                                         demangle("_ZN3c105ErrorC1ENS_14SourceLocationERKSs")));
  EXPECT_FALSE(differ_only_in_string_abi("same(std::string)", "same(std::string)"));
}

// Each pair names the one before it twice: 2 to the 60th characters if written out.
TEST(Mangling, ANameThatUnfoldsForeverIsLeftAsItIs) {
  std::string name = "_Z1f";
  constexpr const char* kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string type = "3barI", previous = "i";
  name += "N1aI" + std::string("iiEE");
  for (int i = 0; i < 30; ++i) {
    const std::string last = "S" + (i == 0 ? std::string("0_") : std::string(1, kDigits[i]) + "_");
    name += "S_I" + last + last + "E";
  }
  const std::string text = demangle(name);
  EXPECT_LE(text.size(), std::max<std::size_t>(name.size(), 64u << 10));
  EXPECT_EQ(demangle(std::string(100000, 'x')), std::string(100000, 'x'));
}

}  // namespace
}  // namespace scankit::elf
