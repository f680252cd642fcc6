"""The components that several pages share."""

from django import forms
from django.template import Context, Template

from tests.markup import squeezed


def render(source: str, **context: object) -> str:
    return squeezed(Template(source).render(Context(context)))


def test_a_table_head_marks_columns_of_numbers_and_hides_the_label_of_buttons() -> None:
    head = render('{% table_head "Name" "#Rows" hidden="Actions" %}')
    assert head.count('scope="col"') == 3
    assert '<th class="num" scope="col">Rows</th>' in head
    assert '<span class="visually-hidden">Actions</span>' in head


def test_a_text_input_has_its_error_and_hint_and_escapes_its_value() -> None:
    html = render(
        '{% text_input "slug" "Name" value hint="Short." error="Taken." maxlength=63 %}', value='"a"'
    )
    assert 'id="at/slug" name="slug" value="&quot;a&quot;"' in html
    assert 'maxlength="63"' in html
    assert 'aria-describedby="at/slug-hint"' in html
    assert '<div class="ty-error">Taken.</div>' in html


def test_a_text_input_with_rows_is_an_area() -> None:
    area = render('{% text_input "notes" "Notes" value rows=5 required=True %}', value="<b>")
    assert ">&lt;b&gt;</textarea>" in area
    assert 'rows="5" required' in area


def test_a_bar_that_counts_later_steps_too_says_so() -> None:
    searched = {"done": 22, "total": 24, "unit": "executions", "fraction": 0.55, "eta_seconds": None}
    bar = render("{% progress given %}", given=searched)
    assert "55 %" in bar
    assert "55 % of all steps" in bar and "22 of 24 executions" in bar
    alone = render("{% progress given %}", given={**searched, "fraction": 22 / 24})
    assert "of all steps" not in alone


def a_select(*choices: tuple[str, str]) -> str:
    class Form(forms.Form):
        pool = forms.ChoiceField(choices=choices, label="Pool", help_text="Where it runs.")

    return render("{% field form.pool %}", form=Form())


def test_a_select_with_one_choice_is_text_that_posts_the_choice() -> None:
    one = a_select(("gpu", "GPU <box>"))
    assert "<select" not in one and "<label" not in one
    assert '<input type="hidden" name="pool" id="id_pool" value="gpu" >' in one
    assert ">GPU &lt;box&gt;</div>" in one and "Where it runs." in one
    several = a_select(("gpu", "GPU"), ("cpu", "CPU"))
    assert several.count("<option") == 2 and '<label class="form-label required" for="id_pool" >' in several


def test_a_project_is_chosen_only_among_several() -> None:
    one, two = ({"slug": name, "name": name.title()} for name in ("first", "second"))
    alone = render('{% include "components/project_choice.html" %}', projects=[one])
    assert 'name="project" value="first"' in alone and "<select" not in alone and ">First</div>" in alone
    both = render('{% include "components/project_choice.html" %}', projects=[one, two], chosen="second")
    assert both.count("<option") == 2 and '<option value="second" selected >' in both


def test_a_choice_of_a_filter_has_words_groups_and_the_value_of_an_old_address() -> None:
    source = '{% filter_choice "state" "State" chosen options groups=groups none="all" %}'
    words = {"options": {"done": "finished"}, "groups": {"only": ["lost"]}}
    page = render(source, chosen="lost", **words)
    assert '<label class="form-label" for="f-state">State</label>' in page
    assert '<option value="">all</option> <option value="done" > finished </option>' in page
    assert '<optgroup label="only"> <option value="lost" selected> lost </option> </optgroup>' in page
    assert '<option value="gone" selected> gone </option>' in render(source, chosen="gone", **words)
    assert "selected" not in render(source, chosen="", **words)


def test_a_text_of_a_filter_is_escaped_and_clear_appears_once_the_list_is_filtered() -> None:
    page = render('{% filter_text "q" "Name" text "any" %}', text='"><b>')
    assert 'id="f-q" name="q" type="search" placeholder="any" value="&quot;&gt;&lt;b&gt;"' in page
    buttons = '{% filter_buttons "/jobs" is_filtered %}'
    assert ("Clear" in render(buttons, is_filtered=""), "Clear" in render(buttons, is_filtered="x")) == (
        False,
        True,
    )
