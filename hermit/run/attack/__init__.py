"""Known cheats, tried against a user's own task and judge: what `hermit check --attack` does.

``cheats`` is the table, one value for each cheat. ``hints`` is what somebody who knows the benchmark knows, found out by the
host. ``campaign`` makes the attempts, on the path that every attempt takes (``run/trial.py``). The rest runs inside, in the
place of the user's agent and with what that one is shown: ``agent`` plays one cheat, ``scene`` is what a cheat has to work
with, ``forged`` is the text it leaves, and ``plants``, ``files``, ``sights`` and ``linger`` are the moves.
"""
