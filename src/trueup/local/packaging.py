"""What is deployed: the layer of the functions, and the template with its artefacts in S3.

`python -m trueup.local.packaging <folder>` writes into a folder what of the layer is ours; `make layer` puts
the dependencies beside it. For AWS `sam deploy` or `aws cloudformation package` does the rest; `package` does
the same for the local stack.
"""

from __future__ import annotations

import compileall
import io
import json
import py_compile
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from samtranslator.yaml_helper import intrinsics_multi_constructor

try:  # libyaml's: a twentieth of the time
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # a PyYAML that was built without it
    from yaml import SafeLoader  # type: ignore[assignment]

import trueup
from trueup.errors import LocalStackError
from trueup.jobfile import catalogue, write_catalogue
from trueup.model.base import sha256
from trueup.model.jobs import AnyJob

TEMPLATE = "template.yaml"
LAYER = "build/layer"
"""The template's name for the layer."""

Files = Mapping[str, bytes]
Put = Callable[[str, bytes], str]
"""Puts an object under a key and gives its `s3://` address."""

_ARTEFACTS = ("CodeUri", "ContentUri", "DefinitionUri")
_NOT_FOR_FUNCTIONS = frozenset({"cli", "local", "testing", "__pycache__"})
# As old as a zip can be: the same files make the same bytes, and so the same key.
_MOMENT = (1980, 1, 1, 0, 0, 0)


class _Loader(SafeLoader):
    """Reads `!Ref` and its like as mappings. SAM's own function for it would teach every SafeLoader that."""


_Loader.add_multi_constructor("!", intrinsics_multi_constructor)


def project() -> Path:
    """The folder of template.yaml: the current one, or the source tree. Raises LocalStackError."""
    for root in (Path.cwd(), Path(__file__).parents[3]):
        if (root / TEMPLATE).is_file() and (root / "statemachines").is_dir():
            return root
    raise LocalStackError(
        f"There is nothing to deploy here: no {TEMPLATE} with its statemachines.",
        remedy="Run the command in a clone of the repository.",
    )


def read_template(root: Path) -> dict[str, Any]:
    """The template of a folder, its intrinsics as mappings.

    Raises LocalStackError where it is no YAML, or has not the outline of a template.
    """
    try:
        template = yaml.load((root / TEMPLATE).read_text(), _Loader)  # noqa: S506  a SafeLoader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _untold(f"it cannot be read: {error}.") from error
    if not isinstance(template, dict):
        raise _untold(f"it is {_kind(template)}, and a template is a mapping.")
    template.setdefault("Parameters", {})
    for section in ("Parameters", "Resources"):
        _check_section(section, template.get(section))
    return template


def _check_section(section: str, given: object) -> None:
    if not isinstance(given, dict):
        raise _untold(f"{section} is {_kind(given)}, and has to be a mapping of names.")
    for name, one in given.items():
        if not isinstance(one, dict) or not isinstance(one.get("Type"), str):
            raise _untold(f"{section}: {name} has to be a mapping with a Type.")
        if not isinstance(one.get("Properties", {}), dict):
            raise _untold(f"{section}: {name}: Properties is {_kind(one['Properties'])}, not a mapping.")


def _kind(value: object) -> str:
    return "empty" if value is None else f"a {type(value).__name__}"


def _untold(what: str) -> LocalStackError:
    return LocalStackError(
        f"{TEMPLATE}: {what}", remedy="Correct it; cfn-lint says more about a template than this."
    )


def layer(jobs: Mapping[str, AnyJob]) -> dict[str, bytes]:
    """The layer's files, all but its dependencies: the package, and the catalogue of jobs beside it."""
    package = Path(trueup.__file__).parent
    files = {f"python/trueup/{name}": data for name, data in _files(package)}
    return files | {"python/catalogue.json": write_catalogue(jobs)}


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not _NOT_FOR_FUNCTIONS & set(name.parts):
            yield name.as_posix(), path.read_bytes()


def zipped(files: Files) -> bytes:
    """An archive of files; the same files give the same bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _MOMENT), data, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def compiled(files: Files) -> dict[str, bytes]:
    """Files with the bytecode of their modules beside them, for the interpreter that runs this.

    Every function that starts cold on the local stack reads a copy of the layer of its own, and would compile
    it anew. The bytecode is not checked against its source (PEP 552), whose date is that of the copy.
    """
    with tempfile.TemporaryDirectory(prefix="trueup-layer-") as folder:
        _write(files, Path(folder))
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(folder, stripdir=folder, quiet=1, invalidation_mode=unchecked)
        found = (path for path in Path(folder).rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def package(root: Path, layer: Files, put: Put) -> str:
    """The template of a folder as JSON, each local path in it replaced by an object that `put` has put.

    `layer` stands for the folder build/layer. Raises LocalStackError where the template names nothing.
    """
    template = read_template(root)
    for name, resource in template["Resources"].items():
        properties = resource.get("Properties", {})
        for field in _ARTEFACTS:
            if isinstance(properties.get(field), str):
                data, suffix = _artefact(root, properties[field], layer, name)
                properties[field] = put(f"{sha256(data)}{suffix}", data)
    return json.dumps(template)


def _artefact(root: Path, place: str, layer: Files, resource: str) -> tuple[bytes, str]:
    if place == LAYER:
        return zipped(layer), ".zip"
    path = root / place
    if path.is_dir():
        return zipped(dict(_files(path))), ".zip"
    if path.is_file():
        return path.read_bytes(), "".join(path.suffixes)
    raise LocalStackError(
        f"{TEMPLATE}: {resource} names {place}, which is not there.", remedy="Correct the path."
    )


def main(arguments: list[str]) -> None:
    """Write our part of the layer into a folder."""
    (folder,) = arguments
    _write(layer(catalogue(project())), Path(folder))


def _write(files: Files, folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


if __name__ == "__main__":
    main(sys.argv[1:])
