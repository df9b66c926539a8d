// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/yaml.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "ci/fleet/commands.h"
#include "ci/fleet/node_result.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/model/json.h"
#include "doctor/report/escape.h"

// `scankit fleet run --k8s`: writes a manifest and says what to do with it, because applying it is the
// user's decision. The manifest is built as JSON and written as YAML.
namespace scankit::fleet {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kResults = "/results";  // inside the container
constexpr const char* kLabel = "scankit-fleet";

void emit(YAML::Emitter& out, const Json& json) {
  if (json.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, value] : json.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, value);
    }
    out << YAML::EndMap;
  } else if (json.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& value : json) emit(out, value);
    out << YAML::EndSeq;
  } else if (json.is_string()) {
    // Quoted, all of them: "7" and "no" are texts to Kubernetes.
    out << YAML::DoubleQuoted << json.get<std::string>();
  } else {
    out << dump_json(json);
  }
}

// The node's name comes from the downward API (spec.nodeName): inside a pod the host name is that
// of the pod.
Json container(const RunOptions& options, const std::vector<std::string>& command, const std::string& fleet) {
  const KubernetesOptions& k = options.manifest;
  std::vector<std::string> words = {"fleet",
                                    "node",
                                    "--fleet",
                                    fleet,
                                    "--timeout",
                                    std::to_string(options.timeout),
                                    "--command-sha256",
                                    command_hash(command, input_hashes(command))};
  if (!k.claim.empty()) words.insert(words.end(), {"--out", kResults});
  if (k.kind == "daemonset") words.emplace_back("--stay");
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  Json json{
      {"name", "scankit"},
      {"image", k.image},
      {"command", {options.scankit.empty() ? "scankit" : options.scankit}},
      {"args", words},
      {"env", {{{"name", "SCANKIT_NODE"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "spec.nodeName"}}}}}}}},
      {"securityContext", {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", {"ALL"}}}}}}};
  if (k.gpus > 0) json["resources"] = {{"limits", {{"nvidia.com/gpu", std::to_string(k.gpus)}}}};
  if (!k.claim.empty()) json["volumeMounts"] = Json::array({{{"name", "results"}, {"mountPath", kResults}}});
  return json;
}

Json pod(const RunOptions& options, const std::vector<std::string>& command, const std::string& fleet) {
  const KubernetesOptions& k = options.manifest;
  Json spec{{"automountServiceAccountToken", false}, {"terminationGracePeriodSeconds", 5}};
  // Tolerates every taint: a node that is cordoned or tainted is one that should be looked at.
  spec["tolerations"] = Json::array({{{"operator", "Exists"}}});
  for (const std::string& selector : k.node_selector)
    spec["nodeSelector"][selector.substr(0, selector.find('='))] = selector.substr(selector.find('=') + 1);
  // A job's pods are spread over the nodes by anti-affinity: one pod for each host.
  if (k.kind == "job") {
    spec["restartPolicy"] = "Never";
    spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
        Json::array({{{"labelSelector", {{"matchLabels", {{kLabel, fleet}}}}},
                      {"topologyKey", "kubernetes.io/hostname"}}});
  }
  spec["containers"] = Json::array({container(options, command, fleet)});
  if (!k.claim.empty())
    spec["volumes"] =
        Json::array({{{"name", "results"}, {"persistentVolumeClaim", {{"claimName", k.claim}}}}});
  return {{"metadata", {{"labels", {{kLabel, fleet}}}}}, {"spec", spec}};
}

Json manifest(const RunOptions& options, const std::vector<std::string>& command, const std::string& fleet) {
  const KubernetesOptions& k = options.manifest;
  Json metadata{{"name", "scankit-fleet-" + fleet}, {"labels", {{kLabel, fleet}}}};
  if (!k.name_space.empty()) metadata["namespace"] = k.name_space;
  Json spec{{"template", pod(options, command, fleet)}};
  if (k.kind == "daemonset") {
    spec["selector"] = {{"matchLabels", {{kLabel, fleet}}}};
  } else {
    spec["completionMode"] = "Indexed";
    spec["completions"] = spec["parallelism"] = k.nodes;
    spec["backoffLimit"] = k.nodes;  // one node's crash must not end the others
    spec["activeDeadlineSeconds"] = node_deadline(options.timeout).count() + 600;  // and to pull the image
  }
  return {{"apiVersion", k.kind == "daemonset" ? "apps/v1" : "batch/v1"},
          {"kind", k.kind == "daemonset" ? "DaemonSet" : "Job"},
          {"metadata", metadata},
          {"spec", spec}};
}

// Comments at the top of the manifest.
std::string what_to_do(const RunOptions& options, const std::string& fleet) {
  const std::string& given = options.manifest.name_space;
  const std::string space = given.empty() ? "" : " -n " + shell_quoted(given);
  const std::string file = options.out.empty() || options.out == "-" ? "FILE" : shell_quoted(options.out);
  std::string lines;
  // A line end in a name would end the comment, and the rest of the name be a part of the manifest.
  const auto line = [&](const std::string& words) { lines += "# " + report::plain(words, false) + "\n"; };
  line(say("One result for each node, for: scankit fleet report DIR --expect @nodes"));
  line("  kubectl apply -f " + file);
  line("  kubectl get nodes -o name > nodes");
  if (options.manifest.claim.empty()) {
    line(say("No volume is shared: each node's result is in its log. When all pods have answered:"));
    line(fmt::format("  kubectl logs{} -l {}={} --prefix --tail=-1 --max-log-requests=1000 > DIR/fleet.log",
                     space, kLabel, fleet));
  } else {
    line(
        say("The results are in the volume of the claim {}: DIR is its mount point", options.manifest.claim));
  }
  line("  kubectl delete -f " + file);
  return lines;
}

Result<void> checked(const KubernetesOptions& options) {
  if (options.image.empty())
    return Error{Errc::InvalidArgument, message("--image is missing"),
                 message("choose an image that contains scankit and the Python to look at")};
  if (options.kind == "job" && options.nodes == 0)
    return Error{Errc::InvalidArgument, message("--k8s-nodes is missing"),
                 message("give the number of nodes of the job")};
  for (const std::string& selector : options.node_selector)
    if (selector.find('=') == std::string::npos || selector.front() == '=')
      return Error{Errc::InvalidArgument, message("--node-selector {} is not KEY=VALUE", selector), ""};
  return {};
}

}  // namespace

std::string kubernetes_manifest(const RunOptions& options, const std::vector<std::string>& command,
                                const std::string& fleet) {
  YAML::Emitter out;
  // U+2028 ends a line for kubectl's parser, and yaml-cpp writes it as it is.
  out.SetOutputCharset(YAML::EscapeNonAscii);
  emit(out, manifest(options, command, fleet));
  return what_to_do(options, fleet) + out.c_str() + "\n";
}

int run_kubernetes(const RunOptions& options) {
  const auto command = checked_command(options.command);
  const auto sound = command ? checked(options.manifest) : Result<void>(command.error());
  if (!sound) {
    cli::report_error(sound.error());
    return kExitUsage;
  }
  const std::string text = kubernetes_manifest(options, *command, fresh_id());
  if (options.out.empty() || options.out == "-") {
    std::cout << text << std::flush;
    return std::cout ? kExitClean : kExitInternal;
  }
  const auto written = write_output(options.out, text);
  if (written) return kExitClean;
  cli::report_error(written.error());
  return cli::exit_status_of(written.error());
}

}  // namespace scankit::fleet
