"""How commands explain themselves: values by what they are (FILE, N, PIPELINE), not by the types of the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup


def value_name(parameter: Any) -> str:
    """Return what stands for a parameter's value: as declared, or by its type, or by its name."""
    if parameter.metavar is not None:
        return str(parameter.metavar)
    by_type = {int: "N", Path: "FILE"}
    return by_type.get(parameter.type_descriptor.annotation) or str(parameter.name).upper()


def shown_name(parameter: Any) -> str:
    """Return how a parameter is written on the command line."""
    if parameter.param_type_name == "argument":
        return value_name(parameter)
    names = ", ".join(parameter.opts)
    return names if parameter.is_flag else f"{names} {value_name(parameter)}"


class _Worded:
    """Writes usage and options in our words; the rest is Typer's, which keeps its types to itself."""

    def collect_usage_pieces(self: Any, ctx: Any) -> list[str]:
        """Return what follows the command's name in its usage line."""
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        pieces = ["[OPTIONS]", *(value_name(a) if a.required else f"[{value_name(a)}]" for a in arguments)]
        return pieces + ([self.subcommand_metavar] if hasattr(self, "commands") else [])

    def format_options(self: Any, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options, then what a group holds."""
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None:
                title = "Arguments" if each.param_type_name == "argument" else "Options"
                rows[title].append((shown_name(each), record[1].removesuffix("[required]").rstrip()))
        for title, listed in rows.items():
            if listed:
                with formatter.section(title):
                    formatter.write_dl(listed)
        if hasattr(self, "commands"):
            self.format_commands(ctx, formatter)


class Command(_Worded, TyperCommand):
    """One command."""


class Group(_Worded, TyperGroup):
    """Commands below one word."""


class GroupWithDefault(Group):
    """Commands below one word; the first is meant where none is named: `backup FILE` is `backup write FILE`."""

    def resolve_command(self: Any, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named, or the first."""
        default = next(iter(self.commands))
        return super().resolve_command(ctx, args if args[0] in self.commands else [default, *args])
