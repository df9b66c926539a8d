// SPDX-License-Identifier: Apache-2.0
#include "builder/helpers/fetch/curl_api.h"

#include "builder/helpers/gpu/library.h"

namespace scankit_fetch {
namespace {

// The distributions' flavours by TLS library; all have the same functions.
constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

}  // namespace

bool load_curl(CurlApi* api) {
  using scankit_gpu::bind;
  void* library = nullptr;
  for (const char* name : kNames)
    if (library == nullptr) library = scankit_gpu::load_library(name);
  if (library == nullptr) {
    scankit_gpu::complain("libcurl.so.4 is not here, nor another build of it: {}", scankit_gpu::load_error());
    return false;
  }
  if (bind(library, "curl_global_init", &api->global_init) &&
      bind(library, "curl_easy_init", &api->easy_init) &&
      bind(library, "curl_easy_cleanup", &api->easy_cleanup) &&
      bind(library, "curl_easy_reset", &api->easy_reset) &&
      bind(library, "curl_easy_setopt", &api->easy_setopt) &&
      bind(library, "curl_easy_perform", &api->easy_perform) &&
      bind(library, "curl_easy_getinfo", &api->easy_getinfo) &&
      bind(library, "curl_easy_strerror", &api->easy_strerror) &&
      bind(library, "curl_slist_append", &api->slist_append) &&
      bind(library, "curl_slist_free_all", &api->slist_free_all))
    return true;
  scankit_gpu::complain("libcurl.so.4 lacks a function: {}", scankit_gpu::load_error());
  return false;
}

}  // namespace scankit_fetch
