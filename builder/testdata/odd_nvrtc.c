// SPDX-License-Identifier: Apache-2.0
// An NVRTC that is the real one and odd in one way, for the tests. A file "odd" beside it holds two lines:
// the real library, and what is odd:
//   time     what it compiles holds the time
//   crash    a real segmentation fault
//   hang     never ends, and writes its process id to the file "pid" beside it
//   eat      takes memory until somebody stops it
//   noise    thousands of warnings before the error
//   empty    says that all is well and gives no image
//   faulty   gives an image of other bytes than an image has
#define _GNU_SOURCE
#include <dlfcn.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void* real;
static char odd[32], folder[4096];

static void* load(void) {
  if (real != NULL) return real;
  Dl_info self;
  char path[4096], line[4096];
  if (dladdr((void*)&load, &self) == 0) return NULL;
  snprintf(path, sizeof path, "%s", self.dli_fname);
  snprintf(folder, sizeof folder, "%s", dirname(path));
  char file[4200];
  snprintf(file, sizeof file, "%s/odd", folder);
  FILE* conf = fopen(file, "r");
  if (conf == NULL || fgets(line, sizeof line, conf) == NULL || fgets(odd, sizeof odd, conf) == NULL)
    return NULL;
  fclose(conf);
  line[strcspn(line, "\n")] = 0;
  odd[strcspn(odd, "\n")] = 0;
  real = dlopen(line, RTLD_NOW | RTLD_LOCAL);
  if (real == NULL) fprintf(stderr, "odd_nvrtc: %s\n", dlerror());
  return real;
}

static int is(const char* what) { return load() != NULL && strcmp(odd, what) == 0; }

#define REAL(name) ((__typeof__(&name))dlsym(load(), #name))
#define PASS(name, parameters, arguments) \
  int name parameters { return load() == NULL ? 1 : REAL(name) arguments; }

PASS(nvrtcVersion, (int* major, int* minor), (major, minor))
PASS(nvrtcGetNumSupportedArchs, (int* count), (count))
PASS(nvrtcGetSupportedArchs, (int* archs), (archs))
PASS(nvrtcDestroyProgram, (void** program), (program))
PASS(nvrtcGetProgramLogSize, (void* program, size_t* size), (program, size))
PASS(nvrtcGetProgramLog, (void* program, char* log), (program, log))
PASS(nvrtcGetPTXSize, (void* program, size_t* size), (program, size))
PASS(nvrtcGetPTX, (void* program, char* ptx), (program, ptx))

const char* nvrtcGetErrorString(int rc) {
  return load() == NULL ? "no real library" : REAL(nvrtcGetErrorString)(rc);
}

int nvrtcCreateProgram(void** program, const char* text, const char* name, int count,
                       const char* const* headers, const char* const* names) {
  if (load() == NULL) return 1;
  char* longer = malloc(strlen(text) + (1 << 20));
  if (longer == NULL) return 1;
  char* end = stpcpy(longer, text);
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (is("time"))
    sprintf(end, "\nextern \"C\" __device__ unsigned leaked_time = %uu;\n", (unsigned)now.tv_sec);
  if (is("noise")) {
    for (int i = 0; i < 4000; ++i) end += sprintf(end, "static __device__ void n%d() { int unused; }\n", i);
    sprintf(end, "static __device__ int wrong = this_name_is_nowhere;\n");
  }
  const int rc = REAL(nvrtcCreateProgram)(program, longer, name, count, headers, names);
  free(longer);
  return rc;
}

int nvrtcCompileProgram(void* program, int count, const char* const* options) {
  if (is("crash")) *(volatile int*)0 = 1;
  if (is("hang")) {
    char file[4200];
    snprintf(file, sizeof file, "%s/pid", folder);
    FILE* told = fopen(file, "w");
    if (told != NULL) fprintf(told, "%d\n", (int)getpid());
    if (told != NULL) fclose(told);
  }
  while (is("hang")) pause();
  while (is("eat")) {
    char* more = malloc(1 << 20);
    if (more == NULL) return 1;  // NVRTC_ERROR_OUT_OF_MEMORY
    memset(more, 1, 1 << 20);
  }
  return load() == NULL ? 1 : REAL(nvrtcCompileProgram)(program, count, options);
}

int nvrtcGetCUBINSize(void* program, size_t* size) {
  if (is("empty")) *size = 0;
  return is("empty") ? 0 : REAL(nvrtcGetCUBINSize)(program, size);
}

int nvrtcGetCUBIN(void* program, char* cubin) {
  const int rc = load() == NULL ? 1 : REAL(nvrtcGetCUBIN)(program, cubin);
  if (is("faulty")) memset(cubin, 'x', 64);
  return rc;
}
