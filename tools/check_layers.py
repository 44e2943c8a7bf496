#!/usr/bin/env python3
"""Check the directions of tools/layers.txt on every #include and on every library's LINK list.

Also: CUDA headers only below src/infer/cuda (and tests and benchmarks of kernels), Python headers
only below python/, quoted includes only by path from src/ or include/. There is no list of
exceptions.

    check_layers.py [ROOT]      exit 0, or 1 with one line a violation
"""

import re
import sys
from pathlib import Path

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
LIBRARY = re.compile(r"\bquail_library\(\s*(\w+)([^)]*)\)")
CUDA_HEADER = re.compile(
    r"^(cuda|cublas|cudnn|nvml|nvtx|curand|cub/|cute/|cutlass/|deep_gemm/|thrust/|mma\.h"
    r"|cooperative_groups)"
)
PYTHON_HEADER = re.compile(r"^(Python\.h|nanobind/|pybind11/)")
CUDA_FOLDERS = ("src/infer/cuda/", "bench/kernels/", "lab/", "tests/parity/", "tests/unit/infer/cuda/")
SUFFIXES = (".h", ".cpp", ".cu", ".cuh")


def read_layers(path):
    """{folder: set of layers it may include}; layers are names of src/ folders or `api`."""
    layers = {}
    for line in path.read_text().splitlines():
        line = line.partition("#")[0].strip()
        if line:
            folder, _, allowed = line.partition(":")
            layers[folder.strip()] = set(allowed.split())
    return layers


def find_cycle(layers):
    """A folder that can reach itself, or None."""
    graph = {f.removeprefix("src/"): allowed for f, allowed in layers.items()}
    for start in graph:
        seen, open_names = set(), set(graph[start])
        while open_names:
            name = open_names.pop()
            if name == start:
                return start
            if name not in seen:
                seen.add(name)
                open_names |= graph.get(name, set())
    return None


def folder_of(path, layers):
    """The innermost folder of layers.txt that holds the file, or None."""
    inside = [folder for folder in layers if path.startswith(folder + "/")]
    return max(inside, key=len, default=None)


def layer_of(header, layers):
    """The layer that a quoted header belongs to, or None when it belongs to none."""
    top = header.split("/")[0]
    if top == "quail":
        return "quail/error.h" if header == "quail/error.h" else "api"
    return top if f"src/{top}" in layers else None


def check_quoted(path, header, layers):
    folder = folder_of(path, layers)
    if folder is None:
        return f"{path}: its folder is not in layers.txt"
    layer = layer_of(header, layers)
    if layer is None:
        # Generated headers and those beside a program (apps, bench) have no layer.
        if folder.startswith("src/") and ("/" not in header or header.startswith(".")):
            return f'{path}: "{header}" must be included by its path from src/ or include/'
        return None
    own = {folder.removeprefix("src/"), "quail/error.h"}
    if folder == "include/quail":
        own.add("api")
    if layer in own or layer in layers[folder] or header in layers[folder]:
        return None
    return f'{path}: {folder} may not include "{header}" ({layer})'


def check_anywhere(path, header):
    if CUDA_HEADER.match(header) and not path.startswith(CUDA_FOLDERS):
        return f"{path}: CUDA header <{header}> outside src/infer/cuda"
    if PYTHON_HEADER.match(header) and not path.startswith("python/"):
        return f"{path}: Python header <{header}> outside python/"
    return None


def check_file(path, text, layers):
    for quote, header in INCLUDE.findall(text):
        yield check_anywhere(path, header)
        in_layers = path.startswith(("src/", "include/", "apps/", "python/", "bench/"))
        if in_layers and (quote == '"' or layer_of(header, layers)):
            yield check_quoted(path, header, layers)


def check_links(path, text, layers):
    for name, arguments in LIBRARY.findall(text):
        allowed = layers.get(f"src/{name}")
        if allowed is None:
            yield f"{path}: library {name} is not in layers.txt"
            continue
        for linked in re.findall(r"\bquail_(\w+)", arguments):
            if f"src/{linked}" in layers and linked not in allowed:
                yield f"{path}: library {name} may not link quail_{linked}"


def check_folders(root, layers):
    return [f"tools/layers.txt: there is no {folder}" for folder in layers if not (root / folder).is_dir()]


def check_tree(root):
    layers = read_layers(root / "tools" / "layers.txt")
    cycle = find_cycle(layers)
    violations = [f"tools/layers.txt: {cycle} can reach itself"] if cycle else []
    tops = ("src", "include", "apps", "python", "bench", "lab", "tests")
    for file in sorted(f for top in tops for f in (root / top).rglob("*") if f.is_file()):
        path = file.relative_to(root).as_posix()
        if file.suffix in SUFFIXES:
            violations += filter(None, check_file(path, file.read_text(), layers))
        elif file.name == "CMakeLists.txt":
            violations += filter(None, check_links(path, file.read_text(), layers))
    return violations


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations = check_folders(root, read_layers(root / "tools" / "layers.txt")) + check_tree(root)
    print(*violations, sep="\n", end="\n" if violations else "")
    print(f"layers: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
