"""Tensor-parallel decoding: a transformer over several ranks writes a text, token by token.

    rdmarun -np 2 examples/14_tensor_parallel_decoding.py

Each rank has some heads of the attention, hidden units of the MLP and words of the vocabulary, and
keeps the keys and values of its own heads. A token takes two sums per layer and one gathering of
logits, each of a few hundred bytes to a few kilobytes: what a call costs is what counts. The same
model is run by the operators of torch.ops.rdmacoll and by the calls of torch.distributed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

import rdmacoll.ops

HEAD, HEADS, LAYERS, WORDS = 16, 12, 4, 768  # divide among 1, 2, 3, 4, 6 and 12 ranks
WIDTH = HEAD * HEADS
# torch has renamed it.
all_gather_single = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)


class Collectives(Protocol):
    def sum_(self, part: Tensor) -> None: ...
    def gather(self, whole: Tensor, part: Tensor) -> None: ...


class ByOperators:
    def __init__(self) -> None:
        self._group = rdmacoll.ops.handle()

    def sum_(self, part: Tensor) -> None:
        torch.ops.rdmacoll.all_reduce_(part, self._group)

    def gather(self, whole: Tensor, part: Tensor) -> None:
        torch.ops.rdmacoll.all_gather_into(whole, part, self._group)


class ByCalls:
    def sum_(self, part: Tensor) -> None:
        dist.all_reduce(part)

    def gather(self, whole: Tensor, part: Tensor) -> None:
        all_gather_single(whole, part)


def drawn(*sizes: int, divided: int | None = None) -> Tensor:
    """Weights; of those that are divided along that dimension, this rank's."""
    whole = torch.randn(sizes) / math.sqrt(sizes[-1])
    if divided is None:
        return whole
    return whole.chunk(dist.get_world_size(), divided)[dist.get_rank()].contiguous()


class Layer:
    def __init__(self, length: int) -> None:
        self._qkv = drawn(HEADS, 3 * HEAD, WIDTH, divided=0)
        heads = self._qkv.shape[0]
        self._qkv = self._qkv.flatten(0, 1)
        self._out = drawn(WIDTH, WIDTH, divided=1)
        self._up, self._down = (
            drawn(4 * WIDTH, WIDTH, divided=0),
            drawn(WIDTH, 4 * WIDTH, divided=1),
        )
        self._keys, self._values = (torch.zeros(heads, length, HEAD) for _ in range(2))

    def step(self, x: Tensor, at: int, collectives: Collectives) -> Tensor:
        query, key, value = (self._qkv @ layer_norm(x, x.shape)).view(-1, 3, HEAD).unbind(1)
        self._keys[:, at], self._values[:, at] = key, value
        known = slice(at + 1)
        attended = scaled_dot_product_attention(
            query[:, None], self._keys[:, known], self._values[:, known]
        )
        part = self._out @ attended.flatten()
        collectives.sum_(part)
        x = x + part
        part = self._down @ gelu(self._up @ layer_norm(x, x.shape))
        collectives.sum_(part)
        return x + part


class Transformer:
    def __init__(self, length: int) -> None:
        torch.manual_seed(0)
        self._length = length
        self._words, self._places = drawn(WORDS, WIDTH), drawn(length, WIDTH)
        self._layers = [Layer(length) for _ in range(LAYERS)]
        self._head = drawn(WORDS, WIDTH, divided=0)

    def decode(self, collectives: Collectives) -> list[int]:
        """The likeliest word, again and again."""
        tokens, logits = [0], torch.empty(WORDS)
        for at in range(self._length):
            x = self._words[tokens[-1]] + self._places[at]
            for layer in self._layers:
                x = layer.step(x, at, collectives)
            collectives.gather(logits, self._head @ layer_norm(x, x.shape))
            tokens.append(int(logits.argmax()))
        return tokens


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("rdma")

    model = Transformer(options.tokens)
    ways: dict[str, Collectives] = {
        "torch.ops.rdmacoll": ByOperators(),
        "torch.distributed": ByCalls(),
    }
    tokens: dict[str, list[int]] = {}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    with torch.inference_mode():
        for _ in range(options.rounds):
            for name, collectives in ways.items():
                began = time.perf_counter()
                tokens[name] = model.decode(collectives)
                rates[name].append(options.tokens / (time.perf_counter() - began))

    texts: list[list[list[int]]] = [[]] * dist.get_world_size()
    dist.all_gather_object(texts, list(tokens.values()))
    if len({tuple(text) for everyone in texts for text in everyone}) > 1:
        raise SystemExit("the ranks, or the two ways, decode different tokens")
    if dist.get_rank() == 0:
        for name, own in rates.items():
            print(f"{name}: {statistics.median(own):.0f} tokens/s")
        print(f"{options.tokens} tokens are the same, both ways and on all ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
