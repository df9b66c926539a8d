// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "validate/run/children.h"

namespace scankit::validate {
namespace {

// As mamba_ssm's tests/ops/test_selective_scan.py has it: the full list above the short one, in either order.
constexpr const char* kSource = R"(import torch
# @pytest.mark.parametrize('wtype', [torch.float32, torch.complex64])
@pytest.mark.parametrize('wtype', [torch.float32])
@pytest.mark.parametrize("seqlen", [128, 256])
# @pytest.mark.parametrize("seqlen", [8])
# @pytest.mark.parametrize("never_used", [8])
@pytest.mark.parametrize('has_z', [True])
def test_scan(wtype, seqlen, has_z):
    # @pytest.mark.parametrize('has_z', [False])
    pass
# @pytest.mark.parametrize('has_z', [False])
x = 1
@pytest.mark.parametrize('has_z', [True])
def test_other(has_z):
    pass
)";

TEST(UpstreamTests, AddsTheValuesThatAreComments) {
  int enabled = 0;
  const std::string text = with_commented_parameters(kSource, enabled);
  EXPECT_EQ(enabled, 2);
  EXPECT_NE(text.find("\n@pytest.mark.parametrize('wtype',list(dict.fromkeys([torch.float32] + "
                      "[torch.float32, torch.complex64])))\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\n@pytest.mark.parametrize('seqlen',list(dict.fromkeys([128, 256] + [8])))\n"),
            std::string::npos)
      << text;
}

TEST(UpstreamTests, TakesNoCommentOfAnotherFunctionOrOfNoDecorator) {
  int enabled = 0;
  const std::string text = with_commented_parameters(kSource, enabled);
  EXPECT_EQ(text.find("'has_z',list"), std::string::npos) << text;
  EXPECT_EQ(text.find("'never_used',list"), std::string::npos) << text;
}

TEST(UpstreamTests, LeavesAFileWithoutSuchCommentsAsItIs) {
  int enabled = 0;
  const std::string plain = "def test_one():\n    pass\n";
  EXPECT_EQ(with_commented_parameters(plain, enabled), plain);
  EXPECT_EQ(enabled, 0);
}

}  // namespace
}  // namespace scankit::validate
