"""What `Memory` does with files that lie outside the bank and change: retain them again, when they rest.

A part of `Memory`. A daemon calls `watch_run` by itself; without one a person or cron does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ua_memory.retain.retains import Retains

if TYPE_CHECKING:
    from ua_memory.modelled import Asked
    from ua_memory.retain.items import Item
    from ua_memory.retain.pricing import Priced
    from ua_memory.retain.retained import Retained
    from ua_memory.retain.retaining import Tell
    from ua_memory.retain.watched import Look, Watched

CLAIM = "watched"


@dataclass(frozen=True, slots=True)
class Caught:
    """What catching up with watched paths did. `young` were saved too lately, `failed` could not be read
    (file and why), `gone` vanished: their facts stay until they are let go, as those of `let_go` were now.
    `missing` are watched paths that are not there at all."""

    done: tuple[Retained, ...] = ()
    young: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    gone: tuple[str, ...] = ()
    let_go: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class Watches(Retains):
    """The part of `Memory` that watches."""

    def watch_add(self, path: Path, *, model: Asked = None) -> tuple[Watched, Look]:
        """Watch a file or folder outside the bank, and say what there is to read. `model` is who is to read
        it. Usage, TooLarge."""
        from ua_memory.retain import watched

        self.store.make_state()
        one = watched.add(self.store, path, modelled=model is not None)
        return one, watched.look(self.store, one, 0)

    def watched(self) -> list[tuple[Watched, Look]]:
        """What is watched, and what has changed there since. TooLarge."""
        from ua_memory.retain import watched

        quiet = self.config.watch_seconds
        return [(one, watched.look(self.store, one, quiet)) for one in watched.load(self.store)]

    def watch_remove(self, path: str) -> Watched:
        """Watch a path no longer; its documents stay. NotFound."""
        from ua_memory.errors import NotFound
        from ua_memory.retain import watched

        known = watched.load(self.store)
        gone = next((one for one in known if one.path in (path, str(Path(path).resolve()))), None)
        if gone is None:
            raise NotFound("this path is not watched", where=path, mend="ua-memory watch list")
        watched.save(self.store, [one for one in known if one is not gone])
        return gone

    def watch_due(self, *, modelled: bool) -> bool:
        """Whether anything is to be taken in now. Without a model only what nobody meant for one."""
        if not (self.store.bank.local / "watched.json").exists():
            return False
        ours = [(one, look) for one, look in self.watched() if modelled or not one.modelled]
        fresh = (name for one, look in ours for name in look.gone if not one.files[name].gone)
        return any(look.ready for _, look in ours) or any(True for _ in fresh)

    def watch_run(
        self, *, model: Asked = None, accept: bool = False, now: bool = False, unasked: bool = False,
        tell: Tell | None = None,
    ) -> Caught:  # fmt: skip
        """Take in what has changed at watched paths and rests, or, with `now`, whether it rests or not.

        Of a file that vanished the facts stay, and it is told: a disk that is not mounted and another branch
        look the same. `accept` lets them go. `unasked` leaves alone what is meant for a model where there is
        none. What the model fails at waits in the queue. Busy; else as `retain`.
        """
        from ua_memory.retain import watched

        self.store.make_state()
        retainer = self._retainer(None, None)
        with retainer.items.claimed(CLAIM, 0):
            known = watched.load(self.store)
            mine = [one for one in known if not (unasked and model is None and one.modelled)]
            caught = Caught()
            keys: list[str] = []
            for one in mine:
                look = watched.look(self.store, one, 0 if now else self.config.watch_seconds)
                after, items, caught = self._taken(one, look, caught, accept)
                keys += [retainer.offer(item, modelled=model is not None) for item in items]
                known[known.index(one)] = after
            watched.save(self.store, known)
            gone = tuple(self._let_go(name) for name in caught.let_go)
            done = self.retain_waiting(keys, model=model, tell=tell) if keys else []
        return replace(caught, done=(*done, *gone))

    def _taken(
        self, one: Watched, look: Look, caught: Caught, accept: bool
    ) -> tuple[Watched, list[Item], Caught]:
        """A watched path as it stands after a look, and the texts to be retained."""
        from ua_memory.errors import UaMemoryError
        from ua_memory.retain.watched import Stood

        files, items, failed = dict(one.files), [], []
        for name, stamp in look.ready.items():
            try:
                item = self.file(Path(name), origin="import", client="watch")
                items += [item] if item.text.strip() else []
                files[name] = Stood(stamp)
            except UaMemoryError as error:  # tried again when it is saved again
                files[name] = Stood(stamp, error.what)
                failed.append((name, error.what))
        for name in look.gone:
            if accept:
                del files[name]
            else:
                files[name] = replace(files[name], gone=True)
        return replace(one, files=files), items, Caught(
            (), (*caught.young, *look.young), (*caught.failed, *failed),
            caught.gone if accept else (*caught.gone, *look.gone),
            (*caught.let_go, *look.gone) if accept else caught.let_go,
            (*caught.missing, one.path) if look.missing else caught.missing,
        )  # fmt: skip

    def _let_go(self, document_id: str) -> Retained:
        return self._retainer(None, None).let_go(document_id)

    def priced_watch(self, *, model: Asked = None) -> list[Priced]:
        """What `watch_run` would keep and cost; see `priced`."""
        ready = [name for _, look in self.watched() for name in (*look.ready, *look.young)]
        return self.priced((self.file(Path(name), origin="import") for name in ready), model=model)
