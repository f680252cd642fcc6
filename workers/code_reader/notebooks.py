"""Finds the statements of a pasted notebook that do more than define, and leaves them out.

A file of code is imported to build its model. A notebook also loads data and trains, which an experiment does
instead.
"""

import ast
import re
from collections.abc import Iterator, Sequence

from jobs.messages.code import CodeNotice
from workers.code_reader.builders import statements_of, takes_hyperparameters
from workers.code_reader.missing_packages import Surroundings, unreached
from workers.code_reader.modules import Module, printable
from workers.code_reader.scripts import is_start, reads_arguments
from workers.code_reader.tensorflow_imports import notices_of_tensorflow
from workers.code_reader.trained_models import TrainedModel, trained_models
from workers.code_reader.tuners import tuner_of
from workers.code_reader.uses import holders, use_of

WORK = frozenset(
    {
        "load_data", "fit", "fit_transform", "search", "evaluate", "predict", "adapt", "summary",
        "results_summary",
        "search_space_summary", "get_best_models", "get_best_hyperparameters", "get_file", "get_ipython",
        "read_csv", "read_parquet", "read_excel", "read_json", "loadtxt", "genfromtxt", "load_dataset",
        "image_dataset_from_directory", "fetch_openml", "urlretrieve", "train_on_batch", "plot_model",
        "savefig", "train_test_split", "load_iris", "load_digits", "load_wine", "load_breast_cancer",
        "fetch_california_housing",
    }
)  # fmt: skip
"""Functions and methods that load data, train, or show results."""
SETTINGS = re.compile(
    r"(^|\.)(set_\w+|enable_\w+|seed|path\.append|path\.insert|simplefilter|filterwarnings)$"
)
"""Calls that change how definitions work, such as `keras.utils.set_random_seed`."""
CALLBACK = "Callback"
FROM_DATA = "is computed from the data or from a training"


class Notebook:
    """The statements of one file, divided into those that define and those that run.

    Attributes:
        runs: statements that load data, train or show something when the file is imported, in their order.
        kept: all statements that are needed to define its functions and classes.
        trained: the models that statements build and train, if no function builds one.
        unreached: the missing package of each definition that no entry reaches, by the id of its statement.
    """

    def __init__(self, module: Module, surroundings: Surroundings | None = None) -> None:
        self._module = module
        self._uses = {id(node): use_of(module, node) for node in module.tree.body}
        self.runs = [node for node in module.tree.body if self._works(node)]
        tainted = self._tainted()
        defined = self._defined(tainted)
        needed = self._needed(defined, tainted)
        self.trained = [] if _has_builder(module) else trained_models(module, self._uses, self.runs)
        used = {name for model in self.functions() for name in model.reads}
        self.kept = self._kept(defined, needed, tainted, needed | used)
        self.unreached = unreached(module.tree.body, self._uses, surroundings or Surroundings(), used)
        if self.unreached:
            defined = [node for node in defined if id(node) not in self.unreached]
            needed = self._needed(defined, tainted)
            kept = self._kept(defined, needed, tainted, needed | used)
            self.kept = [node for node in kept if id(node) not in self.unreached]
        self._missing = needed & tainted
        self._tainted_names = tainted

    def _kept(
        self, defined: list[ast.stmt], needed: set[str], tainted: set[str], imports: set[str]
    ) -> list[ast.stmt]:
        fixed = {id(node) for node in defined}
        return [
            node
            for node in self._module.tree.body
            if id(node) in fixed or self._is_kept(node, needed, tainted, imports)
        ]

    @property
    def leaves_out(self) -> bool:
        """Return whether the definitions alone are other than the file."""
        return bool(self.runs or self._module.magics or self.unreached)

    def notices(self) -> Iterator[CodeNotice]:
        """Yield the statements that are left out: they run, or need a package that is not installed."""
        if not self.leaves_out:
            return
        for number in self._module.magics:
            yield self._notice(number, self._module.line(number).strip().removeprefix("pass  # "))
        kept, working = {id(node) for node in self.kept}, {id(node) for node in self.runs}
        for node in self._module.tree.body:
            # Those that compute with the data run too, such as `y = df["kind"]`.
            computes = bool(self._uses[id(node)].asks & self._tainted_names) and not _defines(node)
            line = self._module.line(node.lineno)
            if id(node) in working or (computes and id(node) not in kept):
                yield self._notice(node.lineno, line)
            elif (package := self.unreached.get(id(node))) is not None:
                yield self._notice(node.lineno, f"{line} – needs {package}, and no entry uses it")

    def replaced_imports(self) -> Iterator[CodeNotice]:
        """Yield the imports from TensorFlow that become those of Keras, and are not left out."""
        lines = {node.lineno for node in self._module.tree.body if id(node) in self.unreached}
        return (notice for notice in notices_of_tensorflow(self._module) if notice.line not in lines)

    def lost_names(self) -> Iterator[CodeNotice]:
        """Yield the names that definitions need and that only the left-out statements could give them."""
        for node in self._module.tree.body:
            for name in sorted(self._uses[id(node)].binds & self._missing):
                if not isinstance(node, ast.FunctionDef | ast.ClassDef):
                    self._missing.discard(name)
                    message = f"the definitions use {name}, which {FROM_DATA}: write its value instead"
                    yield self._notice(node.lineno, message)

    def _notice(self, line: int, message: str) -> CodeNotice:
        return CodeNotice(path=self._module.path, line=line, message=printable(message.strip()))

    def text(self) -> str:
        """Return the file with its definitions only. Comments stay."""
        kept = {id(node) for node in self.kept}
        lines = self._module.lines()
        for node in self._module.tree.body:
            if id(node) not in kept:
                first, last = _lines_of(node)
                for number in range(first, last + 1):
                    lines[number - 1] = ""
                # Several statements may be on one line.
                for other in self.kept:
                    if other.lineno in (first, last):
                        lines[other.lineno - 1] += f"{ast.unparse(other)}\n"
        text = "".join(self._without_gaps(lines)).strip()
        functions = [f"\n\n{model.text(self._module)}" for model in self.functions()]
        return "".join([f"{text}\n", *functions])

    def functions(self) -> list[TrainedModel]:
        """Return the models for which a function is made."""
        return [model for model in self.trained if not model.obstacle]

    def own_tuners(self) -> Iterator[CodeNotice]:
        """Yield the classes of tuners, whose `run_trial` no experiment calls."""
        for node in statements_of(self._module.tree):
            if isinstance(node, ast.ClassDef) and any(
                tuner_of(self._module.full_name(base)) for base in node.bases
            ):
                message = (
                    f"{node.name} is a tuner: no experiment calls its run_trial; train in fit(self, hp, "
                    "model) of a HyperModel class, or start the file as a script"
                )
                yield self._notice(node.lineno, message)

    def models(self) -> Iterator[CodeNotice]:
        """Yield how the models that statements build and train can be used."""
        for model in self.trained:
            message = (
                f"no function can be made of the lines that build {model.name}: {model.obstacle}"
                if model.obstacle
                else f"keep the definitions: the lines that build {model.name}, which is trained here, "
                f"become a function {model.function}(hp), with which an experiment can be started"
            )
            yield self._notice(model.call.lineno, message)

    def _without_gaps(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield the lines with two empty ones at most between statements; those inside of a text stay."""
        inside = {
            number for node in self.kept for number in range(_lines_of(node)[0], _lines_of(node)[1] + 1)
        }
        empty = 0
        for number, line in enumerate(lines, 1):
            empty = 0 if line.strip() or number in inside else empty + bool(line)
            if empty <= 2:
                yield line

    def _works(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or is_start(node):
            return False
        calls = self._uses[id(node)].calls
        return any(name.rpartition(".")[2] in WORK for name in calls) or any(map(tuner_of, calls))

    def _tainted(self) -> set[str]:
        """Return the names that depend on statements that run."""
        tainted: set[str] = set()
        for node in self._module.tree.body:
            use = self._uses[id(node)]
            if self._works(node) or (use.asks & tainted and not _defines(node)):
                tainted |= use.binds
                if not _defines(node):
                    # `normalizer.adapt(x)` changes what `normalizer` is.
                    tainted |= holders(node) - {*self._module.imported}
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                tainted -= use.binds
        return tainted

    def _defined(self, tainted: set[str]) -> list[ast.stmt]:
        """Return the definitions, the settings, and the start of a script."""
        body = self._module.tree.body
        kept = [node for node in body if self._is_definition(node, tainted)]
        read = {name for node in kept for name in self._uses[id(node)].reads}
        # A callback belongs to the search, unless a definition uses it.
        return [node for node in kept if not (self._is_callback(node) and node.name not in read)]  # type: ignore[attr-defined]

    def _is_definition(self, node: ast.stmt, tainted: set[str]) -> bool:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or is_start(node):
            return True
        use = self._uses[id(node)]
        if self._works(node) or use.asks & tainted:
            return False
        if isinstance(node, ast.Expr) and any(SETTINGS.search(name) for name in use.calls):
            return True
        if isinstance(node, ast.Assign) and (not use.binds or isinstance(node.value, ast.Lambda)):
            # `os.environ["KERAS_BACKEND"] = "jax"`
            return True
        return isinstance(node, ast.If | ast.Try | ast.With) and any(map(_defines, ast.walk(node)))

    def _is_callback(self, node: ast.stmt) -> bool:
        return isinstance(node, ast.ClassDef) and any(
            self._module.full_name(base).rpartition(".")[2] == CALLBACK for base in node.bases
        )

    def _needed(self, defined: list[ast.stmt], tainted: set[str]) -> set[str]:
        """Return the names that definitions use, directly or through constants."""
        needed = {name for node in defined for name in self._uses[id(node)].reads}
        while True:
            more = {
                name
                for node in self._module.tree.body
                # One that is left out needs nothing.
                if not (_defines(node) or self._works(node) or self._uses[id(node)].asks & tainted)
                for name in self._uses[id(node)].reads
                if (self._uses[id(node)].binds | holders(node)) & needed - tainted
            }
            if more <= needed:
                return needed
            needed |= more

    def _is_kept(self, node: ast.stmt, needed: set[str], tainted: set[str], imports: set[str]) -> bool:
        use = self._uses[id(node)]
        if isinstance(node, ast.Import | ast.ImportFrom):
            return bool(use.binds & (imports | {"*", "annotations"}))
        if _is_text(node):
            return True
        if _defines(node) or self._works(node) or use.asks & tainted:
            return False
        return bool((use.binds | holders(node)) & needed)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _has_builder(module: Module) -> bool:
    """Return whether a function of a file takes hyperparameters, or the file is started as a script."""
    functions = (
        node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    if any(is_start(node) or reads_arguments(module, node) for node in module.tree.body):
        return True
    return any(takes_hyperparameters(module, node) for node in functions)


def _defines(node: ast.AST) -> bool:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    made = isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
    return isinstance(node, kinds) or made


def _lines_of(node: ast.stmt) -> tuple[int, int]:
    decorators = [each.lineno for each in getattr(node, "decorator_list", ())]
    return min([node.lineno, *decorators]), node.end_lineno or node.lineno
