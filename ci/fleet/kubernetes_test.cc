// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "ci/fleet/commands.h"

namespace scankit::fleet {
namespace {

// Line ends of YAML 1.1, all of them, and what would be a second document or another key.
const std::string kHostile =
    "a\napiVersion: v1\r\nkind: Secret\n---\n#\xC2\x85x: 1\xE2\x80\xA8y: 2\xE2\x80\xA9z: \"3\" # ' \\ {}";

TEST(KubernetesManifest, TakesNoYamlFromNames) {
  RunOptions options;
  options.manifest = {.image = kHostile, .claim = kHostile, .name_space = kHostile};
  options.manifest.node_selector = {"k: v\nkind=" + kHostile};
  options.out = kHostile;
  const std::string text = kubernetes_manifest(options, {"doctor", kHostile}, "f1");
  const auto documents = YAML::LoadAll(text);
  ASSERT_EQ(documents.size(), 1u);
  const YAML::Node& root = documents[0];
  std::vector<std::string> keys;
  for (const auto& pair : root) keys.push_back(pair.first.as<std::string>());
  EXPECT_EQ(keys, (std::vector<std::string>{"apiVersion", "kind", "metadata", "spec"}));
  EXPECT_EQ(root["kind"].as<std::string>(), "DaemonSet");
  EXPECT_EQ(root["metadata"]["namespace"].as<std::string>(), kHostile);
  const YAML::Node pod = root["spec"]["template"]["spec"];
  EXPECT_EQ(pod["nodeSelector"]["k: v\nkind"].as<std::string>(), kHostile);
  EXPECT_EQ(pod["containers"][0]["image"].as<std::string>(), kHostile);
  EXPECT_EQ(pod["volumes"][0]["persistentVolumeClaim"]["claimName"].as<std::string>(), kHostile);
  // And for a parser that ends lines where yaml-cpp does not.
  for (const char* end : {"\r", "\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"})
    EXPECT_EQ(text.find(end), std::string::npos);
  for (std::size_t at = 0; at < text.find("apiVersion: \"apps/v1\""); at = text.find('\n', at) + 1)
    EXPECT_EQ(text[at], '#') << text.substr(at, 80);
}

}  // namespace
}  // namespace scankit::fleet
