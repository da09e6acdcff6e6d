"""`python data.py NAME` makes what a program reads, small and random, in the current folder."""

import gzip
import json
import pickle
import random
import struct
import sys
from pathlib import Path

WORDS = [
    a + b for a in ["ka", "lo", "mi", "ne", "su", "ta", "ro", "vi"] for b in ["na", "pe", "ri", "so", "tu"]
]


def lines(count: int, seed: int = 0) -> str:
    chance = random.Random(seed)
    return "".join(" ".join(chance.choices(WORDS, k=12)) + "\n" for _ in range(count))


def shakespeare() -> None:
    """nanoGPT's tokens of two bytes, and its vocabulary."""
    for part, count in (("train", 60_000), ("val", 8_000)):
        tokens = random.Random(part).choices(range(64), k=count)
        Path("data/shakespeare_char", part + ".bin").write_bytes(struct.pack(f"<{count}H", *tokens))
    vocabulary = {"vocab_size": 64, "itos": {}, "stoi": {}}
    Path("data/shakespeare_char/meta.pkl").write_bytes(pickle.dumps(vocabulary))


def wikitext() -> None:
    for folder in ("data/wikitext-2", "data", "data/penn"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(("train", "valid", "test")):
            Path(folder, part + ".txt").write_text(
                lines(3000 if part == "train" else 60, number), encoding="utf-8"
            )


def waves() -> None:
    import numpy
    import torch

    torch.save(numpy.sin(numpy.random.rand(20, 1) + numpy.arange(60) / 20), "traindata.pt")


def cora() -> None:
    """A citation graph as the programs fetch it: a line for each paper, and one for each citation."""
    Path("cora").mkdir()
    chance = random.Random(0)
    papers = [
        f"{paper} " + " ".join(chance.choices("01", k=40)) + f" class{chance.randrange(7)}"
        for paper in range(1700)
    ]
    cites = {(chance.randrange(1700), chance.randrange(1700)) for _ in range(3000)}
    Path("cora/cora.content").write_text("\n".join(papers), encoding="utf-8")
    Path("cora/cora.cites").write_text("\n".join(f"{a} {b}" for a, b in sorted(cites)), encoding="utf-8")


def digits() -> None:
    """MNIST's four files where JAX's examples look for them; 1,536 images to train on."""
    folder = Path("/tmp/jax_example_data")
    folder.mkdir(exist_ok=True)
    for part, count in (("train", 1536), ("t10k", 256)):
        images = struct.pack(">IIII", 2051, count, 28, 28) + random.Random(part).randbytes(count * 784)
        labels = struct.pack(">II", 2049, count) + bytes(number % 10 for number in range(count))
        (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(images, 1))
        (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, 1))


def language() -> None:
    """A tokenizer of whole words, a causal and a classifying model without training, and texts."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, GPT2Config, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = Tokenizer(
        models.WordLevel({word: i for i, word in enumerate(special + WORDS)}, unk_token="[UNK]")
    )
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words,
        mask_token="[MASK]",
        eos_token="[SEP]",
        bos_token="[CLS]",
        model_max_length=64,
        **names,
    )
    sizes = {"vocab_size": len(tokenizer), "pad_token_id": 0, "eos_token_id": 3, "bos_token_id": 2}
    causal = GPT2Config(n_layer=2, n_head=2, n_embd=64, n_positions=64, **sizes)
    layers = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    for name, config in (("causal", causal), ("bert", BertConfig(**layers, **sizes))):
        from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

        kind = AutoModelForCausalLM if name == "causal" else AutoModelForMaskedLM
        kind.from_config(config).save_pretrained(name)
        tokenizer.save_pretrained(name)
    texts = [line.strip() for line in lines(1200).splitlines()]
    for part, some in (("train", texts[:1024]), ("valid", texts[1024:])):
        Path(part + ".txt").write_text("\n".join(some), encoding="utf-8")
        rows = [json.dumps({"sentence": text, "label": number % 2}) for number, text in enumerate(some)]
        Path(part + ".json").write_text("\n".join(rows), encoding="utf-8")
    Path("texts").mkdir()
    rows = [json.dumps({"text": text}) for text in texts]
    Path("texts/train.jsonl").write_text("\n".join(rows), encoding="utf-8")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
