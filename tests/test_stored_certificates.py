"""The stored certificates prove what they say, of the algorithms as they are, and can be found again."""

import json
import sys

import pytest

from reproduce import certificates, command

STORED = certificates.load()
AGAIN = "python -m reproduce certificates"


def test_every_search_has_its_record_and_every_certificate_is_verified(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)  # no solver is needed
    assert set(STORED) == set(certificates.jobs()), AGAIN
    found = certificates.verified(STORED)
    assert len(found) > 0.9 * len(STORED)
    for name, one in found.items():
        assert one.quadratic <= one.value < 1.0, name
        (m, L), = set(one.curvatures)
        assert (m, L) == (1, certificates.jobs()[name][1]), name


@pytest.mark.parametrize("name", ["DIGing-SGLD, ring; kappa 10, step 0.5",
                                  "FA-HMC, 5 leapfrogs; kappa 2, step 0.1",
                                  "EXTRA-SGLD, grid; kappa 10, step 0.5"])
def test_a_search_finds_the_stored_rate_again(name):
    again = certificates.certificates({name: certificates.searched(*certificates.jobs()[name])})[name]
    assert again.value == pytest.approx(certificates.certificates({name: STORED[name]})[name].value, abs=1e-6)


def test_a_record_that_proves_nothing_ends_with_two(tmp_path, capsys):
    name = "DE-SGLD, ring; kappa 2, step 0.5"
    other = STORED["DE-SGLD, grid; kappa 2, step 0.5"]
    for changed in ({"rate": "833/1000"}, {"multipliers": ["1/2"]}, other):
        (tmp_path / certificates.FILE).write_text(certificates.as_json({name: STORED[name] | changed}))
        assert command.main(["certificates", "--verify", "--out", str(tmp_path)]) == 2
        assert f"{certificates.FILE}, {name}: " in capsys.readouterr().err
    (tmp_path / certificates.FILE).write_text(certificates.as_json({name: STORED[name]}))
    assert command.main(["certificates", "--verify", "--out", str(tmp_path)]) == 0
    assert "1 certificates of 1 searches" in capsys.readouterr().out
    (tmp_path / certificates.FILE).write_text(certificates.as_json({"another": STORED[name]}))
    assert command.main(["certificates", "--verify", "--out", str(tmp_path)]) == 2


def test_the_whole_command_writes_what_it_verifies(tmp_path, monkeypatch, capsys):
    some = dict(list(certificates.jobs().items())[4:7])
    monkeypatch.setattr(certificates, "jobs", lambda: some)
    assert command.main(["certificates", "--out", str(tmp_path)]) == 0
    assert set(json.loads((tmp_path / certificates.FILE).read_text())) == set(some)
    out, err = capsys.readouterr()
    assert "3 certificates of 3 searches, each checked in fractions" in out and err.count("\n") == 3


def test_where_none_is_found_the_reason_is_kept():
    record = certificates.searched(certificates.algorithms(0.05, 0.5)["FA-LD, 5 local steps"], 1.0)
    assert "does not contract" in record["none"] and certificates.certificates({"x": record}) == {}
