# SPDX-License-Identifier: Apache-2.0
"""Makes the tensors that a case describes. Same operations in the same order as validate/cases/data.cc."""
import torch

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16, "c64": torch.complex64}
SAME_SIZE_INTEGER = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16,
                     torch.float64: torch.int64}
GOLDEN = 0x9E3779B97F4A7C15
SECOND_DATA = 0x5851F42D4C957F2D  # added to every seed of the case's second data set


def _signed(value):
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def _shift(z, count):
    return (z >> count) & ((1 << (64 - count)) - 1)  # torch shifts int64 arithmetically


def _mix(z):
    z = (z ^ _shift(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shift(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shift(z, 31)


def _unit(seed, n):
    return _shift(_mix((n + 1) * _signed(GOLDEN) + _signed(seed)), 11).to(torch.float64) * 2.0 ** -53


def _mix_number(seed):
    return int(_mix(torch.tensor([_signed(seed)], dtype=torch.int64))[0]) & ((1 << 64) - 1)


def draw(spec, second=False):
    """The elements in fp64 before rounding, in the tensor's shape."""
    seed = int(spec["seed"]) + (SECOND_DATA if second else 0)
    real = _draw_parts(spec["shape"], spec["fill"], seed, _mix_number(seed))
    if "poke" in spec:
        real.view(-1)[spec["poke"][0]] = float(spec["poke"][1])
    if "imaginary" not in spec:
        return real
    other = _mix_number(_mix_number(seed))
    return torch.complex(real, _draw_parts(spec["shape"], spec["imaginary"], other, _mix_number(other)))


def _draw_parts(shape, fill, seed, spikes):
    count = 1
    for extent in shape:
        count *= extent
    index = torch.arange(count, dtype=torch.int64)

    def part(k):
        return _unit(seed, 4 * index + k)

    a, b = fill["a"], fill["b"]
    if fill["kind"] == "uniform":
        data = a + (b - a) * part(0)
    elif fill["kind"] == "normal":
        data = a + b * (1.7320508075688772 * (part(0) + part(1) + part(2) + part(3) - 2.0))
    elif fill["kind"] == "binade":
        exponent = a + torch.floor((b - a + 1) * part(0))
        data = torch.ldexp(1.0 + part(1), exponent.to(torch.int32))
        data = -data if fill.get("negative") else data
    else:
        raise ValueError("unknown fill kind %r" % (fill["kind"],))
    if "spike" in fill:
        chance, value = fill["spike"]
        data = torch.where(_unit(spikes, index) < chance, torch.full_like(data, value), data)
    return data.reshape(shape)


class Placed:
    """A tensor inside a storage whose other elements, NaN, belong to nobody."""

    def __init__(self, spec, device, second=False):
        self.dtype = DTYPES[spec["dtype"]]
        self.spec, self.device = spec, device
        self.storage = torch.full((spec["storage"],), float("nan"), dtype=self.dtype, device=device)
        self.view = torch.as_strided(self.storage, spec["shape"], spec["strides"], spec["offset"])
        self.exact = None  # fp64 copy of what the tensor holds; None for a destination
        self.refill(second)

    def refill(self, second):
        if self.spec["fill"]["kind"] == "none":
            self.storage.fill_(float("nan"))
        else:
            data = draw(self.spec, second).to(self.dtype)
            self.exact = data.to(torch.complex128 if data.is_complex() else torch.float64)
            self.view.copy_(data)
        self.saved = self.storage.clone()

    def changed(self):
        """True where any bit of the storage differs; of a destination, any bit outside the tensor."""
        now, saved = self.storage, self.saved
        if self.exact is None:
            now = now.clone()
            torch.as_strided(now, self.spec["shape"], self.spec["strides"], self.spec["offset"]).fill_(float("nan"))
        return not same_bits(now, saved)

    def exact_shape(self):
        return torch.Size(self.spec["shape"])

    def restore(self):
        self.storage.copy_(self.saved)


def same_results(a, b):
    """Bit by bit, but for what a NaN carries."""
    a, b = (torch.view_as_real(t) if t.is_complex() else t for t in (a, b))
    return same_bits(*(torch.where(torch.isnan(t), torch.full_like(t, float("nan")), t) for t in (a, b)))


def same_bits(a, b):
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.is_complex():
        a, b = torch.view_as_real(a), torch.view_as_real(b)
    kind = SAME_SIZE_INTEGER[a.dtype]
    return torch.equal(a.contiguous().view(kind), b.contiguous().view(kind))
