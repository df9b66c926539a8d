# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # places.sh sets $work and reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# Machines with a GPU, as the kernel would show them: files mounted over /sys and /proc in a mount namespace of the test's
# own. The libraries are real ones, made by the compiler, and the real loader takes them. Sourced by places.sh.

# library FILE SONAME [BYTES]: a driver's library has megabytes, a stub some kilobytes.
library() {
  mkdir -p "$(dirname "$1")"
  printf 'int cuInit(unsigned f) { return f ? 1 : 0; }\nchar ballast[%d] = {1};\n' "${3:-16}" |
    gcc -shared -fPIC -x c - -Wl,-soname,"$2" -o "$1"
}
# driver_library FOLDER VERSION: as the driver's installer lays it
driver_library() {
  library "$1/libcuda.so.$2" libcuda.so.1 2000000
  ln -s "libcuda.so.$2" "$1/libcuda.so.1"
}
# machine [DRIVER]: one H200 on the PCI bus, and the kernel module of that driver; without, no driver at all.
machine() {
  mkdir -p machine/pci/0000:17:00.0 machine/module machine/proc
  echo 0x10de >machine/pci/0000:17:00.0/vendor
  echo 0x030200 >machine/pci/0000:17:00.0/class
  echo 0x2335 >machine/pci/0000:17:00.0/device
  [ $# -eq 0 ] || { mkdir -p machine/module/nvidia && echo "$1" >machine/module/nvidia/version; }
  unshare -m true 2>/dev/null || exit 77 # no mount namespaces for us: not root, or a container that forbids them
  [ -d /sys/bus/pci/devices ] && [ -d /sys/module ] && [ -d /proc/driver ] || exit 77
  real=$scankit
  printf '#!/bin/sh\nexec unshare -m sh -c '\''
for pair in pci:/sys/bus/pci/devices module:/sys/module proc:/proc/driver %s; do
  mount --bind "%s/${pair%%%%:*}" "${pair#*:}" || exit 99
done
exec "$@"'\'' sh "%s" "$@"\n' "${MOUNTS:-}" "$work/machine" "$real" >machine/scankit
  chmod +x machine/scankit
  scankit=$work/machine/scankit
}
torch_env() {
  fx_scratch_env "$work/env" pth >/dev/null
  env=$work/env/bin/python
}

case_driver_stub_comes_first() {
  machine 580.159.04
  torch_env
  library cuda/lib64/stubs/libcuda.so libcuda.so.1
  ln -s libcuda.so cuda/lib64/stubs/libcuda.so.1
  driver_library driver 580.159.04
  doctor LD_LIBRARY_PATH="$work/cuda/lib64/stubs:$work/driver" -- --no-import --python "$env"
  FOUND=no_driver_libcuda ROOT=no_driver_libcuda VERDICT=broken STATUS=1 expect
  expect_json "the stub is not the reason" 'any(.findings[]; .cause == "no_driver_libcuda" and (.summary | test("stubs/libcuda.so")))'
  # The printed command is run as it stands, and heals.
  jq -r '.findings[] | select(.cause == "no_driver_libcuda") | .fixes[0].command' doctor.json >command.sh
  export LD_LIBRARY_PATH=$work/cuda/lib64/stubs:$work/driver
  # shellcheck disable=SC1091
  . ./command.sh
  doctor -- --no-import --python "$env"
  unset LD_LIBRARY_PATH
  expect
  expect_json "the command did not help: $(cat command.sh)" '[.findings[] | select(.cause == "no_driver_libcuda")] == []'
  expect_json "the driver is not judged" 'any(.unknown[]; .why | test("driver")) | not'
}
case_driver_compat_libraries() {
  machine 535.54.03
  torch_env
  driver_library driver 535.54.03
  driver_library cuda-13.0/compat 580.65.06
  FOUND=driver_too_old
  doctor LD_LIBRARY_PATH="$work/driver" -- --no-import --python "$env"
  ROOT=driver_too_old VERDICT=broken STATUS=1 expect
  FOUND=''
  doctor LD_LIBRARY_PATH="$work/cuda-13.0/compat:$work/driver" -- --no-import --python "$env"
  expect
  # Forward compatibility goes one way: a compat library older than the kernel module is refused.
  driver_library cuda-12.2/compat 530.30.02
  doctor LD_LIBRARY_PATH="$work/cuda-12.2/compat:$work/driver" -- --no-import --python "$env"
  FOUND=nvml_mismatch ROOT='nvml_mismatch|driver_too_old' VERDICT=broken STATUS=1 expect
}
case_driver_hidden_gpus() {
  machine 580.159.04
  torch_env
  driver_library driver 580.159.04
  visible() { # VALUE: what the doctor makes of it
    doctor LD_LIBRARY_PATH="$work/driver" CUDA_VISIBLE_DEVICES="$1" -- --no-import --python "$env"
  }
  for value in '' -1; do
    visible "$value"
    expect
    expect_json "'$value' is not told as hiding the GPU" \
      'any(.findings[]; .subject == "CUDA_VISIBLE_DEVICES" and .severity == "note" and (.summary | test("hides")))'
  done
  visible 0
  expect
  expect_json "0 hides nothing" '[.findings[] | select(.subject == "CUDA_VISIBLE_DEVICES")] == []'
  visible 0,7,0 # the list ends at 7
  expect
  visible 0,0 # error 101, invalid device ordinal
  FOUND=no_driver_libcuda ROOT=no_driver_libcuda VERDICT=broken STATUS=1 expect
  visible 7
  FOUND=no_driver_libcuda ROOT=no_driver_libcuda VERDICT=broken STATUS=1 expect
  # Without NVML nobody knows the GPU's UUID, or its MIG instances: no verdict on them.
  for value in GPU-8d4aeb1b-64ff-4a5b-8f4e-8d2f6a3e1c11 MIG-8d4aeb1b-64ff-4a5b-8f4e-8d2f6a3e1c11 MIG-GPU-8d4aeb1b/1/0; do
    visible "$value"
    expect
    expect_json "$value is called wrong" '[.findings[] | select(.subject == "CUDA_VISIBLE_DEVICES")] == []'
  done
}
# A container on a GPU host that was started without its GPUs: the kernel shows the module, the driver's files are not there.
case_driver_container_without_gpus() {
  machine 580.159.04
  torch_env
  doctor KUBERNETES_SERVICE_HOST=10.0.0.1 -- --no-import --python "$env"
  FOUND=no_driver_libcuda expect
  expect_json "the container is not the reason" 'any(.findings[]; .summary | test("container was started without its GPUs"))'
}
# A card, and no driver of its maker: nothing computes on it.
case_driver_none_at_all() {
  machine
  torch_env
  doctor -- --no-import --python "$env"
  FOUND=no_driver_libcuda expect
  says 'no NVIDIA driver for it' -- --no-import --python "$env"
}
# WSL 2: no card on the bus, the driver's library in a folder of its own, /dev/dxg.
case_driver_wsl() {
  mkdir -p machine/dev wsl
  for node in null zero urandom random tty; do : >"machine/dev/$node"; done
  : >machine/dev/dxg
  library wsl/lib/libcuda.so.1.1 libcuda.so.1 100000
  ln -s libcuda.so.1.1 wsl/lib/libcuda.so.1
  MOUNTS="dev:/dev" machine
  rm -r machine/pci/*
  torch_env
  doctor LD_LIBRARY_PATH="$work/wsl/lib" -- --no-import --python "$env"
  VERDICT=unknown STATUS=4 expect
  expect_json "/dev/dxg is not named" 'any(.unknown[]; .why | test("/dev/dxg"))'
  # The same system, unpacked: the library is found where WSL puts it, and is no stub although it is small.
  mkdir -p root/usr/lib/wsl root/etc
  cp -a wsl/lib root/usr/lib/wsl/lib
  "$real" doctor --root root --json >root.json 2>/dev/null || true
  jq -e '[.findings[] | select(.cause == "no_driver_libcuda")] == []' root.json >/dev/null || expect_fail "WSL's library is taken for a stub"
}
