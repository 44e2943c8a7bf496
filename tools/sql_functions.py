#!/usr/bin/env python3
"""Write the function table of docs/sql.md from what the program says of its functions.

    sql_functions.py QUAIL [--check]    exit 1 with --check if the page is not current
"""

import json
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "sql.md"
BEGIN = "<!-- functions: written by tools/sql_functions.py -->\n"
END = "<!-- end of functions -->\n"
QUERY = "SELECT * FROM quail_functions() ORDER BY status DESC, name"


def code(text):
    return f"`{text}`" if text else "-"


def table_of(functions):
    columns = list(functions[0])  # name, one a dialect, arguments ..
    dialects = columns[1:columns.index("arguments")]
    heads = ["function", *dialects, "arguments", "result", "meaning"]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for row in functions:
        meaning = row["summary"]
        if row["status"] != "supported":
            meaning = f"{row['status']}: {meaning}"
        if row["example"]:
            meaning += f" `{row['example']}`"
        spellings = [code(row[dialect]) for dialect in dialects]
        lines.append("| " + " | ".join([row["name"], *spellings, code(row["arguments"]),
                                        row["result_type"], meaning]) + " |")
    return "\n".join(lines) + "\n"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    rows = subprocess.run([arguments[0], "--format", "jsonl", "-c", QUERY], check=True, text=True,
                          capture_output=True).stdout
    functions = [json.loads(line) for line in rows.splitlines()]
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    current = before + BEGIN + table_of(functions) + END + after
    if "--check" not in sys.argv:
        PAGE.write_text(current)
    elif current != page:
        sys.exit("docs/sql.md is not current: run tools/sql_functions.py QUAIL")


if __name__ == "__main__":
    main()
