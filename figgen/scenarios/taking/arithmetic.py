"""Evaluates integer arithmetic as a shell does: `NNODES * GPUS_PER_NODE / TP`."""

from __future__ import annotations

from figgen.scenarios.texts.entry import is_name, is_whole


def computed(text: str, variables: dict[str, str]) -> str:
    """Return the value of an expression as text, or "" if a name has no number or it is invalid."""
    parts = _parts(text)
    if not parts:
        return ""
    numbers: list[int] = []
    signs: list[str] = []
    wants_number = True
    for part in parts:
        if part == "(":
            if not wants_number:
                return ""
            signs.append(part)
        elif part == ")":
            if wants_number:
                return ""
            while signs and signs[-1] != "(":
                if not _apply(numbers, signs.pop()):
                    return ""
            if not signs:
                return ""
            signs.pop()
        elif part in ("+", "-", "*", "/", "%"):
            if wants_number:
                return ""
            while signs and signs[-1] != "(" and _rank(signs[-1]) >= _rank(part):
                if not _apply(numbers, signs.pop()):
                    return ""
            signs.append(part)
            wants_number = True
        else:
            number = variables.get(part, "") if is_name(part) else part
            if not wants_number or not is_whole(number.strip()):
                return ""
            numbers.append(int(number.strip()))
            wants_number = False
    while signs:
        sign = signs.pop()
        if sign == "(" or not _apply(numbers, sign):
            return ""
    return str(numbers[0]) if len(numbers) == 1 and not wants_number else ""


def _rank(sign: str) -> int:
    return 1 if sign in ("+", "-") else 2


def _apply(numbers: list[int], sign: str) -> bool:
    """Replace the last two numbers with the result of an operator; return False if undefined."""
    if len(numbers) < 2:
        return False
    second = numbers.pop()
    first = numbers.pop()
    if sign in ("/", "%") and (second == 0 or first < 0 or second < 0):
        return False
    if sign == "+":
        numbers.append(first + second)
    elif sign == "-":
        numbers.append(first - second)
    elif sign == "*":
        numbers.append(first * second)
    elif sign == "/":
        numbers.append(first // second)
    else:
        numbers.append(first % second)
    return abs(numbers[-1]) < 2**50


def _parts(text: str) -> list[str]:
    """Return the names, numbers and operators of an expression, or nothing if it is invalid."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter in " \t\n$\\{}\"'":
            at += 1
        elif letter.isalnum() or letter == "_":
            end = at
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            parts.append(text[at:end])
            at = end
        elif letter in "+-*/%()":
            parts.append(letter)
            at += 1
        else:
            return []
    return parts
