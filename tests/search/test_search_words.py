"""Words: inflections match, compounds match in pieces and whole, synonyms match their term."""

from __future__ import annotations

import pytest

from figgen.search.words import Synonyms, stem, synonyms, words


@pytest.mark.parametrize(
    "forms",
    [
        "communicate communicates communicated communicating communication communications",
        "schedule schedules scheduled scheduling",
        "gradient gradients",
        "activate activation activations activated",
        "recompute recomputes recomputed recomputing recomputation",
        "parallelise parallelised parallelize parallelizing",
        "utilisation utilization utilizations",
        "behaviour behavior behaviours",
        "efficiency efficiencies efficient",
    ],
)
def test_inflections_and_spellings_of_a_word_are_one(forms: str) -> None:
    assert len({stem(form) for form in forms.split()}) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all-reduce", {"all", "reduc", "allreduc"}),
        ("AllReduce", {"all", "reduc", "allreduc"}),
        ("bubble_fraction", {"bubbl", "fraction", "bubblefract"}),
        ("ZeRO-3", {"zero", "3", "zero3"}),
        ("NVLink4", {"nvlink4", "nvlink"}),
        ("1F1B", {"1f1b"}),
        ("α–β", {"α", "β", "αβ", "alpha", "beta"}),
        ("16,384 H100", {"16384", "h100"}),
        ("Llama 3.1 405B", {"llama", "3.1", "405b"}),
        ("how much of the wall time is idle", {"wall", "time", "idl"}),
    ],
)
def test_text_is_cut_into_words(text: str, expected: set[str]) -> None:
    assert set(words(text)) == expected


def test_each_name_of_a_thing_brings_the_others_wherever_it_stands() -> None:
    known = Synonyms([("recomputation", "activation checkpointing"), ("FSDP", "ZeRO-3")])
    assert set(known.of("Selective recomputations help.")) == {"activ", "checkpoint"}
    assert set(known.of("With activation-checkpointing")) == {"recomput"}
    assert set(known.of("FSDP2 and the like")) == set()
    assert set(known.of("fsdp")) == {"zero", "3", "zero3"}


def test_glossary_gives_synonyms_and_spellings_to_avoid() -> None:
    found = synonyms({"NIC": {"also": ["HCA"]}, "RoCE": {"never": ["roce v2"]}, "rank": {}})
    assert set(found.of("one NIC")) == {"hca"}
    assert "v2" in set(found.of("RoCE"))
    assert list(found.of("rank")) == []
    assert list(synonyms({}).of("anything")) == []
