"""Find the scope of every name in a script, from its tree-sitter syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

from figgen.errors import InputError

_JAVASCRIPT = Language(tree_sitter_javascript.language())


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split(" "))


RESERVED = _words(
    "arguments async await break case catch class const continue debugger default delete do else",
    "enum eval export extends false finally for function get if implements import in instanceof",
    "interface let new null of package private protected public return set static super switch",
    "this throw true try typeof undefined var void while with yield NaN Infinity",
)
"""Names that are never used as new names."""
_NAMES = _words("identifier shorthand_property_identifier shorthand_property_identifier_pattern")
_LEAVES = _words(
    "comment property_identifier private_property_identifier statement_identifier meta_property",
    "number string regex this super null undefined true false import empty_statement",
)
"""Nodes that contain no name of a scope."""
_PATTERNS = _words("object_pattern array_pattern rest_pattern formal_parameters")
_FUNCTIONS = _words("arrow_function function_expression generator_function method_definition")
_DECLARATIONS = _words("function_declaration generator_function_declaration")
_BLOCKS = _words("statement_block switch_body for_statement")
"""Nodes that open a scope."""
_REFUSED = _words(
    "variable_declaration using_declaration with_statement decorator jsx_element html_comment",
    "jsx_self_closing_element import_statement export_statement hash_bang_line",
)
"""Syntax that our scripts don't use, or use at the top level only."""
_ACTING = _words(
    "assignment_expression augmented_assignment_expression update_expression await_expression",
    "yield_expression call_expression class_static_block",
)
"""Nodes that may have side effects."""
_IDLE_CLASSES = frozenset((b"Map", b"Set", b"WeakMap", b"WeakSet", b"RegExp"))
"""Classes whose construction has no side effects."""


@dataclass(slots=True, eq=False)
class Symbol:
    """A declared name; `slot` is its number among the inner names visible there, -1 at the top."""

    name: str
    slot: int = -1
    uses: int = 0


@dataclass(slots=True, eq=False)
class NameScope:
    """The names of a block, function, or module."""

    above: NameScope | None
    names: dict[str, Symbol] = field(default_factory=dict)
    within: list[NameScope] = field(default_factory=list)

    def inner(self) -> NameScope:
        made = NameScope(self)
        self.within.append(made)
        return made

    def find(self, name: str) -> Symbol | None:
        """Return the symbol that a name refers to here, or None for a global name."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.above
        return None


class Syntax:
    """Reads a module, and records each use of a name with its scope."""

    def __init__(self, source: str, path: str) -> None:
        self.path = path
        self.source = source.encode()
        self.root = Parser(_JAVASCRIPT).parse(self.source).root_node
        self.top = NameScope(None)
        self.used: list[tuple[Node, NameScope]] = []
        self.later: list[Node] = []
        self.inside = 0
        self.acts = False
        if self.root.has_error:
            raise self.wrong(_faulty(self.root))

    def wrong(self, node: Node) -> InputError:
        """Return the error for unsupported syntax."""
        if node.is_error or node.is_missing:
            kind = f"a missing {node.type}" if node.is_missing else "a syntax error"
        else:
            kind = node.type.replace("_", " ")
        text = self.text(node.start_byte, max(node.end_byte, node.start_byte + 20))
        return InputError(
            f"{self.path}:{node.start_point.row + 1}",
            expected="syntax that the joiner of scripts knows",
            got=f"{kind}: {text[:40]!r}",
        )

    def text(self, begin: int, end: int) -> str:
        return self.source[begin:end].decode(errors="ignore")

    def named(self, node: Node) -> str:
        return self.text(node.start_byte, node.end_byte)

    def read(self, node: Node | None, scope: NameScope) -> None:
        """Read a statement, an expression, or any part of them."""
        # An explicit stack, since a sum of a thousand terms is a tree of a thousand levels.
        waiting = [(node, scope)] if node else []
        while waiting:
            part, within = waiting.pop()
            kind = part.type
            if kind in _LEAVES:
                continue
            if kind in _REFUSED:
                raise self.wrong(part)
            if kind in _NAMES:
                self.used.append((part, within))
            elif special := _SPECIAL.get(kind):
                special(self, part, within)
            else:
                if not self.inside and _acts(part, kind):
                    self.acts = True
                if kind == "call_expression" and part.named_children[0].type == "import":
                    self.later.append(part)
                inner = within.inner() if kind in _BLOCKS else within
                waiting += [(child, inner) for child in reversed(part.named_children)]

    def pattern(self, node: Node | None, scope: NameScope) -> None:
        """Declare the names in the pattern of a declaration, a parameter or a caught error."""
        kind = node.type if node else "comment"
        if node is None or kind == "comment":
            return
        if kind in _NAMES:
            name = self.named(node)
            scope.names.setdefault(name, Symbol(name))
            self.used.append((node, scope))
        elif kind in _PATTERNS:
            for child in node.named_children:
                self.pattern(child, scope)
        elif kind == "pair_pattern":
            self.read(node.child_by_field_name("key"), scope)
            self.pattern(node.child_by_field_name("value"), scope)
        elif kind in ("assignment_pattern", "object_assignment_pattern"):
            self.pattern(node.child_by_field_name("left"), scope)
            self.read(node.child_by_field_name("right"), scope)
        else:
            raise self.wrong(node)

    def declarator(self, node: Node, scope: NameScope) -> None:
        self.pattern(node.child_by_field_name("name"), scope)
        self.read(node.child_by_field_name("value"), scope)

    def declaration(self, node: Node, scope: NameScope) -> None:
        """Read a function declaration, whose name is visible outside the function."""
        self.pattern(node.child_by_field_name("name"), scope)
        self.parameters_and_body(node, scope)

    def function(self, node: Node, scope: NameScope) -> None:
        """Read a method, or a function expression, whose name is visible only inside it."""
        name = node.child_by_field_name("name")
        if node.type == "method_definition":
            self.read(name, scope)
        elif name:
            scope = scope.inner()
            self.pattern(name, scope)
        self.parameters_and_body(node, scope)

    def parameters_and_body(self, node: Node, scope: NameScope) -> None:
        own = scope.inner()
        self.inside += 1
        self.pattern(node.child_by_field_name("parameter"), own)
        self.pattern(node.child_by_field_name("parameters"), own)
        self.read(node.child_by_field_name("body"), own)
        self.inside -= 1

    def class_(self, node: Node, scope: NameScope) -> None:
        name = node.child_by_field_name("name")
        if name:
            scope = scope if node.type == "class_declaration" else scope.inner()
            self.pattern(name, scope)
        for child in node.named_children:
            if child != name:
                self.read(child, scope)

    def member(self, node: Node, scope: NameScope) -> None:
        """Read a class field, whose value is computed for each object, or at once if static."""
        self.read(node.child_by_field_name("property"), scope)
        if not self.inside and self.named(node).startswith("static"):
            self.acts = True
        self.inside += 1
        self.read(node.child_by_field_name("value"), scope)
        self.inside -= 1

    def loop(self, node: Node, scope: NameScope) -> None:
        """Read a `for … of` or `for … in` loop."""
        head, kind = scope.inner(), node.child_by_field_name("kind")
        if kind and kind.type not in ("const", "let"):
            raise self.wrong(node)
        left = node.child_by_field_name("left")
        (self.pattern if kind else self.read)(left, head)
        self.read(node.child_by_field_name("right"), head)
        self.read(node.child_by_field_name("body"), head)

    def catch(self, node: Node, scope: NameScope) -> None:
        caught = scope.inner()
        self.pattern(node.child_by_field_name("parameter"), caught)
        self.read(node.child_by_field_name("body"), caught)


_SPECIAL: dict[str, Callable[[Syntax, Node, NameScope], None]] = {
    **dict.fromkeys(_FUNCTIONS, Syntax.function),
    **dict.fromkeys(_DECLARATIONS, Syntax.declaration),
    "class": Syntax.class_,
    "class_declaration": Syntax.class_,
    "field_definition": Syntax.member,
    "variable_declarator": Syntax.declarator,
    "for_in_statement": Syntax.loop,
    "catch_clause": Syntax.catch,
}
"""Readers of nodes that need more than reading their children."""


def parts(node: Node) -> list[Node]:
    """Return the named children except comments."""
    return [child for child in node.named_children if child.type != "comment"]


def _acts(node: Node, kind: str) -> bool:
    """Return whether a node by itself may have side effects."""
    if kind == "unary_expression":
        return node.children[0].type == "delete"
    if kind == "new_expression":
        made = node.child_by_field_name("constructor")
        return made is None or made.text not in _IDLE_CLASSES
    return kind in _ACTING


def _faulty(node: Node) -> Node:
    """Return the innermost node that the grammar doesn't know, or that is missing."""
    while inner := next((child for child in node.children if child.has_error), None):
        node = inner
    return node
