#!/usr/bin/env python3
"""Write tests/data/arrow: small Arrow IPC files as another implementation writes them.

    dump_arrow_files.py      needs pyarrow (26.0 was used); run by hand, the files are committed
"""

from pathlib import Path

import pyarrow as pa
from pyarrow import feather, ipc

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "arrow"


def main():
    ids = list(range(40))
    texts = [f"row {i % 3}" if i % 5 else None for i in ids]
    table = pa.table({"id": ids, "t": texts})
    coded = pa.table({"id": ids, "t": pa.array(texts).dictionary_encode()})
    for compression in ("uncompressed", "lz4", "zstd"):
        feather.write_feather(table, FOLDER / f"{compression}.feather", compression=compression)
    feather.write_feather(coded, FOLDER / "dictionary.feather", compression="uncompressed")
    feather.write_feather(coded, FOLDER / "dictionary_zstd.feather", compression="zstd")
    with ipc.new_stream(FOLDER / "stream.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=15)


if __name__ == "__main__":
    main()
