// SPDX-License-Identifier: Apache-2.0
// `scankit-gpu nvrtc` compiles one text for one architecture;
// `scankit-gpu nvrtc-info` says what an NVRTC can do.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "builder/helpers/gpu/library.h"

namespace scankit_gpu {
namespace {

using Program = struct NvrtcProgram*;

// Filled by bind_all(). The int results are nvrtcResult, where 0 is NVRTC_SUCCESS.
struct Nvrtc {
  const char* (*error_string)(int);
  int (*version)(int*, int*);
  int (*arch_count)(int*);
  int (*archs)(int*);
  int (*create)(Program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(Program, int, const char* const*);
  int (*destroy)(Program*);
  int (*log_size)(Program, size_t*);
  int (*log)(Program, char*);
  int (*ptx_size)(Program, size_t*);
  int (*ptx)(Program, char*);
  int (*cubin_size)(Program, size_t*);
  int (*cubin)(Program, char*);
};

constexpr int kMaxOptions = 64;

// The command line, as pointers into argv; null if an option was not given.
struct Request {
  const char* library = nullptr;
  const char* builtins = nullptr;  // null: the library finds its own
  const char* arch = nullptr;
  const char* out = nullptr;
  const char* source = nullptr;
  bool ptx = false, cubin = false;
  const char* options[kMaxOptions] = {};  // for NVRTC, unchanged
  int option_count = 0;
};

// Any word with a leading '-' that is not one of ours is an option for NVRTC. The last slot of `options`
// stays free for --gpu-architecture, which compile() appends.
bool read_request(int argc, char** argv, Request* request) {
  struct Named {
    const char* name;
    const char** value;
  };
  const Named named[] = {{"--lib", &request->library},
                         {"--builtins", &request->builtins},
                         {"--arch", &request->arch},
                         {"--out", &request->out}};
  for (int i = 0; i < argc; ++i) {
    bool taken = false;
    for (const Named& entry : named) {
      if (strcmp(argv[i], entry.name) != 0) continue;
      if (++i >= argc) return false;
      *entry.value = argv[i];
      taken = true;
      break;
    }
    if (taken) continue;
    if (strcmp(argv[i], "--ptx") == 0) {
      request->ptx = true;
    } else if (strcmp(argv[i], "--cubin") == 0) {
      request->cubin = true;
    } else if (argv[i][0] == '-') {
      if (request->option_count >= kMaxOptions - 1) return false;
      request->options[request->option_count++] = argv[i];
    } else {
      request->source = argv[i];
    }
  }
  return request->library != nullptr;
}

// nvrtcGetSupportedArchs sets the floor: NVRTC has it since CUDA 11.2.
bool bind_all(void* library, Nvrtc* nvrtc) {
  return bind(library, "nvrtcGetErrorString", &nvrtc->error_string) &&
         bind(library, "nvrtcVersion", &nvrtc->version) &&
         bind(library, "nvrtcGetNumSupportedArchs", &nvrtc->arch_count) &&
         bind(library, "nvrtcGetSupportedArchs", &nvrtc->archs) &&
         bind(library, "nvrtcCreateProgram", &nvrtc->create) &&
         bind(library, "nvrtcCompileProgram", &nvrtc->compile) &&
         bind(library, "nvrtcDestroyProgram", &nvrtc->destroy) &&
         bind(library, "nvrtcGetProgramLogSize", &nvrtc->log_size) &&
         bind(library, "nvrtcGetProgramLog", &nvrtc->log) &&
         bind(library, "nvrtcGetPTXSize", &nvrtc->ptx_size) && bind(library, "nvrtcGetPTX", &nvrtc->ptx) &&
         bind(library, "nvrtcGetCUBINSize", &nvrtc->cubin_size) &&
         bind(library, "nvrtcGetCUBIN", &nvrtc->cubin);
}

int open_nvrtc(const Request& request, Nvrtc* nvrtc) {
  // The 13.0 wheel's libnvrtc has no RUNPATH and asks the loader for libnvrtc-builtins by its bare name, in
  // vain; a copy that is in the process already satisfies that.
  if (request.builtins != nullptr && load_library(request.builtins) == nullptr) {
    report_error("cannot load {}: {}", request.builtins, load_error());
    return kAbsent;
  }
  void* library = load_library(request.library);
  if (library == nullptr) {
    report_error("cannot load {}: {}", request.library, load_error());
    return kAbsent;
  }
  if (!bind_all(library, nvrtc)) {
    report_error("{} is not NVRTC of CUDA 11.2 or newer: {}", request.library, load_error());
    return kFailed;
  }
  return kOk;
}

// The whole file with a closing NUL, in memory that the caller frees; null if it cannot be read.
char* read_text(const char* path) {
  FILE* file = fopen(path, "rb");
  if (file == nullptr) return nullptr;
  size_t length = 0, room = 1u << 16;
  char* text = static_cast<char*>(malloc(room));
  while (text != nullptr) {
    length += fread(text + length, 1, room - 1 - length, file);
    if (length < room - 1) break;
    room *= 2;
    char* larger = static_cast<char*>(realloc(text, room));
    if (larger == nullptr) free(text);
    text = larger;
  }
  const bool bad = ferror(file) != 0;
  fclose(file);
  if (text == nullptr || bad) return nullptr;
  text[length] = 0;
  return text;
}

// builder/compile/compile_failure.cc filters the same log again by the same words. A line that is dropped
// here never reaches it.
bool is_useful(const char* line, size_t length) {
  constexpr const char* kWords[] = {"error", "fatal", "catastrophic", "undefined", "unresolved"};
  for (const char* word : kWords)
    if (memmem(line, length, word, strlen(word)) != nullptr) return true;
  return false;
}

// A template's log runs to thousands of lines: each line that
// names an error, with the two after it, 30 in all.
void print_log(const char* log) {
  int printed = 0, dropped = 0, follow = 0;
  while (*log != 0) {
    const char* end = strchr(log, '\n');
    const size_t length = end != nullptr ? static_cast<size_t>(end - log) : strlen(log);
    if (is_useful(log, length)) follow = 3;
    if (follow > 0 && length > 0 && printed < 30) {
      fprintf(stderr, "%.*s\n", static_cast<int>(length < 400 ? length : 400), log);
      ++printed;
    } else if (length > 0) {
      ++dropped;
    }
    if (follow > 0) --follow;
    log += length + (end != nullptr ? 1 : 0);
  }
  char number[16];
  snprintf(number, sizeof(number), "%d", dropped);
  if (dropped > 0) report_error("({} more lines of the compiler's log left out)", number);
}

// The size that NVRTC reports counts the closing NUL, so 1 is an empty log.
void print_program_log(const Nvrtc& nvrtc, Program program) {
  size_t size = 0;
  if (nvrtc.log_size(program, &size) != 0 || size <= 1) return;
  char* log = static_cast<char*>(calloc(size + 1, 1));
  if (log != nullptr && nvrtc.log(program, log) == 0) print_log(log);
  free(log);
}

// The size of PTX counts its closing NUL, and the NUL goes into the file: cuModuleLoadData needs it.
int write_image(const Nvrtc& nvrtc, Program program, const Request& request) {
  size_t size = 0;
  int rc = request.ptx ? nvrtc.ptx_size(program, &size) : nvrtc.cubin_size(program, &size);
  if (rc != 0 || size == 0) {
    report_error("NVRTC built no image: {}", nvrtc.error_string(rc));
    return kFailed;
  }
  char* image = static_cast<char*>(malloc(size));
  if (image == nullptr) return kFailed;
  rc = request.ptx ? nvrtc.ptx(program, image) : nvrtc.cubin(program, image);
  FILE* file = rc == 0 ? fopen(request.out, "wb") : nullptr;
  bool good = file != nullptr && fwrite(image, 1, size, file) == size;
  if (file != nullptr) good = fclose(file) == 0 && good;
  free(image);
  if (!good) report_error("cannot write {}", request.out);
  return good ? kOk : kFailed;
}

int compile(const Nvrtc& nvrtc, Request& request, const char* text) {
  const char* slash = strrchr(request.source, '/');
  Program program = nullptr;
  // The name goes into the image's line tables: the bare one, so that the bytes do not depend on the folder.
  int rc = nvrtc.create(&program, text, slash != nullptr ? slash + 1 : request.source, 0, nullptr, nullptr);
  if (rc == 0) {
    char arch[64];
    snprintf(arch, sizeof(arch), "--gpu-architecture=%s", request.arch);
    request.options[request.option_count] = arch;
    rc = nvrtc.compile(program, request.option_count + 1, request.options);
  }
  if (rc != 0) {
    if (program != nullptr) print_program_log(nvrtc, program);
    report_error("NVRTC: {}", nvrtc.error_string(rc));
    return kFailed;
  }
  const int status = write_image(nvrtc, program, request);
  nvrtc.destroy(&program);
  return status;
}

}  // namespace

int run_nvrtc(int argc, char** argv) {
  Request request;
  if (!read_request(argc, argv, &request) || request.arch == nullptr || request.out == nullptr ||
      request.source == nullptr || request.ptx == request.cubin) {
    fprintf(stderr, "nvrtc: needs --lib, --arch, --out, a source file and one of --ptx and --cubin\n");
    return kUsage;
  }
  // Before the chdir below, since the path of the source may be relative.
  char* text = read_text(request.source);
  if (text == nullptr) {
    report_error("cannot read {}", request.source);
    return kUsage;
  }
  // NVRTC keeps the current folder's name on its heap, and its output depends on what lies where (main.cc).
  if (request.out[0] == '/' && strchr(request.library, '/') == request.library && chdir("/") != 0)
    return kFailed;
  Nvrtc nvrtc = {};
  int status = open_nvrtc(request, &nvrtc);
  if (status == kOk) status = compile(nvrtc, request, text);
  free(text);
  return status;
}

// Prints the version and the supported architectures as one "nvrtc" record.
int run_nvrtc_info(int argc, char** argv) {
  Request request;
  if (!read_request(argc, argv, &request)) {
    fprintf(stderr, "nvrtc-info: needs --lib\n");
    return kUsage;
  }
  Nvrtc nvrtc = {};
  if (const int status = open_nvrtc(request, &nvrtc); status != kOk) return status;
  int major = 0, minor = 0, count = 0;
  int rc = nvrtc.version(&major, &minor);
  if (rc == 0) rc = nvrtc.arch_count(&count);
  int* archs = static_cast<int*>(calloc(count > 0 ? static_cast<size_t>(count) : 1, sizeof(int)));
  if (rc == 0 && archs != nullptr) rc = nvrtc.archs(archs);
  if (rc != 0 || archs == nullptr) {
    report_error("NVRTC: {}", nvrtc.error_string(rc));
    free(archs);
    return kFailed;
  }
  printf("nvrtc\tversion=%d.%d\tarchs=", major, minor);
  for (int i = 0; i < count; ++i) printf("%s%d", i > 0 ? "," : "", archs[i]);
  printf("\n");
  free(archs);
  return kOk;
}

}  // namespace scankit_gpu
