# SPDX-License-Identifier: Apache-2.0
"""Which releases of Python packages have which modules and names:  python_names.py --out FILE [--only PACKAGE...] [--cache DIR]

Makes doctor/knowledge/python_names.txt. Of each package in PACKAGES it downloads the last release of each minor series
with pip's own session (so your index, mirror and proxy apply), reads the archive (python_names_read.py; nothing of it is
run), and deletes it. DIR keeps what was read: VERSION.json, and VERSION.zip with the archive's Python files. After a
change of the reading, delete the .json files. Python 3.13 or later, since newer packages use its syntax.
"""
import argparse
import json
import multiprocessing
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import python_names_read as reading  # noqa: E402

# distribution: packages in it, the first release to read, the numbers of a release that make a series, and whether the
# source archive is to be read: those packages have no wheels, or large ones.
PACKAGES = {
    "torch": ("torch", "1.0", 2, False), "transformers": ("transformers", "2.0", 2, False),
    "torchvision": ("torchvision", "0.2", 2, False), "torchaudio": ("torchaudio", "0.3", 2, False),
    "triton": ("triton", "1.0", 2, False), "huggingface_hub": ("huggingface_hub", "0", 2, False),
    "tokenizers": ("tokenizers", "0.5", 2, False), "accelerate": ("accelerate", "0.1", 2, False),
    "peft": ("peft", "0", 2, False), "diffusers": ("diffusers", "0.1", 2, False), "timm": ("timm", "0", 2, False),
    "pytorch-lightning": ("pytorch_lightning", "0.5", 2, False), "mmcv": ("mmcv", "0", 2, True),
    "mmengine": ("mmengine", "0", 2, False), "numpy": ("numpy", "1.9", 2, False), "scipy": ("scipy", "0.16", 2, False),
    "scikit-learn": ("sklearn", "0.16", 2, False), "pandas": ("pandas", "0.17", 2, False),
    "setuptools": ("setuptools pkg_resources", "18", 1, False), "packaging": ("packaging", "14", 2, False),
    "einops": ("einops", "0", 2, False), "mamba_ssm": ("mamba_ssm", "0", 2, True),
    "causal_conv1d": ("causal_conv1d", "0", 2, True), "flash_attn": ("flash_attn", "0.2", 2, True),
    "xformers": ("xformers", "0", 2, True), "bitsandbytes": ("bitsandbytes", "0.30", 2, False),
    "deepspeed": ("deepspeed", "0.1", 2, True), "datasets": ("datasets", "1.0", 2, False),
    "torchmetrics": ("torchmetrics", "0", 2, False), "torch_geometric": ("torch_geometric", "1.0", 2, True),
    "monai": ("monai", "0.1", 2, False), "nnunetv2": ("nnunetv2", "2.0", 2, False), "natten": ("natten", "0.14", 2, True),
    "tilelang": ("tilelang", "0", 3, False), "trl": ("trl", "0", 2, False), "optimum": ("optimum", "1.0", 2, False),
    "auto_gptq": ("auto_gptq", "0", 2, True), "open_clip_torch": ("open_clip", "0", 2, False),
    "kornia": ("kornia", "0.1", 2, False), "pydantic": ("pydantic", "0", 2, False),
    "networkx": ("networkx", "1.9", 2, False), "scikit-image": ("skimage", "0.11", 2, False),
    "gradio": ("gradio", "2.0", 2, False),
}
# Of the former also private names are told, of the latter also names that a module only imported and later no longer had.
CORE = {"torch", "torchvision", "torchaudio", "transformers", "huggingface_hub", "diffusers", "accelerate", "peft", "timm",
        "numpy", "triton", "flash_attn", "mamba_ssm", "causal_conv1d", "setuptools", "pkg_resources"}
HANDED_ON = {"torchvision"}
# Modules whose names are for the package's own use.
UNTOLD = re.compile(r"\.dumm(y|ies)_|^torch\.(_C|_meta_registrations|_decomp|_prims)\b|^pandas\.core\b|testing_utils|"
                    r"\.(commands?|cli|examples?|benchmarks?|scripts?|exporters|distutils|f2py|quantization\.fx|ns\.fx|pt2e|tools|"
                    r"autotuning|gluon)\b")
# Private modules of which others take new names, too.
USED = re.compile(r"torch\.(utils|distributed)\b|transformers\b")
HEAD = """\
# SPDX-License-Identifier: Apache-2.0
# Which releases of Python packages have which modules and top-level names. Made by ci/release/python_names.py.
# MODULE NAME FIRST GONE: NAME * is the module itself; FIRST is the first release series that has it, - if the oldest that was
# read has it; GONE is the first one without it, - if the newest has it. What all have is not listed, and neither is what is not
# clear. Rows that follow from another are left out: for a module without a row see the row * of the packages above it; for a
# name without a row see MODULE.NAME *, then the row * of its module, and if there is none for it and those above it, the name's
# row of the packages above it.
"""
# Best first: small wheels, whose Python files are the same as those of the others.
ORDER = ("any.whl", r"macosx_\d+_\d+_arm64\.whl", r"macosx_\d+_\d+_x86_64\.whl", r"macosx.*\.whl", r"linux.*_x86_64\.whl",
         r"linux.*\.whl", r"win_amd64\.whl", r".*\.whl", r".*\.tar\.gz")


class Index:
    """The user's package index, as pip sees it. Its parts are pip's own and not for others, so they are used only here."""

    def __init__(self):
        from pip._internal.commands import create_command
        command = create_command("download")
        options, _ = command.parse_args(["none"])
        self.context = command.main_context()
        self.context.__enter__()
        self.session = command.get_default_session(options)
        self.finder = command._build_package_finder(options, self.session, ignore_requires_python=True)

    def links(self, name):
        """{Version: [Link]} of all the final releases of a distribution that are not withdrawn."""
        from pip._internal.index.collector import parse_links
        from pip._internal.models.link import Link
        from pip._vendor.packaging.utils import parse_sdist_filename, parse_wheel_filename
        result = {}
        for place in self.finder.search_scope.get_index_urls_locations(name):
            for link in parse_links(self.finder._link_collector.fetch_response(Link(place))):
                try:
                    parse = parse_wheel_filename if link.filename.endswith(".whl") else parse_sdist_filename
                    version = parse(link.filename)[1]
                except ValueError:
                    continue
                if not version.is_prerelease and link.yanked_reason is None:
                    result.setdefault(version, []).append(link)
        return result

    def download(self, link, place):
        from pip._internal.exceptions import PipError
        from pip._internal.network.download import Downloader
        try:
            return Downloader(self.session, "off")(link, place)[0]
        except PipError as error:
            raise OSError(error) from error


def label(version, depth):
    """The series of a release as users write it; each of 0.0.1, 0.0.2 ... is a series."""
    numbers = (list(version.release) + [0, 0])[:3]
    depth = 3 if depth > 1 and numbers[:2] == [0, 0] else depth
    return ".".join(map(str, numbers[:depth]))


def chosen(links, source):
    """The link to download of a release's, or None."""
    order = ORDER if not source else ORDER[-1:] + ORDER[:-1]
    ranked = [(rank, link.filename, link) for link in links for rank, end in enumerate(order)
              if re.search(end + "$", link.filename) and "musllinux" not in link.filename]
    # Of the wheels for several Pythons the last: its files are what a new Python reads.
    best = min((one[0] for one in ranked), default=None)
    return max((one for one in ranked if one[0] == best), key=lambda one: one[1], default=[None])[-1]


def keep(archive, target, packages):
    """Copies the Python files of an archive into a zip, and empty files for the compiled modules."""
    wheel, part = reading.is_wheel(archive), target.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as kept:
        done = set()
        for name, read in reading.unpack(archive):
            where = reading.place(name, packages, wheel)
            if where and where not in done:
                done.add(where)
                module, kind = where
                path = module.replace(".", "/") + ("/__init__." if kind.endswith("+") else ".") + kind.rstrip("+")
                kept.writestr(path, b"" if kind == "so" else read())
    part.rename(target)


def read_release(download, links, source, folder, version, packages, known):
    """What was read of a release, from the cache or from a new download; None if it has no file to read."""
    result, kept = folder / f"{version}.json", folder / f"{version}.zip"
    if result.exists():
        return json.loads(result.read_text())
    if not kept.exists():
        link = chosen(links, source)
        if not link:
            return None
        with tempfile.TemporaryDirectory(dir=folder) as place:
            try:
                keep(download(link, place), kept, packages)
            except (OSError, tarfile.TarError, zipfile.BadZipFile) as error:
                print(f"{link.filename} is left out: {error}", file=sys.stderr)
                return None
    entries = reading.read_archive(kept, packages, known)
    result.write_text(json.dumps(entries, separators=(",", ":")))
    return entries


def read_distribution(name, cache):
    """[(series, entries)] of a distribution, oldest first."""
    packages, first, depth, source = PACKAGES[name]
    packages, folder, known, result = packages.split(), cache / name, {}, []
    folder.mkdir(parents=True, exist_ok=True)
    index, last = Index(), {}
    for version, links in sorted(index.links(name).items()):
        if tuple(map(int, first.split("."))) <= version.release and chosen(links, source):
            last[label(version, depth)] = version, links
    for series, (version, links) in last.items():
        entries = read_release(index.download, links, source, folder, version, packages, known)
        if entries:
            result.append((series, entries))
            print(f"{name} {version}: {len(entries)} modules", file=sys.stderr, flush=True)
    return result


def state(entry, name):
    """P if a release has a name, A if not, M if its module's __getattr__ seems to know it, and U if that is unknown: the module
    is compiled or makes its names when it is run."""
    if entry is None:
        return "A"
    if any(name in entry[kind] for kind in ("own", "got", "plain")):
        return "P"
    return "M" if name in entry["maybe"] else "U" if entry["open"] else "A"


def span(states):
    """(first, gone) as positions or None, of a string of these letters; False if there is no span or it cannot be told."""
    begin, end = states.find("P"), states.rfind("P")
    before, after = states[:begin], states[end + 1:]
    if begin < 0 or "A" in states[begin:end]:
        return False
    # A name that a first stub file forgot is not new when a later one has it; three releases without it are no oversight.
    if "A" in before and ("U" in before or "M" in before) and not before.endswith("AAA"):
        return False
    # A name that is deprecated was there until it is gone, but of what is unknown nobody can say when it went.
    if "A" in after and "U" in after[:after.index("A")]:
        return False
    first = begin if "A" in before else None
    gone = end + 1 + after.find("A") if "A" in after else None
    return (first, gone) if (first, gone) != (None, None) else False


def told(module, name, gone):
    """Whether a name may have a row: others use it, as far as its own name and its module's say."""
    if name.startswith("__") or reading.LIGHT.match(module + ".") or UNTOLD.search(module):
        return False
    inner, private, depth = "._" in module, name.startswith("_"), module.count(".")
    # Of other packages, a name that is new deep inside is hardly used by those who take no notice of releases.
    if module.split(".")[0] not in CORE:
        return not inner and not private and not name.isupper() and (gone or depth < 2)
    # Others also use private names of the packages that most depend on, and fail when those are gone.
    if inner:
        return "._" not in module.rpartition(".")[0] and not private and (gone or bool(USED.match(module)))
    return gone or depth < 1 or not private and not name.isupper()


def spans_of(releases):
    """{module: {name: span}} of a distribution, from [(series, entries)]; the name of the module itself is *."""
    for _, entries in releases:
        for entry in entries.values():
            entry.update({key: frozenset(entry[key]) for key in ("own", "got", "plain", "maybe")})
    result = {}
    for module in {module for _, entries in releases for module in entries}:
        found = [entries.get(module) for _, entries in releases]
        kinds = ("own", "got") if module.split(".")[0] in HANDED_ON else ("own",)
        names = set().union(*(entry[kind] for entry in found if entry for kind in kinds))
        spans = {name: span("".join(state(entry, name) for entry in found)) for name in names}
        result[module] = {name: ends for name, ends in spans.items() if ends and told(module, name, ends[1] is not None)}
        whole = span("".join("P" if entry else "A" for entry in found))
        if whole:
            result[module]["*"] = whole
    return result


def rows_of(releases):
    """The rows of a distribution, without those that follow from another."""
    spans, series = spans_of(releases), [one for one, _ in releases]
    for module, names in spans.items():
        parts = module.split(".")
        above = [spans[".".join(parts[:count])] for count in range(1, len(parts))]
        for name, ends in names.items():
            # The row of a package says it for what is in it, also where a module's name is handed on by its package.
            whole = [names.get("*")] + [there.get("*") for there in reversed(above)]
            if name == "*":
                others = whole[1:]
            else:
                others = [whole[0], spans.get(f"{module}.{name}", {}).get("*")]
                others += [there.get(name) for there in above] if not any(whole) else []
            if ends not in others:
                yield "%s %s %s %s" % (module, name, *("-" if end is None else series[end] for end in ends))


def job(arguments):
    name, cache = arguments
    releases = read_distribution(name, cache)
    heads = []
    for package in PACKAGES[name][0].split():
        other = "" if package == name else f" of {name}"
        heads.append(f"# {package}: {releases[0][0]}..{releases[-1][0]}, {len(releases)} releases{other}")
    return heads, sorted(rows_of(releases))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", nargs="+", choices=sorted(PACKAGES), default=list(PACKAGES), metavar="PACKAGE")
    parser.add_argument("--cache", type=Path)
    options = parser.parse_args()
    cache = options.cache or Path(tempfile.mkdtemp())
    with multiprocessing.Pool(2) as pool:
        results = pool.map(job, [(name, cache) for name in options.only], chunksize=1)
    if not options.cache:
        shutil.rmtree(cache)
    lines = HEAD.splitlines()
    lines += sorted(head for heads, _ in results for head in heads)
    lines += sorted((row for _, rows in results for row in rows), key=str.encode)
    options.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
