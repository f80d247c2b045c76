"""The columns of figures/scoreboard.csv, and what each says."""

COLUMNS = {
    "theorem": "id in `theory.catalogue()`",
    "statement": "paper and number",
    "variant": "form of the statement",
    "quantity": "what it bounds (`theory.quantities()`)",
    "problems": "random problems to which the theorem speaks",
    "within_hypotheses": "those on which every hypothesis that numbers decide holds",
    "verdict": "holds: on all within its hypotheses; violated: not on all of them. A rate has an unknown "
               "constant, so that no problem can speak against it: it is not compared",
    "violations": "problems within the hypotheses on which the exact quantity breaks the bound",
    "violations_outside": "the same outside the hypotheses, which contradicts nothing",
    "largest_ratio": "largest exact / bound within the hypotheses (bound / exact for a lower bound): 1 is "
                     "tight, more a violation; at most 1 within rounding is 1; below 1e-12 it is 0, also "
                     "where both sides are",
    "largest_at_end": "the same at the last round compared: a recursion begins with the exact distance, and "
                      "with a ratio of 1",
    "median_ratio": "its median over problems",
    "largest_found": "the largest ratio that a search found in three classes of problems, from "
                     "worst_cases.json, whose instances are evaluated again here",
    "first_bound": "the bound at its last round on one problem, the first where the ratio is not 0",
    "first_ratio": "the ratio there: by these two a test sees that the file lags behind the code",
    "vacuous": "share of problems on which a bound on a distance is below the distance at the start at "
               "none of the rounds drawn; blank for what is no distance",
    "least_gain": "of a bound derived here: the least that a published bound of the same quantity is over "
                  "it, at any round after the start, where the hypotheses of both hold",
    "median_gain": "the median of the same at the last round",
    "errata": "of a violated variant, what `theory.errata(theorem=...)` says against the text",
}
