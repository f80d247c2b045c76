"""What is settled by reading in the paper's DE-SGLD part: misprints, and marks our text may have lost."""

from __future__ import annotations

from ...corrections import reading
from .setting import PAPER

reading(id="de_sgld.stochastic_gradient", paper=PAPER, where="appendix D, the minibatch gradient",
        printed="(2 n_i/b) sum_k (y_{j_k} - x^T X_{j_k}) + x/(lambda N)",
        corrected="-(2 n_i/b) sum_k (y_{j_k} - x^T X_{j_k}) X_{j_k} + x/(lambda N) for the f_i of (126); "
                  "-(n_i/(b xi^2)) for -(2 n_i/b) for those of the density",
        grade="error", consequence="nothing", theorems=(),
        derivation="Within appendix D, with the f_i of (126): the gradient of (y - x'X)^2 is -2 (y - x'X) X, "
                   "so that sign and factor X are missing, and a number is added to a vector. (The 2 is that "
                   "of `de_sgld.missing_half`.) Nothing uses the display: (121) holds for the estimator that "
                   "is meant.")
reading(id="de_sgld.monotone", paper=PAPER, where="Remark 3",
        printed="Therefore H is monotonically decreasing in y", corrected="monotonically increasing",
        grade="proof", consequence="nothing", theorems=(),
        derivation="The sentence before shows that the derivative of H in y is positive, and the sentence "
                   "after uses that H increases. A slip of the pen in one word of the "
                   "argument; what the remark states, that the bound increases in gamma-bar, is true.")
reading(id="de_sgld.lemma_7_display", paper=PAPER, where="proof of Lemma 7, last line",
        printed="E|x_i^(0)|^2 and 8 L^2 d eta/(1 - gamma-bar^2)^2",
        corrected="E|x^(0)|^2 and 8 L^2 d eta/(1 - gamma-bar^2)",
        grade="transcription", consequence="nothing", theorems=("de_sgld.gradient_error_bound",),
        derivation="The statement, and Lemma 6 that the line inserts, have both without the subscript and "
                   "the exponent, which our text may have added.")
