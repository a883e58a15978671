"""The tables of claims and of all tables and figures: from the results files, each of them named once."""

from importlib import import_module

import pytest


def test_evidence_names_every_results_file_once():
    evidence, report = import_module("evidence._index"), import_module("measuring.report")
    files = [item["results"] for item in evidence.items()]
    experiments = import_module("measuring.command").find_experiments("evidence")
    assert len(files) == len(set(files))
    for item in evidence.items():
        assert item["results"] in experiments
        rows = report.results(item["results"])
        assert all("commit" in row and "machine_card" in row for row in rows)


def test_every_claim_has_its_figures():
    claims = import_module("evidence._claims")
    for paper in ("dc_svm", "dc_pred", "ocas", "bsgd"):
        assert claims.table(paper).count("\n") == len(claims.items(paper)) + 2


def test_a_claim_holds_by_a_figure_of_the_results(monkeypatch, tmp_path):
    claims, report = import_module("evidence._claims"), import_module("measuring.report")
    report.write_csv(tmp_path / "a.csv", [{"set": "x", "times": 5.0, "commit": "abc"}])
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    item = {"claim": "fast", "where": "Table 1", "published": "9 times", "here": "{a times set=x .1f} times"}
    item |= {"figure": "a times set=x .9g", "least": 6, "remark": ", nearly"}
    assert claims._line(item) == ["fast (Table 1)", "9 times", "5.0 times", "**no**, nearly", "abc"]
    assert claims.verdict(item | {"least": 5}) == "yes"
    assert claims.verdict(item | {"least": 5, "most": 4}) == "no"
    assert claims.verdict({"here": "not run"}) == "not measured"


def test_what_is_missing_is_computed_for_each_set_and_competitor():
    missing = import_module("evidence._index")._missing
    item = {"missing": "covtype, webspam; a, b", "who": "machine"}
    rows = [{"set": "covtype", "machine": "x"}, {"set": "usps", "machine": "x"}, {"set": "usps", "machine": "y"}]
    assert missing(item, rows) == "webspam; covtype without y; a, b"
    assert missing(item | {"who": ""}, rows) == "webspam; a, b"


def test_figures_of_claims_come_from_the_results():
    figure = import_module("evidence._claims").figure
    rows = [{"set": "a", "machine": "our own", "s": 1.5}, {"set": "b", "machine": "our own", "s": 6.0}, {"set": "c"}]
    assert figure(rows, "s set=a .2f") == "1.50"
    assert figure(rows, 's machine="our own" gmean .0f') == "3"
    assert figure(rows, "s s>2 .1f") == "6.0"
    assert figure(rows, "s set!=a max .0f") == "6"
    for asked in ("s .2f", "s set=d .2f", "t set=a .2f"):
        with pytest.raises(ValueError, match="is about"):
            figure(rows, asked)
