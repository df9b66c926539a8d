// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace scankit::probes {

// Runs in the user's own Python (3.6 and up): imports the modules named on its command line in turn, and says
// on descriptor 3 what became of each, one JSON object a line. Standard output and error are the modules'
// own. Descriptor 3 is moved away first, so that nobody's noise can land among the answers, and the end is
// _exit: what the interpreter does while it closes down is no part of an import.
//
// "apart" instead of "here" takes the current directory, which `python -c` puts in front, off sys.path: no file
// of it is run because a stranger's package declares a module of its name.
//
// "?pkg.part:name,other" goes on after a failure, and asks the module for these names as `from pkg.part
// import name` would. `missing` is what an import in the chain of errors did not find, `raised_at` the
// innermost line that is in a file, `raised_through` the files on the way to it. What a function takes is written as pybind11 writes it, a Python
// function's `def` likewise. `gil` is the module that turned the GIL of a free-threaded Python on (PEP 703), as
// the interpreter's warning names it: it does not declare Py_MOD_GIL_NOT_USED. "/path/file.so" is loaded as the loader does it for an import, all names bound
// at once.
inline constexpr const char* kImportProgram = R"(
import os, sys
channel = os.dup(3)
os.close(3)
dump_at, modules = float(sys.argv[1]), sys.argv[3:]
if sys.argv[2] == 'apart' and sys.path[:1] == ['']:
    del sys.path[0]
sys.argv[:] = ['-c']
import faulthandler, importlib, json, re, time
def say(**fields):
    os.write(channel, (json.dumps(fields) + '\n').encode())
def text(value):
    return str(value).encode('utf-8', 'backslashreplace').decode()[:4000]
def signatures(module, asked):
    found = []
    try:
        for name, value in sorted(vars(module).items()):
            kind = type(value).__name__
            doc = getattr(value, '__doc__', None) if kind == 'builtin_function_or_method' else None
            if isinstance(doc, str) and doc.startswith(name + '('):
                found.append(text(doc.split('\n', 1)[0]))
            elif name in asked and kind == 'function':
                import inspect
                takes = [('*' if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) else '') + p.name +
                         ('' if p.default is p.empty else ' = ...')
                         for p in inspect.signature(value).parameters.values()]
                found.append(text(name + '(' + ', '.join(takes) + ') -> object'))
    except Exception:
        pass
    return found[:200]
def missing(problem):
    for _ in range(20):
        if type(problem).__name__ == 'PackageNotFoundError':
            words = text(problem.args[0] if problem.args else '')
            words = words.split("'")[1] if words.startswith("The '") else words
            return re.split('[^A-Za-z0-9._-]', words)[0]
        if isinstance(problem, ImportError) and str(problem).startswith('No module named '):
            return text(problem.name or '')
        problem = problem.__cause__ or problem.__context__
        if problem is None:
            break
    return ''
def raised_at(problem):
    trace, place = problem.__traceback__, ''
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith('<'):
            place = name + ':' + str(trace.tb_lineno)
        trace = trace.tb_next
    return text(place) if importlib.__file__ not in place else ''
def raised_through(problem):
    trace, files = problem.__traceback__, []
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not name.startswith('<') and name not in files and name != importlib.__file__:
            files.insert(0, name)
        trace = trace.tb_next
    return [text(each) for each in files[:20]]
gil_is_on = getattr(sys, '_is_gil_enabled', lambda: True)
def offers(module, name):
    try:
        if hasattr(module, name):
            return True
        importlib.import_module(module.__name__ + '.' + name)
        return True
    except BaseException:
        return False
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except Exception:
    pass
say(event='start', pid=os.getpid(), version='.'.join(map(str, sys.version_info[:3])))
try:
    errors = os.fdopen(os.dup(2), 'w')
    faulthandler.enable(errors)
    faulthandler.dump_traceback_later(max(0.01, dump_at - time.monotonic()), file=errors)
except Exception:
    pass
for name in modules:
    soft, name = name.startswith('?'), name.lstrip('?')
    is_file = name.startswith('/')
    name, _, asked = (name, '', '') if is_file else name.partition(':')
    asked = [each for each in asked.split(',') if each]
    say(event='begin', module=name)
    began = time.monotonic()
    answer = {'event': 'end', 'module': name, 'outcome': 'ok'}
    try:
        if is_file:
            import ctypes
            module = ctypes.CDLL(name, os.RTLD_NOW | os.RTLD_LOCAL)
            module.__file__ = name
        elif gil_is_on():
            module = importlib.import_module(name)
        else:
            import warnings
            with warnings.catch_warnings(record=True) as warned:
                module = importlib.import_module(name)
            if gil_is_on():
                named = [re.findall("GIL.* to load module '([^']+)'", str(each.message)) for each in warned]
                answer['gil'] = text(([name] + sum(named, []))[-1])
        answer['file'] = text(getattr(module, '__file__', None) or '')
        answer['signatures'] = signatures(module, asked)
        answer['lacks'] = [each for each in asked if not offers(module, each)]
    except BaseException as problem:
        answer.update(outcome='error', exception=type(problem).__name__, message=text(problem),
                      missing=missing(problem), raised_at=raised_at(problem),
                      raised_through=raised_through(problem))
    answer['ms'] = int((time.monotonic() - began) * 1000)
    say(**answer)
    if answer['outcome'] != 'ok' and not soft:
        break
os._exit(0)
)";

}  // namespace scankit::probes
