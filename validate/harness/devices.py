# SPDX-License-Identifier: Apache-2.0
"""The GPUs of a job: which ones, and whether torch can use them."""
from scankit_harness import driver_state
from scankit_harness.channel import say


def in_one_line(error):
    return ("%s: %s" % (type(error).__name__, error)).replace("\n", " ")[:800]


def gpus_of(options, tasks):
    """The numbers of the GPUs that the job is about, the first one first."""
    named = [task["device"] for task in tasks] + options.get("model", {}).get("devices", []) + \
        [shape["device"] for shape in options["timing"]]
    return sorted({driver_state.number_of(device) for device in named} - {None})


def try_gpus(torch, gpus):
    """{device: its name}, and {device: why it cannot be used}. One that is in use in exclusive mode, or in an error state, is
    there and cannot be used: no fault of the module."""
    names, problems = {}, {}
    for gpu in gpus or [0]:
        device = "cuda:%d" % gpu
        try:
            if torch.cuda.is_available():
                if gpu >= torch.cuda.device_count() > 0:
                    raise ValueError(say("torch sees GPUs 0 to {}", torch.cuda.device_count() - 1))
                name = torch.cuda.get_device_name(gpu)
                if gpus:
                    torch.zeros(1, device=device).cpu()
                names[device] = name
            elif gpus and torch.version.cuda:
                problems[device] = driver_state.why(gpu)
        except ValueError as error:
            problems[device] = str(error)
        except Exception as error:
            problems[device] = driver_state.why(gpu) or in_one_line(error)
    return names, {device: why for device, why in problems.items() if why}


def problem(gpus, problems):
    if len(gpus) == 1 or not problems:
        return "".join(say("the GPU cannot be used: {}", why) for why in problems.values())
    alike = {}  # what is wrong with several is told once
    for device, why in problems.items():
        alike.setdefault(why, []).append(device)
    return "; ".join(say("{} cannot be used: {}", ", ".join(those), why) for why, those in alike.items())


def can_run(device, usable):
    """True of every CPU, and of the GPUs among `usable`, in any way."""
    gpu = driver_state.number_of(device)
    return gpu is None or "cuda:%d" % gpu in usable
