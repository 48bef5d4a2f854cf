"""Distilling a teacher into a student: Busbridge et al. 2025.

L_S = L_T + L_T^-c0 (1 + (L_T/(Lt d1))^(1/f1))^(-c1 f1) (A/N^alpha + B/D^beta)^gamma, with N and D of the student,
L_T the teacher's loss and Lt the loss that the same student would reach without a teacher. Lt comes from the
supervised law, which is the coupled form (`ridgeline.forecast.laws.coupled`).
"""

from dataclasses import dataclass

import numpy as np

from ridgeline.core.quantity import Source
from ridgeline.forecast.fitting.starts import middle, project_log, settle
from ridgeline.forecast.form import Array, Columns, Form, Parameter
from ridgeline.forecast.laws import chinchilla

_ALPHA = (0.15, 0.3, 0.45, 0.65)
_BETA = (0.2, 0.35, 0.5, 0.7)
_BALANCE = (0.2, 1.0, 5.0)  # data term over capacity term at the middle of the ladder
_SHARP = (0.05, 0.1, 0.25)
_CROSS = (1.0, 1.15, 1.3, 1.5)
_SETTLED = 40  # steps: valleys of the sharp gap are long
_TEACHERS = np.linspace(0.3, 1.5, 2401)  # losses looked at for the best one, in those of the unaided student


@dataclass(frozen=True)
class Distillation(Form):
    """theta = (ln A, ln B, alpha, beta, gamma, c0, ln c1, ln f1, ln d1)."""

    def log_loss(self, theta: Array, columns: Columns) -> Array:
        """See `Form`."""
        a, b, alpha, beta = (theta[..., i, None] for i in range(4))
        student = np.exp(a - alpha * np.log(columns["N"])) + np.exp(b - beta * np.log(columns["D"]))
        teacher = np.log(columns["teacher_loss"])
        gap = self._log_gap(theta[..., None, :], teacher, np.log(columns["supervised_loss"]))
        found: Array = np.log(columns["teacher_loss"] + np.exp(gap + theta[..., 4, None] * np.log(student)))
        return found

    def _log_gap(self, theta: Array, teacher: Array, supervised: Array) -> Array:
        """The logarithm of what multiplies the student's bracket, of the logarithms of both losses."""
        c0, c1, f1, d1 = (theta[..., i] for i in range(5, 9))
        return -c0 * teacher - np.exp(c1 + f1) * _softplus((teacher - supervised - d1) * np.exp(-f1))

    def starts(self, columns: Columns, log_y: Array, weights: Array) -> Array:
        """See `Form`."""
        teacher, supervised = np.log(columns["teacher_loss"]), np.log(columns["supervised_loss"])
        above = np.exp(log_y) - columns["teacher_loss"]
        some = above > 0  # a student below its teacher is outside the form
        if not some.any():
            some, above = np.ones_like(some), np.full_like(above, np.exp(log_y).min() * _SHARP[0])
        n, d = (np.log(columns[name]) - middle(columns[name]) for name in ("N", "D"))

        def basis(cells: Array) -> Array:
            alpha, beta, balance, f1, d1 = (cells[:, i, None] for i in range(5))
            student = np.log(np.exp(-alpha * n) + balance * np.exp(-beta * d))[:, some]
            crossed = _softplus((teacher - supervised - np.log(d1)) / f1)[:, some]
            flat = np.ones_like(student)
            return np.stack([flat, student, -flat * teacher[some], -f1 * crossed], axis=-1)

        axes = (_ALPHA, _BETA, _BALANCE, _SHARP, _CROSS)
        found = project_log(axes, basis, np.log(above[some]), weights[some])
        alpha, beta, balance, f1, d1 = found.cells.T
        level, gamma, c0, c1 = found.linear.T
        gamma = np.maximum(gamma, 0.05)
        a = level / gamma + alpha * middle(columns["N"])
        b = level / gamma + np.log(balance) + beta * middle(columns["D"])
        logs = [np.log(x) for x in (np.maximum(c1, 1e-2), f1, d1)]
        theta = np.stack([a, b, alpha, beta, gamma, c0, *logs], axis=-1)
        return settle(self, theta, range(9), columns, log_y, weights, _SETTLED)

    def best_teacher(self, theta: Array, params: float, tokens: float, supervised: float) -> tuple[float, float]:
        """The teacher's loss that serves a student best, and the student's with it; theta: (P,).

        ``supervised`` is the loss of the same student without a teacher. A stronger teacher than that is worse for
        the student: the gap in capacity of the study.
        """
        teachers = _TEACHERS * supervised
        same = {"N": params, "D": tokens, "supervised_loss": supervised}
        columns = {name: np.full_like(teachers, value) for name, value in same.items()}
        student = np.exp(self.log_loss(theta, {**columns, "teacher_loss": teachers}))
        best = int(np.argmin(student))
        return float(teachers[best]), float(student[best])


def _softplus(x: Array) -> Array:
    """ln(1 + exp(x)) that neither overflows nor breaks a complex step."""
    found: Array = np.where(x.real > 0, x, 0) + np.log(1 + np.exp(np.where(x.real > 0, -x, x)))
    return found


FORM = Distillation(
    slug="distillation",
    title="Distillation",
    kind="distillation",
    inputs=("N", "D", "teacher_loss", "supervised_loss"),
    parameters=(
        Parameter("A", True, 1e-6, chinchilla.PARAMETERS[0].high, "capacity coefficient of the student"),
        Parameter("B", True, 1e-6, chinchilla.PARAMETERS[0].high, "data coefficient of the student"),
        Parameter("alpha", False, 1e-3, 3.0, "capacity exponent"),
        Parameter("beta", False, 1e-3, 3.0, "data exponent"),
        Parameter("gamma", False, 1e-3, 5.0, "power of the bracket"),
        Parameter("c0", False, -20.0, 20.0, "how the gap shrinks with the teacher's loss"),
        Parameter("c1", True, 1e-3, 1e5, "strength of the gap in capacity"),
        Parameter("f1", True, 1e-3, 5.0, "sharpness of the gap in capacity"),
        Parameter("d1", True, 0.1, 10.0, "teacher's loss over the unaided student's at which it sets in"),
    ),
    formula="teacher_loss + teacher_loss**(-c0)*(1 + (teacher_loss/(supervised_loss*d1))**(1/f1))**(-c1*f1)"
    "*(A/N**alpha + B/D**beta)**gamma",
    text="L_S = L_T + L_T^-c0 (1 + (L_T/(Lt d1))^(1/f1))^(-c1 f1) (A/N^alpha + B/D^beta)^gamma, Lt the student's "
    "loss without a teacher",
    valid="Pure distillation (no label term) at temperature 1 on the teacher's corpus; the student never beats its "
    "teacher in the form.",
    source=Source("Distillation Scaling Laws (arXiv 2502.08606)", "equation 8 and table 6"),
    ambiguous="The law has no temperature: its runs distil at 1. A student trained at another temperature does not "
    "minimise the cross-entropy that the law predicts, so such runs neither test it nor follow from it.",
)
