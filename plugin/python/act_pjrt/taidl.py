"""TAIDL descriptions in Python: collected here, judged by the library, and written as ``.taidl`` text.

Takes both spellings in use: that of the released tools (``Accelerator``, ``add_instruction``, ``set_inputs``,
``add_semantics``, attributes as ``@c.n`` and ``@a.addr``) and that of the ACT paper's Fig. 6 (``set_hbm``,
``add_instr``, ``set_abstract_computation``, bare attributes). It decides nothing about a description.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from act_pjrt import _library

__all__ = ["Accelerator", "Constant", "DataModel", "Instruction", "Slice", "TaidlError"]

# The released language has no size for main memory.
_HBM_SIZE = "64 GiB"

# Words of the text form that no attribute may be called; ``@a.in`` says all the same which is meant.
_RESERVED = {"and", "or", "not", "in", "by", "inf", "nan", "true", "false"}

# Every accelerator that was made, in order; ``act isa import`` asks for them.
created: list[Accelerator] = []


class TaidlError(ValueError):
    """A description is wrong; the message shows where."""


class Slice(NamedTuple):
    """Where an operand or the result lies: ``start`` and ``len`` per access dimension."""

    buffer: str
    start: Sequence[int | str] = ()
    len: Sequence[int | str] = ()


# A triple, a Slice, or a pair of a name and {"start": .., "len": ..}.
SliceLike = Sequence[Any]


@dataclass
class Constant:
    """A named constant, or a control register with its first value."""

    const_name: str
    value: int


@dataclass
class DataModel:
    """A buffer: addressable dimensions, dimensions always accessed whole, element type."""

    var_name: str
    access_dim: list[int | str]
    unit_dim: list[int | str]
    var_type: str


def _name(name: str) -> str:
    """A name that the text form can spell."""
    return re.sub(r"\W", "_", name.strip(), flags=re.ASCII)


def _attributes(instruction: Instruction) -> dict[str, str]:
    """Attributes whose names are words of the text form, and the names that they get there."""
    taken = {_name(name) for name in (*instruction.comp_attr, *instruction.addr_attr)}
    renamed = {}
    for name in sorted(taken & _RESERVED):
        fresh = f"{name}_"
        while fresh in taken:
            fresh += "_"
        taken.add(fresh)
        renamed[name] = fresh
    return renamed


def _expression(value: int | str) -> str:
    """An expression in backticks, in which ``//`` divides."""
    text = " ".join(str(value).replace("`", " ").split())
    return text if text.isdigit() else f"`{text}`"


def _slice(given: SliceLike) -> Slice:
    buffer, *rest = given
    if len(rest) == 1 and isinstance(rest[0], Mapping):
        return Slice(str(buffer), rest[0].get("start", ()), rest[0].get("len", ()))
    start, length = rest
    return Slice(str(buffer), start, length)


def _slices(given: Sequence[Any]) -> list[Slice]:
    """One slice, or a list of them."""
    alone = bool(given) and isinstance(given[0], str)
    return [_slice(one) for one in ([given] if alone else given)]


@dataclass
class Instruction:
    """An abstract instruction."""

    instruction: str
    comp_attr: list[str]
    addr_attr: list[str]
    cost: str = "0"
    update: list[str] = field(default_factory=list)
    constraints: list[str] = field(default_factory=list)
    inputs: list[Slice] = field(default_factory=list)
    outputs: list[Slice] = field(default_factory=list)
    semantics: str = ""

    def set_inputs(self, inputs: Sequence[Any]) -> None:
        """What the instruction reads; the k-th is ``parameter(k)`` of its semantics."""
        self.inputs = _slices(inputs)

    def set_outputs(self, outputs: Sequence[Any]) -> None:
        """What the instruction writes."""
        self.outputs = _slices(outputs)

    set_output = set_outputs

    def add_constraints(self, constraints: str | Sequence[str]) -> None:
        """Conditions that must all hold: one a line, or a list of them."""
        lines = constraints.splitlines() if isinstance(constraints, str) else constraints
        self.constraints += [line for line in lines if line.strip()]

    set_constraints = add_constraints

    def add_semantics(self, semantics: str) -> None:
        """What the instruction computes, an ``ENTRY`` block.

        Raises:
            TaidlError: the block is not well-formed.
        """
        name = f"semantics of {self.instruction}"
        library = _library.load()
        wrong = _library.take_string(library.act_taidl_check_block(semantics.encode(), name.encode()))
        if wrong:
            raise TaidlError(wrong)
        self.semantics = semantics

    set_abstract_computation = add_semantics

    def _lines(self) -> list[str]:
        renamed = _attributes(self)
        alpha, beta = (
            ", ".join(renamed.get(_name(name), _name(name)) for name in names)
            for names in (self.comp_attr, self.addr_attr)
        )
        lines = [f"instr {_name(self.instruction)} alpha({alpha}) beta({beta}) {{"]
        for word, slices in (("in", self.inputs), ("out", self.outputs)):
            for buffer, start, length in slices:
                ranges = [f"{_expression(s)} :+ {_expression(n)}" for s, n in zip(start, length, strict=True)]
                lines.append(f"  {word} {_name(buffer)}[{', '.join(ranges)}]")
        lines += [f"  require {_expression(condition)}" for condition in self.constraints]
        for update in self.update:
            register, _, value = update.partition("=")
            lines.append(f"  update {_name(register.strip().removeprefix('@s.'))} = {_expression(value)}")
        # "0" is what the released tools store for a cost that nobody stated.
        if str(self.cost).strip() not in ("", "0"):
            lines.append(f"  cost {_expression(self.cost)}")
        lines = [*lines, self.semantics.strip("\n"), "}", ""]
        for name, fresh in renamed.items():
            lines = [re.sub(rf"@([ca])\.{name}(?![\w.])", rf"@\1.{fresh}", line) for line in lines]
        return lines


class Accelerator:
    """A description in the making."""

    def __init__(self, name: str, base_dir: str | None = None) -> None:
        """``base_dir`` is where the released tools put what they generate; it has no meaning here."""
        self.name = name.replace(" ", "_")
        self.base_dir = base_dir
        self.constants: list[Constant] = []
        self.state: list[Constant] = []
        self.data_model: list[DataModel] = []
        self.instructions: list[Instruction] = []
        self._hbm: tuple[str, int | str, bool] = ("d0", _HBM_SIZE, False)
        created.append(self)

    def set_hbm(self, name: str, size: int | str, ordered: bool = False) -> None:
        """Main memory; the size is in bytes, or has a unit as in ``"1MB"`` (powers of two).

        ``ordered`` says that loads see every earlier store without a fence.
        """
        self._hbm = (name, size, ordered)

    def add_data_model(
        self,
        name: str,
        access_dims: Sequence[int | str] = (),
        unit_dims: Sequence[int | str] = (),
        type: str = "",
        *,
        S0: Sequence[int | str] = (),
        S1: Sequence[int | str] = (),
        E: str = "",
    ) -> None:
        """A buffer with addressable dimensions and dimensions that are always accessed whole."""
        self.data_model.append(DataModel(name, [*access_dims, *S0], [*unit_dims, *S1], type or E))

    def add_instruction(
        self,
        name: str,
        comp_attrs: Sequence[str],
        addr_attrs: Sequence[str],
        cost: str = "0",
        update: Sequence[str] = (),
        constraints: Sequence[str] = (),
    ) -> Instruction:
        """An instruction with its computational and addressing attributes."""
        made = Instruction(name, [*comp_attrs], [*addr_attrs], cost, [*update], [*constraints])
        self.instructions.append(made)
        return made

    def add_instr(
        self, name: str, alpha: Sequence[str] = (), beta: Sequence[str] = (), **rest: Any
    ) -> Instruction:
        """An instruction in the paper's spelling."""
        return self.add_instruction(name, alpha, beta, **rest)

    def raw_taidl(self) -> str:
        """The text form of what was said, without what follows from it."""
        name, size, ordered = self._hbm
        lines = [f"isa {_name(self.name)}", "", f"hbm {_name(name)}: {size}{' ordered' if ordered else ''}"]
        lines += [f"const {_name(c.const_name)} = {c.value}" for c in self.constants]
        lines += [f"register {_name(c.const_name)} = {c.value}" for c in self.state]
        for buffer in self.data_model:
            access, unit = (", ".join(map(str, dims)) for dims in (buffer.access_dim, buffer.unit_dim))
            lines.append(f"buffer {_name(buffer.var_name)}: {buffer.var_type}[{access} | {unit}]")
        lines.append("")
        for instruction in self.instructions:
            lines += instruction._lines()
        return "\n".join(lines)

    def to_taidl(self) -> str:
        """The description as checked text, with the ranges of attributes that follow from it.

        Raises:
            TaidlError: something is wrong with it.
        """
        library = _library.load()
        raw, name = self.raw_taidl().encode(), f"{_name(self.name)}.taidl".encode()
        answer = json.loads(_library.take_string(library.act_taidl_complete(raw, name)) or "{}")
        if "text" not in answer:
            raise TaidlError(answer.get("error", "the library gave no answer"))
        text: str = answer["text"]
        return text

    def write(self, path: str | Path) -> None:
        """Writes the checked text into a file.

        Raises:
            TaidlError: something is wrong with the description; nothing is written.
        """
        Path(path).write_text(self.to_taidl())

    def generate_oracle(self, *_: Any, **__: Any) -> None:
        """Does nothing: act generates simulators and backends when it runs."""

    generate_backend = generate_oracle
