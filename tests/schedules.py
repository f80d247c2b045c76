"""A simulated world for fedsim/engine/pool.py: one seed decides who runs when, and what goes wrong.

`Schedule(seed).run(pool)` runs blocks under `pool`, a copy of that module (`load`) whose executor, `wait`
and blocks are replaced by those here. Nothing runs side by side: whenever the pool submits, waits, takes or
ends, the seed's random numbers decide which tasks begin, which end, and whether now is the time of a Ctrl-C,
a dead worker or a full disk. `log` tells what happened, and the same seed tells the same again.
"""

from __future__ import annotations

import random
import types
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future
from pathlib import Path

import numpy as np

from fedsim.engine import pool as pool_module
from fedsim.engine.block import BlockResult, Stopped
from fedsim.engine.moments import Tree
from fedsim.engine.rounds import LEAF
from fedsim.vector.memory import signal_of, signals

SOURCE = Path(pool_module.__file__).read_text(encoding="utf-8")
FAULTS = ("none", "interrupt", "interrupts", "death", "broken", "full disk", "all")


def load(*changes):
    """A copy of fedsim/engine/pool.py, with texts (old, new) replaced."""
    text = SOURCE
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    module = types.ModuleType("fedsim.engine.pool_copy")
    module.__package__ = "fedsim.engine"
    exec(compile(text, "pool_copy.py", "exec"), vars(module))
    return module


class Death(RuntimeError):
    """A task that fails."""


class Numbered(Future):
    """A future whose place in a set is the same in every run, and that is not looked at for ever."""

    def __init__(self, world, number):
        super().__init__()
        self.world, self.number, self.looks = world, number, 0

    def __hash__(self):
        return self.number

    def done(self):
        self.looks += 1
        self.world.expect(self.looks < 10_000, "it never ends")
        return super().done()


class Runner:
    """Stands for BlockRunner: segments of random length, and moments that tell which rounds were run."""

    world = None

    def __init__(self, job, first, last, flags=None, place=0):
        self.job, self.first, self.last, self.done, self.state = job, first, last, 0, 1
        self.stop = signal_of(signals(1) if flags is None else flags, place)

    @property
    def finished(self):
        return self.done >= self.job.n_rounds

    def advance(self):
        self.world.perhaps_die(self)
        if self.stop[0]:  # a segment that was longer than anybody waits
            raise Stopped
        rounds = self.world.rng.randint(1, self.job.n_rounds - self.done)
        for round in range(self.done, self.done + rounds):
            self.state = (self.state * 6364136223846793005 + round) % 2**53
            self.stop[1] += self.world.counted if self.world else 0
        self.done += rounds
        return rounds

    def result(self):
        leaves = np.arange(self.first, self.last, LEAF, dtype=float).reshape(-1, 1, 1, 1)
        mean = np.sin(leaves + self.state)
        return BlockResult(self.first, self.last, mean, np.exp(mean), np.empty(0), np.empty((0, 1)))


class Broken(BaseException):
    """A schedule in which the pool did not keep its promise; no error that the pool could handle."""


class Simulated(Executor):
    """The executor of a schedule: `workers` tasks run at a time, in any order."""

    def __init__(self, world, workers):
        self.world, self.workers = world, workers

    def submit(self, function, *args):
        world = self.world
        world.perhaps_interrupt("submit")
        if world.is_broken:
            raise BrokenExecutor("broken")
        runner = args[1] if isinstance(args[1], Runner) else None
        world.expect(runner is None or all(runner is not task[3] for task in world.tasks), "two at once")
        future = Numbered(world, len(world.futures))
        world.futures.append(future)
        world.tasks.append((future, function, args, runner))
        world.n_begun += runner is None
        world.n_open += runner is None
        limit = world.in_flight if world.with_executor else 3 * world.threads
        world.expect(world.n_open <= limit, f"{world.n_open} blocks are open")
        world.progress()
        world.perhaps_interrupt("submitted")
        world.handed.append(future)
        return future

    def shutdown(self, wait=True, *, cancel_futures=False):
        world = self.world
        world.ended = True
        if cancel_futures:
            for task in world.tasks:
                task[0].cancel()
        while wait and world.tasks:
            world.perhaps_interrupt("join")
            world.step(self.workers)


class Schedule:
    """One run, all of whose accidents follow from the seed."""

    def __init__(self, seed):
        self.seed, self.rng = seed, random.Random(seed)
        rng = self.rng
        self.threads, self.n_rounds = rng.randint(1, 4), rng.randint(1, 12)
        self.n_leaves, self.leaves_a_block = rng.randint(1, 40), rng.randint(1, 3)
        self.with_executor, self.fault = rng.random() < 0.4, rng.choice(FAULTS)
        self.in_flight = rng.randint(1, 8)
        self.counted = seed % 3  # how often a kernel counts in a round
        self.log, self.kept = [], {}
        self.expected = self._root({leaf: moments for first, last in self.blocks({})
                                    for leaf, moments in self._whole(first, last).leaves()})

    def expect(self, condition, words):
        if not condition:
            raise Broken(f"Schedule({self.seed}) [{self.fault}, executor={self.with_executor}]: {words}; "
                         f"last events: {self.log[-8:]}")

    def _whole(self, first, last):
        """What a block gives when its rounds are run once, in order."""
        runner = Runner(types.SimpleNamespace(n_rounds=self.n_rounds), first, last)
        for round in range(self.n_rounds):
            runner.state = (runner.state * 6364136223846793005 + round) % 2**53
        return runner.result()

    def _root(self, leaves):
        tree = Tree(0, self.n_leaves, False)
        for leaf, moments in leaves.items():
            tree.add(leaf, moments)
        root = tree.root()
        return root.count, root.mean.tobytes(), root.square.tobytes(), root.spread_square.tobytes()

    def blocks(self, kept):
        """As Job.blocks: runs of leaves that are not kept."""
        left = [leaf for leaf in range(self.n_leaves) if leaf not in kept]
        blocks = []
        for leaf in left:
            first, last = leaf * LEAF, (leaf + 1) * LEAF
            if blocks and blocks[-1][1] == first and last - blocks[-1][0] <= self.leaves_a_block * LEAF:
                blocks[-1] = blocks[-1][0], last
            else:
                blocks.append((first, last))
        return blocks

    def perhaps_interrupt(self, where):
        self.clock += 1
        self.expect(self.clock < 10_000, "it never ends")
        self.log.append(where)
        if self.clock >= self.interrupt_at and self.interrupts and (
                self.interrupts == self.n_interrupts or self.rng.random() < 0.5):
            self.interrupts -= 1
            self.fails(f"Ctrl-C at {where}")
            raise KeyboardInterrupt

    def perhaps_die(self, runner):
        if self.rng.random() < self.p_death:
            self.fails(f"death in {runner.first}")
            raise Death(f"block {runner.first}")

    def fails(self, words):
        """The first failure: what is finished by now has to be kept."""
        self.log.append(words)
        if self.finished_at_fault is None:
            self.finished_at_fault = [future for future in self.handed if self.result_of(future) is not None]

    @staticmethod
    def result_of(future):
        """The block that a future finished, if any."""
        if not future.done() or future.cancelled() or future.exception() is not None:
            return None
        value = future.result()
        return value if isinstance(value, BlockResult) else value[2]

    def step(self, workers):
        """One task begins or ends."""
        running = [task for task in self.tasks if task[0].running()]
        startable = [task for task in self.tasks if task not in running]
        if startable and (not running or (len(running) < workers and self.rng.random() < 0.5)):
            task = self.rng.choice(startable)
            if not task[0].set_running_or_notify_cancel():
                self.tasks.remove(task)
            return
        if not running:
            return
        task = future, function, args, _ = self.rng.choice(running)
        self.tasks.remove(task)
        if self.with_executor and self.rng.random() < self.p_broken:
            self.fails("the executor breaks")
            self.is_broken = True
            for other in [future, *(task[0] for task in self.tasks)]:
                if other.running() or other.set_running_or_notify_cancel():
                    other.set_exception(BrokenExecutor("broken"))
            self.tasks.clear()
            return
        try:
            future.set_result(function(*args))
        except (Death, Stopped) as error:
            future.set_exception(error)
        self.log.append(f"task {future.number} ends")

    def progress(self):
        """What happens on the workers meanwhile."""
        while self.rng.random() < 0.4:
            self.step(self.threads)

    def wait(self, futures, timeout=None, return_when=None):
        """Stands for concurrent.futures.wait; with a timeout it may return before."""
        self.perhaps_interrupt("wait")
        enough = any if return_when == FIRST_COMPLETED else all
        while not enough(future.done() for future in futures):
            if timeout is not None and self.rng.random() < 0.3:
                break
            self.expect(self.tasks, "waits for what nobody runs")
            self.step(self.threads)
            self.progress()
        self.perhaps_interrupt("waited")
        done = [future for future in futures if future.done()]
        self.rng.shuffle(done)
        return types.SimpleNamespace(done=done, not_done=[future for future in futures if not future.done()])

    def take(self, block):
        """Stands for running.take: writes the block, and may fail before, while or after it does."""
        self.expect(block.first not in self.tried, f"block {block.first} is taken twice")
        self.tried.add(block.first)
        self.n_open -= 1
        self.perhaps_interrupt("take")
        if self.rng.random() < self.p_full:
            self.fails("disk full")
            raise OSError(28, "full")
        for leaf, moments in block.leaves():
            self.expect(leaf not in self.kept, f"leaf {leaf} is kept twice")
            self.kept[leaf] = moments
        self.progress()
        self.perhaps_interrupt("taken")

    def tick(self, amount):
        self.ticks += amount
        self.perhaps_interrupt("tick")

    def _coming(self):
        """The blocks, made only when they are asked for; no more of them than balance needs."""
        for number, block in enumerate(self.blocks(self.kept)):
            ahead, limit = number - self.n_begun, 0 if self.with_executor else 3 * self.threads
            self.expect(ahead <= limit, f"looks {ahead} blocks ahead")
            yield block

    def attempt(self, pool, faults):
        """Run what is not kept yet; the error that ends it, or None."""
        rng, armed = self.rng, "none" if not faults else self.fault
        self.tasks, self.futures, self.handed, self.tried = [], [], [], set()
        self.clock = self.ticks = self.n_open = self.n_begun = 0
        self.is_broken = self.ended = False
        self.finished_at_fault = None
        self.n_interrupts = {"interrupt": 1, "interrupts": rng.randint(2, 6), "all": rng.randint(0, 3)}.get(
            armed, 0)
        self.interrupts, self.interrupt_at = self.n_interrupts, rng.randint(1, 60)
        self.p_death = 0.03 if armed in ("death", "all") else 0.0
        self.p_broken = 0.05 if armed in ("broken", "all") else 0.0
        self.p_full = rng.choice((0.1, 1.0)) if armed in ("full disk", "all") else 0.0
        Runner.world = self
        pool.BlockRunner, pool.wait, pool.source_hash = Runner, self.wait, lambda: "here"
        pool.ThreadPoolExecutor = lambda threads: Simulated(self, threads)
        pool.run_block = _whole_block
        job = types.SimpleNamespace(n_rounds=self.n_rounds)
        blocks, hands = self._coming(), (self.take, self.tick)
        try:
            if self.with_executor:
                pool.run_on_executor(job, blocks, Simulated(self, self.threads), *hands, self.in_flight)
            else:
                pool.run_on_threads(job, blocks, self.threads, *hands, self.counted)
        except (KeyboardInterrupt, OSError, Death, BrokenExecutor) as error:
            return error
        except Exception as error:
            self.expect(False, f"an error of its own: {error!r}")
        return None

    def run(self, pool):
        """The run, what has to hold after it, and after it was resumed."""
        error = self.attempt(pool, faults=True)
        self.log.append(repr(error))
        self.expect((error is None) == (self.finished_at_fault is None), f"ended with {error!r}")
        self.expect(error is not None or self.ticks == self.n_rounds * self.n_leaves * LEAF, "lost progress")
        due = self.finished_at_fault or []
        if not self.with_executor:
            due = self.handed  # it waits for them
            while self.ended and self.tasks:  # after a Ctrl-C in the join: threads that were told to end, do
                self.step(self.threads)
            self.expect(not self.tasks, "tasks are left on the threads")
        self.expect(not [task for task in self.tasks if not (task[0].running() or task[0].cancelled())
                         and task[0] in self.handed], "tasks are left that nobody cancelled")
        for future in due:
            if block := self.result_of(future):
                self.expect(block.first in self.tried, f"block {block.first} is dropped")
        if error is not None:
            self.log.append("resumed")
            self.leaves_a_block = self.rng.randint(1, 3)
            again = self.attempt(pool, faults=False)
            self.expect(again is None, f"resumed, it ended with {again!r}")
            self.expect(not self.tasks, "tasks are left")
        self.expect(len(self.kept) == self.n_leaves, f"{len(self.kept)} of {self.n_leaves} leaves are kept")
        self.expect(self._root(self.kept) == self.expected, "other bits")
        return self.log


def _whole_block(job, first, last):
    runner = Runner(job, first, last)
    while not runner.finished:
        runner.advance()
    return runner.result()
