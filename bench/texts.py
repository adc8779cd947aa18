"""Made-up words with the rarity of real ones: what units say, and what is asked about them."""

import random
from itertools import accumulate, product

SEED = 1
# Zipf: the commonest tag stands on more than half of the units, the rarest on two of a hundred.
TAGS = [f"tag{number:02}" for number in range(1, 41)]
TAG_WEIGHTS = [1 / number for number in range(1, 41)]
SYLLABLES = [
    "".join(pair) for pair in product("b c d f g h k l m n p r s t v w z st tr pl".split(), "aeiou")
]
WORDS = 30_000
# Units are about so many things, each with words of its own that are rare elsewhere.
TOPICS, TOPIC_WORDS, COMMON = 200, 12, 1000
# Of so many words of each text so many are the topic's.
SIZES = {"summary": (10, 4), "detail": (60, 10), "action": (15, 3)}
QUESTION = (8, 4)


def _vocabulary(rng):
    """Words of two syllables, then of three: the commonest come first, and are the shortest."""
    short = ["".join(pair) for pair in product(SYLLABLES, repeat=2)]
    rng.shuffle(short)
    long = {}
    while len(long) < WORDS - len(short):
        long["".join(rng.choices(SYLLABLES, k=3))] = True
    return [*short, *long]


_rng = random.Random(SEED)
VOCABULARY = _vocabulary(_rng)
# Zipf again, summed up: `choices` would sum at each call.
WEIGHTS = list(accumulate(1 / number for number in range(1, WORDS + 1)))
TOPIC = [_rng.sample(VOCABULARY[COMMON:], TOPIC_WORDS) for _ in range(TOPICS)]


def proposal(rng, topic):
    """What a proposal says: some 85 words, three tags."""
    return {
        "domains": tags(rng, 3),
        "insight": {name: _text(rng, topic, *size) for name, size in SIZES.items()},
        "context": {"languages": ["python"], "frameworks": [], "pattern": ""},
    }


def question(rng):
    """A short text about one of the topics; some 20 word pieces."""
    return _text(rng, rng.randrange(TOPICS), *QUESTION)


def _text(rng, topic, size, own):
    words = rng.choices(TOPIC[topic], k=own)
    words += rng.choices(VOCABULARY, cum_weights=WEIGHTS, k=size - own)
    rng.shuffle(words)
    return " ".join(words)


def tags(rng, size):
    """Different tags, by their weights."""
    drawn = []
    while len(drawn) < size:
        tag = rng.choices(TAGS, TAG_WEIGHTS)[0]
        if tag not in drawn:
            drawn.append(tag)
    return drawn
