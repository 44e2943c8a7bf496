"""Makes the tokenizer.json that a GGUF file's byte-level BPE vocabulary stands for."""

import json
import struct

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9

SMOLLM_PRE_TOKENIZER = {
    "type": "Sequence",
    "pretokenizers": [
        {"type": "Digits", "individual_digits": True},
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    ],
}


class _Reader:
    def __init__(self, data):
        self.data, self.offset = data, 0

    def scalar(self, code):
        value, = struct.unpack_from(code, self.data, self.offset)
        self.offset += struct.calcsize(code)
        return value

    def string(self):
        size = self.scalar("<Q")
        self.offset += size
        return self.data[self.offset - size:self.offset].decode()

    def value(self, kind):
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            element, count = self.scalar("<I"), self.scalar("<Q")
            return [self.value(element) for _ in range(count)]
        return self.scalar(_SCALARS[kind])


def read_metadata(path):
    with open(path, "rb") as file:
        reader = _Reader(file.read(8 << 20))
    assert reader.scalar("<I") == 0x46554747
    assert reader.scalar("<I") in (2, 3)
    reader.scalar("<Q")
    return {key: reader.value(reader.scalar("<I"))
            for key in (reader.string() for _ in range(reader.scalar("<Q")))}


def smollm_tokenizer_json(path):
    """The tokenizer.json (as a dict, without added tokens) of a GGUF file with `tokenizer.ggml.pre` = smollm."""
    fields = read_metadata(path)
    assert fields["tokenizer.ggml.pre"] == "smollm"
    tokens = fields["tokenizer.ggml.tokens"]
    return {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": SMOLLM_PRE_TOKENIZER,
        "post_processor": None,
        "decoder": None,
        "model": {
            "type": "BPE",
            "unk_token": tokens[fields["tokenizer.ggml.unknown_token_id"]],
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in fields["tokenizer.ggml.merges"]],
        },
    }


if __name__ == "__main__":
    import sys
    json.dump(smollm_tokenizer_json(sys.argv[1]), sys.stdout, ensure_ascii=False)
