#!/usr/bin/env python3
"""Writes tests/data/gguf_blocks.json: blocks of every GGUF type and their values by the gguf package.

    pip install gguf==0.17.1
    tools/dump_block_formats.py tests/data/gguf_blocks.json
"""
import json
import sys

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf.quants import dequantize

# Block bytes, and the offsets of its half-precision scales.
BLOCKS = {Type.Q4_0: (18, [0]), Type.Q4_1: (20, [0, 2]), Type.Q5_0: (22, [0]), Type.Q8_0: (34, [0]),
          Type.Q4_K: (144, [0, 2]), Type.Q6_K: (210, [208]), Type.F16: (2, [0]), Type.BF16: (2, [])}
SCALES = [0.1015625, -0.03125]


def main():
    cases = {}
    for kind, (size, scales) in BLOCKS.items():
        data = np.array([(i * 37 + 11) % 251 for i in range(2 * size)], dtype=np.uint8)
        for block in range(2):
            for offset, value in zip(scales, SCALES):
                begin = block * size + offset
                data[begin:begin + 2] = np.frombuffer(np.float16(value).tobytes(), np.uint8)
        values = dequantize(data, kind)
        cases[kind.name] = {"bytes": data.tobytes().hex(),
                            "values": [float(value) for value in values.astype(np.float32)]}
    with open(sys.argv[1], "w", encoding="utf-8") as output:
        lines = (f"{json.dumps(name)}: {json.dumps(case)}" for name, case in cases.items())
        output.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
