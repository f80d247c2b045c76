"""Functions of `fs.sampler` run as they stand in plain NumPy: programs with explicit noise for black boxes.

The names of the notation mean arrays (N, d) here, so that nothing of the trace is used.
"""

from __future__ import annotations

import types

import numpy as np

from theory.testing import UpdateRule


class Program:
    """The text of a sampler on quadratic clients, run with other meanings of grad, noise, past and mean.

    `rounds` of them are one step, for those that take turns.
    """

    def __init__(self, sampler, problem, rounds=1, age=0):
        follows, kind = type(sampler)._follows, type(sampler)
        self.N, self.d = (1 if follows == "global" else problem.n_clients), problem.dim
        H, m, w = problem.dense_hessians, problem.minimizers, problem.weights
        scale = w if follows == "components" else np.ones(problem.n_clients)
        forces = scale[:, None, None] * H
        pulls = np.einsum("cij,cj->ci", forces, m)
        if follows == "global":
            forces, pulls = np.einsum("c,cij->ij", w, H)[None], (w @ pulls)[None]
        shares = np.ones(1) if follows == "global" else w
        meanings = {
            "grad": lambda x: np.einsum("cij,cj->ci", forces, x) - pulls, "noise": self.noise,
            "past": self.past, "weights": lambda: shares[:, None], "sqrt": np.sqrt, "exp": np.exp,
            "mean": lambda x, of=None, drawn=None: self.mean(x, shares, of)}
        given = kind._function
        self.function = types.FunctionType(given.__code__, {**given.__globals__, **meanings}, given.__name__,
                                           given.__defaults__, given.__closure__)
        self.function.__kwdefaults__ = given.__kwdefaults__
        self.sampler, self.names, self.rounds, self.age = sampler, kind._state, rounds, age
        self.drawn, self.turn = None, 0

    def noise(self, common=False):
        place = "common" if common else "own"
        number = self.used[place] = self.used[place] + 1
        if self.drawn is None:
            return np.zeros((self.N, self.d))
        return np.broadcast_to(self.drawn[place][number - 1], (self.N, self.d))

    def past(self, x, age):
        (part,) = [i for i, one in enumerate(self.now) if one is x]
        return self.memory[age - 1][part] if age else x

    def mean(self, x, shares, of):
        chosen = shares if of is None else np.zeros(len(shares))
        if of is not None:
            members = list(of[self.turn % len(of)])
            chosen[members] = shares[members] / shares[members].sum()
        return np.broadcast_to(chosen @ np.broadcast_to(x, (self.N, self.d)), (self.N, self.d))

    def make(self, step_size):
        given = {**self.sampler._fields(), "step_size": step_size}

        def step(state, drawn):
            self.used, self.drawn = {"own": 0, "common": 0}, drawn
            for turn in range(self.rounds):
                self.turn = turn
                self.now, self.memory = tuple(state["now"]), state["memory"]
                after = self.function(*self.now, **given)
                after = after if isinstance(after, tuple) else (after,)
                state = {"now": np.array([np.broadcast_to(one, (self.N, self.d)) for one in after]),
                         "memory": np.concatenate([[self.now], self.memory])[:self.age]}
            return state

        return step

    def start(self, point):
        now = np.zeros((len(self.names), self.N, self.d))
        now[0] = point
        return {"now": now, "memory": np.repeat(now[None], self.age, axis=0)}

    def rule(self, problem, **more):
        """The black box, probed."""
        self.make(self.sampler.step_size)(self.start(np.zeros(self.d)), None)
        noise = {"own": (self.used["own"], self.N, self.d), "common": (self.used["common"], 1, self.d)}
        return UpdateRule(self.make, problem, self.sampler.step_size, noise=noise, start=self.start,
                          read=lambda state: state["now"][0].mean(axis=0), **more)
