"""Kernels are found in their modules and declare their names, parameters and operators."""

import pkgutil
from dataclasses import dataclass, fields
from importlib import import_module

import numpy as np
import pytest
from tests.cases import KERNELS

import hilboost.kernels
from hilboost.core.errors import IncompatibleParts
from hilboost.export.onnx_graph import Graph
from hilboost.kernels import KERNEL_NAMES, Gaussian, Kernel, Linear, Stationary
from hilboost.kernels.base import block_operators
from hilboost.kernels.registry import kernel_classes

PREVIOUS = (
    "cosine delta gaussian hamming laplace linear matern12 matern32 matern52 polynomial "
    "rational_quadratic tanimoto"
)


def test_every_class_with_a_file_name_is_found():
    named = set()
    for module in pkgutil.iter_modules(hilboost.kernels.__path__):
        for value in vars(import_module(f"hilboost.kernels.{module.name}")).values():
            if isinstance(value, type) and issubclass(value, Kernel) and "file_name" in vars(value):
                named.add(value)
    assert named - {Kernel} == set(kernel_classes().values())
    assert all(kernel.file_name == name for name, kernel in kernel_classes().items())


def test_every_registered_kernel_has_a_row_and_every_native_row_is_registered():
    native = {type(case.make()) for case in KERNELS if case.native}
    assert native == set(kernel_classes().values())


def test_names_are_unique_and_those_of_users_are_kept():
    names = [
        name for kernel in kernel_classes().values() for name in vars(kernel).get("short_names", ())
    ]
    assert sorted(names) == sorted(set(names)) == list(KERNEL_NAMES)
    assert set(PREVIOUS.split()) <= set(KERNEL_NAMES)


@pytest.mark.parametrize("name", sorted(kernel_classes()))
def test_the_declared_fields_are_those_of_the_dataclass(name):
    kernel = kernel_classes()[name]
    assert {field.name for field in fields(kernel)} == set(kernel.file_fields)


class Narrower(Gaussian):
    def profile(self, S):
        return np.exp(-S)


class Halved(Linear):
    def block(self, A, B):
        return super().block(A, B) / 2

    def diag(self, A):
        return super().diag(A) / 2


class OwnProfile(Stationary):
    def profile(self, S):
        return np.exp(-S)

    def slope(self, S):
        return -np.exp(-S)


@dataclass(frozen=True)
class Written(Halved):
    def operators(self, graph, A, B):
        return graph.times(super().operators(graph, A, B), 0.5)


@pytest.mark.parametrize("make", [Narrower, Halved, OwnProfile])
def test_a_derived_class_is_python_code(make):
    for kernel in (make(), make() * 2 + Gaussian()):
        with pytest.raises(IncompatibleParts, match=f"{make.__name__} is neither"):
            block_operators(kernel, Graph(), "X", np.eye(2))


def test_a_class_that_writes_its_operators_is_exported():
    graph = Graph()
    block_operators(2 * Written(), graph, "X", np.eye(2))
    assert [operator for operator, *_ in graph.nodes] == ["MatMul", "Add", "Mul", "Mul"]


def test_an_unknown_public_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Gausian'"):
        _ = hilboost.kernels.Gausian
