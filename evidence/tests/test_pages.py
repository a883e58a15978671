"""The tables of claims and of all tables and figures: from the results files, each of them named once."""

import pytest

from evidence import _claims as claims
from evidence import _index, _tables
from measuring import command, pages, report


def test_evidence_names_every_results_file_once():
    files, experiments = [item["results"] for item in _index.items()], command.find_experiments("evidence")
    assert len(files) == len(set(files))
    for item in _index.items():
        assert item["results"] in experiments
        rows = report.results(item["results"])
        assert all("commit" in row and "machine_card" in row for row in rows)


def test_every_table_of_the_papers_names_its_settings():
    assert pages._settings().keys() == _tables.TABLES.keys()


def test_every_claim_has_its_figures():
    known = command.find_experiments("evidence").keys() | {"scale", "dc_svm/sweep_totals"}
    known |= {"dc_pred/figure1_gains", "dc_pred/figure3_verdicts", "ocas/reach", "ocas/reach_means"}
    known |= {"ocas/figure3_slopes", "ocas/authors"}
    for paper in claims.PAPERS:
        assert claims.table(paper).count("\n") == len(claims.items(paper)) + 2
        for item in claims.items(paper):
            names = [match.group(1) for match in claims._FIGURE.finditer(item["here"])]
            assert {claims.OF_PAPERS.get(name, (name,))[0] for name in names} <= known


def test_a_claim_holds_by_a_figure_of_the_results(monkeypatch, tmp_path):
    report.write_csv(tmp_path / "a.csv", [{"set": "x", "times": 5.0, "commit": "abc"}])
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    item = {"claim": "fast", "where": "Table 1", "published": "9 times", "here": "{a times set=x .1f} times"}
    item |= {"figure": "a times set=x .9g", "least": 6, "remark": ", nearly"}
    assert claims._line(item) == ["fast (Table 1)", "9 times", "5.0 times", "**no**, nearly", "abc"]
    assert claims.verdict(item | {"least": 5}) == "yes"
    assert claims.verdict(item | {"least": 5, "most": 4}) == "no"
    assert claims.verdict({"here": "not run"}) == "not measured"


def test_what_is_missing_is_computed_for_each_set_and_competitor():
    item = {"missing": "covtype, webspam; a, b", "who": "machine"}
    rows = [{"set": "covtype", "machine": "x"}, {"set": "usps", "machine": "x"}, {"set": "usps", "machine": "y"}]
    assert _index._missing(item, rows) == "webspam; covtype without y; a, b"
    assert _index._missing(item | {"who": ""}, rows) == "webspam; a, b"


def test_figures_of_claims_come_from_the_results():
    figure = claims.figure
    rows = [{"set": "a", "machine": "our own", "s": 1.5}, {"set": "b", "machine": "our own", "s": 6.0}, {"set": "c"}]
    assert figure(rows, "s set=a .2f") == "1.50"
    assert figure(rows, 's machine="our own" gmean .0f') == "3"
    assert figure(rows, "s s>2 .1f") == "6.0"
    assert figure(rows, "s set!=a max .0f") == "6"
    assert figure(rows, "s set=d .2f") == figure(rows, "t set=a .2f") == ""
    with pytest.raises(ValueError, match="is about"):
        figure(rows, "s .2f")


def test_a_claim_without_rows_is_not_measured(monkeypatch):
    monkeypatch.setattr(claims, "rows_of", lambda name: [])
    item = claims.items("bsgd")[0]
    assert claims._line(item)[2:4] == ["– to – % of that of `gss-paper`", "**not measured**"]
    assert len(claims.unmeasured("bsgd")) > 10


def test_claims_about_libsvm_are_judged_at_its_accuracy_and_by_form():
    facts = {"set": "a", "tol": 1e-3, "options": ""}
    rows = [
        {**facts, "machine": "LIBSVM", "seconds": 100.0, "accuracy": 0.9},
        {**facts, "machine": "DC-SVM early as in the paper", "seconds": 1.0, "accuracy": 0.89},
        {**facts, "machine": "DC-SVM early as in the paper", "seconds": 4.0, "accuracy": 0.9},
        {**facts, "machine": "DC-SVM early", "seconds": 0.5, "accuracy": 0.91},
    ]
    assert [(row["form"], row["times_libsvm"]) for row in claims._fastest_equal(rows)] == [
        ("published", 25.0),
        ("ours", 200.0),
    ]
    ended = [{**facts, "machine": "LIBSVM", "over_limit": 60.0}, rows[1]]
    assert claims._times_libsvm(ended)[0]["times_libsvm"] == 60.0
