"""The rank map's messages of its groups, compared with the command line."""

from __future__ import annotations

from collections import Counter

from playwright.sync_api import Page, expect

from figgen.units import format_quantity
from tests.browser.modeler import printed
from tests.browser.rank_map import opened

NAMES = {"dp-cp": "DP × CP"}
LINKS = {"scale-up": "inside a node", "network": "between nodes"}
ROWS = """() => [...document.querySelectorAll(".map-volumes tbody tr")]
  .map((row) => [...row.children].map((cell) => cell.textContent).join(" | "))"""


def expected(command: str) -> Counter[str]:
    step = printed(command)
    # A pair of virtual stages passes every microbatch once in these schedules.
    count = step["microbatches"]
    return Counter(
        " | ".join(
            [
                NAMES.get(row["axis"], row["axis"].upper()),
                str(row["size"]),
                row["purpose"],
                row["collective"],
                f"{row['calls'] // count:,} × every microbatch"
                if row["when"] == "microbatch"
                else f"{row['calls']:,} × at the {row['when']} of the step",
                format_quantity(row["buffer_bytes"], "B"),
                format_quantity(row["sent_bytes"], "B"),
                LINKS[row["level"]],
            ]
        )
        for row in step["communication"]
    )


def test_what_groups_carry_is_what_the_command_line_says(page: Page, site: str) -> None:
    opened(page, site, "?nodes=16&tp=8&cp=2&pp=4&m.model=llama-3-405b&m.microbatches=8")
    page.get_by_role("button", name="What they send").press("Enter")
    expect(page.locator(".map-volumes tbody tr").first).to_be_in_viewport()
    sizes = "--nodes 16 --gpus-per-node 8 --tp 8 --pp 4 --microbatches 8 --json"
    model = page.locator("[name=volumes-model]")
    assert model.input_value() == "llama-3-405b", "as the modeler handed it on"
    for name in ("llama-3-405b", "llama-3-8b"):
        model.select_option(name)
        shown = Counter(page.evaluate(ROWS))
        assert shown == expected(f"figgen step --model {name} --cp 2 {sizes}")
        assert len(shown) >= 7
        rows = printed(f"figgen step --model {name} --cp 2 {sizes}")["communication"]
        sent = {
            level: format_quantity(
                sum(row["sent_bytes"] for row in rows if row["level"] == level), "B"
            )
            for level in LINKS
        }
        told = page.get_by_role("region", name="Messages", exact=True)
        expect(told).to_contain_text(
            f"It sends {sent['scale-up']} inside a node and {sent['network']} between nodes."
        )
    page.locator("[name=cp]").fill("4")
    page.locator(".map-summary", has_text="CP 4").wait_for()
    assert Counter(page.evaluate(ROWS)) == expected(f"figgen step --model {name} --cp 4 {sizes}")
    model.select_option("gpt-2-xl")
    told = page.get_by_role("region", name="Messages", exact=True)
    expect(told).to_contain_text("This model can't be laid out like this: heads")
