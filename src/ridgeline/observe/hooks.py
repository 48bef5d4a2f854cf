"""The timer inside other people's loops: a Hugging Face Trainer callback and a Lightning callback.

Neither library is imported until a hook is asked for; both are the user's to install.
"""

from typing import Any

from ridgeline.core.errors import InputError
from ridgeline.observe.timer import StepTimer


def _missing(package: str) -> InputError:
    hint = f"pip install {package}"
    return InputError(f"Expected the package {package}, got an installation without it,", where="import", hint=hint)


def hf_trainer(timer: StepTimer) -> Any:
    """A ``TrainerCallback``: a line a step, the loss when it is logged, marks at evaluations and checkpoints."""
    try:
        from transformers import TrainerCallback
    except ImportError as error:
        raise _missing("transformers") from error

    class RidgelineCallback(TrainerCallback):  # type: ignore[misc]
        """Forwards the trainer's events to the timer."""

        _loss: float | None = None

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **rest: Any) -> None:
            self._loss = (logs or {}).get("loss", self._loss)

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            timer.step(loss=self._loss)

        def on_evaluate(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            timer.event("evaluation")

        def on_save(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            timer.event("checkpoint")

        def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            timer.close()

    return RidgelineCallback()


def lightning(timer: StepTimer) -> Any:
    """A Lightning ``Callback``: a line a training batch, marks at validations and checkpoints."""
    try:
        from lightning.pytorch import Callback
    except ImportError as error:
        raise _missing("lightning") from error

    class RidgelineCallback(Callback):  # type: ignore[misc]
        """Forwards Lightning's events to the timer."""

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            detach = getattr(loss, "detach", None)  # a kept loss must not keep its graph
            timer.step(loss=loss if detach is None else detach())

        def on_validation_start(self, trainer: Any, module: Any) -> None:
            timer.event("evaluation")

        def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: Any) -> None:
            timer.event("checkpoint")

        def on_train_end(self, trainer: Any, module: Any) -> None:
            timer.close()

    return RidgelineCallback()
