"""Files made to do harm end in a sentence, after little time and memory, whatever they claim."""

import io
import json
import stat
import struct
import time
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse
from model_files import as_part, at, attributes, changed_tree, node, packed, paths_of_nodes, unpacked
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from bemkl import BEMKLRegressor, KernelBank, KernelSpec, load_model, save_model
from bemkl.exceptions import ModelFileError

X = np.random.default_rng(0).normal(size=(12, 2))
MOST_SECONDS = 2.0
MOST_BYTES = 200e6


def fitted():
    bank = KernelBank([KernelSpec("gaussian", "each", {"width": 1.0}), KernelSpec("linear")])
    return BEMKLRegressor(bank, tol=1e-3).fit(X, X[:, 0])


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "model.skops"
    save_model(fitted(), path)
    return path.read_bytes()


@pytest.fixture
def refused(tmp_path):
    def refused(content, sentence):
        """Load a file, and expect to be told why not, quickly."""
        (tmp_path / "model.skops").write_bytes(content)
        start = time.perf_counter()
        with pytest.raises(ModelFileError, match=sentence):
            load_model(tmp_path / "model.skops")
        assert time.perf_counter() - start < MOST_SECONDS

    return refused


@pytest.fixture
def little_memory():
    """Watch how much memory a test takes, NumPy's arrays included."""
    tracemalloc.start()
    yield
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MOST_BYTES


@pytest.mark.usefixtures("little_memory")
class TestArchives:
    def extended(self, content, name, part, **options):
        """Add a part to the archive."""
        buffer = io.BytesIO(content)
        with zipfile.ZipFile(buffer, "a") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of two parts with one name
            archive.writestr(name, part, **options)
        return buffer.getvalue()

    @pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    def test_parts_are_not_compressed(self, method, content, refused):
        bomb = self.extended(content, "7.npy", bytes(20 * 2**20), compress_type=method)
        assert len(bomb) < 2 * len(content)
        refused(bomb, r"the part 7\.npy is compressed or encrypted")

    @pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 9), (10, 97), (8, 8)])
    def test_parts_are_not_encrypted_nor_of_unknown_methods(self, offset, value, content, refused):
        altered = bytearray(content)
        struct.pack_into("<H", altered, content.index(b"PK\x01\x02") + offset, value)
        refused(bytes(altered), "compressed or encrypted")

    @pytest.mark.parametrize("claimed", [2**31, 2**32 - 2])
    def test_parts_are_no_larger_than_the_file(self, claimed, content, refused):
        altered = bytearray(content)
        struct.pack_into("<II", altered, content.index(b"PK\x01\x02") + 20, claimed, claimed)
        refused(bytes(altered), f"its parts claim .*but the file has {len(content)}")

    def test_parts_do_not_overlap(self, refused):
        """Entries of the directory that all mean one place in the file would multiply it."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("1.npy", bytes(100_000))
        small = buffer.getvalue()
        first, directory = small.index(b"PK\x01\x02"), small.rindex(b"PK\x05\x06")
        entry = small[first:directory]
        entries = [entry.replace(b"1.npy", b"%05d" % number + b".npy", 1) for number in range(100)]
        entries = [entry[:28] + struct.pack("<H", 9) + entry[30:] for entry in entries]
        end = bytearray(small[directory:])
        struct.pack_into("<HHI", end, 8, 100, 100, sum(map(len, entries)))
        refused(small[:first] + b"".join(entries) + bytes(end), "its parts claim 10000000 bytes")

    def test_parts_have_one_name_each(self, content, refused):
        refused(self.extended(content, "schema.json", b"{}"), "two parts of the same name")

    @pytest.mark.parametrize("name", ["../../x.npy", "/etc/x.npy", "a/b.npy", "x.py", "é.npy", "x\n.npy", "x.npy "])
    def test_parts_have_names_that_save_model_gives(self, name, content, refused):
        refused(self.extended(content, name, b"x"), "save_model writes no part|compressed or encrypted")

    def test_parts_have_names_in_an_encoding(self, content, refused):
        altered = self.extended(content, "éé.npy", b"x").replace("éé".encode(), b"\xff\xfe\xfd\xff")
        refused(altered, "not a model, or a truncated or altered one")

    def test_parts_are_no_links(self, content, refused):
        link = zipfile.ZipInfo("7.npy")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        refused(self.extended(content, link, b"/etc/passwd"), "save_model writes no part")

    def test_nothing_comes_before_or_after_the_archive(self, content, refused):
        refused(b"#!/bin/sh\nexit\n" + content, "does not begin and end like one")
        refused(content + b"\0", "does not begin and end like one")
        refused(content + content[:100], "does not begin and end like one")

    def test_parts_are_intact(self, content, refused):
        altered = bytearray(content)
        altered[content.index(b"\x93NUMPY") + 200] ^= 1
        refused(bytes(altered), "Bad CRC-32")

    def test_a_device_is_no_model(self):
        with pytest.raises(ModelFileError, match=r"does not begin and end|cannot be read"):
            load_model("/dev/zero")


class TestTrees:
    @pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a":' * 200_000, b"1" * 5000, b"\xff", b"[]", b"null", b""])
    def test_a_tree_is_json_that_is_not_deep(self, text, content, refused):
        refused(packed(unpacked(content) | {"schema.json": text}), "its parts cannot be read")

    def test_nodes_are_not_deep(self, content, refused):
        def nest(tree):
            inner = attributes(tree)["tol"]
            for number in range(1, 300):
                inner = node("ListNode", number, content=[inner])
            attributes(tree)["tol"] = inner

        refused(changed_tree(content, nest), "nested more than 400 levels")

    @pytest.mark.usefixtures("little_memory")
    @pytest.mark.parametrize("loader", ["ListNode", "CachedNode", "JsonNode"])
    def test_nodes_do_not_stand_for_larger_ones(self, loader, content, refused):
        """Ten references a level to all of the level before: 10^30 nodes from 300."""

        def grow(tree):
            levels = [node("ListNode", 1, content=[])]
            for number in range(2, 32):
                again = [node(loader, number - 1, content=[]) for _ in range(9)]
                levels.append(node("ListNode", number, content=[levels[-1], *again]))
            attributes(tree)["tol"] = levels[-1]

        refused(changed_tree(content, grow), "stands for another part than it says")

    def test_nodes_are_not_inside_themselves(self, content, refused):
        def circle(tree):
            attributes(tree)["tol"] = node("ListNode", 1, content=[node("ListNode", 1, content=[])])

        refused(changed_tree(content, circle), "stands for another part")

    @pytest.mark.parametrize("number", [None, 0, -1, True, 1.5, "1", [1]])
    def test_nodes_have_numbers(self, number, content, refused):
        refused(changed_tree(content, lambda tree: tree | {"__id__": number}), "stands for another part")

    @pytest.mark.usefixtures("little_memory")
    def test_a_part_is_read_once(self, content, refused):
        """Many nodes that read one part each take its memory again."""

        def repeat(tree):
            file = attributes(tree)["dual_coef_"]["file"]
            readers = [node("NdArrayNode", n, "numpy.ndarray", type="numpy", file=file) for n in range(1, 2000)]
            attributes(tree)["tol"] = node("ListNode", 2**60, content=readers)

        refused(changed_tree(content, repeat), "takes the part .*which is not its own")

    @pytest.mark.parametrize("file", ["nowhere.npy", "../1.npy", "", 5, ["x"]])
    def test_a_part_is_in_the_file(self, file, content, refused):
        refused(changed_tree(content, lambda tree: attributes(tree)["dual_coef_"].update(file=file)), "not its own")

    @pytest.mark.parametrize("protocol", [0, -1, None, True, "2", 10**30])
    def test_nodes_are_read_as_they_were_written(self, protocol, content, refused):
        refused(changed_tree(content, lambda tree: tree | {"protocol": protocol}), "protocol")


def header(text):
    """Return an array's beginning with any description."""
    padded = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded


@pytest.mark.usefixtures("little_memory")
class TestArrays:
    def with_array(self, content, part):
        parts = unpacked(content)
        file = attributes(json.loads(parts["schema.json"]))["dual_coef_"]["file"]
        return packed(parts | {file: part})

    @pytest.mark.parametrize(
        "description",
        [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
            "{'descr': '|S0', 'fortran_order': False, 'shape': (1000000000000,)}",
            "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}",
            "{'descr': '<U250000000', 'fortran_order': False, 'shape': ()}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (nan,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,)}",
            "{'descr': '<f8', 'fortran_order': False, 'shape': 10**12}",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
            "{'descr': '|V1000000000', 'fortran_order': False, 'shape': ()}",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,)}",
            "__import__('os').system('true')",
        ],
    )
    def test_claims_fit_the_size(self, description, content, refused):
        refused(self.with_array(content, header(description) + bytes(8)), "the model was altered")

    @pytest.mark.parametrize(
        "part", [b"", b"\x93NUMPY", b"\x93NUMPY\x03\x00", b"\x80\x04N.", b"PK\x03\x04" + bytes(50)]
    )
    def test_a_part_is_an_array(self, part, content, refused):
        refused(self.with_array(content, part), "is no array")

    def test_values_are_of_the_type_that_a_number_says(self, content, refused):
        """An empty value of the size that a number says would be made of `numpy.void`."""
        parts = unpacked(content) | {"7.npy": as_part(np.array(10**12))}
        tree = json.loads(parts["schema.json"])
        attributes(tree)["tol"] = node("NdArrayNode", 7, "numpy.void", type="numpy", file="7.npy")
        refused(packed(parts | {"schema.json": json.dumps(tree).encode()}), "stand for a numpy.void")

    def sparse(self, content, part):
        parts = unpacked(content) | {"7.npz": part}
        tree = json.loads(parts["schema.json"])
        attributes(tree)["tol"] = node(
            "SparseMatrixNode", 7, "scipy.sparse._csr.csr_matrix", type="scipy", file="7.npz"
        )
        return packed(parts | {"schema.json": json.dumps(tree).encode()})

    def test_sparse_matrices_do_not_blow_up(self, content, refused):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.npy", header("{'descr': '|i1', 'fortran_order': False, 'shape': (70000000,)}"))
        honest = buffer.getvalue()
        claims = bytearray(honest)
        struct.pack_into("<I", claims, honest.index(b"PK\x01\x02") + 24, 70_000_000)
        refused(self.sparse(content, honest), "claims shape")
        refused(self.sparse(content, bytes(claims)), "claims too many values")
        refused(self.sparse(content, b"PK\x05\x06" + bytes(10)), "no sparse matrix")

    def test_sparse_matrices_are_compressed_as_scipy_does(self, content, refused):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("data.npy", as_part(np.zeros(3)))
        refused(self.sparse(content, buffer.getvalue()), "a way that SciPy never uses")


class TestNames:
    @pytest.mark.parametrize(
        ("loader", "name"),
        [
            ("FunctionNode", "os.system"),
            ("FunctionNode", "builtins.eval"),
            ("FunctionNode", "bemkl.kernels.specs.find_kernel"),
            ("FunctionNode", "bemkl.kernels.bank.KernelBank"),
            ("TypeNode", "subprocess.Popen"),
            ("TypeNode", "bemkl.kernels.bank.KernelBank"),
            ("ObjectNode", "bemkl.persistence.archive.Outline"),
            ("ObjectNode", "bemkl.commands.main.Anything"),
            ("ObjectNode", "subprocess.Popen"),
            ("ObjectNode", "bemkl.kernels.functions.gaussian"),
            ("ListNode", "bemkl.kernels.bank.KernelBank"),
            ("DictNode", "bemkl.files.sources.Recipe"),
            ("TupleNode", "bemkl.inference.moves.Move"),
            ("SetNode", "bemkl.kernels.bank.KernelBank"),
            ("RandomStateNode", "bemkl.kernels.bank.KernelBank"),
            ("NdArrayNode", "bemkl.kernels.bank.KernelBank"),
            ("OperatorFuncNode", "operator.methodcaller"),
            ("PartialNode", "functools.partial"),
            ("MethodNode", "bemkl.kernels.bank.KernelBank"),
            ("LossNode", "sklearn._loss._loss.CyPinballLoss"),
            ("TreeNode", "sklearn.tree._tree.Tree"),
            ("ConstructorFromReduceNode", "numpy.ndarray"),
            ("ConstructorFromReduceNode", "bemkl.kernels.specs.find_kernel"),
            ("ConstructorFromReduceNode", "bemkl.estimators.fitting.ThreadPoolExecutor"),
            ("ConstructorFromReduceNode", "sklearn.gaussian_process.kernels.namedtuple"),
            ("ConstructorFromReduceNode", "sklearn.metrics.pairwise.partial"),
            ("ConstructorFromReduceNode", "bemkl.kernels.functions.gaussian"),
            ("ConstructorFromReduceNode", "sklearn.preprocessing._data.StandardScaler"),
            ("RandomGeneratorNode", "numpy.random._generator.Generator"),
            ("NoSuchNode", "builtins.list"),
        ],
    )
    def test_names_are_known_and_in_their_place(self, loader, name, content, refused):
        """Each kind of node of skops that names, builds or calls something, also what our modules import."""

        def plant(tree):
            empty = {"content": [], "key_types": node("ListNode", 2, content=[]), "type": "json"}
            if loader == "DictNode":
                empty["content"] = {}
            if loader == "ObjectNode":
                empty["content"] = node("DictNode", 3, "builtins.dict", content={}, key_types=empty["key_types"])
            if loader == "NdArrayNode":
                empty["shape"] = node("TupleNode", 4, "builtins.tuple", content=[])
            attributes(tree)["tol"] = node(loader, 1, name, **empty)

        refused(changed_tree(content, plant), "refers to|its parts cannot be read|stand for")

    def test_a_generator_of_random_numbers_takes_no_settings_from_a_file(self, content, refused):
        """A seed may ask for a pool of any size."""

        def plant(tree):
            def json_node(number, value):
                return node("JsonNode", number, "builtins.str", content=json.dumps(value), is_json=True)

            types = node("ListNode", 2, content=[node("TypeNode", 3, "builtins.str")])
            seed = node("DictNode", 4, "builtins.dict", content={"pool_size": json_node(5, 10**9)}, key_types=types)
            bits = {"bit_generator": json_node(6, "PCG64")}
            generator = {"bit_generator": node("DictNode", 7, "builtins.dict", content=bits, key_types=types)}
            name = "numpy.random._generator.Generator"
            attributes(tree)["random_state"] = node(
                "RandomGeneratorNode", 1, name, content=generator | {"seed_seq": seed}
            )

        refused(changed_tree(content, plant), r"refers to numpy\.random\._generator\.Generator")

    def test_a_method_is_not_replaced(self, content, refused):
        def plant(tree):
            attributes(tree)["predict"] = node("FunctionNode", 1, "numpy.exp")
            tree["content"]["key_types"]["content"].append(node("TypeNode", 2, "builtins.str"))

        refused(changed_tree(content, plant), "refers to|the class's own predict")

    def test_a_kernel_of_a_name_is_the_function_of_that_name(self, content, refused):
        def plant(tree):
            for path in paths_of_nodes(tree):
                if at(tree, path)["__class__"] == "gaussian_profile":
                    at(tree, path)["__class__"] = "laplacian_profile"

        refused(changed_tree(content, plant), "KernelFunction.*fields that fit one another")

    @pytest.mark.parametrize(
        "change",
        [
            {"__module__": "{}.x"},
            {"__module__": "{}."},
            {"__module__": "bemkl.kernels.__main__"},
            {"__class__": "."},
            {"__class__": ".."},
            {"__class__": ""},
            {"__class__": "{}.x"},
        ],
    )
    def test_a_name_does_not_decide_what_is_imported(self, change, content, refused, monkeypatch):
        def find(name, package=None):
            raise AssertionError(f"{name} was looked for")

        tree = json.loads(unpacked(content)["schema.json"])
        ours = [path for path in paths_of_nodes(tree) if at(tree, path)["__module__"].startswith("bemkl.")]
        assert len(ours) > 20
        monkeypatch.setattr("importlib.import_module", find)
        for path in ours[::5]:

            def alter(tree, path=path):
                here = at(tree, path)
                here.update({key: value.format(here[key]) for key, value in change.items()})

            refused(changed_tree(content, alter), "refers to|its parts cannot be read|was altered|stands for")


class TestGoodFiles:
    def test_sparse_matrices_in_a_pipeline_are_loaded(self, tmp_path):
        model = make_pipeline(StandardScaler(), FunctionTransformer(), fitted()).fit(X, X[:, 0])
        model[1].weights_ = scipy.sparse.eye_array(5000, format="csr")
        save_model(model, tmp_path / "model.skops")
        again = load_model(tmp_path / "model.skops", trusted=["scipy.sparse._csr.csr_array"])
        assert (again[1].weights_ != model[1].weights_).nnz == 0

    def test_one_array_may_be_in_many_places(self, tmp_path):
        model = fitted()
        model.notes_ = [model.dual_coef_] * 50
        save_model(model, tmp_path / "model.skops")
        again = load_model(tmp_path / "model.skops")
        assert all(note is again.dual_coef_ for note in again.notes_)

    def test_random_states_are_loaded(self, tmp_path):
        model = fitted().set_params(random_state=np.random.RandomState(3))
        save_model(model, tmp_path / "model.skops")
        again = load_model(tmp_path / "model.skops")
        assert again.random_state.randint(100) == np.random.RandomState(3).randint(100)
