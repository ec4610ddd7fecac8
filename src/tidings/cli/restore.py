"""`tidings restore`: brings a backup, or the copy that `replicate` keeps, back into an empty database."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.options import BackupArgument, ConfigOption, JsonOption, settings_from, wiring_of
from tidings.cli.output import end, fail, moment, say, show_json
from tidings.cli.progress import progress_bar
from tidings.cli.store import opened_database
from tidings.follow.replica.litestream import ReplicaPlace, fetch, newest_copy, shown
from tidings.model.clock import read_time, rfc3339
from tidings.model.errors import TidingsError
from tidings.store.upkeep.backup import verify as verified
from tidings.store.upkeep.preflight import vet
from tidings.store.upkeep.restore import PARKED, Restored, adopt_copy, restore_backup
from tidings.wiring import replica_place


def restore(
    file: Annotated[Path | None, BackupArgument] = None,
    config: ConfigOption = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Take a backup of an older version, which has no digests, as it is.")
    ] = False,
    source: Annotated[
        str,
        typer.Option("--from", metavar="URL", help="Instead of a file, the place that `run --replicate` copies to."),
    ] = "",
    at: Annotated[
        str, typer.Option("--at", metavar="TIME", help="With --from: as it was then, such as 2026-11-18T08:00:00Z.")
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Bring a backup or a copy back into an empty database. Nothing is sent by itself afterwards."""
    if (file is None) == (not source):
        fail("name a backup's FILE, or --from URL: one of them")
    if at and not source:
        fail("--at goes with --from; a backup holds one moment")
    done, name = (
        _from_place(config, source, at, as_json) if file is None else _from_file(config, file, unverified, as_json)
    )
    if as_json:
        show_json(asdict(done))
        return
    _tell(done, name)


def _from_file(config: Path | None, file: Path, unverified: bool, as_json: bool) -> tuple[Restored, str]:
    with progress_bar("verifying", as_json) as show:
        found = verified(file, unverified=unverified, progress=show)
    vet(wiring_of(config).database_url)
    with opened_database(config) as database, progress_bar("restoring", as_json) as show:
        return restore_backup(found, database, progress=show), database.describe()


def _from_place(config: Path | None, url: str, at: str, as_json: bool) -> tuple[Restored, str]:
    """Fetch into a folder beside the database, make it safe there, and put it in place whole."""
    try:
        place = replica_place(settings_from(config), url)
        assert place is not None
        target = Path(wiring_of(config).database_url.removeprefix("sqlite:///")).absolute()
        _refuse_occupied(target)
        with tempfile.TemporaryDirectory(prefix=".tidings-restore-", dir=target.parent) as name:
            done = _fetched(Path(name), place, at, as_json)
            _forget_old_state(target)
            (Path(name) / "copy.db").replace(target)
    except OSError as error:
        fail(f"{error.filename or target} cannot be written: {error.strerror}", 1)
    except TidingsError as error:
        end(error)
    return done, target.name


def _fetched(folder: Path, place: ReplicaPlace, at: str, as_json: bool) -> Restored:
    copy, then = folder / "copy.db", read_time(at, zone=None)
    if at and then is None:
        fail(f"--at {at!r}: write a time and its zone, such as 2026-11-18T08:00:00Z")
    with progress_bar("fetching", as_json):
        newest = newest_copy(copy, folder, place)
        if newest is None:
            fail(f"{shown(place)} holds no copy of a database", 1)
        fetch(copy, folder, place, at=rfc3339(then))
    taken_at = min(filter(None, (read_time(newest), then)))
    return adopt_copy(copy, place.url, taken_at)


def _refuse_occupied(target: Path) -> None:
    for each in (target, target.with_name(f"{target.name}-wal")):
        if each.exists() and each.stat().st_size:
            fail(f"{each.name} is there already; move it away, or name another file in database_url", 1)


def _forget_old_state(target: Path) -> None:
    """Remove what lay beside the lost file: an empty log, and how far Litestream had come with it."""
    for suffix in ("", "-wal", "-shm"):
        target.with_name(target.name + suffix).unlink(missing_ok=True)
    shutil.rmtree(target.with_name(f".{target.name}-litestream"), ignore_errors=True)


def _tell(done: Restored, name: str) -> None:
    taken = moment(done.taken_at)
    say(f"{name} holds {done.items} items as of {taken} ({done.rows} rows). {done.leases} leases were ended.\n")
    say(f"What happened after {taken} is not in it:")
    say("  missing: what was uploaded since; it has to be sent again")
    say("  healed: what sources brought since; they are read again from where they stood then")
    say(f"  repeated: work on the {done.unfinished} items that were not finished, and what they announce when they are")
    if done.deliveries_parked:
        say(f"\n{done.deliveries_parked} notices were not sent then and may have been since. They are parked:")
        say("  tidings items --standing parked                shows them")
        say("  tidings dead revive ITEM                       sends one")
        say(f'  tidings dead revive --cause "{PARKED}"   sends all')
