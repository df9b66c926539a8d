// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/model/redact_edits.h"

// Finds in a text what tells of a person or a machine. What each form promises: doctor/model/README.md.
namespace scankit::redaction {

// The names in home folders, "/home/NAME", "C:\Users\NAME", "~NAME", "/tmp/pip-NAME-build".
std::vector<Place> find_home_names(std::string_view text);

struct Url {
  Place authority, host;      // user:password@host:port; the host without its port
  std::vector<Place> tokens;  // parts of the path that look like credentials
};
// scheme://..., and "user:password@host" without a scheme.
std::vector<Url> find_urls(std::string_view text);

struct Login {
  Place user, host;
  bool prompt = false;  // "user@host:~/x$", "[user@host x]$": both names are certain; else a mail address
};
std::vector<Login> find_logins(std::string_view text);

// Hosts that the words around them show to be hosts ("srun: error: node17:"), and fully qualified names.
std::vector<Place> find_hosts(std::string_view text);
// Whether a name may be replaced wherever it stands. "login" is a word of many sentences, "login03" is not.
bool is_distinct_host(std::string_view name);

struct Address {
  Place place;
  bool mac = false;
};
// IPv4, IPv6 and MAC addresses. `is_fact` knows the versions and packages that the facts name: "12.4.5.8" is
// cuBLAS. Loopback says nothing and is left out.
std::vector<Address> find_addresses(std::string_view text,
                                    const std::function<bool(std::string_view)>& is_fact);
bool is_ipv4(std::string_view text);

// Values of passwords, tokens, signatures and keys, by the name before them or by their own form.
std::vector<Place> find_secrets(std::string_view text);

}  // namespace scankit::redaction
