"""Caption decoding of open_clip's CoCa: token by token, by beam search or sampling.

The tokens are those of open_clip's own ``generate``, which runs only with transformers before 4.57.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Tokens = list[int]
Candidate = tuple[float, int, int]  # sum of logits, beam in its group, next token


@dataclass(frozen=True)
class Limits:
    """The first and last tokens of captions, and their lengths.

    Attributes:
        start: The first token.
        end: The token after which nothing follows.
        longest: Number of tokens, the first included, at which a caption is cut off.
        shortest: Number of tokens that come before any end.
    """

    start: int
    end: int
    longest: int
    shortest: int = 0


# Beam search ------------------------------------------------------------------------------------------------------


def beam_search(network: Any, images: torch.Tensor, limits: Limits, beams: int, groups: int = 1) -> list[Tokens]:
    """Decodes captions by beam search in groups of beams (arXiv 1610.02424, without its penalty, as open_clip does it).

    A caption's score is the sum of its tokens' logits, divided by their number.

    Args:
        network: open_clip's CoCa.
        images: Normalized, float [B, 3, H, W].
        limits: The first and last tokens of captions.
        beams: Captions of an image that are continued at each step.
        groups: Number of groups, which divides ``beams``.

    Returns:
        The best caption of each image, from its start to its end; without an end where it is cut off.
    """
    device, size = images.device, beams // groups
    searches = [_Group(size, limits.end) for _ in range(len(images) * groups)]
    decode = _decoder(network, images, beams)
    tokens = torch.full((len(searches) * size, 1), limits.start, device=device)
    scores = torch.full((len(searches), size), -1e9, device=device)
    scores[:, 0] = 0  # the beams of a group are alike at first: one counts
    while tokens.shape[1] < limits.longest and not all(group.done for group in searches):
        logits = decode(tokens, limits)
        vocabulary = logits.shape[1]
        totals = logits.view(len(searches), size, vocabulary) + scores[..., None]
        best, places = totals.flatten(1).topk(2 * size)  # enough, even if each beam's best token is the end
        rows = zip(*(each.tolist() for each in (best, places // vocabulary, places % vocabulary)), strict=True)
        said = tokens.view(len(searches), size, -1).tolist()
        steps = [
            group.advance(beams_said, list(zip(*row, strict=True)))
            for group, beams_said, row in zip(searches, said, rows, strict=True)
        ]
        scores = torch.tensor([[score for score, _, _ in step] for step in steps], device=device)
        sources = [index * size + beam for index, step in enumerate(steps) for _, beam, _ in step]
        words = [[word] for step in steps for _, _, word in step]
        tokens = torch.cat([tokens[sources], torch.tensor(words, device=device)], dim=1)
    for group, beams_said, sums in zip(
        searches, tokens.view(len(searches), size, -1).tolist(), scores.tolist(), strict=True
    ):
        group.finish(beams_said, sums)
    return [_best(searches[start : start + groups]) for start in range(0, len(searches), groups)]


@dataclass
class _Group:
    """The beams of a group, and the best captions that it has found: as many as beams."""

    size: int
    end: int
    done: bool = False
    found: list[tuple[float, Tokens]] = field(default_factory=list)

    def advance(self, said: list[Tokens], candidates: list[Candidate]) -> list[Candidate]:
        """Selects the next beams among twice as many candidates, best first; those that end are captions."""
        if self.done:
            return [(0.0, 0, self.end)] * self.size  # whatever they contain, it is not used
        length = len(said[0]) + 1
        going = []
        for rank, (score, beam, word) in enumerate(candidates):
            if word != self.end:
                going.append((score, beam, word))
            elif rank < self.size:
                self._add(score / length, [*said[beam], self.end])
            if len(going) == self.size:
                break
        full = len(self.found) == self.size
        self.done = full and min(score for score, _ in self.found) >= candidates[0][0] / length
        return going

    def finish(self, said: list[Tokens], scores: list[float]) -> None:
        """Counts the beams as captions, cut off, unless the group is done."""
        if not self.done:
            for tokens, score in zip(said, scores, strict=True):
                self._add(score / len(tokens), tokens)

    def _add(self, score: float, tokens: Tokens) -> None:
        if len(self.found) < self.size:
            self.found.append((score, tokens))
        elif score > (worst := min(each for each, _ in self.found)):
            self.found.append((score, tokens))
            self.found.pop(next(index for index, (each, _) in enumerate(self.found) if each == worst))


def _best(groups: list[_Group]) -> Tokens:
    """The best caption; of equal ones the last."""
    found = [each for group in groups for each in group.found]
    return sorted(found, key=lambda each: each[0])[-1][1]


# One token after the other ----------------------------------------------------------------------------------------


def greedy(network: Any, images: torch.Tensor, limits: Limits) -> list[Tokens]:
    """Decodes captions whose next token is always the most likely one; see `beam_search`."""
    return _one_by_one(network, images, limits, lambda logits: logits.argmax(dim=-1, keepdim=True))


def sample(
    network: Any, images: torch.Tensor, limits: Limits, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0
) -> list[Tokens]:
    """Decodes captions whose tokens are drawn, with torch's own random numbers.

    Args:
        network: open_clip's CoCa.
        images: Normalized, float [B, 3, H, W]. The captions of a batch share the random numbers.
        limits: The first and last tokens of captions.
        temperature: Divides the logits, after those of other tokens are left out, as open_clip does it.
        top_k: Draws from so many of the most likely tokens; 0 for all.
        top_p: Draws from the most likely tokens that have this probability together; 1 for all.

    Returns:
        As `beam_search`. open_clip's ``generate`` makes the last token the end if there is none before; here it is
        drawn as the others are.
    """

    def draw(logits: torch.Tensor) -> torch.Tensor:
        kept = _most_likely(logits, top_k, top_p) / temperature
        return torch.multinomial(kept.softmax(dim=-1), 1)

    return _one_by_one(network, images, limits, draw)


def _most_likely(logits: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    """The logits, -inf for tokens that are not drawn."""
    if top_k > 0:
        least = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if top_p < 1:
        ordered, places = logits.sort()
        unlikely = ordered.softmax(dim=-1).cumsum(dim=-1) <= 1 - top_p
        unlikely[..., -1] = False
        logits = logits.masked_fill(unlikely.scatter(1, places, unlikely), -torch.inf)
    return logits


def _one_by_one(
    network: Any, images: torch.Tensor, limits: Limits, choose: Callable[[torch.Tensor], torch.Tensor]
) -> list[Tokens]:
    decode = _decoder(network, images)
    tokens = torch.full((len(images), 1), limits.start, device=images.device)
    going = torch.ones(len(images), dtype=torch.bool, device=images.device)
    while tokens.shape[1] < limits.longest and going.any():
        following = torch.full_like(tokens[:, :1], limits.end)
        following[going] = choose(decode(tokens, limits)[going])
        tokens = torch.cat([tokens, following], dim=1)
        going &= tokens[:, -1] != limits.end
    said = tokens.tolist()
    return [each[: each.index(limits.end) + 1] if limits.end in each else each for each in said]


def _decoder(network: Any, images: torch.Tensor, beams: int = 1) -> Callable[[torch.Tensor, Limits], torch.Tensor]:
    """A function from tokens [B · beams, L] to the logits [B · beams, V] of the next one; images are encoded here."""
    embedding, patches = (each.repeat_interleave(beams, dim=0) for each in network._encode_image(images))

    def decode(tokens: torch.Tensor, limits: Limits) -> torch.Tensor:
        found = network(None, tokens, image_latent=embedding, image_embs=patches, output_labels=False)
        logits: torch.Tensor = found["logits"][:, -1].float()
        if tokens.shape[1] < limits.shortest:
            logits[:, limits.end] = -torch.inf
        return logits

    return decode
