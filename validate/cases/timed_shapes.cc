// SPDX-License-Identifier: Apache-2.0
#include "validate/run/protocol.h"

// What is timed on each device: shapes of real models, and one shape in several lengths for the plot
// over the length.
namespace scankit::validate {
namespace {

constexpr int kTimedStates = 16;

void add_shape(std::vector<TimedShape>& shapes, const std::string& device, const char* dtype, int batch,
               int dim, int length, double seconds) {
  shapes.push_back({device, dtype, batch, dim, length, kTimedStates, seconds, false, false});
}

}  // namespace

// The first shape of each device also runs plain PyTorch, which needs memory for every state; the last
// one is so small that it measures what a call costs its caller. Seconds are the time for all samples
// of a shape.
std::vector<TimedShape> timed_shapes(const std::string& device, bool full) {
  std::vector<TimedShape> shapes;
  if (device == "cpu") {
    shapes.push_back({device, "fp32", 2, 256, 512, kTimedStates, 4, true, false});
    add_shape(shapes, device, "bf16", 2, 256, 512, 0.3);
    for (const int length : {128, 2048}) add_shape(shapes, device, "fp32", 2, 256, length, 0.4);
    if (full)
      for (const int length : {8192, 32768}) add_shape(shapes, device, "fp32", 2, 256, length, 2);
  } else {
    shapes.push_back({device, "fp32", 2, 2048, 2048, kTimedStates, 2, true, false});
    add_shape(shapes, device, "bf16", 8, 2048, 2048, 0.6);
    for (const int length : {512, 4096}) add_shape(shapes, device, "bf16", 2, 2048, length, 0.3);
    add_shape(shapes, device, "bf16", 2, 2048, 2048, 0.3);
    if (full) {
      add_shape(shapes, device, "bf16", 8, 5120, 2048, 1);
      add_shape(shapes, device, "bf16", 1, 5120, 2048, 1);
      add_shape(shapes, device, "bf16", 1, 2048, 16384, 1);
      add_shape(shapes, device, "bf16", 64, 384, 196, 1);
      add_shape(shapes, device, "fp32", 8, 2048, 2048, 1);
      for (const int length : {128, 8192, 32768, 65536})
        add_shape(shapes, device, "bf16", 2, 2048, length, 1);
    }
  }
  shapes.push_back({device, "fp32", 1, 64, 32, kTimedStates, 1, false, true});
  return shapes;
}

}  // namespace scankit::validate
