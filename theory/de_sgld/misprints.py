"""Errata of the paper's DE-SGLD part that are settled by reading or by derivation."""

from __future__ import annotations

from ..errata import reading
from .setting import PAPER

reading(id="de_sgld.stochastic_gradient", paper=PAPER, where="appendix D, stochastic gradient",
        printed="(2 n_i/b) sum_k (y_k - x'X_k) + x/(lambda N)",
        corrected="-(n_i/(b xi^2)) sum_k (y_k - x'X_k) X_k + x/(lambda N)",
        because="The gradient of (y - x'X)^2/(2 xi^2) is -(y - x'X) X/xi^2; sign and factor X are missing.")
reading(id="de_sgld.monotone", paper=PAPER, where="Remark 3",
        printed="H is monotonically decreasing in y", corrected="monotonically increasing",
        because="Its derivative is shown to be positive in the same sentence, and the conclusion needs it.")
reading(id="de_sgld.lemma_7_display", paper=PAPER, where="proof of Lemma 7, last line",
        printed="E||x_i^(0)||^2 and 8 L^2 d eta/(1 - gamma-bar^2)^2",
        corrected="E||x^(0)||^2 and 8 L^2 d eta/(1 - gamma-bar^2)",
        because="As the statement and Lemma 6 have it.")
reading(id="de_sgld.minibatch_scale", paper=PAPER, where="section 5.3, Telescope data", kind="derivation",
        printed="step size 0.008 with minibatches of 100, without their scale",
        corrected="not decided by the text: with the unbiased scale n_i/b it is far beyond Theorem 1's limit",
        because="With n_i/b of about 28.5 the largest curvature times the step size is far above 2; the sum "
                "of a minibatch without the factor is stable. grad_scale='batch_sum' is the second reading.")
