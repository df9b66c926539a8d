// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/redact.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "doctor/model/finding.h"
#include "doctor/model/snapshot.h"

namespace scankit {
namespace {
using Json = nlohmann::json;

TEST(Redacted, HidesWhoseFoldersTheyAreAndKeepsThemApart) {
  Snapshot snapshot;
  snapshot.environment["LD_LIBRARY_PATH"] = "/home/alice/lib:/opt/x:/home/bob/lib:/root";
  snapshot.environment["PYTHONPATH"] = "/data/rooted/home/carol:/home/alice";
  const Snapshot clean = redacted(snapshot);
  EXPECT_EQ(clean.environment.at("LD_LIBRARY_PATH"), "/home/user/lib:/opt/x:/home/user2/lib:/root");
  EXPECT_EQ(clean.environment.at("PYTHONPATH"), "/data/rooted/home/user3:/home/user");
}

TEST(Redacted, KeepsGpusApartAndTheVariableThatNamesOne) {
  Snapshot snapshot;
  const std::string first = "GPU-11111111-2222-3333-4444-555555555555",
                    second = "GPU-11111111-9999-3333-4444-555555555555";
  snapshot.gpus = Probed<std::vector<Gpu>>::of(
      {{.name = "NVIDIA H200", .uuid = first}, {.name = "NVIDIA H200", .uuid = second}});
  snapshot.environment["CUDA_VISIBLE_DEVICES"] = "GPU-11111111-9";
  const Snapshot clean = redacted(snapshot);
  EXPECT_EQ(clean.gpus.value[0].name, "NVIDIA H200");
  EXPECT_NE(clean.gpus.value[0].uuid, clean.gpus.value[1].uuid);
  EXPECT_EQ(clean.environment.at("CUDA_VISIBLE_DEVICES"), clean.gpus.value[1].uuid);
  EXPECT_EQ(snapshot_to_json(clean).find("11111111"), std::string::npos);
}

TEST(Redacted, HidesWhatTheWordsOfACommandTell) {
  Snapshot snapshot;
  snapshot.command = RanCommand{.words = {"/home/alice/v/bin/python", "train.py", "--hf-token", "whatever",
                                          "--lr", "0.1", "--token", "--password=hunter2"},
                                .directory = "/home/alice/x",
                                .interpreters = {{.path = "/home/alice/v/bin/python"}},
                                .at = CommandPlace{.file = "/home/alice/x/train.py", .source = "alice()"}};
  const RanCommand clean = *redacted(snapshot).command;
  EXPECT_EQ(clean.words, (std::vector<std::string>{"/home/user/v/bin/python", "train.py", "--hf-token",
                                                   "[redacted]", "--lr", "0.1", "--token", "[redacted]"}));
  EXPECT_EQ(clean.directory, "/home/user/x");
  EXPECT_EQ(clean.interpreters[0].path, "/home/user/v/bin/python");
  EXPECT_EQ(clean.at->file, "/home/user/x/train.py");
}

TEST(Redacted, LeavesWordsThatAreFacts) {
  Snapshot snapshot;
  snapshot.modules = {"selective_scan_cuda"};
  snapshot.distributions = Probed<std::vector<Distribution>>::of({{.name = "mamba"}});
  snapshot.torch = Probed<Torch>::of({.version = "2.11.0+cu130"});
  snapshot.environment["PYTHONPATH"] = "/scratch/ann/annotations:/opt/mamba";
  const Snapshot clean = redacted(snapshot, {.users = {"ann", "mamba", "root"}});
  EXPECT_EQ(clean.environment.at("PYTHONPATH"), "/scratch/user/annotations:/opt/mamba");
  EXPECT_EQ(clean.distributions.value[0].name, "mamba");
  EXPECT_EQ(clean.torch.value.version, "2.11.0+cu130");
}

TEST(Redacted, HidesCredentialsByNameByFormAndInUrls) {
  Snapshot snapshot;
  snapshot.environment = {
      {"HF_TOKEN", "whatever"},
      {"PIP_INDEX_URL", "https://bob:hunter2@index.corp.example:8443/simple?token=abc&x=1"},
      {"NOTE", "ghp_0123456789abcdefghij and hf_abcdefghijklmnopqrstuvwxyz0123, Bearer abc.def"},
      {"PATH", "/usr/bin:/opt/pypi-tools:/home/bob/bin"}};
  const Snapshot clean = redacted(snapshot);
  EXPECT_EQ(clean.environment.at("HF_TOKEN"), "[redacted]");
  EXPECT_EQ(clean.environment.at("PIP_INDEX_URL"), "https://host/simple?token=[redacted]&x=1");
  EXPECT_EQ(clean.environment.at("NOTE"), "[redacted] and [redacted], Bearer [redacted]");
  EXPECT_EQ(clean.environment.at("PATH"), "/usr/bin:/opt/pypi-tools:/home/user/bin");
}

std::string clean_note(const std::string& note) {
  Snapshot snapshot;
  snapshot.environment["NOTE"] = note;
  return redacted(snapshot).environment.at("NOTE");
}

TEST(Redacted, KnowsHowSecretsAreWritten) {
  for (const char* text :
       {"password: hunter2", "password=\"hunter2\"", "PASSWORD = 'hunter2'", "{\"api_key\": \"hunter2\"}",
        "twine upload --password hunter2 x", "--hub-token=hunter2", "HF_TOKEN=hunter2 pip",
        "x?access_key=hunter2&y=1", "Authorization: Basic hunter2", "authorization: Bearer hunter2",
        "https://a:hunter2@h/x", "git clone https://hunter2@h.example/x"})
    EXPECT_EQ(clean_note(text).find("hunter2"), std::string::npos) << clean_note(text);
  for (const char* text : {"unexpected token in expression", "error: expected ';' before 'token' here",
                           "bearer of news", "secretary of state"})
    EXPECT_EQ(clean_note(text), text == std::string("bearer of news") ? "bearer [redacted] news" : text);
}

TEST(Redacted, KnowsMailAddressesAndPromptsFromVersions) {
  EXPECT_EQ(clean_note("write to ann.lee@corp.example, please"), "write to user@host, please");
  EXPECT_EQ(clean_note("zelda@login03:~/x$ ssh login03; cd /mnt/zelda"),
            "user@host:~/x$ ssh host; cd /mnt/user");
  EXPECT_EQ(clean_note("C:\\Users\\Zelda\\x /users/quentin/y"), "C:\\Users\\user2\\x /users/user/y");
  for (const char* text :
       {"gcc@12.2.0", "memcpy@@GLIBC_2.14", "_ZN3c105ErrorC1Ev@VERS_1.0", "pkg @ file", "a@b"})
    EXPECT_EQ(clean_note(text), text);
}

// Every string of a recorded machine gets the same secrets, so that no field is forgotten, nor one that is
// added later.
void plant(Json& json, const std::string& secret, std::size_t& planted) {
  if (json.is_string()) {
    json = json.get<std::string>() + secret;
    ++planted;
  } else if (json.is_structured()) {
    for (auto& entry : json) plant(entry, secret, planted);
  }
}

TEST(Redacted, ForgetsNoStringOfTheSnapshot) {
  std::ifstream file(SCANKIT_SOURCE_DIR "/doctor/tests/machines/cpu_torch211/snapshot.json");
  Json json = Json::parse(file);
  std::size_t planted = 0;
  for (auto& [name, value] : json.items())
    for (auto& [key, inner] : value.items())
      if (key == "value" || name == "environment")
        plant(inner,
              " /home/zelda/x zelda@node17.corp.example "
              "https://zelda:pw99@idx.corp.example/s password=pw99 ghp_0123456789abcdefSECRET "
              "GPU-12345678-aaaa-bbbb-cccc-123456789abc /scratch/zelda/y",
              planted);
  ASSERT_GT(planted, 300u);
  const auto dirty = snapshot_from_json(json.dump());
  ASSERT_TRUE(dirty) << english(dirty.error().message);
  const std::string clean = snapshot_to_json(redacted(*dirty, {.hosts = {"node17.corp.example"}}));
  for (const char* secret : {"zelda", "node17", "idx.corp", "pw99", "SECRET", "12345678-aaaa"})
    EXPECT_EQ(clean.find(secret), std::string::npos)
        << secret << ": " << clean.substr(clean.find(secret), 80);
}

TEST(Redacted, KnowsTheOtherNamesOfTheOwner) {
  Snapshot snapshot;
  snapshot.environment["PATH"] = "/data/people/zelda/bin:/mnt/node17/x";
  const Snapshot clean = redacted(
      snapshot, {.users = {"zelda"}, .homes = {"/data/people/zelda"}, .hosts = {"node17.cluster.example"}});
  EXPECT_EQ(clean.environment.at("PATH"), "/home/owner/bin:/mnt/host/x");
}

// Cron, systemd and containers set no $USER.
TEST(Redacted, KnowsThePeopleOfPasswd) {
  Owner owner;
  add_accounts(
      "root:x:0:0:root:/root:/bin/bash\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\n"
      "nobody:x:65534:65534:nobody:/nonexistent:/bin/sh\ndamaged\nx:y:z\n"
      "zelda:x:1001:1001:Zelda Fitz,,,:/data/people/zelda:/bin/bash\nsvc:x:400:400::/srv/svc:/bin/sh",
      400, owner);
  EXPECT_EQ(owner.users, (std::vector<std::string>{"zelda", "Zelda Fitz", "svc"}));
  EXPECT_EQ(owner.homes, (std::vector<std::string>{"/data/people/zelda", "/srv/svc"}));
}

TEST(Redacted, HidesInErrorsToo) {
  const Error error =
      redacted(Error{Errc::NotFound, "/data/people/zelda/env/bin/python: zelda may not", "ask zelda"},
               {.users = {"zelda"}, .homes = {}, .hosts = {}});
  EXPECT_EQ(error.message, "/data/people/user/env/bin/python: user may not");
  EXPECT_EQ(error.hint, "ask user");
}

TEST(Redacted, GivesOneThingOneNameInFactsAndFindings) {
  Report report;
  report.snapshot.environment = {{"MASTER_ADDR", "node17"},
                                 {"PIP_INDEX_URL", "https://a.corp.example/simple"}};
  report.snapshot.log = Probed<Log>::of({});
  report.snapshot.log.value.prompts = {"zelda@login03:~"};
  Finding finding;
  finding.summary = "node17 cannot reach b.corp.example or a.corp.example; /mnt/zelda on login03";
  report.findings = {finding};
  const Report clean = redacted(report);
  const std::string node = clean.snapshot.environment.at("MASTER_ADDR"),
                    index = clean.snapshot.environment.at("PIP_INDEX_URL");
  EXPECT_NE(node, "node17");
  const std::string summary = english(clean.findings.front().summary);
  EXPECT_TRUE(summary.starts_with(node + " cannot reach host")) << summary;
  EXPECT_NE(summary.find(" or " + index.substr(8, index.find("/simple") - 8) + "; /mnt/user on host"),
            std::string::npos)
      << summary << "; " << index;
}

}  // namespace
}  // namespace scankit
