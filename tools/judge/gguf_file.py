"""Reads a GGUF file with numpy: metadata, tensors as stored, and float32 values of F32, Q4_1 and Q8_0 tensors."""
import dataclasses
import mmap
import struct

import numpy as np

F32, Q4_1, Q8_0 = 0, 3, 8
BLOCK_BYTES = {Q4_1: 20, Q8_0: 34}  # per block of 32 values
_SCALAR = {0: '<B', 1: '<b', 2: '<H', 3: '<h', 4: '<I', 5: '<i', 6: '<f', 7: '<?', 10: '<Q', 11: '<q', 12: '<d'}
_STRING, _ARRAY = 8, 9


@dataclasses.dataclass
class Tensor:
    kind: int
    shape: tuple  # (rows, columns), or (columns,) for a vector
    data: np.ndarray  # bytes as stored, uint8


class _Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def scalar(self, form):
        value, = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        length = self.scalar('<Q')
        self.at += length
        return self.data[self.at - length:self.at].decode('utf8')

    def value(self, kind):
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            inner, count = self.scalar('<I'), self.scalar('<Q')
            return [self.value(inner) for _ in range(count)]
        return self.scalar(_SCALAR[kind])


def read_gguf(path):
    """(metadata, {name: Tensor})."""
    with open(path, 'rb') as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    cursor = _Cursor(data)
    if data[:4] != b'GGUF':
        raise ValueError(f'{path}: not a GGUF file')
    cursor.at = 8
    tensor_count, key_count = cursor.scalar('<Q'), cursor.scalar('<Q')
    metadata = {}
    for _ in range(key_count):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.scalar('<I'))
    heads = []
    for _ in range(tensor_count):
        name = cursor.text()
        shape = tuple(cursor.scalar('<Q') for _ in range(cursor.scalar('<I')))[::-1]
        heads.append((name, shape, cursor.scalar('<I'), cursor.scalar('<Q')))
    alignment = metadata.get('general.alignment', 32)
    start = -(-cursor.at // alignment) * alignment
    tensors = {}
    for name, shape, kind, offset in heads:
        values = int(np.prod(shape))
        size = values * 4 if kind == F32 else values // 32 * BLOCK_BYTES[kind]
        tensors[name] = Tensor(kind, shape, np.frombuffer(data, np.uint8, size, start + offset))
    return metadata, tensors


def dequantised(tensor):
    """float32 values, shape as in the file."""
    if tensor.kind == F32:
        return tensor.data.view(np.float32).reshape(tensor.shape)
    blocks = tensor.data.reshape(-1, BLOCK_BYTES[tensor.kind])
    if tensor.kind == Q8_0:
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return (blocks[:, 2:].view(np.int8) * scale).reshape(tensor.shape)
    scale = blocks[:, :4].copy().view(np.float16).astype(np.float32)
    packed = blocks[:, 4:]
    values = np.concatenate([packed & 15, packed >> 4], axis=1)
    return (values * scale[:, :1] + scale[:, 1:]).reshape(tensor.shape)


def to_half_split(weight, heads):
    """Rows of Q or K from the GGUF's order (rotary pairs adjacent) to the order in which the halves of a head rotate."""
    rows = weight.shape[0]
    return np.ascontiguousarray(weight.reshape(heads, rows // heads // 2, 2, -1).swapaxes(1, 2).reshape(weight.shape))


def to_adjacent(weight, heads):
    """The inverse of to_half_split: rows in the GGUF's own order."""
    rows = weight.shape[0]
    return np.ascontiguousarray(weight.reshape(heads, 2, rows // heads // 2, -1).swapaxes(1, 2).reshape(weight.shape))
