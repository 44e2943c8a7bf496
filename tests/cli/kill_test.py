"""SIGKILL at random moments under --checkpoint: the same rows afterwards, and no finished verdict is lost.

    kill_test.py QUAIL [KILLS_WITH_AN_ORACLE [KILLS_WITH_THE_MODEL [SEED]]]
"""

import json
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEADER, RECORD = 8, 32
KILLS_A_RUN = 5
ROWS = 60000
# Rules that match nothing make it slow enough to be killed on its way.
RULES = [{"contains": [f"never {i}"], "verdict": True} for i in range(100)] + [
    {"contains": ["boom"], "verdict": "error: boom"}, {"contains": ["7"], "verdict": True},
    {"contains": ["8"], "margin": -0.25}, {"contains": ["9"], "verdict": None}, {"verdict": False}]
WITH_ORACLE = ("SELECT i, AI_FILTER(PROMPT('x {0}', 'text ' || CASE i % 1000 WHEN 3 THEN 'boom' || i ELSE i::VARCHAR END)) "
               f"AS p FROM range({ROWS}) r(i) ORDER BY i")
WITH_MODEL = ("SELECT a.i, b.i AS j, AI_PROB(PROMPT('Is {0} like {1}?', 'number ' || a.i, 'the number ' || b.i)) AS p "
              "FROM range(6) a(i), range(20) b(i) WHERE AI_FILTER(PROMPT('Is it even? {0}', 'number ' || a.i)) IS NOT NULL "
              "ORDER BY a.i, b.i")


class Killer:
    def __init__(self, command, asks, folder, dice):
        self.command, self.asks, self.folder, self.dice = command, asks, folder, dice
        self.kept = folder / "kept.bin"
        self.unfinished = 0
        self.reused = 0
        start = time.monotonic()
        self.wanted = self.finish().stdout
        self.seconds = time.monotonic() - start

    def finish(self, *arguments):
        done = subprocess.run([*self.command, *arguments], cwd=self.folder, text=True, capture_output=True)
        require(done.returncode == 0, done.stderr)
        return done

    def records(self):
        size = self.kept.stat().st_size if self.kept.exists() else 0
        if (size - HEADER) % RECORD != 0 and size > HEADER:
            self.unfinished += 1
        return max(0, size - HEADER) // RECORD

    def wait_for(self, process, records):
        """Returns while it writes, or soon after."""
        while process.poll() is None and (not self.kept.exists() or self.kept.stat().st_size < RECORD * records):
            time.sleep(0.001)
        time.sleep(self.dice.choice([0, 0, 0.003, 0.02]))

    def kill(self):
        before = self.records()
        process = subprocess.Popen([*self.command, "--checkpoint", "kept.bin"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if self.dice.random() < 0.5:
            time.sleep(self.dice.uniform(0, self.seconds))
        else:
            self.wait_for(process, before + self.dice.randrange(self.asks))
        process.kill()
        process.wait()
        require(self.records() >= before, f"{before} verdicts were kept, then {self.records()}")

    def kill_and_go_on(self, kills):
        for done in range(1, kills + 1):
            self.kill()
            if done % KILLS_A_RUN == 0 or done == kills:
                kept = self.records()
                end = self.finish("--checkpoint", "kept.bin")
                require(end.stdout == self.wanted, "other rows than those of a run that was not killed")
                told = re.search(r"(\d+) verdicts came from the checkpoint", end.stderr)
                reused = int(told.group(1)) if told else 0
                require(reused == kept, f"{kept} verdicts were kept, {reused} came from the checkpoint")
                self.reused += reused
                self.kept.unlink()


def require(condition, message):
    if not condition:
        sys.exit(f"error: {message}")


def main():
    quail = Path(sys.argv[1]).resolve()
    numbers = [int(argument) for argument in sys.argv[2:]]
    oracle_kills, model_kills, seed = [*numbers, *[10, 5, 1][len(numbers):]]
    dice = random.Random(seed)
    models = subprocess.run([quail, "models"], capture_output=True, text=True).stdout
    kinds = [("an oracle", ["--oracle", "rules.jsonl", "-c", WITH_ORACLE], ROWS, oracle_kills)]
    if re.search(r"\S+\.gguf", models):
        kinds.append(("the embedded model", ["--threads", "2", "-c", WITH_MODEL], 100, model_kills))
    else:
        print("the embedded model: not run, it has not been fetched")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rules.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in RULES))
        for what, arguments, asks, kills in kinds:
            killer = Killer([quail, "--format", "csv", *arguments], asks, folder, dice)
            killer.kill_and_go_on(kills)
            print(f"{what}: {kills} kills, {killer.reused} verdicts reused, {killer.unfinished} unfinished records; "
                  f"a whole run takes {killer.seconds:.1f} s")


if __name__ == "__main__":
    main()
