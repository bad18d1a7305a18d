"""Which code a result depends on, read from source files one definition at a time.

A definition is a function, a class or a constant at the top level of a module. `Sources` follows
the names in it to other definitions, through imports and across modules, and writes each of them
down without what cannot change a number: comments, docstrings, annotations, messages, and the
names of definitions and modules. Nothing is imported or run for this.

A class that is reached counts with all its methods and base classes, so attributes of objects
need not be followed. Not followed is what is known at run time only: modules that are imported by
a computed name, and entries that another module adds to a registry.
"""

import ast
import builtins
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["Sources"]

Key = tuple[str, str]  # a module and the name of a definition; no name for all of the module
Target = tuple[str, list[str]]  # a module and the attributes that lead on from it
Scope = dict[str, Target | None]  # names that are local, or imported, in a function
Function = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
Import = ast.Import | ast.ImportFrom

IGNORED = {"annotation", "returns", "type_comment", "type_params", "ctx", "kind"}
# Calls whose texts are for people, as are those of exceptions, and arguments that only place them.
SPOKEN = re.compile(r"print|(\w+\.)*warn|_?log(ger|ging)?\.\w+", re.IGNORECASE)
PLACING = {"stacklevel", "skip_file_prefixes"}


class Definition(NamedTuple):
    """A definition as text, and those it refers to in the order in which it does."""

    text: str
    references: list[Key]


class Sources:
    """The source files of this library, and of other modules that are not installed.

    Parameters
    ----------
    roots : mapping of str to Path, default={}
        Files of modules that are not where Python finds them; of packages ``__init__.py``.
    leaves : iterable of str, default=()
        Definitions, as ``module:name``, that are not followed and whose code does not count.

    Examples
    --------
    >>> from robustpca.bench.reached import Sources
    >>> Sources().reached("robustpca.bench.progress:span")
    [('robustpca.bench.progress', 'span')]
    """

    def __init__(self, roots: Mapping[str, Path] | None = None, leaves: Iterable[str] = ()) -> None:
        self._files: dict[str, Path | None] = dict(roots or {})
        self._modules: dict[str, Module] = {}
        self._definitions: dict[Key | None, Definition] = {
            self._start(address): Definition(address, []) for address in leaves
        }

    def digest(self, address: str) -> str | None:
        """Hash of all code that is reached from ``module:name``; None if there is no source.

        Definitions refer to each other by the number at which they are reached: neither their
        names and places nor their order in files count.
        """
        found = self.reached(address)
        number = {key: place for place, key in enumerate(found)}
        whole: list[Any] = [address.partition(":")[2].split(".")[1:]]  # a method of a class
        for text, references in map(self._definition, found):
            whole += [text, [number[key] for key in references]]
        return hashlib.sha256(repr(whole).encode()).hexdigest()[:32] if found else None

    def reached(self, address: str) -> list[Key]:
        """The definitions that are reached from ``module:name``, itself first."""
        start = self._start(address)
        found = [] if start is None else [start]
        known = set(found)
        for key in found:
            for other in self._definition(key).references:
                if other not in known:
                    known.add(other)
                    found.append(other)
        return found

    def locate(self, module: str, names: list[str]) -> tuple[Key | None, list[str]]:
        """The definition to which attributes of a module lead, and the attributes that are left.

        What has no source has no definition, but a full name. Where it is not known what an
        attribute is, all of the module counts.
        """
        here = self.module(module)
        if here is None:
            return None, [module, *names]
        if not names or names[0] in here.statements:
            return (module, "".join(names[:1])), names[1:]
        itself = (module, names[:1])
        other, path = here.imports.get(names[0], itself)
        if (other, path) != itself:
            return self.locate(other, path + names[1:])
        if self.module(f"{module}.{names[0]}"):
            return self.locate(f"{module}.{names[0]}", names[1:])
        star = next((star for star in here.stars if self.binds(star, names[0])), None)
        return self.locate(star, names) if star else ((module, ""), names)

    def binds(self, module: str, name: str) -> bool:
        """Whether something in a module has this name."""
        here = self.module(module)
        return here is not None and (
            name in here.statements
            or name in here.imports
            or any(self.binds(star, name) for star in here.stars)
        )

    def module(self, name: str) -> "Module | None":
        """A module, if it is among the sources."""
        path = self._file(name)
        if path is not None and name not in self._modules:
            self._modules[name] = Module(name, path)
        return self._modules.get(name)

    def _start(self, address: str) -> Key | None:
        module, _, name = address.partition(":")
        return self.locate(module, name.split("."))[0]

    def _file(self, name: str) -> Path | None:
        if name not in self._files:
            package, _, last = name.rpartition(".")
            self._files[name] = _inside(self._file(package), last) if package else _root(name)
        return self._files[name]

    def _definition(self, key: Key) -> Definition:
        if key not in self._definitions:
            module = self._modules[key[0]]
            reader = Reader(self, module, key[1])
            names = sorted({*module.statements, *module.imports})
            everything = [ast.Name(name, ast.Load()) for name in names]
            text = reader.read(module.statements[key[1]] if key[1] else everything)
            self._definitions[key] = Definition(text, reader.references)
        return self._definitions[key]


class Module:
    """The statements of a source file by the names that they bind or alter, and its imports.

    Parameters
    ----------
    name : str
        Full name.
    path : Path
        The file; a package without ``__init__.py`` has no statements.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        self.statements: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, Target] = {}
        self.stars: list[str] = []
        body = ast.parse(path.read_text(encoding="utf-8")).body if path.is_file() else []
        for statement in body:
            if isinstance(statement, Import):
                self.imports |= self.imported(statement)
                self.stars += [self.imports.pop("*")[0]] if "*" in self.imports else []
            for name, part in _bindings(statement):
                self.statements.setdefault(name, []).append(part)
        for statement in body:
            for name in _altered(statement) & self.statements.keys():
                self.statements[name].append(statement)

    def imported(self, statement: Import) -> dict[str, Target]:
        """Names that an import binds, and what they stand for."""
        if isinstance(statement, ast.ImportFrom):
            source = "." * statement.level + (statement.module or "")
            source = resolve_name(source, self.package) if statement.level else source
            return {one.asname or one.name: (source, [one.name]) for one in statement.names}
        # `import a.b` binds a, and `import a.b as c` binds c to a.b.
        targets = [
            one.name if one.asname else one.name.partition(".")[0] for one in statement.names
        ]
        names = [one.asname for one in statement.names]
        return {name or to: (to, []) for name, to in zip(names, targets, strict=True)}


class Reader:
    """Writes syntax as text, with a mark in place of each reference to a definition.

    Parameters
    ----------
    sources : Sources
        Where references are looked up.
    module : Module
        Where the definition is.
    name : str
        The definition.

    Attributes
    ----------
    references : list of Key
        The definitions that were marked.
    """

    def __init__(self, sources: Sources, module: Module, name: str) -> None:
        self.sources, self.module, self.name = sources, module, name
        self.references: list[Key] = []
        self.scopes: list[Scope] = []  # of the functions around

    def read(self, node: Any) -> str:
        """A node, a list of nodes, or a plain value as text; empty if it does not count."""
        match node:
            case list():
                return f"[{','.join(filter(None, map(self.read, node)))}]"
            case ast.Name(id=name):
                is_bound = isinstance(node.ctx, ast.Store)
                return self._own(name) if is_bound else self._name(name, [])
            case ast.Attribute():
                return self._attribute(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                return self._function(node)
            case ast.ClassDef(body=body):
                # What is annotated may be a field of a dataclass.
                fields = [part.target for part in body if isinstance(part, ast.AnnAssign)]
                parts = [node.decorator_list, node.bases, node.keywords, fields, body]
                return f"ClassDef({self._own(node.name)},{','.join(map(self.read, parts))})"
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node)
            case ast.Import() | ast.ImportFrom():
                # In a function the names are followed where they are used.
                targets = [] if self.scopes else self.module.imported(node).values()
                return ",".join(map(self._mark, targets))
            case ast.AnnAssign(target=target, value=value):
                return self.read(ast.Assign([target], value)) if value else ""
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return ""  # a docstring, among others
            case ast.Raise(exc=ast.Call() as error, cause=cause):
                return f"Raise({self._fields(_silent(error))},{self.read(cause)})"
            case ast.Assert(test=test):
                return f"Assert({self.read(test)})"
            case ast.Call() if _speaks(node):
                return self._fields(_silent(node))
            case ast.AST():
                return self._fields(node)
        return repr(node)

    def _fields(self, node: ast.AST) -> str:
        parts = [value for name, value in ast.iter_fields(node) if name not in IGNORED]
        return f"{type(node).__name__}({','.join(map(self.read, parts))})"

    def _own(self, name: str) -> str:
        """A name that is bound, with a mark in place of that of the definition."""
        return "=" if name == self.name and not self.scopes else name

    def _name(self, name: str, attributes: list[str]) -> str:
        is_global = self.sources.binds(self.module.name, name)
        target = (self.module.name, [name]) if is_global else None
        for scope in self.scopes:
            target = scope.get(name, target)
        if target is None:
            return ".".join([name, *attributes])
        return self._mark((target[0], target[1] + attributes))

    def _mark(self, target: Target) -> str:
        key, rest = self.sources.locate(*target)
        self.references += [key] if key else []
        return ".".join(["@", *rest] if key else rest)

    def _attribute(self, node: ast.Attribute) -> str:
        names, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            names, root = [root.attr, *names], root.value
        if isinstance(root, ast.Name):
            return self._name(root.id, names)
        return f"{self.read(node.value)}.{node.attr}"

    def _function(self, node: Function | ast.Lambda) -> str:
        # Decorators and defaults belong to the scope around.
        parts = [self.read(getattr(node, "decorator_list", [])), self._fields(node.args)]
        body = self._within(self._scope(node), node.body)
        return f"{type(node).__name__}({self._own(getattr(node, 'name', ''))},{parts},{body})"

    def _comprehension(self, node: Comprehension) -> str:
        # The first iterable belongs to the scope around.
        first = self.read(node.generators[0].iter)
        names = [name for loop in node.generators for name in _bound(loop.target)]
        parts = [value for _, value in ast.iter_fields(node)]
        return f"{type(node).__name__}({first},{self._within(dict.fromkeys(names), parts)})"

    def _within(self, scope: Scope, node: Any) -> str:
        self.scopes.append(scope)
        text = self.read(node)
        self.scopes.pop()
        return text

    def _scope(self, function: Function | ast.Lambda) -> Scope:
        """Names that are bound in a function, but not those of functions inside of it."""
        scope: Scope = {
            node.arg: None for node in ast.walk(function.args) if isinstance(node, ast.arg)
        }
        waiting: list[ast.AST] = [] if isinstance(function, ast.Lambda) else [*function.body]
        for node in waiting:
            if isinstance(node, Import):
                scope |= self.module.imported(node)
            elif isinstance(node, Function | ast.ClassDef):
                scope[node.name] = None
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                scope.setdefault(node.id, None)
            elif not isinstance(node, Comprehension | ast.Lambda):
                waiting += ast.iter_child_nodes(node)
        shared = {name for node in waiting if isinstance(node, ast.Global) for name in node.names}
        return {name: target for name, target in scope.items() if name not in shared}


def _speaks(call: ast.Call) -> bool:
    """Whether a call makes an error, or says something."""
    if not isinstance(call.func, ast.Name | ast.Attribute):
        return False
    name = ast.unparse(call.func)
    kind = getattr(builtins, name, None)
    is_error = isinstance(kind, type) and issubclass(kind, BaseException)
    return is_error or SPOKEN.fullmatch(name) is not None


def _silent(call: ast.Call) -> ast.Call:
    """A call without the texts among its arguments, whatever they are put together from."""
    keywords = [one for one in call.keywords if one.arg not in PLACING and not _has_text(one)]
    return ast.Call(call.func, [one for one in call.args if not _has_text(one)], keywords)


def _has_text(node: ast.AST) -> bool:
    return any(
        isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", None), str)
        for part in ast.walk(node)
    )


def _bindings(statement: ast.stmt) -> Iterator[tuple[str, ast.stmt]]:
    """Names that a statement at the top of a module binds, each with its part of the statement."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield statement.name, statement
        case ast.Import() | ast.ImportFrom():
            pass
        case ast.If(test=test) if re.search("TYPE_CHECKING|__name__", ast.unparse(test)):
            pass  # for type checkers, or for scripts
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)) if len(
            names
        ) == len(values):  # each by itself
            for name, value in zip(names, values, strict=True):
                yield from _bindings(ast.Assign([name], value))
        case _:
            yield from ((name, statement) for name in dict.fromkeys(_bound(statement)))


def _bound(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, Function | ast.ClassDef):
            yield part.name
        elif isinstance(part, Import):
            yield from ((one.asname or one.name).partition(".")[0] for one in part.names)


def _altered(statement: ast.stmt) -> set[str]:
    """Names of objects to which a statement adds: ``X[...] = y``, ``X.update(y)``, ``@X.add``."""
    parts = [getattr(statement, "target", None), *getattr(statement, "targets", [])]
    parts += [statement.value] if isinstance(statement, ast.Expr) else []
    found = set()
    for part in [*parts, *getattr(statement, "decorator_list", [])]:
        name = part
        while isinstance(name, ast.Attribute | ast.Subscript | ast.Call):
            name = name.func if isinstance(name, ast.Call) else name.value
        is_call = isinstance(part, ast.Call) and name is part.func
        if isinstance(name, ast.Name) and name is not part and not is_call:
            found.add(name.id)
    return found


def _root(name: str) -> Path | None:
    """The file of a top-level module, unless it comes with Python or was installed."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if file is None and name not in sys.stdlib_module_names:
        spec = find_spec(name) if module is None else module.__spec__
        folders = list(spec.submodule_search_locations or []) if spec else []
        file = f"{folders[0]}/__init__.py" if folders else spec and spec.origin
    path = Path(file or "")
    is_installed = {"site-packages", "dist-packages"} & {*path.parts} and name != "robustpca"
    return None if is_installed or name in sys.stdlib_module_names or path.suffix != ".py" else path


def _inside(package: Path | None, name: str) -> Path | None:
    """The file of a module in a package."""
    if package is None or package.name != "__init__.py":
        return None
    folder, file = package.with_name(name), package.with_name(f"{name}.py")
    return folder / "__init__.py" if folder.is_dir() else file if file.is_file() else None
