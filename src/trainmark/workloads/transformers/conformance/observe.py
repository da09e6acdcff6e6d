"""The training that is compared: its weights, batches and constants, and what it shows of itself.

Everything comes from numpy's RandomState, whose streams never change. A training alternates between two
batches: in the `steep` one all tokens agree on a few words, so that its gradient is clipped; in the
`gentle` one they do not, and its gradient is not. Clipping hides a gradient's scale: a sum over ranks in
place of a mean shows in the gentle batch alone.
"""

from dataclasses import replace
from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from trainmark.workloads.common.chance import float64_difference, sketch

SIZE = "mini"
SEQUENCES = 4  # of a rank and step: batch x accumulate
LENGTH = 32
STEPS = 5
PREDICTIONS = 5  # masked tokens of a sequence of 32, at most
LEARNING_RATES = (2e-4, 4e-4, 6e-4, 4e-4, 2e-4)
STEEP, GENTLE = "steep", "gentle"
KINDS = (STEEP, GENTLE)
WORDS = {STEEP: 8, GENTLE: None}  # so many tokens occur; None: all of the vocabulary

SEED = 20
# Training's deviation of 0.02 would leave the attention without a say.
MATRIX_DEVIATION, EMBEDDING_DEVIATION, BIAS_DEVIATION = 0.12, 0.05, 0.1

Batch = Tuple[np.ndarray, ...]


class Constants(NamedTuple):
    """What the optimizer has in place of the recipe's: of a size at which each of them shows in float32.

    Epsilon and the decay are not small beside a typical element of what they are added to.
    """

    clip: float
    beta1: float = 0.8
    beta2: float = 0.9
    epsilon: float = 1e-3
    weight_decay: float = 2.0


# By family: the clip lies between the norms of the two batches' gradients.
CONSTANTS = {"gpt2": Constants(5.0), "llama": Constants(13.0), "bert": Constants(19.0)}


def conformance_recipe(recipe, family: str):
    """Return a recipe (a dataclass) with the constants of a family; its optimizer stays."""
    return replace(recipe, **CONSTANTS[family]._asdict())


def arguments() -> Tuple[str, ...]:
    """Return the options of a program that is compared."""
    return ("--size", SIZE, "--length", str(LENGTH), "--batch", str(SEQUENCES), "--steps", str(STEPS))


def kind_of(step: int) -> str:
    return KINDS[step % len(KINDS)]


def initial_weights(shapes: Dict[str, Tuple[int, ...]]) -> Dict[str, np.ndarray]:
    """Return float32 tensors of these shapes, drawn in their order."""
    random = np.random.RandomState(SEED)
    return {name: _tensor(random, name, shape) for name, shape in shapes.items()}


def _tensor(random, name: str, shape: Tuple[int, ...]) -> np.ndarray:
    if name.endswith(".scale"):
        drawn = random.uniform(0.5, 1.5, shape)
    elif name.endswith(".bias"):
        drawn = random.normal(0.0, BIAS_DEVIATION, shape)
    else:
        drawn = random.normal(0.0, EMBEDDING_DEVIATION if "embedding" in name else MATRIX_DEVIATION, shape)
    return drawn.astype(np.float32)


def decoder_batches(shapes: Dict[str, Tuple[int, ...]], rank: int) -> Dict[str, Batch]:
    """Return a rank's batches of a decoder: (tokens, targets), each a token further."""
    made = {}
    for kind in KINDS:
        random = _random(rank, kind)
        words = _words(random, kind, shapes)
        text = words[random.randint(0, len(words), (SEQUENCES, LENGTH + 1))].astype(np.int32)
        targets = np.full_like(text[:, 1:], words[0]) if kind == STEEP else text[:, 1:]
        made[kind] = (np.ascontiguousarray(text[:, :-1]), np.ascontiguousarray(targets))
    return made


def bert_batches(shapes: Dict[str, Tuple[int, ...]], rank: int) -> Dict[str, Batch]:
    """Return a rank's batches of BERT: (tokens, segments, lengths, positions, labels, next_sentence).

    Sequences differ in length and in the number of masked tokens; those that are not there are 0, with the
    label -1.
    """
    made = {}
    for kind in KINDS:
        random = _random(rank, kind)
        words = _words(random, kind, shapes)
        lengths = np.array([LENGTH, 19, LENGTH, 11], np.int32)
        tokens = words[random.randint(0, len(words), (SEQUENCES, LENGTH))].astype(np.int32)
        places = np.arange(LENGTH)
        segments = (places >= lengths[:, None] // 2).astype(np.int32)
        tokens[places >= lengths[:, None]] = 0
        positions = np.zeros((SEQUENCES, PREDICTIONS), np.int32)
        labels = np.full((SEQUENCES, PREDICTIONS), -1, np.int32)
        for sequence, masked in enumerate((5, 3, 4, 1)):
            drawn = np.sort(random.choice(np.arange(1, lengths[sequence]), masked, replace=False))
            positions[sequence, :masked] = drawn
            answers = words[random.randint(0, len(words), masked)]
            labels[sequence, :masked] = words[0] if kind == STEEP else answers
        follows = np.zeros(SEQUENCES) if kind == STEEP else np.arange(SEQUENCES) % 2
        made[kind] = (tokens, segments, lengths, positions, labels, follows.astype(np.int32))
    return made


def batches_of(shape):
    """Return what makes a rank's batches of a model of this shape."""
    return decoder_batches if shape.causal else bert_batches


def _random(rank: int, kind: str):
    return np.random.RandomState([SEED, rank, KINDS.index(kind)])


def _words(random, kind: str, shapes: Dict[str, Any]) -> np.ndarray:
    """Draw the tokens that occur; the same for all ranks in the steep batch."""
    vocabulary = shapes["token_embedding.weight"][0]
    if WORDS[kind] is None:
        return np.arange(vocabulary)
    return np.random.RandomState(SEED).permutation(vocabulary)[: WORDS[kind]]


def schedule() -> List[Tuple[str, float]]:
    """Return the batch and the rate of every step."""
    return [(kind_of(step), rate) for step, rate in enumerate(LEARNING_RATES)]


def observe(opt, training, shapes, batches) -> Dict[str, Any]:
    """Take one step with each batch, then five steps that alternate between them, all from the same weights.

    `shapes` are those of every tensor by its canonical name, `batches` makes a rank's batches: see
    `decoder_batches` and `bert_batches`.
    """
    start = initial_weights(shapes)
    placed = {kind: training.place(*batch) for kind, batch in batches(shapes, opt.rank).items()}
    gradients = {}
    for kind in KINDS:
        training.load(start)
        training.step(*placed[kind], rate=LEARNING_RATES[0])
        gradients[kind] = first_gradients(training.momenta(), opt.recipe.beta1)
    training.load(start)
    loaded = training.tensors()
    reads = []
    for kind, rate in schedule():
        reads.append(training.read(training.step(*placed[kind], rate=rate)))
    last = training.tensors()  # the device has passed every step: the losses can be read
    shown = summary(loaded, gradients, last, training.momenta(), [float(read()) for read in reads])
    return dict(shown, parameters=int(training.parameters()))


def first_gradients(momenta, beta1) -> Dict[str, np.ndarray]:
    """Return the clipped gradients, mean over the ranks, of the only step since the moments were zero."""
    prefix = "first/"
    return {
        name[len(prefix) :]: np.asarray(value, np.float64) / (1 - beta1)
        for name, value in momenta.items()
        if name.startswith(prefix)
    }


def summary(loaded, gradients, last, momenta, losses: List[float]) -> Dict[str, Any]:
    """Return plain numbers of tensors in float32 or float64."""
    return {
        "shapes": {name: list(value.shape) for name, value in loaded.items()},
        "losses": losses,
        "start": _sketches(loaded),
        "gradient_norms": {kind: _norms(tensors) for kind, tensors in gradients.items()},
        "gradients": {kind: _sketches(tensors) for kind, tensors in gradients.items()},
        "moments": _sketches(momenta),
        "moved": _sketches({name: float64_difference(last[name], loaded[name]) for name in loaded}),
    }


def _sketches(tensors) -> Dict[str, List[float]]:
    return {name: sketch(name, value) for name, value in tensors.items()}


def _norms(tensors) -> Dict[str, float]:
    return {name: float(np.linalg.norm(value)) for name, value in tensors.items()}
