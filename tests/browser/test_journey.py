"""From the catalog to a receipt, as a newcomer goes: with and without script, by keyboard alone, on a small screen."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from rentals.models import Order

pytestmark = pytest.mark.browser

PASSWORD = "a-password-of-the-journey"


class Mouse:
    """Acts as a person with a pointer does."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def press(self, target: Locator) -> None:
        target.click()

    def choose(self, radio: Locator) -> None:
        # The whole card is the target: its input lies below the label's surface.
        radio.check(force=True)

    def select(self, target: Locator, label: str) -> None:
        option = target.locator("option", has_text=label).first
        target.select_option(value=option.get_attribute("value"))

    def write(self, target: Locator, text: str) -> None:
        target.fill(text)


class Keyboard:
    """Reaches everything by Tab and presses it; never points."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, target: Locator) -> None:
        """Tab until the target, or another radio of its group, has the focus."""
        handle = target.element_handle()
        for _ in range(400):
            if self.page.evaluate(
                """(target) => { const here = document.activeElement;
                return here === target || (here.type === "radio" && here.name === target.name); }""",
                handle,
            ):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"Tab never reaches {target}")

    def press(self, target: Locator) -> None:
        self.reach(target)
        self.page.keyboard.press("Enter")

    def choose(self, radio: Locator) -> None:
        self.reach(radio)
        self.page.keyboard.press("Space")
        for _ in range(6):
            if radio.is_checked():
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"the arrows never choose {radio}")

    def select(self, target: Locator, label: str) -> None:
        self.reach(target)
        self.page.keyboard.type(label)

    def write(self, target: Locator, text: str) -> None:
        self.reach(target)
        self.page.keyboard.type(text)


def travel(page: Page, hand: Mouse | Keyboard) -> None:
    """Catalog, wizard, answer, sign-up, review, receipt."""
    page.goto("/catalog/")
    hand.press(page.locator("main").get_by_role("link", name="Launch by workload").first)

    expect(page.get_by_role("heading", level=1)).to_have_text("Launch by workload")
    hand.choose(page.get_by_role("radio", name="Run a model"))
    if (button := page.get_by_role("button", name="Show its fields")).count():
        hand.press(button)
        page.wait_for_url("**/launch/?task=run*")
    hand.select(page.get_by_label("Model", exact=True), "Llama 3.1 8B")
    hand.choose(page.get_by_role("radio", name="Secure", exact=True))
    hand.press(page.get_by_role("button", name="See where it fits"))

    expect(page.get_by_role("heading", level=1)).to_contain_text(
        "Llama 3.1 8B, 16 bits, 4,096 tokens × 1 request needs 19.55 GiB"
    )
    expect(page.get_by_text("20 % of 15.46")).to_be_visible()
    expect(page.get_by_text("Nothing is reserved until you confirm on the next page.")).to_be_visible()
    hand.press(page.get_by_role("link", name=re.compile("^Launch (?!by workload)")).first)

    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    hand.press(page.locator("main").get_by_role("link", name="Create an account"))
    hand.write(page.get_by_label(re.compile("e-?mail", re.I)), "newcomer@example.com")
    hand.write(page.locator("input[type=password]"), PASSWORD)
    hand.write(page.get_by_label(re.compile("organization", re.I)), "Newcomers")
    hand.press(page.get_by_role("button", name="Create account and organization"))

    expect(page.get_by_role("heading", level=1)).to_have_text("Review your order")
    assert Order.objects.count() == 0
    hand.press(page.get_by_role("button", name=re.compile("^Confirm order – [$]")))

    expect(page.get_by_text("What was ordered")).to_be_visible()
    order = Order.objects.get()
    assert (order.term_days, order.lots, order.organization.name) == (7, 1, "Newcomers")
    assert order.sizing is not None


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
@pytest.mark.parametrize("width", [1280, 375])
def test_a_newcomer_gets_from_the_catalog_to_a_receipt(
    open_page: Callable[..., Page], width: int, script: bool
) -> None:
    page = open_page(width=width, script=script)
    travel(page, Mouse(page))


def test_a_choice_made_before_the_scripts_arrive_is_not_lost(open_page: Callable[..., Page]) -> None:
    page = open_page()
    held: list[Route] = []
    page.route("**/htmx.min.js", lambda route: held.append(route))
    page.goto("/launch/", wait_until="commit")
    page.get_by_role("radio", name="Run a model").check(force=True)
    expect(page.get_by_label("Model", exact=True)).to_have_count(0)

    held[0].continue_()
    page.get_by_label("Model", exact=True).select_option("llama-3.1-8b")
    expect(page.locator("#live")).to_contain_text("19.55 GiB")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_every_task_leads_to_its_answer(open_page: Callable[..., Page], script: bool) -> None:
    page = open_page(script=script)

    def begin(task: str) -> None:
        page.get_by_role("radio", name=task).check(force=True)
        if not script:
            page.get_by_role("button", name="Show its fields").click()

    def answer(words: str) -> None:
        page.get_by_role("button", name="See where it fits").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(words)
        page.get_by_role("link", name="what you want to do").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Launch by workload")

    page.goto("/launch/")
    begin("Fine-tune a model")
    page.get_by_label("Model", exact=True).select_option("llama-3.1-8b")
    page.get_by_label("Sequence length", exact=True).fill("4096")
    answer(
        "Fine-tuning Llama 3.1 8B, LoRA on 16 bits, rank 16 on q, k, v, o, 4,096 tokens × batch size 1 needs 27.44 GiB"
    )

    begin("Generate images")
    page.get_by_label("Model", exact=True).select_option("sdxl-base-1.0")
    answer("one image at native resolution needs")

    begin("Open a notebook")
    page.get_by_label("GPU memory you need").fill("24")
    page.get_by_role("radio", name="GB", exact=True).check()
    answer("A notebook, stated with 24 GB of GPU memory, needs 22.35 GiB")

    begin("Run a model")
    page.get_by_label("Model", exact=True).select_option("whisper-large-v3")
    if not script:
        page.get_by_role("button", name="See where it fits").click()
    page.get_by_label("Audio streams at once").fill("4")
    answer("4 audio streams at once needs")


def test_the_fields_follow_the_task_and_keep_what_applies(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto("/launch/?task=run&model=llama-3.1-8b&precision_bits=8")
    page.get_by_role("radio", name="Fine-tune a model").check(force=True)
    expect(page.get_by_label("Sequence length", exact=True)).to_have_value("2048")
    expect(page.get_by_label("Model", exact=True)).to_have_value("llama-3.1-8b")
    expect(page.get_by_role("radio", name="8 bits")).to_be_checked()
    expect(page.locator("#live")).to_contain_text("GiB needed")
    page.get_by_label("down").check()
    expect(page).to_have_url(re.compile("task=fine_tune.*target_modules=down"))
    page.get_by_label("Model", exact=True).select_option("mixtral-8x7b")
    expect(page.locator("#live")).to_contain_text("no module for down")
    page.get_by_label("down").uncheck()
    expect(page.locator("#live")).to_contain_text("GiB needed")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_keyboard_alone_is_enough(open_page: Callable[..., Page], width: int, script: bool) -> None:
    page = open_page(width=width, script=script)
    travel(page, Keyboard(page))


def test_the_focus_lands_on_the_list_of_problems(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto("/launch/")
    page.get_by_role("button", name="See where it fits").click()
    expect(page.get_by_role("alert")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.url.endswith("#id_task_0")


def test_the_live_line_and_the_chips_follow_the_answers(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto("/launch/?task=run")
    page.get_by_label("Model", exact=True).select_option("llama-3.1-8b")
    expect(page.locator("#live")).to_contain_text("19.55 GiB needed")
    page.get_by_role("button", name="131,072 (maximum)").click()
    expect(page.get_by_label("Context per request")).to_have_value("131072")
    expect(page.locator("#live")).to_contain_text("38.15 GiB needed")
    assert "context=131072" in page.url
    page.reload()
    expect(page.get_by_label("Context per request")).to_have_value("131072")


@pytest.mark.parametrize("width", [320, 375])
@pytest.mark.parametrize(
    "address", ["/", "/launch/?task=fine_tune", "/launch/result/?task=run&model=llama-3.3-70b&budget_usd=300"]
)
def test_nothing_is_wider_than_a_small_screen(open_page: Callable[..., Page], address: str, width: int) -> None:
    page = open_page(width=width)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_answers_outlive_choosing_a_theme_and_the_way_to_signing_in(open_page: Callable[..., Page]) -> None:
    page = open_page()
    page.goto("/launch/")
    budget, lots = page.get_by_label("Budget – preference"), page.get_by_label("Lots – must")
    page.locator("#id_countries_0").check()
    lots.fill("2")
    budget.fill("300.00")
    # At once, from the field: neither a change event nor an answer of the server has told the address of it.
    page.locator("summary").filter(has_text="Theme").press("Enter")
    page.get_by_role("button", name="Dark").press("Enter")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(budget).to_have_value("300.00")
    expect(lots).to_have_value("2")
    expect(page.locator("#id_countries_0")).to_be_checked()
    budget.fill("450.00")
    page.get_by_role("link", name="Sign in").click()
    page.wait_for_url(re.compile(r"/accounts/login/\?next=.*budget_usd%3D450.00"))
    page.go_back()
    page.reload()
    expect(budget).to_have_value("450.00")
