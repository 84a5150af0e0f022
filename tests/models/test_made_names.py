"""The names of models that are made of others."""

from __future__ import annotations

import pytest
from tables import cases

from testbed.models.made.names import NotMadeError, looks_made, parse, with_members

MODELS = {"a", "b", "c10", "c9", "ViT,openai", "r50", "r50,/x+y.pt", "r50,/x.pt"}
SETTINGS = {"val": "val", "val+fog": "val+fog", "v": "val"}


def model(name: str) -> str | None:
    if name in MODELS:
        return name
    if not looks_made(name):
        return None
    try:
        return str(parse(name, model, SETTINGS.get))
    except NotMadeError:
        return None


@cases(
    ("written", "canonical"),
    [
        ("ensemble:b+a", "ensemble:a+b"),
        ("ensemble.logits:c10+c9+a", "ensemble.logits:a+c9+c10"),
        ("ensemble:r50,/x+y.pt+a", "ensemble:a+r50,/x+y.pt"),
        ("ensemble:r50,/x.pt+r50", "ensemble:r50+r50,/x.pt"),
        ("soup:b+a", "soup:a+b"),
        ("wiseft:b,a,0.50", "wiseft:b,a,0.5"),
        ("wiseft:ViT,openai,r50,/x.pt,1", "wiseft:ViT,openai,r50,/x.pt,1"),
        ("wiseft:r50,r50,/x.pt,.25", "wiseft:r50,r50,/x.pt,0.25"),
        ("a@temperature=v", "a@temperature=val"),
        ("a@@temperature=val", "a@temperature=val"),
        ("a@temperature=val+fog", "a@temperature=val+fog"),
        ("r50,/x.pt@prior=em", "r50,/x.pt@prior=em"),
        ("a@temperature=val@prior=oracle", "a@temperature=val@prior=oracle"),
        ("ensemble:b+a@temperature=val", "ensemble:a@temperature=val+b"),
        ("ensemble:b+a@@temperature=val", "ensemble:a+b@@temperature=val"),
        ("ensemble:a@temperature=val+fog+b", "ensemble:a@temperature=val+fog+b"),
        ("ensemble:b+a@@temperature=val@@prior=em", "ensemble:a+b@@temperature=val@@prior=em"),
        ("wiseft:a,b,0.5@@temperature=val", "wiseft:a,b,0.5@@temperature=val"),
        ("a@prior=v", "a@prior=val"),
        ("soup:b+a@@greedy=v", "soup:a+b@@greedy=val"),
        ("soup:b+a@@greedy=val+fog@@prior=em", "soup:a+b@@greedy=val+fog@@prior=em"),
    ],
)
def test_a_name_has_one_spelling_which_means_the_same(written: str, canonical: str) -> None:
    assert model(written) == canonical
    assert model(canonical) == canonical


@cases(
    ("name", "said"),
    [
        ("ensemble:a", "ensemble:A+B takes two models or more; got 1"),
        ("ensemble:", "there is no model ''; ensemble:A+B has names of models with + between them"),
        ("ensemble:a+x+b", "there is no model 'x'; ensemble:A+B has names"),
        ("ensemble:a+b+a", "it names a twice"),
        ("soup:a,b", "there is no model 'a,b'; soup:A+B has names"),
        ("wiseft:a,b", "wiseft:A,B,0.5 takes two models and the weight of the second; got 'a,b'"),
        ("wiseft:a,b,2", "the weight of the second model is between 0 and 1, as in wiseft:A,B,0.5; got '2'"),
        ("wiseft:a,b,half", "between 0 and 1, as in wiseft:A,B,0.5; got 'half'"),
        ("wiseft:a,b,nan", "between 0 and 1, as in wiseft:A,B,0.5; got 'nan'"),
        ("wiseft:a,a,0.5", "it names a twice"),
        ("a@temperature=", "there is no eval setting '' to fit a temperature on; testbed list settings"),
        ("a@temperature=nowhere", "there is no eval setting 'nowhere'"),
        ("x@temperature=val", "there is no model 'x'"),
        ("a@prior=no", "em, estimated without labels, oracle, from the labels, or an eval setting whose labels are"),
        ("ensemble:a+b@@abstain=0.9", "after @ comes temperature=SETTING, prior=em, prior=oracle, prior=SETTING or"),
        ("soup:a+x@@greedy=val", "there is no model 'x'; soup:A+B has names"),
        ("soup:a+b@@greedy=no", "there is no eval setting 'no' to choose members by"),
        ("ensemble:a+b@@greedy=val", "greedy= keeps some members of a soup, as in soup:A+B+C@@greedy=SETTING; got"),
        ("a@greedy=val", "greedy= keeps some members of a soup, as in soup:A+B+C@@greedy=SETTING; got 'a'"),
        ("soup:a+b@greedy=val", "greedy= is about the whole soup: write @@greedy=SETTING after its last member"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(name: str, said: str) -> None:
    assert looks_made(name)
    with pytest.raises(NotMadeError) as error:
        parse(name, model, SETTINGS.get)
    assert said in str(error.value)
    assert model(name) is None


@pytest.mark.parametrize(
    ("word", "stored"),
    [
        ("ensemble:b+a", "ensemble:a+b"),
        ("ensemble.ranks:c10+c9@@prior=em", "ensemble.ranks:c9+c10@@prior=em"),
        ("soup:b+a@@greedy=val", "soup:a+b@@greedy=val"),
        ("ensemble:b@prior=em+a", "ensemble:b@prior=em+a"),
        ("wiseft:b,a,0.5", "wiseft:b,a,0.5"),
        ("ensembles", "ensembles"),
    ],
)
def test_members_in_another_order_find_what_is_stored(word: str, stored: str) -> None:
    assert with_members(word, str) == stored
