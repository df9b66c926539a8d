// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "kernels/common/driver_context.h"
#include "kernels/selective_scan/check_number.h"
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/params.h"

// What a check of the kernels needs from a GPU beyond launching: memory, time, and images that it compiled
// itself.
namespace scankit::selective_scan {

class Gpu {
 public:
  // Errc::NotFound, with the reason, where this machine has no usable GPU.
  static Result<Gpu> open();
  int capability() const { return capability_; }
  std::string name() const;
  long long free_bytes() const;

  void* allocate(std::size_t bytes);  // at least 256-byte aligned; exits on failure
  void release(void* memory);
  void fill(void* memory, unsigned char value, std::size_t bytes);
  void to_device(void* device, const void* host, std::size_t bytes);
  void to_host(void* host, const void* device, std::size_t bytes);
  // Milliseconds of each of `runs` runs of the plan after `warm` unmeasured ones.
  std::vector<float> time(device::Plan& plan, void* workspace, int warm, int runs);
  // Runs the plan in memory of its own and waits for it. Exits on failure.
  void run(device::Plan& plan);

 private:
  int capability_ = 0;
};

// Compiles every unit of `units` (units.def) from `source` for the GPU by nvcc, packs the images as a
// finished module holds them and registers them with the loader. `cubins`: a folder of UNIT.cubin made
// before; empty: compile, with `more` defines. Errc::NotFound: no compiler.
Result<void> load_units(const std::string& source, const std::string& units, const std::string& cubins,
                        int capability, const std::string& more = "");
// The compiling alone, into `folder`; needs no GPU.
Result<void> compile_units(const std::string& source, const std::string& units, const std::string& folder,
                           int capability, const std::string& more);

// A strided array of up to four dimensions in device memory. Bytes between its elements are 0xff (NaN), and
// so are the elements before a kernel writes them.
class Tensor {
 public:
  Tensor(Gpu& gpu, DType dtype, std::array<Index, 4> sizes, std::array<Index, 4> strides, Index shift);
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor();

  void poison();
  std::vector<double> set(const std::vector<double>& values);  // returns them as rounded
  // The elements in order. *untouched: every byte that is not an element's is still 0xff.
  std::vector<double> get(bool* untouched) const;
  // All bytes, pads included.
  std::vector<unsigned char> raw() const;

  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(memory_) +
                                static_cast<std::size_t>(shift_) * size_);
  }
  Index stride(int i) const { return strides_[static_cast<std::size_t>(i)]; }
  std::size_t count() const { return places_.size(); }

 private:
  Gpu& gpu_;
  DType dtype_;
  std::size_t size_, bytes_;
  std::array<Index, 4> strides_;
  Index shift_;
  std::vector<std::size_t> places_;  // byte offsets of the elements
  void* memory_;
};

// The size of a problem to time.
struct Extent {
  int batch, dim, length, states;
  DType dtype;
  bool z;
};

// Contiguous arrays of a training step's calls with D, bias and softplus, in one group, with random contents
// that repeat every megabyte; for timings.
class Arrays {
 public:
  Arrays(Gpu& gpu, const Extent& extent);
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  ~Arrays();

  const Forward& forward() const { return forward_; }
  const Backward& backward() const { return backward_; }  // reads what the forward wrote
  void poison_forward();                                  // all results, with NaN
  void poison_gradients();
  static Index bytes(const Extent& extent);  // about

 private:
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  void* make(Index count, DType dtype, double mean, double scale);
  void* result(std::vector<Block>& among, Index count, DType dtype);
  void describe(const Extent& extent);

  Gpu& gpu_;
  std::vector<Block> inputs_, results_, gradients_;
  Forward forward_ = {};
  Backward backward_ = {};
};

// One point of the contract. Pads are elements between rows that belong to nobody; `shift` moves every array
// off its 16-byte alignment; `channel_major`: strides (length, batch * length), as mamba's inner function has
// them.
struct CaseShape {
  unsigned seed;
  int batch, dim, length, states, groups;
  DType dtype;
  bool softplus, z, D, bias;
  int pad, shift;
  bool channel_major, A_transposed;
  bool wide_x;                  // states 2N apart, as a contiguous clone of x has them
  bool without_x;               // the backward is not given the states
  bool out_z;                   // the backward recomputes out_z
  bool rounded;                 // dB and dC in dtype, not fp32
  int segments;                 // that the length is cut into; 0: as the planner would
  int kind;                     // 4: complex, 2: constant B, 1: constant C
  bool initial, last;           // an initial state and its gradient; a last state and its gradient
  std::vector<int> cu_seqlens;  // not empty: packed sequences
  bool garbage;                 // cu_seqlens holds anything: nothing may be written outside, no more is asked
  const Choice *forward = nullptr, *backward = nullptr;  // of a plain case; null: the planner's
};

struct CaseVerdict {
  bool right;
  std::string text;
};

CaseVerdict run_case(Gpu& gpu, const CaseShape& shape);
// One step of decoding, everything drawn from the seed.
CaseVerdict run_step(Gpu& gpu, unsigned seed);
// "out 0.41 of its bound, ..." over all cases run.
std::string worst_errors();

}  // namespace scankit::selective_scan
