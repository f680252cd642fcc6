"""The markup of components that several pages share."""

from django.template import Context, Template

from tests.markup import squeezed


def shown(source: str, **context: object) -> str:
    return squeezed(Template(source).render(Context(context)))


def test_a_table_head_marks_columns_of_numbers_and_hides_the_label_of_buttons() -> None:
    head = shown('{% table_head "Name" "#Rows" hidden="Actions" %}')
    assert head.count('scope="col"') == 3
    assert '<th class="num" scope="col">Rows</th>' in head
    assert '<span class="visually-hidden">Actions</span>' in head


def test_a_text_input_has_its_error_and_hint_and_escapes_its_value() -> None:
    given = shown(
        '{% text_input "slug" "Name" value hint="Short." error="Taken." maxlength=63 %}', value='"a"'
    )
    assert 'id="at/slug" name="slug" value="&quot;a&quot;"' in given
    assert 'maxlength="63"' in given
    assert 'aria-describedby="at/slug-hint"' in given
    assert '<div class="ty-error">Taken.</div>' in given


def test_a_text_input_with_rows_is_an_area() -> None:
    area = shown('{% text_input "notes" "Notes" value rows=5 required=True %}', value="<b>")
    assert ">&lt;b&gt;</textarea>" in area
    assert 'rows="5" required' in area


def test_a_bar_that_counts_later_steps_too_says_so() -> None:
    searched = {"done": 22, "total": 24, "unit": "executions", "fraction": 0.55, "eta_seconds": None}
    bar = shown("{% progress given %}", given=searched)
    assert "55 %" in bar
    assert "55 % of all steps" in bar and "22 of 24 executions" in bar
    alone = shown("{% progress given %}", given={**searched, "fraction": 22 / 24})
    assert "of all steps" not in alone
