"""Serve the ten functions to agents: `python -m figgen.agents` speaks MCP on standard streams.

The schema of a tool comes from the options of its verb, so a tool accepts what the command line
accepts. Bad input is answered by an error that says what was expected.
"""

from __future__ import annotations

import argparse
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from figgen.__main__ import parser_of
from figgen.api import FUNCTIONS, CommandResult, FigureResult, ValueResult, use_own_subject
from figgen.commands.serve_tools import skill
from figgen.errors import InputError
from figgen.project import in_another_site

if TYPE_CHECKING:
    from mcp.server import Server

ABOUT = {
    "formula": "arguments of the formula by name: numbers in SI units, or strings with a unit",
    "figure": "parameters of the figure by name, as in a fence on a page",
}
"""The functions whose keywords depend on their first argument."""


def schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a function's input."""
    properties: dict[str, Any] = {}
    if name in ABOUT:
        properties["name"] = {"type": "string", "description": _names(name)}
        properties["arguments"] = {"type": "object", "description": ABOUT[name]}
    else:
        properties = {_key(action): _property(action) for action in _options(name)}
    parameters = inspect.signature(FUNCTIONS[name]).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind != p.VAR_KEYWORD]
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _names(kind: str) -> str:
    """List all formulas, with their arguments, or figures: agents have no other list of them."""
    from figgen.registry import all_figures, all_formulas

    use_own_subject()
    if kind == "figure":
        return f"one of {', '.join(sorted(all_figures()))}"
    call = 'a call such as model("llama-3-70b").parameters, or'
    signatures = (
        f"{name}({', '.join(argument.name for argument in formula.args)})"
        for name, formula in sorted(all_formulas().items())
    )
    return f"{call} one of these, here with their arguments: {', '.join(signatures)}"


def _options(verb: str) -> Iterable[argparse.Action]:
    """Return the options of a verb of the command line."""
    parser = parser_of([verb])
    verbs = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return [a for a in verbs.choices[verb]._actions if not _is_hidden(a)]


def _is_hidden(action: argparse.Action) -> bool:
    """Return whether an option is hidden from agents: help, the output format, old names."""
    return action.dest in ("help", "json") or action.help == argparse.SUPPRESS


def _key(action: argparse.Action) -> str:
    """Return the keyword of an option: `gpus_per_node` for `--gpus-per-node`."""
    return next(iter(action.option_strings), action.dest).removeprefix("--").replace("-", "_")


def _property(action: argparse.Action) -> dict[str, Any]:
    kind: str | list[str] = "boolean" if action.nargs == 0 else ["string", "number"]
    if isinstance(action, argparse.BooleanOptionalAction):
        kind = "boolean"
    about = {"description": action.help} if action.help else {}
    choices = {"enum": list(action.choices)} if action.choices else {}
    return {"type": kind, **about, **choices}


def called(name: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Call a function; return its answer as text and as data. Raises InputError for bad input."""
    function = FUNCTIONS.get(name)
    if function is None:
        raise InputError("a tool", expected=", ".join(FUNCTIONS), got=name)
    values = dict(given)
    if name in ABOUT:
        values = {"name": values.get("name"), **(values.get("arguments") or {})}
    try:
        parameters = inspect.signature(function).parameters.values()
        first = [values.pop(p.name) for p in parameters if p.kind == p.POSITIONAL_ONLY]
        answer = function(*first, **values)
    except KeyError as error:
        raise InputError(f"{error.args[0]!r} is missing") from None
    except TypeError as error:
        raise InputError(str(error)) from None
    return _content(answer)


def _content(answer: ValueResult | FigureResult | CommandResult) -> tuple[str, dict[str, Any]]:
    match answer:
        case ValueResult(value=value, unit=unit, worked=worked, source=source):
            parts = (answer.text, worked, source and f"source: {source}")
            data = {"value": value, "unit": unit, "worked": worked, "source": source}
            return "\n".join(filter(None, parts)), data
        case FigureResult():
            return answer.text, {"values": answer.values}
    return answer.text, answer.data


def _description(function: Callable[..., object]) -> str:
    """Return a function's docstring; for another site, without the guide's examples."""
    text = inspect.getdoc(function) or ""
    return text.partition("\n\n>>>")[0] if in_another_site() else text


def server() -> Server[Any]:
    """Return a server of every function, or only of the functions that make sense on any site."""
    from mcp.server import Server
    from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

    tools = [
        Tool(name=name, description=_description(function), input_schema=schema(name))
        for name, function in FUNCTIONS.items()
        if name in ABOUT or not in_another_site()
    ]

    async def list_tools(context: object, params: object) -> ListToolsResult:
        return ListToolsResult(tools=tools)

    async def call_tool(context: object, params: Any) -> CallToolResult:
        try:
            text, data = called(params.name, params.arguments or {})
        except InputError as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        plain = json.loads(json.dumps(data))
        return CallToolResult(content=[TextContent(text=text)], structured_content=plain)

    about = skill().partition("---\n\n")[2]
    return Server("figgen", instructions=about, on_list_tools=list_tools, on_call_tool=call_tool)


def main() -> int:
    """Serve until standard input ends."""
    try:
        import anyio
        from mcp.server.stdio import stdio_server
    except ImportError as error:
        ask = "pip install 'mkdocs-figgen[agents]'"
        print(f"figgen: {error.name} is not installed: {ask}", file=sys.stderr)
        return 2

    async def serve() -> None:
        made = server()
        async with stdio_server() as (incoming, outgoing):
            await made.run(incoming, outgoing, made.create_initialization_options())

    anyio.run(serve)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
