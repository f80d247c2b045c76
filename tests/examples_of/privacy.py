"""Settings of the privacy theorem: a plain one, and random ones."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from fedsim.settings.participation import Participation
from theory import privacy
from theory.privacy import PrivacySetting

PLAIN = {"sensitivity": 1.0, "batch_fraction": 0.1, "delta0": 1e-6, "delta1": 1e-6, "delta2": 1e-6,
         "local_steps": 10, "n_rounds": 100, "n_clients": 50}
SCHEME_I, SCHEME_II = Participation(10, True), Participation(10, False)


def plain(**changes):
    return PrivacySetting(**{**PLAIN, **changes})


reasonable = st.fixed_dictionaries({
    "sensitivity": st.floats(0.01, 10), "batch_fraction": st.floats(0.01, 1), "delta0": st.floats(1e-9, 0.9),
    "delta1": st.sampled_from([0.0, 1e-9, 1e-4, 0.3]), "delta2": st.sampled_from([0.0, 1e-9, 1e-4, 0.3]),
    "local_steps": st.integers(1, 200), "n_rounds": st.integers(1, 5000), "temperature": st.floats(0.1, 5),
    "shared_noise": st.floats(0, 0.99)})


@st.composite
def valid(draw, *, schemes=("all", "I", "II"), most=12):
    n = draw(st.integers(1, most))
    raw = np.array(draw(st.lists(st.floats(0.1, 1.0), min_size=n, max_size=n)))
    scheme = draw(st.sampled_from(schemes))
    chosen = None if scheme == "all" else Participation(draw(st.integers(1, n)), scheme == "I")
    s = PrivacySetting(**draw(reasonable), n_clients=n, weights=None if scheme == "II" else raw / raw.sum(),
                       participation=chosen)
    return s, draw(st.floats(1e-6, 1.0)) * privacy.validity_ceiling(s)
