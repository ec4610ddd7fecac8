"""`tidings restore`: brings a backup back into an empty database."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tidings.cli.options import BackupArgument, ConfigOption, JsonOption, wiring_of
from tidings.cli.output import moment, say, show_json
from tidings.cli.progress import progress_bar
from tidings.cli.store import opened_database
from tidings.store.upkeep.backup import verify as verified
from tidings.store.upkeep.preflight import vet
from tidings.store.upkeep.restore import PARKED, restore_backup


def restore(
    file: Annotated[Path, BackupArgument],
    config: ConfigOption = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Take a backup of an older version, which has no digests, as it is.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring a backup back into an empty database. Nothing is sent by itself afterwards."""
    with progress_bar("verifying", as_json) as show:
        found = verified(file, unverified=unverified, progress=show)
    vet(wiring_of(config).database_url)
    with opened_database(config) as database, progress_bar("restoring", as_json) as show:
        done = restore_backup(found, database, progress=show)
        name = database.describe()
    if as_json:
        show_json(asdict(done))
        return
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
