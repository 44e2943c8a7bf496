#!/usr/bin/env python3
"""House rules that a compiler does not check; CONTRIBUTING.md gives the reasons.

    lint.py [ROOT]      exit 0, or 1 with one line a violation; prints the largest files, functions
"""

import os
import re
import subprocess
import sys
from pathlib import Path

CODE = (".h", ".cpp", ".cu", ".cuh")
PRODUCT = ("src/", "include/", "apps/", "python/", "bench/")
BANNED_WORDS = {"util", "utils", "helper", "helpers", "common", "manager", "misc", "legacy"}
BANNED_LAST_WORDS = {"new", "old", "fast", "v2", "v3", "final", "impl2"}  # a parallel version

# A caught exception is thrown on, with more said or something tidied up. Where it may end, and why:
CATCH_PLACES = {
    "apps/": "the program's border: message and exit code",
    "bench/": "the program's border",
    "python/": "the border to Python: translation of the exception",
    "src/base/thread_pool.cpp": "a worker hands its exception to the caller",
    "src/relational/callback_guard.cpp": "the border to callbacks in C: kept and thrown again",
    "src/infer/prompt_forest.cpp": "draining after a failure must not hide that failure",
    "src/session/user_position.h": "the session's one place for failures that it reports",
}

# Hard limits in lines. Kernels and a model's forward are the two places where length is tolerated.
FILE_LIMIT = 700
FUNCTION_LIMIT = 100
LONG_FUNCTION_LIMIT = 150
LONG_FUNCTION_FOLDERS = ("src/infer/cuda/", "src/infer/models/", "lab/")
PARAMETER_LIMIT = 5
KERNELS = re.compile(r"\.cuh?$|^src/infer/cpu/cpu_kernels")  # plain C signatures with strides


# --- reading C++ ----------------------------------------------------------------------------------

TOKEN = re.compile(
    r'R"([^\s()\\]{0,16})\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.S,
)
DIGIT_SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
FUNCTION_END = re.compile(
    r"\)\s*(const|noexcept|override|final|mutable|&&?|\s)*(->[^()]*(\(.*\))?)?(requires\b.*)?(:[^:].*)?$",
    re.S,
)
CONTROL = re.compile(r"^(if|for|while|switch|do|else|try|catch|return)\b")


def blanked(text):
    """The text with comments and literals replaced by spaces; line numbers stay."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return TOKEN.sub(blank, DIGIT_SEPARATOR.sub("", text))


def parameters_of(head):
    """Number of parameters of a function whose text up to its body is `head`."""
    depth, count, empty = 0, 1, True
    for c in head[head.index("(") + 1:]:
        if c == ")" and depth == 0:
            return 0 if empty else count
        depth += (c in "(<[{") - (c in ")>]}")
        count += c == "," and depth == 0
        empty = empty and c.isspace()
    return count


def is_function(head):
    """True when a body may follow `head`: parameters, qualifiers, a trailing type, initialisers."""
    if "(" not in head or CONTROL.match(head) or "=" in head.partition("(")[0]:
        return False
    return FUNCTION_END.search(head) is not None


def functions_of(text):
    """(line, lines, parameters, name) of each function with a body; a rough brace counter."""
    code = re.sub(r"^[ \t]*#[^\n]*(\\\n[^\n]*)*", lambda m: re.sub(r"[^\n]", " ", m.group()),
                  blanked(text), flags=re.M)
    stack, start = [], 0
    for position, c in enumerate(code):
        if c == "{":
            head = code[start:position].strip()
            inside = any(kind for kind, _, _ in stack)
            stack.append((not inside and is_function(head), position, head))
        elif c == "}" and stack:
            function, begin, head = stack.pop()
            if function:
                name = re.search(r"([\w:~]+)\s*\(", head)
                first, last = code.count("\n", 0, begin) + 1, code.count("\n", 0, position) + 1
                yield first, last - first + 1, parameters_of(head), name.group(1) if name else "?"
        if c in "{};":
            start = position + 1


# --- rules: (path, text) to (line, message) -------------------------------------------------------


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def matches(pattern, text, message):
    for match in re.finditer(pattern, text):
        yield line_of(text, match.start()), message


def rule_name(path, _):
    words = re.split(r"[_\-]", Path(path).name.partition(".")[0].lower())
    for word in sorted(BANNED_WORDS.intersection(words) | BANNED_LAST_WORDS.intersection(words[-1:])):
        yield 1, f"file name says nothing of what is inside: {word}"
    if path.endswith(CODE) and not re.fullmatch(r"[a-z0-9_]+", Path(path).stem):
        yield 1, "file names are snake_case"


def rule_header(path, text):
    if path.endswith((".h", ".cuh")) and "#pragma once" not in text:
        yield 1, "header without #pragma once"


def block_after(code, position):
    """The first {..} block behind a position, braces included."""
    begin = code.index("{", position)
    depth = 0
    for end in range(begin, len(code)):
        depth += (code[end] == "{") - (code[end] == "}")
        if depth == 0:
            return code[begin:end + 1]
    return code[begin:]


def rule_catch(path, text):
    """No failure is swallowed outside the listed places."""
    if not (path.endswith(CODE) and path.startswith(PRODUCT)) or path.startswith(
            tuple(CATCH_PLACES)):
        return
    code = blanked(text)
    for match in re.finditer(r"\bcatch\s*\(", code):
        if not re.search(r"\bthrow\b", block_after(code, match.end())):
            yield line_of(text, match.start()), "a caught exception is thrown on (see lint.py)"


def rule_print(path, text):
    if path.endswith(CODE) and path.startswith("src/") and path != "src/base/check.cpp":
        pattern = r"\bstd::c(out|err|log)\b|\b(f?printf|puts|fputs)\s*\("
        yield from matches(pattern, blanked(text), "library code does not print")


def rule_arrow_scan(path, text):
    if path.endswith((*CODE, ".py")) and path not in ("tools/lint.py", "tests/tools/lint_test.py"):
        yield from matches("duckdb_arrow_" "scan", text, "it drops filters silently")


def rule_todo(path, text):
    if path.endswith((*CODE, ".py", ".txt", ".cmake")) and not path.endswith(
            ("lint.py", "lint_test.py")):
        pattern = r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))"
        yield from matches(pattern, text, "TODO(#issue) names its issue")


def rule_disabled_test(path, text):
    if not path.startswith(("tests/", "python/")) or path == "tests/tools/lint_test.py":
        return
    yield from matches(r"\bGTEST_SKIP\(\)\s*;", text, "a skipped test says why")
    yield from matches(r"@(unittest|pytest\.mark)\.skip(?![^\n]*[\"'])", text,
                       "a skipped test says why")
    for match in re.finditer(r"\bDISABLED_", text):
        before = text[:match.start()].splitlines()[-2:]
        if not any(re.search(r"#\d+", line) for line in before):
            yield line_of(text, match.start()), "a disabled test names its issue above it"


def rule_place(path, text):
    yield from matches(r"/wor" r"k/", text, "path of one computer")


def rule_size(path, text):
    if not path.endswith((*CODE, ".py")):
        return
    lines = text.count("\n")
    if lines > FILE_LIMIT:
        yield 1, f"{lines} lines; the limit is {FILE_LIMIT}"
    if path.endswith(CODE) and path.startswith((*PRODUCT, "lab/")):
        long_ok = path.startswith(LONG_FUNCTION_FOLDERS)
        limit = LONG_FUNCTION_LIMIT if long_ok else FUNCTION_LIMIT
        for line, length, parameters, name in functions_of(text):
            if length > limit:
                yield line, f"{name} has {length} lines; the limit is {limit}"
            if parameters > PARAMETER_LIMIT and not KERNELS.search(path):
                yield line, f"{name} has {parameters} parameters; more than 5 are a struct"


RULES = (rule_name, rule_header, rule_catch, rule_print, rule_arrow_scan, rule_todo,
         rule_disabled_test, rule_place, rule_size)


def unlisted_sources(root, paths):
    """Sources that neither the CMakeLists.txt above them nor cmake/ names."""
    modules = "".join(f.read_text() for f in sorted((root / "cmake").glob("*.cmake")))
    for path in paths:
        if not path.endswith((".cpp", ".cu")) or path.startswith("python/") or path in modules:
            continue
        for folder in Path(path).parents:
            lists = root / folder / "CMakeLists.txt"
            if lists.is_file():
                name = Path(path).relative_to(folder).as_posix()
                if not re.search(rf"(?<![\w/]){re.escape(name)}(?!\w)", lists.read_text()):
                    yield path, 1, f"not in {folder.as_posix()}/CMakeLists.txt"
                break


MENTION = re.compile(r"`([^`\n]+)`|\]\(([^)#\s]+)")
PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+/?")


def lost_paths(texts, paths):
    """Paths in Markdown that lead nowhere: links, and what `..` names below the root or src/.
    `plan/binder` stands for plan/binder.h and .cpp."""
    folders = {str(folder) for path in paths for folder in Path(path).parents} - {"."}
    known = folders | {name for path in paths for name in (path, path.rpartition(".")[0])}
    for page in texts:
        if not page.endswith(".md"):
            continue
        for match in MENTION.finditer(texts[page]):
            code, link = match.groups()
            if link and "://" not in link:
                named = [Path(os.path.normpath(Path(page).parent / link)).as_posix()]
            else:
                named = [word.rstrip("/.") for word in re.split(r"[\s,;:()]+", code or "")
                         if PATH.fullmatch(word)]
                named = [word for word in named
                         if {word.split("/")[0], f"src/{word.split('/')[0]}"} & folders]
            for path in named:
                if not {path, f"src/{path}"} & known:
                    yield page, line_of(texts[page], match.start()), f"no such file: {path}"


def files_of(root):
    """Paths of all files that git does not ignore (of all files where there is no git)."""
    done = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        return sorted(f.relative_to(root).as_posix() for f in root.rglob("*") if f.is_file())
    return sorted(p for p in done.stdout.splitlines() if (root / p).is_file())


def check_tree(root):
    """All violations as (path, line, message), and {path: text} of what was read."""
    texts = {}
    paths = files_of(root)
    for path in paths:
        try:
            texts[path] = (root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    violations = [(path, line, message) for path, text in texts.items()
                  for rule in RULES for line, message in rule(path, text)]
    violations += unlisted_sources(root, texts)
    violations += lost_paths(texts, paths)
    return violations, texts


def print_largest(texts):
    code = {p: t for p, t in texts.items() if p.endswith(CODE) and p.startswith(PRODUCT)}
    files = sorted(((t.count("\n"), p) for p, t in code.items()), reverse=True)
    functions = sorted(((lines, f"{name} ({path}:{line})") for path, text in code.items()
                        for line, lines, _, name in functions_of(text)), reverse=True)
    for title, rows in (("files", files), ("functions", functions)):
        print(f"longest {title}:")
        for lines, name in rows[:10]:
            print(f"  {lines:4d}  {name}")
    if functions:
        lengths = sorted(lines for lines, _ in functions)
        print(f"{len(lengths)} functions, median {lengths[len(lengths) // 2]} lines, "
              f"95th percentile {lengths[len(lengths) * 95 // 100]}")


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations, texts = check_tree(root)
    print_largest(texts)
    for path, line, message in violations:
        print(f"{path}:{line}: {message}")
    print(f"lint: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
