# SPDX-License-Identifier: Apache-2.0
"""truth_by_others.py READERS PYTHON FOLDER_OF_WHEELS: scankit's readers beside those that everybody uses.

Run by a Python that has pyelftools and packaging. READERS is the program scankit_readers; PYTHON has torch. Each line of
the table: what was compared, how often, how often the two differ. Differences that are meant are named where they are
skipped, with the reason. Exit status 1 where anything else differs.
"""
import glob
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.gnuversions import GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import NoteSection
from packaging.markers import Marker
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

readers, python, wheels = sys.argv[1:4]
process = subprocess.Popen([readers], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
failed = 0


def ask(what, **words):
    process.stdin.write(json.dumps({"ask": what, **words}) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def tell(name, compared, different, note=""):
    global failed
    failed += len(different) + (compared == 0)
    print(f"{name:52} {compared:7} {len(different):6}  {note}", flush=True)
    for each in different[:8]:
        print("    " + str(each)[:400])


def elf_by_pyelftools(path):
    with open(path, "rb") as file:
        elf = ELFFile(file)
        found = dict(needed=[], soname="", rpath="", runpath="", build_id="", undefined=[], exported=[])
        for segment in elf.iter_segments():
            if isinstance(segment, DynamicSegment):
                for tag in segment.iter_tags():
                    kind = tag.entry.d_tag
                    if kind == "DT_NEEDED":
                        found["needed"].append(tag.needed)
                    elif kind in ("DT_SONAME", "DT_RPATH", "DT_RUNPATH"):
                        name = kind[3:].lower()
                        found[name] = getattr(tag, name)
        for section in elf.iter_sections():
            if isinstance(section, NoteSection) and not found["build_id"]:
                found["build_id"] = next((n["n_desc"] for n in section.iter_notes() if n["n_type"] == "NT_GNU_BUILD_ID" and n["n_name"] == "GNU"), "")
        table = elf.get_section_by_name(".dynsym")
        if table is None:
            return None
        of_symbol = next((s for s in elf.iter_sections() if isinstance(s, GNUVerSymSection)), None)
        needs = next((s for s in elf.iter_sections() if isinstance(s, GNUVerNeedSection)), None)
        names = {}
        for need, versions in needs.iter_versions() if needs else ():
            for version in versions:
                names[version["vna_other"]] = (version.name, need.name)
        for i, symbol in enumerate(table.iter_symbols()):
            bind, where = symbol["st_info"]["bind"], symbol["st_shndx"]
            if i == 0 or not symbol.name:
                continue
            if where == "SHN_UNDEF":
                if bind in ("STB_GLOBAL", "STB_WEAK"):
                    number = of_symbol.get_symbol(i)["ndx"] if of_symbol else 1
                    version = names.get(number & 0x7FFF, ("", "")) if isinstance(number, int) else ("", "")
                    found["undefined"].append([symbol.name, bind == "STB_WEAK", *version])
            elif bind in ("STB_GLOBAL", "STB_WEAK", "STB_LOOS") and symbol["st_other"]["visibility"] in ("STV_DEFAULT", "STV_PROTECTED"):
                found["exported"].append(symbol.name)
        return found


def compare_elf(paths):
    fields = ["needed", "soname", "rpath", "runpath", "build_id", "undefined", "exported"]
    different, compared = {f: [] for f in fields}, 0
    for path in paths:
        try:
            theirs = elf_by_pyelftools(path)
        except (ELFError, UnicodeDecodeError):
            continue
        ours = ask("elf", path=path)
        if theirs is None:
            continue
        compared += 1
        for field in fields:
            one, other = ours.get(field, ours.get("error")), theirs[field]
            if field in ("undefined", "exported") and isinstance(one, list):
                one, other = (sorted(map(json.dumps, x)) for x in (one, other))
                one, other = ([x for x in a if x not in set(b)] for a, b in ((one, other), (other, one))) if one != other else ([], [])
            if one != other:
                different[field].append((path, "ours", one[:3] if isinstance(one, list) else one, "theirs", other[:3] if isinstance(other, list) else other))
    for field in fields:
        tell(f"pyelftools: {field}", compared, different[field])


VERSIONS = """1 1.0 1.0.0 1.1 1.2.3 2.0 2.0a1 2.0b2 2.0rc1 2.0.post1 2.0.dev3 2.0a1.dev1 2.1 2.10 2.11.0 2.11.0+cu130 2.11.1 2.11.0rc2 2.12.0.dev20260101
2.11.0.post2 3 3.8 3.11.7 3.13.0rc1 10.0 0.9 0.9.9 0.10 2026.1 1.2.3.4 2.0+local.1 12.9.86 580.65.06""".split()
RANGES = """>=1 >1 <2 <=2 ==2 !=2 ==2.* !=2.* ~=2.0 ~=2.11.0 >=2.11,<2.12 >=2.11,<3 ==2.11.0 ==2.11.0+cu130 !=2.11.1 <2.0 <=2.0 >2.0 >=2.0a1 ==2.0rc1 ~=1.2
~=1.2.3 >=3.8,!=3.9.* <3.13 >=0.9.9,<1 ==1.0 ==1 >2.11.0 >=2.11.0.post1 <2.11.0 ==2.11.* !=2.11.*,>2""".split()


def compare_ranges():
    different = []
    for spec, version in itertools.product(RANGES, VERSIONS):
        theirs = SpecifierSet(spec).contains(version, prereleases=True)
        ours = ask("range", range=spec, version=version)
        if ours.get("holds") is not theirs:
            different.append((spec, version, "ours", ours, "theirs", theirs))
    tell("packaging: which versions a range takes", len(RANGES) * len(VERSIONS), different)
    different = []
    bad = ["", ">=", "=>1", "1 2", ">1,,<2", "==", "~=1", "<>1", ">= 1.*", "==*", ">=1.*", "latest"]
    for spec in bad:
        try:
            SpecifierSet(spec)
            theirs = True
        except InvalidSpecifier:
            theirs = False
        ours = "holds" in ask("range", range=spec, version="1")
        if ours and not theirs:
            different.append((spec, "ours takes it, theirs does not"))
    tell("packaging: ranges that are none", len(bad), different, "a bare version means == here, on purpose")


def compare_tags(names):
    different, compared = [], 0
    for name in names:
        try:
            theirs = {str(t) for t in parse_wheel_filename(name)[3]}
        except InvalidWheelFilename:
            theirs = None
        ours = ask("tags", path=name)
        compared += 1
        if (set(ours["tags"]) if "tags" in ours else None) != theirs:
            different.append((name, "ours", sorted(ours.get("tags", [ours.get("error")]))[:3], "theirs", sorted(theirs or [])[:3]))
    tell("packaging: tags of a wheel's name", compared, different)


ATOMS = ["python_version >= '3.8'", "python_version < '3.9'", "python_version == '3.11'", "python_version in '3.10 3.11'", "python_full_version >= '3.11.2'",
         "sys_platform == 'linux'", "sys_platform == 'win32'", "platform_system != 'Darwin'", "os_name == 'posix'", "platform_machine == 'x86_64'",
         "platform_machine != 'aarch64'", "implementation_name == 'cpython'", "platform_python_implementation == 'CPython'", "extra == 'dev'",
         "extra == 'test'", "'linux' in sys_platform", "python_version not in '3.6 3.7'", "'3.8' <= python_version"]


def compare_markers():
    different, compared, unknown = [], 0, 0
    environment = json.loads(subprocess.run([python, "-c", """import json, os, platform, sys
print(json.dumps(dict(python_version='.'.join(platform.python_version_tuple()[:2]), python_full_version=platform.python_version(),
  sys_platform=sys.platform, platform_system=platform.system(), os_name=os.name, platform_machine=platform.machine(), implementation_name=sys.implementation.name,
  platform_python_implementation=platform.python_implementation(), platform_release=platform.release(), platform_version=platform.version())))"""],
                                               check=True, stdout=subprocess.PIPE, text=True).stdout)
    texts = ATOMS + [f"{a} and {b}" for a, b in itertools.combinations(ATOMS[::2], 2)] + [f"{a} or {b}" for a, b in itertools.combinations(ATOMS[1::2], 2)]
    texts += [f"({a} or {b}) and {c}" for a, b, c in zip(ATOMS, ATOMS[3:], ATOMS[7:])] + [f"{a} or {b} and {c}" for a, b, c in zip(ATOMS, ATOMS[5:], ATOMS[9:])]
    for text, extra in itertools.product(texts, ("", "dev")):
        theirs = Marker(text).evaluate({**environment, "extra": extra})
        ours = ask("marker", python=python, marker=text, extras=[extra] if extra else []).get("holds")
        compared += 1
        unknown += ours is None
        if ours is not None and ours is not theirs:
            different.append((text, extra, "ours", ours, "theirs", theirs))
    tell("packaging: markers", compared, different, f"{unknown} not decided")


def compare_wheels(paths):
    library = re.compile(r"\.so(\.[0-9.]+)?$")
    different = []
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            theirs = {n: hashlib.sha256(archive.read(n)).hexdigest() for n in archive.namelist() if library.search(n) and not n.endswith("/")}
        ours = ask("wheel", path=path)
        mine = ours.get("libraries")
        # <name>.data/purelib and platlib are unpacked to where an installer puts them.
        flat = lambda d: sorted((os.path.basename(n), h) for n, h in d.items())
        if mine is None or flat(mine) != flat(theirs):
            different.append((path, ours.get("error"), "ours", len(mine or {}), "theirs", len(theirs)))
    tell("zipfile: shared libraries of wheels, by SHA-256", len(paths), different)


PTH = {
    "a.pth": b"one\ntwo\n# no\n\nnot-there\none\n", "b.pth": b"  three\n./four/../four\n", "c.pth": b"import os\nfive\n", "d.pth": b"six\r\n", "e.pth": b"\xef\xbb\xbfseven\n",
    "f.pth": b"eight", "g.pth": b"import\tsys\n", "h.pth": b"nine \n", ".hidden.pth": b"hidden\n", "i.pth": b"/nowhere\n", "j.pth": "zehn-ä\n".encode(), "k.PTH": b"upper\n",
    "l.pth": b"importlike\n", "m.pth": b"\n\n\neleven\n", "n.pth": b"#twelve\ntwelve\n",
}


def compare_site():
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        for name in "one two three four five six seven eight nine hidden zehn-ä upper importlike eleven twelve".split():
            os.mkdir(os.path.join(folder, name))
        for name, data in PTH.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        theirs = json.loads(subprocess.run([python, "-I", "-c", "import json, site, sys; before = list(sys.path); site.addsitedir(sys.argv[1]); "
                                            "print(json.dumps([p for p in sys.path if p not in before][1:]))", folder],
                                           check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)
        ours = []
        for path in ask("pth", path=folder, python=python)["paths"]:
            if os.path.isdir(path) and path not in ours:
                ours.append(path)
        short = lambda paths: [os.path.relpath(p, folder) for p in paths]
        tell("site: paths that .pth files add, in order", len(theirs), [] if ours == theirs else [("ours", short(ours), "theirs", short(theirs))])


def compare_distributions():
    theirs = json.loads(subprocess.run([python, "-c", """import importlib.metadata as m, json, sys
sys.path.pop(0)
print(json.dumps({str(d._path): [d.metadata['Name'], d.version] for d in m.distributions() if d.metadata['Name']}))"""],
                                          check=True, stdout=subprocess.PIPE, text=True).stdout)
    ours = ask("distributions", path=python)["found"]
    real = lambda d: {os.path.realpath(k): v for k, v in d.items()}
    ours, theirs = real(ours), real(theirs)
    different = [(k, "ours", ours.get(k), "theirs", theirs.get(k)) for k in sorted({*ours, *theirs}) if ours.get(k) != theirs.get(k)]
    tell("importlib.metadata: distributions and versions", len(theirs), different)


def main():
    site = subprocess.run([python, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.strip()
    of_torch = [p for p in glob.glob(site + "/**/*.so*", recursive=True) if os.path.getsize(p) < 60 << 20]
    of_system = sorted(p for p in glob.glob("/usr/lib/x86_64-linux-gnu/*.so*") if os.path.isfile(p) and not os.path.islink(p) and os.path.getsize(p) < 30 << 20)
    print(f"{'compared with':52} {'times':>7} {'differ':>6}")
    compare_elf(of_torch + of_system[:: max(1, len(of_system) // 150)])
    compare_ranges()
    files = sorted(glob.glob(wheels + "/**/*.whl", recursive=True))
    compare_tags([os.path.basename(f) for f in files] +
                 ["a-1-py2.py3-none-any.whl", "a-1-1-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "a-1.whl", "a-1-py3-none.whl", "a-1-x-py3-none-any.whl",
                  "A_b-1.0+cu1-cp38-cp38-linux_x86_64.whl", "a-1-py3-none-any.zip", "-1-py3-none-any.whl", "a--py3-none-any.whl"])
    compare_markers()
    compare_wheels([f for f in files if os.path.getsize(f) < 80 << 20])
    compare_site()
    compare_distributions()
    process.stdin.close()
    sys.exit(f"{failed} differences" if failed else 0)


if __name__ == "__main__":
    main()
