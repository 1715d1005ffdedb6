"""Bayesian efficient multiple kernel learning."""

TYPE_CHECKING = False  # checkers of types take it for true; typing itself would be most of what this imports

__all__ = [
    "BEMKLClassifier",
    "BEMKLMultiTask",
    "BEMKLRegressor",
    "KernelBank",
    "KernelSpec",
    "KernelStack",
    "__version__",
    "load_model",
    "paper_bank",
    "save_model",
    "select_by_bound",
    "shared_kernels",
    "stack_kernels",
]

if TYPE_CHECKING:
    from bemkl.estimators import BEMKLClassifier, BEMKLMultiTask, BEMKLRegressor, select_by_bound, shared_kernels
    from bemkl.kernels import KernelBank, KernelSpec, KernelStack, paper_bank, stack_kernels
    from bemkl.persistence import load_model, save_model

    __version__: str
else:
    # Names are imported when they are asked for (PEP 562): `bemkl --help` needs none of them.
    _HOMES = {
        "estimators": ("BEMKLClassifier", "BEMKLMultiTask", "BEMKLRegressor", "select_by_bound", "shared_kernels"),
        "kernels": ("KernelBank", "KernelSpec", "KernelStack", "paper_bank", "stack_kernels"),
        "persistence": ("load_model", "save_model"),
    }

    def __getattr__(name):
        from importlib import import_module
        from importlib.util import find_spec

        home = next((home for home, names in _HOMES.items() if name in names), None)
        if name == "__version__":
            from importlib.metadata import version

            found = version("bemkl")
        elif home is not None:
            found = getattr(import_module(f"bemkl.{home}"), name)
        elif name.startswith("_") or find_spec(f"bemkl.{name}") is None:
            raise AttributeError(f"module 'bemkl' has no attribute {name!r}")
        else:
            return import_module(f"bemkl.{name}")
        globals()[name] = found
        return found

    def __dir__():
        return sorted({*globals(), *__all__})
