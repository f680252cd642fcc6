from jobs.actions.registry import gate_rules
from jobs.queries.registry import gate_rules as queries
from jobs.spec.gates import GateRules
from tests.people import browser_of
from tests.registry.conftest import Yard


def test_after_a_conflict_the_gates_can_be_saved_over_the_revision_that_is_shown(yard: Yard) -> None:
    form = {"metric": "", "tolerance": "0.02", "revision": "0", "floors-rows": "0", "slices-rows": "0"}
    gate_rules.change_rules(yard.model, GateRules(tolerance=0.05), by=yard.second_approver)
    browser = browser_of(yard.approver)
    refused = browser.post("/models/digits/gates", form)
    text = refused.content.decode()
    assert (refused.status_code, "saved revision 1" in " ".join(text.split())) == (409, True)
    assert 'name="revision" value="1"' in text
    assert browser.post("/models/digits/gates", form | {"revision": "1"}).status_code == 303
    assert queries.rules_of(queries.current_revision(yard.model)).tolerance == 0.02
