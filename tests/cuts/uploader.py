"""A client that never tires: `python -m tests.cuts.uploader PORT TOKEN`; a line is an upload that was acknowledged.

Each line has the item's id and the moment, by the machine's steady clock. What was refused or never answered is not
sent again: it may or may not have arrived.
"""

from __future__ import annotations

import http.client
import itertools
import json
import sys
import threading
import time

CLIENTS = 4
PAUSE_SECONDS = 0.1
ANSWER_SECONDS = 12.0


def upload(port: int, token: str, number: int) -> bool:
    """Send one item; tell whether it was accepted."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    story = {"id": number, "type": "story", "by": "ada", "title": f"Story {number}", "time": 1_700_000_000}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    try:
        connection.request("POST", "/api/v1/hacker_news/items", json.dumps(story), headers)
        return connection.getresponse().status == 202
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def client(port: int, token: str, numbers: itertools.count[int], lock: threading.Lock) -> None:
    """Send one item after the other."""
    while True:
        with lock:
            number = next(numbers)
        if upload(port, token, number):
            sys.stdout.write(f"{number} {time.monotonic()}\n")
            sys.stdout.flush()
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    port, token = int(sys.argv[1]), sys.argv[2]
    shared = (itertools.count(1), threading.Lock())
    threads = [threading.Thread(target=client, args=(port, token, *shared)) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
