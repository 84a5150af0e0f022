"""``testbed publish``: what was measured becomes claims elsewhere, with all digits, and equal files."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from exchange_world import QUESTION, ROWS, answered, made_store, put_texts
from stored_cells import samples_of

from testbed.db.store import Store
from testbed.errors import StoreError, TestbedError
from testbed.extensions.published.adding import add, read_folder
from testbed.extensions.published.publishing import publish
from testbed.stored_results.measured_cells import measured_cells, public_name, public_text

NUMBERS = ("value", "n", "stderr", "unit", "better", "lowest", "highest", "headline", "zero_one")


@pytest.fixture
def store(tmp_path):
    with made_store(tmp_path / "own.db") as opened:
        yield opened


def taken(folder, tmp_path):
    with Store.create(str(tmp_path / "other.db")) as other:
        added = add(other, read_folder(folder), "ours")
        return added, other.claims.find()


def test_claims_are_equal_bit_by_bit(store, tmp_path):
    publish(store, tmp_path / "p")
    added, claims = taken(tmp_path / "p", tmp_path)
    measured = {
        (cell.model, cell.eval_setting, metric.name, metric.slice): metric
        for cell in measured_cells(store, [], [])[0]
        for metric in cell.metrics
        if metric.value is not None
    }
    assert len(claims) == len(measured) == added.new == 6
    for claim in claims:
        metric = measured[claim.model, claim.eval_setting, claim.metric, claim.slice]
        for name in NUMBERS:
            found, wanted = getattr(claim, name), getattr(metric, name)
            same = (repr(found), repr(wanted)) if name != "lowest" else (found, wanted)  # 0 and 0.0
            assert same[0] == same[1], (claim, name)
        assert claim.protocol["scorer" if metric.scorer else "cell"]
    (told,) = {json.dumps(each.protocol) for each in claims if each.metric == "top1"}
    protocol = json.loads(told)
    (net,) = store.evaluations.find(["lab/net"])
    assert (protocol["cell"], protocol["dtype"], protocol["samples"]) == (net.fingerprint, "float32", "5")
    assert taken(tmp_path / "p", tmp_path)[0].new == 0


def test_published_twice_it_is_the_same(store, tmp_path):
    publish(store, tmp_path / "p")
    first = {path.name: path.read_bytes() for path in (tmp_path / "p").iterdir()}
    publish(store, tmp_path / "p")
    assert {path.name: path.read_bytes() for path in (tmp_path / "p").iterdir()} == first
    assert sorted(first) == [".gitattributes", "README.md", "manifest.json", "results.csv"]
    assert first[".gitattributes"] == b"results.csv -text\n"


def test_a_large_table_goes_to_lfs(store, tmp_path, monkeypatch):
    monkeypatch.setattr("testbed.extensions.published.publishing.LARGE", 10)
    publish(store, tmp_path / "p")
    assert (tmp_path / "p" / ".gitattributes").read_text() == "results.csv filter=lfs diff=lfs merge=lfs -text\n"


def test_a_part_of_the_results(store, tmp_path):
    done = publish(store, tmp_path / "p", ["talker"], ["digits*"])
    assert (done.cells, done.values, done.left_out) == (1, 4, {"metrics have no value": 1})
    assert "1 metrics have no value" in (tmp_path / "p" / "README.md").read_text()
    assert b"lab/net" not in (tmp_path / "p" / "results.csv").read_bytes()


def test_numbers_of_others_are_not_published(store, tmp_path):
    publish(store, tmp_path / "p")
    add(store, read_folder(tmp_path / "p"), "theirs")
    with Store.create(str(tmp_path / "other.db")) as other:
        add(other, read_folder(tmp_path / "p"), "theirs")
        with pytest.raises(StoreError, match="none of these results was measured here"):
            publish(other, tmp_path / "q")


def test_nothing_tells_of_this_machine(store, tmp_path):
    name = "replay:/home/me/secret/m_x.json"
    put_texts(store, name, "tsv:/home/me/x.tsv", samples_of(ROWS[:1], ids=["0"]), [None], answered([1.0]))
    publish(store, tmp_path / "p")
    everything = b"".join(path.read_bytes() for path in (tmp_path / "p").iterdir())
    assert b"/home/me" not in everything
    assert b"replay:m_x.json,tsv:x.tsv," in everything
    put_texts(store, "replay:/elsewhere/m_x.json", QUESTION, samples_of(ROWS[:1], ids=["0"]), [None], answered([1.0]))
    with pytest.raises(StoreError, match=r"would both be published as replay:m_x\.json"):
        publish(store, tmp_path / "q")


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("replay:/a/b.json", "replay:b.json"),
        ("resnet50,/a/b c/best.pt", "resnet50,best.pt"),
        ("resnet50,~/best.pt", "resnet50,best.pt"),
        ("captions@labels:/a/x.csv", "captions@labels:x.csv"),
        ("replay:C:\\me\\x.json", "replay:x.json"),
        ("hf-hub:timm/vit", "hf-hub:timm/vit"),
        ("openai/clip-vit-base-patch32", "openai/clip-vit-base-patch32"),
        ("api:http://me:secret@host:8000/v1", "api:http://***@host:8000/v1"),
        ("digits+imagenet-c.fog.3", "digits+imagenet-c.fog.3"),
    ],
)
def test_names_as_they_are_published(name, public):
    assert public_name(name) == public


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("error: /home/me/a/x.png cannot be read", "error: x.png cannot be read"),
        ("'~/a/x.png' and (/data/y.png): broken", "'x.png' and (y.png): broken"),
        ("https://me:secret@host/v1/chat said 500 of 3/4 and/or", "https://***@host/v1/chat said 500 of 3/4 and/or"),
    ],
)
def test_messages_as_they_are_published(text, public):
    assert public_text(text) == public


def test_a_name_cannot_break_the_readmes_table(store, tmp_path):
    odd = "a|b <script>`[x](y)"
    put_texts(store, odd, QUESTION, samples_of(ROWS[:1], ids=["0"]), [None], answered([1.0]))
    publish(store, tmp_path / "p", [odd])
    (row,) = (line for line in (tmp_path / "p" / "README.md").read_text().splitlines() if "script" in line)
    assert row.startswith(r"| a\|b \<script\>\`\[x\](y) | digits-vqa.choice | accuracy | 100.00")


def test_files_of_others_stay(store, tmp_path):
    (tmp_path / "README.md").write_text("# Mine\n")
    with pytest.raises(StoreError, match=r"README.md was not written by testbed publish"):
        publish(store, tmp_path)
    assert (tmp_path / "README.md").read_text() == "# Mine\n"
    (tmp_path / "README.md").unlink()
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match=r"manifest.json was not written by testbed publish"):
        publish(store, tmp_path)


def change(folder, old, new):
    """Changes the table, and the digest with it."""
    table = (folder / "results.csv").read_text()
    assert old in table
    table = table.replace(old, new)
    (folder / "results.csv").write_text(table)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["results"]["sha256"] = hashlib.sha256(table.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("0.75,", "1.75,", "1.75 is not between 0 and 1"),
        ("0.75,", "many,", "a number was expected, 'many' was found"),
        (",0.25,4,", ",0.25,four,", "row 2: n should be a number of samples, not 'four'"),
        (",0.25,4,", ",nan,4,", "row 2: a number was expected, not 'nan'"),
        (",higher,", ",up,", "better, headline and zero_one are not as testbed publish writes them"),
        (",true,", ",yes,", "better, headline and zero_one are not as"),
        (",top1,", ",,", "row 2: metric should have 1 to 256 characters"),
        (",top1,", f",{'x' * 300},", "row 2: metric should have 1 to 256 characters"),
        ("lab/net,val,", "lab/net,other,", "has no protocol for lab/net on other"),
        ("0.0,1.0,", "1.0,0.0,", "lowest is 1.0, above highest, 0.0"),
        ("stderr", "error", "should have the columns model, eval_setting"),
        ("0.75,", "0.75,9,", "15 columns were expected, 16 were found"),
    ],
)
def test_damaged_tables(store, tmp_path, old, new, said):
    publish(store, tmp_path / "p", ["lab/net"])
    change(tmp_path / "p", old, new)
    with pytest.raises(TestbedError, match=re.escape(said)):
        taken(tmp_path / "p", tmp_path)


def test_a_table_without_its_manifest(store, tmp_path):
    publish(store, tmp_path / "p")
    table = tmp_path / "p" / "results.csv"
    table.write_bytes(table.read_bytes().replace(b"0.75,", b"0.76,"))
    with pytest.raises(StoreError, match="does not match its manifest"):
        taken(tmp_path / "p", tmp_path)
    table.unlink()
    with pytest.raises(StoreError, match=r"results.csv cannot be read: No such file"):
        taken(tmp_path / "p", tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("version", 2, "is of version '2'; this testbed reads version 1"),
        ("results", None, "results should be an object"),
        ("cells", [5], "cell 1 should be an object"),
        ("cells", [{"model": "x"}], "cell 1, protocol should be an object"),
        ("cells", [{"model": "x", "protocol": {"a": {}}}], "cell 1 should have a model"),
        ("cells", {}, "has no protocol for lab/net on val"),
    ],
)
def test_damaged_manifests(store, tmp_path, key, value, said):
    publish(store, tmp_path / "p", ["lab/net"])
    path = tmp_path / "p" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), key: value}))
    with pytest.raises(StoreError, match=re.escape(said)):
        taken(tmp_path / "p", tmp_path)
